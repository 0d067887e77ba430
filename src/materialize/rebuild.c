/*
 * rebuild.c
 *	  rebuild(): forget what was read of a topic and load the table anew.
 */
#include "postgres.h"

#include "executor/spi.h"
#include "materialize/control.h"
#include "materialize/owner.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

/* Apply's own way to empty its tables: as their owner, past the guard trigger. */
static void
truncate_as_owner(const MaintainedTable *table)
{
	StringInfoData sql;
	Oid			parts[3] = {table->target, table->versions, table->origins};
	OwnerScope	scope;

	initStringInfo(&sql);
	for (int i = 0; i < lengthof(parts); i++)
	{
		if (!OidIsValid(parts[i]))
			continue;
		appendStringInfo(&sql, "%s%s", sql.len == 0 ? "TRUNCATE TABLE ONLY " : ", ONLY ",
						 quote_qualified_identifier(get_namespace_name(get_rel_namespace(parts[i])),
													get_rel_name(parts[i])));
	}

	owner_enter(&scope, table->owner);
	apply_in_progress = true;
	PG_TRY();
	{
		SPI_connect();
		if (SPI_execute(sql.data, false, 0) != SPI_OK_UTILITY)
			elog(ERROR, "unexpected result of %s", sql.data);
		SPI_finish();
	}
	PG_FINALLY();
	{
		apply_in_progress = false;
	}
	PG_END_TRY();
	owner_leave(&scope);
}

void
rebuild_run(const MaintainedTable *table, bool discard_history)
{
	if (OidIsValid(table->versions) && !discard_history)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("table \"%s\" cannot be rebuilt with its history kept",
						get_rel_name(table->target)),
				 errdetail("Versions that the topic no longer holds would have to be merged with those read anew."),
				 errhint("Use discard_history => true to read the topic from its start and forget older versions.")));

	truncate_as_owner(table);
	positions_forget(table->target);
	message_errors_forget(table->target);
	table_state_set(table->target, TABLE_BACKFILL, 0, NULL, -1, -1);
}
