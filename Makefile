MODULE_big = upsert_kafka
EXTENSION  = upsert_kafka
DATA       = upsert_kafka--1.0.sql
OBJS       = $(patsubst %.c,%.o,$(sort $(wildcard src/*.c src/*/*.c)))

PG_CPPFLAGS = -I$(srcdir)/src $(shell pkg-config --cflags rdkafka jansson)
PG_CFLAGS   = -Wall -Wextra -Wno-unused-parameter -Wno-sign-compare -Wno-missing-field-initializers
SHLIB_LINK  = $(shell pkg-config --libs rdkafka jansson) -lpthread

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)
