-- Sessions and turns: what was said, kept as it was said. A table partition for each month, so that old ones can be put away.

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

-- _lock_session: a session's row, locked: it orders the session's writers. Raises HM002 (no such session).
CREATE OR REPLACE FUNCTION hindsight._lock_session(of_bank bigint, session_id text)
  RETURNS hindsight.session
  LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  held hindsight.session;
BEGIN
  SELECT s.* INTO held FROM hindsight.session AS s
    WHERE s.bank_id = of_bank AND s.session_id = _lock_session.session_id FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'there is no session %', coalesce(pg_catalog.quote_literal(session_id), 'NULL')
      USING ERRCODE = 'HM002', HINT = 'A session begins with its first turn (log_turn), value (working_set) or memory.';
  END IF;
  RETURN held;
END
$$;

-- _open_month: makes the partition of a month. It is made beside the table and attached then, which stops neither readers nor
-- writers; nobody is granted to read it but through the table, whose policies hold.
CREATE OR REPLACE FUNCTION hindsight._open_month(at timestamptz)
  RETURNS void
  LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  month constant timestamp := pg_catalog.date_trunc('month', at AT TIME ZONE 'UTC');
  name constant text := 'turn_' || pg_catalog.to_char(month, 'YYYY_MM');
BEGIN
  IF pg_catalog.to_regclass('hindsight.' || name) IS NOT NULL THEN
    RETURN;
  END IF;
  PERFORM pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('hindsight.turn', 0));
  EXECUTE pg_catalog.format('CREATE TABLE hindsight.%I (LIKE hindsight.turn INCLUDING ALL)', name);
  EXECUTE pg_catalog.format('ALTER TABLE hindsight.%I ENABLE ROW LEVEL SECURITY', name);
  EXECUTE pg_catalog.format('ALTER TABLE hindsight.turn ATTACH PARTITION hindsight.%I FOR VALUES FROM (%L) TO (%L)', name,
                            month AT TIME ZONE 'UTC', (month + interval '1 month') AT TIME ZONE 'UTC');
EXCEPTION WHEN duplicate_table THEN
  NULL; -- somebody was faster: to_regclass may not know yet what another has made
END
$$;

-- _turn: a turn as log_turns is given it, checked. Raises HM004, HM005.
CREATE OR REPLACE FUNCTION hindsight._turn(given jsonb)
  RETURNS hindsight.turn
  LANGUAGE plpgsql STABLE
AS $$
DECLARE
  checked hindsight.turn;
  unknown text;
