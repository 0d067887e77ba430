-- === format protobuf: one message is one protobuf message; its type is in a descriptor ===
SET TimeZone = 'America/New_York';    -- the session's settings must not show
SET IntervalStyle = 'sql_standard';
\set broker `echo "${BROKER:-127.0.0.1:9092}"`
CREATE SERVER proto_kafka FOREIGN DATA WRAPPER upsert_kafka OPTIONS (bootstrap_servers :'broker');

-- protoc --include_imports --descriptor_set_out=/dev/stdout shop.proto | base64, of
--   syntax = "proto3";
--   package shop;
--   import "google/protobuf/timestamp.proto";
--   import "google/protobuf/duration.proto";
--   import "google/protobuf/wrappers.proto";
--   import "google/protobuf/struct.proto";
--   option java_package = "com.acme";
--   enum Status { NEW = 0; PAID = 1; SENT = 7; }
--   message Order {
--     message Item { string sku = 1; int32 n = 2; optional double weight = 3; }
--     int64 id = 1; string name = 2; optional string note = 3; Status status = 4; optional int32 count = 5;
--     repeated int32 codes = 6; repeated Item items = 7; map<string, int32> tags = 8; Item main = 9; Order parent = 10;
--     oneof pay { string card = 11; int64 cash = 12; Item goods = 13; }
--     google.protobuf.Timestamp at = 14; google.protobuf.Duration took = 15; google.protobuf.StringValue w = 16; google.protobuf.Struct doc = 17;
--     bytes raw = 18; repeated string texts = 19;
--   }
--   message Key { int64 id = 1; }
--   message Numbers {
--     int32 i32 = 1; int64 i64 = 2; uint32 u32 = 3; uint64 u64 = 4; sint32 s32 = 5; sint64 s64 = 6; fixed32 f32 = 7; fixed64 f64 = 8;
--     sfixed32 sf32 = 9; sfixed64 sf64 = 10; float fl = 11; double db = 12; bool b = 13;
--   }
SELECT 'Cv8BCh9nb29nbGUvcHJvdG9idWYvdGltZXN0YW1wLnByb3RvEg9nb29nbGUucHJvdG9idWYiOwoJVGltZXN0YW1wEhgKB3NlY29uZHMYASABKANSB3NlY29uZHMSFAoFbmFub3MYAiABKAVSBW5hbm9zQoUBChNjb20uZ29vZ2xlLnByb3RvYnVmQg5UaW
1lc3RhbXBQcm90b1ABWjJnb29nbGUuZ29sYW5nLm9yZy9wcm90b2J1Zi90eXBlcy9rbm93bi90aW1lc3RhbXBwYvgBAaICA0dQQqoCHkdvb2dsZS5Qcm90b2J1Zi5XZWxsS25vd25UeXBlc2IGcHJvdG8zCvsBCh5nb29nbGUvcHJvdG9idWYvZHVyYXRp
b24ucHJvdG8SD2dvb2dsZS5wcm90b2J1ZiI6CghEdXJhdGlvbhIYCgdzZWNvbmRzGAEgASgDUgdzZWNvbmRzEhQKBW5hbm9zGAIgASgFUgVuYW5vc0KDAQoTY29tLmdvb2dsZS5wcm90b2J1ZkINRHVyYXRpb25Qcm90b1ABWjFnb29nbGUuZ29sYW5nLm
9yZy9wcm90b2J1Zi90eXBlcy9rbm93bi9kdXJhdGlvbnBi+AEBogIDR1BCqgIeR29vZ2xlLlByb3RvYnVmLldlbGxLbm93blR5cGVzYgZwcm90bzMKhgQKHmdvb2dsZS9wcm90b2J1Zi93cmFwcGVycy5wcm90bxIPZ29vZ2xlLnByb3RvYnVmIiMKC0Rv
dWJsZVZhbHVlEhQKBXZhbHVlGAEgASgBUgV2YWx1ZSIiCgpGbG9hdFZhbHVlEhQKBXZhbHVlGAEgASgCUgV2YWx1ZSIiCgpJbnQ2NFZhbHVlEhQKBXZhbHVlGAEgASgDUgV2YWx1ZSIjCgtVSW50NjRWYWx1ZRIUCgV2YWx1ZRgBIAEoBFIFdmFsdWUiIg
oKSW50MzJWYWx1ZRIUCgV2YWx1ZRgBIAEoBVIFdmFsdWUiIwoLVUludDMyVmFsdWUSFAoFdmFsdWUYASABKA1SBXZhbHVlIiEKCUJvb2xWYWx1ZRIUCgV2YWx1ZRgBIAEoCFIFdmFsdWUiIwoLU3RyaW5nVmFsdWUSFAoFdmFsdWUYASABKAlSBXZhbHVl
IiIKCkJ5dGVzVmFsdWUSFAoFdmFsdWUYASABKAxSBXZhbHVlQoMBChNjb20uZ29vZ2xlLnByb3RvYnVmQg1XcmFwcGVyc1Byb3RvUAFaMWdvb2dsZS5nb2xhbmcub3JnL3Byb3RvYnVmL3R5cGVzL2tub3duL3dyYXBwZXJzcGL4AQGiAgNHUEKqAh5Hb2
9nbGUuUHJvdG9idWYuV2VsbEtub3duVHlwZXNiBnByb3RvMwriBQocZ29vZ2xlL3Byb3RvYnVmL3N0cnVjdC5wcm90bxIPZ29vZ2xlLnByb3RvYnVmIpgBCgZTdHJ1Y3QSOwoGZmllbGRzGAEgAygLMiMuZ29vZ2xlLnByb3RvYnVmLlN0cnVjdC5GaWVs
ZHNFbnRyeVIGZmllbGRzGlEKC0ZpZWxkc0VudHJ5EhAKA2tleRgBIAEoCVIDa2V5EiwKBXZhbHVlGAIgASgLMhYuZ29vZ2xlLnByb3RvYnVmLlZhbHVlUgV2YWx1ZToCOAEisgIKBVZhbHVlEjsKCm51bGxfdmFsdWUYASABKA4yGi5nb29nbGUucHJvdG
9idWYuTnVsbFZhbHVlSABSCW51bGxWYWx1ZRIjCgxudW1iZXJfdmFsdWUYAiABKAFIAFILbnVtYmVyVmFsdWUSIwoMc3RyaW5nX3ZhbHVlGAMgASgJSABSC3N0cmluZ1ZhbHVlEh8KCmJvb2xfdmFsdWUYBCABKAhIAFIJYm9vbFZhbHVlEjwKDHN0cnVj
dF92YWx1ZRgFIAEoCzIXLmdvb2dsZS5wcm90b2J1Zi5TdHJ1Y3RIAFILc3RydWN0VmFsdWUSOwoKbGlzdF92YWx1ZRgGIAEoCzIaLmdvb2dsZS5wcm90b2J1Zi5MaXN0VmFsdWVIAFIJbGlzdFZhbHVlQgYKBGtpbmQiOwoJTGlzdFZhbHVlEi4KBnZhbH
VlcxgBIAMoCzIWLmdvb2dsZS5wcm90b2J1Zi5WYWx1ZVIGdmFsdWVzKhsKCU51bGxWYWx1ZRIOCgpOVUxMX1ZBTFVFEABCfwoTY29tLmdvb2dsZS5wcm90b2J1ZkILU3RydWN0UHJvdG9QAVovZ29vZ2xlLmdvbGFuZy5vcmcvcHJvdG9idWYvdHlwZXMv
a25vd24vc3RydWN0cGL4AQGiAgNHUEKqAh5Hb29nbGUuUHJvdG9idWYuV2VsbEtub3duVHlwZXNiBnByb3RvMwrkCQoKc2hvcC5wcm90bxIEc2hvcBofZ29vZ2xlL3Byb3RvYnVmL3RpbWVzdGFtcC5wcm90bxoeZ29vZ2xlL3Byb3RvYnVmL2R1cmF0aW
9uLnByb3RvGh5nb29nbGUvcHJvdG9idWYvd3JhcHBlcnMucHJvdG8aHGdvb2dsZS9wcm90b2J1Zi9zdHJ1Y3QucHJvdG8ijAYKBU9yZGVyEg4KAmlkGAEgASgDUgJpZBISCgRuYW1lGAIgASgJUgRuYW1lEhcKBG5vdGUYAyABKAlIAVIEbm90ZYgBARIk
CgZzdGF0dXMYBCABKA4yDC5zaG9wLlN0YXR1c1IGc3RhdHVzEhkKBWNvdW50GAUgASgFSAJSBWNvdW50iAEBEhQKBWNvZGVzGAYgAygFUgVjb2RlcxImCgVpdGVtcxgHIAMoCzIQLnNob3AuT3JkZXIuSXRlbVIFaXRlbXMSKQoEdGFncxgIIAMoCzIVLn
Nob3AuT3JkZXIuVGFnc0VudHJ5UgR0YWdzEiQKBG1haW4YCSABKAsyEC5zaG9wLk9yZGVyLkl0ZW1SBG1haW4SIwoGcGFyZW50GAogASgLMgsuc2hvcC5PcmRlclIGcGFyZW50EhQKBGNhcmQYCyABKAlIAFIEY2FyZBIUCgRjYXNoGAwgASgDSABSBGNh
c2gSKAoFZ29vZHMYDSABKAsyEC5zaG9wLk9yZGVyLkl0ZW1IAFIFZ29vZHMSKgoCYXQYDiABKAsyGi5nb29nbGUucHJvdG9idWYuVGltZXN0YW1wUgJhdBItCgR0b29rGA8gASgLMhkuZ29vZ2xlLnByb3RvYnVmLkR1cmF0aW9uUgR0b29rEioKAXcYEC
ABKAsyHC5nb29nbGUucHJvdG9idWYuU3RyaW5nVmFsdWVSAXcSKQoDZG9jGBEgASgLMhcuZ29vZ2xlLnByb3RvYnVmLlN0cnVjdFIDZG9jEhAKA3JhdxgSIAEoDFIDcmF3EhQKBXRleHRzGBMgAygJUgV0ZXh0cxpOCgRJdGVtEhAKA3NrdRgBIAEoCVID
c2t1EgwKAW4YAiABKAVSAW4SGwoGd2VpZ2h0GAMgASgBSABSBndlaWdodIgBAUIJCgdfd2VpZ2h0GjcKCVRhZ3NFbnRyeRIQCgNrZXkYASABKAlSA2tleRIUCgV2YWx1ZRgCIAEoBVIFdmFsdWU6AjgBQgUKA3BheUIHCgVfbm90ZUIICgZfY291bnQiFQ
oDS2V5Eg4KAmlkGAEgASgDUgJpZCLvAQoHTnVtYmVycxIQCgNpMzIYASABKAVSA2kzMhIQCgNpNjQYAiABKANSA2k2NBIQCgN1MzIYAyABKA1SA3UzMhIQCgN1NjQYBCABKARSA3U2NBIQCgNzMzIYBSABKBFSA3MzMhIQCgNzNjQYBiABKBJSA3M2NBIQ
CgNmMzIYByABKAdSA2YzMhIQCgNmNjQYCCABKAZSA2Y2NBISCgRzZjMyGAkgASgPUgRzZjMyEhIKBHNmNjQYCiABKBBSBHNmNjQSDgoCZmwYCyABKAJSAmZsEg4KAmRiGAwgASgBUgJkYhIMCgFiGA0gASgIUgFiKiUKBlN0YXR1cxIHCgNORVcQABIICg
RQQUlEEAESCAoEU0VOVBAHQgoKCGNvbS5hY21lYgZwcm90bzM=' AS shop \gset
-- the same of
--   syntax = "proto2";
--   package legacy;
--   enum Size { SMALL = 1; LARGE = 5; }
--   message Part {
--     required int32 id = 1;
--     optional string name = 2 [default = "none"];
--     optional Size size = 3 [default = LARGE];
--     optional group Extra = 4 { optional string text = 1; }
--     repeated int32 plain = 5;
--     repeated int32 packed = 6 [packed = true];
--     repeated Size sizes = 7;
--   }
SELECT 'Cq0CCgxsZWdhY3kucHJvdG8SBmxlZ2FjeSL2AQoEUGFydBIOCgJpZBgBIAIoBVICaWQSGAoEbmFtZRgCIAEoCToEbm9uZVIEbmFtZRInCgRzaXplGAMgASgOMgwubGVnYWN5LlNpemU6BUxBUkdFUgRzaXplEigKBWV4dHJhGAQgASgKMhIubGVnYWN5Ll
BhcnQuRXh0cmFSBWV4dHJhEhQKBXBsYWluGAUgAygFUgVwbGFpbhIaCgZwYWNrZWQYBiADKAVCAhABUgZwYWNrZWQSIgoFc2l6ZXMYByADKA4yDC5sZWdhY3kuU2l6ZVIFc2l6ZXMaGwoFRXh0cmESEgoEdGV4dBgBIAEoCVIEdGV4dCocCgRTaXplEgkK
BVNNQUxMEAESCQoFTEFSR0UQBQ==' AS legacy \gset
CREATE TYPE proto_item AS (sku text, n int, weight float8);
CREATE TYPE proto_instant AS (seconds bigint, nanos int);

