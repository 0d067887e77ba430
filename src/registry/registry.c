/*
 * registry.c
 *	  Schemas of a registry: asked for by id, registered by subject, cached per process.
 *
 * Sees jansson for the registry's answers, and so none of PostgreSQL's builtins.h.
 */
#include "postgres.h"

#include <jansson.h>

#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "nodes/pg_list.h"
#include "registry/http.h"
#include "utils/memutils.h"

/* What a process remembers at most; beyond it, it begins anew. */
#define CACHE_ENTRIES	512
#define CACHE_BYTES		(32 * 1024 * 1024)
#define SHOWN_TEXT_MAX	300		/* bytes of a text that messages repeat */

/* Schemas that refer to schemas */
#define MAX_REFERENCES	200
#define MAX_DEPTH		20

typedef struct CacheEntry
{
	const char *key;			/* whom was asked, by whom, for what */
	uint32		id;				/* of a registered schema, or its version */
	RegistrySchema *schema;		/* of an id */
} CacheEntry;

static MemoryContext cache_context = NULL;
static CacheEntry *cache = NULL;
static int	ncached = 0;

/* --- cache ------------------------------------------------------------------ */

/* Answers given to one user are not another's. */
static char *
cache_key(const RegistryAccess *access, const char *what)
{
	return psprintf("%s\n%s\n%s\n%s\n%s", access->url, access->username ? access->username : "",
					access->password ? access->password : "", access->token ? access->token : "", what);
}

static CacheEntry *
cache_find(const char *key)
{
	for (int i = 0; i < ncached; i++)
	{
		if (strcmp(cache[i].key, key) == 0)
			return &cache[i];
	}
	return NULL;
}

static CacheEntry *
cache_add(const char *key)
{
	CacheEntry *entry;

	if (cache_context == NULL)
		cache_context = AllocSetContextCreate(TopMemoryContext, "upsert_kafka registry", ALLOCSET_DEFAULT_SIZES);
	if (cache && (ncached == CACHE_ENTRIES || MemoryContextMemAllocated(cache_context, true) > CACHE_BYTES))
	{
		cache = NULL;
		ncached = 0;
		MemoryContextReset(cache_context);
	}
	if (cache == NULL)
		cache = MemoryContextAlloc(cache_context, sizeof(CacheEntry) * CACHE_ENTRIES);
	entry = &cache[ncached];
	memset(entry, 0, sizeof(CacheEntry));
	entry->key = MemoryContextStrdup(cache_context, key);
	return entry;
}

/* --- requests --------------------------------------------------------------- */

const char *
registry_url_problem(const char *url)
{
	const char *host;

	if (strncmp(url, "http://", 7) == 0)
		host = url + 7;
	else if (strncmp(url, "https://", 8) == 0)
		host = url + 8;
	else
		return "It begins with http:// or https://.";
	if (*host == '\0' || *host == '/')
		return "It has no host.";
	for (const char *p = host; *p; p++)
	{
		if ((unsigned char) *p <= ' ' || (unsigned char) *p >= 0x7f)
			return "It has characters that do not belong into a URL.";
		if (*p == '@')
			return "User and password belong into a user mapping: registry_username, registry_password.";
		if (*p == '?' || *p == '#' || *p == ',')
			return "It is one address, without query and fragment.";
	}
	return NULL;
}

