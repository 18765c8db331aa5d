-- The bank's redaction, applied to what is about to be stored. Whatever stores text calls _redacted or _redacted_json first, before a
-- digest, an entity or an event is made of it.

-- _redact_for: some texts as this bank keeps them, numbered over all of them; arguments: what each is called where it came in. reason
-- says what was redacted, and is NULL where nothing was; an event says it too, by argument and kind.
-- Raises HM007 where the bank refuses, with the arguments and kinds, and never with what they hold.
CREATE OR REPLACE FUNCTION hindsight._redact_for(
  opened hindsight.bank, arguments text[], texts text[], whole text[] DEFAULT NULL, OUT redacted text[], OUT reason text)
  LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  done record;
  places text;
  counts jsonb;
BEGIN
  redacted := texts;
  IF opened.redaction = 'off' THEN
    RETURN;
  END IF;
  done := hindsight._redact(texts, coalesce(opened.redaction_kinds, hindsight._redacted_by_default()), opened.redaction_patterns, whole);
  IF done.hits = '{}' THEN
    RETURN;
  END IF;
  SELECT pg_catalog.string_agg(DISTINCT t.argument, ', ') INTO places
    FROM ROWS FROM (pg_catalog.unnest(arguments), pg_catalog.unnest(texts), pg_catalog.unnest(done.redacted)) AS t(argument, before, after)
    WHERE t.before IS NOT NULL AND t.before <> t.after;
  SELECT pg_catalog.jsonb_object_agg(k.kind, k.hits),
         pg_catalog.string_agg(k.kind || CASE WHEN k.hits > 1 THEN ' (' || k.hits || ')' ELSE '' END, ', ' ORDER BY k.kind)
    INTO counts, reason
    FROM (SELECT h AS kind, count(*) AS hits FROM pg_catalog.unnest(done.hits) AS h GROUP BY h) AS k;
  IF opened.redaction = 'refuse' THEN
    RAISE EXCEPTION '% of bank % must not hold: %', places, pg_catalog.quote_literal(opened.name), reason
      USING ERRCODE = 'HM007', HINT = 'Leave it out, or let an owner of the bank mask it: hindsight.set_redaction(bank, ''mask'').';
  END IF;
  reason := 'redacted: ' || reason;
  redacted := ARRAY(
    SELECT CASE WHEN t.before IS NOT NULL THEN t.after END
    FROM ROWS FROM (pg_catalog.unnest(texts), pg_catalog.unnest(done.redacted)) WITH ORDINALITY AS t(before, after, place)
    ORDER BY t.place);
  PERFORM hindsight._leave_event(opened.bank_id, 'redacted', NULL, NULL, NULL,
                                 pg_catalog.jsonb_build_object('arguments', places, 'kinds', counts));
END
$$;

-- _redacted: a text as this bank keeps it (_redact_for).
CREATE OR REPLACE FUNCTION hindsight._redacted(opened hindsight.bank, argument text, content text)
  RETURNS text
  LANGUAGE sql VOLATILE
RETURN CASE WHEN content IS NULL THEN NULL ELSE (hindsight._redact_for(opened, ARRAY[argument], ARRAY[content])).redacted[1] END;

-- _json_parts: the text of a JSON value in parts: its strings and numbers, and what is between them, in turn. By an expression over the text,
-- since a function that calls itself would not go as deep as JSON does.
CREATE OR REPLACE FUNCTION hindsight._json_parts(value jsonb)
  RETURNS text[]
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN pg_catalog.string_to_array(pg_catalog.regexp_replace(
  pg_catalog.translate(value::text, U&'\fdd0\fdd1\fdd2\fdd3', U&'\fffd\fffd\fffd\fffd'),
  '"(?:[^"\\]|\\.)*"(?:: )?|-?[0-9][0-9.eE+-]*', U&'\fdd3\\&\fdd3', 'g'), U&'\fdd3');

-- _json_values: of those parts the strings and numbers that are values, as texts, with their places; keys are left alone. whole: the kind
-- of what is a secret because of its key ({"password": …}).
CREATE OR REPLACE FUNCTION hindsight._json_values(parts text[], OUT places integer[], OUT texts text[], OUT whole text[])
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
  SELECT coalesce(pg_catalog.array_agg(v.place ORDER BY v.place), '{}'), coalesce(pg_catalog.array_agg(v.content ORDER BY v.place), '{}'),
         coalesce(pg_catalog.array_agg(CASE WHEN hindsight._is_secret_word(v.content, '') THEN CASE
             WHEN v.key ~* '(?:pass(?:word|wd|phrase|code)?|pwd|密码|口令)$' AND pg_catalog.length(v.content) BETWEEN 4 AND 200 THEN 'password'
             WHEN v.key ~* ('(?:(?:api|access|secret|auth|private|client)[-_]?(?:key|token|secret)'
                            '|^(?:token|secret|authorization)|密钥|秘钥|令牌)$')
                  AND v.content ~ '[0-9]' AND v.content ~ '[A-Za-z]' AND v.content !~ '\s' AND pg_catalog.length(v.content) >= 8 THEN 'api_key' END END
           ORDER BY v.place), '{}')
  FROM (
    SELECT p.place::integer AS place, CASE WHEN p.part LIKE '"%' THEN p.part::jsonb #>> '{}' ELSE p.part END AS content,
           CASE WHEN p.key LIKE '"%": ' THEN pg_catalog."left"(p.key, -2)::jsonb #>> '{}' END AS key
    FROM (SELECT u.place, u.part, pg_catalog.lag(u.part, 2) OVER (ORDER BY u.place) AS key
          FROM pg_catalog.unnest(parts) WITH ORDINALITY AS u(part, place)) AS p
    WHERE p.place % 2 = 0 AND p.part NOT LIKE '"%": ') AS v;
