"""The columns of test/debezium/run: of every type that a source has, with values at its ends.

A column is (name, type in the source, values as SQL literals, type with us or None for the same, how the source's value is to
be shown or None for as it is, how ours is). What is shown must be equal, as text of COPY.
"""

# --- PostgreSQL ------------------------------------------------------------------

POSTGRES_TYPES = """
CREATE EXTENSION citext; CREATE EXTENSION hstore; CREATE EXTENSION ltree;
CREATE TYPE mood AS ENUM ('sad', 'ok', 'very happy', 'ü"');
CREATE DOMAIN positive AS integer CHECK (VALUE > 0);
CREATE DOMAIN word AS varchar(20);
"""

POSTGRES = [
    ("c_smallint", "smallint", ["0", "-32768", "32767", "7"]),
    ("c_integer", "integer", ["0", "-2147483648", "2147483647", "42"]),
    ("c_bigint", "bigint", ["0", "-9223372036854775808", "9223372036854775807", "9007199254740993"]),
    ("c_numeric", "numeric", ["0", "1.5", "-0.000000000000000000001", "123456789012345678901234567890.123456789", "1e20", "-1e-20"]),
    ("c_numeric_scale", "numeric", ["0.00", "12.3400", "-1.0"]),
    ("c_numeric_special", "numeric", ["'NaN'", "'Infinity'", "'-Infinity'", "1.5"]),
    ("c_numeric_10_2", "numeric(10,2)", ["0", "-0.01", "99999999.99", "-99999999.99", "1.10"]),
    ("c_numeric_5", "numeric(5,0)", ["0", "99999", "-99999"]),
    ("c_numeric_3_5", "numeric(38,18)", ["0", "0.000000000000000001", "-12345678901234567890.123456789012345678"]),
    ("c_real", "real", ["0", "1.5", "-3.4028235e38", "1e-38", "0.1", "16777217", "'NaN'", "'Infinity'", "'-Infinity'"]),
    ("c_double", "double precision", ["0", "0.1", "-1.7976931348623157e308", "5e-324", "1e22", "123456789.123456789", "'NaN'", "'Infinity'", "'-Infinity'"]),
    ("c_boolean", "boolean", ["true", "false"]),
    ("c_text", "text", ["''", "'plain'", "E'tab\\tnew\\nline \"quoted\" \\\\ \\x01\\x7f'", "'üñí ☃ 😀'", "'null'", "'{\"a\":1}'"]),
    ("c_varchar", "varchar(50)", ["''", "'varied'", "'  spaces  '"]),
    ("c_char", "char(10)", ["''", "'padded'", "'exactly 10'"]),
    ("c_citext", "citext", ["'MiXed'", "''"]),
    ("c_bytea", "bytea", ["''", "'\\x00'", "'\\xdeadbeef'", "'\\x68656c6c6f'", "decode(repeat('00ff7f80', 50), 'hex')"]),
    ("c_date", "date", ["'1970-01-01'", "'2024-02-29'", "'1583-01-01'", "'9999-12-31'", "'infinity'", "'-infinity'", "'5874897-12-31'"]),
    ("c_time", "time", ["'00:00'", "'23:59:59.999999'", "'12:34:56.000001'"]),
    ("c_time_24", "time", ["'24:00'"]),
    ("c_time_3", "time(3)", ["'00:00'", "'23:59:59.999'", "'12:34:56'"]),
    ("c_time_0", "time(0)", ["'00:00'", "'23:59:59'"]),
    # Debezium's snapshots are days off before the Gregorian calendar; streaming is not
    ("s_date", "date", ["'0001-01-01'", "'0044-03-15 BC'", "'4713-01-01 BC'"]),
    ("s_timestamp", "timestamp", ["'0001-01-01'", "'0044-03-15 12:00 BC'", "'1582-10-10'", "'0001-12-31 BC'"]),
    ("s_timestamptz", "timestamptz", ["'0001-01-01 00:00+00'", "'0044-03-15 12:00+00 BC'", "'0001-12-31 00:00+00 BC'"]),
    # .. in UTC
    ("c_timetz", "timetz", ["'00:00+00'", "'12:34:56.789012+05:30'", "'23:59:59-08'", "'01:00+02'"], None, "c_timetz AT TIME ZONE 'UTC'", "c_timetz AT TIME ZONE 'UTC'"),
    ("c_timestamp", "timestamp", ["'1970-01-01'", "'2024-02-29 23:59:59.999999'", "'1969-12-31 23:59:59.999999'", "'1583-01-01'", "'9999-12-31 23:59:59'",
                                  "'12345-06-07 08:09:10'", "'infinity'", "'-infinity'", "'2024-03-31 02:30'"]),
    ("c_timestamp_3", "timestamp(3)", ["'2024-02-29 23:59:59.999'", "'1969-12-31 23:59:59.999'", "'infinity'"]),
    ("c_timestamptz", "timestamptz", ["'1970-01-01 00:00+00'", "'2024-02-29 23:59:59.999999+05:30'", "'1583-01-01 00:00+00'", "'9999-12-31 23:59:59+00'", "'12345-06-07 08:09:10+00'",
                                      "'1900-01-01 00:00+00'", "'infinity'", "'-infinity'"]),
    ("c_interval", "interval", ["'0'", "'1 year 2 mons 3 days 04:05:06.789'", "'-1 mon +2 days'", "'-00:00:01'", "'100 years'", "'36:00:00'"]),
    ("c_uuid", "uuid", ["'00000000-0000-0000-0000-000000000000'", "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'"]),
    ("c_json", "json", ["'{}'", "'null'", "'{\"b\": 1,  \"a\": [1, 2.50, \"x\"], \"a\": null}'", "'\"text\"'", "'[1, {\"deep\": {}}]'", "'12.340'"], None, "c_json::text", "c_json::text"),
    ("c_jsonb", "jsonb", ["'{}'", "'null'", "'{\"b\": 1, \"a\": [1, 2.50, \"x\\u00fc\"]}'", "'\"text\"'", "'[]'", "'12.340'", "'true'"]),
    ("c_integers", "integer[]", ["'{}'", "'{1,2,3}'", "'{NULL,-1}'", "'{2147483647}'"]),
    ("c_bigints", "bigint[]", ["'{}'", "'{9223372036854775807,NULL}'"]),
    ("c_texts", "text[]", ["'{}'", "ARRAY['a', NULL, 'NULL', '', '\"q\" \\ , {}', 'ü']"]),
    ("c_varchars", "varchar(20)[]", ["'{}'", "ARRAY['a', NULL]"]),
    ("c_booleans", "boolean[]", ["'{}'", "'{t,f,NULL}'"]),
    ("c_doubles", "double precision[]", ["'{}'", "'{0.1,-1e300,NULL}'"]),
    ("c_numerics", "numeric(8,2)[]", ["'{}'", "'{1.50,NULL,-999999.99}'"]),
    ("c_dates", "date[]", ["'{}'", "'{2024-02-29,NULL,1969-12-31}'"]),
    ("c_timestamps", "timestamp[]", ["'{}'", "'{\"2024-02-29 23:59:59.999999\",NULL}'"]),
    ("c_instants", "timestamptz[]", ["'{}'", "'{\"2024-02-29 23:59:59.999999+02\",NULL}'"]),
    ("c_uuids", "uuid[]", ["'{}'", "'{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11,NULL}'"]),
    ("c_enum", "mood", ["'sad'", "'very happy'", "'ü\"'"]),
    ("c_enums", "mood[]", ["'{}'", "ARRAY['sad', 'very happy', 'ü\"']::mood[]"]),
    ("c_inet", "inet", ["'127.0.0.1'", "'10.1.2.3/8'", "'::1'", "'2001:db8::/32'"]),
    ("c_cidr", "cidr", ["'10.0.0.0/8'", "'2001:db8::/32'"]),
    ("c_macaddr", "macaddr", ["'08:00:2b:01:02:03'"]),
    ("c_macaddr8", "macaddr8", ["'08:00:2b:01:02:03:04:05'"]),
    ("c_point", "point", ["'(0,0)'", "'(1.5,-2.25)'", "'(0.1,1e100)'"], None, "c_point::text", "c_point::text"),
    ("c_positive", "positive", ["1", "2147483647"]),
    ("c_word", "word", ["''", "'word'"]),
    ("c_int4range", "int4range", ["'empty'", "'[1,10)'", "'(,5)'", "'[3,)'"]),
    ("c_int8range", "int8range", ["'empty'", "'[1,10)'"]),
    ("c_numrange", "numrange", ["'[1.5,2.5]'", "'(,)'"]),
    ("c_tsrange", "tsrange", ["'[2024-02-29 12:00,2024-03-01)'", "'empty'"]),
    ("c_tstzrange", "tstzrange", ["'[2024-02-29 12:00+00,infinity)'"]),
    ("c_daterange", "daterange", ["'[2024-02-29,2024-03-01)'", "'empty'"]),
    ("c_xml", "xml", ["'<a b=\"c\">ü</a>'"], None, "c_xml::text", "c_xml::text"),
    ("c_bit_1", "bit(1)", ["B'0'", "B'1'"]),
    ("c_bit_5", "bit(5)", ["B'00000'", "B'10110'", "B'11111'"]),
    ("c_varbit", "varbit(20)", ["B'00000000000000000001'", "B'10110111101101111011'"]),
    ("c_money", "money", ["0", "-1234.56", "99999999.99"], "numeric(20,2)", "c_money::numeric", None),
    ("c_hstore", "hstore", ["''", "'a=>1, \"b c\"=>NULL'"], "jsonb", "hstore_to_jsonb(c_hstore)"),
    ("c_ltree", "ltree", ["'a.b.c'"]),
    ("c_oid", "oid", ["0", "4294967295"]),
]

