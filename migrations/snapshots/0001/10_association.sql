-- Candidates by association: what recall follows from the best candidates to what is near them, by links and in the session.

-- _beside: the memories of a session right before and after a moment, as recall sees them: four on either side.
CREATE OR REPLACE FUNCTION hindsight._beside(of_bank bigint, moment hindsight._moment, of_session text, said_at timestamptz)
  RETURNS SETOF uuid
  LANGUAGE plpgsql STABLE
AS $$
BEGIN
  IF moment.as_of IS NULL AND moment.valid_at IS NULL AND NOT moment.include_pending THEN -- two walks in the index
    RETURN QUERY
      (SELECT m.memory_id FROM hindsight.live_memory AS m
       WHERE m.bank_id = of_bank AND m.session_id = of_session AND coalesce(m.occurred_at, m.created_at) < said_at
         AND (m.expires_at IS NULL OR m.expires_at > moment.at)
       ORDER BY coalesce(m.occurred_at, m.created_at) DESC LIMIT 4)
      UNION ALL
      (SELECT m.memory_id FROM hindsight.live_memory AS m
       WHERE m.bank_id = of_bank AND m.session_id = of_session AND coalesce(m.occurred_at, m.created_at) > said_at
         AND (m.expires_at IS NULL OR m.expires_at > moment.at)
       ORDER BY coalesce(m.occurred_at, m.created_at) LIMIT 4);
  ELSE
    RETURN QUERY
      SELECT v.memory_id
      FROM (SELECT m.memory_id, m.is_before,
                   pg_catalog.row_number() OVER (PARTITION BY m.is_before ORDER BY CASE WHEN m.is_before THEN said_at - m.moment ELSE m.moment - said_at END) AS place
            FROM (SELECT s.memory_id, t.moment, t.moment < said_at AS is_before
                  FROM hindsight._visible(of_bank, moment.at, moment.as_of, moment.valid_at, moment.include_pending) AS s
                  CROSS JOIN LATERAL (SELECT coalesce(s.occurred_at, s.created_at)) AS t(moment)
                  WHERE s.session_id = of_session AND t.moment <> said_at) AS m) AS v
      WHERE v.place <= 4;
  END IF;
END
$$;

-- _is_seen: whether recall sees a memory. Never inlined: an EXISTS in the query is planned as a join with the whole bank.
CREATE OR REPLACE FUNCTION hindsight._is_seen(of_bank bigint, moment hindsight._moment, of_id uuid)
  RETURNS boolean
  LANGUAGE plpgsql STABLE
AS $$
BEGIN
  IF moment.as_of IS NULL AND moment.valid_at IS NULL AND NOT moment.include_pending THEN
    RETURN EXISTS (SELECT FROM hindsight.live_memory AS m
                   WHERE m.bank_id = of_bank AND m.memory_id = of_id AND (m.expires_at IS NULL OR m.expires_at > moment.at));
  END IF;
  RETURN EXISTS (SELECT FROM hindsight._visible(of_bank, moment.at, moment.as_of, moment.valid_at, moment.include_pending) AS v
                 WHERE v.memory_id = of_id);
END
$$;

-- _links: the links of some memories to what can be seen, either way, the heaviest of each first and at most so many of each; two that
-- are linked are so once. Without exploring only those that recall follows (docs/evaluation.md has the ablation): what somebody linked,
-- and automatic links by an entity so rare that they weigh half or more.
CREATE OR REPLACE FUNCTION hindsight._links(
  of_bank bigint, moment hindsight._moment, ids uuid[], most integer, is_exploring boolean)
  RETURNS TABLE (memory_id uuid, other_id uuid, direction text, relation text, weight double precision, is_automatic boolean, linked_at timestamptz)
  LANGUAGE plpgsql STABLE
AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
    SELECT s.memory_id, n.other_id, n.direction, n.relation, n.weight, n.is_automatic, n.created_at
    FROM (SELECT DISTINCT u.memory_id FROM pg_catalog.unnest(ids) AS u(memory_id)) AS s
    CROSS JOIN LATERAL (
      SELECT * FROM (
        SELECT DISTINCT ON (e.other_id) e.*
        FROM ((SELECT l.to_id AS other_id, 'to' AS direction, l.relation, l.weight, l.is_automatic, l.created_at
               FROM hindsight.link AS l
               WHERE l.bank_id = of_bank AND l.from_id = s.memory_id
                 AND l.created_at <= moment.at AND (l.removed_at IS NULL OR l.removed_at > moment.at)
                 AND (is_exploring OR (l.weight > 0 AND (NOT l.is_automatic OR (l.relation = 'same_entity' AND l.weight >= 0.5))))
                 AND hindsight._is_seen(of_bank, moment, l.to_id)
               ORDER BY l.weight DESC
               LIMIT most)
              UNION ALL
              (SELECT l.from_id, 'from', l.relation, l.weight, l.is_automatic, l.created_at
               FROM hindsight.link AS l
               WHERE l.bank_id = of_bank AND l.to_id = s.memory_id
                 AND l.created_at <= moment.at AND (l.removed_at IS NULL OR l.removed_at > moment.at)
                 AND (is_exploring OR (l.weight > 0 AND (NOT l.is_automatic OR (l.relation = 'same_entity' AND l.weight >= 0.5))))
                 AND hindsight._is_seen(of_bank, moment, l.from_id)
               ORDER BY l.weight DESC
               LIMIT most)) AS e
        ORDER BY e.other_id, e.is_automatic, e.weight DESC) AS one
      ORDER BY one.weight DESC, one.created_at DESC
      LIMIT most
    ) AS n;
END
$$;

-- _linked: the edges from the best candidates, best first, to what is near them: from the six best by a link, at most ten each, at half its
-- weight; from all to what the session held around them, at a tenth.
CREATE OR REPLACE FUNCTION hindsight._linked(of_bank bigint, moment hindsight._moment, seeds uuid[])
  RETURNS hindsight._edge[]
  LANGUAGE plpgsql STABLE
AS $$
DECLARE
  has_links constant boolean := EXISTS (SELECT FROM hindsight.link AS l WHERE l.bank_id = of_bank);
BEGIN
  IF NOT has_links AND NOT EXISTS (SELECT FROM hindsight.session AS s WHERE s.bank_id = of_bank) THEN
    RETURN NULL;
  END IF;
  RETURN (
    SELECT pg_catalog.array_agg((near.parent_id, near.child_id, near.weight, near.relation)::hindsight._edge)
    FROM (
      SELECT l.memory_id AS parent_id, l.other_id AS child_id, 0.5 * l.weight AS weight, l.relation
      FROM hindsight._links(of_bank, moment, seeds[:6], 10, false) AS l
      WHERE has_links
      UNION ALL
      SELECT m.memory_id, beside.memory_id, 0.1, 'same_session'
      FROM hindsight._visible(of_bank, moment.at, moment.as_of, moment.valid_at, moment.include_pending) AS m
      CROSS JOIN LATERAL hindsight._beside(of_bank, moment, m.session_id, coalesce(m.occurred_at, m.created_at)) AS beside(memory_id)
      WHERE m.memory_id = ANY (seeds) AND m.session_id IS NOT NULL
    ) AS near);
END
$$;

-- _linked_further: the edges of the second hop: the links of what the first one reached by a link, of the six that the best
-- candidates and the heaviest links lead to, at most five each. It leads to no candidate and to nothing that one hop reaches by a link:
-- so nothing is lifted by its own echo, and a ring of links ends.
CREATE OR REPLACE FUNCTION hindsight._linked_further(
  of_bank bigint, moment hindsight._moment, seeds uuid[], edges hindsight._edge[])
  RETURNS hindsight._edge[]
  LANGUAGE plpgsql STABLE
AS $$
DECLARE
  reached constant uuid[] := ARRAY(
    SELECT e.child_id FROM pg_catalog.unnest(edges) AS e
    WHERE e.relation <> 'same_session' AND e.child_id <> ALL (seeds)
    GROUP BY e.child_id
    ORDER BY max(e.weight / (4 + pg_catalog.array_position(seeds, e.parent_id))) DESC);
BEGIN
  IF reached = '{}' THEN
    RETURN NULL;
  END IF;
  RETURN (
    SELECT pg_catalog.array_agg((l.memory_id, l.other_id, 0.5 * l.weight, l.relation)::hindsight._edge)
    FROM hindsight._links(of_bank, moment, reached[:6], 5 + 1, false) AS l -- one of them leads back
    WHERE l.other_id <> ALL (seeds) AND l.other_id <> ALL (reached));
END
$$;
