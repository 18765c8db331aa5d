-- Checks of what callers pass. Each raises before anything is written, and says which value was wrong.

-- _check_unit: raises HM004 unless the value is NULL or lies in [0, 1].
CREATE OR REPLACE FUNCTION hindsight._check_unit(argument text, value double precision)
  RETURNS void
  LANGUAGE plpgsql IMMUTABLE
AS $$
BEGIN
  IF NOT value BETWEEN 0 AND 1 THEN -- NaN sorts above every number
    RAISE EXCEPTION '% must lie between 0 and 1, got %', argument, value
      USING ERRCODE = 'HM004', HINT = 'Give a number such as 0.8, or leave it out.';
  END IF;
END
$$;

-- _check_most: raises HM004 unless so many rows, 1 to 10,000, are asked for.
CREATE OR REPLACE FUNCTION hindsight._check_most(most integer)
  RETURNS void
  LANGUAGE plpgsql IMMUTABLE
AS $$
BEGIN
  IF (most BETWEEN 1 AND 10000) IS NOT TRUE THEN
    RAISE EXCEPTION 'most must lie between 1 and 10000, got %', coalesce(most::text, 'NULL')
      USING ERRCODE = 'HM004', HINT = 'It is how many rows are returned: 100 by default.';
  END IF;
END
$$;

-- _check_text: raises HM005 when a text is empty or longer than the limit, in characters.
CREATE OR REPLACE FUNCTION hindsight._check_text(argument text, value text, most integer)
  RETURNS void
  LANGUAGE plpgsql IMMUTABLE
AS $$
BEGIN
  IF coalesce(value, '') !~ '[^\s\u00a0\u00ad\u200b-\u200f\u2060\u3000\ufeff]' THEN
    RAISE EXCEPTION '% is empty', argument USING ERRCODE = 'HM005', HINT = 'Give it at least one visible character.';
  END IF;
  IF pg_catalog.length(value) > most THEN
    RAISE EXCEPTION '% has % characters, at most % are taken', argument, pg_catalog.length(value), most
      USING ERRCODE = 'HM005',
            HINT = CASE WHEN argument IN ('content', 'context')
                     THEN 'A memory is one distilled sentence. Split the text, or keep the original with hindsight.log_turn.'
                     ELSE 'Give a shorter one.' END;
  END IF;
END
$$;

-- _check_optional_text: _check_text, for a text that may be left out.
CREATE OR REPLACE FUNCTION hindsight._check_optional_text(argument text, value text, most integer)
  RETURNS void
  LANGUAGE plpgsql IMMUTABLE
AS $$
BEGIN
  IF value IS NOT NULL THEN
    PERFORM hindsight._check_text(argument, value, most);
  END IF;
END
$$;

-- _check_type: raises HM004 for a type of memory that does not exist.
CREATE OR REPLACE FUNCTION hindsight._check_type(type text)
  RETURNS void
  LANGUAGE plpgsql STABLE
AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM hindsight.memory_type AS t WHERE t.type = _check_type.type) THEN
    RAISE EXCEPTION 'unknown type %', coalesce(pg_catalog.quote_literal(type), 'NULL')
      USING ERRCODE = 'HM004',
            HINT = (SELECT 'Types are ' || pg_catalog.string_agg(t.type, ', ' ORDER BY t.type) || '.'
                    FROM hindsight.memory_type AS t);
  END IF;
END
$$;

-- _check_time: raises HM004 for a time outside of the years 1 to 9999, which most programs cannot hold.
CREATE OR REPLACE FUNCTION hindsight._check_time(argument text, value timestamptz)
  RETURNS void
  LANGUAGE plpgsql IMMUTABLE
AS $$
BEGIN
  IF NOT value BETWEEN '0001-01-02 00:00:00+00' AND '9999-12-30 00:00:00+00' THEN
    RAISE EXCEPTION '% is out of range: %', argument, value
      USING ERRCODE = 'HM004', HINT = 'Times lie in the years 1 to 9999. Leave it out where there is none.';
  END IF;
END
$$;

-- _check_source: raises HM004 for a source that is not known.
CREATE OR REPLACE FUNCTION hindsight._check_source(source text)
  RETURNS void
  LANGUAGE plpgsql IMMUTABLE
AS $$
BEGIN
  IF source NOT IN ('user', 'document', 'tool', 'inferred') THEN
    RAISE EXCEPTION 'unknown source %', pg_catalog.quote_literal(source)
      USING ERRCODE = 'HM004', HINT = 'Sources are user, document, tool and inferred; leave it out when unknown.';
  END IF;
END
$$;

-- _check_ttl: raises HM004 for a time to live that is none, that goes beyond the year 9999, or that comes with an expires_at.
CREATE OR REPLACE FUNCTION hindsight._check_ttl(ttl interval, expires_at timestamptz)
  RETURNS void
  LANGUAGE plpgsql STABLE
AS $$
BEGIN
  IF ttl IS NOT NULL AND expires_at IS NOT NULL THEN
    RAISE EXCEPTION 'expires_at and ttl are two ends: % and %', expires_at, ttl
      USING ERRCODE = 'HM004', HINT = 'Give one of them.';
  ELSIF NOT ttl BETWEEN '1 microsecond' AND '1000 years' THEN
    RAISE EXCEPTION 'ttl must lie between a microsecond and a thousand years, got %', ttl
      USING ERRCODE = 'HM004', HINT = 'For example ''7 days''. Leave it out for a memory that stays.';
  END IF;
