-- Redaction: personal data and secrets in a text become typed, numbered placeholders: [phone:1]. For each form there is an expression
-- that finds candidates; 01_secret*.sql judge them. The expressions have no back-reference, look around by one character only, and are
-- small: PostgreSQL runs such a one as an automaton, which it builds anew for each match (5 µs; 400 µs where all forms are one
-- expression). Cheap tests come first, so that a text that holds nothing of the kind costs some ten microseconds.

-- _redactable: the kinds that are known.
CREATE OR REPLACE FUNCTION hindsight._redactable()
  RETURNS text[]
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN '{private_key,api_key,password,card,iban,resident_id,ssn,phone,email,ip}'::text[];

-- _named_pattern: what may stand after a name such as 'password': perhaps whose it is, a verb or a sign; then what is quoted, or up to a
-- space. A comma or an ampersand ends it where another name follows. U+FDD0 to U+FDD3 are left out: marks of what was found.
CREATE OR REPLACE FUNCTION hindsight._named_pattern(names text)
  RETURNS text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN names || '(?: (?:for|of|on|at|in)(?: [A-Za-z0-9_.''-]+){1,4})?(?: +(?:is|was|has|been|changed|set|reset|now|to))*'
  '[\\"''`)\]]*[是为设置成改换到了写叫:：=＝>\s]*[\\"''“「`]*'
  '(?:(?<=")[^"\n\ufdd0-\ufdd3]+|(?<='')[^''\n\ufdd0-\ufdd3]+|[!#-%(-+.-:<-_a-~-]+(?:[,;&][!#-%(-+.-9<>-_a-~-]+(?![!#-%(-+.-:<-_a-~-]))*)';

-- _mark_secrets: puts a mark in the place of each secret of one form: U+FDD0, its number in secrets, U+FDD1, which no other form sees.
-- (Unicode keeps these for use inside of a program: they are no characters.)
CREATE OR REPLACE FUNCTION hindsight._mark_secrets(
  kind text, form text, pattern text, INOUT body text, INOUT hits text[], INOUT secrets text[])
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
AS $$
DECLARE
  parts text[]; -- what is between candidates, and they, in turn
  judged record;
  before text;
  more boolean := true;
BEGIN
  WHILE more LOOP
    parts := pg_catalog.string_to_array(pg_catalog.regexp_replace(body, pattern, U&'\fdd3\\&\fdd3', 'g'), U&'\fdd3');
    before := '';
    more := false;
    FOR place IN 2..pg_catalog.cardinality(parts) BY 2 LOOP
      before := pg_catalog."right"(before || pg_catalog."right"(parts[place - 1], 30), 30);
      IF form = 'named' THEN
        judged := hindsight._named_secret(kind, parts[place], before, pg_catalog."left"(parts[place + 1], 10));
      ELSIF form IN ('whole', 'url', 'hook', 'bearer', 'known', 'address') THEN
        judged := hindsight._secret_text(form, parts[place], before);
      ELSE
        judged := hindsight._secret_number(kind, form, parts[place], before, pg_catalog."left"(parts[place + 1], 10));
      END IF;
      before := before || parts[place];
      IF judged.value IS NOT NULL THEN
        secrets := secrets || judged.value;
        hits := hits || kind;
        parts[place] := judged.lead || U&'\fdd0' || pg_catalog.cardinality(secrets) || U&'\fdd1' || judged.rest;
        more := more OR pg_catalog.length(judged.rest) > 8; -- what follows may hold another one
      END IF;
    END LOOP;
    IF pg_catalog.cardinality(parts) > 1 THEN
      body := pg_catalog.array_to_string(parts, '');
    END IF;
  END LOOP;
END
$$;

