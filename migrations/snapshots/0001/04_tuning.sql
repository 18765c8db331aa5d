-- Tuning: what an operator reads and changes of an embedding model: its thresholds and its index. Both hold for every
-- bank of the model, so neither is a right on a bank.

-- _check_operator: raises HM003 unless the caller may act as hindsight_owner, for itself.
CREATE OR REPLACE FUNCTION hindsight._check_operator()
  RETURNS void
  LANGUAGE plpgsql STABLE
AS $$
BEGIN
  IF hindsight.principal() <> session_user OR NOT pg_catalog.pg_has_role(session_user, 'hindsight_owner', 'MEMBER') THEN
    RAISE EXCEPTION '% is no operator: an embedding model, or a month of turns, is of every bank', pg_catalog.quote_literal(hindsight.principal())
      USING ERRCODE = 'HM003', HINT = 'Log in as an operator, a member of the role hindsight_owner.';
  END IF;
END
$$;

-- _registered: a model by its name. Raises HM012.
CREATE OR REPLACE FUNCTION hindsight._registered(model text)
  RETURNS hindsight.embedding_model
  LANGUAGE plpgsql STABLE
AS $$
DECLARE
  registered hindsight.embedding_model;
BEGIN
  SELECT * INTO registered FROM hindsight.embedding_model AS r WHERE r.name = model;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'unknown embedding model %', coalesce(pg_catalog.quote_literal(model), 'NULL')
      USING ERRCODE = 'HM012',
            HINT = coalesce('Registered: ' || (SELECT pg_catalog.string_agg(r.name, ', ' ORDER BY r.name)
                                               FROM hindsight.embedding_model AS r) || '.',
                            'None is registered yet: the first memory with an embedding does it.');
  END IF;
  RETURN registered;
END
$$;

-- models: the registry, with the size of each model's index in bytes.
CREATE OR REPLACE FUNCTION hindsight.models()
  RETURNS TABLE (
    model text, dimensions integer, floor double precision, recall_threshold double precision, merge_threshold double precision,
    m integer, ef_construction integer, ef_search integer, index_bytes bigint)
  LANGUAGE sql STABLE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
AS $$
  SELECT r.name, r.dimensions, r.floor, r.recall_threshold, r.merge_threshold, r.hnsw_m, r.hnsw_ef_construction, r.hnsw_ef_search,
         pg_relation_size(to_regclass(_index_name(r)))
  FROM embedding_model AS r
  ORDER BY r.name
$$;
COMMENT ON FUNCTION hindsight.models() IS
  'The registered embedding models, with their thresholds and the settings and size of their indexes.';

-- set_thresholds: changes what is given of a model's cosines. The next recall goes by them, in every bank of the model.
-- Raises HM003 (not an operator), HM004, HM012.
CREATE OR REPLACE FUNCTION hindsight.set_thresholds(
  model text, floor double precision DEFAULT NULL, recall_threshold double precision DEFAULT NULL,
  merge_threshold double precision DEFAULT NULL)
  RETURNS void
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
AS $$
DECLARE
  changed embedding_model;
BEGIN
  PERFORM _check_operator();
  changed := _registered(model);
  changed.floor := coalesce(set_thresholds.floor, changed.floor);
  changed.recall_threshold := coalesce(set_thresholds.recall_threshold, changed.recall_threshold);
  changed.merge_threshold := coalesce(set_thresholds.merge_threshold, changed.merge_threshold);
  PERFORM _check_thresholds(changed.floor, changed.recall_threshold, changed.merge_threshold);
  UPDATE embedding_model AS r
    SET floor = changed.floor, recall_threshold = changed.recall_threshold, merge_threshold = changed.merge_threshold
    WHERE r.model_id = changed.model_id;
END
$$;
COMMENT ON FUNCTION hindsight.set_thresholds(text, double precision, double precision, double precision) IS
  'Changes a model''s floor, recall_threshold and merge_threshold, for operators. The next recall goes by them.';

