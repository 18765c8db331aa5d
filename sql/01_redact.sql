-- Redaction: personal data and secrets in a text become typed, numbered placeholders: [phone:1]. By rules, which are in 01_secret*.sql.

-- _redactable: the kinds that are known.
CREATE OR REPLACE FUNCTION hindsight._redactable()
  RETURNS text[]
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN '{private_key,api_key,password,card,iban,resident_id,ssn,phone,email,ip}'::text[];

-- _mark_secrets: puts a mark in the place of each secret of one form: U+E000, its number in values, U+E001. Whoever reads the text next
-- does not see it.
CREATE OR REPLACE FUNCTION hindsight._mark_secrets(
  kind text, form text, pattern text, INOUT body text, INOUT kinds text[], INOUT secrets text[])
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
AS $$
DECLARE
  more boolean := body ~ pattern;
  marked record;
BEGIN
  WHILE more LOOP
    WITH piece AS (
      SELECT p.place, p.gap, p.candidate[1] AS candidate, pg_catalog.lead(p.gap) OVER (ORDER BY p.place) AS next_gap,
             pg_catalog."right"(pg_catalog.lag(p.gap || p.candidate[1], 1, '') OVER (ORDER BY p.place) || p.gap, 30) AS before
      FROM ROWS FROM (pg_catalog.regexp_split_to_table(body, pattern), pg_catalog.regexp_matches(body, pattern, 'g'))
           WITH ORDINALITY AS p(gap, candidate, place)
    ),
    judged AS (
      SELECT p.place, p.gap, p.candidate, s.lead, s.value, s.rest,
             pg_catalog.count(s.value) OVER (ORDER BY p.place) + pg_catalog.cardinality(secrets) AS number
      FROM piece AS p
      LEFT JOIN LATERAL hindsight._secret(kind, form, p.candidate, p.before, pg_catalog."left"(p.next_gap, 10)) AS s
        ON p.candidate IS NOT NULL
    )
    SELECT pg_catalog.string_agg(
             j.gap || CASE WHEN j.value IS NULL THEN coalesce(j.candidate, '')
                           ELSE j.lead || U&'\e000' || j.number || U&'\e001' || j.rest END, '' ORDER BY j.place) AS body,
           pg_catalog.array_agg(j.value ORDER BY j.place) FILTER (WHERE j.value IS NOT NULL) AS secrets,
           pg_catalog.bool_or(j.value IS NOT NULL AND pg_catalog.length(j.rest) > 8) AS more -- what follows may hold another one
      INTO marked FROM judged AS j;
    EXIT WHEN marked.secrets IS NULL;
    body := marked.body;
    secrets := secrets || marked.secrets;
    kinds := kinds || pg_catalog.array_fill(kind, ARRAY[pg_catalog.cardinality(marked.secrets)]);
    more := marked.more;
  END LOOP;
END
$$;

-- _redact: some texts without what is of these kinds, numbered over all of them; patterns has further kinds with an expression each.
-- names: what a text is called where it comes from (a key of JSON): the value of "password" is one. hits: the kind of each
-- placeholder. The texts are joined, so that each expression reads them once.
CREATE OR REPLACE FUNCTION hindsight._redact(
  texts text[], kinds text[], patterns jsonb DEFAULT NULL, names text[] DEFAULT NULL, OUT redacted text[], OUT hits text[])
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
AS $$
DECLARE
  body text := pg_catalog.array_to_string(texts, U&'\e002', '');
  secrets text[] := '{}';
  has_digits boolean;
  known record;
BEGIN
  redacted := texts;
  hits := '{}';
  IF body ~ '[\ue000-\ue002]' THEN 
    NULL;
  END IF;
  has_digits := body ~ '[0-9][ .-]?[0-9][ .-]?[0-9]';
  FOR known IN SELECT * FROM hindsight._secret_patterns() AS p WHERE p.kind = ANY (kinds) LOOP
    SELECT m.body, m.kinds, m.secrets INTO body, hits, secrets
      FROM hindsight._mark_secrets(known.kind, known.form, known.pattern, body, hits, secrets) AS m;
  END LOOP;
  IF hits = '{}' THEN
    RETURN;
  END IF;
  WITH piece AS (
    SELECT p.place, pg_catalog.split_part(p.piece, U&'\e001', 1)::integer AS number, pg_catalog.split_part(p.piece, U&'\e001', 2) AS tail
    FROM pg_catalog.string_to_table(body, U&'\e000') WITH ORDINALITY AS p(piece, place) WHERE p.place > 1
  ),
  named AS (
    SELECT p.place, p.tail, hits[p.number] AS kind, secrets[p.number] AS secret,
           pg_catalog.min(p.place) OVER (PARTITION BY hits[p.number], secrets[p.number]) AS first_place
    FROM piece AS p
  ),
  numbered AS (
    SELECT n.place, '[' || n.kind || ':' || pg_catalog.dense_rank() OVER (PARTITION BY n.kind ORDER BY n.first_place) || ']' || n.tail AS part
    FROM named AS n
  )
  SELECT pg_catalog.split_part(body, U&'\e000', 1) || pg_catalog.string_agg(n.part, '' ORDER BY n.place) INTO body FROM numbered AS n;
  redacted := pg_catalog.string_to_array(body, U&'\e002');
END
$$;

-- redact: a text without personal data and secrets; of all kinds that are known, or of those that are given.
CREATE OR REPLACE FUNCTION hindsight.redact(content text, kinds text[] DEFAULT NULL)
  RETURNS text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (hindsight._redact(ARRAY[content], coalesce(kinds, hindsight._redactable()))).redacted[1];
