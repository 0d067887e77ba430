-- === protobuf: extensions, google.protobuf.Any, and what else has a JSON form of its own ===
SET TimeZone = 'America/New_York';    -- the session's settings must not show
SET IntervalStyle = 'sql_standard';
CREATE SERVER proto_kafka FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers '127.0.0.1:9');
CREATE EXTENSION hstore;

-- protoc --descriptor_set_out=/dev/stdout more.proto | base64, of
--   syntax = "proto2";
--   package more;
--   import "google/protobuf/any.proto";
--   import "google/protobuf/duration.proto";
--   import "google/protobuf/field_mask.proto";
--   import "google/protobuf/struct.proto";
--   import "google/protobuf/timestamp.proto";
--   enum Level { LOW = 1; HIGH = 2; }
--   message Base {
--     optional int32 id = 1;
--     optional google.protobuf.Any any = 2;
--     repeated google.protobuf.Any anys = 3;
--     optional google.protobuf.FieldMask mask = 4;
--     optional google.protobuf.Timestamp at = 5;
--     optional google.protobuf.Duration took = 6;
--     optional bytes raw = 7;
--     oneof choice { google.protobuf.Value value = 8; string text = 9; }
--     optional google.protobuf.NullValue nothing = 10;
--     map<string, int32> counts = 11;
--     extensions 100 to 199;
--   }
--   message Note {
--     optional string text = 1;
--     extensions 10;
--     extend Base { optional Note note = 101; }
--   }
--   extend Base {
--     optional int32 rank = 100 [default = 7];
--     repeated Level levels = 102;
--     optional group Extra = 103 { optional string t = 1; }
--     repeated sint32 deltas = 104 [packed = true];
--   }
--   extend Note { optional bool sure = 10; }
-- Google's own files need not be in it
SELECT 'CvoHCgptb3JlLnByb3RvEgRtb3JlGhlnb29nbGUvcHJvdG9idWYvYW55LnByb3RvGh5nb29nbGUvcHJvdG9idWYvZHVyYXRpb24ucHJvdG8aIGdvb2dsZS9wcm90b2J1Zi9maWVsZF9tYXNrLnByb3RvGhxnb29nbGUvcHJvdG9idWYvc3RydWN0LnByb3RvGh9n
b29nbGUvcHJvdG9idWYvdGltZXN0YW1wLnByb3RvIv0DCgRCYXNlEg4KAmlkGAEgASgFUgJpZBImCgNhbnkYAiABKAsyFC5nb29nbGUucHJvdG9idWYuQW55UgNhbnkSKAoEYW55cxgDIAMoCzIULmdvb2dsZS5wcm90b2J1Zi5BbnlSBGFueXMSLgoEbWFzaxgE
IAEoCzIaLmdvb2dsZS5wcm90b2J1Zi5GaWVsZE1hc2tSBG1hc2sSKgoCYXQYBSABKAsyGi5nb29nbGUucHJvdG9idWYuVGltZXN0YW1wUgJhdBItCgR0b29rGAYgASgLMhkuZ29vZ2xlLnByb3RvYnVmLkR1cmF0aW9uUgR0b29rEhAKA3JhdxgHIAEoDFIDcmF3
Ei4KBXZhbHVlGAggASgLMhYuZ29vZ2xlLnByb3RvYnVmLlZhbHVlSABSBXZhbHVlEhQKBHRleHQYCSABKAlIAFIEdGV4dBI0Cgdub3RoaW5nGAogASgOMhouZ29vZ2xlLnByb3RvYnVmLk51bGxWYWx1ZVIHbm90aGluZxIuCgZjb3VudHMYCyADKAsyFi5tb3Jl
LkJhc2UuQ291bnRzRW50cnlSBmNvdW50cxo5CgtDb3VudHNFbnRyeRIQCgNrZXkYASABKAlSA2tleRIUCgV2YWx1ZRgCIAEoBVIFdmFsdWU6AjgBKgUIZBDIAUIICgZjaG9pY2UiTAoETm90ZRISCgR0ZXh0GAEgASgJUgR0ZXh0KgQIChALMioKBG5vdGUSCi5t
b3JlLkJhc2UYZSABKAsyCi5tb3JlLk5vdGVSBG5vdGUiFQoFRXh0cmESDAoBdBgBIAEoCVIBdCoaCgVMZXZlbBIHCgNMT1cQARIICgRISUdIEAI6IQoEcmFuaxIKLm1vcmUuQmFzZRhkIAEoBToBN1IEcmFuazovCgZsZXZlbHMSCi5tb3JlLkJhc2UYZiADKA4y
Cy5tb3JlLkxldmVsUgZsZXZlbHM6LQoFZXh0cmESCi5tb3JlLkJhc2UYZyABKAoyCy5tb3JlLkV4dHJhUgVleHRyYTomCgZkZWx0YXMSCi5tb3JlLkJhc2UYaCADKBFCAhABUgZkZWx0YXM6HgoEc3VyZRIKLm1vcmUuTm90ZRgKIAEoCFIEc3VyZQ==' AS more \gset
CREATE TYPE more_extra AS (t text);
CREATE TYPE more_note AS (text text, "[more.sure]" bool);
CREATE TYPE more_any AS (type_url text, value bytea);
CREATE TYPE more_mask AS (paths text[]);

