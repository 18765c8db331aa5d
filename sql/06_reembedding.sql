-- Changing a bank's embedding model while it goes on answering. Three steps, each resumable:
--   embedding: every memory gets a vector of the new model in next_embedding, and recall knows nothing of it;
--   switched: one row of bank changes. Recall compares with the new vectors there, and queries of the old model with the old ones in
--     memory, all of which are there still: services may change over one by one;
--   settling: the new vectors move into memory, in small batches, and take the old ones' place.

-- _lacking: how many memories lack a vector of the model that the bank is changing to; refused ones count unless told.
CREATE OR REPLACE FUNCTION hindsight._lacking(opened hindsight.bank, without_failed boolean)
  RETURNS bigint
  LANGUAGE plpgsql STABLE
AS $$
BEGIN
  RETURN (
    SELECT count(*)
    FROM hindsight.current_memory AS m
    LEFT JOIN hindsight.next_embedding AS n
      ON n.bank_id = m.bank_id AND n.memory_id = m.memory_id AND n.model_id = opened.other_model_id AND n.digest = m.digest
    WHERE m.bank_id = opened.bank_id AND n.embedding IS NULL AND NOT (without_failed AND n.last_error IS NOT NULL));
END
$$;

-- _queue_for_embedding: puts what lacks a vector of the coming model among what waits for one: at the first claim all, later what has
-- been stored or changed meanwhile. Returns how many are new there.
CREATE OR REPLACE FUNCTION hindsight._queue_for_embedding(opened hindsight.bank)
  RETURNS bigint
  LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  queued bigint;
BEGIN
  INSERT INTO hindsight.next_embedding AS n (bank_id, memory_id, model_id, digest)
    SELECT m.bank_id, m.memory_id, opened.other_model_id, m.digest
    FROM hindsight.current_memory AS m
    LEFT JOIN hindsight.next_embedding AS o
      ON o.bank_id = m.bank_id AND o.memory_id = m.memory_id AND o.model_id = opened.other_model_id AND o.digest = m.digest
    WHERE m.bank_id = opened.bank_id AND o.memory_id IS NULL
    ORDER BY m.memory_id
    ON CONFLICT ON CONSTRAINT next_embedding_pkey
      DO UPDATE SET digest = excluded.digest, embedding = NULL, attempts = 0, not_before = excluded.not_before, is_claimed = false,
                    last_error = NULL;
  GET DIAGNOSTICS queued = ROW_COUNT;
  RETURN queued;
END
$$;

-- _changing: the bank, locked for whoever changes its model: writers with vectors are waited for, and wait.
CREATE OR REPLACE FUNCTION hindsight._changing(opened hindsight.bank)
  RETURNS hindsight.bank
  LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
  PERFORM pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('hindsight.model', opened.bank_id));
  SELECT b.* INTO opened FROM hindsight.bank AS b WHERE b.bank_id = opened.bank_id FOR NO KEY UPDATE;
  RETURN opened;
END
$$;

-- begin_reembedding: lets a bank change to another registered model: from now on claim_unembedded gives out its memories for that one.
-- Returns how many lack its vector. Again with the same model it changes nothing. A bank without a model has that one at once.
-- Raises HM001, HM003, HM006 (it is changing to another model), HM012.
CREATE OR REPLACE FUNCTION hindsight.begin_reembedding(bank text, model text)
  RETURNS bigint
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
  SET enable_seqscan = off
AS $$
DECLARE
  opened hindsight.bank := _open_bank(bank, 'owner');
  named constant embedding_model := _registered(model);
  lacking bigint;
