-- Run before every migration, by whoever migrates: roles, extensions and the schema, made only where missing.
-- A role that may not create them is told what a DBA has to run; where they exist already nothing is needed.

DO $prepare$
DECLARE
  role_name text;
  extension_name text;
  vector_schema text;
BEGIN
  IF pg_catalog.current_setting('server_version_num')::int < 160000 THEN
    RAISE EXCEPTION 'PostgreSQL 16 or later is needed, this is %', pg_catalog.current_setting('server_version')
      USING ERRCODE = 'feature_not_supported', HINT = 'Upgrade the server, or use the embedded one.';
  END IF;
  IF pg_catalog.current_setting('server_encoding') <> 'UTF8' THEN
    RAISE EXCEPTION 'this database is encoded in %, Hindsight needs UTF8', pg_catalog.current_setting('server_encoding')
      USING ERRCODE = 'feature_not_supported', HINT = 'CREATE DATABASE … ENCODING ''UTF8'' TEMPLATE template0;';
  END IF;

  FOREACH role_name IN ARRAY ARRAY['hindsight_owner', 'hindsight_app', 'hindsight_service', 'hindsight_reader'] LOOP
    CONTINUE WHEN EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = role_name);
    BEGIN
      EXECUTE pg_catalog.format('CREATE ROLE %I NOLOGIN', role_name);
    EXCEPTION
      WHEN duplicate_object OR unique_violation THEN
        NULL; -- roles belong to the cluster: another database was migrated at the same moment
      WHEN insufficient_privilege THEN
        RAISE EXCEPTION 'role "%" does not exist and "%" may not create roles', role_name, current_user
          USING ERRCODE = 'insufficient_privilege',
                HINT = 'Ask a DBA to run: CREATE ROLE hindsight_owner NOLOGIN; CREATE ROLE hindsight_app NOLOGIN; '
                       'CREATE ROLE hindsight_service NOLOGIN; CREATE ROLE hindsight_reader NOLOGIN; GRANT hindsight_owner TO '
                       || pg_catalog.quote_ident(current_user) || ';';
    END;
  END LOOP;

  IF NOT pg_catalog.pg_has_role(current_user, 'hindsight_owner', 'SET') THEN
    BEGIN
      EXECUTE pg_catalog.format('GRANT hindsight_owner TO %I', current_user);
    EXCEPTION WHEN insufficient_privilege THEN
      RAISE EXCEPTION '"%" may not act as hindsight_owner, which owns the schema', current_user
        USING ERRCODE = 'insufficient_privilege',
              HINT = 'Ask a DBA to run: GRANT hindsight_owner TO ' || pg_catalog.quote_ident(current_user) || ';';
    END;
  END IF;

  FOREACH extension_name IN ARRAY ARRAY['vector', 'btree_gin'] LOOP
    CONTINUE WHEN EXISTS (SELECT FROM pg_catalog.pg_extension WHERE extname = extension_name);
    BEGIN
      EXECUTE pg_catalog.format('CREATE EXTENSION IF NOT EXISTS %I', extension_name);
    EXCEPTION
      WHEN insufficient_privilege THEN
        RAISE EXCEPTION 'extension "%" is not installed in this database and "%" may not create it',
            extension_name, current_user
          USING ERRCODE = 'insufficient_privilege',
                HINT = 'Ask a DBA to run: CREATE EXTENSION vector; CREATE EXTENSION btree_gin;';
      WHEN undefined_file OR feature_not_supported THEN
        RAISE EXCEPTION 'extension "%" is not available on this server', extension_name
          USING ERRCODE = 'feature_not_supported',
                HINT = 'Install pgvector 0.8 or later, and the contrib package that carries btree_gin.';
    END;
  END LOOP;

  IF (SELECT pg_catalog.string_to_array(pg_catalog.regexp_replace(extversion, '[^0-9.].*$', ''), '.')::int[]
      FROM pg_catalog.pg_extension WHERE extname = 'vector') < ARRAY[0, 8] THEN
    RAISE EXCEPTION 'pgvector 0.8 or later is needed, this database has %',
        (SELECT extversion FROM pg_catalog.pg_extension WHERE extname = 'vector')
      USING ERRCODE = 'feature_not_supported', HINT = 'ALTER EXTENSION vector UPDATE;';
  END IF;

  IF pg_catalog.to_regnamespace('hindsight') IS NULL THEN
    CREATE SCHEMA hindsight AUTHORIZATION hindsight_owner;
  END IF;

  -- Unqualified names of the migration: ours, then pgvector's, wherever the DBA has put it.
  SELECT extnamespace::regnamespace::text INTO vector_schema FROM pg_catalog.pg_extension WHERE extname = 'vector';
  PERFORM pg_catalog.set_config('search_path', 'hindsight, ' || vector_schema, true);
  EXECUTE 'SELECT ''[1]''::vector'; -- loads pgvector, so that its settings are known to those who set them
  -- The functions' search_path ends with that schema: what a stranger creates there would run as hindsight_owner.
  IF EXISTS (SELECT FROM pg_catalog.pg_namespace AS n, pg_catalog.aclexplode(n.nspacl) AS a
             WHERE n.oid = vector_schema::regnamespace AND a.grantee = 0 AND a.privilege_type = 'CREATE') THEN
    RAISE EXCEPTION 'everybody may create objects in schema %, where pgvector is installed', vector_schema
      USING ERRCODE = 'insufficient_privilege',
            HINT = 'Run: REVOKE CREATE ON SCHEMA ' || vector_schema || ' FROM PUBLIC; (PostgreSQL before 15 granted it.)';
  END IF;
  IF NOT pg_catalog.has_schema_privilege('hindsight_owner', vector_schema, 'USAGE') THEN
    BEGIN
      EXECUTE 'GRANT USAGE ON SCHEMA ' || vector_schema || ' TO hindsight_owner, hindsight_app, hindsight_service, hindsight_reader';
    EXCEPTION WHEN insufficient_privilege THEN
      RAISE EXCEPTION 'hindsight_owner may not use schema %, where pgvector is installed', vector_schema
        USING ERRCODE = 'insufficient_privilege',
              HINT = 'Ask a DBA to run: GRANT USAGE ON SCHEMA ' || vector_schema
                     || ' TO hindsight_owner, hindsight_app, hindsight_service, hindsight_reader;';
    END;
  END IF;
END
$prepare$;

-- Types and tables named in a function's body may come later in the same migration.
SET LOCAL check_function_bodies = off;
SET LOCAL ROLE hindsight_owner;