-- === extensions are fields of the name that protobuf's JSON has for them ===
CREATE FOREIGN TABLE more_extended (id int, "[more.rank]" int, note more_note OPTIONS (field '[more.Note.note]'), levels text[] OPTIONS (field '[more.levels]'),
    extra more_extra OPTIONS (field '[more.extra]'), deltas int[] OPTIONS (field '[more.deltas]'))
  SERVER proto_kafka OPTIONS (connector 'kafka', topic 'x', value_format 'protobuf', value_protobuf_descriptor :'more', value_protobuf_message 'more.Base');
SELECT '0801a006fdffffffffffffffff01aa06050a016e5001b00602b00601bb060a0178bc06c206020203' AS extended \gset
SELECT d.*, encode(e.value, 'hex') = :'extended' AS same FROM upsert_kafka.decode(NULL::more_extended, NULL, decode(:'extended', 'hex')) d, upsert_kafka.encode(d) e \gx
-- left out, and with defaults
SELECT d.* FROM upsert_kafka.decode(NULL::more_extended, NULL, '') d;
ALTER FOREIGN TABLE more_extended OPTIONS (ADD value_protobuf_read_default_values 'true');
SELECT d.* FROM upsert_kafka.decode(NULL::more_extended, NULL, '') d;
-- in JSON they are members, those that are set; a message within an Any has all kinds of them
CREATE FOREIGN TABLE more_json ("any" jsonb) SERVER proto_kafka OPTIONS (connector 'kafka', topic 'x', value_format 'protobuf', value_protobuf_descriptor :'more', value_protobuf_message 'more.Base');
SELECT encode(e.value, 'hex') = '12370a0b742f6d6f72652e426173651228' || :'extended' AS same, d.*
  FROM upsert_kafka.encode(ROW('{"@type": "t/more.Base", "id": 1, "[more.rank]": -3, "[more.Note.note]": {"text": "n", "[more.sure]": true}, "[more.levels]": ["HIGH", "LOW"], "[more.extra]": {"t": "x"}, "[more.deltas]": [1, -2]}')::more_json) e,
    upsert_kafka.decode(NULL::more_json, NULL, e.value) d;
ALTER FOREIGN TABLE more_json OPTIONS (ADD value_protobuf_read_default_values 'true');
SELECT d.* FROM upsert_kafka.encode(ROW('{"@type": "t/more.Base", "[more.rank]": -3}')::more_json) e, upsert_kafka.decode(NULL::more_json, NULL, e.value) d;
ALTER FOREIGN TABLE more_json OPTIONS (DROP value_protobuf_read_default_values);
SELECT upsert_kafka.encode(ROW('{"@type": "t/more.Base", "[more.nothing]": -3}')::more_json);

