-- Forgetting: gone from every channel at once, by id, by what memories have in common, or a whole bank; and taking that back.
-- A forgotten memory stays as a row: what was said before it was forgotten does not come back (_gone), and it can be restored.

-- _derived: what was made of some memories (derived_from), and what was made of that.
CREATE OR REPLACE FUNCTION hindsight._derived(of_bank bigint, ids uuid[])
  RETURNS SETOF uuid
  LANGUAGE sql STABLE
AS $$
  WITH RECURSIVE derived(memory_id) AS (
    SELECT l.from_id FROM hindsight.link AS l
      WHERE l.bank_id = of_bank AND l.to_id = ANY (ids) AND l.relation = 'derived_from' AND l.removed_at IS NULL
    UNION
    SELECT l.from_id FROM derived AS d JOIN hindsight.link AS l ON l.to_id = d.memory_id
      WHERE l.bank_id = of_bank AND l.relation = 'derived_from' AND l.removed_at IS NULL
  )
  SELECT d.memory_id FROM derived AS d
$$;

-- _stands_on_forgotten: why a memory that was made of forgotten ones is pending.
CREATE OR REPLACE FUNCTION hindsight._stands_on_forgotten()
  RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 'it stands on a forgotten memory';

-- _stands_on_doubted: why an insight is pending some of whose evidence was superseded, corrected or is doubted.
CREATE OR REPLACE FUNCTION hindsight._stands_on_doubted()
  RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 'it stands on a memory that is no longer believed';

-- _why_pending: why a memory is not believed, as what it was made of is now: itself, or through what is pending for the same reason.
-- What somebody holds for another reason stays held.
CREATE OR REPLACE FUNCTION hindsight._why_pending(m hindsight.memory)
  RETURNS text
  LANGUAGE sql STABLE
RETURN CASE
  WHEN m.pending_reason NOT IN ('low confidence', hindsight._stands_on_forgotten()) THEN m.pending_reason
  WHEN EXISTS (
    WITH RECURSIVE source(memory_id) AS (
      SELECT m.memory_id
      UNION
      SELECT l.to_id
        FROM source AS s
        JOIN hindsight.memory AS e ON e.bank_id = m.bank_id AND e.memory_id = s.memory_id
        JOIN hindsight.link AS l ON l.bank_id = m.bank_id AND l.from_id = s.memory_id AND l.relation = 'derived_from' AND l.removed_at IS NULL
        WHERE e.memory_id = m.memory_id OR (e.deleted_at IS NULL AND e.pending_reason = hindsight._stands_on_forgotten())
    )
    SELECT FROM source AS s JOIN hindsight.memory AS e ON e.bank_id = m.bank_id AND e.memory_id = s.memory_id
    WHERE e.deleted_at IS NOT NULL AND e.memory_id <> m.memory_id)
    THEN hindsight._stands_on_forgotten()
  WHEN m.type = 'hypothesis' AND EXISTS (
    SELECT FROM hindsight.link AS l JOIN hindsight.memory AS e ON e.bank_id = l.bank_id AND e.memory_id = l.to_id
    WHERE l.bank_id = m.bank_id AND l.from_id = m.memory_id AND l.relation = 'derived_from' AND l.removed_at IS NULL
      AND (e.superseded_by IS NOT NULL OR e.pending_reason IS NOT NULL))
    THEN hindsight._stands_on_doubted()
  WHEN m.confidence < hindsight._believable() THEN 'low confidence'
END;

-- _lock_derived: locks what was made of memories, before any of them changes (_take_turns).
CREATE OR REPLACE FUNCTION hindsight._lock_derived(of_bank bigint, ids uuid[])
  RETURNS void
  LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
  PERFORM FROM hindsight.memory AS m
    WHERE m.bank_id = of_bank AND m.memory_id IN (SELECT hindsight._derived(of_bank, ids))
    ORDER BY m.memory_id FOR NO KEY UPDATE;
END
$$;