-- set_index: changes what is given of a model's HNSW index. ef_search counts from the next recall; m and
-- ef_construction are of the index as it is built, so giving either builds it anew, at once: until the transaction ends
-- writers of memories wait (SHARE on the table), and so does recall (ACCESS EXCLUSIVE on the index, which every plan
-- looks at). With build_now => false nothing waits: set_index only notes the settings (ACCESS EXCLUSIVE on the index, for
-- a moment), and returns the statements that build it beside the old one (SHARE UPDATE EXCLUSIVE: memories are read and
-- written meanwhile), which cannot run in a transaction: hindsight index runs them, and so does \gexec in psql.
-- Raises HM003 (not an operator), HM004, HM012.
CREATE OR REPLACE FUNCTION hindsight.set_index(
  model text, m integer DEFAULT NULL, ef_construction integer DEFAULT NULL, ef_search integer DEFAULT NULL,
  build_now boolean DEFAULT true)
  RETURNS SETOF text
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
AS $$
DECLARE
  changed embedding_model;
  index_name text;
BEGIN
  PERFORM _check_operator();
  changed := _registered(model);
  changed.hnsw_m := coalesce(set_index.m, changed.hnsw_m);
  changed.hnsw_ef_construction := coalesce(set_index.ef_construction, changed.hnsw_ef_construction);
  changed.hnsw_ef_search := coalesce(set_index.ef_search, changed.hnsw_ef_search);
  PERFORM _check_index(changed.hnsw_m, changed.hnsw_ef_construction, changed.hnsw_ef_search);
  UPDATE embedding_model AS r
    SET hnsw_m = changed.hnsw_m, hnsw_ef_construction = changed.hnsw_ef_construction, hnsw_ef_search = changed.hnsw_ef_search
    WHERE r.model_id = changed.model_id;
  IF set_index.m IS NULL AND set_index.ef_construction IS NULL THEN
    RETURN;
  END IF;
  index_name := _index_name(changed);
  IF to_regclass(index_name) IS NULL THEN -- no bank has the model: its index is made with these settings for the first that takes it
    RETURN;
  END IF;
  EXECUTE format('ALTER INDEX %s SET (m = %s, ef_construction = %s)', index_name, changed.hnsw_m, changed.hnsw_ef_construction);
  IF build_now THEN
    EXECUTE format('REINDEX INDEX %s', index_name);
  ELSE -- a build that was broken off has left its index behind, which slows every write
    RETURN NEXT format('DROP INDEX CONCURRENTLY IF EXISTS %s_ccnew', index_name);
    RETURN NEXT format('REINDEX INDEX CONCURRENTLY %s', index_name);
  END IF;
END
$$;
COMMENT ON FUNCTION hindsight.set_index(text, integer, integer, integer, boolean) IS
  'Changes a model''s HNSW index, for operators, and builds it anew, or returns the statements that do.';

-- sample_memories: live memories of a bank that are embedded, drawn at random: those that follow a random digest in the
-- index of digests, and from the first on where it ends. SHA-256 puts them in an order that has nothing to do with what
-- they say, so a large bank costs no more than a small one, and a small one comes whole.
-- Raises HM001, HM003, HM004, HM011 (the bank's embeddings are not of the model that is named).
CREATE OR REPLACE FUNCTION hindsight.sample_memories(bank text, most integer DEFAULT 100, model text DEFAULT NULL)
  RETURNS TABLE (memory_id uuid, content text, embedding text)
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
  SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
  opened constant hindsight.bank := _open_bank(bank, 'reader');
  used constant embedding_model := _bank_model(opened, model);
  start constant bytea := uuid_send(gen_random_uuid());
BEGIN
  PERFORM _check_most(most);
  RETURN QUERY
    SELECT drawn.memory_id, drawn.content, drawn.embedding::text
    FROM (
      (SELECT m.memory_id, m.content, m.embedding
       FROM live_memory AS m
       WHERE m.bank_id = opened.bank_id AND m.digest >= start AND m.model_id = used.model_id
         AND (m.expires_at IS NULL OR m.expires_at > statement_timestamp())
       ORDER BY m.digest
       LIMIT most)
      UNION ALL
      (SELECT m.memory_id, m.content, m.embedding
       FROM live_memory AS m
       WHERE m.bank_id = opened.bank_id AND m.digest < start AND m.model_id = used.model_id
         AND (m.expires_at IS NULL OR m.expires_at > statement_timestamp())
       ORDER BY m.digest
       LIMIT most)) AS drawn
    LIMIT most;
END
$$;
COMMENT ON FUNCTION hindsight.sample_memories(text, integer, text) IS
  'Embedded live memories of a bank, drawn at random and cheaply: what hindsight calibrate measures.';
