-- The queue of sessions that wait to be distilled. It is no table: what is to be done is the state of a session's row (due_at), which
-- a worker claims. A worker that is gone is not missed: its claim ends, and the session is due again.

-- set_distilling: changes what is given of how a bank's sessions are distilled. mode: auto (by a language model where the worker
-- has one, else by rules), model, rules, verbatim (each turn of importance is kept as it was said) or off. A session is due when
-- so many turns wait (after_turns, 4), when one of them says something explicitly, when it is closed, or when it has been idle for so
-- long (after_idle, 10 minutes). working_turns: how many of the last turns working_get returns (20).
-- Raises HM001, HM003 (not an owner), HM004.
CREATE OR REPLACE FUNCTION hindsight.set_distilling(
  bank text, mode text DEFAULT NULL, after_turns integer DEFAULT NULL, after_idle interval DEFAULT NULL, working_turns integer DEFAULT NULL)
  RETURNS void
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
AS $$
DECLARE
  opened hindsight.bank := _open_bank(bank, 'owner');
BEGIN
  IF mode <> ALL ('{auto,model,rules,verbatim,off}') THEN
    RAISE EXCEPTION 'unknown mode of distilling %', quote_literal(mode)
      USING ERRCODE = 'HM004', HINT = 'It is auto, model, rules, verbatim or off.';
  ELSIF NOT after_turns BETWEEN 1 AND 100 OR NOT working_turns BETWEEN 1 AND 1000 OR NOT after_idle BETWEEN '0' AND '1 year' THEN
    RAISE EXCEPTION 'after_turns must lie between 1 and 100, after_idle between 0 and a year, and working_turns between 1 and 1000, got %, % and %',
        after_turns, after_idle, working_turns
      USING ERRCODE = 'HM004', HINT = 'By default 4, 10 minutes and 20; what is left out stays as it is.';
  END IF;
  UPDATE hindsight.bank AS b
    SET distil_mode = coalesce(mode, b.distil_mode), distil_turns = coalesce(after_turns, b.distil_turns),
        distil_idle = coalesce(after_idle, b.distil_idle), working_turns = coalesce(set_distilling.working_turns, b.working_turns)
    WHERE b.bank_id = opened.bank_id RETURNING b.* INTO opened;
  UPDATE session AS s SET due_at = _distil_at(opened, s, false)
    WHERE s.bank_id = opened.bank_id AND s.claim IS NULL AND (s.waiting > 0 OR s.due_at IS NOT NULL);
END
$$;
COMMENT ON FUNCTION hindsight.set_distilling(text, text, integer, interval, integer) IS
  'Changes how a bank''s sessions are distilled: by what, and after how many turns. For its owners.';

-- claim_session: claims a session that is due, of one bank or of all that the caller works for, for so long (lease): nobody else is
-- given it before the claim ends. No row: nothing is due. Returns its first turns that wait (up to 40, and 24,000 characters), the
-- four before them, the bank's owner and embedding model, how to distil them, and whether the session ends with them: then it is summarised. What is made of them is
-- handed to distil with the claim; extend_claim keeps a claim; release_session gives it back. modes: only sessions of banks that
-- are distilled so. Raises HM001, HM003, HM004.
CREATE OR REPLACE FUNCTION hindsight.claim_session(
  bank text DEFAULT NULL, lease interval DEFAULT '5 minutes', modes text[] DEFAULT NULL)
  RETURNS TABLE (
    bank_name text, owner text, model text, session_id text, claim uuid, mode text, attempts integer, is_ending boolean, turns jsonb,
    before jsonb)
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
  SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
  only_bank bigint;
  due session;
  at constant timestamptz := clock_timestamp();
  left_over boolean;
