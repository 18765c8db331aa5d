-- What a bank redacts: its policy, an operator's own patterns, and the report of what was redacted.

-- _redacted_by_default: what a new bank masks: secrets, and numbers that identify somebody or pay for him. Addresses, telephone numbers
-- and IP addresses are often what was to be remembered: "alice's address is alice@example.org".
CREATE OR REPLACE FUNCTION hindsight._redacted_by_default()
  RETURNS text[]
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN '{private_key,api_key,password,card,iban,resident_id,ssn}'::text[];

-- _slowness: how many times as long as a plain search an expression takes for a text: of three tries the best, since others are at work.
CREATE OR REPLACE FUNCTION hindsight._slowness(pattern text, content text)
  RETURNS numeric
  LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  begun timestamptz;
  plain interval;
  best numeric;
BEGIN
  FOR attempt IN 1..3 LOOP
    begun := pg_catalog.clock_timestamp();
    PERFORM pg_catalog.regexp_replace(content, '[0-9]zq[a-z]', '', 'g');
    plain := greatest(pg_catalog.clock_timestamp() - begun, '50 microseconds');
    begun := pg_catalog.clock_timestamp();
    PERFORM pg_catalog.regexp_replace(content, pattern, '', 'g');
    best := least(best, extract(epoch FROM pg_catalog.clock_timestamp() - begun) / extract(epoch FROM plain));
    EXIT WHEN best NOT BETWEEN 100 AND 1000;
  END LOOP;
  RETURN best;
END
$$;

-- _check_own_pattern: raises HM004 unless an operator's expression can be run over every text that is stored: it finds something, has no
-- back-reference (which PostgreSQL tries out, in a time that can double with each character), looks around by one character only, and
-- is not too large. It is timed on texts that make expressions slow, short ones first, so that a slow one is noticed early.
CREATE OR REPLACE FUNCTION hindsight._check_own_pattern(name text, pattern text)
  RETURNS void
  LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  one constant text := '(?:\[\^?\]?(?:\\.|[^\]\\])*\]|\\.|[^\\])';
  bare constant text := pg_catalog.regexp_replace( -- without what stands in brackets, escapes and allowed looks around
    pg_catalog.regexp_replace(pattern, '\(\?<?[=!]' || one || '\)', '', 'g'), '\\.|\[\^?\]?(?:\\.|[^\]\\])*\]', 'x', 'g');
  literal constant text := pg_catalog.regexp_replace(bare, '[^A-Za-z0-9@_-]', '', 'g');
  fault text;
  slow numeric;
  size integer;
BEGIN
  IF coalesce(name, '') !~ '^[a-z][a-z0-9_]{0,30}$' OR name = ANY (hindsight._redactable()) THEN
    RAISE EXCEPTION 'a pattern cannot be called %', coalesce(pg_catalog.quote_literal(name), 'NULL')
      USING ERRCODE = 'HM004',
            HINT = 'A name is a lower-case word that no kind has yet, such as ''employee'': it stands in the placeholder, [employee:1].';
  END IF;
  fault := CASE
    WHEN pattern IS NULL OR pg_catalog.length(pattern) NOT BETWEEN 1 AND 300 THEN 'it must have 1 to 300 characters'
    WHEN pattern ~ '[\ufdd0-\ufdd3]' THEN 'it holds U+FDD0 to U+FDD3, which are marks inside of redact'
    WHEN pattern ~ '^\*\*\*|^\(\?[a-z]+\)' THEN 'options at its beginning (***, (?i)) are not taken'
    WHEN pattern ~ '(?:^|[^\\])(?:\\\\)*\\[1-9]' THEN 'a back-reference is not taken: its time can double with each character'
    WHEN bare ~ '\(\?<?[=!]' THEN 'only one character may be looked at ahead or behind, such as (?<![0-9])'
    WHEN bare ~ '\((?!\?:)' THEN 'groups must not capture: (?:…), not (…)'
    WHEN (SELECT pg_catalog.sum(pg_catalog.ln(greatest(m.bound[1]::numeric, 1)))
          FROM pg_catalog.regexp_matches(bare, '(?:,|\{)([0-9]{1,9})\}', 'g') AS m(bound))
         > pg_catalog.ln(1000) THEN 'the bounds of its repetitions multiply to more than 1000' END;
  IF fault IS NULL THEN
    BEGIN
      fault := CASE WHEN pg_catalog.regexp_like('', pattern) OR pg_catalog.regexp_like('', '(?:' || pattern || ')') THEN 'it finds the empty text' END;
    EXCEPTION WHEN invalid_regular_expression THEN
      fault := SQLERRM;
    END;
  END IF;
  IF fault IS NULL THEN
    FOREACH size IN ARRAY ARRAY[1000, 3000, 10000] LOOP
      slow := (SELECT max(hindsight._slowness(pattern, pg_catalog."left"(pg_catalog.repeat(t, size), size)))
               FROM pg_catalog.unnest(ARRAY['7', 'a', 'a7', 'A7-', '@', '-', 'a.', ' ', '[(', 'QUJD', '密', E'\n', literal,
                                            pg_catalog."left"(literal, 1), pg_catalog."right"(literal, 1)]) AS t
               WHERE t <> '');
      IF slow > 200 THEN
        fault := pg_catalog.format('for some texts it takes %s times as long as a plain search', pg_catalog.round(slow));
        EXIT;
      END IF;
    END LOOP;
  END IF;
  IF fault IS NOT NULL THEN
    RAISE EXCEPTION 'the pattern % is refused: %', pg_catalog.quote_literal(name), fault
      USING ERRCODE = 'HM004',
            HINT = 'Each text that is stored is searched for it. Give an expression such as (?<![A-Z])EMP[0-9]{6}(?![0-9]).';
  END IF;
