/*
 * encode.h
 *	  A row of a foreign table -> the key and value of its message: the other
 *	  direction of change_decode().  INSERT, UPDATE, DELETE, COPY and dry runs encode
 *	  through here; nothing is sent.
 */
#ifndef UK_ENCODE_H
#define UK_ENCODE_H

#include "fdw/options.h"
#include "lib/stringinfo.h"

typedef struct ChangeEncoder ChangeEncoder;

/*
 * Which columns go where, as Flink's sinks have it: the key holds the key columns in
 * the order of key_fields (or of the table), the value all other columns but metadata,
 * with the key columns among them if the table's value has them.  Allocated in
 * CurrentMemoryContext; keeps 'table' by reference.  ERROR if a format cannot write.
 */
extern ChangeEncoder *change_encoder_create(const TopicTable *table);

/*
 * Append the bytes of key or value of a row (TopicTable.natts values, attnum - 1).
 * False, with nothing appended: Kafka's null.  A key is null where the table has no
 * key columns, a value where the format says so (raw with a NULL: a tombstone).
 * ERROR in the house's form: 23502 for a NULL in a key column of an upsert table,
 * class 22 for a value that has no form, naming column, table and key.  Scratch
 * memory comes from CurrentMemoryContext: reset it per batch.
 */
extern bool change_encode_key(ChangeEncoder *encoder, const Datum *values, const bool *isnull, StringInfo key);
extern bool change_encode_value(ChangeEncoder *encoder, const Datum *values, const bool *isnull, StringInfo value);

/*
 * The value that tells of this row in a table with a CDC format: an update is told by
 * its old row (-U) and its new one (+U).  change_encode_value() tells of an insert.
 */
extern bool change_encode_event(ChangeEncoder *encoder, RowKind kind, const Datum *values, const bool *isnull,
								StringInfo value);

#endif							/* UK_ENCODE_H */