-- === google.protobuf.Any: the message in it with its type's name, where the descriptor has the type ===
CREATE FOREIGN TABLE more_all ("any" jsonb, anys jsonb, mask text, at jsonb, took text, raw jsonb, value jsonb, nothing jsonb, counts hstore)
  SERVER proto_kafka OPTIONS (connector 'kafka', topic 'x', value_format 'protobuf', value_protobuf_descriptor :'more', value_protobuf_message 'more.Base');
-- what Google's library writes of:
--   any: Note(text="hi")  anys: [Duration(1 s 5 ns), Note(), an empty Any, Any of Note(text="in"), Note(text="e", [more.sure]=false)]  mask: ["foo_bar", "a.b_c"]
--   at: -1 s 123456789 ns  took: -5.000000001 s  raw: fb ff fe  value: null  nothing: NULL_VALUE  counts: {a: 1}
SELECT '12250a1d747970652e676f6f676c65617069732e636f6d2f6d6f72652e4e6f746512040a0268691a340a2c747970652e676f6f676c65617069732e636f6d2f676f6f676c652e70726f746f6275662e4475726174696f6e1204080110051a1f0a1d747970652e676f6f676c65617069732e636f6d2f6d6f72652e4e6f74651a001a500a27747970652e676f6f676c65617069732e636f6d2f676f6f676c652e70726f746f6275662e416e7912250a1d747970652e676f6f676c65617069732e636f6d2f6d6f72652e4e6f746512040a02696e1a260a1d747970652e676f6f676c65617069732e636f6d2f6d6f72652e4e6f746512050a0165500022100a07666f6f5f6261720a05612e625f632a1008ffffffffffffffffff0110959aef3a321608fbffffffffffffffff0110ffffffffffffffffff013a03fbfffe4202080050005a050a01611001' AS whole \gset
SELECT d.*, encode(e.value, 'hex') = :'whole' AS same FROM upsert_kafka.decode(NULL::more_all, NULL, decode(:'whole', 'hex')) d, upsert_kafka.encode(d) e \gx
-- as text; as a composite type it is as it comes
CREATE FOREIGN TABLE more_raw (id int, "any" more_any, anys more_any[], mask more_mask) SERVER proto_kafka OPTIONS (connector 'kafka', topic 'x', value_format 'protobuf', value_protobuf_descriptor :'more', value_protobuf_message 'more.Base');
CREATE FOREIGN TABLE more_text ("any" text, anys text[], mask jsonb) SERVER proto_kafka OPTIONS (connector 'kafka', topic 'x', value_format 'protobuf', value_protobuf_descriptor :'more', value_protobuf_message 'more.Base');
SELECT d."any", d.mask FROM upsert_kafka.decode(NULL::more_raw, NULL, decode(:'whole', 'hex')) d;
SELECT d.* FROM upsert_kafka.decode(NULL::more_text, NULL, decode(:'whole', 'hex')) d \gx
-- a type that the descriptor does not have
SELECT d.* FROM upsert_kafka.encode(ROW(1, ROW('example.com/other.Kind', '\x0801'), NULL, NULL)::more_raw) e, upsert_kafka.decode(NULL::more_text, NULL, e.value) d;
SELECT d.* FROM upsert_kafka.encode(ROW(1, ROW('', '\x0801'), NULL, NULL)::more_raw) e, upsert_kafka.decode(NULL::more_text, NULL, e.value) d;
SELECT upsert_kafka.encode(ROW('{"@type": "example.com/other.Kind", "x": 1}', NULL, NULL)::more_text);
-- an entry of a map is no type; bytes that are no message of it
SELECT d.* FROM upsert_kafka.encode(ROW(1, ROW('t/more.Base.CountsEntry', ''), NULL, NULL)::more_raw) e, upsert_kafka.decode(NULL::more_text, NULL, e.value) d;
SELECT d.* FROM upsert_kafka.encode(ROW(1, ROW('t/more.Note', '\x0a05'), NULL, NULL)::more_raw) e, upsert_kafka.decode(NULL::more_text, NULL, e.value) d;
-- with ignore_parse_errors the column is NULL
ALTER FOREIGN TABLE more_text OPTIONS (ADD value_protobuf_ignore_parse_errors 'true');
SELECT d."any" IS NULL AS nothing, d.mask FROM upsert_kafka.encode(ROW(1, ROW('t/other.Kind', ''), NULL, ROW('{a_b}'))::more_raw) e, upsert_kafka.decode(NULL::more_text, NULL, e.value) d;
-- JSON that is no Any
SELECT upsert_kafka.encode(ROW('{"text": "x"}', NULL, NULL)::more_text);
SELECT upsert_kafka.encode(ROW('{"@type": 1}', NULL, NULL)::more_text);
SELECT upsert_kafka.encode(ROW('[1]', NULL, NULL)::more_text);
SELECT upsert_kafka.encode(ROW('{"@type": "t/more.Note", "txet": "x"}', NULL, NULL)::more_text);
SELECT upsert_kafka.encode(ROW('{"@type": "t/google.protobuf.Duration", "seconds": 1}', NULL, NULL)::more_text);
-- a field that is called value is one
SELECT d.* FROM upsert_kafka.encode(ROW('{"@type": "t/more.Base", "value": {"a": 1}, "text": null}', NULL, NULL)::more_text) e, upsert_kafka.decode(NULL::more_text, NULL, e.value) d;
-- Any in Any, to the depth of messages
CREATE FUNCTION more_deep(n int) RETURNS text LANGUAGE plpgsql AS $$
  DECLARE result text := '{}';
  BEGIN FOR i IN 1 .. n LOOP result := '{"@type": "t/google.protobuf.Any", "value": ' || result || '}'; END LOOP; RETURN result; END $$;