BEGIN
  IF opened.model_id IS NULL THEN
    PERFORM _adopt_model(opened, model);
  END IF;
  opened.other_model_id := named.model_id;
  lacking := _lacking(opened, false); -- before the lock, for which writers wait
  opened := _changing(opened);
  IF opened.reembedding IS NOT NULL AND NOT (opened.reembedding = 'embedding' AND opened.other_model_id = named.model_id)
     AND NOT (opened.switched_at IS NOT NULL AND opened.model_id = named.model_id) THEN
    RAISE EXCEPTION 'bank % is changing its model already: %', quote_literal(opened.name),
        (SELECT format(CASE WHEN opened.switched_at IS NULL THEN 'from %L to %L' ELSE 'from %2$L to %1$L' END, held.name, other.name)
         FROM embedding_model AS held, embedding_model AS other
         WHERE held.model_id = opened.model_id AND other.model_id = opened.other_model_id)
      USING ERRCODE = 'HM006', HINT = 'Finish that first (hindsight reembed), or give it up (hindsight reembed --cancel).';
  END IF;
  IF named.model_id = opened.model_id THEN
    RETURN (SELECT count(*) FROM current_memory AS m WHERE m.bank_id = opened.bank_id AND m.embedding IS NULL);
  END IF;
  IF opened.reembedding IS NULL THEN
    PERFORM _make_index(named);
    UPDATE bank AS b SET reembedding = 'embedding', other_model_id = named.model_id WHERE b.bank_id = opened.bank_id;
    PERFORM _record(opened.bank_id, 'begin_reembedding', NULL, model);
  END IF;
  RETURN lacking;
END
$$;
COMMENT ON FUNCTION hindsight.begin_reembedding(text, text) IS
  'Lets a bank change to another embedding model, while it goes on answering; returns how many memories lack its vector.';

-- finish_reembedding: switches the bank to its new model, if every memory has its vector; what was refused stands in the way unless
-- without_failed: then it is found by its words. outcome: embedding (waiting says how many lack one still), indexed (call it again: an
-- index was built, in a transaction of its own, so that nobody waits for it but who embeds), switched, or settled (nothing is going on:
-- of several who do this at once, another one has done it all). Raises HM001, HM003.
CREATE OR REPLACE FUNCTION hindsight.finish_reembedding(
  bank text, without_failed boolean DEFAULT false, OUT outcome text, OUT waiting bigint)
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
  SET enable_seqscan = off
AS $$
DECLARE
  opened hindsight.bank := _open_bank(bank, 'owner');
  coming embedding_model;
BEGIN
  outcome := CASE WHEN opened.reembedding IS NULL THEN 'settled' ELSE 'switched' END;
  waiting := 0;
  IF opened.reembedding IS DISTINCT FROM 'embedding' THEN
    RETURN;
  END IF;
  outcome := 'embedding';
  waiting := _lacking(opened, coalesce(without_failed, false));
  IF waiting > 0 THEN
    RETURN;
  END IF;
  SELECT r.* INTO coming FROM embedding_model AS r WHERE r.model_id = opened.other_model_id;
  IF to_regclass(_next_index_name(coming)) IS NULL
     AND EXISTS (SELECT FROM live_memory AS m WHERE m.bank_id = opened.bank_id OFFSET _exact_limit() / 2) THEN -- it may grow
    outcome := 'indexed';
    PERFORM pg_advisory_xact_lock(hashtextextended('hindsight.next_index', coming.model_id)); -- whoever comes second finds it
    EXECUTE format(
      'CREATE INDEX IF NOT EXISTS next_embedding_%1$s_idx ON next_embedding USING hnsw ((embedding::halfvec(%2$s)) halfvec_cosine_ops) '
      'WITH (m = %3$s, ef_construction = %4$s) WHERE model_id = %1$s',
      coming.model_id, coming.dimensions, coming.hnsw_m, coming.hnsw_ef_construction);
    RETURN;
  END IF;
  opened := _changing(opened);
  IF opened.reembedding IS DISTINCT FROM 'embedding' THEN -- somebody was faster
    outcome := CASE WHEN opened.reembedding IS NULL THEN 'settled' ELSE 'switched' END;
    RETURN;
  END IF;
  waiting := _lacking(opened, coalesce(without_failed, false)); -- nobody can store a vector now
  IF waiting = 0 THEN
    outcome := 'switched';
    UPDATE bank AS b
      SET model_id = opened.other_model_id, other_model_id = opened.model_id, reembedding = 'switched', switched_at = clock_timestamp()
      WHERE b.bank_id = opened.bank_id;
    PERFORM _record(opened.bank_id, 'finish_reembedding', NULL, coming.name);
  END IF;