BEGIN
  IF pg_catalog.jsonb_typeof(given) IS DISTINCT FROM 'object' THEN
    RAISE EXCEPTION 'a turn must be a JSON object, got a JSON %', coalesce(pg_catalog.jsonb_typeof(given), 'NULL')
      USING ERRCODE = 'HM004', HINT = 'For example {"role": "user", "content": "Remember that the port is 2222."}.';
  END IF;
  SELECT k INTO unknown FROM pg_catalog.jsonb_object_keys(given) AS k
    WHERE k <> ALL ('{role,content,tool_calls,metadata,occurred_at,sequence,turn_id,logged_at,distilled_at}') LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'a turn has no %', pg_catalog.quote_ident(unknown)
      USING ERRCODE = 'HM004', HINT = 'It has role, content, tool_calls, metadata, occurred_at, sequence and turn_id; from an archive also logged_at and distilled_at.';
  END IF;
  SELECT k.key INTO unknown FROM pg_catalog.jsonb_each(given) AS k
    WHERE k.key IN ('role', 'content', 'turn_id') AND pg_catalog.jsonb_typeof(k.value) NOT IN ('string', 'number', 'null') LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION '% of a turn must be a text, got a JSON %', unknown, pg_catalog.jsonb_typeof(given -> unknown)
      USING ERRCODE = 'HM004', HINT = 'Of content that is in parts join the texts; name images and files in metadata.';
  END IF;
  checked.role := given ->> 'role';
  checked.content := coalesce(given ->> 'content', '');
  checked.tool_calls := nullif(given -> 'tool_calls', 'null');
  checked.metadata := coalesce(nullif(given -> 'metadata', 'null'), '{}');
  checked.turn_id := given ->> 'turn_id';
  BEGIN
    checked.occurred_at := given ->> 'occurred_at';
    checked.sequence := given ->> 'sequence';
    checked.logged_at := given ->> 'logged_at';
    checked.distilled_at := given ->> 'distilled_at';
  EXCEPTION WHEN data_exception THEN
    RAISE EXCEPTION 'occurred_at must be a time and sequence a whole number, got % and %', given -> 'occurred_at', given -> 'sequence'
      USING ERRCODE = 'HM004', HINT = 'Leave them out for now, and for the session''s next.';
  END;
  PERFORM hindsight._check_text('role', checked.role, 50), hindsight._check_object('metadata', checked.metadata),
          hindsight._check_optional_text('turn_id', checked.turn_id, 200), hindsight._check_time('occurred_at', checked.occurred_at);
  IF checked.tool_calls IS NULL OR checked.content <> '' THEN
    PERFORM hindsight._check_text('content', checked.content, 1000000);
  END IF;
  IF checked.sequence NOT BETWEEN 1 AND 1000000000 THEN
    RAISE EXCEPTION 'sequence must lie between 1 and 1000000000, got %', checked.sequence
      USING ERRCODE = 'HM004', HINT = 'Leave it out to add a turn.';
  END IF;
  IF checked.distilled_at IS NOT NULL AND (checked.logged_at IS NULL OR checked.sequence IS NULL) THEN
    RAISE EXCEPTION 'a turn that is distilled already has a sequence and a logged_at' USING ERRCODE = 'HM004',
      HINT = 'distilled_at is for turns that come back from an archive or an export. Leave it out.';
  END IF;
  RETURN checked;
END
$$;

-- _turn_key: what session_archive knows a turn_id by.
CREATE OR REPLACE FUNCTION hindsight._turn_key(turn_id text)
  RETURNS bigint
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN pg_catalog.hashtextextended(turn_id, 0);

-- _distil_at: when a session is to be distilled: at once when it was closed, when enough turns wait or one of them said something
-- explicitly; else when it has been idle for a while. NULL: never.
CREATE OR REPLACE FUNCTION hindsight._distil_at(opened hindsight.bank, s hindsight.session, is_explicit boolean)
  RETURNS timestamptz
  LANGUAGE sql VOLATILE
RETURN CASE
  WHEN opened.distil_mode = 'off' THEN NULL
  WHEN s.closed_at IS NOT NULL AND (s.waiting > 0 OR s.summarised_at IS NULL OR s.summarised_at < s.closed_at) THEN pg_catalog.clock_timestamp()
  WHEN s.waiting = 0 THEN NULL
  WHEN is_explicit OR s.waiting >= opened.distil_turns THEN pg_catalog.clock_timestamp()
  ELSE pg_catalog.clock_timestamp() + opened.distil_idle
END;

-- log_turns: keeps messages of a session, all or none, and returns the place of each, counted from 1. A turn has role, content,
-- tool_calls, metadata, occurred_at, and what makes logging it again change nothing: a turn_id of the application, or a sequence.
-- Without either it is the session's next. A turn that was put into a file (archive_month) is known, and logged no second time; as it
-- stands in that file, with its logged_at and distilled_at, it comes back to its place and month. Turns that wait make the session due (set_distilling), and wake the worker.
-- What a bank redacts it redacts here too. Raises HM001, HM003, HM004, HM005, HM006 (another turn has that sequence or that turn_id), HM007.
CREATE OR REPLACE FUNCTION hindsight.log_turns(bank text, session_id text, turns jsonb)
  RETURNS TABLE (sequence integer, outcome text)
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
  SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
  opened constant hindsight.bank := _open_bank(bank, 'writer');
  now_at constant timestamptz := clock_timestamp();
  current session;
  given jsonb;
  fresh turn;
  held turn;
  put_away integer; -- its place in the session, of a turn that is in a file
  put_away_month date;
  has_archive boolean;
  is_explicit boolean := false;
  due timestamptz;
