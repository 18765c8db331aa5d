-- Embedding models: the registry, the index of each model's vectors, and the check of every vector that comes in.

-- _check_thresholds: raises HM004 unless the cosines of a model rise from unrelated to relevant to the same.
CREATE OR REPLACE FUNCTION hindsight._check_thresholds(
  floor double precision, recall_threshold double precision, merge_threshold double precision)
  RETURNS void
  LANGUAGE plpgsql IMMUTABLE
AS $$
BEGIN
  IF (floor >= -1 AND floor < recall_threshold AND recall_threshold < merge_threshold AND merge_threshold <= 1) IS NOT TRUE THEN
    RAISE EXCEPTION 'thresholds must rise within [-1, 1]: floor %, recall_threshold %, merge_threshold %',
        floor, recall_threshold, merge_threshold
      USING ERRCODE = 'HM004', HINT = 'They are cosines of the model; hindsight calibrate measures them.';
  END IF;
END
$$;

-- _check_index: raises HM004 unless pgvector can build an index with these numbers.
CREATE OR REPLACE FUNCTION hindsight._check_index(m integer, ef_construction integer, ef_search integer)
  RETURNS void
  LANGUAGE plpgsql IMMUTABLE
AS $$
BEGIN
  IF (m BETWEEN 2 AND 100) IS NOT TRUE THEN
    RAISE EXCEPTION 'm must lie between 2 and 100, got %', coalesce(m::text, 'NULL')
      USING ERRCODE = 'HM004', HINT = 'It is how many neighbours a vector is linked to: 24 by default, more where too little is found.';
  END IF;
  IF (ef_construction BETWEEN 4 AND 1000) IS NOT TRUE THEN
    RAISE EXCEPTION 'ef_construction must lie between 4 and 1000, got %', coalesce(ef_construction::text, 'NULL')
      USING ERRCODE = 'HM004', HINT = 'It is how many candidates are looked at to place a vector: 128 by default, at least twice m.';
  END IF;
  IF ef_construction < 2 * m THEN
    RAISE EXCEPTION 'ef_construction must be at least twice m: got % for m %', ef_construction, m
      USING ERRCODE = 'HM004',
            HINT = pg_catalog.format('Set ef_construction to %s or more, or m to %s or less.', 2 * m, ef_construction / 2);
  END IF;
  IF (ef_search BETWEEN 1 AND 1000) IS NOT TRUE THEN
    RAISE EXCEPTION 'ef_search must lie between 1 and 1000, got %', coalesce(ef_search::text, 'NULL')
      USING ERRCODE = 'HM004', HINT = 'It is how many candidates a search keeps: 80 by default; more find more and take longer.';
  END IF;
END
$$;

-- register_model: puts a model into the registry, makes its index, and returns its id; a registered one is returned
-- as it is (set_thresholds and set_index change it). floor, recall_threshold and merge_threshold are cosines of this
-- model: of unrelated texts, of relevant ones, and of texts that may say the same. m, ef_construction and ef_search
-- are pgvector's, of its HNSW index.
-- Raises HM004 (bad argument), HM011 (registered with other dimensions).
CREATE OR REPLACE FUNCTION hindsight.register_model(
  model text, dimensions integer, floor double precision DEFAULT 0,
  recall_threshold double precision DEFAULT NULL, merge_threshold double precision DEFAULT NULL,
  m integer DEFAULT 24, ef_construction integer DEFAULT 128, ef_search integer DEFAULT 80)
  RETURNS integer
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
AS $$
DECLARE
  registered embedding_model;
  from_cosine constant double precision := coalesce(recall_threshold, floor + 0.5 * (1 - floor));
  merge_cosine constant double precision := coalesce(merge_threshold, from_cosine + 0.75 * (1 - from_cosine));
