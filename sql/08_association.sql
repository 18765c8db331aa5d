-- Links that make themselves: by the rare entities that two memories share, and by their meaning. They are derived, as embeddings are: they
-- leave no event, are taken away when there are better ones, and the past has those of now. Sessions need none: what stands beside a
-- memory in its session is looked up (10_association.sql).

-- _entity_strength: what a shared entity says: nothing for a quantity (8 GB, 30 分钟), much for an identifier (ERR-7731, user_id).
CREATE OR REPLACE FUNCTION hindsight._entity_strength(name text)
  RETURNS double precision
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE hindsight.entity_kind(name) WHEN 'quantity' THEN 0 WHEN 'identifier' THEN 3 ELSE 1 END;

-- _sharing: the memories that share entities with one, the rarest first, with a weight: the sum of the entities' IDFs, saturated. In a
-- small bank no name is rare enough to weigh half, an identifier is. Entities of more than fifty memories are passed over.
CREATE OR REPLACE FUNCTION hindsight._sharing(opened hindsight.bank, of_id uuid, entities text[], most integer)
  RETURNS TABLE (memory_id uuid, weight double precision)
  LANGUAGE plpgsql STABLE
AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
    WITH named AS MATERIALIZED (
      SELECT n.name, n.strength
      FROM (SELECT e.name, hindsight._entity_strength(e.name) AS strength FROM pg_catalog.unnest(entities) AS e(name)) AS n
      LEFT JOIN hindsight.entity AS counted ON counted.bank_id = opened.bank_id AND counted.key = hindsight._entity_key(n.name)
      WHERE n.strength > 0 AND coalesce(counted.memories, 0) <= 50
      ORDER BY n.strength DESC, coalesce(counted.memories, 0)
      LIMIT 8
    ),
    holder AS MATERIALIZED (
      SELECT n.strength, h.memory_id, count(*) OVER (PARTITION BY n.name) AS holders
      FROM named AS n CROSS JOIN LATERAL hindsight._holders(opened.bank_id, hindsight._names_of(opened.bank_id, n.name), 52) AS h
    )
    SELECT s.memory_id, s.rarity / (s.rarity + 6)
    FROM (SELECT h.memory_id, sum(h.strength * hindsight._idf(coalesce(opened.documents, 0), h.holders)) AS rarity
          FROM holder AS h WHERE h.holders <= 51 AND h.memory_id <> of_id GROUP BY h.memory_id) AS s
    ORDER BY 2 DESC, s.memory_id
    LIMIT most;
END
$$;

-- _nearest: the memories nearest in meaning to an embedding, of those that can be seen now and of what is pending, at most twenty and
-- from a cosine on, nearest first; in a large bank by the index.
CREATE OR REPLACE FUNCTION hindsight._nearest(
  opened hindsight.bank, used hindsight.embedding_model, wanted halfvec, from_cosine double precision)
  RETURNS uuid[]
  LANGUAGE plpgsql STABLE
AS $$
DECLARE
  stands_beside constant boolean := hindsight._stands_beside(opened, used.model_id);
BEGIN
  IF opened.documents IS NULL
     AND NOT EXISTS (SELECT FROM hindsight.live_memory AS m WHERE m.bank_id = opened.bank_id OFFSET hindsight._exact_limit()) THEN
    RETURN ARRAY(
      SELECT n.memory_id
      FROM (SELECT m.memory_id,
                   hindsight._embedding_by(used.model_id, stands_beside, m.bank_id, m.memory_id, m.digest, m.model_id, m.embedding) <=> wanted AS distance
            FROM hindsight.current_memory AS m
            WHERE m.bank_id = opened.bank_id AND (m.model_id = used.model_id OR stands_beside)) AS n
      WHERE 1 - n.distance >= from_cosine
      ORDER BY n.distance LIMIT 20);
  END IF;
  RETURN hindsight._search_by_meaning(opened, pg_catalog.statement_timestamp(), NULL, 20, wanted, used)
         || hindsight._pending(opened.bank_id, pg_catalog.statement_timestamp(), NULL);