-- _lock_with_derived: a memory, locked to be forgotten or restored, with what was made of it. It takes turns where it was made of
-- another or another of it, so that both are not forgotten and restored at once; and where it has a slot, so that a writer of the slot
-- sees it forgotten. Raises HM002.
CREATE OR REPLACE FUNCTION hindsight._lock_with_derived(opened hindsight.bank, memory_id uuid)
  RETURNS hindsight.memory
  LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  held hindsight.memory;
BEGIN
  IF EXISTS (SELECT FROM hindsight.memory AS m
             WHERE m.bank_id = opened.bank_id AND m.memory_id = _lock_with_derived.memory_id AND m.slot IS NOT NULL)
     OR EXISTS (SELECT FROM hindsight.link AS l
                WHERE l.bank_id = opened.bank_id AND _lock_with_derived.memory_id IN (l.from_id, l.to_id) AND l.relation = 'derived_from'
                  AND l.removed_at IS NULL) THEN
    PERFORM hindsight._take_turns(opened.bank_id);
    held := hindsight._lock_memory(opened, memory_id);
    PERFORM hindsight._lock_derived(opened.bank_id, ARRAY[memory_id]);
    RETURN held;
  END IF;
  RETURN hindsight._lock_memory(opened, memory_id);
END
$$;

-- _doubt_derived: what was made of memories that are forgotten is not believed any more, however confidently it is said. It waits
-- to be made anew, or goes with what is pending for long.
CREATE OR REPLACE FUNCTION hindsight._doubt_derived(of_bank bigint, ids uuid[])
  RETURNS void
  LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  held hindsight.memory;
  changed hindsight.memory;
BEGIN
  LOOP
    FOR held IN
      SELECT m.* FROM hindsight.current_memory AS m
      WHERE m.bank_id = of_bank AND m.memory_id IN (SELECT hindsight._derived(of_bank, ids))
        AND coalesce(m.pending_reason, 'low confidence') = 'low confidence'
      ORDER BY m.memory_id FOR NO KEY UPDATE
    LOOP
      changed := held;
      changed.pending_reason := hindsight._stands_on_forgotten();
      PERFORM hindsight._change('doubted', held, changed, hindsight._stands_on_forgotten());
    END LOOP;
    EXIT WHEN NOT FOUND; -- else once more: of what was just doubted something may have been made meanwhile
  END LOOP;
END
$$;

-- _believe_again: of these memories, those that stood on something forgotten are believed again, for a reason, unless something else that
-- they were made of is gone, or their slot is taken meanwhile. In the order they were made in: what was made of one comes after it.
CREATE OR REPLACE FUNCTION hindsight._believe_again(of_bank bigint, ids uuid[], reason text)
  RETURNS void
  LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  held hindsight.memory;
  changed hindsight.memory;
BEGIN
  FOR held IN
    SELECT m.* FROM hindsight.current_memory AS m
    WHERE m.bank_id = of_bank AND m.memory_id = ANY (ids)
      AND m.pending_reason = hindsight._stands_on_forgotten()
    ORDER BY m.created_at FOR NO KEY UPDATE
  LOOP
    changed := held;
    changed.pending_reason := hindsight._why_pending(held);
    CONTINUE WHEN changed.pending_reason = held.pending_reason;
    BEGIN
      PERFORM hindsight._change(CASE WHEN changed.pending_reason IS NULL THEN 'believed' ELSE 'doubted' END, held, changed, reason);
    EXCEPTION WHEN unique_violation THEN -- it stays pending
      NULL;
    END;
  END LOOP;
END
$$;

-- forget: a memory is gone from every channel at once, and can be restored. Forgetting it again changes nothing.
--   outcome: forgotten, or 'already forgotten'.
-- Raises HM001, HM002, HM003, HM005 (no reason).
CREATE OR REPLACE FUNCTION hindsight.forget(bank text, memory_id uuid, reason text)
  RETURNS SETOF hindsight.forgotten
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
  SET enable_seqscan = off
AS $$
DECLARE
  opened constant hindsight.bank := _open_bank(bank, 'writer');
  held constant memory := _lock_with_derived(opened, memory_id);
