-- Working memory: a session's desk. Keys and values that expire, beside the session's last turns; nothing of it is recalled.

-- working_set: puts a value on a session's desk, in place of what the key held; NULL takes it away. It stays for ttl, a day by
-- default. Raises HM001, HM003, HM004, HM005.
CREATE OR REPLACE FUNCTION hindsight.working_set(
  bank text, session_id text, key text, value jsonb DEFAULT NULL, ttl interval DEFAULT '1 day')
  RETURNS void
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
AS $$
DECLARE
  opened constant hindsight.bank := _open_bank(bank, 'writer', by_type => true);
BEGIN
  PERFORM _check_text('key', working_set.key, 200), _check_ttl(coalesce(working_set.ttl, interval '1 day'), NULL);
  IF length(working_set.value::text) > 100000 THEN
    RAISE EXCEPTION 'value has % characters, at most 100000 are taken', length(working_set.value::text)
      USING ERRCODE = 'HM005', HINT = 'Keep large data elsewhere, and its key here.';
  END IF;
  working_set.value := _redacted_json(opened, 'value', working_set.value);
  PERFORM _open_session(opened.bank_id, working_set.session_id);
  IF working_set.value IS NULL OR working_set.value = 'null' THEN
    DELETE FROM working_value AS w
      WHERE w.bank_id = opened.bank_id AND w.session_id = working_set.session_id AND w.key = working_set.key;
  ELSE
    INSERT INTO working_value AS w (bank_id, session_id, key, value, expires_at)
      VALUES (opened.bank_id, working_set.session_id, working_set.key, working_set.value,
              clock_timestamp() + coalesce(working_set.ttl, interval '1 day'))
      ON CONFLICT ON CONSTRAINT working_value_pkey DO UPDATE SET value = excluded.value, expires_at = excluded.expires_at;
  END IF;
END
$$;
COMMENT ON FUNCTION hindsight.working_set(text, text, text, jsonb, interval) IS
  'Puts a value on a session''s desk, in place of what the key held; NULL takes it away. It expires, and is never recalled.';

-- working_get: a session's desk: its keys and values, and its last turns (set_distilling says how many), the oldest first, within
-- max_tokens: the values come first, then as many turns as there is room for, from the last one back; the last is shortened if it
-- must be. A session that nobody knows has an empty desk. Raises HM001, HM003, HM004.
CREATE OR REPLACE FUNCTION hindsight.working_get(bank text, session_id text, max_tokens integer DEFAULT 4000)
  RETURNS TABLE ("values" jsonb, turns jsonb, tokens integer)
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
  SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
  opened constant hindsight.bank := _open_bank(bank, 'reader');
  said record;
  room integer;
  size integer;
BEGIN
  IF (working_get.max_tokens BETWEEN 1 AND 1000000) IS NOT TRUE THEN
    RAISE EXCEPTION 'max_tokens must lie between 1 and 1000000, got %', coalesce(working_get.max_tokens::text, 'NULL')
      USING ERRCODE = 'HM004', HINT = '4000 by default.';
  END IF;
  SELECT coalesce(jsonb_object_agg(w.key, w.value), '{}') INTO "values" FROM working_value AS w
    WHERE w.bank_id = opened.bank_id AND w.session_id = working_get.session_id AND w.expires_at > clock_timestamp();
  tokens := CASE WHEN "values" = '{}' THEN 0 ELSE hindsight.tokens("values"::text) END;
  turns := '[]';
  FOR said IN
    SELECT t.sequence, t.role, t.content, t.tool_calls, t.occurred_at FROM turn AS t
    WHERE t.bank_id = opened.bank_id AND t.session_id = working_get.session_id
    ORDER BY t.sequence DESC LIMIT opened.working_turns
  LOOP
    room := working_get.max_tokens - tokens;
    size := hindsight.tokens(said.content) + coalesce(hindsight.tokens(said.tool_calls::text), 0);
    IF size > room THEN
      EXIT WHEN turns <> '[]' OR room < 1;
      said.content := _shortened(said.content, room);
      said.tool_calls := NULL;
      size := hindsight.tokens(said.content);
    END IF;
    turns := jsonb_build_array(jsonb_strip_nulls(to_jsonb(said))) || turns;
    tokens := tokens + size;
  END LOOP;
  RETURN NEXT;
END
$$;
COMMENT ON FUNCTION hindsight.working_get(text, text, integer) IS
  'A session''s desk: its keys and values, and its last turns, within a budget of tokens.';

-- _clear_desks: takes working values away that have expired, at most a thousand. Returns how many.
CREATE OR REPLACE FUNCTION hindsight._clear_desks(of_bank bigint)
  RETURNS bigint
  LANGUAGE sql VOLATILE
AS $$
  WITH cleared AS (
    DELETE FROM hindsight.working_value AS w
    WHERE (w.bank_id, w.session_id, w.key) IN (
      SELECT e.bank_id, e.session_id, e.key FROM hindsight.working_value AS e
      WHERE e.bank_id = of_bank AND e.expires_at <= pg_catalog.clock_timestamp()
      ORDER BY e.expires_at LIMIT 1000 FOR UPDATE SKIP LOCKED)
    RETURNING 1)
  SELECT count(*) FROM cleared
$$;
