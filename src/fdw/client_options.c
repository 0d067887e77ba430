/*
 * client_options.c
 *	  Options of servers and user mappings: which client properties, in whose
 *	  hands, and the configuration that comes out of them.
 *
 * Secrets live in user mappings only and appear in no message (decision 13).
 * Which property is what is src/kafka's knowledge (kafka_property_class).
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/reloptions.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_foreign_server.h"
#include "catalog/pg_user_mapping.h"
#include "commands/defrem.h"
#include "common/hashfn.h"
#include "fdw/option_list.h"
#include "foreign/foreign.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/syscache.h"

#define DEFAULT_TIMEOUT_MS	10000
#define MIN_TIMEOUT_MS		100
#define MAX_TIMEOUT_MS		3600000

/*
 * Properties that people bring along from Java clients and from Flink, and what
 * takes their place here.
 */
static const struct
{
	const char *name;
	const char *hint;
}			foreign_properties[] = {
	{"acks", "The table option \"delivery_guarantee\" says what a commit waits for."},
	{"auto.offset.reset", "The table option \"scan_startup_mode\" says where a scan starts."},
	{"delivery.timeout.ms", "The setting \"upsert_kafka.commit_timeout\" bounds how long a commit waits."},
	{"enable.auto.commit", "Positions of maintained tables are kept in the database."},
	{"enable.idempotence", "It is always on: a message that is sent again is stored once."},
	{"key.deserializer", "The table option \"key_format\" says how keys are read."},
	{"key.serializer", "The table option \"key_format\" says how keys are written."},
	{"message.timeout.ms", "The setting \"upsert_kafka.commit_timeout\" bounds how long a commit waits."},
	{"metadata.broker.list", "Use the server option \"bootstrap_servers\"."},
	{"partitioner", "Use the table option \"partitioner\"."},
	{"request.required.acks", "The table option \"delivery_guarantee\" says what a commit waits for."},
	{"sasl.jaas.config", "Set the options \"sasl_username\" and \"sasl_password\" of a user mapping."},
	{"ssl.truststore.certificates", "Use the option \"ssl.ca.pem\"."},
	{"ssl.truststore.location", "Use the option \"ssl.ca.pem\" with the certificates as text."},
	{"ssl.truststore.password", "Use the option \"ssl.ca.pem\" with the certificates as text."},
	{"ssl.truststore.type", "Use the option \"ssl.ca.pem\" with the certificates as text."},
	{"transactional.id", "The table option \"delivery_guarantee\" asks for transactions; their ids are chosen by the extension."},
	{"value.deserializer", "The table option \"value_format\" says how values are read."},
	{"value.serializer", "The table option \"value_format\" says how values are written."},
};

static const char *
strip_properties(const char *name)
{
	if (strncmp(name, "properties.", 11) == 0 || strncmp(name, "properties_", 11) == 0)
		return name + 11;
	return name;
}

static char *
dotted(const char *name)
{
	char	   *result = pstrdup(name);

	for (char *p = result; *p; p++)
	{
		if (*p == '_')
			*p = '.';
	}
	return result;
}

/*
 * Kafka's own name for an option: as spelled, or with '.' for '_'.  NULL if the
 * client has no such property.
 */
static const char *
property_name(const char *name)
{
	const char *stripped = strip_properties(name);
	char	   *with_dots;

	if (kafka_property_class(stripped) != KAFKA_PROP_UNKNOWN)
		return pstrdup(stripped);
	with_dots = dotted(stripped);
	if (kafka_property_class(with_dots) != KAFKA_PROP_UNKNOWN)
		return with_dots;
	return NULL;
}

bool
client_option_known(const char *name)
{
	return property_name(name) != NULL || strip_properties(name) != name || strncmp(name, "registry_", 9) == 0;
}

static const char *
foreign_property_hint(const char *name)
{
	char	   *with_dots = dotted(strip_properties(name));

	for (int i = 0; i < lengthof(foreign_properties); i++)
	{
		if (strcmp(foreign_properties[i].name, with_dots) == 0)
			return _(foreign_properties[i].hint);
	}
	return NULL;
}

