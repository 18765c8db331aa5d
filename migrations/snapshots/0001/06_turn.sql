-- Sessions and turns: what was said, kept as it was said.

-- _open_session: makes the session known, if it is not yet.
CREATE OR REPLACE FUNCTION hindsight._open_session(bank_id bigint, session_id text)
  RETURNS void
  LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
  PERFORM hindsight._check_text('session_id', session_id, 200);
  INSERT INTO hindsight.session (bank_id, session_id) VALUES (_open_session.bank_id, _open_session.session_id)
    ON CONFLICT ON CONSTRAINT session_pkey DO NOTHING;
END
$$;

-- log_turn: keeps one message of a session and returns its sequence number, counted from 1.
-- Without a sequence it is the session's next. With one, logging the same turn again changes nothing.
-- Raises HM001, HM003, HM004, HM005, HM006 (another turn has that sequence number).
CREATE OR REPLACE FUNCTION hindsight.log_turn(
  bank text, session_id text, role text, content text, tool_calls jsonb DEFAULT NULL, occurred_at timestamptz DEFAULT NULL,
  metadata jsonb DEFAULT NULL, sequence integer DEFAULT NULL)
  RETURNS integer
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
  SET enable_seqscan = off
AS $$
DECLARE
  opened constant hindsight.bank := _open_bank(bank, 'writer');
  place integer := sequence;
  held turn;
BEGIN
  PERFORM _check_text('role', role, 50), _check_object('metadata', metadata);
  IF tool_calls IS NULL OR content <> '' THEN
    PERFORM _check_text('content', content, 1000000);
  END IF;
  PERFORM _check_time('occurred_at', occurred_at);
  IF place NOT BETWEEN 1 AND 1000000000 THEN
    RAISE EXCEPTION 'sequence must lie between 1 and 1000000000, got %', place
      USING ERRCODE = 'HM004', HINT = 'Turns are counted from 1. Leave it out to add the session''s next turn.';
  END IF;
  PERFORM _open_session(opened.bank_id, session_id);
  -- The session's row orders its writers.
  UPDATE session AS s SET last_sequence = greatest(s.last_sequence, coalesce(place, s.last_sequence + 1))
    WHERE s.bank_id = opened.bank_id AND s.session_id = log_turn.session_id
    RETURNING coalesce(place, s.last_sequence) INTO place;
  INSERT INTO turn (bank_id, session_id, sequence, role, content, tool_calls, metadata, occurred_at)
    VALUES (opened.bank_id, log_turn.session_id, place, log_turn.role, coalesce(log_turn.content, ''), log_turn.tool_calls,
            coalesce(log_turn.metadata, '{}'), coalesce(log_turn.occurred_at, clock_timestamp()))
    ON CONFLICT ON CONSTRAINT turn_pkey DO NOTHING;
  IF NOT FOUND THEN
    SELECT t.* INTO held FROM turn AS t
      WHERE t.bank_id = opened.bank_id AND t.session_id = log_turn.session_id AND t.sequence = place;
    IF (held.role, held.content, held.tool_calls) IS DISTINCT FROM (role, coalesce(content, ''), tool_calls) THEN
      RAISE EXCEPTION 'session % has another turn %, of %', quote_literal(session_id), place, held.role
        USING ERRCODE = 'HM006', HINT = 'Turns are never changed. Leave sequence out to add a turn.';
    END IF;
  END IF;
  RETURN place;
END
$$;
COMMENT ON FUNCTION hindsight.log_turn(text, text, text, text, jsonb, timestamptz, jsonb, integer) IS
  'Keeps one message of a session as it was said, and returns its place in the session, counted from 1.';