END
$$;
COMMENT ON FUNCTION hindsight.finish_reembedding(text, boolean) IS
  'Switches a bank to its new embedding model once every memory has its vector: embedding, indexed (call again) or switched.';

-- _next_index_name: the HNSW index of a model's vectors that stand beside.
CREATE OR REPLACE FUNCTION hindsight._next_index_name(registered hindsight.embedding_model)
  RETURNS text
  LANGUAGE sql IMMUTABLE
RETURN 'hindsight.next_embedding_' || registered.model_id || '_idx';

-- _has_settled: whether no memory of a bank that has switched its model has a vector to move.
CREATE OR REPLACE FUNCTION hindsight._has_settled(opened hindsight.bank)
  RETURNS boolean
  LANGUAGE plpgsql STABLE
AS $$
BEGIN
  RETURN NOT EXISTS (
    SELECT FROM hindsight.memory AS m
    WHERE m.bank_id = opened.bank_id
      AND (m.model_id = opened.other_model_id
           OR (m.model_id IS NULL AND hindsight._embedding_beside(opened.bank_id, m.memory_id, m.digest, opened.model_id) IS NOT NULL)));
END
$$;

-- _is_indexed: whether the vectors that have settled are in their index. Where it was dropped (settling_indexes) and is not there again,
-- it is made now, and writers wait. false: somebody is making it. Raises HM006 (it was not made to its end).
CREATE OR REPLACE FUNCTION hindsight._is_indexed(opened hindsight.bank)
  RETURNS boolean
  LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  held hindsight.embedding_model;
  index_id regclass;
BEGIN
  SELECT r.* INTO held FROM hindsight.embedding_model AS r WHERE r.model_id = opened.model_id;
  PERFORM hindsight._make_index(held);
  index_id := pg_catalog.to_regclass(hindsight._index_name(held));
  IF EXISTS (SELECT FROM pg_catalog.pg_index AS i WHERE i.indexrelid = index_id AND i.indisvalid) THEN
    RETURN true;
  ELSIF NOT EXISTS (SELECT FROM pg_catalog.pg_stat_progress_create_index AS p WHERE p.index_relid = index_id) THEN
    RAISE EXCEPTION 'the index % was not made to its end', index_id
      USING ERRCODE = 'HM006', HINT = pg_catalog.format('Whoever owns it runs: REINDEX INDEX CONCURRENTLY %s; hindsight reembed does.', index_id);
  END IF;
  RETURN false;
END
$$;

-- settle_embeddings: after the switch: moves the new vectors of at most so many memories into their rows, from one on, and returns
-- the last one, to go on from; NULL at the end of the bank. Vectors of the old model go; who embeds with it is refused from then on. A
-- memory that a writer is at is left for the next round. Once all have settled the change is over, and is_done; it is where none goes on.
-- Raises HM001, HM003, HM004, HM006 (not switched, or their index was not made to its end).
CREATE OR REPLACE FUNCTION hindsight.settle_embeddings(
  bank text, after uuid DEFAULT NULL, most integer DEFAULT 100, OUT settled integer, OUT last_id uuid, OUT is_done boolean)
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
  SET enable_seqscan = off
AS $$
DECLARE
  opened hindsight.bank := _open_bank(bank, 'owner');
  ids uuid[];
  made halfvec[];