-- === a message's fields are columns ===
CREATE FOREIGN TABLE proto_orders (id bigint, name text, note text, status text, count int, codes int[], items proto_item[], tags jsonb, main proto_item, parent jsonb,
    card text, cash bigint, goods proto_item, at timestamptz, took interval, w text, doc jsonb, raw bytea, texts text[])
  SERVER proto_kafka OPTIONS (connector 'kafka', topic 'x', value_format 'protobuf', value_protobuf_descriptor :'shop', value_protobuf_message 'shop.Order');
-- id: 7 name: "Zoë" note: "" status: SENT codes: [1, -2, 300] items: [{sku: "a" n: 2}, {sku: "b" weight: 1.5}] tags: {x: 1, "": 0} main: {n: 5} cash: 250
-- at: 2020-01-02T03:04:05.123456Z took: -1.5s w: "w" doc: {"k": [1.5, null, true]} raw: "\000\377" texts: ["", "t"]
SELECT '080712045a6fc3ab1a002007320d01feffffffffffffffff01ac023a050a016110023a0c0a016219000000000000f83f42040a00100042050a017810014a02100560fa01720b08a5bbb5f005108094ef3a7a1608ffffffffffffffffff011080b6ca91feffffffff018201030a01778a011c0a1a0a016b121532130a0911000000000000f83f0a0208000a02200192010200ff9a01009a010174' AS full \gset
SELECT d.* FROM upsert_kafka.decode(NULL::proto_orders, NULL, decode(:'full', 'hex')) d \gx
-- nothing at all: fields of proto3 have their default; optional ones, messages, members of a oneof, and what is repeated, are NULL, as in Flink
SELECT d.* FROM upsert_kafka.decode(NULL::proto_orders, NULL, '') d \gx
-- read_default_values: the first have theirs, too, but for what a oneof does not have, and messages in one value; repeated fields are empty
ALTER FOREIGN TABLE proto_orders OPTIONS (ADD value_protobuf_read_default_values 'true');
SELECT d.* FROM upsert_kafka.decode(NULL::proto_orders, NULL, '') d \gx
SELECT d.parent FROM upsert_kafka.decode(NULL::proto_orders, NULL, '\x5200') d;
ALTER FOREIGN TABLE proto_orders OPTIONS (DROP value_protobuf_read_default_values);
-- a message in itself
SELECT d.id, d.parent FROM upsert_kafka.decode(NULL::proto_orders, NULL, '\x0808520708075203120170') d;