END
$$;

-- _check_list: raises HM004 for an array of arrays.
CREATE OR REPLACE FUNCTION hindsight._check_list(argument text, value anyarray)
  RETURNS void
  LANGUAGE plpgsql IMMUTABLE
AS $$
BEGIN
  IF pg_catalog.array_ndims(value) > 1 THEN
    RAISE EXCEPTION '% must be a plain list, got an array of % dimensions', argument, pg_catalog.array_ndims(value)
      USING ERRCODE = 'HM004', HINT = 'For example ''{a,b}'', not ''{{a},{b}}''.';
  END IF;
END
$$;

-- _check_principal: raises HM004 for a name that is empty, or too long to be kept.
CREATE OR REPLACE FUNCTION hindsight._check_principal(name text)
  RETURNS void
  LANGUAGE plpgsql IMMUTABLE
AS $$
BEGIN
  IF coalesce(name, '') = '' OR pg_catalog.length(name) > 200 THEN
    RAISE EXCEPTION 'a principal''s name has % characters', coalesce(pg_catalog.length(name), 0)
      USING ERRCODE = 'HM004', HINT = 'It has 1 to 200: of a login, or what hindsight.principal is set to.';
  END IF;
END
$$;

-- _check_labels: raises HM004 for an array of arrays, HM005 for more than 100 tags or entities, or one of more than 200 characters.
CREATE OR REPLACE FUNCTION hindsight._check_labels(argument text, labels text[])
  RETURNS void
  LANGUAGE plpgsql IMMUTABLE
AS $$
DECLARE
  longest constant integer := (SELECT max(pg_catalog.length(l)) FROM pg_catalog.unnest(labels) AS l);
BEGIN
  PERFORM hindsight._check_list(argument, labels);
  IF pg_catalog.cardinality(labels) > 100 OR longest > 200 THEN
    RAISE EXCEPTION '% are % of up to % characters, at most 100 of 200 are taken', argument, pg_catalog.cardinality(labels), longest
      USING ERRCODE = 'HM005', HINT = 'Keep what a memory is about; other data belong into metadata.';
  END IF;
END
$$;

-- _check_object: raises HM004 unless the value is NULL or a JSON object, of at most 100,000 characters.
CREATE OR REPLACE FUNCTION hindsight._check_object(argument text, value jsonb)
  RETURNS void
  LANGUAGE plpgsql IMMUTABLE
AS $$
BEGIN
  IF pg_catalog.jsonb_typeof(value) <> 'object' THEN
    RAISE EXCEPTION '% must be a JSON object, got a JSON %', argument, pg_catalog.jsonb_typeof(value)
      USING ERRCODE = 'HM004', HINT = 'For example {"project": "search"}.';
  END IF;
  IF pg_catalog.length(value::text) > 100000 THEN
    RAISE EXCEPTION '% has % characters, at most 100000 are taken', argument, pg_catalog.length(value::text)
      USING ERRCODE = 'HM005', HINT = 'Keep large data elsewhere, and its key here.';
  END IF;
END
$$;

-- _check_array: raises HM004 unless the value is a JSON array of objects.
CREATE OR REPLACE FUNCTION hindsight._check_array(argument text, value jsonb)
  RETURNS void
  LANGUAGE plpgsql IMMUTABLE
AS $$
BEGIN
  IF pg_catalog.jsonb_typeof(value) IS DISTINCT FROM 'array' THEN
    RAISE EXCEPTION '% must be a JSON array, got %', argument, coalesce('a JSON ' || pg_catalog.jsonb_typeof(value), 'NULL')
      USING ERRCODE = 'HM004', HINT = 'A list of objects: [{"content": "The SSH port is 2222."}]; [] is an empty one.';
  ELSIF EXISTS (SELECT FROM pg_catalog.jsonb_array_elements(value) AS e WHERE pg_catalog.jsonb_typeof(e) <> 'object') THEN
    RAISE EXCEPTION '% must hold JSON objects only', argument
      USING ERRCODE = 'HM004', HINT = 'For example [{"content": "The SSH port is 2222."}].';
  END IF;
END
$$;

-- _clean_labels: tags or entities without blanks, empty ones and repetitions, in the order they came.
CREATE OR REPLACE FUNCTION hindsight._clean_labels(labels text[])
  RETURNS text[]
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (
  SELECT coalesce(pg_catalog.array_agg(label ORDER BY place), '{}')
  FROM (SELECT pg_catalog.btrim(l.label) AS label, min(l.place) AS place
        FROM pg_catalog.unnest(labels) WITH ORDINALITY AS l(label, place)
        WHERE pg_catalog.btrim(l.label) <> ''
        GROUP BY pg_catalog.btrim(l.label)) AS cleaned
);

-- _with_entities: the entities that were given, then those that the content names, at most 100.
CREATE OR REPLACE FUNCTION hindsight._with_entities(given text[], content text)
  RETURNS text[]
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (hindsight._clean_labels(given || ARRAY(
  SELECT named FROM pg_catalog.unnest(hindsight.entities(content)) AS named
  WHERE NOT EXISTS (SELECT FROM pg_catalog.unnest(given) AS g WHERE pg_catalog.lower(pg_catalog.btrim(g)) = pg_catalog.lower(named)))))[:100];
