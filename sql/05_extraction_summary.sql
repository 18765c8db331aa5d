-- The summary of a session, made by rules of the memories that were found in it.

-- _summary_of: what was decided, preferred, learned and left to do in a session, and what it was about, in the language of its
-- memories, in at most 600 characters: of each kind the first, as long as there is room. NULL: there are fewer than two, and one
-- memory needs no summary. Guesses are left out.
CREATE OR REPLACE FUNCTION hindsight._summary_of(contents text[], types text[])
  RETURNS text
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
AS $$
DECLARE
  is_chinese constant boolean := hindsight._is_chinese(pg_catalog.array_to_string(contents, ''));
  separator constant text := CASE WHEN is_chinese THEN '；' ELSE '; ' END;
  stop constant text := CASE WHEN is_chinese THEN '。' ELSE '. ' END;
  names constant text[] := (hindsight.entities((
    SELECT pg_catalog.string_agg(pg_catalog.lower(pg_catalog."left"(c, 1)) || pg_catalog.substr(c, 2), E'\n') -- a capital there names nothing
    FROM pg_catalog.unnest(contents) AS c)))[:6];
  about constant text := CASE WHEN names <> '{}' THEN
    CASE WHEN is_chinese THEN '涉及：' || pg_catalog.array_to_string(names, '、') || '。'
         ELSE 'About: ' || pg_catalog.array_to_string(names, ', ') || '.' END END;
  summary text;
BEGIN
  WITH item AS (
    SELECT DISTINCT ON (said) said, kind, place
    FROM ROWS FROM (pg_catalog.unnest(contents), pg_catalog.unnest(types)) WITH ORDINALITY AS m(content, type, place)
    CROSS JOIN LATERAL (SELECT pg_catalog.array_position('{decision,preference,fact,todo}', m.type) AS kind) AS k
    CROSS JOIN LATERAL hindsight._clipped(pg_catalog.rtrim(m.content, '.。!！;； '), 150) AS said
    WHERE k.kind IS NOT NULL AND said <> ''
    ORDER BY said, place
  ),
  counted AS ( -- one of each kind in turn, so that a long list leaves room for the others
    SELECT i.*, pg_catalog.row_number() OVER (PARTITION BY i.kind ORDER BY i.place) AS turn, count(*) OVER () AS items FROM item AS i
  ),
  kept AS (
    SELECT c.* FROM (SELECT c.*, pg_catalog.sum(pg_catalog.length(c.said) + 2) OVER (ORDER BY c.turn, c.kind) AS size FROM counted AS c) AS c
    WHERE c.items > 1 AND c.size <= 540 - coalesce(pg_catalog.length(about), 0)
  ),
  section AS (
    SELECT k.kind, pg_catalog.string_agg(k.said, separator ORDER BY k.place) AS said FROM kept AS k GROUP BY k.kind
  )
  SELECT pg_catalog.string_agg((CASE WHEN is_chinese THEN '{决定：,偏好：,事实：,待办：}' ELSE '{"Decided: ","Preferred: ","Known: ","To do: "}' END::text[])[s.kind]
                               || s.said || stop, '' ORDER BY s.kind)
    INTO summary FROM section AS s;
  RETURN pg_catalog.rtrim(summary || coalesce(about, ''));
END
$$;
