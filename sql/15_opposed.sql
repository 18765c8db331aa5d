-- What a new memory says against those that are believed, or says once more: asked by store of what no user said.

-- _opposed: what the user said that a new memory of another source contradicts (15_disagreement.sql), or NULL. Looked for among a hundred
-- that begin alike, so that it costs little in any bank.
CREATE OR REPLACE FUNCTION hindsight._opposed(fresh hindsight.memory, finder tsquery)
  RETURNS uuid
  LANGUAGE plpgsql STABLE
AS $$
BEGIN
  RETURN (
    SELECT near.memory_id
    FROM (SELECT m.memory_id, m.content FROM hindsight.live_memory AS m
          WHERE m.bank_id = fresh.bank_id AND m.document @@ finder AND m.source = 'user' AND m.type <> 'hypothesis'
            AND (m.expires_at IS NULL OR m.expires_at > pg_catalog.statement_timestamp()) LIMIT 100) AS near
    WHERE hindsight._disagreement(near.content, fresh.content) IS NOT NULL
    LIMIT 1);
END
$$;

-- _shared: the share of words that two texts have in common: of those of both together (Jaccard), or, of bigrams, of those of the shorter one,
-- since a paraphrase makes others wherever words meet.
CREATE OR REPLACE FUNCTION hindsight._shared(one tsvector, other tsvector)
  RETURNS double precision
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (
  SELECT common::double precision / greatest(CASE WHEN has_bigrams THEN least(pg_catalog.length(one), pg_catalog.length(other))
                                                  ELSE pg_catalog.length(one) + pg_catalog.length(other) - common END, 1)
  FROM (SELECT count(*) AS common, coalesce(bool_or(word > '⺀'), false) AS has_bigrams
        FROM pg_catalog.unnest(pg_catalog.tsvector_to_array(one)) AS word
        WHERE word = ANY (pg_catalog.tsvector_to_array(other))) AS w);

-- _repeated: what was claimed in the last ten minutes by the same kind of source, in other words than now: half of the words are the same, and
-- all numbers. held: one of them is held by the screen, so that this one is as well. ids: those that are believed, where
-- it was said twice already by a source of which once is evidence enough (_is_evidence_once),
-- and those that say the same as one of them.
CREATE OR REPLACE FUNCTION hindsight._repeated(fresh hindsight.memory, said tsvector, OUT held text, OUT ids uuid[])
  LANGUAGE plpgsql STABLE
AS $$
DECLARE
  finder constant tsquery := (SELECT pg_catalog.string_agg(hindsight._quoted_lexeme(w), ' | ')
                              FROM pg_catalog.unnest(pg_catalog.tsvector_to_array(said)) AS w)::tsquery;
  numbers text[];
  since constant timestamptz := pg_catalog.clock_timestamp() - interval '10 minutes';
BEGIN
  -- Most texts resemble nothing that was stored a moment ago: that is asked first, without an expression.
  IF NOT EXISTS (SELECT FROM (SELECT m.document, m.source FROM hindsight.memory AS m
                              WHERE m.bank_id = fresh.bank_id AND m.changed_at > since ORDER BY m.changed_at DESC LIMIT 20) AS m
                 WHERE m.document @@ finder AND m.source IS NOT DISTINCT FROM fresh.source) THEN
    RETURN;
  END IF;
  numbers := hindsight._numbers(fresh.content);
  WITH recent AS MATERIALIZED (
    SELECT m.memory_id, pg_catalog.ts_filter(m.document, '{a}') AS words, m.confirmations, m.pending_reason
    FROM (SELECT m.* FROM hindsight.memory AS m
          WHERE m.bank_id = fresh.bank_id AND m.changed_at > since ORDER BY m.changed_at DESC LIMIT 20) AS m
    WHERE m.source IS NOT DISTINCT FROM fresh.source AND m.digest <> fresh.digest AND m.document @@ finder
      AND m.deleted_at IS NULL AND m.superseded_by IS NULL AND m.archived_at IS NULL
      AND (m.pending_reason IS NULL OR m.pending_reason LIKE hindsight._screened() || '%' OR m.pending_reason = hindsight._contradicts_trusted())
      AND hindsight._numbers(m.content) = numbers
  ),
  near AS MATERIALIZED (SELECT r.* FROM recent AS r WHERE hindsight._shared(r.words, said) >= 0.5)
  SELECT min(n.pending_reason),
         CASE WHEN hindsight._is_evidence_once(fresh) AND sum(1 + n.confirmations) >= 2
              THEN ARRAY(SELECT r.memory_id FROM recent AS r
                         WHERE r.pending_reason IS NULL
                           AND EXISTS (SELECT FROM near AS o WHERE o.memory_id = r.memory_id OR hindsight._shared(o.words, r.words) >= 0.5)
                         ORDER BY r.memory_id) END
    INTO held, ids FROM near AS n;
END
$$;

-- _hold_repeated: holds the memories that claim the same as a new one, which is held with them: that a claim comes often is no evidence, and
-- somebody wants it to be believed. Returns the reason. Whoever locks several memories takes turns, and changes none before.
CREATE OR REPLACE FUNCTION hindsight._hold_repeated(of_bank bigint, ids uuid[])
  RETURNS text
  LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  reason constant text := hindsight._one_claim();
  locked hindsight.memory[];
  held hindsight.memory;
  changed hindsight.memory;
BEGIN
  IF ids IS NULL THEN
    RETURN NULL;
  END IF;
  PERFORM hindsight._take_turns(of_bank);
  locked := ARRAY(SELECT m FROM hindsight.memory AS m
                  WHERE m.bank_id = of_bank AND m.memory_id = ANY (ids) ORDER BY m.memory_id FOR NO KEY UPDATE);
  FOREACH held IN ARRAY locked LOOP
    CONTINUE WHEN hindsight._state(held, pg_catalog.clock_timestamp()) <> 'live' OR hindsight._was_released(of_bank, held.digest);
    changed := held;
    changed.pending_reason := reason;
    PERFORM hindsight._change('doubted', held, changed, reason);
  END LOOP;
  RETURN reason;
END
$$;