BEGIN
  IF (claim_session.lease BETWEEN '1 second' AND '1 day') IS NOT TRUE THEN
    RAISE EXCEPTION 'lease must lie between a second and a day, got %', coalesce(claim_session.lease::text, 'NULL')
      USING ERRCODE = 'HM004', HINT = 'It is how long a session is yours if you are not heard of: 5 minutes by default.';
  END IF;
  IF claim_session.bank IS NOT NULL THEN
    only_bank := (_open_for_work(claim_session.bank)).bank_id;
  END IF;
  SELECT s.* INTO due FROM session AS s
    WHERE s.due_at <= at AND (only_bank IS NULL OR s.bank_id = only_bank)
      AND EXISTS (SELECT FROM bank AS b WHERE b.bank_id = s.bank_id AND b.distil_mode <> 'off'
                  AND (claim_session.modes IS NULL OR b.distil_mode = ANY (claim_session.modes)))
      AND (_works_everywhere() OR EXISTS (SELECT FROM access AS a
                                          WHERE a.bank_id = s.bank_id AND a.principal = principal() AND a.rights IN ('writer', 'owner')))
    ORDER BY s.due_at LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  claim := gen_random_uuid();
  UPDATE session AS s SET claim = claim_session.claim, due_at = at + claim_session.lease, attempts = s.attempts + 1
    WHERE s.bank_id = due.bank_id AND s.session_id = due.session_id RETURNING s.attempts INTO attempts;
  SELECT b.name, b.distil_mode, r.name, _owner(b.bank_id) INTO bank_name, mode, model, owner
    FROM bank AS b LEFT JOIN embedding_model AS r ON r.model_id = b.model_id WHERE b.bank_id = due.bank_id;
  session_id := due.session_id;
  WITH waiting AS (
    SELECT t.*, sum(length(t.content)) OVER (ORDER BY t.sequence) - length(t.content) AS preceding
    FROM (SELECT t.* FROM turn AS t
          WHERE t.bank_id = due.bank_id AND t.session_id = due.session_id AND t.distilled_at IS NULL
          ORDER BY t.sequence LIMIT 41) AS t
  ), taken AS (
    SELECT w.* FROM waiting AS w WHERE w.preceding < 24000 ORDER BY w.sequence LIMIT 40
  )
  SELECT coalesce(jsonb_agg(_told(t.sequence, t.role, t.content, t.tool_calls, t.occurred_at) ORDER BY t.sequence), '[]'),
         (SELECT count(*) FROM waiting) > count(*)
    INTO turns, left_over FROM taken AS t;
  SELECT coalesce(jsonb_agg(_told(t.sequence, t.role, t.content, t.tool_calls, t.occurred_at) ORDER BY t.sequence), '[]') INTO before
    FROM (SELECT t.* FROM turn AS t
          WHERE t.bank_id = due.bank_id AND t.session_id = due.session_id AND t.sequence < (turns -> 0 ->> 'sequence')::integer
          ORDER BY t.sequence DESC LIMIT 4) AS t;
  is_ending := due.closed_at IS NOT NULL AND NOT left_over;
  RETURN NEXT;
END
$$;
COMMENT ON FUNCTION hindsight.claim_session(text, interval, text[]) IS
  'Claims a session that is due to be distilled, with its turns that wait; nobody else is given it before the claim ends.';

-- _told: a turn as a worker gets it.
CREATE OR REPLACE FUNCTION hindsight._told(sequence integer, role text, content text, tool_calls jsonb, occurred_at timestamptz)
  RETURNS jsonb
  LANGUAGE sql STABLE
RETURN pg_catalog.jsonb_strip_nulls(pg_catalog.jsonb_build_object(
  'sequence', sequence, 'role', role, 'content', content, 'tool_calls', tool_calls, 'occurred_at', occurred_at));

-- _claimed: the session of a claim, locked. Raises HM006 when the claim has ended, or the session was distilled.
CREATE OR REPLACE FUNCTION hindsight._claimed(opened hindsight.bank, session_id text, claim uuid)
  RETURNS hindsight.session
  LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  held constant hindsight.session := hindsight._lock_session(opened.bank_id, session_id);
BEGIN
  IF held.claim IS DISTINCT FROM claim OR claim IS NULL THEN
    RAISE EXCEPTION 'the claim on session % has ended', pg_catalog.quote_literal(session_id)
      USING ERRCODE = 'HM006', HINT = 'Somebody else has it, or has done it. Nothing was changed: claim another (claim_session).';
  END IF;
  RETURN held;
END
$$;

-- _open_for_work: the bank of a claim: whoever works for all banks needs no right on it.
CREATE OR REPLACE FUNCTION hindsight._open_for_work(bank text)
  RETURNS hindsight.bank
  LANGUAGE plpgsql STABLE
AS $$
DECLARE
  opened hindsight.bank;
BEGIN
  IF hindsight._works_everywhere() THEN
    SELECT b.* INTO opened FROM hindsight.bank AS b WHERE b.name = bank;
  END IF;
  RETURN CASE WHEN opened.bank_id IS NOT NULL THEN opened ELSE hindsight._open_bank(bank, 'writer') END;
END
$$;

-- extend_claim: the heartbeat of whoever has claimed a session: the claim holds for so long from now on.
-- Raises HM001, HM002, HM003, HM006 (it has ended).
CREATE OR REPLACE FUNCTION hindsight.extend_claim(bank text, session_id text, claim uuid, lease interval DEFAULT '5 minutes')
  RETURNS void
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
AS $$
DECLARE
  opened constant hindsight.bank := _open_for_work(bank);
