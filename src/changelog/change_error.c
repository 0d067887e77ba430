/*
 * change_error.c
 *	  What is said of a message that cannot be decoded, in the house's form.
 */
#include "postgres.h"

#include "changelog/change.h"
#include "fdw/pending.h"
#include "lib/stringinfo.h"

void
change_error_truncate(ChangeError *error)
{
	memset(error, 0, sizeof(*error));
	error->sqlerrcode = ERRCODE_INVALID_PARAMETER_VALUE;
	error->message = _("the source table was truncated, and the messages are of several partitions");
	error->hint = _("The event is in one of them, and nothing says which messages of the others were before it. The option truncate 'ignore' passes it by and keeps the rows; a DELETE on the foreign table then removes those that are older. In a topic of one partition it is applied.");
}

static char *
error_subject(const TopicTable *table, const ChangeError *error)
{
	if (error->column)
		return psprintf(error->in_key ? _("invalid key for column \"%s\" of foreign table \"%s\"")
						: _("invalid input for column \"%s\" of foreign table \"%s\""),
						error->column, table->name);
	return psprintf(error->in_key ? _("invalid key for foreign table \"%s\"")
					: _("invalid message for foreign table \"%s\""), table->name);
}

const char *
sentence_end(const char *sentence)
{
	Size		len = strlen(sentence);

	return len > 0 && strchr(".!?", sentence[len - 1]) ? "" : ".";
}

void
change_error_raise(const TopicTable *table, const KafkaRecord *record, const ChangeError *error)
{
	StringInfoData hint;

	initStringInfo(&hint);
	if (error->hint)
		appendStringInfo(&hint, "%s%s", error->hint, sentence_end(error->hint));
	if (table->on_error == ON_ERROR_STOP)
		appendStringInfo(&hint, "%s%s", hint.len > 0 ? " " : "",
						 _("Use on_error 'skip' to record such messages and go on."));

	ereport(ERROR,
			(errcode(error->sqlerrcode),
			 errmsg_internal("%s", error_subject(table, error)),
			 record_is_pending(record) ?
			 errdetail("Topic \"%s\", a message of this transaction that is not sent yet: %s%s",
					   record->topic, error->message, sentence_end(error->message)) :
			 errdetail("Topic \"%s\", partition %d, offset %lld: %s%s",
					   record->topic, record->partition, (long long) record->offset,
					   error->message, sentence_end(error->message)),
			 hint.len > 0 ? errhint("%s", hint.data) : 0));
}

char *
change_error_text(const TopicTable *table, const KafkaRecord *record, const ChangeError *error)
{
	return psprintf(_("%s: topic \"%s\", partition %d, offset %lld: %s"),
					error_subject(table, error), record->topic, record->partition,
					(long long) record->offset, error->message);
}
