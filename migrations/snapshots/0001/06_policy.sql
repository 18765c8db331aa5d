-- Policies: how long a memory lives and what a new value of its slot does, by type, and by bank where it departs from that.

-- set_policy: what a type of memory is in this bank: its decay rate (λ per day), its weight in the score, how long it lives
-- when it is not told otherwise (ttl; '0': for good), and what happens when a slot has a value already (on_conflict):
--   overwrite: the newer value supersedes the older one;
--   history: so it does, and the older one remains answerable by date (recall(valid_at));
--   confident: the more confident value supersedes the other; of equals the newer one.
-- What is left out stays as it is. Raises HM001, HM003 (not an owner), HM004.
CREATE OR REPLACE FUNCTION hindsight.set_policy(
  bank text, type text, decay_rate double precision DEFAULT NULL, weight double precision DEFAULT NULL,
  ttl interval DEFAULT NULL, on_conflict text DEFAULT NULL)
  RETURNS void
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
AS $$
DECLARE
  opened constant hindsight.bank := _open_bank(bank, 'owner');
BEGIN
  PERFORM _check_type(type), _check_unit('decay_rate', decay_rate), _check_unit('weight', weight);
  IF NOT ttl BETWEEN '0' AND '1000 years' THEN
    RAISE EXCEPTION 'ttl must lie between 0 and a thousand years, got %', ttl
      USING ERRCODE = 'HM004', HINT = 'Give an interval such as ''30 days'', or ''0'' for memories that stay.';
  ELSIF on_conflict NOT IN ('overwrite', 'history', 'confident') THEN
    RAISE EXCEPTION 'unknown policy %', quote_literal(on_conflict)
      USING ERRCODE = 'HM004', HINT = 'on_conflict is overwrite, history or confident.';
  END IF;
  INSERT INTO bank_type AS b (bank_id, type, decay_rate, weight, ttl, on_conflict)
    VALUES (opened.bank_id, set_policy.type, set_policy.decay_rate, set_policy.weight, set_policy.ttl, set_policy.on_conflict)
    ON CONFLICT ON CONSTRAINT bank_type_pkey DO UPDATE
      SET decay_rate = coalesce(excluded.decay_rate, b.decay_rate), weight = coalesce(excluded.weight, b.weight),
          ttl = coalesce(excluded.ttl, b.ttl), on_conflict = coalesce(excluded.on_conflict, b.on_conflict);
  PERFORM _leave_event(opened.bank_id, 'set_policy', NULL, type, NULL,
                       jsonb_strip_nulls(jsonb_build_object('type', type, 'decay_rate', decay_rate, 'weight', weight,
                                                            'ttl', ttl::text, 'on_conflict', on_conflict)));
END
$$;
COMMENT ON FUNCTION hindsight.set_policy(text, text, double precision, double precision, interval, text) IS
  'What a type of memory is in this bank: decay rate, weight, time to live, and what a new value of a slot does.';

-- policies: what each type of memory is in a bank. Raises HM001.
CREATE OR REPLACE FUNCTION hindsight.policies(bank text)
  RETURNS TABLE (type text, decay_rate double precision, weight double precision, ttl interval, on_conflict text, description text)
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
AS $$
#variable_conflict use_column
DECLARE
  opened constant hindsight.bank := _open_bank(bank, 'reader');
BEGIN
  RETURN QUERY
    SELECT t.type, coalesce(b.decay_rate, t.decay_rate, opened.decay_rate), coalesce(b.weight, t.weight), coalesce(b.ttl, t.ttl),
           coalesce(b.on_conflict, t.on_conflict), t.description
    FROM memory_type AS t LEFT JOIN bank_type AS b ON b.bank_id = opened.bank_id AND b.type = t.type
    ORDER BY t.type;
END
$$;
COMMENT ON FUNCTION hindsight.policies(text) IS 'What each type of memory is in a bank: decay rate, weight, time to live, conflicts.';

-- _lives_until: when a memory of this type that is kept now ends, by the bank's policy; NULL: it stays.
CREATE OR REPLACE FUNCTION hindsight._lives_until(of_bank bigint, of_type text)
  RETURNS timestamptz
  LANGUAGE sql VOLATILE
