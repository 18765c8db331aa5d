-- What a new memory says against those that are believed, or says once more: asked by store of what no user said. Both look at a
-- bounded number of memories, and compare words with those alone that have words in common.

-- _same_subject: a query for what holds two of the first five words of a text, one of them among its first two: sentences that
-- contradict each other begin alike. NULL: it has no two words.
CREATE OR REPLACE FUNCTION hindsight._same_subject(said tsvector)
  RETURNS tsquery
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
AS $$
DECLARE
  words constant text[] := ARRAY(SELECT hindsight._quoted_lexeme(u.lexeme) FROM pg_catalog.unnest(said) AS u
                                 WHERE u.positions IS NOT NULL ORDER BY u.positions[1], u.lexeme LIMIT 5);
BEGIN
  RETURN CASE pg_catalog.cardinality(words)
    WHEN 0 THEN NULL
    WHEN 1 THEN NULL
    WHEN 2 THEN words[1] || '&' || words[2]
    ELSE words[1] || '&(' || pg_catalog.array_to_string(words[2:], '|') || ')|'
         || words[2] || '&(' || pg_catalog.array_to_string(words[3:], '|') || ')' END;
END
$$;

-- _any_word: a query for what holds any word of a text.
CREATE OR REPLACE FUNCTION hindsight._any_word(said tsvector)
  RETURNS tsquery
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN (SELECT pg_catalog.string_agg(hindsight._quoted_lexeme(w), '|')
        FROM pg_catalog.unnest(pg_catalog.tsvector_to_array(said)) AS w)::tsquery;

-- _part: about which part of the words that any_word asks for a document has in its content: ts_rank, of which a word that
-- stands once is worth 1 / 1.645. It costs a microsecond, and keeps what has nothing in common from being compared.
CREATE OR REPLACE FUNCTION hindsight._part(document tsvector, any_word tsquery)
  RETURNS double precision
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN 1.645 * pg_catalog.ts_rank('{0,0,0,1}', document, any_word);

-- _shared: the share of words that two texts have in common: of those of both together (Jaccard), or, of bigrams, of those of the
-- shorter one, since a paraphrase makes others wherever words meet.
CREATE OR REPLACE FUNCTION hindsight._shared(one tsvector, other tsvector)
  RETURNS double precision
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
AS $$
DECLARE
  words constant text[] := pg_catalog.tsvector_to_array(other);
  common constant text[] := ARRAY(SELECT w FROM pg_catalog.unnest(pg_catalog.tsvector_to_array(one)) AS w WHERE w = ANY (words));
  size constant double precision := pg_catalog.cardinality(common);
  has_bigrams constant boolean := EXISTS (SELECT FROM pg_catalog.unnest(common) AS w WHERE w COLLATE "C" > '⺀');
BEGIN
  RETURN size / greatest(CASE WHEN has_bigrams
                              THEN least(pg_catalog.length(one), pg_catalog.length(other))
                              ELSE pg_catalog.length(one) + pg_catalog.length(other) - size END, 1);
END
$$;

-- _opposed: what the user said that a new memory of another source contradicts (15_disagreement.sql), or NULL. Looked for among
-- fifty that begin alike; of them the two that have most words in common are read, since that takes a millisecond or more each.
-- A long text must have more of them in common: what contradicts it says nearly the same.
CREATE OR REPLACE FUNCTION hindsight._opposed(fresh hindsight.memory, said tsvector, any_word tsquery)
  RETURNS uuid
  LANGUAGE plpgsql STABLE
AS $$
DECLARE
  finder constant tsquery := hindsight._same_subject(said);
BEGIN
  RETURN (
    SELECT near.memory_id
    FROM (SELECT alike.memory_id, alike.content, alike.document
          FROM (SELECT m.memory_id, m.content, m.document, hindsight._part(m.document, any_word) AS part
                FROM hindsight.live_memory AS m
                WHERE m.bank_id = fresh.bank_id AND m.document @@ finder AND m.source = 'user' AND m.type <> 'hypothesis'
                  AND (m.expires_at IS NULL OR m.expires_at > pg_catalog.statement_timestamp()) LIMIT 50) AS alike
          WHERE alike.part >= 0.25
          ORDER BY alike.part DESC LIMIT 2) AS near
    WHERE CASE WHEN hindsight._shared(pg_catalog.ts_filter(near.document, '{a}'), said)
                    >= CASE WHEN pg_catalog.length(said) <= 6 THEN 0.4 ELSE 0.55 END
               THEN hindsight._disagreement(near.content, fresh.content) END IS NOT NULL
    LIMIT 1);
END
$$;

-- _repeated: what was claimed in the last ten minutes by the same kind of source, in other words than now: half of the words
-- are the same, and all numbers. held: one of them is held by the screen, so that this one is as well. ids: those that are
-- believed, where it was said twice already by a source of which once is evidence enough (_is_evidence_once), and those that
-- say the same as one of them. Twenty memories are looked at; most texts have no word in common with them.
CREATE OR REPLACE FUNCTION hindsight._repeated(
  fresh hindsight.memory, said tsvector, any_word tsquery, OUT held text, OUT ids uuid[])
  LANGUAGE plpgsql STABLE
AS $$
DECLARE
  once constant boolean := hindsight._is_evidence_once(fresh); -- else only what is held matters
  since constant timestamptz := pg_catalog.clock_timestamp() - interval '10 minutes';
  alike uuid[];
  times bigint;