BEGIN
  PERFORM _check_text('reason', reason, 2000);
  reason := _redacted(opened, 'reason', reason);
  IF held.deleted_at IS NULL THEN
    PERFORM _retire(opened.bank_id, ARRAY[held.memory_id], 'forgotten', reason), _doubt_derived(opened.bank_id, ARRAY[held.memory_id]);
  END IF;
  RETURN QUERY SELECT held.memory_id, CASE WHEN held.deleted_at IS NULL THEN 'forgotten' ELSE 'already forgotten' END;
END
$$;
COMMENT ON FUNCTION hindsight.forget(text, uuid, text) IS
  'Forgets a memory, for a reason: gone from every channel at once, restorable; a second time changes nothing.';

-- forget_matching: forgets every memory that passes all of the filters, whatever its state: types, tags (any of), all_tags,
-- session_id, source, since and until (when it was said, else stored). Without any filter it raises: forget_bank forgets everything.
-- dry_run => true only lists what would be forgotten. Returns the memories, the newest first.
-- Raises HM001, HM003, HM004 (no filter, unknown type or source), HM005 (no reason).
CREATE OR REPLACE FUNCTION hindsight.forget_matching(
  bank text, reason text, types text[] DEFAULT NULL, tags text[] DEFAULT NULL, all_tags text[] DEFAULT NULL,
  session_id text DEFAULT NULL, source text DEFAULT NULL, since timestamptz DEFAULT NULL, until timestamptz DEFAULT NULL,
  dry_run boolean DEFAULT false)
  RETURNS SETOF hindsight.matched
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
  SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
  opened constant hindsight.bank := _open_bank(bank, 'writer');
  filter _filter;
BEGIN
  PERFORM _check_text('reason', forget_matching.reason, 2000), _check_source(forget_matching.source),
          _check_time('since', forget_matching.since), _check_time('until', forget_matching.until);
  forget_matching.reason := _redacted(opened, 'reason', forget_matching.reason);
  PERFORM _check_type(t) FROM unnest(forget_matching.types) AS t;
  filter.types := nullif(forget_matching.types, '{}');
  filter.tags := nullif(_bank_tags(opened.bank_id, forget_matching.tags), '{}');
  filter.all_tags := nullif(_bank_tags(opened.bank_id, forget_matching.all_tags), '{}');
  filter.session_id := forget_matching.session_id;
  filter.source := forget_matching.source;
  filter.since := forget_matching.since;
  filter.until := forget_matching.until;
  IF (forget_matching.types IS NOT NULL AND filter.types IS NULL) OR (forget_matching.tags IS NOT NULL AND filter.tags IS NULL)
     OR (forget_matching.all_tags IS NOT NULL AND filter.all_tags IS NULL) THEN
    RAISE EXCEPTION 'a filter of forget_matching is empty'
      USING ERRCODE = 'HM004', HINT = 'Leave out types, tags or all_tags where they are not to filter: an empty list would forget more than was meant.';
  END IF;
  IF filter IS NULL THEN
    RAISE EXCEPTION 'forget_matching needs a filter'
      USING ERRCODE = 'HM004', HINT = 'Give types, tags, all_tags, session_id, source, since or until; forget_bank forgets everything.';
  END IF;
  RETURN QUERY SELECT * FROM _forget_all(opened, filter, forget_matching.reason, coalesce(forget_matching.dry_run, true));
END
$$;
COMMENT ON FUNCTION hindsight.forget_matching(text, text, text[], text[], text[], text, text, timestamptz, timestamptz, boolean) IS
  'Forgets every memory that passes the filters, for a reason; dry_run only lists them.';

-- forget_bank: forgets every memory of a bank; each can be restored. Returns how many. Raises HM001, HM003 (not an owner), HM005 (no reason).
CREATE OR REPLACE FUNCTION hindsight.forget_bank(bank text, reason text)
  RETURNS bigint
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
  SET enable_seqscan = off
AS $$
DECLARE
  opened constant hindsight.bank := _open_bank(bank, 'owner');
BEGIN
  PERFORM _check_text('reason', reason, 2000);
  reason := _redacted(opened, 'reason', reason);
  RETURN (SELECT count(*) FROM _forget_all(opened, NULL, reason, false));