static void
invalid_option(const char *name, const char *hint)
{
	ereport(ERROR,
			(errcode(ERRCODE_FDW_INVALID_OPTION_NAME),
			 errmsg("invalid option \"%s\"", name),
			 errhint("%s", hint)));
}

/* --- schema registry -------------------------------------------------------- */

static const char *const registry_server_options[] = {"registry_url", "registry_ca_pem", NULL};
static const char *const registry_mapping_options[] = {"registry_username", "registry_password", "registry_token", NULL};

static bool
is_word(const char *name, const char *const *words)
{
	for (int i = 0; words[i]; i++)
	{
		if (strcmp(words[i], name) == 0)
			return true;
	}
	return false;
}

static bool
is_registry_option(const char *snake)
{
	return is_word(snake, registry_server_options) || is_word(snake, registry_mapping_options);
}

/*
 * The address is the server's alone, so that who may only use it cannot have the
 * database server send requests elsewhere; secrets are a user mapping's alone.
 */
static void
registry_option_check(DefElem *def, const char *snake, bool in_mapping)
{
	const char *value = defGetString(def);
	const char *problem;

	if (is_word(snake, registry_server_options) && in_mapping)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_INVALID_OPTION_NAME),
				 errmsg("option \"%s\" is not allowed in a user mapping", def->defname),
				 errhint("Set it on the server.")));
	if (is_word(snake, registry_mapping_options) && !in_mapping)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_INVALID_OPTION_NAME),
				 errmsg("option \"%s\" is not allowed on a server", def->defname),
				 errdetail("Server options can be read by everybody."),
				 errhint("Set it in a user mapping.")));
	if (strcmp(snake, "registry_url") == 0 && (problem = registry_url_problem(value)) != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_INVALID_ATTRIBUTE_VALUE),
				 errmsg("invalid value for option \"%s\"", def->defname),
				 errdetail("%s", problem)));

	/* a line's end would begin another header */
	if (in_mapping)
	{
		for (const char *p = value; *p; p++)
		{
			if ((unsigned char) *p < ' ' || *p == 0x7f)
				ereport(ERROR,
						(errcode(ERRCODE_FDW_INVALID_ATTRIBUTE_VALUE),
						 errmsg("invalid value for option \"%s\"", def->defname),
						 errdetail("It has a control character.")));
		}
	}
}

/* NULL if it is not given */
static const char *
registry_option(List *options, const char *name)
{
	ListCell   *lc;

	foreach(lc, options)
	{
		DefElem    *def = lfirst_node(DefElem, lc);

		if (strcmp(option_snake_case(def->defname), name) == 0)
			return defGetString(def);
	}
	return NULL;
}

static void
client_option_unknown(const char *name, bool in_mapping)
{
	const char *const *properties = kafka_property_names();
	const char **names;
	const char **own = option_names(ForeignServerRelationId);
	const char *stripped = strip_properties(name);
	const char *hint = foreign_property_hint(name);
	int			n = 0;

	if (hint)
		invalid_option(name, hint);

	while (properties[n])
		n++;
	names = palloc(sizeof(char *) * (n + 24));
	n = 0;
	for (int i = 0; !in_mapping && own[i]; i++)
		names[n++] = own[i];
	for (int i = 0; registry_server_options[i] && !in_mapping; i++)
		names[n++] = registry_server_options[i];
	for (int i = 0; registry_mapping_options[i] && in_mapping; i++)
		names[n++] = registry_mapping_options[i];
	for (int i = 0; properties[i]; i++)
		names[n++] = properties[i];
	names[n] = NULL;

	hint = option_closest(stripped, names);
	if (hint == NULL)
		hint = option_closest(dotted(stripped), names);
	if (hint == NULL)
		hint = option_closest(option_snake_case(stripped), names);
	if (hint)
		invalid_option(name, psprintf(_("Perhaps you meant the option \"%s\"."), hint));
	invalid_option(name, in_mapping
				   ? _("A user mapping takes the client's sasl, ssl and security properties, such as \"sasl_username\" and \"sasl_password\", and registry_username, registry_password, registry_token.")
				   : _("A server takes \"bootstrap_servers\", \"timeout\" and client properties such as \"security.protocol\"."));
}