END
$$;

-- _related_cosine: from which cosine on two memories may be about the same, and are linked: a third of the way from relevant to the same.
-- Nearly all of the labelled contradictions (docs/evaluation.md) have more; the audit's rules, not the cosine, tell them from the rest.
CREATE OR REPLACE FUNCTION hindsight._related_cosine(used hindsight.embedding_model)
  RETURNS double precision
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN used.recall_threshold + (used.merge_threshold - used.recall_threshold) / 3;

-- _associates: what a memory shall be linked with of itself: three by entities, three by meaning at most.
CREATE OR REPLACE FUNCTION hindsight._associates(opened hindsight.bank, used hindsight.embedding_model, m hindsight.memory)
  RETURNS TABLE (other_id uuid, relation text, weight double precision)
  LANGUAGE plpgsql STABLE
AS $$
#variable_conflict use_column
DECLARE
  from_semantic constant double precision := hindsight.semantic(hindsight._related_cosine(used), used.floor);
BEGIN
  IF m.entities <> '{}' THEN
    RETURN QUERY SELECT s.memory_id, 'same_entity', s.weight FROM hindsight._sharing(opened, m.memory_id, m.entities, 3) AS s;
  END IF;
  IF m.model_id = used.model_id THEN
    RETURN QUERY
      SELECT o.memory_id, 'similar', s.weight
      FROM hindsight.live_memory AS o
      CROSS JOIN LATERAL (SELECT hindsight.semantic(1 - (o.embedding <=> m.embedding), used.floor)) AS s(weight)
      WHERE o.bank_id = opened.bank_id AND o.memory_id = ANY (hindsight._nearest(opened, used, m.embedding, hindsight._related_cosine(used)))
        AND o.memory_id <> m.memory_id AND o.model_id = used.model_id AND s.weight >= from_semantic
      ORDER BY s.weight DESC, o.memory_id
      LIMIT 3;
  END IF;
END
$$;

-- _associate: gives a memory the links that it shall have of itself: takes those away that are not the best any more, and makes those that
-- are missing; one whose weight has hardly changed stays. What somebody has linked or unlinked stays so. What is being erased is passed over,
-- not waited for. Returns how many were made.
CREATE OR REPLACE FUNCTION hindsight._associate(opened hindsight.bank, used hindsight.embedding_model, m hindsight.memory)
  RETURNS integer
  LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  best hindsight._edge[] := ARRAY(
    SELECT (m.memory_id, a.other_id, a.weight, a.relation)::hindsight._edge FROM hindsight._associates(opened, used, m) AS a);
  new_links integer;
BEGIN
  DELETE FROM hindsight.link AS l
    WHERE l.bank_id = opened.bank_id AND l.from_id = m.memory_id AND l.is_automatic AND l.removed_at IS NULL
      AND NOT EXISTS (SELECT FROM pg_catalog.unnest(best) AS b
                      WHERE b.child_id = l.to_id AND b.relation = l.relation AND pg_catalog.abs(b.weight - l.weight) < 0.1);
  INSERT INTO hindsight.link (bank_id, from_id, to_id, relation, weight, is_automatic)
    SELECT opened.bank_id, b.parent_id, b.child_id, b.relation, b.weight, true
    FROM pg_catalog.unnest(best) AS b
    JOIN hindsight.memory AS o ON o.bank_id = opened.bank_id AND o.memory_id = b.child_id
    WHERE NOT EXISTS (SELECT FROM hindsight.link AS l -- a link that somebody took away is there still, with the time it went
                      WHERE l.bank_id = opened.bank_id AND l.from_id = b.parent_id AND l.to_id = b.child_id AND l.relation = b.relation)
    ORDER BY b.child_id, b.relation
    FOR KEY SHARE OF o SKIP LOCKED
    ON CONFLICT DO NOTHING;
  GET DIAGNOSTICS new_links = ROW_COUNT;
  RETURN new_links;
END
$$;