BEGIN
  IF jsonb_typeof(turns) IS DISTINCT FROM 'array' OR jsonb_array_length(turns) > 10000 THEN
    RAISE EXCEPTION 'turns must be a JSON array of at most 10000 turns, got %',
        CASE WHEN jsonb_typeof(turns) = 'array' THEN jsonb_array_length(turns) || ' turns' ELSE coalesce('a JSON ' || jsonb_typeof(turns), 'NULL') END
      USING ERRCODE = 'HM004', HINT = 'For example [{"role": "user", "content": "Remember that the port is 2222."}].';
  END IF;
  PERFORM _open_month(now_at), _open_session(opened.bank_id, log_turns.session_id);
  current := _lock_session(opened.bank_id, log_turns.session_id);
  has_archive := EXISTS (SELECT FROM session_archive AS a WHERE a.bank_id = opened.bank_id AND a.session_id = current.session_id);
  FOR given IN SELECT t.value FROM jsonb_array_elements(turns) WITH ORDINALITY AS t(value, place) ORDER BY t.place LOOP
    fresh := _turn(given);
    fresh.content := _redacted(opened, 'content', fresh.content);
    fresh.tool_calls := _redacted_json(opened, 'tool_calls', fresh.tool_calls);
    fresh.metadata := _redacted_json(opened, 'metadata', fresh.metadata);
    held := NULL;
    IF fresh.turn_id IS NOT NULL THEN
      SELECT t.* INTO held FROM turn AS t
        WHERE t.bank_id = opened.bank_id AND t.session_id = current.session_id AND t.turn_id = fresh.turn_id;
    END IF;
    IF held.sequence IS NULL AND fresh.sequence <= current.last_sequence THEN
      SELECT t.* INTO held FROM turn AS t
        WHERE t.bank_id = opened.bank_id AND t.session_id = current.session_id AND t.sequence = fresh.sequence;
    END IF;
    put_away := NULL;
    put_away_month := NULL;
    IF has_archive AND held.sequence IS NULL THEN
      SELECT a.sequences[coalesce(array_position(a.turn_keys, _turn_key(fresh.turn_id)), array_position(a.sequences, fresh.sequence))], a.month
        INTO put_away, put_away_month FROM session_archive AS a
        WHERE a.bank_id = opened.bank_id AND a.session_id = current.session_id
          AND (array_position(a.turn_keys, _turn_key(fresh.turn_id)) IS NOT NULL OR array_position(a.sequences, fresh.sequence) IS NOT NULL)
        LIMIT 1;
    END IF;
    IF put_away IS NOT NULL AND fresh.logged_at IS NULL THEN
      sequence := put_away;
      outcome := 'logged already';
    ELSIF held.sequence IS NOT NULL THEN
      IF held.content <> '[erased]' AND ((held.role, held.content, held.tool_calls, coalesce(fresh.sequence, held.sequence))
           IS DISTINCT FROM (fresh.role, fresh.content, fresh.tool_calls, held.sequence)
           OR held.turn_id <> fresh.turn_id) THEN
        RAISE EXCEPTION 'session % has another turn %, of %', quote_literal(current.session_id),
            CASE WHEN held.turn_id = fresh.turn_id THEN quote_literal(held.turn_id) ELSE held.sequence::text END, held.role
          USING ERRCODE = 'HM006', HINT = 'Turns are never changed. Leave sequence and turn_id out to add a turn.';
      END IF;
      sequence := held.sequence;
      outcome := 'logged already';
    ELSE
      sequence := coalesce(fresh.sequence, current.last_sequence + 1);
      outcome := 'logged';
      IF put_away_month = date_trunc('month', fresh.logged_at AT TIME ZONE 'UTC')::date THEN
        PERFORM _open_month(fresh.logged_at);
      ELSE
        fresh.logged_at := now_at;
      END IF;
      INSERT INTO turn (bank_id, session_id, sequence, turn_id, role, content, tool_calls, metadata, occurred_at, logged_at, distilled_at)
        VALUES (opened.bank_id, current.session_id, sequence, fresh.turn_id, fresh.role, fresh.content, fresh.tool_calls,
                fresh.metadata, coalesce(fresh.occurred_at, now_at), fresh.logged_at, fresh.distilled_at);
      current.last_sequence := greatest(current.last_sequence, sequence);
      IF fresh.distilled_at IS NULL THEN
        current.waiting := current.waiting + 1;
        current.closed_at := NULL;
        is_explicit := is_explicit OR (fresh.role = 'user' AND _is_explicit(fresh.content));
      END IF;
    END IF;
    RETURN NEXT;
  END LOOP;
  -- One that failed waits for its next attempt: turns that come meanwhile must not hurry an endpoint that is in trouble.
  due := CASE
    WHEN current.claim IS NOT NULL OR current.last_error IS NOT NULL AND current.due_at > now_at THEN current.due_at
    ELSE least(_distil_at(opened, current, is_explicit), CASE WHEN current.due_at <= now_at THEN current.due_at END) END;
  UPDATE session AS s
    SET last_sequence = current.last_sequence, waiting = current.waiting, closed_at = current.closed_at, due_at = due,
        principal = coalesce(s.principal, principal())
    WHERE s.bank_id = opened.bank_id AND s.session_id = current.session_id;
  IF due <= clock_timestamp() AND current.claim IS NULL THEN
    NOTIFY hindsight_work;
  END IF;
