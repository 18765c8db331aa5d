-- Who may call what. Names that begin with _ are internal: only the owner calls them, but for the immutable ones, which read
-- nothing: the formula and the text functions, which everybody may call, are made of them.
-- hindsight_reader calls what reads; hindsight_app also what writes; hindsight_service the same, and may act for others (principal).
-- Rights on a bank are checked by the functions.
-- The cache of query embeddings is for both: what a reader keeps there nobody else is shown.

REVOKE ALL ON ALL ROUTINES IN SCHEMA hindsight FROM PUBLIC;
GRANT USAGE ON SCHEMA hindsight TO hindsight_app, hindsight_service, hindsight_reader;

DO $grants$
DECLARE
  entry regprocedure;
  is_reader boolean;
  vector_schema constant text := (SELECT extnamespace::regnamespace::text FROM pg_catalog.pg_extension WHERE extname = 'vector');
BEGIN
  FOR entry, is_reader IN
    SELECT p.oid::regprocedure, p.provolatile <> 'v' OR p.proname IN ('cache_embedding', 'sample_memories')
    FROM pg_catalog.pg_proc AS p
    WHERE p.pronamespace = 'hindsight'::regnamespace AND (p.proname !~ '^_' OR p.provolatile = 'i')
  LOOP
    EXECUTE pg_catalog.format('GRANT EXECUTE ON ROUTINE %s TO hindsight_app, hindsight_service', entry);
    IF is_reader THEN
      EXECUTE pg_catalog.format('GRANT EXECUTE ON ROUTINE %s TO hindsight_reader', entry);
    END IF;
  END LOOP;

  -- Where the DBA has put pgvector elsewhere, the pinned search_path names that schema instead of public.
  IF vector_schema <> 'public' THEN
    FOR entry IN
      SELECT p.oid::regprocedure
      FROM pg_catalog.pg_proc AS p
      WHERE p.pronamespace = 'hindsight'::regnamespace
        AND 'search_path=pg_catalog, hindsight, public, pg_temp' = ANY (p.proconfig)
    LOOP
      EXECUTE pg_catalog.format('ALTER FUNCTION %s SET search_path = pg_catalog, hindsight, %s, pg_temp', entry, vector_schema);
    END LOOP;
  END IF;
END
$grants$;

-- The second wall: whoever selects from a table sees only the banks that it was granted.
GRANT SELECT ON ALL TABLES IN SCHEMA hindsight TO hindsight_app, hindsight_service, hindsight_reader;
GRANT EXECUTE ON FUNCTION hindsight._readable_banks() TO hindsight_app, hindsight_service, hindsight_reader;
REVOKE ALL ON hindsight.access_token FROM hindsight_app, hindsight_service, hindsight_reader;
