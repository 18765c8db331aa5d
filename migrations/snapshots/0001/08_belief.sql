-- Belief: the queue of what is not believed yet, and what people decide about it; and what they have done of what was to be done.

-- pending: what waits to be believed, the newest first: what was said or inferred with little confidence, what stands on
-- something forgotten. It waits thirty days (maintain). Raises HM001, HM003, HM004.
CREATE OR REPLACE FUNCTION hindsight.pending(bank text, most integer DEFAULT 100)
  RETURNS SETOF hindsight.memory_record
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
  SET enable_seqscan = off
AS $$
DECLARE
  opened constant hindsight.bank := _open_bank(bank, 'reader');
BEGIN
  PERFORM _check_most(most);
  RETURN QUERY
    SELECT shown.*
    FROM memory AS m CROSS JOIN LATERAL _shown(m, statement_timestamp()) AS shown
    WHERE m.bank_id = opened.bank_id AND m.deleted_at IS NULL AND m.superseded_by IS NULL AND m.archived_at IS NULL
      AND m.pending_reason IS NOT NULL AND (m.expires_at IS NULL OR m.expires_at > statement_timestamp())
    ORDER BY m.changed_at DESC
    LIMIT most;
END
$$;
COMMENT ON FUNCTION hindsight.pending(text, integer) IS 'What waits to be believed, the newest first: a queue to review.';

-- confirm: somebody who knows says that it is so: what was pending is believed, what was a hypothesis is a fact, and it counts as
-- said now, with a confidence of 0.9 at least. Of a slot it takes the place. Returns its state.
-- Raises HM001, HM002, HM003, HM005, HM006 (superseded or archived).
CREATE OR REPLACE FUNCTION hindsight.confirm(bank text, memory_id uuid, reason text DEFAULT NULL)
  RETURNS text
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
  SET enable_seqscan = off
AS $$
DECLARE
  opened constant hindsight.bank := _open_bank(bank, 'writer', by_type => true);
  held memory;
  changed memory;
  since timestamptz;
BEGIN
  PERFORM _check_optional_text('reason', reason, 2000), _take_turns(opened.bank_id);
  reason := _redacted(opened, 'reason', reason);
  held := _lock_current(opened, memory_id);
  changed := held;
  changed.pending_reason := NULL;
  changed.type := CASE WHEN held.type = 'hypothesis' THEN 'fact' ELSE held.type END;
  PERFORM _check_writes(opened.bank_id, changed.type);
  changed.confidence := greatest(held.confidence, 0.9);
  changed.confirmed_at := clock_timestamp();
  changed.confirmations := held.confirmations + 1;
  changed.expires_at := CASE WHEN held.expires_at IS NOT NULL THEN greatest(held.expires_at, _lives_until(opened.bank_id, changed.type)) END;
  IF changed.slot IS NOT NULL AND held.pending_reason IS NOT NULL THEN
    changed.confidence := 1; -- whoever confirms has decided the contest
    changed.source := 'user';
    since := (SELECT c.superseded_at FROM _contest_slot(changed, changed.confirmed_at) AS c);
    changed.confidence := greatest(held.confidence, 0.9);
    changed.source := held.source;
  END IF;
  RETURN _state(_change_unless_taken('confirmed', held, changed, reason, since), clock_timestamp());
END
$$;
COMMENT ON FUNCTION hindsight.confirm(text, uuid, text) IS
  'Somebody who knows says that it is so: what was pending or a hypothesis is believed. Returns its state.';

-- reject: somebody who knows says that what is pending is not so: it is forgotten. Rejecting it again changes nothing.
-- Raises HM001, HM002, HM003, HM004 (it is not pending), HM005.
CREATE OR REPLACE FUNCTION hindsight.reject(bank text, memory_id uuid, reason text DEFAULT 'rejected in review')
  RETURNS SETOF hindsight.forgotten
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
  SET enable_seqscan = off
AS $$
DECLARE
  opened constant hindsight.bank := _open_bank(bank, 'writer', by_type => true);
  held constant memory := _lock_with_derived(opened, memory_id);
BEGIN
  PERFORM _check_text('reason', reason, 2000);
  reason := _redacted(opened, 'reason', reason);
  IF held.deleted_at IS NULL AND held.pending_reason IS NULL THEN
    RAISE EXCEPTION 'memory % is not pending, it is %', memory_id, _state(held, clock_timestamp())
      USING ERRCODE = 'HM004', HINT = 'forget takes away what was believed.';
  ELSIF held.deleted_at IS NULL THEN
    PERFORM _retire(opened.bank_id, ARRAY[held.memory_id], 'rejected', reason), _doubt_derived(opened.bank_id, ARRAY[held.memory_id]);
  END IF;
  RETURN QUERY SELECT held.memory_id, CASE WHEN held.deleted_at IS NULL THEN 'forgotten' ELSE 'already forgotten' END;
END
$$;
COMMENT ON FUNCTION hindsight.reject(text, uuid, text) IS
  'Somebody who knows says that what is pending is not so: it is forgotten.';

-- complete: a todo is done: it stays, says so, and fades like any other memory. Completing it again changes nothing. Returns when it was done.
-- Raises HM001, HM002, HM003, HM004 (no todo), HM005, HM006 (superseded or archived).
CREATE OR REPLACE FUNCTION hindsight.complete(bank text, memory_id uuid, reason text DEFAULT NULL)
  RETURNS timestamptz
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
  SET enable_seqscan = off
AS $$
DECLARE
  opened constant hindsight.bank := _open_bank(bank, 'writer', by_type => true);
  held constant memory := _lock_current(opened, memory_id);
  changed memory := held;
BEGIN
  PERFORM _check_optional_text('reason', reason, 2000);
  reason := _redacted(opened, 'reason', reason);
  IF held.type <> 'todo' THEN
    RAISE EXCEPTION 'memory % is a %, not a todo', memory_id, held.type
      USING ERRCODE = 'HM004', HINT = 'Only what is to be done can be completed.';
  ELSIF held.completed_at IS NULL THEN
    changed.completed_at := clock_timestamp();
    changed.confirmed_at := changed.completed_at;
    changed.expires_at := NULL;
    changed := _change('completed', held, changed, reason);
  END IF;
  RETURN changed.completed_at;
END
$$;
COMMENT ON FUNCTION hindsight.complete(text, uuid, text) IS 'A todo is done: it stays, says so, and does not expire. Returns when it was done.';

-- note_recall: says that memories were recalled: what nobody recalls and nobody thought important is put away (maintain). recall itself only reads.
-- Returns how many of them the bank has. Raises HM001.
CREATE OR REPLACE FUNCTION hindsight.note_recall(bank text, memory_ids uuid[])
  RETURNS integer
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
  SET enable_seqscan = off
AS $$
DECLARE
  opened constant hindsight.bank := _open_bank(bank, 'reader');
  noted integer;
BEGIN
  INSERT INTO memory_use AS u (bank_id, memory_id)
    SELECT m.bank_id, m.memory_id FROM memory AS m
    WHERE m.bank_id = opened.bank_id AND m.memory_id = ANY (memory_ids) ORDER BY m.memory_id -- one order: no deadlock
    FOR KEY SHARE -- one that is being erased is passed over
    ON CONFLICT ON CONSTRAINT memory_use_pkey DO UPDATE SET recalls = u.recalls + 1, last_at = now();
  GET DIAGNOSTICS noted = ROW_COUNT;
  RETURN noted;
END
$$;
COMMENT ON FUNCTION hindsight.note_recall(text, uuid[]) IS 'Says that memories were recalled, so that maintain puts none of them away as unused.';
