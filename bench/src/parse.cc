/*
 * parse.cc
 *	  What a format's library needs for nothing but parsing a topic's values.
 *
 * parse PARSER TOPIC [SCHEMA]   ($BROKER): messages=.. bytes=.. runs=.. cpu_s=.. (of one run)
 *   own         src/format/json_scan.c: five members found by name, everything validated, UTF-8 by the server's function
 *   simdjson    its on-demand interface: the same five members as they are written; what is skipped is not validated
 *   simdjson-copied the same, each value copied first
 *   simdjson-dom    its tree, everything validated
 *   jansson     its tree
 *   postgres    the server's own JSON parser (libpgcommon), no values taken
 *   csv         libcsv, a function called for each field
 *   avro        Avro C, into a generic value; SCHEMA: the record's schema in JSON
 *   protobuf    Google's C++ library, into a dynamic message; SCHEMA: file with a descriptor set, and the message's name
 * Values are read into memory first, one behind the other, so that simdjson may look beyond the end of each
 * as it wants to.  Tombstones are left out.
 */
#include <avro.h>
#include <csv.h>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <functional>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/dynamic_message.h>
#include <jansson.h>
#include <librdkafka/rdkafka.h>
#include <memory>
#include <simdjson.h>
#include <string>
#include <vector>

extern "C" {
#include "../../src/format/json_scan.h"
extern int parse_postgres(char *json, int len);
extern int is_utf8(const char *bytes, int len);
}

struct Values
{
	std::string bytes;
	std::vector<std::pair<size_t, size_t>> places;	/* start, length */
};

static const char *const members[] = {"id", "name", "amount", "region", "updated_at"};

static double
cpu_now()
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

[[noreturn]] static void
fail(const std::string &what)
{
	fprintf(stderr, "parse: %s\n", what.c_str());
	exit(1);
}

static Values
read_topic(const char *topic)
{
	const char *broker = getenv("BROKER");
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	const struct rd_kafka_metadata *md;
	char		err[512];
	Values		values;

	const char *const props[][2] = {
		{"bootstrap.servers", broker ? broker : "127.0.0.1:9092"}, {"group.id", "parse"}, {"enable.auto.commit", "false"},
		{"enable.partition.eof", "true"}
	};
	for (auto &p : props)
		if (rd_kafka_conf_set(conf, p[0], p[1], err, sizeof(err)))
			fail(err);
	rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, err, sizeof(err));
	if (!rk)
		fail(err);
	rd_kafka_poll_set_consumer(rk);
	rd_kafka_topic_t *rkt = rd_kafka_topic_new(rk, topic, nullptr);
	if (rd_kafka_metadata(rk, 0, rkt, &md, 10000) || md->topic_cnt != 1 || md->topics[0].err)
		fail(std::string("there is no topic ") + topic);
	int			partitions = md->topics[0].partition_cnt;
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(partitions);
	for (int p = 0; p < partitions; p++)
		rd_kafka_topic_partition_list_add(list, topic, p)->offset = RD_KAFKA_OFFSET_BEGINNING;
	rd_kafka_assign(rk, list);
	for (int at_end = 0; at_end < partitions;)
	{
		rd_kafka_message_t *m = rd_kafka_consumer_poll(rk, 1000);

		if (!m)
			continue;
		if (m->err == RD_KAFKA_RESP_ERR__PARTITION_EOF)
			at_end++;
		else if (m->err)
			fail(rd_kafka_message_errstr(m));
		else if (m->payload)
		{
			values.places.emplace_back(values.bytes.size(), m->len);
			values.bytes.append(static_cast<const char *>(m->payload), m->len);
		}
		rd_kafka_message_destroy(m);
	}
	values.bytes.append(simdjson::SIMDJSON_PADDING, '\0');
	return values;
}

using Parser = std::function<bool(const char *bytes, size_t len)>;

static Parser
own()
{
	static JsonField fields[5];
	static JsonFields names;
	static std::vector<int32_t> slots(json_fields_slots(5));

	for (int i = 0; i < 5; i++)
		fields[i] = JsonField{members[i], static_cast<uint32_t>(strlen(members[i])), 0};
	json_fields_init(&names, 5, fields, slots.data());
	return [](const char *bytes, size_t len) {
		JsonScan	scan;
		JsonText	found[5];

		json_scan_init(&scan, bytes, len);
		return is_utf8(bytes, static_cast<int>(len)) && json_scan_object(&scan, &names, found) && json_scan_end(&scan) && found[0].kind == JK_NUMBER;
	};
}

static Parser
simdjson_ondemand()
{
	static simdjson::ondemand::parser parser;

	return [](const char *bytes, size_t len) {
		simdjson::ondemand::document doc;
		simdjson::ondemand::object object;
		std::string_view found[5];

		if (parser.iterate(bytes, len, len + simdjson::SIMDJSON_PADDING).get(doc) || doc.get_object().get(object))
			return false;
		for (auto field : object)
		{
			std::string_view name;

			if (field.unescaped_key().get(name))
				return false;
			for (int i = 0; i < 5; i++)
				if (name == members[i])
				{
					found[i] = field.value().raw_json_token();
					break;
				}
		}
		return !found[0].empty();
	};
}