-- the last value of a field wins, also over another member of its oneof; a message's parts are merged; what is repeated goes on
SELECT d.id, d.name, d.card, d.cash, d.goods, d.main, d.codes FROM upsert_kafka.decode(NULL::proto_orders, NULL,
  decode('0801' || '120161' || '5a0163' || '4a0410013001' || '320101' || '0802' || '60fa01' || '120162' || '4a030a0173' || '3002' || '6a00' || '32020304', 'hex')) d;
-- packed or not is the writer's choice; no values are none
SELECT d.codes FROM unnest(ARRAY['\x300130feffffffffffffffff01', '\x320b01feffffffffffffffff01', '\x3200', '\x320030053200']::bytea[]) WITH ORDINALITY x (b, n),
  upsert_kafka.decode(NULL::proto_orders, NULL, b) d ORDER BY n;
-- unknown fields of each wire type are passed over, groups in groups; so is a known one that is not of its type
SELECT d.id FROM upsert_kafka.decode(NULL::proto_orders, NULL, decode('f80601' || 'f9060102030405060708' || 'fa0603010203' || 'fd0601020304' || 'fb06f306f8060af406fc06' || '0a0178' || '0805', 'hex')) d;
-- an enum's number without a name; a number of more than 32 bits is cut, as by Google's libraries
SELECT d.status, d.count FROM unnest(ARRAY['\x2001', '\x2063', '\x20ffffffffffffffffff01', '\x28ffffffffffffffff7f']::bytea[]) WITH ORDINALITY x (b, n), upsert_kafka.decode(NULL::proto_orders, NULL, b) d ORDER BY n;

-- === every scalar type, at its ends ===
CREATE FOREIGN TABLE proto_numbers (i32 int, i64 bigint, u32 bigint, u64 numeric, s32 int, s64 bigint, f32 bigint, f64 numeric(20), sf32 int, sf64 bigint, fl real, db float8, b bool)
  SERVER proto_kafka OPTIONS (connector 'kafka', topic 'x', value_format 'protobuf', value_protobuf_descriptor :'shop', value_protobuf_message 'shop.Numbers');