RETURN (
  SELECT pg_catalog.clock_timestamp() + nullif(coalesce(b.ttl, t.ttl), '0')
  FROM hindsight.memory_type AS t LEFT JOIN hindsight.bank_type AS b ON b.bank_id = of_bank AND b.type = t.type
  WHERE t.type = of_type);

-- _on_conflict: the bank's policy for a new value of a slot.
CREATE OR REPLACE FUNCTION hindsight._on_conflict(of_bank bigint, of_type text)
  RETURNS text
  LANGUAGE sql STABLE
RETURN (
  SELECT coalesce(b.on_conflict, t.on_conflict)
  FROM hindsight.memory_type AS t LEFT JOIN hindsight.bank_type AS b ON b.bank_id = of_bank AND b.type = t.type
  WHERE t.type = of_type);

-- _take_turns: whoever locks more than one memory of a bank in a call takes turns with the others who do (values of slots, what is
-- derived, many at once), and locks all of them before it changes one. So no two of them deadlock; nor one of them with somebody
-- who holds one memory, and waits for a content or slot that another has changed: for whoever has changed something waits for no lock.
CREATE OR REPLACE FUNCTION hindsight._take_turns(of_bank bigint)
  RETURNS void
  LANGUAGE sql VOLATILE
BEGIN ATOMIC
  SELECT pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('hindsight.slot', of_bank));
END;

-- _begin_of_next: a value of a slot was true from that time on; until when, where others that have gone by are known? The one that
-- was true then ends with it.
CREATE OR REPLACE FUNCTION hindsight._begin_of_next(late hindsight.memory, said_at timestamptz, held_since timestamptz)
  RETURNS timestamptz
  LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  past hindsight.memory;
  changed hindsight.memory;
  next_at timestamptz := held_since;
BEGIN
  FOR past IN
    SELECT m.* FROM hindsight.memory AS m
    WHERE m.bank_id = late.bank_id AND m.slot = late.slot AND m.valid_to > said_at AND m.deleted_at IS NULL AND m.archived_at IS NULL
    ORDER BY m.memory_id FOR NO KEY UPDATE
  LOOP
    IF coalesce(past.occurred_at, past.created_at) > said_at THEN
      next_at := least(next_at, coalesce(past.occurred_at, past.created_at));
    ELSE
      changed := past;
      changed.valid_to := said_at;
      PERFORM hindsight._change('dated', past, changed, 'slot ' || late.slot || ' had another value from then on');
    END IF;
  END LOOP;
  RETURN next_at;
END
$$;

-- _true_before: a memory is told again as true since an earlier date. Was it, all the time between? reason is NULL: yes, and a value
-- of its slot that was thought to be true then ends with it. Otherwise the memory keeps its date, and where another value followed before
-- that, what it was until then is a row of its own, answerable by date.
CREATE OR REPLACE FUNCTION hindsight._true_before(
  held hindsight.memory, again hindsight.memory, said_at timestamptz, OUT reason text)
  LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  held_since constant timestamptz := coalesce(held.occurred_at, held.created_at);
  next_at timestamptz;
  before hindsight.memory := again;
BEGIN
  IF again.pending_reason IS NOT NULL OR (again.type = 'hypothesis' AND held.type <> 'hypothesis') THEN
    reason := 'it keeps its date: an earlier one was told with doubt';
  ELSIF held.slot IS NOT NULL AND held.pending_reason IS NULL
        AND EXISTS (SELECT FROM hindsight.memory AS m
                    WHERE m.bank_id = held.bank_id AND m.slot = held.slot AND m.valid_to > said_at
                      AND m.deleted_at IS NULL AND m.archived_at IS NULL) THEN
    reason := pg_catalog.format('it keeps its date: slot %s had another value since then', held.slot);
    IF again.slot IS NULL AND again.digest <> held.digest THEN -- it has not taken turns, and may lock no other memory
      RETURN;
    ELSIF EXISTS (SELECT FROM hindsight.memory AS m
                  WHERE m.bank_id = held.bank_id AND m.slot = held.slot AND m.digest = again.digest AND m.valid_to > said_at
                    AND coalesce(m.occurred_at, m.created_at) <= said_at AND m.deleted_at IS NULL AND m.archived_at IS NULL) THEN
      RETURN; -- it is known that it was
    END IF;
    next_at := hindsight._begin_of_next(held, said_at, held_since);
    IF next_at = held_since THEN
      reason := NULL;
      RETURN;
    END IF;
    before.slot := held.slot;
    before.superseded_by := held.memory_id;
    before.valid_to := next_at;
    PERFORM hindsight._insert(before), hindsight._record(before.bank_id, 'superseded', before.memory_id, reason, NULL, before);
  END IF;
