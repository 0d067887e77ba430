/*
 * old_key.h
 *	  What headers tell of a row whose key changes: two messages, the delete of the old
 *	  key, and the row under the new one (FormatRoutine.old_key_header).
 */
#ifndef UK_OLD_KEY_H
#define UK_OLD_KEY_H

#include "fdw/options.h"

typedef struct OldKeyReader OldKeyReader;

/* For a key of these columns.  In CurrentMemoryContext; keeps 'table' by reference. */
extern OldKeyReader *old_key_reader_create(const TopicTable *table, int nkeys, const AttrNumber *keys);

/*
 * The key that the record's row had before, in its columns' places of an array as wide as
 * the table; NULL where the record tells none, or none that can be read.  In
 * CurrentMemoryContext.  May use an internal subtransaction.
 */
extern const Datum *old_key_read(OldKeyReader *reader, const KafkaRecord *record);

/* Does the row of this delete go on under another key? */
extern bool old_key_moves(const OldKeyReader *reader, const KafkaRecord *record);

#endif							/* UK_OLD_KEY_H */