/* Names the property last, so that the mapping's value wins over the server's. */
static void
set_property(KafkaConfig *config, const char *name, const char *value)
{
	for (int i = 0; i < config->nprops; i++)
	{
		if (strcmp(config->names[i], name) == 0)
		{
			config->values[i] = value;
			return;
		}
	}
	config->names[config->nprops] = name;
	config->values[config->nprops] = value;
	config->nprops++;
}

static void
check_property(const char *given, const char *name, const char *value, KafkaPropertyClass class)
{
	char	   *message = NULL;

	if (class == KAFKA_PROP_FILE && !has_privs_of_role(GetUserId(), ROLE_PG_READ_SERVER_FILES))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied to set option \"%s\"", given),
				 errdetail("Only roles with privileges of the \"%s\" role may set options that name files of the server.",
						   "pg_read_server_files"),
				 errhint("Certificates and keys can be given as text: ssl.ca.pem on the server, ssl.certificate.pem and ssl.key.pem in a user mapping.")));

	if (kafka_property_check(name, value, &message))
		return;
	/* neither the value nor what the library says about it, if it is secret */
	if (class == KAFKA_PROP_SECRET)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_INVALID_ATTRIBUTE_VALUE),
				 errmsg("invalid value for option \"%s\"", given)));
	ereport(ERROR,
			(errcode(ERRCODE_FDW_INVALID_ATTRIBUTE_VALUE),
			 errmsg("invalid value for option \"%s\": \"%s\"", given, value),
			 message ? errdetail_internal("%s", message) : 0));
}

/*
 * Properties that tell who the client is; the rest describes the server, and so does
 * an address that the server's process would connect to.
 */
static bool
property_is_personal(const char *name)
{
	if (strcmp(name, "sasl.oauthbearer.token.endpoint.url") == 0)
		return false;
	return strncmp(name, "sasl.", 5) == 0 || strncmp(name, "ssl.", 4) == 0 ||
		strcmp(name, "security.protocol") == 0;
}

static void
client_property_parse(DefElem *def, const char *name, bool in_mapping, bool check, KafkaConfig *config)
{
	const char *value = defGetString(def);
	KafkaPropertyClass class = kafka_property_class(name);

	switch (class)
	{
		case KAFKA_PROP_RESERVED:
			{
				const char *hint = foreign_property_hint(name);

				ereport(ERROR,
						(errcode(ERRCODE_FDW_INVALID_OPTION_NAME),
						 errmsg("option \"%s\" is not allowed", def->defname),
						 hint ? errhint("%s", hint) :
						 errdetail("The extension sets this property itself, or it would let the client run code.")));
				break;
			}
		case KAFKA_PROP_SECRET:
			if (!in_mapping)
				ereport(ERROR,
						(errcode(ERRCODE_FDW_INVALID_OPTION_NAME),
						 errmsg("option \"%s\" is not allowed on a server", def->defname),
						 errdetail("Server options can be read by everybody."),
						 errhint("Set it in a user mapping.")));
			break;
		case KAFKA_PROP_PUBLIC:
		case KAFKA_PROP_FILE:
			if (in_mapping && !property_is_personal(name))
				ereport(ERROR,
						(errcode(ERRCODE_FDW_INVALID_OPTION_NAME),
						 errmsg("option \"%s\" is not allowed in a user mapping", def->defname),
						 errhint("Set it on the server.")));
			break;
		case KAFKA_PROP_UNKNOWN:
			client_option_unknown(def->defname, in_mapping);
	}
	if (check)
		check_property(def->defname, name, value, class);
	set_property(config, name, value);
}

