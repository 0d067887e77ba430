-- === the extension, and nothing undocumented in it ===
CREATE EXTENSION upsert_kafka;
SELECT extname, extversion, nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = extnamespace WHERE extname = 'upsert_kafka';

-- every function, table, view, wrapper, server and type that is meant for users tells what it is for: no rows
SELECT pg_describe_object(d.classid, d.objid, 0) AS object_without_comment
  FROM pg_depend d JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
 WHERE e.extname = 'upsert_kafka' AND d.deptype = 'e'
   AND obj_description(d.objid, d.classid::regclass::name) IS NULL
   AND d.classid IN ('pg_proc'::regclass, 'pg_class'::regclass, 'pg_foreign_data_wrapper'::regclass, 'pg_foreign_server'::regclass)
   AND NOT EXISTS (SELECT FROM pg_class c WHERE d.classid = 'pg_class'::regclass AND c.oid = d.objid AND c.relkind IN ('i', 'S', 'c'))
 ORDER BY 1;

-- functions find their own objects, whatever the caller's search_path: no rows
SELECT p.oid::regprocedure AS definer_function_without_search_path
  FROM pg_proc p JOIN pg_namespace n ON n.oid = pronamespace
 WHERE n.nspname = 'upsert_kafka' AND p.prosecdef AND NOT coalesce(p.proconfig::text LIKE '%search_path=%', false)
 ORDER BY 1;

-- what is defined twice is refused
CREATE EXTENSION upsert_kafka;

-- what is built in: the client and its codecs (H07)
SELECT library, librdkafka ~ '^\d+\.\d+\.\d+' AS "librdkafka is told", features LIKE '%gzip%' AS "with gzip" FROM upsert_kafka.version();
