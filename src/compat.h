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

/* 16 wants to know the outer join, if it is one */
#if PG_VERSION_NUM >= 160000
#define generate_join_implied_equalities_compat(root, join, outer, inner) \
	generate_join_implied_equalities(root, join, outer, inner, NULL)
#else
#define generate_join_implied_equalities_compat(root, join, outer, inner) \
	generate_join_implied_equalities(root, join, outer, inner)
#endif

/* 17 looks at statistics for the length of arrays, so it needs the planner's root */
#if PG_VERSION_NUM >= 170000
#define estimate_array_length_compat(root, array) estimate_array_length(root, array)
#else
#define estimate_array_length_compat(root, array) estimate_array_length(array)
#endif

/* 18 lets index scans count their searches */
#if PG_VERSION_NUM >= 180000
#define index_beginscan_compat(heap, index, snapshot, nkeys) \
	index_beginscan(heap, index, snapshot, NULL, nkeys, 0)
#else
#define index_beginscan_compat(heap, index, snapshot, nkeys) \
	index_beginscan(heap, index, snapshot, nkeys, 0)
#endif

/* 16 lets make_range fail softly */
#if PG_VERSION_NUM >= 160000
#define make_range_compat(typcache, lower, upper) make_range(typcache, lower, upper, false, NULL)
#else
#define make_range_compat(typcache, lower, upper) make_range(typcache, lower, upper, false)
#endif

/* 16 keeps the user whose rights count in the plan node, before it is in the range table */
#if PG_VERSION_NUM >= 160000
#define foreign_scan_user(plan, estate) \
	(OidIsValid((plan)->checkAsUser) ? (plan)->checkAsUser : GetUserId())
#else
#define foreign_scan_user(plan, estate) \
	(OidIsValid(exec_rt_fetch((plan)->scan.scanrelid, estate)->checkAsUser) ? \
	 exec_rt_fetch((plan)->scan.scanrelid, estate)->checkAsUser : GetUserId())
#endif

#endif							/* UK_COMPAT_H */