SELECT '0880808080f8ffffffff01108080808080808080800118ffffffff0f20ffffffffffffffffff0128ffffffff0f30feffffffffffffffff013dffffffff41ffffffffffffffff4dffffffff51ffffffffffffffff5d0000c03f6100000000000000806801' AS ends \gset
SELECT d.* FROM upsert_kafka.decode(NULL::proto_numbers, NULL, decode(:'ends', 'hex')) d \gx
SELECT encode(e.value, 'hex') = :'ends' AS same FROM upsert_kafka.decode(NULL::proto_numbers, NULL, decode(:'ends', 'hex')) d, upsert_kafka.encode(d) e;
-- all of them zero are nothing; -0.0 is not zero
SELECT encode(value, 'hex') FROM upsert_kafka.encode(ROW(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '-0', false)::proto_numbers);
-- out of range, of the field or of the column
SELECT upsert_kafka.encode(jsonb_populate_record(NULL::proto_numbers, '{"u32": "-1"}'));
SELECT upsert_kafka.encode(jsonb_populate_record(NULL::proto_numbers, '{"u32": "4294967296"}'));
SELECT upsert_kafka.encode(jsonb_populate_record(NULL::proto_numbers, '{"u64": "18446744073709551616"}'));
SELECT upsert_kafka.encode(jsonb_populate_record(NULL::proto_numbers, '{"u64": "1.5"}'));
SELECT upsert_kafka.encode(jsonb_populate_record(NULL::proto_numbers, '{"u64": "NaN"}'));
CREATE FOREIGN TABLE proto_narrow (i64 smallint, u64 bigint, f64 text, i32 bool, db real)
  SERVER proto_kafka OPTIONS (connector 'kafka', topic 'x', value_format 'protobuf', value_protobuf_descriptor :'shop', value_protobuf_message 'shop.Numbers');
SELECT d.i64, d.u64, d.f64, d.i32 FROM upsert_kafka.decode(NULL::proto_narrow, NULL, '\x087b10c03e20ffffffffffffffff7f41ffffffffffffffff') d;
SELECT d.i64 FROM upsert_kafka.decode(NULL::proto_narrow, NULL, '\x10808002') d;
SELECT d.u64 FROM upsert_kafka.decode(NULL::proto_narrow, NULL, '\x20ffffffffffffffffff01') d;
SELECT d.db FROM upsert_kafka.decode(NULL::proto_narrow, NULL, '\x61ffffffffffffef7f') d;

-- C03 a bare number is no time
CREATE FOREIGN TABLE proto_time (sf64 timestamptz) SERVER proto_kafka OPTIONS (connector 'kafka', topic 'x', value_format 'protobuf', value_protobuf_descriptor :'shop', value_protobuf_message 'shop.Numbers');
SELECT d.sf64 FROM upsert_kafka.decode(NULL::proto_time, NULL, '\x510100000000000000') d;

-- unless time_unit says what it counts, both ways; dates are days
CREATE FOREIGN TABLE proto_counted (i32 date, i64 timestamptz, u64 timestamp, sf64 time, s64 timestamptz(0)) SERVER proto_kafka OPTIONS (connector 'kafka', topic 'x', value_format 'protobuf', value_protobuf_descriptor :'shop',
  value_protobuf_message 'shop.Numbers', value_protobuf_time_unit 'ms', time_zone 'Asia/Tokyo');
SELECT d.*, encode(e.value, 'hex') FROM upsert_kafka.decode(NULL::proto_counted, NULL, '\x0801' || '\x10d00f'::bytea || '\x20d00f' || '\x30d10f' || '\x51e803000000000000') d, upsert_kafka.encode(d) e;
SELECT upsert_kafka.encode(jsonb_populate_record(NULL::proto_counted, '{"u64": "1969-01-01"}'));

-- === other types for the same fields ===
CREATE EXTENSION hstore;
CREATE DOMAIN proto_paid AS text CHECK (VALUE <> 'NEW');
CREATE FOREIGN TABLE proto_others (id numeric, name varchar(3), status int, items jsonb, tags hstore, main text, at proto_instant, took text, w jsonb, doc text, raw text, parent json, texts jsonb)
  SERVER proto_kafka OPTIONS (connector 'kafka', topic 'x', value_format 'protobuf', value_protobuf_descriptor :'shop', value_protobuf_message 'shop.Order');
SELECT d.* FROM upsert_kafka.decode(NULL::proto_others, NULL, decode(:'full', 'hex')) d \gx
SELECT d.name FROM upsert_kafka.decode(NULL::proto_others, NULL, '\x120461626364') d;
CREATE FOREIGN TABLE proto_more (status proto_paid, at timestamp, raw uuid, tags text, codes text, took text, main jsonb)
  SERVER proto_kafka OPTIONS (connector 'kafka', topic 'x', value_format 'protobuf', time_zone 'Asia/Tokyo', value_protobuf_descriptor :'shop', value_protobuf_message 'shop.Order');
SELECT d.* FROM upsert_kafka.decode(NULL::proto_more, NULL, decode('2001' || '72020801' || '920110000102030405060708090a0b0c0d0e0f' || '4205' || '0a01781001' || '320101' || '7a0310e807', 'hex')) d \gx
-- a domain's say, also about what is left out
SELECT d.status FROM upsert_kafka.decode(NULL::proto_more, NULL, '') d;
SELECT d.raw FROM upsert_kafka.decode(NULL::proto_more, NULL, '\x200192010100') d;
-- a domain with a length, in a wrapper
CREATE DOMAIN proto_short AS varchar(3);
CREATE FOREIGN TABLE proto_wrapped (w proto_short) SERVER proto_kafka OPTIONS (connector 'kafka', topic 'x', value_format 'protobuf', value_protobuf_descriptor :'shop', value_protobuf_message 'shop.Order');
SELECT e.value, d.w FROM upsert_kafka.encode(ROW('abc')::proto_wrapped) e, upsert_kafka.decode(NULL::proto_wrapped, NULL, e.value) d;
-- === nul_handling, empty_value ===
ALTER FOREIGN TABLE proto_orders OPTIONS (ADD value_protobuf_nul_handling 'strip');
SELECT d.name, d.texts, d.parent FROM upsert_kafka.decode(NULL::proto_orders, NULL, '\x12036100629a010200635204120200645203980100') d;
ALTER FOREIGN TABLE proto_orders OPTIONS (DROP value_protobuf_nul_handling);
-- a message of no bytes has nothing but defaults, unless it means something else
ALTER FOREIGN TABLE proto_orders OPTIONS (ADD value_protobuf_empty_value 'error');
SELECT d.id FROM upsert_kafka.decode(NULL::proto_orders, NULL, '') d;
ALTER FOREIGN TABLE proto_orders OPTIONS (SET value_protobuf_empty_value 'ignore');
SELECT d.id FROM upsert_kafka.decode(NULL::proto_orders, NULL, '') d;
ALTER FOREIGN TABLE proto_orders OPTIONS (DROP value_protobuf_empty_value);

