-- Embedding what has no embedding: memories are claimed, embedded by whoever has the model, and given their vectors. What is claimed
-- and what failed is a row of next_embedding; that a memory waits is a state of its own row (no embedding), or, while its bank
-- changes its model (06_reembedding.sql), that it has no valid row with the new vector there.

-- _embedding_beside: the embedding by that model that stands beside a memory of that content; NULL: there is none.
CREATE OR REPLACE FUNCTION hindsight._embedding_beside(of_bank bigint, memory_id uuid, digest bytea, model_id integer)
  RETURNS halfvec
  LANGUAGE plpgsql STABLE
AS $$
BEGIN
  RETURN (SELECT n.embedding FROM hindsight.next_embedding AS n
          WHERE n.bank_id = of_bank AND n.memory_id = _embedding_beside.memory_id AND n.model_id = _embedding_beside.model_id
            AND n.digest = _embedding_beside.digest);
END
$$;

-- _stands_beside: whether vectors of that model may stand beside the bank's memories: from the switch to a new model until the last
-- of them has settled. Elsewhere nothing but the row itself is read. Inlined.
CREATE OR REPLACE FUNCTION hindsight._stands_beside(opened hindsight.bank, model_id integer)
  RETURNS boolean
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN opened.switched_at IS NOT NULL AND model_id = opened.model_id;

-- _embedding_by: a memory's embedding by that model: its own, or where some stand beside, the one beside. A vector is never
-- compared with one of another model, because whoever compares asks for them here, or for equal models. Inlined.
CREATE OR REPLACE FUNCTION hindsight._embedding_by(
  wanted integer, stands_beside boolean, of_bank bigint, memory_id uuid, digest bytea, model_id integer, embedding halfvec)
  RETURNS halfvec
  LANGUAGE sql STABLE
AS $$
  SELECT CASE WHEN model_id = wanted THEN embedding
              WHEN stands_beside THEN hindsight._embedding_beside(of_bank, memory_id, digest, wanted) END
$$;

-- _embedding_target: the model that embeddings come in for: the bank's, which the first one becomes, or the one that it changes to.
-- Keeps whoever changes the bank's model waiting until the transaction ends, and gives the bank as it is then.
CREATE OR REPLACE FUNCTION hindsight._embedding_target(
  INOUT opened hindsight.bank, model text, OUT used hindsight.embedding_model, OUT is_beside boolean)
  LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
  PERFORM pg_catalog.pg_advisory_xact_lock_shared(pg_catalog.hashtextextended('hindsight.model', opened.bank_id));
  SELECT b.* INTO opened FROM hindsight.bank AS b WHERE b.bank_id = opened.bank_id;
  SELECT r.* INTO used FROM hindsight.embedding_model AS r WHERE r.name = model AND r.model_id = opened.other_model_id;
  IF NOT FOUND OR opened.reembedding <> 'embedding' THEN
    used := hindsight._adopt_model(opened, model);
  END IF;
  IF used.model_id IS NULL THEN
    RAISE EXCEPTION 'bank % has no embedding model yet', pg_catalog.quote_literal(opened.name)
      USING ERRCODE = 'HM012', HINT = 'Name the model that embeds: model => ''…'' (see hindsight.register_model).';
  END IF;
  is_beside := coalesce(CASE opened.reembedding WHEN 'embedding' THEN used.model_id = opened.other_model_id
                                                ELSE opened.switched_at IS NOT NULL AND used.model_id = opened.model_id END, false);
END
$$;

