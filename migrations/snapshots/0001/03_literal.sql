-- Whether a text holds another one literally: what erasure looks for.

-- _folded: a text for comparison, literally but for case, width, white space and punctuation; words stand between spaces, so that
-- 22 is not found in 2222. It takes the text in lower case and NFKC.
CREATE OR REPLACE FUNCTION hindsight._folded(plain text)
  RETURNS text
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
AS $$
DECLARE
  words constant text := pg_catalog.btrim(pg_catalog.regexp_replace(
    plain, '[\u0001-\u002f\u003a-\u0040\u005b-\u0060\u007b-\u00bf\u2000-\u206f\u3000-\u303f]+', ' ', 'g'));
BEGIN
  IF words = '' THEN -- nothing but punctuation
    RETURN pg_catalog.btrim(plain);
  END IF;
  RETURN pg_catalog.regexp_replace(
    pg_catalog.regexp_replace(words, '([0-9a-z\u00c0-\u0dff]+)', ' \1 ', 'g'), ' +', ' ', 'g');
END
$$;

-- _sought: for each of some contents its longest word, which is looked for first, and the content, folded.
CREATE OR REPLACE FUNCTION hindsight._sought(contents text[])
  RETURNS text[]
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (
  SELECT pg_catalog.array_agg(ARRAY[
    (SELECT w.word FROM pg_catalog.string_to_table(f.folded, ' ') AS w(word) ORDER BY pg_catalog.length(w.word) DESC LIMIT 1),
    f.folded])
  FROM (SELECT DISTINCT hindsight._folded(pg_catalog.lower(pg_catalog.normalize(c, 'NFKC')))
        FROM pg_catalog.unnest(contents) AS c) AS f(folded));

-- _holds: whether one of these texts holds one of the contents that are sought.
CREATE OR REPLACE FUNCTION hindsight._holds(sought text[], VARIADIC texts text[])
  RETURNS boolean
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
AS $$
DECLARE
  plain text;
  one text[];
BEGIN
  FOREACH plain IN ARRAY texts LOOP
    CONTINUE WHEN plain IS NULL;
    plain := pg_catalog.lower(pg_catalog.normalize(plain, 'NFKC'));
    FOREACH one SLICE 1 IN ARRAY sought LOOP
      IF pg_catalog.strpos(plain, one[1]) > 0 AND pg_catalog.strpos(hindsight._folded(plain), one[2]) > 0 THEN
        RETURN true;
      END IF;
    END LOOP;
  END LOOP;
  RETURN false;
END
$$;

-- _holds: of JSON values. Where neither the longest word nor an escaped character is in sight, their texts are not taken apart.
CREATE OR REPLACE FUNCTION hindsight._holds(sought text[], VARIADIC documents jsonb[])
  RETURNS boolean
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
AS $$
DECLARE
  document jsonb;
  plain text;
  one text[];
BEGIN
  FOREACH document IN ARRAY documents LOOP
    CONTINUE WHEN document IS NULL OR document = '{}';
    plain := pg_catalog.lower(pg_catalog.normalize(document::text, 'NFKC'));
    FOREACH one SLICE 1 IN ARRAY sought LOOP
      CONTINUE WHEN pg_catalog.strpos(plain, one[1]) = 0 AND pg_catalog.strpos(plain, '\u') = 0;
      IF hindsight._holds(ARRAY[one], hindsight._strings(document)) THEN
        RETURN true;
      END IF;
    END LOOP;
  END LOOP;
  RETURN false;
END
$$;

-- _strings: the texts and numbers in a JSON value, one a line; also those in a text that is JSON itself, as arguments of tools are.
CREATE OR REPLACE FUNCTION hindsight._strings(value jsonb)
  RETURNS text
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
AS $$
DECLARE
  string text;
  strings text := '';
BEGIN
  FOR string IN
    SELECT v #>> '{}' FROM pg_catalog.jsonb_path_query(value, 'strict $.**') AS v
    WHERE pg_catalog.jsonb_typeof(v) IN ('string', 'number')
  LOOP
    IF string ~ '^\s*[\[{]' AND string IS JSON THEN
      BEGIN
        string := hindsight._strings(string::jsonb);
      EXCEPTION WHEN OTHERS THEN -- an escaped character that no text may hold: it is searched as it is
        NULL;
      END;
    END IF;
    strings := strings || string || E'\n';
  END LOOP;
  RETURN strings;
END
$$;