END
$$;

-- _contest_slot: who holds a slot after a challenge. holder_id is NULL: the challenger may take it, since it was free, or its
-- holder is superseded now (superseded_id; the challenger is believed from superseded_at on). Otherwise the holder keeps
-- it, by the policy of the challenger's type, and the challenger was true until valid_to, if it was ever true.
-- What was inferred never takes the place of what was said; and of what was said with another version the newer one follows.
-- Nor does a less trusted source take the place of what a more trusted one said, whatever the policy (is_distrusted): somebody
-- is to confirm it.
CREATE OR REPLACE FUNCTION hindsight._contest_slot(
  challenger hindsight.memory, said_at timestamptz,
  OUT holder_id uuid, OUT superseded_id uuid, OUT superseded_at timestamptz, OUT valid_to timestamptz, OUT reason text,
  OUT is_distrusted boolean)
  LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  holder hindsight.memory;
  changed hindsight.memory;
  policy constant text := hindsight._on_conflict(challenger.bank_id, challenger.type);
  held_since timestamptz;
  said_last timestamptz;
  keeps_history boolean;
  wins boolean;
BEGIN
  SELECT m.* INTO holder FROM hindsight.live_memory AS m
    WHERE m.bank_id = challenger.bank_id AND m.slot = challenger.slot AND m.memory_id <> challenger.memory_id
    FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RETURN;
  ELSIF holder.expires_at <= pg_catalog.clock_timestamp() THEN
    PERFORM hindsight._retire(holder.bank_id, ARRAY[holder.memory_id], 'archived', 'expired');
    RETURN;
  END IF;
  held_since := least(coalesce(holder.occurred_at, holder.created_at), holder.created_at); -- nothing was said in the future
  said_last := least(hindsight._said_last(holder), holder.created_at);
  keeps_history := policy = 'history' OR hindsight._evolves(holder.content, challenger.content);
  IF (holder.type = 'hypothesis') <> (challenger.type = 'hypothesis') THEN
    wins := holder.type = 'hypothesis';
    reason := CASE WHEN wins THEN 'slot %s had a guess' ELSE 'slot %s has a stated value, and this was inferred' END;
  ELSIF keeps_history OR policy = 'overwrite' OR holder.confidence = challenger.confidence THEN
    wins := said_at >= said_last;
    reason := CASE WHEN wins AND keeps_history THEN 'slot %s had another value before, which remains answerable by date'
                   WHEN wins THEN 'slot %s had another value' ELSE 'slot %s has a newer value' END;
  ELSE
    wins := challenger.confidence > holder.confidence;
    reason := CASE WHEN wins THEN 'slot %s had a less confident value' ELSE 'slot %s has a more confident value' END;
  END IF;
  is_distrusted := wins AND holder.type <> 'hypothesis' AND hindsight._trust(challenger.source) < hindsight._trust(holder.source)
    AND (SELECT b.screening FROM hindsight.bank AS b WHERE b.bank_id = challenger.bank_id);
  IF is_distrusted THEN
    wins := false;
    reason := hindsight._contradicts_trusted();
  ELSIF wins AND holder.type <> ALL (hindsight._writable_types(holder.bank_id)) THEN
    wins := false;
    reason := 'slot %s has a ' || holder.type || ', which the writer may not change';
  END IF;
  reason := pg_catalog.format(reason, challenger.slot);
  IF NOT wins THEN
    holder_id := holder.memory_id;
    IF NOT is_distrusted AND keeps_history AND said_at < held_since
       AND (holder.type = 'hypothesis') = (challenger.type = 'hypothesis') THEN
      valid_to := hindsight._begin_of_next(challenger, said_at, held_since);
    END IF;
    RETURN;
  END IF;
  changed := holder;
  changed.superseded_by := challenger.memory_id;
  changed.valid_to := CASE WHEN keeps_history THEN said_at END;
  changed := hindsight._change('superseded', holder, changed, 'slot ' || challenger.slot || ' has a new value');
  superseded_id := holder.memory_id;
  superseded_at := changed.changed_at;
END
$$;
