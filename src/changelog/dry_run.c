/*
 * dry_run.c
 *	  upsert_kafka.decode() and encode(): one message through the decode path, one row
 *	  through the encode path, without Kafka.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "access/tupdesc.h"
#include "changelog/change.h"
#include "changelog/encode.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/tuplestore.h"
#include "utils/typcache.h"
#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif

PG_FUNCTION_INFO_V1(upsert_kafka_decode);
PG_FUNCTION_INFO_V1(upsert_kafka_encode);

static const char *
bytes_argument(FunctionCallInfo fcinfo, int n, Size *len)
{
	bytea	   *bytes;

	*len = 0;
	if (PG_ARGISNULL(n))
		return NULL;
	bytes = PG_GETARG_BYTEA_PP(n);
	*len = VARSIZE_ANY_EXHDR(bytes);
	return VARDATA_ANY(bytes);
}

/* The foreign table whose row type the first argument has. */
static Oid
argument_table(FunctionCallInfo fcinfo, const char *hint)
{
	Oid			type = get_fn_expr_argtype(fcinfo->flinfo, 0);
	Oid			relid = OidIsValid(type) ? get_typ_typrelid(type) : InvalidOid;
	AclResult	acl;

	if (!OidIsValid(relid) || !topic_table_is_ours(relid))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("type %s is not the row type of a foreign table on a Kafka topic",
						OidIsValid(type) ? format_type_be(type) : "unknown"),
				 errhint("%s", hint)));
	acl = pg_class_aclcheck(relid, GetUserId(), ACL_SELECT);
	if (acl != ACLCHECK_OK)
		aclcheck_error(acl, OBJECT_FOREIGN_TABLE, get_rel_name(relid));
	return relid;
}

/*
 * The rows that a message with this key and value would give; SQL NULL is Kafka's
 * null.  Metadata: partition 0, offset 0, no timestamp, no headers.
 */
Datum
upsert_kafka_decode(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	Relation	rel;
	TopicTable *table;
	ChangeBatch *batch;
	Tuplestorestate *store;
	TupleDesc	desc;
	MemoryContext old;
	KafkaRecord record = {0};

	if (rsinfo == NULL || !IsA(rsinfo, ReturnSetInfo) || !(rsinfo->allowedModes & SFRM_Materialize))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("set-valued function called in context that cannot accept a set")));

	rel = table_open(argument_table(fcinfo, _("Name the table by a NULL of its row type: upsert_kafka.decode(NULL::foreign_table, key, value).")),
					 AccessShareLock);
	table = topic_table_get(rel);

	record.topic = table->topic;
	record.timestamp = -1;
	record.timestamp_type = KAFKA_TIMESTAMP_NONE;
	record.leader_epoch = -1;
	record.key = bytes_argument(fcinfo, 1, &record.key_len);
	record.value = bytes_argument(fcinfo, 2, &record.value_len);

	old = MemoryContextSwitchTo(rsinfo->econtext->ecxt_per_query_memory);
	desc = CreateTupleDescCopy(RelationGetDescr(rel));
	store = tuplestore_begin_heap(rsinfo->allowedModes & SFRM_Materialize_Random, false, work_mem);
	rsinfo->returnMode = SFRM_Materialize;
	rsinfo->setResult = store;
	rsinfo->setDesc = desc;
	MemoryContextSwitchTo(old);

	batch = change_batch_create(CurrentMemoryContext);
	change_decode(change_decoder_create(table, NULL), &record, 1, batch, DECODE_RAISE);
	for (int i = 0; i < batch->nchanges; i++)
	{
		if (batch->changes[i].kind == ROW_TRUNCATE)
		{
			ereport(NOTICE,
					(errmsg("the message deletes all rows before it")));
			continue;
		}
		tuplestore_putvalues(store, desc, batch->changes[i].values, batch->changes[i].isnull);
	}
	if (batch->nerrors > 0)
		ereport(WARNING,
				(errmsg("the message is skipped"),
				 errdetail_internal("%s", batch->errors[0].message)));
	MemoryContextDelete(batch->context);

	table_close(rel, AccessShareLock);
	PG_RETURN_NULL();
}

static Datum
bytea_datum(const StringInfoData *bytes)
{
	bytea	   *result = palloc(VARHDRSZ + bytes->len);

	SET_VARSIZE(result, VARHDRSZ + bytes->len);
	memcpy(VARDATA(result), bytes->data, bytes->len);
	return PointerGetDatum(result);
}

/* What is to be told of a row: ERROR 22023 for what the table's messages cannot tell. */
static RowKind
row_kind_argument(const TopicTable *table, const char *text)
{
	RowKind		kind = row_kind_parse(text);

	if (table->upsert ? kind == ROW_UPDATE_BEFORE : kind != ROW_INSERT && !table->value_format->changelog)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("no message of foreign table \"%s\" tells of row kind \"%s\"", table->name, text),
				 table->upsert ? errhint("An update is told by its new row.") :
				 errhint("Formats of change events do, such as debezium-json.")));
	return kind;
}

/*
 * The key and value that INSERT, UPDATE or DELETE would write for this row; SQL NULL is
 * Kafka's null.
 */
Datum
upsert_kafka_encode(PG_FUNCTION_ARGS)
{
	HeapTupleHeader row;
	HeapTupleData tuple = {0};
	Relation	rel;
	TopicTable *table;
	ChangeEncoder *encoder;
	Datum	   *values;
	bool	   *isnull;
	StringInfoData bytes;
	TupleDesc	desc;
	RowKind		kind;
	Datum		parts[2] = {0};
	bool		nulls[2];

	rel = table_open(argument_table(fcinfo, _("Give a row of the table: upsert_kafka.encode(ROW(1, 'a')::foreign_table).")),
					 AccessShareLock);
	table = topic_table_get(rel);
	if ((table->key_format && table->key_format->registry) || table->value_format->registry)
	{
		/* registers the schema, so it is more than a look */
		AclResult	acl = pg_class_aclcheck(table->relid, GetUserId(), ACL_INSERT);

		if (acl != ACLCHECK_OK)
			aclcheck_error(acl, OBJECT_FOREIGN_TABLE, table->name);
	}
	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");

	kind = row_kind_argument(table, text_to_cstring(PG_GETARG_TEXT_PP(1)));
	row = PG_GETARG_HEAPTUPLEHEADER(0);
	tuple.t_len = HeapTupleHeaderGetDatumLength(row);
	ItemPointerSetInvalid(&tuple.t_self);
	tuple.t_data = row;
	values = palloc(sizeof(Datum) * Max(table->natts, 1));
	isnull = palloc(sizeof(bool) * Max(table->natts, 1));
	heap_deform_tuple(&tuple, RelationGetDescr(rel), values, isnull);

	encoder = change_encoder_create(table);
	initStringInfo(&bytes);
	nulls[0] = !change_encode_key(encoder, values, isnull, &bytes);
	if (!nulls[0])
		parts[0] = bytea_datum(&bytes);
	resetStringInfo(&bytes);
	nulls[1] = (table->upsert && kind == ROW_DELETE) ||
		!change_encode_event(encoder, kind, values, isnull, &bytes);
	if (!nulls[1])
		parts[1] = bytea_datum(&bytes);

	table_close(rel, AccessShareLock);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), parts, nulls)));
}
