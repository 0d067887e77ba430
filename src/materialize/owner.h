/*
 * owner.h
 *	  Acting as a maintained table's owner (DESIGN.md, decision 13).
 */
#ifndef UK_OWNER_H
#define UK_OWNER_H

typedef struct OwnerScope
{
	Oid			userid;
	int			security;
	int			nestlevel;
} OwnerScope;

/*
 * Become 'owner' with SECURITY_RESTRICTED_OPERATION and a fixed search_path; leave
 * restores all.  After an ERROR the (sub)transaction's abort does.
 */
extern void owner_enter(OwnerScope *scope, Oid owner);
extern void owner_leave(const OwnerScope *scope);

#endif							/* UK_OWNER_H */