-- === writing: what Google's libraries write ===
SELECT encode(e.value, 'hex') = :'full' AS same FROM upsert_kafka.decode(NULL::proto_orders, NULL, decode(:'full', 'hex')) d, upsert_kafka.encode(d) e;
-- NULL is left out; in arrays and maps, where it cannot, it is the type's default, or for text write_null_string_literal, as in Flink
CREATE FOREIGN TABLE proto_part (id bigint, texts text[], codes int[], items proto_item[], tags jsonb)
  SERVER proto_kafka OPTIONS (connector 'kafka', topic 'x', value_format 'protobuf', value_protobuf_descriptor :'shop', value_protobuf_message 'shop.Order');
SELECT d.* FROM upsert_kafka.encode(ROW(NULL, ARRAY['a', NULL], ARRAY[1, NULL], ARRAY[NULL]::proto_item[], '{"a": null}')::proto_part) e, upsert_kafka.decode(NULL::proto_part, NULL, e.value) d;
ALTER FOREIGN TABLE proto_part OPTIONS (ADD "value.protobuf.write-null-string-literal" 'n/a');
SELECT d.texts FROM upsert_kafka.encode(ROW(NULL, ARRAY['a', NULL], NULL, NULL, NULL)::proto_part) e, upsert_kafka.decode(NULL::proto_part, NULL, e.value) d;
-- empty arrays and maps are nothing
SELECT length(value) FROM upsert_kafka.encode(ROW(NULL, '{}', '{}', '{}', '{}')::proto_part);
SELECT upsert_kafka.encode(ROW(1, NULL, '{{1,2},{3,4}}', NULL, NULL)::proto_part);
-- two members of a oneof
SELECT upsert_kafka.encode(jsonb_populate_record(NULL::proto_orders, '{"card": "c", "cash": 1}'));
SELECT encode(value, 'hex') FROM upsert_kafka.encode(jsonb_populate_record(NULL::proto_orders, '{"cash": 0}'));
-- enums by name, or by the number of one that has none
SELECT s, encode(value, 'hex') FROM unnest(ARRAY['NEW', 'SENT', '-5']) s, upsert_kafka.encode(jsonb_populate_record(NULL::proto_orders, jsonb_build_object('status', s)));
SELECT upsert_kafka.encode(jsonb_populate_record(NULL::proto_orders, '{"status": "Sent"}'));
-- intervals of days are of 24 hours, months have no length
SELECT encode(value, 'hex') FROM upsert_kafka.encode(jsonb_populate_record(NULL::proto_orders, '{"took": "1 day -0.5 s"}'));
SELECT upsert_kafka.encode(jsonb_populate_record(NULL::proto_orders, '{"took": "1 month"}'));
SELECT upsert_kafka.encode(jsonb_populate_record(NULL::proto_orders, '{"at": "infinity"}'));
-- jsonb by what the fields want; both names of a field, 64-bit integers as text, as protobuf's JSON has them
SELECT d.parent, d.doc FROM unnest(ARRAY['{"id": "9007199254740993", "status": "PAID", "codes": [1], "at": "2020-01-02T03:04:05Z", "took": "1.5s", "w": "x", "raw": "AP8=", "items": [{"weight": "NaN"}], "tags": {"a": 1}}',
    '{"doc": {"a": [null, {"b": ""}]}, "id": null, "status": 7}']::jsonb[]) j,
  upsert_kafka.encode(jsonb_populate_record(NULL::proto_orders, jsonb_build_object('parent', j, 'doc', j))) e, upsert_kafka.decode(NULL::proto_orders, NULL, e.value) d;
SELECT upsert_kafka.encode(jsonb_populate_record(NULL::proto_orders, '{"parent": {"idd": 1}}'));
SELECT upsert_kafka.encode(jsonb_populate_record(NULL::proto_orders, '{"parent": {"id": "x"}}'));
SELECT upsert_kafka.encode(jsonb_populate_record(NULL::proto_orders, '{"parent": {"name": 1}}'));
SELECT upsert_kafka.encode(jsonb_populate_record(NULL::proto_orders, '{"parent": [1]}'));
SELECT upsert_kafka.encode(jsonb_populate_record(NULL::proto_orders, '{"tags": {"a": 1.5}}'));
-- hstore, text and numbers where they have a place; the value read again
SELECT to_jsonb(d) FROM upsert_kafka.decode(NULL::proto_others, NULL, decode(:'full', 'hex')) r, upsert_kafka.encode(r) e, upsert_kafka.decode(NULL::proto_others, NULL, e.value) d WHERE to_jsonb(d) = to_jsonb(r);
-- a timestamp is one of the table's time_zone
SELECT encode(value, 'hex') FROM upsert_kafka.encode(jsonb_populate_record(NULL::proto_more, '{"status": "PAID", "at": "1970-01-01 09:00:01"}'));
-- columns that have no place
CREATE FOREIGN TABLE proto_misfit (id interval) SERVER proto_kafka OPTIONS (connector 'kafka', topic 'x', value_format 'protobuf', value_protobuf_descriptor :'shop', value_protobuf_message 'shop.Key');
SELECT upsert_kafka.encode(ROW('1 s')::proto_misfit);
DROP FOREIGN TABLE proto_misfit;

-- === proto2: what is absent is NULL or its default, groups, closed enums, required fields ===
CREATE TYPE proto_extra AS (text text);
CREATE FOREIGN TABLE proto_legacy (id int, name text, size text, extra proto_extra, plain int[], packed int[], sizes text[])
  SERVER proto_kafka OPTIONS (connector 'kafka', topic 'x', value_format 'protobuf', value_protobuf_descriptor :'legacy', value_protobuf_message 'legacy.Part');
SELECT d.* FROM upsert_kafka.decode(NULL::proto_legacy, NULL, '\x080112016e1801230a01652428012802320201023801') d;
SELECT encode(e.value, 'hex') = '080112016e1801230a01652428012802320201023801' AS same
  FROM upsert_kafka.decode(NULL::proto_legacy, NULL, '\x080112016e1801230a01652428012802320201023801') d, upsert_kafka.encode(d) e;
