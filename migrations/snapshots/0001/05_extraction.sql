-- Extraction: what is worth keeping of a turn, found by rules, without a model. 05_clause.sql cuts the turn, 05_clause_english.sql and
-- 05_clause_chinese.sql have the signs, 05_extraction_reply.sql what a turn says only together with the one before.

-- _says: the kind of memory that a sentence is, or NULL. The sentence as it was said, as _plain gives it, and its lasting clauses.
CREATE OR REPLACE FUNCTION hindsight._says(sentence text, plain text, lasting text, is_chinese boolean)
  RETURNS text
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
AS $$
BEGIN
  RETURN CASE
    WHEN hindsight._shows(lasting, is_chinese, 'todo') AND hindsight._shows(lasting, is_chinese, 'dated') THEN 'todo'
    WHEN hindsight._shows(lasting, is_chinese, 'forbidding') THEN 'preference'
    WHEN hindsight._shows(lasting, is_chinese, 'decision') THEN 'decision'
    WHEN hindsight._shows(lasting, is_chinese, 'preference') THEN
      CASE WHEN NOT hindsight._shows(lasting, is_chinese, 'remark') THEN 'preference' END
    WHEN hindsight._shows(lasting, is_chinese, 'standing')
      AND (lasting LIKE ANY ('{%以后%,%今后%,%从现在%,"%from now on%"}') OR hindsight._shows(lasting, is_chinese, 'request'))
      THEN CASE WHEN lasting LIKE ANY ('{"% we %",%我们%}') THEN 'decision' ELSE 'preference' END
    WHEN hindsight._shows(lasting, is_chinese, 'problem') THEN NULL
    WHEN hindsight._shows(lasting, is_chinese, 'standing') AND NOT hindsight._shows(lasting, is_chinese, 'remark')
      AND NOT hindsight._shows(plain, is_chinese, 'passing') THEN 'fact'
    WHEN hindsight._shows(lasting, is_chinese, 'fact') THEN 'fact'
    WHEN hindsight._is_bound(sentence) AND hindsight._shows(lasting, is_chinese, 'states') AND NOT hindsight._shows(lasting, is_chinese, 'remark')
      AND NOT hindsight._shows(plain, is_chinese, 'passing') THEN 'fact'
    WHEN hindsight._shows(pg_catalog.regexp_replace(lasting, '^.*,', ''), is_chinese, 'forbidding') THEN 'preference'
  END;
END
$$;

-- _found_in: what is worth keeping of one turn. before: the turn before, or the last ones, with U+001E between them.
-- A sentence is kept as it was said; together with what it answers, chooses or solves, if it says nothing without that.
-- The confidence is 0.9, or 0.6 of what is said with a doubt, which is then taken as inferred.
CREATE OR REPLACE FUNCTION hindsight._found_in(role text, content text, before text DEFAULT NULL)
  RETURNS SETOF hindsight.extracted
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE ROWS 5
AS $$
DECLARE
  turns constant text[] := pg_catalog.string_to_array(nullif(pg_catalog.btrim(before, E'\x1e'), ''), E'\x1e');
  last constant text := turns[pg_catalog.cardinality(turns)];
  said record;
  plain text;
  lasting text;
  is_chinese boolean;
  is_explicit boolean;
  is_doubtful boolean;
  problem text;
  cause text; -- what was said between the problem and its cure
  is_cause boolean := false;
  one hindsight.extracted;
