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

/* 18 has generated columns that are computed when they are read, and stored nowhere */
#if PG_VERSION_NUM >= 180000
#define att_is_virtual_compat(att) ((att)->attgenerated == ATTRIBUTE_GENERATED_VIRTUAL)
#else
#define att_is_virtual_compat(att) false
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
	((void) (estate), OidIsValid((plan)->checkAsUser) ? (plan)->checkAsUser : GetUserId())
#else
#define foreign_scan_user(plan, estate) \
	(OidIsValid(exec_rt_fetch((plan)->scan.scanrelid, estate)->checkAsUser) ? \
	 exec_rt_fetch((plan)->scan.scanrelid, estate)->checkAsUser : GetUserId())
#endif

/* 18 took it away for pg_noreturn, which goes in front of a declaration */
#ifndef pg_attribute_noreturn
#define pg_attribute_noreturn() __attribute__((noreturn))
#endif

/* 16 gave stringToQualifiedNameList an ErrorSaveContext */
#if PG_VERSION_NUM >= 160000
#define stringToQualifiedNameList_compat(string) stringToQualifiedNameList(string, NULL)
#else
#define stringToQualifiedNameList_compat(string) stringToQualifiedNameList(string)
#endif

/* 15 turned tuplesort's randomAccess flag into a set of options */
#if PG_VERSION_NUM >= 150000
#define TUPLESORT_RANDOMACCESS_compat TUPLESORT_RANDOMACCESS
#define TUPLESORT_NONE_compat TUPLESORT_NONE
#else
#define TUPLESORT_RANDOMACCESS_compat true
#define TUPLESORT_NONE_compat false
#endif

/* 15 gave reservoir sampling a generator of the common kind, passed by address */
#if PG_VERSION_NUM >= 150000
#define sampler_random_fract_compat(state) sampler_random_fract(&(state))
#else
#define sampler_random_fract_compat(state) sampler_random_fract(state)
#endif

/* 18 lets a caller ask for space in front of a minimal tuple */
#if PG_VERSION_NUM >= 180000
#define heap_form_minimal_tuple_compat(desc, values, isnull) heap_form_minimal_tuple(desc, values, isnull, 0)
#else
#define heap_form_minimal_tuple_compat(desc, values, isnull) heap_form_minimal_tuple(desc, values, isnull)
#endif

/*
 * 16 moved permissions out of range table entries, 18 made pruned relations known here.
 */
#if PG_VERSION_NUM >= 180000
#define ExecInitRangeTable_compat(estate, rtable, perminfos) \
	ExecInitRangeTable(estate, rtable, perminfos, bms_make_singleton(1))
#elif PG_VERSION_NUM >= 160000
#define ExecInitRangeTable_compat(estate, rtable, perminfos) ExecInitRangeTable(estate, rtable, perminfos)
#else
#define ExecInitRangeTable_compat(estate, rtable, perminfos) ExecInitRangeTable(estate, rtable)
#endif

/* 16 added the result relations that may be locked by EvalPlanQual */
#if PG_VERSION_NUM >= 160000
#define EvalPlanQualInit_compat(epq, estate) EvalPlanQualInit(epq, estate, NULL, NIL, -1, NIL)
#else
#define EvalPlanQualInit_compat(epq, estate) EvalPlanQualInit(epq, estate, NULL, NIL, -1)
#endif

/* 16 added onlySummarizing */
#if PG_VERSION_NUM >= 160000
#define ExecInsertIndexTuples_compat(rri, slot, estate) \
	ExecInsertIndexTuples(rri, slot, estate, false, false, NULL, NIL, false)
#else
#define ExecInsertIndexTuples_compat(rri, slot, estate) \
	ExecInsertIndexTuples(rri, slot, estate, false, false, NULL, NIL)
#endif

/* 18 added deferrable_ok */
#if PG_VERSION_NUM >= 180000
#define RelationGetPrimaryKeyIndex_compat(rel) RelationGetPrimaryKeyIndex(rel, false)
#elif PG_VERSION_NUM >= 140000
#define RelationGetPrimaryKeyIndex_compat(rel) RelationGetPrimaryKeyIndex(rel)
#endif