BEGIN
  PERFORM _check_most(most);
  IF opened.reembedding = 'switched' THEN
    opened := _changing(opened);
    UPDATE bank AS b SET reembedding = 'settling' WHERE b.bank_id = opened.bank_id AND b.reembedding = 'switched';
  ELSIF opened.reembedding IS NULL THEN
    settled := 0;
    is_done := true;
    RETURN;
  ELSIF opened.reembedding = 'embedding' THEN
    RAISE EXCEPTION 'bank % has not switched to another model', quote_literal(opened.name)
      USING ERRCODE = 'HM006', HINT = 'hindsight.finish_reembedding does, once every memory has its new vector.';
  END IF;
  SELECT array_agg(s.memory_id), array_agg(s.embedding) INTO ids, made
    FROM (SELECT m.memory_id, n.embedding
          FROM memory AS m
          LEFT JOIN next_embedding AS n
            ON n.bank_id = m.bank_id AND n.memory_id = m.memory_id AND n.model_id = opened.model_id AND n.digest = m.digest
          WHERE m.bank_id = opened.bank_id AND m.memory_id > coalesce(after, '00000000-0000-0000-0000-000000000000')
            AND (m.model_id = opened.other_model_id OR (m.model_id IS NULL AND n.embedding IS NOT NULL))
          ORDER BY m.memory_id
          LIMIT most
          FOR NO KEY UPDATE OF m SKIP LOCKED) AS s;
  UPDATE memory AS m SET embedding = s.embedding, model_id = CASE WHEN s.embedding IS NOT NULL THEN opened.model_id END
    FROM unnest(ids, made) AS s(memory_id, embedding)
    WHERE m.bank_id = opened.bank_id AND m.memory_id = s.memory_id;
  settled := coalesce(cardinality(ids), 0);
  last_id := ids[settled];
  is_done := false;
  IF settled = 0 AND after IS NULL THEN -- a whole round found nothing
    opened := _changing(opened);
    is_done := _has_settled(opened) AND (opened.reembedding IS NULL OR _is_indexed(opened));
    IF is_done AND opened.reembedding = 'settling' THEN
      DELETE FROM next_embedding AS n WHERE n.bank_id = opened.bank_id AND (n.embedding IS NOT NULL OR n.model_id <> opened.model_id);
      UPDATE bank AS b SET reembedding = NULL, other_model_id = NULL, switched_at = NULL WHERE b.bank_id = opened.bank_id;
      PERFORM _record(opened.bank_id, 'settle_embeddings');
    END IF;
  END IF;
END
$$;
COMMENT ON FUNCTION hindsight.settle_embeddings(text, uuid, integer) IS
  'After the switch to a new embedding model: moves the new vectors of at most so many memories into their rows; is_done: all have.';

-- cancel_reembedding: gives up a change of model before its switch: the new vectors go, the old ones were never touched. Returns how
-- many vectors went. Raises HM001, HM003, HM006 (nothing to give up, or it has switched).
CREATE OR REPLACE FUNCTION hindsight.cancel_reembedding(bank text)
  RETURNS bigint
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
  SET enable_seqscan = off
AS $$
DECLARE
  opened hindsight.bank := _open_bank(bank, 'owner');
  dropped bigint;
BEGIN
  opened := _changing(opened);
  IF opened.reembedding IS DISTINCT FROM 'embedding' THEN
    RAISE EXCEPTION 'bank % is not being embedded anew%', quote_literal(opened.name),
        CASE WHEN opened.switched_at IS NOT NULL THEN ' any more: it has switched to its new model' ELSE '' END
      USING ERRCODE = 'HM006', HINT = 'hindsight.embedding_status says where it is.';
  END IF;
  WITH gone AS (
    DELETE FROM next_embedding AS n WHERE n.bank_id = opened.bank_id AND n.model_id = opened.other_model_id RETURNING n.embedding
  )
  SELECT count(g.embedding) INTO dropped FROM gone AS g;
  UPDATE bank AS b SET reembedding = NULL, other_model_id = NULL WHERE b.bank_id = opened.bank_id;
  PERFORM _record(opened.bank_id, 'cancel_reembedding');
  RETURN dropped;
END
$$;
COMMENT ON FUNCTION hindsight.cancel_reembedding(text) IS
  'Gives up a change of embedding model before its switch; the old vectors were never touched. Returns how many new ones went.';
