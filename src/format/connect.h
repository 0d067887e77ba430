/*
 * connect.h
 *	  Rows as Kafka Connect's JSON converter writes them: an object of fields, alone
 *	  or wrapped as {"schema": .., "payload": ..}, whose schema says by names such as
 *	  org.apache.kafka.connect.data.Decimal what a number or a string stands for.
 *
 * Shared by the formats whose messages are Debezium's, and by their JSON keys.  Knows
 * nothing of envelopes and row kinds.
 */
#ifndef UK_CONNECT_H
#define UK_CONNECT_H

#include "format/format.h"
#include "format/json_scan.h"

typedef enum ConnectUnit
{
	CONNECT_NO_UNIT,
	CONNECT_SECONDS,
	CONNECT_MILLIS,
	CONNECT_MICROS,
	CONNECT_NANOS
} ConnectUnit;

typedef struct ConnectOptions
{
	const char *time_zone;		/* in which naive timestamps are read */
	bool		strip_nul;		/* drop \u0000 instead of refusing it */
	bool		fail_on_missing;	/* an absent field is an error */
	const bool *lenient;		/* while true, values that are no good are NULL */
	ConnectUnit unit;			/* of times where no schema tells; then dates are days */
	const char *unavailable;	/* stands for a value that was left out; NULL: none does */
	bool		unavailable_error;	/* .. which is an error */
} ConnectOptions;

typedef struct ConnectRow ConnectRow;

/* For these columns, by their fields.  In CurrentMemoryContext, with all that follows. */
extern ConnectRow *connect_row_create(int ncolumns, const FormatColumn *columns, const ConnectOptions *options);

/*
 * The schema that the next rows have: a scanned value, {"type": "struct", "fields": ..},
 * or NULL for none.  With 'field' it is that field of it.  Cheap when it is the same
 * text as before.  What is no schema is taken for none.
 */
extern void connect_row_schema(ConnectRow *row, const JsonText *schema, const char *field);

/*
 * Set the columns of a row from a scanned object; those whose value is not in the
 * message are NULL and in sink->unchanged.  ERROR class 22 or 23, with sink->column set.
 */
extern void connect_row_read(ConnectRow *row, const JsonText *object, RowSink *sink);

/* The same from a single value, for the columns of this field; others are an error. */
extern void connect_row_read_whole(ConnectRow *row, const char *field, const JsonText *value, RowSink *sink);

/*
 * For messages that are not JSON: values by slots, one for each field that columns
 * want.  take() sets the columns as read() does, from values that are as Connect's JSON
 * converter would write them (in UTF-8), JK_MISSING where a message has none.  kinds():
 * what the next rows' values stand for, by slot.  Bytes need not be base64: of kind
 * CONNECT_BYTES they are 'text' as they stand.
 */
#define CONNECT_BYTES	(JK_ARRAY + 1)
struct ConnectKind;
extern int	connect_row_nslots(const ConnectRow *row);
extern int	connect_row_slot(const ConnectRow *row, const char *field);	/* -1: no column wants it */
extern void connect_row_kinds(ConnectRow *row, const struct ConnectKind *kinds);
extern void connect_row_take(ConnectRow *row, const JsonText *values, RowSink *sink);

/* Are these two members of an object the wrapper's? */
extern bool connect_is_wrapper(const JsonText *schema, const JsonText *payload);

/* An integral number, for fields that are numbers of 64 bits; false if it is none. */
extern bool connect_int64(const JsonText *value, int64 *result);

#endif							/* UK_CONNECT_H */
