-- Consensus: which of the memories that were found stand alone against the others. It is asked of the best few that recall has
-- found, so that its cost does not depend on the bank, and no language model is in the way.

-- _contradicting: of these memories the pairs that contradict each other: as a link says, or by the rules (_disagreement) where
-- they are near in meaning and have words in common; another version of a thing contradicts nothing. trust: the rank of the
-- source; below 0, what is no witness: a hypothesis, or what is not believed. Both ways round.
CREATE OR REPLACE FUNCTION hindsight._contradicting(of_bank bigint, ids uuid[])
  RETURNS TABLE (memory_id uuid, trust integer, origin text, other_id uuid, other_trust integer, other_origin text)
  LANGUAGE plpgsql STABLE
AS $$
BEGIN
  RETURN QUERY
    WITH candidate AS MATERIALIZED (
      SELECT m.memory_id, m.content, m.model_id, m.embedding, r.recall_threshold, pg_catalog.ts_filter(m.document, '{a}') AS words,
             CASE WHEN m.type = 'hypothesis' OR m.pending_reason IS NOT NULL THEN -1 ELSE hindsight._trust(m.source) END AS trust,
             coalesce(m.session_id, m.memory_id::text) AS origin
      FROM hindsight.memory AS m LEFT JOIN hindsight.embedding_model AS r ON r.model_id = m.model_id
      WHERE m.bank_id = of_bank AND m.memory_id = ANY (ids) AND m.deleted_at IS NULL AND m.type NOT IN ('summary', 'todo')
    ),
    linked AS MATERIALIZED (
      SELECT l.from_id, l.to_id FROM hindsight.link AS l
      WHERE l.bank_id = of_bank AND l.from_id = ANY (ids) AND l.to_id = ANY (ids) AND l.removed_at IS NULL
        AND l.relation = 'contradicts'
    ),
    near AS MATERIALIZED ( -- the few that are worth a look: of two users the newer counts, and of two guesses neither is a witness
      SELECT one.memory_id AS one_id, other.memory_id AS other_id, one.content, other.content AS other_content, l.is_linked,
             one.trust <> other.trust AS is_unequal
      FROM candidate AS one
      JOIN candidate AS other ON one.memory_id < other.memory_id AND greatest(one.trust, other.trust) >= 0
       AND (one.trust <> other.trust OR one.trust < hindsight._trust('user'))
      CROSS JOIN LATERAL (SELECT EXISTS (SELECT FROM linked AS l WHERE one.memory_id IN (l.from_id, l.to_id) AND other.memory_id IN (l.from_id, l.to_id))) AS l(is_linked)
      WHERE CASE WHEN l.is_linked THEN true
                 WHEN one.model_id = other.model_id AND 1 - (one.embedding <=> other.embedding) < one.recall_threshold THEN false
                 ELSE hindsight._shared(one.words, other.words) >= 0.4 END
    ),
    pair AS MATERIALIZED ( -- of equally trusted ones it takes a majority, so one pair alone decides nothing
      SELECT n.one_id, n.other_id
      FROM near AS n
      WHERE CASE WHEN n.is_linked THEN true
                 WHEN n.is_unequal OR (SELECT count(*) FROM near AS m WHERE n.one_id IN (m.one_id, m.other_id) OR n.other_id IN (m.one_id, m.other_id)) > 1
                   THEN hindsight._disagreement(n.content, n.other_content) IS NOT NULL
                    AND NOT hindsight._evolves(n.content, n.other_content) END
    )
    SELECT c.memory_id, c.trust, c.origin, o.memory_id, o.trust, o.origin
    FROM (SELECT p.one_id, p.other_id FROM pair AS p UNION ALL SELECT p.other_id, p.one_id FROM pair AS p) AS b(memory_id, other_id)
    JOIN candidate AS c ON c.memory_id = b.memory_id JOIN candidate AS o ON o.memory_id = b.other_id;
END
$$;

-- _disputed: which of these memories the others are against, and which those are. Whoever is contradicted by a more trusted
-- source is disputed, however many of the less trusted agree with him: who repeats a lie wins nothing. Of equally trusted ones
-- the majority counts: more of them, of different sessions, that say the same against him than with him. A user is no minority:
-- of what he says the newer counts.
CREATE OR REPLACE FUNCTION hindsight._disputed(of_bank bigint, ids uuid[])
  RETURNS TABLE (memory_id uuid, disputed_by uuid[])
  LANGUAGE plpgsql STABLE
AS $$
BEGIN
  IF (pg_catalog.cardinality(ids) > 1) IS NOT TRUE THEN
    RETURN;
  END IF;
  RETURN QUERY
    WITH against AS MATERIALIZED (SELECT a.* FROM hindsight._contradicting(of_bank, ids) AS a),
    own AS ( -- a memory, and those that contradict the same as it does
      SELECT DISTINCT one.memory_id, ally.trust, ally.origin
      FROM against AS one JOIN against AS ally ON ally.other_id = one.other_id
      WHERE NOT EXISTS (SELECT FROM against AS a WHERE a.memory_id = one.memory_id AND a.other_id = ally.memory_id)
    ),
    opponent AS ( -- with how many others, as trusted, each of them agrees
      SELECT one.memory_id, one.other_id, one.other_trust AS trust, count(DISTINCT ally.other_origin) AS voices
      FROM against AS one
      JOIN against AS ally ON ally.memory_id = one.memory_id AND ally.other_trust = one.other_trust
       AND NOT EXISTS (SELECT FROM against AS a WHERE a.memory_id = one.other_id AND a.other_id = ally.other_id)
      WHERE one.other_trust >= 0
      GROUP BY one.memory_id, one.other_id, one.other_trust
    ),
    weighed AS (
      SELECT o.memory_id, o.other_id, o.trust, o.voices, w.trust AS own_trust,
             (SELECT count(DISTINCT e.origin) FROM own AS e WHERE e.memory_id = o.memory_id AND e.trust = w.trust) AS own_voices
      FROM opponent AS o
      CROSS JOIN LATERAL (SELECT max(e.trust) AS trust FROM own AS e WHERE e.memory_id = o.memory_id) AS w
    )
    SELECT w.memory_id, pg_catalog.array_agg(w.other_id ORDER BY w.trust DESC, w.other_id)
    FROM weighed AS w
    WHERE w.trust > w.own_trust
       OR (w.trust = w.own_trust AND w.trust < hindsight._trust('user') AND w.voices > w.own_voices)
    GROUP BY w.memory_id;
END
$$;