/* A path segment: all but unreserved characters as %XX */
static void
append_segment(StringInfo url, const char *segment)
{
	for (const char *p = segment; *p; p++)
	{
		if ((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9') ||
			strchr("-_.~", *p) != NULL)
			appendStringInfoChar(url, *p);
		else
			appendStringInfo(url, "%%%02X", (unsigned char) *p);
	}
}

/* What is asked about a subject; 'rest' begins with a slash. */
static char *
subject_url(const RegistryAccess *access, const char *subject, const char *rest)
{
	StringInfoData url;

	initStringInfo(&url);
	appendStringInfo(&url, "%s/subjects/", access->url);
	append_segment(&url, subject);
	appendStringInfoString(&url, rest);
	return url.data;
}

char *
registry_shown_text(const char *text)
{
	bool		utf8 = GetDatabaseEncoding() == PG_UTF8;
	int			left = (int) strnlen(text, SHOWN_TEXT_MAX);
	StringInfoData shown;

	initStringInfo(&shown);
	while (left > 0)
	{
		int			len = pg_utf_mblen((const unsigned char *) text);

		if (len > left)
			break;
		if (!pg_utf8_islegal((const unsigned char *) text, len))
			len = 1;
		if ((unsigned char) *text < 0x80 || (utf8 && len > 1))
			appendBinaryStringInfo(&shown, text, len);
		else
			appendStringInfoChar(&shown, '?');
		text += len;
		left -= len;
	}
	return shown.data;
}

/* What the registry says of an error: {"error_code": 40403, "message": ".."}; may be "" */
static char *
error_text(const char *body)
{
	json_t	   *json = json_loads(body, 0, NULL);
	const char *message = json_string_value(json_object_get(json, "message"));
	char	   *result = message ? psprintf(": %s", registry_shown_text(message)) : pstrdup("");

	json_decref(json);
	return result;
}

/* Is it the registry that says so, or something else at a wrong address? */
static bool
has_error_code(const char *body)
{
	json_t	   *json = json_loads(body, 0, NULL);
	bool		result = json_is_integer(json_object_get(json, "error_code"));

	json_decref(json);
	return result;
}

/* The answer to a request that went well; the caller drops it.  NULL: nothing is there, if that may be. */
static json_t *
ask(const RegistryAccess *access, const char *url, const char *json, const char *what, bool missing_ok)
{
	StringInfoData body;
	json_t	   *answer;
	int			status;
	json_error_t error;

	initStringInfo(&body);
	status = http_request(access, url, json, &body);
	if (status == 401 || status == 403)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_AUTHORIZATION_SPECIFICATION),
				 errmsg("schema registry of server \"%s\" refuses access", access->server_name),
				 errdetail("%s: status %d%s.", url, status, error_text(body.data)),
				 errhint("Set registry_username and registry_password, or registry_token, in the user mapping.")));
	if (json && (status == 409 || status == 422))
		ereport(ERROR,
				(errcode(ERRCODE_FDW_ERROR),
				 errmsg("schema registry of server \"%s\" refuses %s", access->server_name, what),
				 errdetail("%s: status %d%s.", url, status, error_text(body.data)),
				 errhint("The columns of the foreign table, or its option \"schema\", must be compatible with the versions that are there.")));
	if (status == 404 && missing_ok && has_error_code(body.data))
		return NULL;
	if (status == 404)
		ereport(ERROR,
				(errcode(ERRCODE_CONNECTION_EXCEPTION),
				 errmsg("schema registry of server \"%s\" does not know %s", access->server_name, what),
				 errdetail("%s: status %d%s.", url, status, error_text(body.data)),
				 errhint("Is it the registry of the message's producer?  See \"registry_url\" of the server.")));
	if (status < 200 || status > 299)
		ereport(ERROR,
				(errcode(ERRCODE_CONNECTION_FAILURE),
				 errmsg("schema registry of server \"%s\" cannot tell %s", access->server_name, what),
				 errdetail("%s: status %d%s.", url, status, error_text(body.data)),
				 status >= 300 && status < 400 ? errhint("Redirects are not followed: give the address itself as \"registry_url\".") : 0));
	answer = json_loadb(body.data, body.len, 0, &error);
	if (answer == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_CONNECTION_FAILURE),
				 errmsg("schema registry of server \"%s\" gives no JSON for %s", access->server_name, what),
				 errdetail("%s: %s.", url, registry_shown_text(error.text)),
				 errhint("Is \"registry_url\" of the server that of a registry with Confluent's API?")));
	pfree(body.data);
	return answer;
}

static void
odd_answer(const RegistryAccess *access, const char *url, const char *what)
{
	ereport(ERROR,
			(errcode(ERRCODE_CONNECTION_FAILURE),
			 errmsg("schema registry of server \"%s\" gives an odd answer for %s", access->server_name, what),
			 errdetail("%s", url)));
}

/* --- schemas ---------------------------------------------------------------- */

typedef struct Collected
{
	List	   *texts;
	List	   *names;
	List	   *seen;			/* "subject\nversion" */
	char	   *type;
} Collected;

static bool collect(const RegistryAccess *access, const char *url, const char *what, const char *name, int depth,
					bool missing_ok, Collected *collected);

