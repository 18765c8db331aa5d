-- Candidates by meaning, of a large bank.

-- _search_beside: the nearest while vectors of the bank's new model stand beside the memories (06_reembedding.sql): all those of
-- before the switch by the index there, and those that came with their memory since then, which are few, one by one.
CREATE OR REPLACE FUNCTION hindsight._search_beside(
  opened hindsight.bank, at timestamptz, filter hindsight._filter, most integer, asked halfvec, model hindsight.embedding_model)
  RETURNS uuid[]
  LANGUAGE plpgsql STABLE
AS $$
DECLARE
  ids uuid[];
BEGIN
  EXECUTE pg_catalog.format(
    'SELECT array_agg(b.memory_id) FROM (
       SELECT c.memory_id FROM (
         (SELECT m.memory_id, n.embedding::halfvec(%2$s) <=> $4::halfvec(%2$s) AS distance
          FROM hindsight.next_embedding AS n
          CROSS JOIN LATERAL ( -- not joined: the planner takes hardly a row to have the same digest, and then sorts the bank
            SELECT m.memory_id FROM hindsight.live_memory AS m
            WHERE m.bank_id = $1 AND m.memory_id = n.memory_id AND m.digest = n.digest AND (m.expires_at IS NULL OR m.expires_at > $2)
              AND hindsight._passes(m.type, m.tags, coalesce(m.occurred_at, m.created_at), m.session_id, m.entities, m.confidence, m.metadata, $3)
            OFFSET 0) AS m
          WHERE n.model_id = %1$s AND n.bank_id = $1 AND n.embedding IS NOT NULL
          ORDER BY n.embedding::halfvec(%2$s) <=> $4::halfvec(%2$s)
          LIMIT $5)
         UNION ALL
         (SELECT m.memory_id, m.embedding <=> $4
          FROM hindsight.live_memory AS m
          WHERE m.bank_id = $1 AND m.changed_at >= $6 AND m.model_id = %1$s AND (m.expires_at IS NULL OR m.expires_at > $2)
            AND hindsight._passes(m.type, m.tags, coalesce(m.occurred_at, m.created_at), m.session_id, m.entities, m.confidence, m.metadata, $3)
          ORDER BY 2
          LIMIT $5)) AS c
       GROUP BY c.memory_id
       ORDER BY min(c.distance)
       LIMIT $5) AS b', model.model_id, model.dimensions)
    INTO ids USING opened.bank_id, at, filter, asked, most, opened.switched_at - interval '1 second'; -- for a clock that was set
  RETURN ids;
END
$$;

-- _search_by_meaning: of a large bank: the nearest by HNSW. The expression and the two numbers are those of the
-- model's index. Where the filters leave too few on the way, the bank is scanned. From a switch of its model on until all vectors have
-- settled they are searched where they stand beside; those that came with their memory since are compared one by one.
CREATE OR REPLACE FUNCTION hindsight._search_by_meaning(
  opened hindsight.bank, at timestamptz, filter hindsight._filter, most integer, asked halfvec, model hindsight.embedding_model)
  RETURNS uuid[]
  LANGUAGE plpgsql STABLE
AS $$
DECLARE
  stands_beside constant boolean := hindsight._stands_beside(opened, model.model_id);
  ids uuid[];
BEGIN
  IF stands_beside THEN
    ids := hindsight._search_beside(opened, at, filter, most, asked, model);
  ELSE
    EXECUTE pg_catalog.format(
      'SELECT array_agg(b.memory_id) FROM (
         SELECT m.memory_id FROM hindsight.live_memory AS m
         WHERE m.model_id = %1$s AND m.bank_id = $1 AND (m.expires_at IS NULL OR m.expires_at > $2)
           AND hindsight._passes(m.type, m.tags, coalesce(m.occurred_at, m.created_at), m.session_id, m.entities, m.confidence, m.metadata, $3)
         ORDER BY m.embedding::halfvec(%2$s) <=> $4::halfvec(%2$s)
         LIMIT $5) AS b', model.model_id, model.dimensions)
      INTO ids USING opened.bank_id, at, filter, asked, most;
  END IF;
  IF pg_catalog.cardinality(coalesce(ids, '{}')) < most THEN
    ids := (SELECT s.by_meaning FROM hindsight._scan(opened.bank_id, (at, NULL, NULL, false)::hindsight._moment, filter, most, asked, model.model_id,
                                                     stands_beside, '{}', '{}', NULL, NULL) AS s);
  END IF;
  RETURN ids;
END
$$;

-- _diverse: of results, best first, the top_k that are good and not alike (maximal marginal relevance, Carbonell and
-- Goldstein 1998): the best, then again and again the one with the greatest (1 − diversity) · score − diversity · likeness to those.
CREATE OR REPLACE FUNCTION hindsight._diverse(
  of_bank bigint, moment hindsight._moment, ids uuid[], scores double precision[],
  top_k integer, diversity double precision)
  RETURNS uuid[]
  LANGUAGE plpgsql STABLE
AS $$
DECLARE
  alike double precision[]; -- of each two results, row by row
  nearest double precision[] := pg_catalog.array_fill(0::double precision, ARRAY[pg_catalog.cardinality(ids)]); -- to what is picked
  picked integer[] := '{}';
  best integer := 1;
BEGIN
  WITH result AS MATERIALIZED (
    SELECT f.place, v.embedding, v.document, v.model_id, coalesce(r.floor, 0) AS floor
    FROM pg_catalog.unnest(ids) WITH ORDINALITY AS f(memory_id, place)
    LEFT JOIN hindsight._visible(of_bank, moment.at, moment.as_of, moment.valid_at, moment.include_pending) AS v ON v.memory_id = f.memory_id
    LEFT JOIN hindsight.embedding_model AS r ON r.model_id = v.model_id
  )
  SELECT pg_catalog.array_agg(hindsight._alike(
           CASE WHEN one.model_id = other.model_id THEN 1 - (one.embedding <=> other.embedding) END, one.floor, one.document, other.document)
           ORDER BY one.place, other.place)
    INTO alike FROM result AS one CROSS JOIN result AS other;
  WHILE best IS NOT NULL AND pg_catalog.cardinality(picked) < top_k LOOP
    picked := picked || best;
    FOR n IN 1..pg_catalog.cardinality(ids) LOOP
      nearest[n] := greatest(nearest[n], alike[(best - 1) * pg_catalog.cardinality(ids) + n]);
    END LOOP;
    best := (SELECT r.place
             FROM ROWS FROM (pg_catalog.unnest(scores), pg_catalog.unnest(nearest)) WITH ORDINALITY AS r(score, nearest, place)
             WHERE r.place <> ALL (picked)
             ORDER BY (1 - diversity) * r.score - diversity * r.nearest DESC, r.place LIMIT 1);
  END LOOP;
  RETURN ARRAY(SELECT ids[p] FROM pg_catalog.unnest(picked) AS p);
END
$$;