-- _number_marks: the marked text with a placeholder in each place, numbered by kind in the order of their first appearance; after those
-- that the text had before.
CREATE OR REPLACE FUNCTION hindsight._number_marks(body text, hits text[], secrets text[])
  RETURNS text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
  WITH piece AS (
    SELECT p.place, pg_catalog.split_part(p.piece, U&'\fdd1', 1)::integer AS number, pg_catalog.split_part(p.piece, U&'\fdd1', 2) AS tail
    FROM pg_catalog.string_to_table(body, U&'\fdd0') WITH ORDINALITY AS p(piece, place) WHERE p.place > 1
  ),
  known AS (
    SELECT p.place, p.tail, hits[p.number] AS kind, pg_catalog.min(p.place) OVER (PARTITION BY hits[p.number], secrets[p.number]) AS first_place
    FROM piece AS p
  ),
  before AS (
    SELECT k.kind, max(m.groups[1]::integer) AS last
    FROM (SELECT DISTINCT k.kind FROM known AS k) AS k
    CROSS JOIN LATERAL pg_catalog.regexp_matches(body, '\[' || k.kind || ':([0-9]{1,6})]', 'g') AS m(groups)
    WHERE pg_catalog.strpos(body, '[' || k.kind || ':') > 0
    GROUP BY k.kind
  ),
  numbered AS (
    SELECT k.place, '[' || k.kind || ':' || pg_catalog.dense_rank() OVER (PARTITION BY k.kind ORDER BY k.first_place) + coalesce(b.last, 0) || ']'
                    || k.tail AS part
    FROM known AS k LEFT JOIN before AS b USING (kind)
  )
  SELECT pg_catalog.split_part(body, U&'\fdd0', 1) || pg_catalog.string_agg(n.part, '' ORDER BY n.place) FROM numbered AS n;
END;

-- _redact: some texts without what is of these kinds, numbered over all of them. patterns: further kinds, each with an expression.
-- hits: the kind of each secret. The texts are read as one, so that each expression reads them once. whole: the kind of a text that is
-- a secret as it is, since a key of JSON says so.
CREATE OR REPLACE FUNCTION hindsight._redact(
  texts text[], kinds text[], patterns jsonb DEFAULT NULL, whole text[] DEFAULT NULL, OUT redacted text[], OUT hits text[])
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
AS $$
DECLARE
  m record;
  own record;
  is_short boolean;
  has_names boolean;
  has_keys boolean;
  has_digits boolean;