SELECT d.* FROM upsert_kafka.decode(NULL::proto_legacy, NULL, '\x0800') d;
-- a number that a closed enum does not have is an unknown field, also among others, packed or not
SELECT d.size, d.sizes FROM upsert_kafka.decode(NULL::proto_legacy, NULL, '\x08001807380138073a0305070138073a0107') d;
ALTER FOREIGN TABLE proto_legacy OPTIONS (ADD "value.protobuf.read-default-values" 'true');
SELECT d.* FROM upsert_kafka.decode(NULL::proto_legacy, NULL, '\x0800') d;
-- what is required must be there, wanted or not
SELECT d.name FROM upsert_kafka.decode(NULL::proto_legacy, NULL, '\x120161') d;
SELECT upsert_kafka.encode(ROW(NULL, 'a', NULL, NULL, NULL, NULL, NULL)::proto_legacy);
SELECT upsert_kafka.encode(ROW(1, 'a', 'MEDIUM', NULL, NULL, NULL, NULL)::proto_legacy);
SELECT upsert_kafka.encode(ROW(1, 'a', '2', NULL, NULL, NULL, NULL)::proto_legacy);
SELECT encode(value, 'hex') FROM upsert_kafka.encode(ROW(0, '', 'LARGE', NULL, NULL, NULL, NULL)::proto_legacy);
CREATE FOREIGN TABLE proto_required (name text) SERVER proto_kafka OPTIONS (connector 'kafka', topic 'x', value_format 'protobuf', value_protobuf_descriptor :'legacy', value_protobuf_message 'legacy.Part');
SELECT upsert_kafka.encode(ROW('a')::proto_required);

-- === bytes that are no message: class 22, and nothing is read beyond them ===
CREATE FUNCTION proto_reason(bytes bytea) RETURNS text LANGUAGE plpgsql AS $$
  DECLARE reason text;
  BEGIN
    PERFORM d.* FROM upsert_kafka.decode(NULL::proto_orders, NULL, bytes) d;
    RETURN 'read';
  EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS reason = PG_EXCEPTION_DETAIL;
    RETURN SQLSTATE || ' ' || regexp_replace(reason, '^.*offset 0: ', '');
  END $$;
SELECT what, proto_reason(bytes::bytea) FROM (VALUES
    ('no value', '\x08'), ('70 bits', '\x08ffffffffffffffffffff01'), ('65 bits', '\x08ffffffffffffffffff02'), ('64 bits', '\x08ffffffffffffffffff01'),
    ('field 0', '\x0001'), ('field 2^29', '\x808080801001'), ('wire type 6', '\x0e'), ('wire type 7', '\x0f'),
    ('a length too long', '\x1205616263'), ('a huge one', '\x12ffffffffffffffffff01'), ('8 bytes cut', '\xf906010203'), ('4 bytes cut', '\xfd06010203'),
    ('a group without end', '\xfb06'), ('the end of another', '\xfb06fc07'), ('an end alone', '\xfc06'), ('groups in a group', '\xfb06f306f406fc06'),
    ('packed, cut', '\x320181'), ('in a composite', '\x3a020a05'), ('in a map', '\x42020a05'), ('in a timestamp', '\x720108'), ('in jsonb', '\x52020a05'),
    ('a time that there is not', '\x720a08ffffffffffffffff7f'), ('nanoseconds that there are not', '\x7206108094ebdc04'), ('negative ones', '\x720b10ffffffffffffffffff01'),
    -- text: no NUL, no bytes that are no UTF-8
    ('NUL', '\x120100'), ('no UTF-8', '\x1201ff'), ('nor in jsonb', '\x52031201ff')) x (what, bytes);
-- messages in messages, to a depth of 100 as in Google's libraries; groups as well
CREATE FUNCTION proto_deep(n int) RETURNS bytea LANGUAGE plpgsql AS $$
  DECLARE b bytea := ''; len int;
  BEGIN
    FOR i IN 1 .. n LOOP
      len := length(b);
      b := '\x52' || CASE WHEN len < 128 THEN set_byte('\x00', 0, len) ELSE set_byte(set_byte('\x0000', 0, len % 128 + 128), 1, len / 128) END || b;
    END LOOP;
    RETURN b;
  END $$;
SELECT length(d.parent::text) FROM upsert_kafka.decode(NULL::proto_orders, NULL, proto_deep(99)) d;
SELECT proto_reason(proto_deep(100)), proto_reason(decode(repeat('fb06', 100000), 'hex'));
-- a whole error
SELECT d.items FROM upsert_kafka.decode(NULL::proto_orders, NULL, '\x3a020a05') d;
-- each message cut short anywhere, and with any byte changed: rows or errors of class 22, never anything else
CREATE FUNCTION proto_outcome(bytes bytea) RETURNS text LANGUAGE plpgsql AS $$
  BEGIN PERFORM d.* FROM upsert_kafka.decode(NULL::proto_orders, NULL, bytes) d; PERFORM d.* FROM upsert_kafka.decode(NULL::proto_others, NULL, bytes) d; RETURN 'read';
  EXCEPTION WHEN OTHERS THEN RETURN substr(SQLSTATE, 1, 2); END $$;
SELECT proto_outcome(substr(decode(:'full', 'hex'), 1, n)) AS outcome, count(*) > 10 AS often FROM generate_series(0, length(decode(:'full', 'hex')) - 1) n GROUP BY 1 ORDER BY 1;
SELECT setseed(0.5);
SELECT DISTINCT proto_outcome(set_byte(decode(:'full', 'hex'), (random() * (length(decode(:'full', 'hex')) - 1))::int, (random() * 255)::int)) AS outcome FROM generate_series(1, 1000) ORDER BY 1;
SELECT DISTINCT proto_outcome((SELECT decode(string_agg(lpad(to_hex((random() * 255)::int), 2, '0'), ''), 'hex') FROM generate_series(1, 3 + n % 20))) AS outcome FROM generate_series(1, 1000) n ORDER BY 1;

-- === ignore_parse_errors: a value that is no good is NULL, a message that cannot be taken apart is passed over ===
CREATE FOREIGN TABLE proto_lenient (i64 smallint, u64 bigint, db real) SERVER proto_kafka OPTIONS (connector 'kafka', topic 'regress_proto_lenient', value_format 'protobuf',
  value_protobuf_descriptor :'shop', value_protobuf_message 'shop.Numbers', "value.protobuf.ignore-parse-errors" 'true');
\! test/kt create regress_proto_lenient -p 1 --fresh
\! printf '%s\n' "\N|x'10808002'" "\N|x'1001'" "\N|x'10'" "\N|x'20ffffffffffffffffff0161ffffffffffffef7f1002'" | test/kt produce regress_proto_lenient
SELECT * FROM proto_lenient;