END
$$;
COMMENT ON FUNCTION hindsight.forget_bank(text, text) IS
  'Forgets every memory of a bank, for a reason. Returns how many; each can be restored.';

-- _forget_all: forgets, or lists, what passes a filter; NULL lets everything pass.
CREATE OR REPLACE FUNCTION hindsight._forget_all(opened hindsight.bank, filter hindsight._filter, reason text, dry_run boolean)
  RETURNS SETOF hindsight.matched
  LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  ids uuid[];
BEGIN
  IF dry_run THEN
    ids := ARRAY(
      SELECT m.memory_id FROM hindsight.memory AS m
      WHERE m.bank_id = opened.bank_id AND m.deleted_at IS NULL AND coalesce(m.source = filter.source, filter.source IS NULL)
        AND hindsight._passes(m.type, m.tags, coalesce(m.occurred_at, m.created_at), m.session_id, m.entities, m.confidence, m.metadata, filter));
  ELSE
    PERFORM hindsight._take_turns(opened.bank_id);
    ids := ARRAY(
      SELECT m.memory_id FROM hindsight.memory AS m
      WHERE m.bank_id = opened.bank_id AND m.deleted_at IS NULL AND coalesce(m.source = filter.source, filter.source IS NULL)
        AND hindsight._passes(m.type, m.tags, coalesce(m.occurred_at, m.created_at), m.session_id, m.entities, m.confidence, m.metadata, filter)
      ORDER BY m.memory_id FOR NO KEY UPDATE);
    PERFORM hindsight._lock_derived(opened.bank_id, ids);
    PERFORM hindsight._retire(opened.bank_id, ids, 'forgotten', reason), hindsight._doubt_derived(opened.bank_id, ids);
  END IF;
  RETURN QUERY
    SELECT m.memory_id, CASE WHEN dry_run THEN 'would be forgotten' ELSE 'forgotten' END, m.type, m.content, m.tags, m.session_id,
           m.source, m.occurred_at, m.created_at
    FROM hindsight.memory AS m
    WHERE m.bank_id = opened.bank_id AND m.memory_id = ANY (ids)
    ORDER BY coalesce(m.occurred_at, m.created_at) DESC, m.memory_id;
END
$$;

-- restore: takes a forgetting back: the memory is what it was before, with its age; and what was made of it is believed again. Either
-- is pending while something that it was made of is forgotten. Returns its state.
-- Raises HM001, HM002 (unknown), HM003, HM004 (not forgotten), HM006 (its content or slot is taken meanwhile).
CREATE OR REPLACE FUNCTION hindsight.restore(bank text, memory_id uuid, reason text DEFAULT NULL)
  RETURNS text
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
  SET enable_seqscan = off
AS $$
DECLARE
  opened constant hindsight.bank := _open_bank(bank, 'writer');
  held constant memory := _lock_with_derived(opened, memory_id);
  changed memory := held;
BEGIN
  PERFORM _check_optional_text('reason', reason, 2000);
  reason := _redacted(opened, 'reason', reason);
  IF held.deleted_at IS NULL THEN
    RAISE EXCEPTION 'memory % is not forgotten, it is %', memory_id, _state(held, clock_timestamp())
      USING ERRCODE = 'HM004', HINT = 'Only what was forgotten can be restored.';
  END IF;
  PERFORM FROM link AS l JOIN memory AS e ON e.bank_id = l.bank_id AND e.memory_id = l.to_id -- whoever forgets it meanwhile is waited for
    WHERE l.bank_id = opened.bank_id AND l.from_id = held.memory_id AND l.relation = 'derived_from' FOR SHARE OF e;
  changed.deleted_at := NULL;
  changed.pending_reason := _why_pending(held);
  changed := _change_unless_taken('restored', held, changed, reason);
  PERFORM _believe_again(opened.bank_id, ARRAY(SELECT _derived(opened.bank_id, ARRAY[changed.memory_id])), 'what it stands on is restored');
  RETURN _state(changed, clock_timestamp());
END
$$;
COMMENT ON FUNCTION hindsight.restore(text, uuid, text) IS
  'Takes a forgetting back: the memory is what it was before. Returns its state.';
