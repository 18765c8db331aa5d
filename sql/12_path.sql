-- Exploring the association layer: how two memories hang together.

-- path: the shortest way along links from one memory to another, in whatever direction they point: a row for each memory on it, step 0
-- the first. relation, direction ('to': the link goes to it, 'from'), weight and is_automatic are of the link that leads to it. Of ways of
-- one length the one whose steps weigh most, step by step. No row: none of at most max_hops links (1 to 6) was found. It is looked for
-- along the twenty heaviest links of each memory, from the thousand of a step that weigh most. Stable: runs on a hot standby.
-- Raises HM001, HM002, HM003, HM004.
CREATE OR REPLACE FUNCTION hindsight.path(bank text, from_id uuid, to_id uuid, max_hops integer DEFAULT 4)
  RETURNS TABLE (
    step integer, memory_id uuid, content text, type text, relation text, direction text, weight double precision, is_automatic boolean)
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
  SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
  opened constant hindsight.bank := _open_bank(bank, 'reader');
  moment constant _moment := (statement_timestamp(), NULL, NULL, false);
  frontier uuid[] := ARRAY[path.from_id];
  seen uuid[] := frontier;
  edges _edge[] := '{}'; -- one to each memory that was reached: the way back
  found_edges _edge[];
  way uuid[] := ARRAY[path.to_id];
BEGIN
  IF path.max_hops NOT BETWEEN 1 AND 6 THEN
    RAISE EXCEPTION 'max_hops must lie between 1 and 6, got %', path.max_hops
      USING ERRCODE = 'HM004', HINT = 'It is how many links the way may have: 4 by default.';
  END IF;
  FOREACH memory_id IN ARRAY ARRAY[path.from_id, path.to_id] LOOP
    IF NOT EXISTS (SELECT FROM memory AS m WHERE m.bank_id = opened.bank_id AND m.memory_id = path.memory_id AND m.deleted_at IS NULL) THEN
      PERFORM _raise_unknown_memory(bank, memory_id);
    END IF;
  END LOOP;
  FOR hop IN 1..coalesce(path.max_hops, 4) LOOP
    EXIT WHEN path.to_id = ANY (seen);
    found_edges := ARRAY(
      SELECT (b.memory_id, b.other_id, b.weight, b.relation)::_edge
      FROM (SELECT DISTINCT ON (l.other_id) l.*
            FROM _links(opened.bank_id, moment, frontier, 20, true) AS l
            WHERE l.other_id <> ALL (seen)
            ORDER BY l.other_id, l.weight DESC, array_position(frontier, l.memory_id)) AS b
      ORDER BY b.other_id = path.to_id DESC, b.weight DESC, b.other_id LIMIT 1000);
    frontier := ARRAY(SELECT e.child_id FROM unnest(found_edges) WITH ORDINALITY AS e ORDER BY e.ordinality);
    EXIT WHEN frontier = '{}';
    seen := seen || frontier;
    edges := edges || found_edges;
  END LOOP;
  IF path.to_id <> ALL (seen) THEN
    RETURN;
  END IF;
  WHILE way[1] <> path.from_id LOOP
    way := (SELECT e.parent_id FROM unnest(edges) AS e WHERE e.child_id = way[1]) || way;
  END LOOP;
  RETURN QUERY
    SELECT w.place::integer - 1, m.memory_id, m.content, m.type, l.relation, l.direction, l.weight, l.is_automatic
    FROM unnest(way) WITH ORDINALITY AS w(memory_id, place)
    JOIN memory AS m ON m.bank_id = opened.bank_id AND m.memory_id = w.memory_id
    LEFT JOIN LATERAL (
      SELECT * FROM _links(opened.bank_id, moment, ARRAY[way[w.place - 1]], 20, true) AS l WHERE l.other_id = w.memory_id LIMIT 1) AS l ON true
    ORDER BY w.place;
END
$$;
COMMENT ON FUNCTION hindsight.path(text, uuid, uuid, integer) IS
  'The shortest way along links from one memory to another: a row for each memory on it.';
