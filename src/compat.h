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

/* 16 has one function for all kinds of objects */
#if PG_VERSION_NUM >= 160000
#define relation_ownercheck_compat(relid, role) object_ownercheck(RelationRelationId, relid, role)
#else
#define relation_ownercheck_compat(relid, role) pg_class_ownercheck(relid, role)
#endif

/* 16 gave stringToQualifiedNameList an ErrorSaveContext */
#if PG_VERSION_NUM >= 160000
#define stringToQualifiedNameList_compat(string) stringToQualifiedNameList(string, NULL)
#else
#define stringToQualifiedNameList_compat(string) stringToQualifiedNameList(string)
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

#endif							/* UK_COMPAT_H */
