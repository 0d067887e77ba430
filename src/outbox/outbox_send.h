/*
 * outbox_send.h
 *	  Sending one stream of the outbox, in whatever process.  Private to src/outbox.
 */
#ifndef UK_OUTBOX_SEND_H
#define UK_OUTBOX_SEND_H

#include "outbox/outbox_catalog.h"

typedef enum OutboxResult
{
	OUTBOX_SENT,				/* something; there may be more */
	OUTBOX_IDLE,				/* nothing waits */
	OUTBOX_STOPPED,				/* at a message, or a copy that must not send */
	OUTBOX_GONE,				/* no such stream, or its server was dropped */
	OUTBOX_BUSY					/* somebody else is sending it */
} OutboxResult;

typedef struct OutboxSender
{
	int32		stream;
	bool		own_transactions;	/* else everything is done in the caller's */

	/* an open connection, and what is known through it */
	MemoryContext open_context; /* NULL: not open */
	OutboxStream *state;
	KafkaConsumer *consumer;
	KafkaProducer *producer;

	/* failures */
	bool		producing;		/* an error now is about the message last_tried .. */
	int64		last_tried;
	int			care;			/* 0: several transactions at a time; 1: one;
								 * 2: and wait for each message, to find which one
								 * is refused */
	int			patience;		/* doubles the time of a Kafka transaction so often */
} OutboxSender;

/* palloc'd in the current memory context, which must outlive it. */
extern OutboxSender *outbox_sender_create(int32 stream, bool own_transactions);

/*
 * Send the next messages: whole PostgreSQL transactions in one Kafka transaction, and
 * wait a moment until they can be read (else outbox_readable.h).
 * Opens the connection first if need be.  Raises; after an error the caller ends
 * the (sub)transaction and calls outbox_sender_failed().
 */
extern OutboxResult outbox_send(OutboxSender *sender);

/*
 * Close the connection, and decide what an error means.  True: call outbox_send
 * again, it will find out more, or has stopped the stream at the message at fault.
 * A missing topic or partition is the message's fault when it is 'lasting'.
 */
extern bool outbox_sender_failed(OutboxSender *sender, const ErrorData *error, bool lasting);

/* After OUTBOX_IDLE: note that what Kafka has stored is what we know. */
extern void outbox_sender_settle(OutboxSender *sender);

/* Close the connection; the right to send goes too where it is a session's. */
extern void outbox_sender_close(OutboxSender *sender);

#endif							/* UK_OUTBOX_SEND_H */
