# Building and installing into the PostgreSQL of PG_CONFIG (PGXS): make, make install.
# With nothing set up at all: make demo, make test (see README.md).
PG_CONFIG ?= pg_config

SCRIPTS_HERE = demo test matrix setup interop debezium fuzz
ifneq ($(filter $(SCRIPTS_HERE),$(MAKECMDGOALS)),)

# These need neither PostgreSQL nor anything else to be there yet.
.PHONY: $(SCRIPTS_HERE)
demo: ; @test/demo
test: ; @test/run
matrix: ; @test/matrix
setup: ; @test/setup
interop: ; @test/interop/run
debezium: ; @test/debezium/run
fuzz: ; @test/fuzz/run $(if $(SECONDS),-s $(SECONDS)) $(FORMAT)

else

MODULE_big = upsert_kafka
EXTENSION  = upsert_kafka
DATA       = upsert_kafka--1.0.sql
OBJS       = $(patsubst %.c,%.o,$(sort $(wildcard src/*.c src/*/*.c)))

# without libcurl everything works but formats that ask a schema registry
CURL := $(shell pkg-config --exists libcurl && echo libcurl)

PG_CPPFLAGS = -I$(srcdir)/src $(shell pkg-config --cflags rdkafka jansson $(CURL)) $(if $(CURL),-DHAVE_CURL)
PG_CFLAGS   = -Wall -Wextra -Wno-unused-parameter -Wno-sign-compare -Wno-missing-field-initializers $(CLANG_CFLAGS)
# where the server was built with gcc, PGXS hands on flags and attributes that clang doesn't know
CLANG_CFLAGS = $(if $(findstring clang,$(shell $(CC) --version)),-Wno-unknown-warning-option -Wno-ignored-optimization-argument -Wno-ignored-attributes)
SHLIB_LINK  = $(shell pkg-config --libs rdkafka jansson $(CURL)) -lpthread

# make installcheck wants a running server and a Kafka: eval "$(test/lab env)"
REGRESS        = $(shell sed 's/\#.*//' test/schedule 2>/dev/null)
REGRESS_OPTS   = --encoding=UTF8 --no-locale
ISOLATION      = $(patsubst specs/%.spec,%,$(sort $(wildcard specs/*.spec)))
ISOLATION_OPTS = --encoding=UTF8 --no-locale
# TAP tests start servers, which root may not
ifneq ($(shell id -u),0)
ifneq ($(wildcard t/*.pl),)
TAP_TESTS = 1
endif
endif
EXTRA_CLEAN = test/kt

PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

$(OBJS): $(wildcard src/*.h src/*/*.h)

# isolation tests have the server call kt; the lab has put one where its server gets at it
installcheck: export PGOPTIONS += -c kt.program=$(or $(shell command -v kt),$(CURDIR)/test/kt) -c kt.broker=$(or $(BROKER),127.0.0.1:9092)
installcheck: test/kt
test/kt: test/kt.c
	$(MAKE) -C test kt

endif
