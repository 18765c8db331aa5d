-- Links: typed, weighted, directed edges between two memories. A link that was taken away stays, with the time it went:
-- recall(as_of) sees the links of then.

-- _link: link, for whoever has opened the bank. Returns false when the same link was there already.
CREATE OR REPLACE FUNCTION hindsight._link(
  opened hindsight.bank, source_id uuid, target_id uuid, relation text, weight double precision)
  RETURNS boolean
  LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  held hindsight.link;
  at timestamptz; -- where one weight ends and the next begins
BEGIN
  IF source_id = target_id THEN
    RAISE EXCEPTION 'memory % cannot be linked to itself', source_id
      USING ERRCODE = 'HM004', HINT = 'Name two memories: from_id and to_id.';
  END IF;
  -- Only the target is kept from being forgotten meanwhile, since what is derived from it would not be doubted. A lock on the other
  -- as well could deadlock with writers that hold both.
  IF NOT EXISTS (SELECT FROM hindsight.memory AS m
                 WHERE m.bank_id = opened.bank_id AND m.memory_id = source_id AND m.deleted_at IS NULL) THEN
    PERFORM hindsight._raise_unknown_memory(opened.name, source_id);
  ELSIF NOT EXISTS (SELECT FROM hindsight.memory AS m
                    WHERE m.bank_id = opened.bank_id AND m.memory_id = target_id AND m.deleted_at IS NULL FOR SHARE) THEN
    PERFORM hindsight._raise_unknown_memory(opened.name, target_id);
  END IF;
  PERFORM pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('hindsight.link', opened.bank_id)); -- no link is made twice
  SELECT l.* INTO held FROM hindsight.link AS l
    WHERE l.bank_id = opened.bank_id AND l.from_id = source_id AND l.to_id = target_id AND l.relation = _link.relation AND l.removed_at IS NULL;
  IF held.weight = _link.weight AND NOT held.is_automatic THEN
    RETURN false;
  END IF;
  at := pg_catalog.clock_timestamp();
  UPDATE hindsight.link AS l SET removed_at = at WHERE l.bank_id = opened.bank_id AND l.link_id = held.link_id;
  INSERT INTO hindsight.link (bank_id, from_id, to_id, relation, weight, created_at)
    VALUES (opened.bank_id, source_id, target_id, relation, weight, at);
  PERFORM hindsight._record_link(opened.bank_id, 'linked', source_id, target_id, relation, weight);
  RETURN true;
END
$$;

-- link: says that one memory relates to another: related, causes, solves, part_of, contradicts, evolved_into, derived_from,
-- or a relation of the caller's own. Linking again changes the weight. Returns false when the same link was there already.
-- Raises HM001, HM002 (no such memory, or forgotten), HM003, HM004, HM005.
CREATE OR REPLACE FUNCTION hindsight.link(
  bank text, from_id uuid, to_id uuid, relation text DEFAULT 'related', weight double precision DEFAULT 1)
  RETURNS boolean
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
  SET enable_seqscan = off
AS $$
DECLARE
  opened constant hindsight.bank := _open_bank(bank, 'writer');
  kind constant text := lower(btrim(coalesce(relation, 'related')));
BEGIN
  PERFORM _check_text('relation', kind, 100), _check_unit('weight', weight);
  RETURN _link(opened, from_id, to_id, kind, coalesce(weight, 1));
END
$$;
COMMENT ON FUNCTION hindsight.link(text, uuid, uuid, text, double precision) IS
  'Links one memory to another, with a relation and a weight; false when the same link was there already.';

-- unlink: takes links between two memories away, in that direction: of one relation, or all. Returns how many. What was not believed since
-- the other is forgotten, and stands on nothing else that is, is believed again.
-- Raises HM001, HM003.
CREATE OR REPLACE FUNCTION hindsight.unlink(bank text, from_id uuid, to_id uuid, relation text DEFAULT NULL)
  RETURNS integer
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
  SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
  opened constant hindsight.bank := _open_bank(bank, 'writer');
  gone link;
  removed integer := 0;
  freed uuid[]; -- what was made of the one, if that was made of the other