-- === through Kafka, keys as well: an upsert topic ===
\! test/kt create regress_proto -p 1 --fresh
CREATE FOREIGN TABLE proto_upsert (id bigint OPTIONS (key 'true'), name text, codes int[], at timestamptz) SERVER proto_kafka OPTIONS (connector 'upsert-kafka', topic 'regress_proto', key_format 'protobuf', value_format 'protobuf',
  key_protobuf_descriptor :'shop', key_protobuf_message 'shop.Key', value_protobuf_descriptor :'shop', value_protobuf_message 'shop.Order');
INSERT INTO proto_upsert VALUES (0, 'zero', '{1,2}', '2020-01-01 00:00:00+00'), (1, 'one', NULL, NULL), (2, 'two', NULL, NULL);
-- a key of no bytes is a key: only values can mean something else
ALTER FOREIGN TABLE proto_upsert OPTIONS (ADD key_protobuf_empty_value 'delete');
UPDATE proto_upsert SET name = 'ONE' WHERE id = 1;
DELETE FROM proto_upsert WHERE id = 2;
SELECT * FROM proto_upsert ORDER BY id;
-- the key of 0 is a message of no bytes: a key, not none
\! test/kt consume regress_proto

-- empty_value 'delete': a value of no bytes is a tombstone, too
\! printf '%s\n' "x'0801'|" | test/kt produce regress_proto
SELECT id, name FROM proto_upsert ORDER BY id;
ALTER FOREIGN TABLE proto_upsert OPTIONS (ADD value_protobuf_empty_value 'delete');
SELECT id, name FROM proto_upsert ORDER BY id;

-- === protobuf-confluent: a frame in front, which names a schema and the type in it ===
CREATE FOREIGN TABLE proto_framed (id bigint, name text) SERVER proto_kafka OPTIONS (connector 'kafka', topic 'x', value_format 'protobuf-confluent',
  value_protobuf_confluent_descriptor :'shop', value_protobuf_confluent_message 'shop.Order');
-- the file's first type, in short and at length; a type that the descriptor's file does not have may be it as well
SELECT d.* FROM unnest(ARRAY['\x0000000007000805120161', '\x000000000702000805120161', '\x000000000702080805120161']::bytea[]) WITH ORDINALITY x (b, n), upsert_kafka.decode(NULL::proto_framed, NULL, b) d ORDER BY n;
-- an empty message has a frame, too
SELECT d.* FROM upsert_kafka.decode(NULL::proto_framed, NULL, '\x000000000700') d;
-- G02 no frame, half a frame, another type's
SELECT d.* FROM upsert_kafka.decode(NULL::proto_framed, NULL, '\x0805') d;
SELECT d.* FROM upsert_kafka.decode(NULL::proto_framed, NULL, '\x0000000007') d;
SELECT d.* FROM upsert_kafka.decode(NULL::proto_framed, NULL, '') d;
SELECT d.* FROM upsert_kafka.decode(NULL::proto_framed, NULL, '\x000000000701') d;
SELECT d.* FROM upsert_kafka.decode(NULL::proto_framed, NULL, '\x0000000007020280') d;
SELECT d.* FROM upsert_kafka.decode(NULL::proto_framed, NULL, '\x0000000007020205') d;
SELECT d.* FROM upsert_kafka.decode(NULL::proto_framed, NULL, '\x0000000007040000') d;
-- without "message" each frame says: [0] shop.Order, [1] shop.Key, [0,0] shop.Order.Item; columns that a type does not have are NULL
ALTER FOREIGN TABLE proto_framed OPTIONS (DROP value_protobuf_confluent_message);
ALTER FOREIGN TABLE proto_framed ADD COLUMN sku text;
SELECT d.* FROM unnest(ARRAY['\x0000000007000805120161', '\x000000000702020806', '\x0000000007040000' || '0a0161']::bytea[]) WITH ORDINALITY x (b, n), upsert_kafka.decode(NULL::proto_framed, NULL, b) d ORDER BY n;
SELECT d.* FROM upsert_kafka.decode(NULL::proto_framed, NULL, '\x00000000070206') d;
SELECT upsert_kafka.encode(ROW(1, 'a', 'b')::proto_framed);
ALTER FOREIGN TABLE proto_framed ADD COLUMN nowhere text;
-- a type whose fields the columns cannot take is its message's fault, since another message may have another
CREATE TYPE proto_pair AS (a int, b int);
CREATE FOREIGN TABLE proto_unfit (id proto_pair, tags proto_pair) SERVER proto_kafka OPTIONS (connector 'kafka', topic 'x', value_format 'protobuf-confluent', value_protobuf_confluent_descriptor :'shop');
SELECT d.* FROM upsert_kafka.decode(NULL::proto_unfit, NULL, '\x0000000007000805') d;
DROP FOREIGN TABLE proto_unfit;
DROP TYPE proto_pair;
-- writing with a schema's number asks no registry; which type it is stands in the frame
CREATE FOREIGN TABLE proto_numbered (id bigint) SERVER proto_kafka OPTIONS (connector 'kafka', topic 'x', value_format 'protobuf-confluent',
  value_protobuf_confluent_descriptor :'shop', value_protobuf_confluent_message 'shop.Key', value_protobuf_confluent_schema_id '66051');
SELECT encode(value, 'hex') FROM upsert_kafka.encode(ROW(5)::proto_numbered);
ALTER FOREIGN TABLE proto_numbered OPTIONS (SET value_protobuf_confluent_message 'shop.Order');
SELECT encode(value, 'hex') FROM upsert_kafka.encode(ROW(5)::proto_numbered);
CREATE FOREIGN TABLE proto_inner (sku text) SERVER proto_kafka OPTIONS (connector 'kafka', topic 'x', value_format 'protobuf-confluent',
  value_protobuf_confluent_descriptor :'shop', value_protobuf_confluent_message 'shop.Order.Item', value_protobuf_confluent_schema_id '1');
SELECT encode(value, 'hex') FROM upsert_kafka.encode(ROW('a')::proto_inner);
-- else a registry is asked
ALTER FOREIGN TABLE proto_numbered OPTIONS (DROP value_protobuf_confluent_schema_id);
SELECT upsert_kafka.encode(ROW(5)::proto_numbered);
ALTER FOREIGN TABLE proto_numbered OPTIONS (ADD value_protobuf_confluent_schema_id '-1');

