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

-- _index_name: the HNSW index of a model's vectors, as register_model names it.
CREATE OR REPLACE FUNCTION hindsight._index_name(registered hindsight.embedding_model)
  RETURNS text
  LANGUAGE sql IMMUTABLE
RETURN 'hindsight.memory_embedding_' || registered.model_id || '_idx';

-- _index_statement: what makes the HNSW index of a model's vectors. A partial expression index, so that models of several sizes
-- share one column. It matches the live predicate to the letter (live_memory), and recall writes the same two numbers into its query.
CREATE OR REPLACE FUNCTION hindsight._index_statement(registered hindsight.embedding_model, manner text DEFAULT '')
  RETURNS text
  LANGUAGE sql STABLE
RETURN pg_catalog.format(
  'CREATE INDEX %5$s IF NOT EXISTS memory_embedding_%1$s_idx ON hindsight.memory USING hnsw ((embedding::halfvec(%2$s)) halfvec_cosine_ops) '
  'WITH (m = %3$s, ef_construction = %4$s) '
  'WHERE deleted_at IS NULL AND superseded_by IS NULL AND archived_at IS NULL AND pending_reason IS NULL AND model_id = %1$s',
  registered.model_id, registered.dimensions, registered.hnsw_m, registered.hnsw_ef_construction, manner);

-- _make_index: makes that index where there is none. Memories cannot be written until the transaction ends; for a model that nobody
-- uses yet it is empty.
CREATE OR REPLACE FUNCTION hindsight._make_index(registered hindsight.embedding_model)
  RETURNS void
  LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
  IF pg_catalog.to_regclass(hindsight._index_name(registered)) IS NULL THEN
    EXECUTE hindsight._index_statement(registered);
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
    PERFORM _make_index(registered);
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
  IF opened.reembedding = 'switched' AND named.model_id = opened.other_model_id THEN
    RETURN named; -- the vectors of before are all there still: whoever embeds with that model is answered by them
  END IF;
  IF held.model_id IS NOT NULL AND held.model_id IS DISTINCT FROM named.model_id THEN
    RAISE EXCEPTION 'bank % holds embeddings of % (% dimensions), not of % (%)',
        pg_catalog.quote_literal(opened.name), pg_catalog.quote_literal(held.name), held.dimensions,
        pg_catalog.quote_literal(model), coalesce(named.dimensions || ' dimensions', 'not registered')
      USING ERRCODE = 'HM011',
            HINT = pg_catalog.format(
              CASE WHEN opened.reembedding = 'embedding' AND named.model_id = opened.other_model_id
                THEN 'It is being embedded anew with that model: until it switches, configure %1$s. '
                     'How far it is: hindsight reembed --bank %2$s --status'
                ELSE 'Configure %1$s, or embed the bank''s memories anew, while it goes on answering: '
                     'hindsight reembed --bank %2$s --model %3$s' END,
              pg_catalog.quote_literal(held.name), pg_catalog.quote_ident(opened.name), pg_catalog.quote_literal(model));
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

-- _adopt_model: _bank_model for writers: the first model that is named becomes the bank's. Until the transaction ends
-- the bank keeps its model (whoever changes it waits), so that no vector of another one comes in late.
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
    PERFORM hindsight._make_index(named); -- it was dropped when the last bank of this model got another
    UPDATE hindsight.bank AS b SET model_id = named.model_id WHERE b.bank_id = opened.bank_id AND b.model_id IS NULL;
    IF NOT FOUND THEN -- another writer was first, perhaps with another model
      SELECT * INTO opened FROM hindsight.bank AS b WHERE b.bank_id = opened.bank_id;
      named := hindsight._bank_model(opened, model);
    END IF;
  END IF;
  RETURN named;
END
$$;
