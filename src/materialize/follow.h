/*
 * follow.h
 *	  What an ALTER of a maintained table, of its source or of one of its parts
 *	  means for the others.  Private to src/materialize.
 *
 * The caller is inside ddl_session_enter(); 'command' is the parse tree of
 * the command that has just been done.
 */
#ifndef UK_FOLLOW_H
#define UK_FOLLOW_H

#include "materialize/catalog.h"
#include "nodes/nodes.h"

/* Parts and registration follow the table; ERROR 0A000 for what it cannot be. */
extern void follow_target(MaintainedTable *table, Node *command);

/* The registration follows the source; ERROR 2BP01 for what fills the table. */
extern void follow_source(MaintainedTable *table, Node *command);

/* ERROR 2BP01 if a part does not fit its table any more. */
extern void follow_part(const MaintainedTable *table, Oid relid);

/* ERROR 0A000: the table has become a partition or a child. */
extern void follow_refuse_partition(const MaintainedTable *table);

/* Make the AS OF functions anew, after a command of somebody without rights on the table. */
extern void follow_functions(const MaintainedTable *table);

#endif							/* UK_FOLLOW_H */