/* Schemas that this one refers to come before it. */
static void
collect_references(const RegistryAccess *access, json_t *references, const char *url, const char *what,
				   int depth, Collected *collected)
{
	for (int i = 0; i < (int) json_array_size(references); i++)
	{
		json_t	   *reference = json_array_get(references, i);
		const char *subject = json_string_value(json_object_get(reference, "subject"));
		json_t	   *version = json_object_get(reference, "version");
		char	   *key;
		ListCell   *lc;
		bool		known = false;

		if (subject == NULL || !json_is_integer(version) || depth >= MAX_DEPTH ||
			list_length(collected->seen) >= MAX_REFERENCES)
			odd_answer(access, url, what);
		key = psprintf("%s\n%lld", subject, (long long) json_integer_value(version));
		foreach(lc, collected->seen)
			known |= strcmp(lfirst(lc), key) == 0;
		if (known)
			continue;
		collected->seen = lappend(collected->seen, key);
		(void) collect(access, subject_url(access, subject, psprintf("/versions/%lld", (long long) json_integer_value(version))),
					   psprintf("subject \"%s\", version %lld", registry_shown_text(subject), (long long) json_integer_value(version)),
					   json_string_value(json_object_get(reference, "name")), depth + 1, false, collected);
	}
}

static bool
collect(const RegistryAccess *access, const char *url, const char *what, const char *name, int depth,
		bool missing_ok, Collected *collected)
{
	json_t	   *answer = ask(access, url, NULL, what, missing_ok);

	if (answer == NULL)
		return false;
	PG_TRY();
	{
		const char *text = json_string_value(json_object_get(answer, "schema"));
		const char *type = json_string_value(json_object_get(answer, "schemaType"));

		if (text == NULL)
			odd_answer(access, url, what);
		collect_references(access, json_object_get(answer, "references"), url, what, depth, collected);
		collected->texts = lappend(collected->texts, pstrdup(text));
		collected->names = lappend(collected->names, name ? pstrdup(name) : NULL);
		collected->type = type ? registry_shown_text(type) : pstrdup("AVRO");
	}
	PG_FINALLY();
	{
		json_decref(answer);
	}
	PG_END_TRY();
	return true;
}

/* In CurrentMemoryContext */
static RegistrySchema *
make_schema(const Collected *collected)
{
	RegistrySchema *schema = palloc0(sizeof(RegistrySchema));

	schema->type = pstrdup(collected->type);
	schema->ntexts = list_length(collected->texts);
	schema->texts = palloc(sizeof(char *) * schema->ntexts);
	schema->names = palloc(sizeof(char *) * schema->ntexts);
	for (int i = 0; i < schema->ntexts; i++)
	{
		const char *name = list_nth(collected->names, i);

		schema->texts[i] = pstrdup(list_nth(collected->texts, i));
		schema->names[i] = name ? pstrdup(name) : NULL;
	}
	return schema;
}

const RegistrySchema *
registry_latest_schema(const RegistryAccess *access, const char *subject)
{
	Collected	collected = {0};
	char	   *url = subject_url(access, subject, "/versions/latest");

	if (!collect(access, url, psprintf("subject \"%s\"", subject), NULL, 0, true, &collected))
		return NULL;
	return make_schema(&collected);
}

const RegistrySchema *
registry_find_schema(const RegistryAccess *access, uint32 id)
{
	Collected	collected = {0};

	if (!collect(access, psprintf("%s/schemas/ids/%u", access->url, id), psprintf("schema %u", id), NULL, 0, true, &collected))
		return NULL;
	return make_schema(&collected);
}

const RegistrySchema *
registry_schema(const RegistryAccess *access, uint32 id)
{
	char	   *what = psprintf("schema %u", id);
	char	   *key = cache_key(access, what);
	CacheEntry *entry = cache_find(key);
	MemoryContext old;
	Collected	collected = {0};
	RegistrySchema *schema;

	if (entry)
		return entry->schema;
	(void) collect(access, psprintf("%s/schemas/ids/%u", access->url, id), what, NULL, 0, false, &collected);

	entry = cache_add(key);
	old = MemoryContextSwitchTo(cache_context);
	schema = make_schema(&collected);
	MemoryContextSwitchTo(old);
	entry->schema = schema;
	ncached++;					/* complete only now */
	return schema;
}

