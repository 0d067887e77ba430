/*
 * fuzz_registry.c
 *	  The extension's registry client over answers that the fuzzer gives instead of HTTP.
 *
 * Includes registry.c whole, to empty its cache between inputs.
 */
#include "registry/registry.c"

#include "fuzz_registry.h"
#include "tables.h"

const RegistryAccess fuzz_access = {
	.server_name = "fuzz", .url = "http://registry.invalid", .username = "user", .password = "secret", .timeout_ms = 1000
};

static int	nanswers = 0;
static int	next_answer = 0;
static const char *const *given;
static const Size *given_lens;
static const char *given_schemas;
static long json_blocks = 0;

void
fuzz_registry_answers(int n, const char *const *answers, const Size *lens, const char *schemas)
{
	nanswers = n;
	next_answer = 0;
	given = answers;
	given_lens = lens;
	given_schemas = schemas;
}

void
fuzz_registry_again(void)
{
	next_answer = 0;
}

void
fuzz_registry_forget(void)
{
	if (cache_context)
		MemoryContextDelete(cache_context);
	cache_context = NULL;
	cache = NULL;
	ncached = 0;
}

long
fuzz_json_blocks(void)
{
	return json_blocks;
}

static void *
counted_malloc(size_t size)
{
	json_blocks++;
	return malloc(size);
}

static void
counted_free(void *block)
{
	json_blocks -= block != NULL;
	free(block);
}

void
fuzz_registry_init(void)
{
	json_set_alloc_funcs(counted_malloc, counted_free);
}

/* --- http.h ------------------------------------------------------------------ */

bool
registry_available(void)
{
	return true;
}

static void
append_schema(StringInfo body, const char *type, const char *schema, Size len)
{
	/* registries leave this type out */
	if (strcmp(type, "AVRO") != 0)
		appendStringInfo(body, "{\"schemaType\":\"%s\",\"schema\":\"", type);
	else
		appendStringInfoString(body, "{\"schema\":\"");
	for (Size i = 0; i < len; i++)
	{
		if ((unsigned char) schema[i] < ' ')
			appendStringInfo(body, "\\u%04x", schema[i]);
		else
			appendStringInfo(body, "%s%c", schema[i] == '"' || schema[i] == '\\' ? "\\" : "", schema[i]);
	}
	appendStringInfoString(body, "\"}");
}

/* A given answer that begins with a digit has a status of that many hundreds. */
int
http_request(const RegistryAccess *access, const char *url, const char *json, StringInfo body)
{
	static const char ids[] = "http://registry.invalid/schemas/ids/";
	long		id;

	if (nanswers > 0)
	{
		const char *answer;
		Size		len;
		int			status = 200;

		if (next_answer == nanswers)
			ereport(ERROR,
					(errcode(ERRCODE_CONNECTION_FAILURE),
					 errmsg("schema registry does not answer")));
		answer = given[next_answer];
		len = given_lens[next_answer++];
		if (given_schemas)
		{
			append_schema(body, given_schemas, answer, len);
			return 200;
		}
		if (len > 0 && *answer >= '0' && *answer <= '9')
		{
			status = (*answer - '0') * 100 + (len % 30);
			answer++;
			len--;
		}
		appendBinaryStringInfo(body, answer, (int) len);
		return status;
	}
	if (strncmp(url, ids, strlen(ids)) != 0)
		shim_fail("odd request: %s", url);
	id = strtol(url + strlen(ids), NULL, 10);
	if (id < 1 || id > fuzz_nschemas)
		return 404;
	append_schema(body, "AVRO", fuzz_schemas[id - 1], strlen(fuzz_schemas[id - 1]));
	return 200;
}