BEGIN
  IF coalesce(lower(btrim(unlink.relation)), 'derived_from') = 'derived_from' THEN
    PERFORM _take_turns(opened.bank_id);
    freed := ARRAY(SELECT unlink.from_id UNION SELECT _derived(opened.bank_id, ARRAY[unlink.from_id]));
    PERFORM FROM memory AS m WHERE m.bank_id = opened.bank_id AND m.memory_id = ANY (freed) ORDER BY m.memory_id FOR NO KEY UPDATE;
  END IF;
  PERFORM pg_advisory_xact_lock(hashtextextended('hindsight.link', opened.bank_id)); -- with those who link
  FOR gone IN
    UPDATE link AS l SET removed_at = clock_timestamp()
      WHERE l.bank_id = opened.bank_id AND l.from_id = unlink.from_id AND l.to_id = unlink.to_id AND l.removed_at IS NULL
        AND (unlink.relation IS NULL OR l.relation = lower(btrim(unlink.relation)))
      RETURNING l.*
  LOOP
    PERFORM _record_link(opened.bank_id, 'unlinked', gone.from_id, gone.to_id, gone.relation, gone.weight);
    removed := removed + 1;
  END LOOP;
  IF removed > 0 THEN
    PERFORM _believe_again(opened.bank_id, freed, 'what it stood on was unlinked');
  END IF;
  RETURN removed;
END
$$;
COMMENT ON FUNCTION hindsight.unlink(text, uuid, uuid, text) IS
  'Takes the links from one memory to another away, of one relation or all. Returns how many.';

-- _record_link: leaves an event at the memory that the link begins at.
CREATE OR REPLACE FUNCTION hindsight._record_link(
  bank_id bigint, action text, from_id uuid, to_id uuid, relation text, weight double precision)
  RETURNS void
  LANGUAGE sql VOLATILE
RETURN hindsight._leave_event(
  bank_id, action, from_id, NULL, NULL, pg_catalog.jsonb_build_object('to_id', to_id, 'relation', relation, 'weight', weight));

-- neighbours: the live memories that a memory is linked with, in either direction, at most so many: what somebody linked first, then the
-- heaviest link. direction: 'to' (the link goes to it), or 'from'. Raises HM001, HM002, HM003, HM004.
CREATE OR REPLACE FUNCTION hindsight.neighbours(bank text, memory_id uuid, most integer DEFAULT 100)
  RETURNS SETOF hindsight.neighbour
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
  SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
  opened constant hindsight.bank := _open_bank(bank, 'reader');
  centre constant uuid := neighbours.memory_id;
BEGIN
  PERFORM _check_most(neighbours.most);
  IF NOT EXISTS (SELECT FROM memory AS m WHERE m.bank_id = opened.bank_id AND m.memory_id = centre AND m.deleted_at IS NULL) THEN
    PERFORM _raise_unknown_memory(bank, centre);
  END IF;
  RETURN QUERY
    SELECT m.memory_id, e.direction, e.relation, e.weight, m.content, m.type, e.created_at, e.is_automatic
    FROM (SELECT l.to_id AS other, 'to' AS direction, l.relation, l.weight, l.created_at, l.is_automatic FROM link AS l
          WHERE l.bank_id = opened.bank_id AND l.from_id = centre AND l.removed_at IS NULL
          UNION ALL
          SELECT l.from_id, 'from', l.relation, l.weight, l.created_at, l.is_automatic FROM link AS l
          WHERE l.bank_id = opened.bank_id AND l.to_id = centre AND l.removed_at IS NULL) AS e
    JOIN live_memory AS m ON m.bank_id = opened.bank_id AND m.memory_id = e.other
    WHERE m.expires_at IS NULL OR m.expires_at > statement_timestamp()
    ORDER BY e.is_automatic, e.weight DESC, e.created_at DESC
    LIMIT neighbours.most;
END
$$;
COMMENT ON FUNCTION hindsight.neighbours(text, uuid, integer) IS
  'The live memories that a memory is linked with, in either direction; what somebody linked first, then the heaviest link.';
