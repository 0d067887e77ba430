/*
 * outbox_tables.h
 *	  Small things that the files of src/outbox share.
 */
#ifndef UK_OUTBOX_TABLES_H
#define UK_OUTBOX_TABLES_H

/* OID of one of the outbox's tables or indexes; ERROR 42704 without the extension. */
extern Oid	outbox_table(const char *name);

/* Did a stream with this identity come with a copy of a database, or from a dump? */
extern bool outbox_is_copy(int64 system_identifier, Oid database, Oid serverid);

#endif							/* UK_OUTBOX_TABLES_H */