BEGIN
  PERFORM _claimed(opened, session_id, claim);
  UPDATE session AS s SET due_at = clock_timestamp() + least(extend_claim.lease, interval '1 day')
    WHERE s.bank_id = opened.bank_id AND s.session_id = extend_claim.session_id;
END
$$;
COMMENT ON FUNCTION hindsight.extend_claim(text, text, uuid, interval) IS 'Keeps a claim on a session: it holds for so long from now on.';

-- release_session: gives a claimed session back, with the reason: it is tried again after 10 seconds, and after twice as long at each
-- further attempt, up to an hour; or at once, without an error. Its turns wait as before. Returns when it is due.
-- Raises HM001, HM002, HM003, HM006 (the claim has ended).
CREATE OR REPLACE FUNCTION hindsight.release_session(bank text, session_id text, claim uuid, error text DEFAULT NULL)
  RETURNS timestamptz
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
AS $$
DECLARE
  opened constant hindsight.bank := _open_for_work(bank);
  held constant session := _claimed(opened, session_id, claim);
  due timestamptz := clock_timestamp();
BEGIN
  IF error IS NOT NULL THEN
    due := due + least(10 * 2 ^ least(held.attempts - 1, 20), 3600) * (0.75 + random() / 2) * interval '1 second';
  END IF;
  UPDATE session AS s
    SET claim = NULL, due_at = due, last_error = left(error, 2000), attempts = CASE WHEN error IS NULL THEN s.attempts - 1 ELSE s.attempts END
    WHERE s.bank_id = opened.bank_id AND s.session_id = release_session.session_id;
  RETURN due;
END
$$;
COMMENT ON FUNCTION hindsight.release_session(text, text, uuid, text) IS
  'Gives a claimed session back, with the error that kept it from being distilled. Returns when it is tried again.';

-- queue: the sessions that wait to be distilled, what failed and why, of one bank or of all that the caller may read: at most so many,
-- those that failed first. state: failed, claimed, due, waiting (for more turns), off. Raises HM001, HM003, HM004.
CREATE OR REPLACE FUNCTION hindsight.queue(bank text DEFAULT NULL, most integer DEFAULT 100)
  RETURNS TABLE (
    bank_name text, session_id text, state text, waiting integer, due_at timestamptz, attempts integer, last_error text)
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
AS $$
#variable_conflict use_column
DECLARE
  only_bank bigint := CASE WHEN queue.bank IS NOT NULL THEN (_open_bank(queue.bank, 'reader')).bank_id END;
BEGIN
  PERFORM _check_most(queue.most);
  RETURN QUERY
    SELECT b.name, s.session_id,
           CASE WHEN s.claim IS NOT NULL AND s.due_at > statement_timestamp() THEN 'claimed' WHEN s.last_error IS NOT NULL THEN 'failed'
                WHEN s.due_at IS NULL THEN 'off' WHEN s.due_at <= statement_timestamp() THEN 'due' ELSE 'waiting' END AS state,
           s.waiting, s.due_at, s.attempts, s.last_error
    FROM session AS s JOIN bank AS b ON b.bank_id = s.bank_id
    WHERE (s.waiting > 0 OR s.due_at IS NOT NULL) AND (s.bank_id = only_bank OR only_bank IS NULL AND _rights(s.bank_id) IS NOT NULL)
    ORDER BY s.last_error IS NULL, s.due_at, s.session_id
    LIMIT queue.most;
END
$$;
COMMENT ON FUNCTION hindsight.queue(text, integer) IS 'The sessions that wait to be distilled: when they are due, what failed, and why.';

-- retry: makes sessions of a bank that failed, or one that waits, due at once. Returns how many. Raises HM001, HM003.
CREATE OR REPLACE FUNCTION hindsight.retry(bank text, session_id text DEFAULT NULL)
  RETURNS integer
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
AS $$
DECLARE
  opened constant hindsight.bank := _open_bank(bank, 'writer');
  retried integer;
BEGIN
  UPDATE session AS s SET due_at = clock_timestamp(), attempts = 0
    WHERE s.bank_id = opened.bank_id AND s.claim IS NULL AND opened.distil_mode <> 'off'
      AND (s.waiting > 0 OR s.due_at IS NOT NULL)
      AND CASE WHEN retry.session_id IS NULL THEN s.last_error IS NOT NULL ELSE s.session_id = retry.session_id END;
  GET DIAGNOSTICS retried = ROW_COUNT;
  IF retried > 0 THEN
    NOTIFY hindsight_work;
  END IF;
  RETURN retried;
END
$$;
COMMENT ON FUNCTION hindsight.retry(text, text) IS 'Makes the sessions that failed, or one that waits, due at once. Returns how many.';
