/*
 * version.c
 *	  upsert_kafka.version(): what was built into this library.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "fmgr.h"
#include "funcapi.h"
#include "kafka/kafka.h"
#include "utils/builtins.h"

#define LIBRARY_VERSION "1.0"	/* default_version of the control file */

PG_FUNCTION_INFO_V1(upsert_kafka_version);

/*
 * version(OUT library text, OUT librdkafka text, OUT features text): versions of
 * this library and of the Kafka client, and the client's features: codecs,
 * security mechanisms (case H07).
 */
Datum
upsert_kafka_version(PG_FUNCTION_ARGS)
{
	TupleDesc	desc;
	Datum		values[3];
	bool		isnull[3] = {false, false, false};

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	values[0] = CStringGetTextDatum(LIBRARY_VERSION);
	values[1] = CStringGetTextDatum(kafka_library_version());
	values[2] = CStringGetTextDatum(kafka_library_features());
	return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, isnull));
}