BEGIN
  SELECT * INTO registered FROM embedding_model AS r WHERE r.name = register_model.model;
  IF NOT FOUND THEN
    PERFORM _check_text('model', model, 200);
    IF dimensions IS NULL OR dimensions NOT BETWEEN 1 AND 4000 THEN
      RAISE EXCEPTION 'model % cannot have % dimensions', quote_literal(model), coalesce(dimensions::text, 'NULL')
        USING ERRCODE = 'HM004', HINT = 'A half-precision HNSW index takes 1 to 4,000. Ask the model for shorter vectors.';
    END IF;
    PERFORM _check_thresholds(floor, from_cosine, merge_cosine), _check_index(m, ef_construction, ef_search);
    -- Two registering the same model: one waits here and finds it. The lock is the one that making the index needs.
    LOCK TABLE memory IN SHARE ROW EXCLUSIVE MODE;
    INSERT INTO embedding_model (
      name, dimensions, floor, recall_threshold, merge_threshold, hnsw_m, hnsw_ef_construction, hnsw_ef_search)
      VALUES (register_model.model, register_model.dimensions, register_model.floor, from_cosine, merge_cosine,
              m, ef_construction, ef_search)
      ON CONFLICT (name) DO NOTHING;
    SELECT * INTO registered FROM embedding_model AS r WHERE r.name = register_model.model;
    -- A partial expression index, so that models of several sizes share one column. It matches the live predicate
    -- to the letter (live_memory), and recall writes the same two numbers into its query.
    EXECUTE format(
      'CREATE INDEX IF NOT EXISTS memory_embedding_%1$s_idx ON memory USING hnsw ((embedding::halfvec(%2$s)) halfvec_cosine_ops) '
      'WITH (m = %3$s, ef_construction = %4$s) '
      'WHERE deleted_at IS NULL AND superseded_by IS NULL AND archived_at IS NULL AND pending_reason IS NULL AND model_id = %1$s',
      registered.model_id, registered.dimensions, registered.hnsw_m, registered.hnsw_ef_construction);
  END IF;
  IF registered.dimensions <> dimensions THEN
    RAISE EXCEPTION 'model % is registered with % dimensions, not %', quote_literal(model), registered.dimensions, dimensions
      USING ERRCODE = 'HM011', HINT = 'Vectors of another size are another model: register it under a name of its own.';
  END IF;
  RETURN registered.model_id;
END
$$;
COMMENT ON FUNCTION hindsight.register_model(text, integer, double precision, double precision, double precision, integer, integer,
    integer) IS
  'Puts an embedding model into the registry, makes the index of its vectors, and returns its id.';

-- _bank_model: the registered model of the given name, or the bank's when none is named. NULL when there is neither.
-- Raises HM011 (the bank holds another model's embeddings), HM012 (not registered).
CREATE OR REPLACE FUNCTION hindsight._bank_model(opened hindsight.bank, model text)
  RETURNS hindsight.embedding_model
  LANGUAGE plpgsql STABLE
AS $$
DECLARE
  held hindsight.embedding_model;
  named hindsight.embedding_model;
BEGIN
  SELECT * INTO held FROM hindsight.embedding_model AS r WHERE r.model_id = opened.model_id;
  IF model IS NULL THEN
    RETURN held;
  END IF;
  SELECT * INTO named FROM hindsight.embedding_model AS r WHERE r.name = model;
  IF NOT FOUND AND held.model_id IS NULL THEN
    RAISE EXCEPTION 'unknown embedding model %', pg_catalog.quote_literal(model)
      USING ERRCODE = 'HM012', HINT = 'Register it first: SELECT hindsight.register_model(model, dimensions, floor).';
  END IF;
  IF held.model_id IS NOT NULL AND held.model_id IS DISTINCT FROM named.model_id THEN
    RAISE EXCEPTION 'bank % holds embeddings of % (% dimensions), not of % (%)',
        pg_catalog.quote_literal(opened.name), pg_catalog.quote_literal(held.name), held.dimensions,
        pg_catalog.quote_literal(model), coalesce(named.dimensions || ' dimensions', 'not registered')
      USING ERRCODE = 'HM011',
            HINT = pg_catalog.format('Configure %s, or change the bank''s model and embed its memories anew: hindsight reembed --bank %s',
                                     pg_catalog.quote_literal(held.name), pg_catalog.quote_ident(opened.name));
  END IF;
  RETURN named;
END
$$;

-- _check_embedding: the vector, normalised and in half precision, if it is one of that model's.
-- Raises HM010 (wrong size, or all zero), HM012 (no model).
CREATE OR REPLACE FUNCTION hindsight._check_embedding(embedding vector, model hindsight.embedding_model)
  RETURNS halfvec
  LANGUAGE plpgsql IMMUTABLE
AS $$
BEGIN
  IF embedding IS NULL THEN
    RETURN NULL;
  END IF;
  IF model.model_id IS NULL THEN
    RAISE EXCEPTION 'an embedding came without its model, and the bank has none yet'
      USING ERRCODE = 'HM012', HINT = 'Name the model that made it: model => ''…'' (see hindsight.register_model).';
  END IF;
  IF vector_dims(embedding) <> model.dimensions THEN
    RAISE EXCEPTION 'the embedding has % dimensions, % has %', vector_dims(embedding),
        pg_catalog.quote_literal(model.name), model.dimensions
      USING ERRCODE = 'HM010', HINT = 'Embed with the bank''s own model.';
  END IF;
  IF vector_norm(embedding) = 0 THEN
    RAISE EXCEPTION 'the embedding is all zeros, which has no direction to compare'
      USING ERRCODE = 'HM010', HINT = 'Embed the text again, or store it without an embedding.';
  END IF;
  RETURN l2_normalize(embedding)::halfvec;
END
$$;

-- set_bank_model: makes another registered model the bank's. Its memories lose their embeddings, and are found by
-- words until embed_memory has given them new ones. Returns how many wait for that.
-- Raises HM001, HM003, HM012.
CREATE OR REPLACE FUNCTION hindsight.set_bank_model(bank text, model text)
  RETURNS bigint
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
AS $$
DECLARE
  opened hindsight.bank := _open_bank(bank, 'owner');
  named embedding_model;
  waiting bigint;
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended('hindsight.model', opened.bank_id)); -- waits for writers of the old model
  PERFORM _take_turns(opened.bank_id);
  SELECT b.* INTO opened FROM bank AS b WHERE b.bank_id = opened.bank_id FOR UPDATE;
  IF model IS NULL THEN
    RAISE EXCEPTION 'no embedding model was named' USING ERRCODE = 'HM012', HINT = 'SELECT name FROM hindsight.embedding_model;';
  END IF;
  opened.model_id := NULL;
  named := _bank_model(opened, model);
  UPDATE bank AS b SET model_id = named.model_id WHERE b.bank_id = opened.bank_id;
  UPDATE memory AS m SET embedding = NULL, model_id = NULL
    WHERE m.bank_id = opened.bank_id AND m.model_id <> named.model_id;
  PERFORM _record(opened.bank_id, 'set_bank_model', NULL, model);
  SELECT count(*) INTO waiting FROM current_memory AS m
    WHERE m.bank_id = opened.bank_id AND m.embedding IS NULL;
  RETURN waiting;