END
$$;

-- set_redaction: what becomes of personal data and secrets in what is stored in this bank from now on. policy: off (kept as it is), mask
-- (a placeholder takes its place) or refuse (the call fails, HM007). kinds: of which kinds. patterns: further kinds of the operator's
-- own, {"employee": "EMP[0-9]{6}"}; '{}' takes them away. What is left out stays as it is.
-- Raises HM001, HM003 (not an owner), HM004 (an unknown policy or kind; a pattern that could be slow, with the reason).
CREATE OR REPLACE FUNCTION hindsight.set_redaction(
  bank text, policy text DEFAULT NULL, kinds text[] DEFAULT NULL, patterns jsonb DEFAULT NULL)
  RETURNS void
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
AS $$
#variable_conflict use_column
DECLARE
  opened constant hindsight.bank := _open_bank(bank, 'owner');
BEGIN
  IF set_redaction.policy NOT IN ('off', 'mask', 'refuse') THEN
    RAISE EXCEPTION 'unknown policy %', quote_literal(set_redaction.policy) USING ERRCODE = 'HM004', HINT = 'A policy is off, mask or refuse.';
  ELSIF NOT set_redaction.kinds <@ _redactable() THEN
    RAISE EXCEPTION 'unknown kind %', (SELECT quote_nullable(k)
                                       FROM unnest(set_redaction.kinds) AS k WHERE (k = ANY (_redactable())) IS NOT TRUE LIMIT 1)
      USING ERRCODE = 'HM004', HINT = 'Kinds are ' || array_to_string(_redactable(), ', ') || '.';
  END IF;
  PERFORM _check_object('patterns', set_redaction.patterns);
  IF (SELECT count(*) FROM jsonb_object_keys(set_redaction.patterns)) > 20 THEN
    RAISE EXCEPTION 'a bank has 20 patterns at most' USING ERRCODE = 'HM004', HINT = 'Join some of them: one|other.';
  END IF;
  PERFORM _check_own_pattern(p.key, CASE WHEN jsonb_typeof(p.value) = 'string' THEN p.value #>> '{}' END) FROM jsonb_each(set_redaction.patterns) AS p;
  UPDATE bank AS b
    SET redaction = coalesce(set_redaction.policy, b.redaction), redaction_kinds = coalesce(set_redaction.kinds, b.redaction_kinds),
        redaction_patterns = CASE WHEN set_redaction.patterns IS NULL THEN b.redaction_patterns ELSE nullif(set_redaction.patterns, '{}') END
    WHERE b.bank_id = opened.bank_id;
  PERFORM _leave_event(opened.bank_id, 'set_redaction', NULL, NULL, NULL, jsonb_strip_nulls(jsonb_build_object(
    'policy', set_redaction.policy, 'kinds', set_redaction.kinds, 'patterns', set_redaction.patterns)));
END
$$;
COMMENT ON FUNCTION hindsight.set_redaction(text, text, text[], jsonb) IS
  'What becomes of personal data and secrets in what a bank stores: off, mask or refuse, of which kinds, and patterns of its own.';

-- redaction: what a bank redacts. Raises HM001.
CREATE OR REPLACE FUNCTION hindsight.redaction(bank text)
  RETURNS TABLE (policy text, kinds text[], patterns jsonb)
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
AS $$
DECLARE
  opened constant hindsight.bank := _open_bank(bank, 'reader');
BEGIN
  RETURN QUERY SELECT opened.redaction, coalesce(opened.redaction_kinds, _redacted_by_default()), coalesce(opened.redaction_patterns, '{}');
END
$$;
COMMENT ON FUNCTION hindsight.redaction(text) IS 'What a bank redacts: its policy, the kinds, and its own patterns.';

-- redactions: how much was redacted in a bank, of each kind, in how many writes, and when; no content. Read from the trail of events,
-- one a write, so that no writer waits for another to count. What was refused was not written, and is not counted. Raises HM001.
CREATE OR REPLACE FUNCTION hindsight.redactions(bank text)
  RETURNS TABLE (kind text, redacted bigint, writes bigint, first_at timestamptz, last_at timestamptz)
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
AS $$
#variable_conflict use_column
DECLARE
  opened constant hindsight.bank := _open_bank(bank, 'reader');
BEGIN
  RETURN QUERY
    SELECT k.key, sum(k.value::bigint)::bigint, count(*), min(e.at), max(e.at)
    FROM event AS e CROSS JOIN LATERAL jsonb_each_text(e.after -> 'kinds') AS k
    WHERE e.bank_id = opened.bank_id AND e.action = 'redacted'
    GROUP BY k.key
    ORDER BY k.key;
END
$$;
COMMENT ON FUNCTION hindsight.redactions(text) IS 'How much was redacted in a bank, of each kind, in how many writes, and when.';