/* 16 has one function for all kinds of objects */
#if PG_VERSION_NUM >= 160000
#define relation_ownercheck_compat(relid, role) object_ownercheck(RelationRelationId, relid, role)
#define database_ownercheck_compat(dbid, role) object_ownercheck(DatabaseRelationId, dbid, role)
#else
#define relation_ownercheck_compat(relid, role) pg_class_ownercheck(relid, role)
#define database_ownercheck_compat(dbid, role) pg_database_ownercheck(dbid, role)
#endif

/* 15 wants shared memory asked for in a hook; 14 has none and takes it in _PG_init */
#if PG_VERSION_NUM >= 150000
#define request_shmem_compat(previous, request) \
	((previous) = shmem_request_hook, shmem_request_hook = (request))
#else
#define request_shmem_compat(previous, request) ((previous) = NULL, (request) ())
#endif

/* 17 lets a resource owner free a set; ours live as long as their worker */
#if PG_VERSION_NUM >= 170000
#define CreateWaitEventSet_compat(nevents) CreateWaitEventSet(NULL, nevents)
#else
#define CreateWaitEventSet_compat(nevents) CreateWaitEventSet(TopMemoryContext, nevents)
#endif

/* 17 allows internal subtransactions while parallel workers run */
#if PG_VERSION_NUM >= 170000
#define SUBTRANSACTION_IN_PARALLEL_MODE_compat true
#else
#define SUBTRANSACTION_IN_PARALLEL_MODE_compat false
#endif

/* 15 has a function for the timeline that WAL is written to; before, RecoveryInProgress() set it */
#if PG_VERSION_NUM >= 150000
#define GetWALInsertionTimeLine_compat() GetWALInsertionTimeLine()
#else
#define GetWALInsertionTimeLine_compat() ((void) RecoveryInProgress(), ThisTimeLineID)
#endif

/* 16 has one function for all kinds of objects (see above) */
#if PG_VERSION_NUM >= 160000
#define server_ownercheck_compat(server, role) object_ownercheck(ForeignServerRelationId, server, role)
#define server_aclcheck_compat(server, role, mode) object_aclcheck(ForeignServerRelationId, server, role, mode)
#else
#define server_ownercheck_compat(server, role) pg_foreign_server_ownercheck(server, role)
#define server_aclcheck_compat(server, role, mode) pg_foreign_server_aclcheck(server, role, mode)
#endif

/* 16 split the reading of a whole piece off; before it, the length had to be checked */
#if PG_VERSION_NUM >= 160000
#define BufFileReadExact_compat(file, to, len) BufFileReadExact(file, to, len)
#else
#define BufFileReadExact_compat(file, to, len) \
	do { \
		if (BufFileRead(file, to, len) != (len)) \
			ereport(ERROR, \
					(errcode_for_file_access(), \
					 errmsg("could not read from a temporary file"))); \
	} while (0)
#endif

/*
 * 16 keeps the user whose rights count apart from the range table.  Relations that
 * rows are routed to have no entry of their own before it.
 */
#if PG_VERSION_NUM >= 160000
#define foreign_modify_user(rri, estate) \
	(OidIsValid(ExecGetResultRelCheckAsUser(rri, estate)) ? \
	 ExecGetResultRelCheckAsUser(rri, estate) : GetUserId())
#else
#define foreign_modify_rte(rri, estate) \
	exec_rt_fetch((rri)->ri_RangeTableIndex != 0 ? (rri)->ri_RangeTableIndex : \
				  (rri)->ri_RootResultRelInfo != NULL ? (rri)->ri_RootResultRelInfo->ri_RangeTableIndex : 1, \
				  estate)
#define foreign_modify_user(rri, estate) \
	(OidIsValid(foreign_modify_rte(rri, estate)->checkAsUser) ? \
	 foreign_modify_rte(rri, estate)->checkAsUser : GetUserId())
#endif

#endif							/* UK_COMPAT_H */