END
$$;
COMMENT ON FUNCTION hindsight.set_bank_model(text, text) IS
  'Makes another registered model the bank''s; its memories then wait for new embeddings. Returns how many.';

-- unembedded: memories that wait for an embedding, oldest first. Claimed until the transaction ends: others get others.
-- Raises HM001, HM003.
CREATE OR REPLACE FUNCTION hindsight.unembedded(bank text, most integer DEFAULT 100)
  RETURNS TABLE (memory_id uuid, version integer, content text)
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
  SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
  opened constant hindsight.bank := _open_bank(bank, 'writer');
BEGIN
  RETURN QUERY
    SELECT m.memory_id, m.version, m.content
    FROM current_memory AS m
    WHERE m.bank_id = opened.bank_id AND m.embedding IS NULL
    ORDER BY m.created_at
    LIMIT greatest(most, 0)
    FOR NO KEY UPDATE SKIP LOCKED;
END
$$;
COMMENT ON FUNCTION hindsight.unembedded(text, integer) IS
  'Memories that wait for an embedding, oldest first, claimed for this transaction.';

-- embed_memory: gives a memory the embedding of that version of its content. False when the memory has changed since:
-- the vector is then of a text that is no longer there. An embedding is derived, so this leaves no event.
-- Raises HM001, HM003, HM010, HM011, HM012.
CREATE OR REPLACE FUNCTION hindsight.embed_memory(
  bank text, memory_id uuid, version integer, embedding vector, model text DEFAULT NULL)
  RETURNS boolean
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
  SET enable_seqscan = off
AS $$
DECLARE
  opened constant hindsight.bank := _open_bank(bank, 'writer');
  used constant embedding_model := _adopt_model(opened, model);
BEGIN
  IF embedding IS NULL THEN
    RAISE EXCEPTION 'there is no embedding' USING ERRCODE = 'HM010', HINT = 'Embed the content that unembedded returned.';
  END IF;
  UPDATE memory AS m
    SET embedding = _check_embedding(embed_memory.embedding, used), model_id = used.model_id
    WHERE m.bank_id = opened.bank_id AND m.memory_id = embed_memory.memory_id AND m.version = embed_memory.version;
  RETURN FOUND;
END
$$;
COMMENT ON FUNCTION hindsight.embed_memory(text, uuid, integer, vector, text) IS
  'Gives a memory the embedding of that version of its content; false when it has changed since.';

-- _adopt_model: _bank_model for writers: the first model that is named becomes the bank's. Until the transaction ends
-- the bank keeps its model (set_bank_model waits), so that no vector of another one comes in late.
CREATE OR REPLACE FUNCTION hindsight._adopt_model(opened hindsight.bank, model text)
  RETURNS hindsight.embedding_model
  LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  named hindsight.embedding_model;
BEGIN
  PERFORM pg_catalog.pg_advisory_xact_lock_shared(pg_catalog.hashtextextended('hindsight.model', opened.bank_id));
  SELECT * INTO opened FROM hindsight.bank AS b WHERE b.bank_id = opened.bank_id;
  named := hindsight._bank_model(opened, model);
  IF opened.model_id IS NULL AND named.model_id IS NOT NULL THEN
    UPDATE hindsight.bank AS b SET model_id = named.model_id WHERE b.bank_id = opened.bank_id AND b.model_id IS NULL;
    IF NOT FOUND THEN -- another writer was first, perhaps with another model
      SELECT * INTO opened FROM hindsight.bank AS b WHERE b.bank_id = opened.bank_id;
      named := hindsight._bank_model(opened, model);
    END IF;
  END IF;
  RETURN named;
END
$$;
