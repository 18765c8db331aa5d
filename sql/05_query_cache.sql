-- The cache of query embeddings: the vector of a query that was asked a moment ago, so that asking again calls no model.
-- A row belongs to whoever asked: nobody is answered by another's vector, or learns what another asked. Of the query it
-- holds the digest only. The table is unlogged: a crash empties it, and a standby has none; the model is asked then.

-- _query_digest: what a query is found by in the cache. The bytes count: another spelling has another vector.
CREATE OR REPLACE FUNCTION hindsight._query_digest(query text)
  RETURNS bytea
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN pg_catalog.sha256(pg_catalog.convert_to(query, 'UTF8'));

-- _query_cache_limit: about how many embeddings are kept in this database: of 384 dimensions 25 MB.
CREATE OR REPLACE FUNCTION hindsight._query_cache_limit()
  RETURNS integer
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN 10000;

-- cached_embedding: the caller's embedding of a query by that model, NULL where none is kept. Stable: runs on a hot standby.
CREATE OR REPLACE FUNCTION hindsight.cached_embedding(model text, query text)
  RETURNS vector
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
  SET enable_seqscan = off
AS $$
BEGIN
  IF pg_is_in_recovery() THEN -- where an unlogged table can't be read
    RETURN NULL;
  END IF;
  RETURN (SELECT q.embedding FROM query_embedding AS q JOIN embedding_model AS r ON r.model_id = q.model_id
          WHERE r.name = cached_embedding.model AND q.principal = principal()
            AND q.digest = _query_digest(cached_embedding.query) AND q.expires_at > statement_timestamp());
END
$$;
COMMENT ON FUNCTION hindsight.cached_embedding(text, text) IS
  'The caller''s embedding of a query by that model, as cache_embedding has kept it; NULL where there is none.';

-- cache_embedding: keeps the caller's embedding of a query for some seconds. False where nothing can be written.
-- Expired ones go at each call, the oldest beyond the limit at one of fifty on average: finding them reads the index of
-- all, 6 ms at the limit. At most 1,000 go at a time and none that another writer is at, so that no call takes long or waits.
-- Raises HM004 (bad argument), HM005 (bad query), HM010 (embedding of the wrong size), HM012 (unknown model).
CREATE OR REPLACE FUNCTION hindsight.cache_embedding(
  model text, query text, embedding vector, seconds double precision DEFAULT 300)
  RETURNS boolean
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
  SET enable_seqscan = off
AS $$
DECLARE
  used embedding_model;
  kept_from timestamptz := statement_timestamp();
BEGIN
  IF seconds IS NULL OR seconds NOT BETWEEN 1 AND 86400 THEN -- NaN sorts above every number
    RAISE EXCEPTION 'seconds must lie between 1 and 86400, got %', coalesce(seconds::text, 'NULL')
      USING ERRCODE = 'HM004', HINT = 'A query is asked again within minutes, or not at all.';
  END IF;
  PERFORM _check_text('query', query, 10000), _check_principal(principal());
  used := _bank_model(NULL, cache_embedding.model);
  IF embedding IS NULL THEN
    RAISE EXCEPTION 'there is no embedding' USING ERRCODE = 'HM010', HINT = 'Embed the query with the bank''s own model.';
  END IF;
  PERFORM _check_embedding(embedding, used);
  IF current_setting('transaction_read_only')::boolean THEN
    RETURN false;
  END IF;
  INSERT INTO query_embedding (principal, model_id, digest, embedding, expires_at)
    VALUES (principal(), used.model_id, _query_digest(query), embedding, statement_timestamp() + make_interval(secs => seconds))
    ON CONFLICT ON CONSTRAINT query_embedding_pkey
      DO UPDATE SET embedding = excluded.embedding, expires_at = excluded.expires_at;
  IF random() < 0.02 THEN
    kept_from := greatest(kept_from, (SELECT q.expires_at FROM query_embedding AS q
                                      ORDER BY q.expires_at DESC OFFSET _query_cache_limit() LIMIT 1));
  END IF;
  DELETE FROM query_embedding AS q WHERE q.ctid = ANY (ARRAY(
    SELECT o.ctid FROM query_embedding AS o WHERE o.expires_at <= kept_from
    ORDER BY o.expires_at LIMIT 1000
    FOR UPDATE SKIP LOCKED));
  RETURN true;
END
$$;
COMMENT ON FUNCTION hindsight.cache_embedding(text, text, vector, double precision) IS
  'Keeps the caller''s embedding of a query for some seconds; false where nothing can be written.';
