/*
 * compat.h
 *	  Differences between PostgreSQL 14 and 18, each with its reason.
 *
 * Nothing outside this file tests PG_VERSION_NUM, except an #include that
 * exists in some versions only.
 */
#ifndef UK_COMPAT_H
#define UK_COMPAT_H

/* 17 added fdw_restrictinfo, 18 disabled_nodes */
#if PG_VERSION_NUM >= 180000
#define create_foreignscan_path_compat(root, rel, target, rows, startup, total, pathkeys, outer, outerpath, private) \
	create_foreignscan_path(root, rel, target, rows, 0, startup, total, pathkeys, outer, outerpath, NIL, private)
#elif PG_VERSION_NUM >= 170000
#define create_foreignscan_path_compat(root, rel, target, rows, startup, total, pathkeys, outer, outerpath, private) \
	create_foreignscan_path(root, rel, target, rows, startup, total, pathkeys, outer, outerpath, NIL, private)
#else
#define create_foreignscan_path_compat(root, rel, target, rows, startup, total, pathkeys, outer, outerpath, private) \
	create_foreignscan_path(root, rel, target, rows, startup, total, pathkeys, outer, outerpath, private)
#endif

/* 15 has MarkGUCPrefixReserved; before it, EmitWarningsOnPlaceholders did the same */
#if PG_VERSION_NUM < 150000
#define MarkGUCPrefixReserved(prefix) EmitWarningsOnPlaceholders(prefix)
#endif

/* 18 gave vacuum_delay_point an argument */
#if PG_VERSION_NUM >= 180000
#define vacuum_delay_point_compat() vacuum_delay_point(true)
#else
#define vacuum_delay_point_compat() vacuum_delay_point()
#endif

/* 15 wants shared memory asked for in a hook; 14 has none and takes it in _PG_init */
#if PG_VERSION_NUM >= 150000
#define request_shmem_compat(previous, request) \
	((previous) = shmem_request_hook, shmem_request_hook = (request))
#else
#define request_shmem_compat(previous, request) ((previous) = NULL, (request) ())
#endif

/* 16 made one function of the ownership checks */
#if PG_VERSION_NUM >= 160000
#define relation_ownercheck_compat(relid, roleid) object_ownercheck(RelationRelationId, relid, roleid)
#define database_ownercheck_compat(dbid, roleid) object_ownercheck(DatabaseRelationId, dbid, roleid)
#else
#define relation_ownercheck_compat(relid, roleid) pg_class_ownercheck(relid, roleid)
#define database_ownercheck_compat(dbid, roleid) pg_database_ownercheck(dbid, roleid)
#endif

/* 17 lets a resource owner free a set; ours live as long as their worker */
#if PG_VERSION_NUM >= 170000
#define CreateWaitEventSet_compat(nevents) CreateWaitEventSet(NULL, nevents)
#else
#define CreateWaitEventSet_compat(nevents) CreateWaitEventSet(TopMemoryContext, nevents)
#endif

#endif							/* UK_COMPAT_H */