BEGIN
  SELECT pg_catalog.array_to_string(texts, U&'\fdd2', '') AS body, '{}'::text[] AS hits, '{}'::text[] AS secrets INTO m;
  IF pg_catalog.array_remove(whole, NULL) <> '{}' OR pg_catalog.strpos(m.body, U&'\fdd0') > 0
     OR pg_catalog.strpos(m.body, U&'\fdd1') > 0 OR pg_catalog.strpos(m.body, U&'\fdd3') > 0 THEN
    SELECT pg_catalog.string_agg(CASE WHEN t.kind IS NULL
                                        THEN pg_catalog.translate(t.content, U&'\fdd0\fdd1\fdd2\fdd3', U&'\fffd\fffd\fffd\fffd')
                                      ELSE U&'\fdd0' || t.number || U&'\fdd1' END, U&'\fdd2' ORDER BY t.place) AS body,
           coalesce(pg_catalog.array_agg(t.kind ORDER BY t.place) FILTER (WHERE t.kind IS NOT NULL), '{}') AS hits,
           coalesce(pg_catalog.array_agg(t.content ORDER BY t.place) FILTER (WHERE t.kind IS NOT NULL), '{}') AS secrets
      INTO m
      FROM (SELECT w.content, w.kind, w.place, pg_catalog.count(w.kind) OVER (ORDER BY w.place) AS number
            FROM (SELECT coalesce(u.content, '') AS content, CASE WHEN u.kind = ANY (kinds) AND u.content <> '' THEN u.kind END AS kind, u.place
                  FROM ROWS FROM (pg_catalog.unnest(texts), pg_catalog.unnest(whole)) WITH ORDINALITY AS u(content, kind, place)) AS w) AS t;
  END IF;
  -- A session keeps 32 compiled expressions, of which storing a memory uses more: a short text is not worth one that is compiled anew.
  is_short := pg_catalog.length(m.body) <= 300;
  has_names := CASE WHEN is_short
    THEN m.body LIKE ANY ('{%assw%,%assp%,%assc%,%ASSW%,%ASSP%,%ASSC%,%\\_pass%,%\\_PASS%,%pwd%,%Pwd%,%PWD%,%PIN%,%key%,%Key%,%KEY%,'
      '%oken%,%OKEN%,%ecret%,%ECRET%,%密码%,%口令%,%密钥%,%秘钥%,%令牌%,%earer %,%Basic %}')
    ELSE m.body ~ '[Pp](?:ass|ASS|wd|WD|IN)|[Kk](?:ey|EY)|[Tt](?:oken|OKEN)|[Ss](?:ecret|ECRET)|[密令秘][码钥牌]|口令|earer|Basic' END;
  has_keys := NOT is_short OR m.body LIKE ANY (
    '{%sk-%,%sk\\_%,%rk\\_%,%eyJ%,%SG.%,%hf\\_%,%r8\\_%,%AKI%,%ASIA%,%LTAI%,%AIza%,%ghp%,%gho%,%ghu%,%ghs%,%ghr%,%npm%,'
      '%gsk%,%xox%,%xapp%,%pypi%,%tvly%,%pplx%,%glpat%,%dop%,%shp%,%nvapi%,%github%,%ya29%,%xai%,%:AA%}');
  has_digits := CASE WHEN is_short THEN pg_catalog.length(pg_catalog.translate(m.body, '0123456789', '')) <= pg_catalog.length(m.body) - 9
    ELSE m.body ~ '[0-9](?:[ .()-]?[ ()-]?[0-9]){8}' END;
  IF patterns IS NOT NULL THEN
    FOR own IN SELECT p.key, p.value FROM pg_catalog.jsonb_each_text(patterns) AS p LOOP
      m := hindsight._mark_secrets(own.key, 'whole', own.value, m.body, m.hits, m.secrets);
    END LOOP;
  END IF;
  IF 'private_key' = ANY (kinds) AND pg_catalog.strpos(m.body, 'PRIVATE KEY') > 0 THEN -- to its end; or what is left of one that was cut off
    m := hindsight._mark_secrets('private_key', 'whole',
      '-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----'
      '(?:(?:[^-\ufdd0-\ufdd3]|-[^-\ufdd0-\ufdd3])*-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----'
      '|(?:(?:\s|\\[nr])*[A-Za-z0-9+/=]{20}[A-Za-z0-9+/=]*)*)', m.body, m.hits, m.secrets);
  END IF;
  IF 'password' = ANY (kinds) AND pg_catalog.strpos(m.body, '://') > 0 THEN
    m := hindsight._mark_secrets('password', 'url', '://[^\s/:@"''<>\ufdd0-\ufdd3]*:[^\s/"''<>\ufdd0-\ufdd3]+@', m.body, m.hits, m.secrets);
  END IF;
  IF has_names AND 'password' = ANY (kinds) THEN
    m := hindsight._mark_secrets('password', 'named', hindsight._named_pattern(
      '(?:(?:[Pp]ass(?:word|wd|phrase|code)|PASS(?:WORD|WD|PHRASE|CODE)|[Pp]wd|PWD|_pass|_PASS|PIN)(?![A-Za-z0-9_])|PIN码|密码|口令)'),
      m.body, m.hits, m.secrets);
  END IF;
  IF 'api_key' = ANY (kinds) THEN
    IF has_names THEN
      m := hindsight._mark_secrets('api_key', 'named', hindsight._named_pattern(
        '(?:(?:[Kk]ey|KEY|[Tt]oken|TOKEN|[Ss]ecret|SECRET)(?:[-_ ]?I[Dd]|_id)?(?![A-Za-z0-9_])|密钥|秘钥|令牌)'), m.body, m.hits, m.secrets);
      m := hindsight._mark_secrets('api_key', 'bearer', '(?:[Bb]earer|Basic) +[A-Za-z0-9._~+/=-]+', m.body, m.hits, m.secrets);
    END IF;
    IF pg_catalog.strpos(m.body, 'hooks.slack.com/') > 0 THEN
      m := hindsight._mark_secrets('api_key', 'hook', 'hooks\.slack\.com/services/[A-Za-z0-9/_]+', m.body, m.hits, m.secrets);
    END IF;
    IF has_keys THEN
      m := hindsight._mark_secrets('api_key', 'known',
                                   '(?<![A-Za-z0-9_])[A-Za-z0-9_][A-Za-z0-9_.-]{14}[A-Za-z0-9_.-]+', m.body, m.hits, m.secrets);
    END IF;
  END IF;
  IF 'email' = ANY (kinds) AND pg_catalog.strpos(m.body, '@') > 0 THEN
    m := hindsight._mark_secrets('email', 'address', '[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+', m.body, m.hits, m.secrets);
  END IF;
  IF has_digits THEN
    IF 'iban' = ANY (kinds) THEN
      m := hindsight._mark_secrets('iban', 'number', '(?<![A-Za-z0-9_])[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?(?![A-Za-z0-9_])',
                                   m.body, m.hits, m.secrets);
    END IF;
    IF 'resident_id' = ANY (kinds) THEN
      m := hindsight._mark_secrets('resident_id', 'number', '(?<![A-Za-z0-9_])[1-9][0-9]{5}[ -]?[0-9]{8}[ -]?[0-9]{3}[0-9Xx](?![A-Za-z0-9_])',
                                   m.body, m.hits, m.secrets);
    END IF;
    IF 'card' = ANY (kinds) THEN
      m := hindsight._mark_secrets('card', 'number',
        '(?<![A-Za-z0-9_])(?:[2-69][0-9]{3}(?:[ -]?[0-9]{4}){3}(?:[ -]?[0-9]{1,3})?|3[0-9]{3}[ -]?[0-9]{6}[ -]?[0-9]{4,5})(?![A-Za-z0-9_])',
        m.body, m.hits, m.secrets);
    END IF;
    IF 'phone' = ANY (kinds) THEN
      m := hindsight._mark_secrets('phone', 'abroad', '(?<![A-Za-z0-9_])\(?(?:\+|00)[1-9](?:[ .()-]?[ ()-]?[0-9]){7,14}(?![A-Za-z0-9_])',
                                   m.body, m.hits, m.secrets);
      m := hindsight._mark_secrets('phone', 'mobile',
        '(?<![A-Za-z0-9_])(?:86 ?)?1[3-9][0-9][ -]?[0-9]{4}[ -]?[0-9]{4}(?![A-Za-z0-9_])', m.body, m.hits, m.secrets);
    END IF;
    IF 'ssn' = ANY (kinds) THEN
      m := hindsight._mark_secrets('ssn', 'number',
                                   '(?<![A-Za-z0-9_])[0-9]{3}[ -]?[0-9]{2}[ -]?[0-9]{4}(?![A-Za-z0-9_])', m.body, m.hits, m.secrets);
    END IF;
  END IF;
  IF 'ip' = ANY (kinds) AND pg_catalog.strpos(m.body, '.') > 0 THEN
    m := hindsight._mark_secrets('ip', 'v4', '(?<![A-Za-z0-9_])[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?![A-Za-z0-9_])', m.body, m.hits, m.secrets);
  END IF;
  IF 'ip' = ANY (kinds) AND pg_catalog.strpos(m.body, ':') > 0 THEN
    m := hindsight._mark_secrets('ip', 'v6',
                                 '(?<![A-Za-z0-9_:.])[0-9A-Fa-f]*:[0-9A-Fa-f]*:[0-9A-Fa-f:]*(?![A-Za-z0-9_:])', m.body, m.hits, m.secrets);
  END IF;
  hits := m.hits;
  redacted := CASE WHEN hits = '{}' THEN texts
                   ELSE pg_catalog.string_to_array(hindsight._number_marks(m.body, m.hits, m.secrets), U&'\fdd2') END;
END
$$;

-- redact: a text without personal data and secrets: of the kinds given, or of all that are known.
CREATE OR REPLACE FUNCTION hindsight.redact(content text, kinds text[] DEFAULT NULL)
  RETURNS text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (hindsight._redact(ARRAY[content], coalesce(kinds, hindsight._redactable()))).redacted[1];
COMMENT ON FUNCTION hindsight.redact(text, text[]) IS
  'A text with numbered placeholders such as [phone:1] in place of personal data and secrets, of the kinds given or of all.';