END
$$;
COMMENT ON FUNCTION hindsight.log_turns(text, text, jsonb) IS
  'Keeps messages of a session as they were said, all or none; one that was logged before changes nothing.';

-- log_turn: keeps one message of a session, as log_turns does, and returns its place in the session.
-- Raises HM001, HM003, HM004, HM005, HM006.
CREATE OR REPLACE FUNCTION hindsight.log_turn(
  bank text, session_id text, role text, content text, tool_calls jsonb DEFAULT NULL, occurred_at timestamptz DEFAULT NULL,
  metadata jsonb DEFAULT NULL, sequence integer DEFAULT NULL, turn_id text DEFAULT NULL)
  RETURNS integer
  LANGUAGE sql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
AS $$
  SELECT t.sequence
  FROM log_turns(bank, session_id, jsonb_build_array(jsonb_build_object(
    'role', role, 'content', content, 'tool_calls', tool_calls, 'occurred_at', occurred_at, 'metadata', metadata,
    'sequence', sequence, 'turn_id', turn_id))) AS t
$$;
COMMENT ON FUNCTION hindsight.log_turn(text, text, text, text, jsonb, timestamptz, jsonb, integer, text) IS
  'Keeps one message of a session as it was said, and returns its place in the session, counted from 1.';

-- close_session: says that a conversation is over: it is distilled at once, and summarised. A turn that follows opens it again.
-- Closing it again changes nothing. Returns when it was closed. Raises HM001, HM002 (no such session), HM003.
CREATE OR REPLACE FUNCTION hindsight.close_session(bank text, session_id text)
  RETURNS timestamptz
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
AS $$
DECLARE
  opened constant hindsight.bank := _open_bank(bank, 'writer');
  current session := _lock_session(opened.bank_id, close_session.session_id);
BEGIN
  IF current.closed_at IS NULL THEN
    current.closed_at := clock_timestamp();
    UPDATE session AS s
      SET closed_at = current.closed_at,
          due_at = CASE WHEN s.claim IS NULL THEN _distil_at(opened, current, false) ELSE s.due_at END
      WHERE s.bank_id = opened.bank_id AND s.session_id = current.session_id;
    NOTIFY hindsight_work;
  END IF;
  RETURN current.closed_at;
END
$$;
COMMENT ON FUNCTION hindsight.close_session(text, text) IS
  'Says that a conversation is over: it is distilled at once, and summarised. Returns when it was closed.';