-- === descriptors and names that are no good, when the table is made ===
CREATE FOREIGN TABLE proto_bad (id bigint) SERVER proto_kafka OPTIONS (connector 'kafka', topic 'x', value_format 'protobuf');
CREATE FOREIGN TABLE proto_bad (id bigint) SERVER proto_kafka OPTIONS (connector 'kafka', topic 'x', value_format 'protobuf', value_protobuf_descriptor :'shop');
CREATE FOREIGN TABLE proto_bad (id bigint) SERVER proto_kafka OPTIONS (connector 'kafka', topic 'x', value_format 'protobuf', value_protobuf_message 'shop.Key', value_protobuf_descriptor 'message Key { int64 id = 1; }');
CREATE FOREIGN TABLE proto_bad (id bigint) SERVER proto_kafka OPTIONS (connector 'kafka', topic 'x', value_format 'protobuf', value_protobuf_message 'shop.Key', value_protobuf_descriptor 'CgEK');
CREATE FOREIGN TABLE proto_bad (id bigint) SERVER proto_kafka OPTIONS (connector 'kafka', topic 'x', value_format 'protobuf', value_protobuf_message 'shop.Key', value_protobuf_descriptor '');
-- made without --include_imports: Google's own files need not be there, others must
SELECT encode(substr(b, length(b) - n + 1), 'base64') AS alone FROM (SELECT decode(:'shop', 'base64') AS b, 1255 AS n) x \gset
CREATE FOREIGN TABLE proto_alone (at timestamptz, took interval, doc jsonb, w text) SERVER proto_kafka OPTIONS (connector 'kafka', topic 'x', value_format 'protobuf', value_protobuf_message 'shop.Order', value_protobuf_descriptor :'alone');
SELECT d.* FROM upsert_kafka.decode(NULL::proto_alone, NULL, decode(:'full', 'hex')) d;
CREATE FOREIGN TABLE proto_bad (t jsonb) SERVER proto_kafka OPTIONS (connector 'kafka', topic 'x', value_format 'protobuf', value_protobuf_message 'alone.M', value_protobuf_descriptor 'CkYKC2Fsb25lLnByb3RvEgVhbG9uZRoLb3RoZXIucHJvdG8iGwoBTRIWCgF0GAEgASgLMggub3RoZXIuVFIBdGIGcHJvdG8z');
-- a default that is no number, and no text
CREATE FOREIGN TABLE proto_bad (f int) SERVER proto_kafka OPTIONS (connector 'kafka', topic 'x', value_format 'protobuf', value_protobuf_message 'M', value_protobuf_descriptor 'Ch0KB2QucHJvdG8iEgoBTRINCgFmGAEgASgFOgLDKA==');
-- defaults that are no text, or that end before they end: LARGE with a NUL, and with a byte that is no UTF-8
SELECT encode(overlay(b PLACING 'LA\000GE' FROM position('LARGE'::bytea IN b)), 'base64') AS nul, encode(overlay(b PLACING 'LA\377GE' FROM position('LARGE'::bytea IN b)), 'base64') AS odd
  FROM (SELECT decode(:'legacy', 'base64') AS b) x \gset
CREATE FOREIGN TABLE proto_bad (id bigint) SERVER proto_kafka OPTIONS (connector 'kafka', topic 'x', value_format 'protobuf', value_protobuf_message 'legacy.Part', value_protobuf_descriptor :'nul');
CREATE FOREIGN TABLE proto_bad (id bigint) SERVER proto_kafka OPTIONS (connector 'kafka', topic 'x', value_format 'protobuf', value_protobuf_message 'legacy.Part', value_protobuf_descriptor :'odd');
-- names: the package belongs to it, in its letters; Flink's Java class does as well
CREATE FOREIGN TABLE proto_bad (id bigint) SERVER proto_kafka OPTIONS (connector 'kafka', topic 'x', value_format 'protobuf', value_protobuf_message 'Key', value_protobuf_descriptor :'shop');
CREATE FOREIGN TABLE proto_bad (id bigint) SERVER proto_kafka OPTIONS (connector 'kafka', topic 'x', value_format 'protobuf', value_protobuf_message 'shop.Numbrs', value_protobuf_descriptor :'shop');
CREATE FOREIGN TABLE proto_bad (id bigint) SERVER proto_kafka OPTIONS (connector 'kafka', topic 'x', value_format 'protobuf', value_protobuf_message 'else.Where', value_protobuf_descriptor :'shop');
CREATE FOREIGN TABLE proto_java (id bigint) SERVER proto_kafka OPTIONS (connector 'kafka', topic 'x', "value.format" 'protobuf', "value.protobuf.message-class-name" 'com.acme.Shop$Key', value_protobuf_descriptor :'shop');
SELECT * FROM upsert_kafka.decode(NULL::proto_java, NULL, '\x0809');
-- a column without a field
CREATE FOREIGN TABLE proto_bad (id bigint, item text) SERVER proto_kafka OPTIONS (connector 'kafka', topic 'x', value_format 'protobuf', value_protobuf_message 'shop.Key', value_protobuf_descriptor :'shop');
DROP FOREIGN TABLE proto_bad;
-- a type that can take no value of the field
CREATE FOREIGN TABLE proto_bad (tags proto_item) SERVER proto_kafka OPTIONS (connector 'kafka', topic 'x', value_format 'protobuf', value_protobuf_message 'shop.Order', value_protobuf_descriptor :'shop');
DROP FOREIGN TABLE proto_bad;
CREATE FOREIGN TABLE proto_bad (id bigint) SERVER proto_kafka OPTIONS (connector 'kafka', topic 'x', value_format 'protobuf', value_protobuf_mesage 'shop.Order', value_protobuf_descriptor :'shop');

RESET IntervalStyle;
RESET TimeZone;
DROP FUNCTION proto_outcome, proto_deep, proto_reason;
\set VERBOSITY terse
DROP SERVER proto_kafka CASCADE;
DROP TYPE proto_item, proto_instant, proto_extra;
DROP DOMAIN proto_paid, proto_short;
DROP EXTENSION hstore;
