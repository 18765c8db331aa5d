-- Tags: one spelling for each, so that a filter finds what it should.

-- _plain_tag: a tag in its plain spelling: lower case, half width, single spaces.
CREATE OR REPLACE FUNCTION hindsight._plain_tag(tag text)
  RETURNS text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN pg_catalog.btrim(pg_catalog.regexp_replace(pg_catalog.lower(pg_catalog.normalize(tag, 'NFKC')), '\s+', ' ', 'g'));

-- _bank_tags: tags in the bank's spelling: plain, aliases replaced, each once, in the order they came.
CREATE OR REPLACE FUNCTION hindsight._bank_tags(of_bank bigint, tags text[])
  RETURNS text[]
  LANGUAGE sql STABLE
RETURN CASE WHEN tags IS NULL OR tags = '{}' THEN tags ELSE (
  SELECT coalesce(pg_catalog.array_agg(kept.tag ORDER BY kept.place), '{}')
  FROM (SELECT coalesce(a.tag, plain.tag) AS tag, min(t.place) AS place
        FROM pg_catalog.unnest(tags) WITH ORDINALITY AS t(tag, place)
        CROSS JOIN LATERAL hindsight._plain_tag(t.tag) AS plain(tag)
        LEFT JOIN hindsight.tag_alias AS a ON a.bank_id = of_bank AND a.alias = plain.tag
        WHERE plain.tag <> ''
        GROUP BY coalesce(a.tag, plain.tag)) AS kept)
END;