/* A number of an answer; drops the answer. */
static uint32
take_number(const RegistryAccess *access, const char *url, const char *what, json_t *answer, const char *member)
{
	json_t	   *value = json_object_get(answer, member);
	json_int_t	number = json_is_integer(value) ? json_integer_value(value) : -1;

	json_decref(answer);
	if (number < 0 || number > PG_UINT32_MAX)
		odd_answer(access, url, what);
	return (uint32) number;
}

/* What is posted about a schema, as text; ERROR if it is no UTF-8 */
static char *
schema_body(const char *subject, const char *type, const char *schema, int nreferences, const RegistryReference *references)
{
	/* registries know Avro without its name, and some of them nothing else */
	json_t	   *body = strcmp(type, "AVRO") == 0 ? json_pack("{s:s}", "schema", schema)
		: json_pack("{s:s, s:s}", "schemaType", type, "schema", schema);
	json_t	   *list = nreferences > 0 ? json_array() : NULL;
	bool		good = body != NULL;
	char	   *text;
	char	   *result;

	for (int i = 0; i < nreferences; i++)
		good &= json_array_append_new(list, json_pack("{s:s, s:s, s:i}", "name", references[i].name, "subject", references[i].subject,
													  "version", references[i].version)) == 0;
	if (list)
		good &= json_object_set_new(body, "references", list) == 0;
	text = good ? json_dumps(body, JSON_COMPACT) : NULL;
	json_decref(body);
	if (text == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_CHARACTER_NOT_IN_REPERTOIRE),
				 errmsg("the schema for subject \"%s\" is not valid UTF-8", subject)));
	result = pstrdup(text);
	free(text);
	return result;
}

uint32
registry_register(const RegistryAccess *access, const char *subject, const char *schema)
{
	return registry_register_as(access, subject, "AVRO", schema, 0, NULL);
}

/* Post a schema, and keep a number of the answer. */
static uint32
post_schema(const RegistryAccess *access, const char *subject, const char *rest, const char *body, const char *what,
			const char *member)
{
	char	   *key = cache_key(access, psprintf("%s\n%s\n%s", subject, rest, body));
	CacheEntry *entry = cache_find(key);
	char	   *url = subject_url(access, subject, rest);
	uint32		number;

	if (entry)
		return entry->id;
	number = take_number(access, url, what, ask(access, url, body, what, false), member);
	entry = cache_add(key);
	entry->id = number;
	ncached++;
	return number;
}

uint32
registry_register_as(const RegistryAccess *access, const char *subject, const char *type, const char *schema,
					 int nreferences, const RegistryReference *references)
{
	return post_schema(access, subject, "/versions", schema_body(subject, type, schema, nreferences, references),
					   psprintf("a schema for subject \"%s\"", subject), "id");
}

int
registry_version(const RegistryAccess *access, const char *subject, const char *type, const char *schema,
				 int nreferences, const RegistryReference *references)
{
	return (int) post_schema(access, subject, "", schema_body(subject, type, schema, nreferences, references),
							 psprintf("the version of a schema under subject \"%s\"", subject), "version");
}

int
registry_latest_version(const RegistryAccess *access, const char *subject)
{
	char	   *what = psprintf("the latest schema of subject \"%s\"", subject);
	char	   *url = subject_url(access, subject, "/versions/latest");
	json_t	   *answer = ask(access, url, NULL, what, true);

	return answer ? (int) take_number(access, url, what, answer, "version") : 0;
}

uint32
registry_latest(const RegistryAccess *access, const char *subject, const char *type)
{
	char	   *what = psprintf("the latest schema of subject \"%s\"", subject);
	char	   *url = subject_url(access, subject, "/versions/latest");
	json_t	   *answer = ask(access, url, NULL, what, false);
	const char *given = json_string_value(json_object_get(answer, "schemaType"));

	if (strcmp(given ? given : "AVRO", type) != 0)
	{
		char	   *copy = registry_shown_text(given ? given : "AVRO");

		json_decref(answer);
		ereport(ERROR,
				(errcode(ERRCODE_FDW_ERROR),
				 errmsg("%s is of type %s, not %s", what, copy, type)));
	}
	return take_number(access, url, what, answer, "id");
}