-- refresh_links: links memories with what they are associated with: first those that were stored or changed since the last time, then,
-- again and again, all others, for whom something better may have come. At most so many memories, for two seconds at most; one that
-- waits for its embedding is waited for, for ten minutes. maintain calls it; after an import call it until it returns 0: nothing is left
-- that is new. Returns how many memories were looked at. Raises HM001, HM003, HM004.
CREATE OR REPLACE FUNCTION hindsight.refresh_links(bank text, most integer DEFAULT 500)
  RETURNS integer
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
  SET enable_seqscan = off
  SET hnsw.iterative_scan = strict_order
  SET hnsw.ef_search = 40
AS $$
DECLARE
  opened constant hindsight.bank := _open_bank(bank, 'writer');
BEGIN
  PERFORM _check_most(most);
  RETURN _refresh_links(opened, most);
END
$$;
COMMENT ON FUNCTION hindsight.refresh_links(text, integer) IS
  'Links new memories with what they are associated with. Returns how many were looked at: 0, nothing is new.';

-- _refresh_links: refresh_links, for whoever has opened the bank. with_round: then goes on with the
-- round of all, where something happens in the bank. What is committed later than what was linked last is met there. One at a time.
CREATE OR REPLACE FUNCTION hindsight._refresh_links(opened hindsight.bank, most integer, with_round boolean DEFAULT false)
  RETURNS integer
  LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  until constant timestamptz := pg_catalog.clock_timestamp() + interval '2 seconds';
  done_to timestamptz;
  round_at uuid;
  used hindsight.embedding_model;
  m hindsight.memory;
  looked_at integer := 0;
BEGIN
  IF NOT pg_catalog.pg_try_advisory_xact_lock(pg_catalog.hashtextextended('hindsight.refresh_links', opened.bank_id)) THEN
    RETURN 0;
  END IF;
  SELECT b.linked_to, b.link_round INTO done_to, round_at FROM hindsight.bank AS b WHERE b.bank_id = opened.bank_id;
  SELECT r.* INTO used FROM hindsight.embedding_model AS r WHERE r.model_id = opened.model_id;
  FOR m IN
    SELECT v.* FROM hindsight.live_memory AS v
    WHERE v.bank_id = opened.bank_id AND v.changed_at > coalesce(done_to, '-infinity')
    ORDER BY v.changed_at LIMIT most
  LOOP
    EXIT WHEN pg_catalog.clock_timestamp() > until
      OR (m.embedding IS NULL AND opened.model_id IS NOT NULL AND m.changed_at > pg_catalog.clock_timestamp() - interval '10 minutes');
    PERFORM hindsight._note_aliases(m), hindsight._associate(opened, used, m);
    looked_at := looked_at + 1;
    done_to := m.changed_at;
  END LOOP;
  IF with_round AND looked_at < most
     AND EXISTS (SELECT FROM hindsight.live_memory AS v
                 WHERE v.bank_id = opened.bank_id AND v.changed_at > pg_catalog.clock_timestamp() - interval '1 day') THEN
    FOR m IN
      SELECT v.* FROM hindsight.live_memory AS v
      WHERE v.bank_id = opened.bank_id AND v.memory_id > coalesce(round_at, '00000000-0000-0000-0000-000000000000')
      ORDER BY v.memory_id LIMIT least(most - looked_at, 100)
    LOOP
      EXIT WHEN pg_catalog.clock_timestamp() > until;
      PERFORM hindsight._associate(opened, used, m);
      looked_at := looked_at + 1;
      round_at := m.memory_id;
    END LOOP;
    IF NOT EXISTS (SELECT FROM hindsight.live_memory AS v WHERE v.bank_id = opened.bank_id AND v.memory_id > round_at) THEN
      round_at := NULL; -- from the first again, the next time
    END IF;
  END IF;
  UPDATE hindsight.bank AS b SET linked_to = done_to, link_round = round_at
    WHERE b.bank_id = opened.bank_id AND (b.linked_to, b.link_round) IS DISTINCT FROM (done_to, round_at);
  RETURN looked_at;
END
$$;