BEGIN
  WITH recent AS MATERIALIZED (
    SELECT m.memory_id, m.content, m.document, m.confirmations, m.pending_reason
    FROM (SELECT m.* FROM hindsight.memory AS m
          WHERE m.bank_id = fresh.bank_id AND m.changed_at > since ORDER BY m.changed_at DESC LIMIT 20) AS m
    WHERE m.source IS NOT DISTINCT FROM fresh.source AND m.digest <> fresh.digest
      AND m.deleted_at IS NULL AND m.superseded_by IS NULL AND m.archived_at IS NULL
      AND CASE WHEN m.pending_reason IS NULL THEN once
               ELSE m.pending_reason LIKE hindsight._screened() || '%' OR m.pending_reason = hindsight._contradicts_trusted() END
      AND hindsight._part(m.document, any_word) >= 0.2
  ),
  near AS MATERIALIZED (
    SELECT r.* FROM recent AS r WHERE hindsight._shared(pg_catalog.ts_filter(r.document, '{a}'), said) >= 0.5
  )
  SELECT pg_catalog.array_agg(n.memory_id), min(n.pending_reason), sum(1 + n.confirmations)
    INTO alike, held, times
    FROM near AS n
    WHERE hindsight._numbers(n.content) = hindsight._numbers(fresh.content)
      AND NOT EXISTS (SELECT FROM hindsight.event AS e -- what somebody has confirmed is believed on his word
                      WHERE e.bank_id = fresh.bank_id AND e.memory_id = n.memory_id AND e.action = 'confirmed');
  IF once AND times >= 2 THEN
    ids := ARRAY(
      SELECT r.memory_id
      FROM (SELECT m.* FROM hindsight.memory AS m
            WHERE m.bank_id = fresh.bank_id AND m.changed_at > since ORDER BY m.changed_at DESC LIMIT 20) AS r
      WHERE r.source IS NOT DISTINCT FROM fresh.source AND hindsight._state(r, pg_catalog.clock_timestamp()) = 'live'
        AND hindsight._numbers(r.content) = hindsight._numbers(fresh.content)
        AND EXISTS (SELECT FROM hindsight.memory AS o
                    WHERE o.bank_id = fresh.bank_id AND o.memory_id = ANY (alike)
                      AND (o.memory_id = r.memory_id
                           OR hindsight._shared(pg_catalog.ts_filter(o.document, '{a}'),
                                                pg_catalog.ts_filter(r.document, '{a}')) >= 0.5))
      ORDER BY r.memory_id);
  END IF;
END
$$;

-- _held_back: why what no user said is not believed (reason), and what of the bank is against it (other_id): what was rejected,
-- what the user said, what says the same again and again (repeated: what is held with it). A row of NULLs: nothing.
CREATE OR REPLACE FUNCTION hindsight._held_back(fresh hindsight.memory)
  RETURNS hindsight._against
  LANGUAGE plpgsql STABLE
AS $$
DECLARE
  said constant tsvector := hindsight.text_tsv_v1(fresh.language, fresh.content);
  any_word constant tsquery := hindsight._any_word(said);
  against hindsight._against := (NULL, NULL, NULL);
BEGIN
  IF fresh.source IN ('tool', 'document') AND fresh.type <> 'todo' THEN
    against.reason := hindsight._screened() || hindsight._request(pg_catalog.lower(fresh.content));
    IF against.reason IS NOT NULL THEN
      RETURN against;
    END IF;
  END IF;
  against.other_id := hindsight._lesson(fresh, said, any_word);
  IF against.other_id IS NOT NULL THEN
    against.reason := hindsight._was_rejected_before();
    RETURN against;
  ELSIF fresh.type = 'hypothesis' THEN -- believed by half as it is
    RETURN against;
  END IF;
  IF fresh.slot IS NULL THEN -- else the slot decides
    against.other_id := hindsight._opposed(fresh, said, any_word);
    against.reason := CASE WHEN against.other_id IS NOT NULL THEN hindsight._contradicts_trusted() END;
  END IF;
  IF against.other_id IS NULL THEN
    SELECT CASE WHEN r.ids IS NOT NULL THEN hindsight._one_claim() ELSE r.held END, r.ids INTO against.reason, against.repeated
      FROM hindsight._repeated(fresh, said, any_word) AS r;
  END IF;
  RETURN against;
END
$$;

-- _hold_repeated: holds the memories that claim the same as a new one, which is held with them: that a claim comes often is no
-- evidence, and somebody wants it to be believed. Returns the reason. Whoever locks several memories takes turns, and changes
-- none before.
CREATE OR REPLACE FUNCTION hindsight._hold_repeated(of_bank bigint, ids uuid[])
  RETURNS void
  LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  reason constant text := hindsight._one_claim();
  locked hindsight.memory[];
  held hindsight.memory;
  changed hindsight.memory;
BEGIN
  IF ids IS NULL THEN
    RETURN;
  END IF;
  PERFORM hindsight._take_turns(of_bank);
  locked := ARRAY(SELECT m FROM hindsight.memory AS m
                  WHERE m.bank_id = of_bank AND m.memory_id = ANY (ids) ORDER BY m.memory_id FOR NO KEY UPDATE);
  PERFORM hindsight._lock_derived(of_bank, ids);
  FOREACH held IN ARRAY locked LOOP
    CONTINUE WHEN hindsight._state(held, pg_catalog.clock_timestamp()) <> 'live' OR hindsight._was_released(of_bank, held.digest);
    changed := held;
    changed.pending_reason := reason;
    PERFORM hindsight._change('doubted', held, changed, reason), hindsight._withdraw_insights(of_bank, held.memory_id);
  END LOOP;
END
$$;
