/*
 * parse_postgres.c
 *	  The server's own JSON parser for parse.cc, in a file of C because it is written for C.
 */
#include "postgres_fe.h"

#include "common/jsonapi.h"
#include "mb/pg_wchar.h"

extern int	parse_postgres(char *json, int len);
extern int	is_utf8(const char *bytes, int len);

int
is_utf8(const char *bytes, int len)
{
	return pg_encoding_verifymbstr(PG_UTF8, bytes, len) == len;
}

/* 0, or what is wrong */
int
parse_postgres(char *json, int len)
{
	JsonLexContext *lex = makeJsonLexContextCstringLen(json, len, PG_UTF8, false);
	JsonParseErrorType result = pg_parse_json(lex, &nullSemAction);

	pfree(lex);
	return result;
}