-- claim_unembedded: memories that wait for an embedding by the model (the bank's, or the one that it is changing to): at most so many,
-- for so many seconds, in which nobody else is given them. What failed is given again when its time has come. With take_over also what
-- somebody else has claimed: for the end of the work, where whoever claimed it may be gone. The lock makes claims take turns, each a
-- matter of milliseconds: what SKIP LOCKED passes over is free again when the claim commits, long before it is embedded.
-- Raises HM001, HM003, HM004, HM011, HM012.
CREATE OR REPLACE FUNCTION hindsight.claim_unembedded(
  bank text, most integer DEFAULT 100, model text DEFAULT NULL, seconds double precision DEFAULT 120, take_over boolean DEFAULT false)
  RETURNS TABLE (memory_id uuid, version integer, content text)
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
  SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
  target record;
  at timestamptz;
  until timestamptz;
BEGIN
  PERFORM _check_most(most);
  IF (seconds BETWEEN 1 AND 86400) IS NOT TRUE THEN
    RAISE EXCEPTION 'a claim holds for 1 to 86,400 seconds, got %', coalesce(seconds::text, 'NULL')
      USING ERRCODE = 'HM004', HINT = 'For longer than a batch takes to embed; 120 by default.';
  END IF;
  SELECT t.* INTO target FROM _embedding_target(_open_bank(bank, 'writer'), model) AS t;
  PERFORM pg_advisory_xact_lock(hashtextextended('hindsight.claim', (target.opened).bank_id));
  at := clock_timestamp();
  until := at + make_interval(secs => seconds);
  IF NOT target.is_beside OR (target.opened).switched_at IS NOT NULL THEN -- it waits as long as it has no vector at all
    RETURN QUERY
      WITH waiting AS MATERIALIZED (
        SELECT m.memory_id, m.digest
        FROM current_memory AS m
        LEFT JOIN next_embedding AS n ON n.bank_id = m.bank_id AND n.memory_id = m.memory_id AND n.model_id = (target.used).model_id
        WHERE m.bank_id = (target.opened).bank_id AND m.embedding IS NULL
          AND (n.digest IS DISTINCT FROM m.digest
               OR (n.embedding IS NULL AND (n.not_before <= at OR (take_over AND n.is_claimed))))
        ORDER BY m.created_at
        LIMIT most
      ),
      claimed AS (
        INSERT INTO next_embedding AS n (bank_id, memory_id, model_id, digest, not_before, is_claimed)
        SELECT (target.opened).bank_id, w.memory_id, (target.used).model_id, w.digest, until, true
        FROM waiting AS w ORDER BY w.memory_id
        ON CONFLICT ON CONSTRAINT next_embedding_pkey
          DO UPDATE SET digest = excluded.digest, embedding = NULL, not_before = excluded.not_before, is_claimed = true
        RETURNING n.memory_id
      )
      SELECT m.memory_id, m.version, m.content
      FROM claimed AS c JOIN memory AS m ON m.bank_id = (target.opened).bank_id AND m.memory_id = c.memory_id
      ORDER BY m.created_at;
    RETURN;
  END IF;
  FOR attempt IN 1..2 LOOP
    RETURN QUERY
      WITH waiting AS MATERIALIZED (
        SELECT n.memory_id, m.digest
        FROM next_embedding AS n JOIN current_memory AS m ON m.bank_id = n.bank_id AND m.memory_id = n.memory_id
        WHERE n.bank_id = (target.opened).bank_id AND n.model_id = (target.used).model_id AND n.embedding IS NULL
          AND (n.not_before <= at OR (take_over AND n.is_claimed))
        ORDER BY n.not_before
        LIMIT most
      ),
      claimed AS (
        UPDATE next_embedding AS n SET digest = w.digest, not_before = until, is_claimed = true
        FROM waiting AS w
        WHERE n.bank_id = (target.opened).bank_id AND n.memory_id = w.memory_id AND n.model_id = (target.used).model_id
        RETURNING n.memory_id
      )
      SELECT m.memory_id, m.version, m.content
      FROM claimed AS c JOIN memory AS m ON m.bank_id = (target.opened).bank_id AND m.memory_id = c.memory_id;
    EXIT WHEN FOUND OR attempt = 2 OR _queue_for_embedding(target.opened) = 0;
    at := clock_timestamp();
  END LOOP;
END
$$;
COMMENT ON FUNCTION hindsight.claim_unembedded(text, integer, text, double precision, boolean) IS
  'Memories that wait for an embedding by the bank''s model, or the one that it is changing to; nobody else is given them meanwhile.';

-- set_embeddings: gives memories the embeddings of those versions of their contents, and returns how many took them. One whose content
-- has changed since, or that a writer is at, is left for the next claim. An embedding is derived, so this leaves no event.
-- Raises HM001, HM003, HM004, HM010, HM011, HM012.
CREATE OR REPLACE FUNCTION hindsight.set_embeddings(
  bank text, memory_ids uuid[], versions integer[], embeddings vector[], model text DEFAULT NULL)
  RETURNS integer
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
  SET enable_seqscan = off
AS $$
DECLARE
  target record;
  of_bank bigint;
  of_model integer;
  valid uuid[];
  made halfvec[];
  digests bytea[];
  taken uuid[];
BEGIN
  IF cardinality(memory_ids) <> cardinality(versions) OR cardinality(memory_ids) <> cardinality(embeddings)
     OR num_nulls(memory_ids, versions, embeddings) > 0 THEN
    RAISE EXCEPTION 'memory_ids, versions and embeddings must have as many elements as one another'
      USING ERRCODE = 'HM004', HINT = 'One of each for every row that claim_unembedded returned.';
  ELSIF array_position(embeddings, NULL) IS NOT NULL THEN
    RAISE EXCEPTION 'there is no embedding' USING ERRCODE = 'HM010', HINT = 'Embed the contents that claim_unembedded returned.';
  END IF;
  SELECT t.* INTO target FROM _embedding_target(_open_bank(bank, 'writer'), model) AS t;
  of_bank := (target.opened).bank_id;
  of_model := (target.used).model_id;
  SELECT array_agg(m.memory_id), array_agg(_check_embedding(g.embedding, target.used)), array_agg(m.digest)
    INTO valid, made, digests
    FROM unnest(memory_ids, versions, embeddings) AS g(memory_id, version, embedding)
    JOIN memory AS m ON m.bank_id = of_bank AND m.memory_id = g.memory_id AND m.version >= g.version
    LEFT JOIN memory_version AS v ON v.bank_id = of_bank AND v.memory_id = g.memory_id AND v.version = g.version
    WHERE coalesce(v.digest, m.digest) = m.digest; -- tags and the like may have changed: the vector is of the content
  IF target.is_beside THEN
    WITH given AS (
      INSERT INTO next_embedding AS n (bank_id, memory_id, model_id, digest, embedding)
      SELECT of_bank, g.memory_id, of_model, g.digest, g.embedding
      FROM (SELECT DISTINCT ON (u.memory_id) u.* FROM unnest(valid, digests, made) AS u(memory_id, digest, embedding)) AS g
      ON CONFLICT ON CONSTRAINT next_embedding_pkey
        DO UPDATE SET digest = excluded.digest, embedding = excluded.embedding, is_claimed = false, attempts = 0, last_error = NULL
      RETURNING n.memory_id
    )
    SELECT array_agg(g.memory_id) INTO taken FROM given AS g;
  ELSE
    WITH held AS MATERIALIZED ( -- nobody is waited for: two who lock the same memories would wait for each other
      SELECT m.memory_id, g.embedding
      FROM unnest(valid, digests, made) AS g(memory_id, digest, embedding)
      JOIN memory AS m ON m.bank_id = of_bank AND m.memory_id = g.memory_id
      WHERE m.digest = g.digest AND (m.model_id IS NULL OR m.model_id = of_model)
      FOR NO KEY UPDATE OF m SKIP LOCKED
    ), given AS (
      UPDATE memory AS m SET embedding = h.embedding, model_id = of_model FROM held AS h
      WHERE m.bank_id = of_bank AND m.memory_id = h.memory_id
      RETURNING m.memory_id
    )
    SELECT array_agg(g.memory_id) INTO taken FROM given AS g;
    DELETE FROM next_embedding AS n WHERE n.bank_id = of_bank AND n.memory_id = ANY (taken) AND n.model_id = of_model;
  END IF;
  UPDATE next_embedding AS n SET is_claimed = false, not_before = clock_timestamp()
    WHERE n.bank_id = of_bank AND n.memory_id = ANY (memory_ids) AND n.model_id = of_model AND n.embedding IS NULL AND n.is_claimed;
  RETURN coalesce(cardinality(taken), 0);
END
$$;
COMMENT ON FUNCTION hindsight.set_embeddings(text, uuid[], integer[], vector[], text) IS
  'Gives memories the embeddings of those versions of their contents; returns how many took them, the others had changed.';

-- embeddings_failed: gives claimed memories back with the reason why they could not be embedded; nobody is given them for so many
-- seconds, doubled at each failure, up to 720 times that, and a week. They are found by their words meanwhile. Returns how many.
-- Raises HM001, HM003, HM004, HM005, HM011, HM012.
CREATE OR REPLACE FUNCTION hindsight.embeddings_failed(
  bank text, memory_ids uuid[], error text, seconds double precision DEFAULT 3600, model text DEFAULT NULL)
  RETURNS integer
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
  SET enable_seqscan = off
AS $$
DECLARE
  target record;
  noted integer;
BEGIN
  PERFORM _check_text('error', error, 10000);
  IF (seconds BETWEEN 0 AND 604800) IS NOT TRUE THEN
    RAISE EXCEPTION 'a failed embedding is tried again after 0 to 604,800 seconds, got %', coalesce(seconds::text, 'NULL')
      USING ERRCODE = 'HM004', HINT = 'Few for an endpoint that cannot be reached, an hour for a text that it refuses.';
  END IF;
  SELECT t.* INTO target FROM _embedding_target(_open_bank(bank, 'writer'), model) AS t;
  UPDATE next_embedding AS n
    SET is_claimed = false, attempts = n.attempts + 1, last_error = left(error, 500),
        not_before = clock_timestamp() + make_interval(secs => least(embeddings_failed.seconds * least(2 ^ least(n.attempts, 20), 720), 604800))
    WHERE n.bank_id = (target.opened).bank_id AND n.memory_id = ANY (memory_ids) AND n.model_id = (target.used).model_id
      AND n.embedding IS NULL;
  GET DIAGNOSTICS noted = ROW_COUNT;
  RETURN noted;
END
$$;
COMMENT ON FUNCTION hindsight.embeddings_failed(text, uuid[], text, double precision, text) IS
  'Gives claimed memories back with the reason why they could not be embedded; they are tried again later, after longer each time.';

-- retry_embeddings: lets what failed be claimed at once, and returns how many. Raises HM001, HM003.
CREATE OR REPLACE FUNCTION hindsight.retry_embeddings(bank text)
  RETURNS integer
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
  SET enable_seqscan = off
AS $$
DECLARE
  opened constant hindsight.bank := _open_bank(bank, 'writer');
  freed integer;
BEGIN
  UPDATE next_embedding AS n SET not_before = clock_timestamp()
    WHERE n.bank_id = opened.bank_id AND n.embedding IS NULL AND n.last_error IS NOT NULL AND NOT n.is_claimed
      AND n.not_before > clock_timestamp();
  GET DIAGNOSTICS freed = ROW_COUNT;
  RETURN freed;
END
$$;
COMMENT ON FUNCTION hindsight.retry_embeddings(text) IS
  'Lets the memories whose embedding failed be claimed at once; returns how many.';
