-- What language models cost a bank: calls and tokens by day, purpose and model. Counted here and not in a process, so that several
-- workers keep to one budget, and a restart forgets nothing.

-- _today: the day that usage counts to. In UTC, whatever the session's zone: all workers mean the same day.
CREATE OR REPLACE FUNCTION hindsight._today()
  RETURNS date
  LANGUAGE sql STABLE PARALLEL SAFE
RETURN (pg_catalog.now() AT TIME ZONE 'UTC')::date;

-- note_usage: adds what calls of a language model have used to the bank's day. failures: how many of the calls failed; what they
-- used counts all the same. Two that note the same purpose and model take turns: end the transaction soon.
-- Raises HM001, HM003, HM004, HM005.
CREATE OR REPLACE FUNCTION hindsight.note_usage(
  bank text, purpose text, model text, calls integer DEFAULT 1, prompt_tokens integer DEFAULT 0,
  completion_tokens integer DEFAULT 0, failures integer DEFAULT 0)
  RETURNS void
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
AS $$
DECLARE
  opened constant hindsight.bank := _open_bank(bank, 'writer');
BEGIN
  PERFORM _check_text('purpose', purpose, 50), _check_text('model', model, 200);
  IF least(coalesce(calls, -1), coalesce(prompt_tokens, -1), coalesce(completion_tokens, -1), coalesce(failures, -1)) < 0 THEN
    RAISE EXCEPTION 'calls, prompt_tokens, completion_tokens and failures must be 0 or more, got %, %, % and %',
        coalesce(calls::text, 'NULL'), coalesce(prompt_tokens::text, 'NULL'), coalesce(completion_tokens::text, 'NULL'),
        coalesce(failures::text, 'NULL')
      USING ERRCODE = 'HM004', HINT = 'They are added to what the day has already.';
  END IF;
  INSERT INTO model_usage AS u (bank_id, day, purpose, model, calls, prompt_tokens, completion_tokens, failures)
    VALUES (opened.bank_id, _today(), note_usage.purpose, note_usage.model, note_usage.calls, note_usage.prompt_tokens,
            note_usage.completion_tokens, note_usage.failures)
    ON CONFLICT ON CONSTRAINT model_usage_pkey DO UPDATE
      SET calls = u.calls + excluded.calls, prompt_tokens = u.prompt_tokens + excluded.prompt_tokens,
          completion_tokens = u.completion_tokens + excluded.completion_tokens, failures = u.failures + excluded.failures;
END
$$;
COMMENT ON FUNCTION hindsight.note_usage(text, text, text, integer, integer, integer, integer) IS
  'Adds what calls of a language model have used, for a purpose such as distil or judge, to the bank''s day.';

-- usage: what language models have used for a bank, the latest day first; since: from the day (in UTC) of that moment on.
-- Raises HM001.
CREATE OR REPLACE FUNCTION hindsight.usage(bank text, since timestamptz DEFAULT NULL)
  RETURNS TABLE (day date, purpose text, model text, calls bigint, prompt_tokens bigint, completion_tokens bigint, failures bigint)
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
AS $$
#variable_conflict use_column
DECLARE
  opened constant hindsight.bank := _open_bank(bank, 'reader');
BEGIN
  RETURN QUERY
    SELECT u.day, u.purpose, u.model, u.calls, u.prompt_tokens, u.completion_tokens, u.failures
    FROM model_usage AS u
    WHERE u.bank_id = opened.bank_id AND (usage.since IS NULL OR u.day >= (usage.since AT TIME ZONE 'UTC')::date)
    ORDER BY u.day DESC, u.purpose, u.model;
END
$$;
COMMENT ON FUNCTION hindsight.usage(text, timestamptz) IS
  'What language models have used for a bank: calls, tokens and failures by day, purpose and model.';

-- _tokens_used: the tokens that a bank has used today, for all purposes.
CREATE OR REPLACE FUNCTION hindsight._tokens_used(of_bank bigint)
  RETURNS bigint
  LANGUAGE sql STABLE
RETURN (
  SELECT coalesce(sum(u.prompt_tokens + u.completion_tokens), 0)::bigint FROM hindsight.model_usage AS u
  WHERE u.bank_id = of_bank AND u.day = hindsight._today());

-- tokens_left: how much of a budget of tokens a day is left for a bank today; 0: it is spent. NULL: there is no budget.
-- Calls that go on at once are counted when they have ended, so that several may overdraw it, each by one call at most.
-- For writers, since only they spend. Raises HM001, HM003, HM004.
CREATE OR REPLACE FUNCTION hindsight.tokens_left(bank text, budget bigint DEFAULT NULL)
  RETURNS bigint
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
AS $$
DECLARE
  opened constant hindsight.bank := _open_bank(bank, 'writer');
BEGIN
  IF budget < 0 THEN
    RAISE EXCEPTION 'budget must be 0 or more, got %', budget USING ERRCODE = 'HM004', HINT = 'NULL is a budget without end.';
  END IF;
  RETURN CASE WHEN budget IS NOT NULL THEN greatest(budget - _tokens_used(opened.bank_id), 0) END;
END
$$;
COMMENT ON FUNCTION hindsight.tokens_left(text, bigint) IS
  'How much of a budget of tokens a day is left for a bank today (UTC); NULL without a budget.';