/* as it would be with messages that may end where memory does */
static Parser
simdjson_copied()
{
	static std::vector<char> padded(1 << 20);
	Parser		parse = simdjson_ondemand();

	return [parse](const char *bytes, size_t len) {
		if (padded.size() < len + simdjson::SIMDJSON_PADDING)
			padded.resize(2 * len + simdjson::SIMDJSON_PADDING);
		memcpy(padded.data(), bytes, len);
		return parse(padded.data(), len);
	};
}

static Parser
simdjson_dom()
{
	static simdjson::dom::parser parser;

	return [](const char *bytes, size_t len) {
		simdjson::dom::element doc;

		return !parser.parse(bytes, len, false).get(doc) && doc.is_object();
	};
}

static Parser
tree_of_jansson()
{
	return [](const char *bytes, size_t len) {
		json_error_t error;
		json_t	   *tree = json_loadb(bytes, len, 0, &error);
		bool		ok = tree != nullptr;

		json_decref(tree);
		return ok;
	};
}

static size_t csv_fields;

static Parser
rows_of_libcsv()
{
	static struct csv_parser parser;

	if (csv_init(&parser, 0))
		fail("libcsv");
	return [](const char *bytes, size_t len) {
		csv_fields = 0;
		csv_parse(&parser, bytes, len, [](void *, size_t, void *) { csv_fields++; }, nullptr, nullptr);
		csv_fini(&parser, [](void *, size_t, void *) { csv_fields++; }, nullptr, nullptr);
		return csv_fields == 5;
	};
}

static Parser
values_of_avro(const char *json)
{
	avro_schema_t schema;
	static avro_value_t value;

	if (avro_schema_from_json_length(json, strlen(json), &schema))
		fail(avro_strerror());
	avro_value_iface_t *iface = avro_generic_class_from_schema(schema);
	avro_generic_value_new(iface, &value);
	static avro_reader_t reader = avro_reader_memory("", 0);
	return [](const char *bytes, size_t len) {
		avro_reader_memory_set_source(reader, bytes, len);
		avro_value_reset(&value);
		return avro_value_read(reader, &value) == 0;
	};
}

static Parser
messages_of_protobuf(const char *file, const char *name)
{
	using namespace google::protobuf;
	std::ifstream in(file, std::ios::binary);
	FileDescriptorSet set;
	static DescriptorPool pool;
	static DynamicMessageFactory factory;

	if (!set.ParseFromIstream(&in))
		fail(std::string("no descriptor set in ") + file);
	for (auto &f : set.file())
		pool.BuildFile(f);
	const Descriptor *type = pool.FindMessageTypeByName(name);
	if (!type)
		fail(std::string("no message ") + name);
	static std::unique_ptr<Message> message(factory.GetPrototype(type)->New());
	return [](const char *bytes, size_t len) { return message->ParseFromArray(bytes, static_cast<int>(len)); };
}

int
main(int argc, char **argv)
{
	if (argc < 3)
		return fprintf(stderr, "usage: parse PARSER TOPIC [SCHEMA ..]\n"), 2;
	std::string name = argv[1];
	Parser		parser =
		name == "own" ? own() : name == "simdjson" ? simdjson_ondemand() : name == "simdjson-copied" ? simdjson_copied() :
		name == "simdjson-dom" ? simdjson_dom() :
		name == "jansson" ? tree_of_jansson() : name == "csv" ? rows_of_libcsv() :
		name == "postgres" ? Parser([](const char *bytes, size_t len) {
			return parse_postgres(const_cast<char *>(bytes), static_cast<int>(len)) == 0; }) :
		name == "avro" && argc > 3 ? values_of_avro(argv[3]) :
		name == "protobuf" && argc > 4 ? messages_of_protobuf(argv[3], argv[4]) : Parser();
	if (!parser)
		return fprintf(stderr, "parse: there is no parser %s, or it wants a schema\n", argv[1]), 2;
	Values		values = read_topic(argv[2]);
	std::vector<double> costs;

	for (int run = 0; run < 5; run++)
	{
		double		start = cpu_now();

		for (auto [at, len] : values.places)
			if (!parser(values.bytes.data() + at, len))
				fail(name + " can't read " + values.bytes.substr(at, len));
		costs.push_back(cpu_now() - start);
	}
	std::sort(costs.begin(), costs.end());
	printf("messages=%zu bytes=%zu runs=%zu cpu_s=%.4f\n", values.places.size(), values.bytes.size(), costs.size(),
		   costs[costs.size() / 2]);
	return 0;
}
