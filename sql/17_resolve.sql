-- What an audit can put right by itself, one finding at a time. Each change is looked at again under lock: what has changed since
-- the audit is left alone, and a second time changes nothing.

-- resolve: does what an audit's finding has as its remedy, where that loses nothing, and says what it did:
--   merged: the memory with fewer confirmations, of equals the newer one, is superseded by the other, which takes over its tags,
--     entities, metadata, links and slot, and counts the confirmations of both (duplicates);
--   withdrawn: it is pending until what it stands on is restored or somebody confirms it (orphans);
--   retagged: its tags have the bank's spelling (tags);
--   left: nothing to do, or for a person to decide.
-- Every change leaves an event whose reason begins with 'audit: '.
-- Raises HM001, HM002, HM003, HM004 (unknown finding, no other_id of a duplicate).
CREATE OR REPLACE FUNCTION hindsight.resolve(bank text, finding text, memory_id uuid, other_id uuid DEFAULT NULL)
  RETURNS text
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
  SET enable_seqscan = off
AS $$
DECLARE
  opened constant hindsight.bank := _open_bank(bank, 'writer');
  at constant timestamptz := clock_timestamp();
  held memory;
  other memory;
  changed memory;
BEGIN
  PERFORM _check_finding(finding), _take_turns(opened.bank_id);
  IF finding = 'duplicates' THEN
    IF (memory_id <> other_id) IS NOT TRUE THEN
      RAISE EXCEPTION 'a duplicate is one of two memories, got % and %', coalesce(memory_id::text, 'NULL'),
          coalesce(other_id::text, 'NULL')
        USING ERRCODE = 'HM004', HINT = 'Give the memory_id and the other_id of the finding.';
    END IF;
    held := _lock_memory(opened, least(memory_id, other_id)); -- one order: no deadlock
    other := _lock_memory(opened, greatest(memory_id, other_id));
    IF _state(held, at) = 'live' AND _state(other, at) = 'live'
       AND _is_duplicate(held, other, (SELECT r.merge_threshold FROM embedding_model AS r WHERE r.model_id = held.model_id)) THEN
      IF (held.type = 'hypothesis', -held.confirmations, held.created_at, held.memory_id)
         < (other.type = 'hypothesis', -other.confirmations, other.created_at, other.memory_id) THEN
        PERFORM _unite(opened, held, other);
      ELSE
        PERFORM _unite(opened, other, held);
      END IF;
      RETURN 'merged';
    END IF;
    RETURN 'left';
  END IF;
  held := _lock_memory(opened, memory_id);
  changed := held;
  IF _state(held, at) <> 'live' THEN
    RETURN 'left';
  ELSIF finding = 'orphans' AND EXISTS (
      SELECT FROM link AS l JOIN memory AS e ON e.bank_id = l.bank_id AND e.memory_id = l.to_id
      WHERE l.bank_id = opened.bank_id AND l.from_id = held.memory_id AND l.relation = 'derived_from' AND l.removed_at IS NULL
        AND e.deleted_at >= held.confirmed_at) THEN
    changed.pending_reason := _stands_on_forgotten();
    PERFORM _change('doubted', held, changed, 'audit: ' || _stands_on_forgotten());
    RETURN 'withdrawn';
  ELSIF finding = 'tags' THEN
    changed.tags := ARRAY(
      SELECT coalesce(s.better, t.tag)
      FROM unnest(held.tags) WITH ORDINALITY AS t(tag, place) LEFT JOIN _tag_spellings(opened, at) AS s ON s.tag = t.tag
      GROUP BY 1 ORDER BY min(t.place));
    IF changed.tags <> held.tags THEN
      PERFORM _change('updated', held, changed, 'audit: its tags are spelled as in other memories');
      RETURN 'retagged';
    END IF;
  END IF;
  RETURN 'left';
END
$$;
COMMENT ON FUNCTION hindsight.resolve(text, text, uuid, uuid) IS
  'Does what a finding of an audit has as its remedy, where that loses nothing: merged, withdrawn, retagged or left.';

-- _unite: of two locked memories that say the same the one is kept, and takes over what the other has.
CREATE OR REPLACE FUNCTION hindsight._unite(opened hindsight.bank, kept hindsight.memory, gone hindsight.memory)
  RETURNS void
  LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  united hindsight.memory := hindsight._united(kept, gone);
  superseded hindsight.memory := gone;
  edge hindsight.link;
BEGIN
  superseded.superseded_by := kept.memory_id;
  PERFORM hindsight._change('superseded', gone, superseded, pg_catalog.format('audit: memory %s says the same', kept.memory_id));
  IF pg_catalog.length((gone.metadata || kept.metadata)::text) <= 100000 THEN
    united.metadata := gone.metadata || kept.metadata;
  END IF;
  united.confidence := greatest(kept.confidence, gone.confidence);
  united.confirmations := kept.confirmations + gone.confirmations + 1;
  PERFORM hindsight._change('merged', kept, united, pg_catalog.format('audit: memory %s says the same', gone.memory_id));
  FOR edge IN
    SELECT l.* FROM hindsight.link AS l
    WHERE l.bank_id = opened.bank_id AND l.removed_at IS NULL AND NOT l.is_automatic
      AND gone.memory_id IN (l.from_id, l.to_id) AND kept.memory_id NOT IN (l.from_id, l.to_id)
      AND EXISTS (SELECT FROM hindsight.memory AS m WHERE m.bank_id = l.bank_id AND m.deleted_at IS NULL
                  AND m.memory_id = CASE WHEN l.from_id = gone.memory_id THEN l.to_id ELSE l.from_id END)
  LOOP
    PERFORM hindsight._link(opened, CASE WHEN edge.from_id = gone.memory_id THEN kept.memory_id ELSE edge.from_id END,
                            CASE WHEN edge.to_id = gone.memory_id THEN kept.memory_id ELSE edge.to_id END, edge.relation, edge.weight);
  END LOOP;
END
$$;
