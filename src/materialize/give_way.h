/*
 * give_way.h
 *	  A first load may take hours; whoever wants to alter or drop its table should not.
 */
#ifndef UK_GIVE_WAY_H
#define UK_GIVE_WAY_H

/*
 * Lock a table as writing it does.  A worker doesn't wait, ERROR 55P03: it holds the
 * table's apply lock, which the other session may want next.
 */
extern void lock_table_to_load(Oid relid);

/*
 * ERROR 55P03 if this process is a worker and another session waits for a lock on
 * a relation that it holds.  Looks once a second at most, so call it often.
 */
extern void give_way_to_ddl(Oid relid);

#endif							/* UK_GIVE_WAY_H */