static int
parse_timeout(const char *name, const char *value)
{
	int			result;
	const char *hint = NULL;

	if (!parse_int(value, &result, GUC_UNIT_MS, &hint))
		option_bad_value(name, value, hint ? hint : _("The value is a time such as \"10s\" or \"500ms\"; without a unit it is in milliseconds."));
	if (result < MIN_TIMEOUT_MS || result > MAX_TIMEOUT_MS)
		option_bad_value(name, value, _("The value is a time from 100ms to 1h."));
	return result;
}

void
client_options_parse(List *options, bool in_mapping, bool check, KafkaConfig *config)
{
	const char *bootstrap = NULL;
	const char *timeout = NULL;
	int			base = config->nprops;
	const char **given;			/* spelling of each property of this list */
	ListCell   *lc;

	given = palloc0(sizeof(char *) * (base + list_length(options) + 1));
	if (config->names == NULL)
	{
		config->names = palloc(sizeof(char *) * (list_length(options) + 1));
		config->values = palloc(sizeof(char *) * (list_length(options) + 1));
	}
	else
	{
		config->names = repalloc(config->names, sizeof(char *) * (base + list_length(options) + 1));
		config->values = repalloc(config->values, sizeof(char *) * (base + list_length(options) + 1));
	}

	foreach(lc, options)
	{
		DefElem    *def = lfirst_node(DefElem, lc);
		const char *stripped = strip_properties(def->defname);
		char	   *snake = option_snake_case(stripped);
		const char *name;
		const char **spelling = NULL;

		if (is_registry_option(snake))
		{
			ListCell   *other;

			foreach(other, options)
			{
				DefElem    *first = lfirst_node(DefElem, other);

				if (first == def)
					break;
				if (strcmp(option_snake_case(first->defname), snake) == 0)
					ereport(ERROR,
							(errcode(ERRCODE_DUPLICATE_OBJECT),
							 errmsg("option \"%s\" provided more than once", snake),
							 errdetail("\"%s\" and \"%s\" are spellings of the same option.", first->defname, def->defname)));
			}
			registry_option_check(def, snake, in_mapping);
			continue;
		}

		/*
		 * bootstrap_servers is one of ours because it is required, and because
		 * a user mapping must not lead the server's name elsewhere.
		 */
		if (strcmp(snake, "bootstrap_servers") == 0)
		{
			name = "bootstrap.servers";
			if (in_mapping)
				ereport(ERROR,
						(errcode(ERRCODE_FDW_INVALID_OPTION_NAME),
						 errmsg("option \"%s\" is not allowed in a user mapping", def->defname),
						 errhint("Set it on the server.")));
			spelling = &bootstrap;
		}
		else if (strcmp(snake, "timeout") == 0 && !in_mapping)
		{
			name = "timeout";
			spelling = &timeout;
		}
		else
		{
			name = property_name(def->defname);
			if (name == NULL)
				client_option_unknown(def->defname, in_mapping);
			for (int i = 0; i < config->nprops; i++)
			{
				if (strcmp(config->names[i], name) == 0)
					spelling = &given[i];
			}
			if (spelling == NULL)
				spelling = &given[config->nprops];
		}
		if (*spelling)
			ereport(ERROR,
					(errcode(ERRCODE_DUPLICATE_OBJECT),
					 errmsg("option \"%s\" provided more than once",
							spelling == &bootstrap ? "bootstrap_servers" : name),
					 errdetail("\"%s\" and \"%s\" are spellings of the same option.",
							   *spelling, def->defname)));
		*spelling = def->defname;

		if (spelling == &bootstrap)
		{
			const char *value = defGetString(def);

			if (strspn(value, " ,") == strlen(value))
				option_bad_value(def->defname, value, _("The value is a list of brokers such as \"host1:9092,host2:9092\"."));
			set_property(config, name, value);
		}
		else if (spelling == &timeout)
			config->timeout_ms = parse_timeout(def->defname, defGetString(def));
		else
			client_property_parse(def, name, in_mapping, check, config);
	}

	if (!in_mapping && bootstrap == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_DYNAMIC_PARAMETER_VALUE_NEEDED),
				 errmsg("option \"%s\" is required", "bootstrap_servers"),
				 errhint("The value is a list of brokers such as \"host1:9092,host2:9092\".")));
}