SELECT length(d."any") FROM upsert_kafka.encode(ROW(more_deep(98), NULL, NULL)::more_text) e, upsert_kafka.decode(NULL::more_text, NULL, e.value) d;
ALTER FOREIGN TABLE more_text OPTIONS (DROP value_protobuf_ignore_parse_errors);
SELECT length(d."any") FROM upsert_kafka.encode(ROW(more_deep(99), NULL, NULL)::more_text) e, upsert_kafka.decode(NULL::more_text, NULL, e.value) d;

-- === JSON as protobuf's mapping has it ===
-- base64 of either alphabet, padded or not; times to the nanosecond; durations beyond interval's own text
SELECT encode(e.value, 'hex'), d.raw, d.at, d.took FROM (VALUES ('+//+', '2020-01-02T03:04:05.1234567Z', '315576000000.999999999s'), ('-__-', '2020-01-02T03:04:05.000000001+01:00', '-0.000000001s'),
    ('_w', '0001-01-01T00:00:00Z', '0s'), ('/w==', '1969-12-31T23:59:59.999999999Z', '1 hour 2 seconds'), ('', '2020-01-02', '-3.5 s')) x (raw, at, took),
  upsert_kafka.encode(ROW(NULL, NULL, NULL, to_jsonb(at), took, to_jsonb(raw), NULL, NULL, NULL)::more_all) e, upsert_kafka.decode(NULL::more_all, NULL, e.value) d;
SELECT upsert_kafka.encode(ROW(NULL, NULL, NULL, NULL, NULL, '"a*"', NULL, NULL, NULL)::more_all);
-- two members of a oneof, though one of them is null: of google.protobuf.Value it is a value
SELECT upsert_kafka.encode(ROW('{"@type": "t/more.Base", "value": null, "text": "x"}', NULL, NULL)::more_text);
-- a map whose key comes twice, as where messages were put behind each other: the last one counts
SELECT d.counts FROM upsert_kafka.decode(NULL::more_all, NULL, '\x5a050a016110015a050a016210025a050a01611003') d;

RESET IntervalStyle;
RESET TimeZone;
DROP FUNCTION more_deep;
\set VERBOSITY terse
DROP SERVER proto_kafka CASCADE;
DROP TYPE more_extra, more_note, more_any, more_mask;
DROP EXTENSION hstore;