# --- MariaDB ---------------------------------------------------------------------

def _micros(name):
    return f"DATE_FORMAT({name}, '%Y-%m-%d %H:%i:%s.%f')"


def _our_micros(name):
    return f"to_char({name}, 'YYYY-MM-DD HH24:MI:SS.US')"


MARIADB = [
    ("c_tinyint", "tinyint", ["0", "-128", "127"], "smallint"),
    ("c_utinyint", "tinyint unsigned", ["0", "255"], "smallint"),
    ("c_smallint", "smallint", ["0", "-32768", "32767"], "smallint"),
    ("c_usmallint", "smallint unsigned", ["0", "65535"], "integer"),
    ("c_mediumint", "mediumint", ["0", "-8388608", "8388607"], "integer"),
    ("c_umediumint", "mediumint unsigned", ["0", "16777215"], "integer"),
    ("c_int", "int", ["0", "-2147483648", "2147483647"], "integer"),
    ("c_uint", "int unsigned", ["0", "4294967295"], "bigint"),
    ("c_bigint", "bigint", ["0", "-9223372036854775808", "9223372036854775807"], "bigint"),
    ("c_ubigint", "bigint unsigned", ["0", "18446744073709551615", "9223372036854775808"], "numeric(20,0)"),
    ("c_decimal", "decimal(10,2)", ["0", "-99999999.99", "0.01"], "numeric(10,2)"),
    ("c_decimal_65", "decimal(65,30)", ["0", "-12345678901234567890123456789012345.123456789012345678901234567890"], "numeric(65,30)"),
    ("c_decimal_0", "decimal(5,0)", ["0", "99999"], "numeric(5,0)"),
    ("c_float", "float", ["0", "1.5", "-0.1", "16777216", "1e-30"], "real", "CAST(c_float AS DOUBLE)", "c_float::float8"),
    ("c_double", "double", ["0", "0.5", "-0.1", "123456.789", "123456789012345"], "double precision"),
    ("c_bool", "boolean", ["0", "1"], "boolean", "IF(c_bool IS NULL, NULL, IF(c_bool, 't', 'f'))"),
    ("c_bit_1", "bit(1)", ["b'0'", "b'1'"], "boolean", "IF(c_bit_1 IS NULL, NULL, IF(c_bit_1, 't', 'f'))"),
    ("c_bit_12", "bit(12)", ["b'0'", "b'101100111000'", "b'1'", "b'111111111111'"], "bit(12)", "LPAD(BIN(c_bit_12), 12, '0')"),
    ("c_bit_64", "bit(64)", ["b'0'", "x'8000000000000001'"], "bit(64)", "LPAD(BIN(c_bit_64), 64, '0')"),
    ("c_char", "char(10)", ["''", "'text'", "'ü☃😀'"], "text"),
    ("c_varchar", "varchar(50)", ["''", "'text'", "'tab\\t\\n\"q\" \\\\ x'"], "text"),
    ("c_latin1", "varchar(50) character set latin1", ["''", "'Grüße'"], "text", "CONVERT(c_latin1 USING utf8mb4)"),
    ("c_text", "text", ["''", "'longer ü☃😀'"], "text"),
    ("c_longtext", "longtext", ["''", "REPEAT('0123456789', 3000)"], "text"),
    ("c_binary", "binary(4)", ["x'00000000'", "x'deadbeef'", "x'ff000000'"], "bytea", "LOWER(HEX(c_binary))", "encode(c_binary, 'hex')"),
    ("c_varbinary", "varbinary(20)", ["''", "x'00ff7f80'"], "bytea", "LOWER(HEX(c_varbinary))", "encode(c_varbinary, 'hex')"),
    ("c_blob", "blob", ["''", "x'deadbeef00'", "REPEAT('z', 5000)"], "bytea", "LOWER(HEX(c_blob))", "encode(c_blob, 'hex')"),
    ("c_date", "date", ["'1970-01-01'", "'1000-01-01'", "'9999-12-31'", "'2024-02-29'"], "date"),
    ("c_datetime", "datetime", ["'1970-01-01 00:00:00'", "'2024-02-29 23:59:59'", "'1000-01-01 00:00:00'", "'9999-12-31 23:59:59'"], "timestamp", _micros("c_datetime"), _our_micros("c_datetime")),
    ("c_datetime_3", "datetime(3)", ["'2024-02-29 23:59:59.999'", "'1969-12-31 23:59:59.001'"], "timestamp", _micros("c_datetime_3"), _our_micros("c_datetime_3")),
    ("c_datetime_6", "datetime(6)", ["'2024-02-29 23:59:59.999999'", "'1969-12-31 23:59:59.000001'"], "timestamp", _micros("c_datetime_6"), _our_micros("c_datetime_6")),
    ("c_timestamp", "timestamp", ["'1970-01-01 00:00:01'", "'2024-02-29 23:59:59'", "'2038-01-19 03:14:07'"], "timestamptz", _micros("c_timestamp"), _our_micros("c_timestamp")),
    ("c_timestamp_6", "timestamp(6)", ["'1970-01-01 00:00:01.000001'", "'2024-02-29 23:59:59.999999'"], "timestamptz", _micros("c_timestamp_6"), _our_micros("c_timestamp_6")),
    ("c_time", "time", ["'00:00:00'", "'23:59:59'", "'838:59:59'", "'-12:34:56'"], "interval", "TIME_FORMAT(c_time, '%H:%i:%s')"),
    ("c_time_6", "time(6)", ["'00:00:00.000001'", "'23:59:59.999999'", "'-838:59:58.999999'"], "interval", "TIME_FORMAT(c_time_6, '%H:%i:%s.%f')"),
    ("c_time_day", "time(3)", ["'00:00:00.001'", "'23:59:59.999'"], "interval", "TIME_FORMAT(c_time_day, '%H:%i:%s.%f')", "to_char(c_time_day, 'HH24:MI:SS.US')"),
    ("c_year", "year", ["1901", "2155", "2024"], "integer", "CAST(c_year AS SIGNED)"),
    ("c_json", "json", ["'{}'", "'{\"b\": 1,  \"a\": [1, 2.50, \"x\"]}'", "'null'"], "text"),
    ("c_enum", "enum('a', 'b c', 'ü')", ["'a'", "'b c'", "'ü'"], "text"),
    ("c_set", "set('a', 'b', 'c d')", ["''", "'a'", "'a,c d'", "'a,b,c d'"], "text"),
    ("c_uuid", "uuid", ["'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'"], "uuid", "CAST(c_uuid AS CHAR)"),
]