/*
 * The user's own mapping, else that of PUBLIC, else none: unlike GetUserMapping()
 * this is no error, since only what is secret needs one.
 */
static List *
find_user_mapping(Oid serverid, Oid userid, Oid *umid)
{
	HeapTuple	tuple;
	Datum		datum;
	bool		isnull;
	List	   *options = NIL;

	*umid = InvalidOid;
	tuple = SearchSysCache2(USERMAPPINGUSERSERVER, ObjectIdGetDatum(userid), ObjectIdGetDatum(serverid));
	if (!HeapTupleIsValid(tuple))
		tuple = SearchSysCache2(USERMAPPINGUSERSERVER, ObjectIdGetDatum(InvalidOid), ObjectIdGetDatum(serverid));
	if (!HeapTupleIsValid(tuple))
		return NIL;

	*umid = ((Form_pg_user_mapping) GETSTRUCT(tuple))->oid;
	datum = SysCacheGetAttr(USERMAPPINGUSERSERVER, tuple, Anum_pg_user_mapping_umoptions, &isnull);
	if (!isnull)
		options = untransformRelOptions(datum);
	ReleaseSysCache(tuple);
	return options;
}

KafkaConfig *
kafka_config_get(Oid serverid, Oid userid)
{
	KafkaConfig *config = palloc0(sizeof(KafkaConfig));
	ForeignServer *server = GetForeignServer(serverid);
	List	   *mapping;
	uint32		hash;

	config->serverid = serverid;
	config->server_name = server->servername;
	config->timeout_ms = DEFAULT_TIMEOUT_MS;
	mapping = find_user_mapping(serverid, userid, &config->umid);

	client_options_parse(server->options, false, false, config);
	client_options_parse(mapping, true, false, config);

	hash = hash_bytes((const unsigned char *) &config->timeout_ms, sizeof(config->timeout_ms));
	for (int i = 0; i < config->nprops; i++)
	{
		const char *name = config->names[i];
		const char *value = config->values[i];

		/* with the terminating NUL, which keeps "a" "bc" and "ab" "c" apart */
		hash = hash_combine(hash, hash_bytes((const unsigned char *) name, strlen(name) + 1));
		hash = hash_combine(hash, hash_bytes((const unsigned char *) value, strlen(value) + 1));
	}
	config->fingerprint = hash;
	return config;
}

KafkaConfig *
kafka_config_uncommitted(const KafkaConfig *config)
{
	KafkaConfig *result = palloc(sizeof(KafkaConfig));
	int			n = config->nprops;

	*result = *config;
	result->names = palloc(sizeof(char *) * (n + 1));
	result->values = palloc(sizeof(char *) * (n + 1));
	memcpy(result->names, config->names, sizeof(char *) * n);
	memcpy(result->values, config->values, sizeof(char *) * n);
	result->names[n] = "isolation.level";
	result->values[n] = "read_uncommitted";
	result->nprops = n + 1;
	result->fingerprint = ~config->fingerprint;
	return result;
}

RegistryAccess *
registry_access_get(Oid serverid, Oid userid)
{
	RegistryAccess *access = palloc0(sizeof(RegistryAccess));
	KafkaConfig *config = kafka_config_get(serverid, userid);
	ForeignServer *server = GetForeignServer(serverid);
	Oid			umid;
	List	   *mapping = find_user_mapping(serverid, userid, &umid);
	const char *url = registry_option(server->options, "registry_url");

	access->server_name = server->servername;
	access->timeout_ms = config->timeout_ms;
	if (url)
	{
		Size		len = strlen(url);

		while (len > 0 && url[len - 1] == '/')
			len--;
		access->url = pnstrdup(url, len);
	}
	access->ca_pem = registry_option(server->options, "registry_ca_pem");
	access->username = registry_option(mapping, "registry_username");
	access->password = registry_option(mapping, "registry_password");
	access->token = registry_option(mapping, "registry_token");
	return access;
}
