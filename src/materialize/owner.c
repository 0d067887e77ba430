/*
 * owner.c
 *	  Acting as a maintained table's owner.
 */
#include "postgres.h"

#include "materialize/owner.h"
#include "miscadmin.h"
#include "utils/guc.h"

void
owner_enter(OwnerScope *scope, Oid owner)
{
	GetUserIdAndSecContext(&scope->userid, &scope->security);
	SetUserIdAndSecContext(owner, scope->security | SECURITY_RESTRICTED_OPERATION);
	scope->nestlevel = NewGUCNestLevel();
	(void) set_config_option("search_path", "pg_catalog, pg_temp", PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_SAVE, true, 0, false);
}

void
owner_leave(const OwnerScope *scope)
{
	AtEOXact_GUC(false, scope->nestlevel);
	SetUserIdAndSecContext(scope->userid, scope->security);
}