END;

-- _json_with: the JSON value of parts, with other texts at these places. A number that became a placeholder is a string.
CREATE OR REPLACE FUNCTION hindsight._json_with(parts text[], places integer[], before text[], after text[])
  RETURNS jsonb
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (
  SELECT pg_catalog.string_agg(CASE WHEN c.after IS DISTINCT FROM c.before THEN pg_catalog.to_jsonb(c.after)::text ELSE u.part END, ''
                               ORDER BY u.place)::jsonb
  FROM pg_catalog.unnest(parts) WITH ORDINALITY AS u(part, place)
  LEFT JOIN ROWS FROM (pg_catalog.unnest(places), pg_catalog.unnest(before), pg_catalog.unnest(after)) AS c(place, before, after)
    ON c.place = u.place);

-- _redacted_json: a JSON value as this bank keeps it (_redact_for).
CREATE OR REPLACE FUNCTION hindsight._redacted_json(opened hindsight.bank, argument text, value jsonb)
  RETURNS jsonb
  LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  parts text[];
  v record;
  done record;
BEGIN
  IF value IS NULL OR value IN ('{}', '[]') OR opened.redaction = 'off' THEN
    RETURN value;
  END IF;
  parts := hindsight._json_parts(value);
  v := hindsight._json_values(parts);
  done := hindsight._redact_for(opened, pg_catalog.array_fill(argument, ARRAY[pg_catalog.cardinality(v.texts)]), v.texts, v.whole);
  RETURN CASE WHEN done.reason IS NULL THEN value ELSE hindsight._json_with(parts, v.places, v.texts, done.redacted) END;
END
$$;

-- _redact_memory: what a memory is made of, as this bank keeps it: the same placeholder is the same value in all of it. A slot names a thing,
-- and two slots must not become one: one that holds a secret is refused, HM007.
CREATE OR REPLACE FUNCTION hindsight._redact_memory(
  opened hindsight.bank, slot text, INOUT content text, INOUT context text, INOUT tags text[], INOUT entities text[], INOUT metadata jsonb,
  OUT reason text)
  LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  labels constant text[] := coalesce(tags, '{}') || coalesce(entities, '{}');
  tag_count constant integer := coalesce(pg_catalog.cardinality(tags), 0);
  label_count constant integer := pg_catalog.cardinality(labels);
  parts text[];
  v record;
  done record;
BEGIN
  IF opened.redaction = 'off' THEN
    RETURN;
  END IF;
  IF metadata <> '{}' THEN
    parts := hindsight._json_parts(metadata);
    v := hindsight._json_values(parts);
  ELSE
    SELECT '{}'::integer[] AS places, '{}'::text[] AS texts, '{}'::text[] AS whole INTO v;
  END IF;
  done := hindsight._redact_for(
    opened,
    ARRAY['content', 'context', 'slot'] || pg_catalog.array_fill('tags'::text, ARRAY[tag_count])
      || pg_catalog.array_fill('entities'::text, ARRAY[label_count - tag_count])
      || pg_catalog.array_fill('metadata'::text, ARRAY[pg_catalog.cardinality(v.texts)]),
    ARRAY[content, context, slot] || labels || v.texts,
    pg_catalog.array_fill(NULL::text, ARRAY[3 + label_count]) || v.whole);
  reason := done.reason;
  IF reason IS NULL THEN
    RETURN;
  ELSIF done.redacted[3] <> slot THEN
    RAISE EXCEPTION 'slot of bank % must not hold: %', pg_catalog.quote_literal(opened.name), pg_catalog.replace(reason, 'redacted: ', '')
      USING ERRCODE = 'HM007', HINT = 'A slot is the name of a thing, such as ''alice.card'': the secret does not belong into it.';
  END IF;
  content := done.redacted[1];
  context := done.redacted[2];
  tags := CASE WHEN tags IS NOT NULL THEN done.redacted[4:3 + tag_count] END;
  entities := CASE WHEN entities IS NOT NULL THEN done.redacted[4 + tag_count:3 + label_count] END;
  IF metadata <> '{}' THEN
    metadata := hindsight._json_with(parts, v.places, v.texts, done.redacted[4 + label_count:]);
  END IF;
END
$$;
