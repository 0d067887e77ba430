/*
 * connect_schema.h
 *	  What the schema in a message of Kafka Connect says of its fields, and values of
 *	  such kinds as text.  Private to connect*.c.
 */
#ifndef UK_CONNECT_SCHEMA_H
#define UK_CONNECT_SCHEMA_H

#include "format/connect.h"

/* What a value stands for. */
typedef enum ConnectLogical
{
	LOGICAL_PLAIN,				/* what JSON says that it is */
	LOGICAL_DECIMAL,
	LOGICAL_VARIABLE_DECIMAL,
	LOGICAL_DATE,
	LOGICAL_TIME,
	LOGICAL_TIMESTAMP,			/* a wall clock's */
	LOGICAL_INSTANT,			/* a number that is one, which Connect has not */
	LOGICAL_ZONED,
	LOGICAL_DURATION,
	LOGICAL_BITS
} ConnectLogical;

typedef struct ConnectKind
{
	ConnectLogical logical;
	ConnectUnit unit;			/* of times */
	int			parameter;		/* a decimal's scale, the number of bits */
	const char *name;			/* for messages */
	bool		of_elements;	/* the field is an array of them */
	bool		without_schema; /* an option says so, and only of numbers */
} ConnectKind;

/*
 * The kind of a name in a schema, with the parameters that it has there; false: values
 * are what they look like.
 */
extern bool connect_kind_of_name(const char *name, int scale, int length, ConnectKind *kind);

typedef struct ConnectSchema ConnectSchema;

/* For fields of these names, in the database encoding.  In CurrentMemoryContext. */
extern ConnectSchema *connect_schema_create(int n, const char *const *names);

/*
 * Read a schema as connect_row_schema() takes it.  False: it is the same as before.
 * *kinds gets one per name, or NULL where there is no schema.
 */
extern bool connect_schema_read(ConnectSchema *schema, const JsonText *text, const char *field, const ConnectKind **kinds);

/*
 * Values as text for the input function of numeric, bit, date, timestamp, time or
 * interval; palloc'd.  ERROR 22P02 for a value of another JSON type than the kind
 * has, 22003 or 22008 out of range.
 */
extern int64 connect_required_int64(const ConnectKind *kind, const JsonText *value);
extern char *connect_decimal_text(const ConnectKind *kind, int64 scale, const JsonText *value);
extern char *connect_variable_decimal_text(const ConnectKind *kind, const JsonText *value);
extern char *connect_bits_text(const ConnectKind *kind, const JsonText *value);
extern char *connect_date_text(const ConnectKind *kind, int64 days);
extern char *connect_time_text(const ConnectKind *kind, int64 number);
extern char *connect_zoned_text(const JsonText *value);

extern char *connect_point_text(const JsonText *value);

/* Under decimal.handling.mode string; NULL for any other text. */
extern char *connect_infinite_number(const JsonText *value);

/* Under time.precision.mode isostring, "12:34:56Z" without its zone; NULL for any other text. */
extern char *connect_clock_text(const JsonText *value);

/*
 * ISO 8601 text of a day or a time whose year PostgreSQL would not read (signed, more
 * than four digits, 0), or that means infinity; NULL for any other.
 */
extern char *connect_iso_text(const char *text, Size len);

/* A number's timestamp without time zone; as text; NULL unless it means infinity. */
extern int64 connect_timestamp(const ConnectKind *kind, int64 number);
extern char *connect_timestamp_text(int64 timestamp);
extern const char *connect_infinity_text(const ConnectKind *kind, int64 number);

/* What clocks in a zone say at an instant. */
extern int64 connect_local_time(int64 instant, pg_tz *zone);

/* An instant's text: with its offset, or where a zone is given what clocks there say. */
extern char *connect_instant_text(int64 instant, pg_tz *zone);

#endif							/* UK_CONNECT_SCHEMA_H */