BEGIN
  IF hindsight._is_person(role) IS NOT TRUE THEN
    RETURN;
  END IF;
  problem := hindsight._problem_in(turns);
  FOR said IN SELECT s.* FROM hindsight._sentences(hindsight._own_words(content)) AS s WHERE pg_catalog.length(s.sentence) <= 500 LOOP
    plain := hindsight._plain(said.sentence);
    is_chinese := hindsight._is_chinese(plain);
    is_explicit := hindsight._shows(plain, is_chinese, 'explicit');
    one := NULL;
    one.is_correction := false;
    IF hindsight._shows(plain, is_chinese, 'unreal')
       OR (hindsight._is_question(plain) AND NOT is_explicit AND NOT hindsight._shows(plain, is_chinese, 'standing')) THEN
      IF problem IS NULL AND hindsight._shows(plain, is_chinese, 'problem') THEN
        problem := said.sentence;
      END IF;
      CONTINUE;
    ELSIF hindsight._shows(plain, is_chinese, 'solved') AND (problem IS NOT NULL OR hindsight._shows(plain, is_chinese, 'problem')) THEN
      one.content := hindsight._solved(problem, pg_catalog.concat_ws(' ', cause, said.sentence), plain, last);
      one.type := CASE WHEN one.content IS NOT NULL THEN 'fact' END;
      problem := NULL;
      cause := NULL;
      is_cause := false;
    ELSIF problem IS NOT NULL AND hindsight._shows(plain, is_chinese, 'cause') THEN
      cause := said.sentence;
      is_cause := true;
      CONTINUE;
    ELSIF hindsight._shows(plain, is_chinese, 'correction') AND pg_catalog.length(plain) > 8
          AND (hindsight._is_bound(said.sentence) OR plain LIKE ANY ('{"% not %",%不是%}')) THEN
      one.type := 'decision';
      one.is_correction := true;
    END IF;
    IF one.type IS NULL AND said.place = 1 AND last IS NOT NULL THEN
      SELECT r.content, r.type INTO one.content, one.type FROM hindsight._reply(said.sentence, plain, is_chinese, last) AS r;
    END IF;
    IF one.type IS NULL THEN
      lasting := hindsight._lasting(plain, is_chinese);
      one.type := coalesce(hindsight._says(said.sentence, plain, lasting, is_chinese), CASE WHEN is_explicit AND lasting <> '' THEN 'fact' END);
    END IF;
    IF one.type IS NULL THEN
      IF problem IS NULL AND hindsight._shows(plain, is_chinese, 'problem') THEN
        problem := said.sentence;
      ELSIF problem IS NOT NULL AND NOT is_cause AND pg_catalog.length(said.sentence) > 4 THEN
        cause := said.sentence;
      END IF;
      CONTINUE;
    END IF;
    is_doubtful := NOT one.is_correction AND NOT is_explicit AND hindsight._shows(plain, is_chinese, 'hedge');
    CONTINUE WHEN is_doubtful AND one.type = 'fact' -- an opinion, unless it names something
      AND said.sentence !~ '[0-9]|[a-z,;] [A-Z]|\m[A-Z]{2,}|[\u4e00-\u9fff] ?[A-Za-z]{2,}|[A-Za-z]{2,} ?[\u4e00-\u9fff]';
    IF one.content IS NULL THEN
      one.content := hindsight._without_opening(CASE WHEN pg_catalog.rtrim(plain) LIKE '%?' THEN pg_catalog.regexp_replace(said.sentence, '[,，][^,，]*$', '')
                                                     ELSE said.sentence END);
    END IF;
    one.type := CASE WHEN is_doubtful AND one.type IN ('fact', 'decision') THEN 'hypothesis' ELSE one.type END;
    one.confidence := CASE WHEN is_doubtful THEN 0.6 ELSE 0.9 END;
    one.source := CASE WHEN is_doubtful THEN 'inferred' ELSE 'user' END;
    one.importance := greatest(CASE WHEN is_explicit THEN 0.8 ELSE 0 END, CASE WHEN one.type IN ('fact', 'hypothesis') THEN 0.5 ELSE 0.7 END
                               + CASE WHEN hindsight._is_bound(one.content) THEN 0.1 ELSE 0 END);
    one.slot := hindsight._slot_of(one.content);
    RETURN NEXT one;
  END LOOP;
  IF is_cause THEN -- which is known, if not yet the cure
    one := (hindsight._joined(problem, cause), 'fact', 0.9, 0.6, NULL, 'user', false);
    RETURN NEXT one;
  END IF;
END
$$;

-- _is_explicit: whether a turn says in so many words that something is to be kept, so that it is distilled at once.
CREATE OR REPLACE FUNCTION hindsight._is_explicit(content text)
  RETURNS boolean
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN EXISTS (
  SELECT FROM hindsight._sentences(hindsight._own_words(content)) AS s
  CROSS JOIN LATERAL hindsight._plain(s.sentence) AS plain
  WHERE hindsight._shows(plain, hindsight._is_chinese(plain), 'explicit') AND NOT hindsight._is_question(plain));

-- extract: what is worth keeping of one turn, by rules; before: the text of the turn before, or of the last ones, with U+001E
-- between them. Pure: reads and stores nothing. Raises nothing.
CREATE OR REPLACE FUNCTION hindsight.extract(role text, content text, before text DEFAULT NULL)
  RETURNS SETOF hindsight.extracted
  LANGUAGE sql IMMUTABLE PARALLEL SAFE ROWS 5
BEGIN ATOMIC
  SELECT * FROM hindsight._found_in(role, content, before);
END;
COMMENT ON FUNCTION hindsight.extract(text, text, text) IS
  'What is worth keeping of one turn, by rules: the sentences, with type, confidence, importance, slot and source; stores nothing.';

-- _verbatim: a turn as it is, if it matters, of whichever role but the system's. Who is no person is believed no less, but is named as
-- the source: the tool, or what the assistant inferred.
CREATE OR REPLACE FUNCTION hindsight._verbatim(role text, content text, before text DEFAULT NULL)
  RETURNS SETOF hindsight.extracted
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE ROWS 1
AS $$
DECLARE
  one hindsight.extracted;
  worth constant double precision := hindsight.importance(content);
BEGIN
  IF pg_catalog.lower(role) IN ('system', 'developer') OR worth < 0.3 THEN
    RETURN;
  END IF;
  SELECT f.* INTO one FROM hindsight._found_in(role, content, before) AS f
    WHERE f.type <> 'hypothesis' ORDER BY f.is_correction DESC, f.importance DESC LIMIT 1;
  one.content := content;
  one.type := coalesce(one.type, 'fact');
  one.confidence := 0.9;
  one.importance := worth;
  one.source := CASE WHEN hindsight._is_person(role) THEN 'user'
                     WHEN pg_catalog.lower(role) IN ('tool', 'function', 'tool_result') THEN 'tool' ELSE 'inferred' END;
  one.is_correction := coalesce(one.is_correction, false);
  RETURN NEXT one;
END
$$;
