-- What a query asks: the filters that a memory must pass, and the words and entities that it shall hold.

-- _metadata_filter: what metadata must be: the plain part, which it must contain, and a predicate made of the comparisons:
-- {"year": {"$gte": 2020, "$lt": 2025}, "status": {"$in": ["open", "held"]}}. Numbers compare with numbers, texts with
-- texts (ISO dates sort as texts do); a value of another kind does not match. $ne, $nin and {"$exists": false} also match what lacks the key.
-- Keys and values enter the predicate as JSON literals. Raises HM004.
CREATE OR REPLACE FUNCTION hindsight._metadata_filter(metadata jsonb, OUT plain jsonb, OUT predicate jsonpath)
  LANGUAGE plpgsql IMMUTABLE
AS $$
DECLARE
  key text;
  condition jsonb;
  operator text;
  operand jsonb;
  path text; -- of the key
  options text; -- the operand, or each of its elements, compared for equality with @
  terms text[] := '{}';
BEGIN
  plain := '{}';
  FOR key, condition IN SELECT * FROM pg_catalog.jsonb_each(metadata) LOOP
    IF pg_catalog.jsonb_typeof(condition) <> 'object'
       OR NOT EXISTS (SELECT FROM pg_catalog.jsonb_object_keys(condition) AS k WHERE k LIKE '$%') THEN
      plain := plain || pg_catalog.jsonb_build_object(key, condition);
      CONTINUE;
    END IF;
    path := '$.' || pg_catalog.to_jsonb(key)::text;
    FOR operator, operand IN SELECT * FROM pg_catalog.jsonb_each(condition) LOOP
      IF operator NOT IN ('$eq', '$ne', '$gt', '$gte', '$lt', '$lte', '$in', '$nin', '$exists') THEN
        RAISE EXCEPTION 'unknown comparison % of metadata %', pg_catalog.quote_literal(operator), pg_catalog.quote_literal(key)
          USING ERRCODE = 'HM004', HINT = 'Comparisons are $eq, $ne, $gt, $gte, $lt, $lte, $in, $nin and $exists.';
      ELSIF NOT (CASE WHEN operator IN ('$in', '$nin')
                  THEN pg_catalog.jsonb_typeof(operand) = 'array' AND pg_catalog.jsonb_array_length(operand) <= 1000 AND NOT pg_catalog.jsonb_path_exists(operand, '$[*] ? (@.type() == "object" || @.type() == "array")')
                WHEN operator = '$exists' THEN pg_catalog.jsonb_typeof(operand) = 'boolean'
                WHEN operator IN ('$eq', '$ne') THEN pg_catalog.jsonb_typeof(operand) NOT IN ('object', 'array')
                ELSE pg_catalog.jsonb_typeof(operand) IN ('number', 'string') END) THEN
        RAISE EXCEPTION 'metadata %: % cannot take %', pg_catalog.quote_literal(key), operator, operand
          USING ERRCODE = 'HM004',
                HINT = '$in and $nin take a list of at most 1,000, $exists true or false, $gt, $gte, $lt and $lte a number or a text, $eq and $ne any single value.';
      END IF;
      options := coalesce((SELECT pg_catalog.string_agg('@ == ' || o.value::text, ' || ')
                           FROM pg_catalog.jsonb_path_query(operand, '$[*]') AS o(value)), '1 == 2');
      terms := terms || CASE operator
        WHEN '$eq' THEN pg_catalog.format('exists(%s ? (%s))', path, options)
        WHEN '$in' THEN pg_catalog.format('exists(%s ? (%s))', path, options)
        WHEN '$ne' THEN pg_catalog.format('!(exists(%s ? (%s)))', path, options)
        WHEN '$nin' THEN pg_catalog.format('!(exists(%s ? (%s)))', path, options)
        WHEN '$exists' THEN pg_catalog.format(CASE operand WHEN 'true' THEN 'exists(%s)' ELSE '!(exists(%s))' END, path)
        WHEN '$gt' THEN path || ' > ' || operand::text
        WHEN '$gte' THEN path || ' >= ' || operand::text
        WHEN '$lt' THEN path || ' < ' || operand::text
        ELSE path || ' <= ' || operand::text END;
    END LOOP;
  END LOOP;
  IF pg_catalog.jsonb_path_exists(
       plain, '$.*.** ? (@.type() == "object").keyvalue() ? (@.key like_regex "^\\$(eq|ne|gte?|lte?|in|nin|exists)$")') THEN
    RAISE EXCEPTION 'metadata compares keys of the object itself, not of what it holds: %', plain
      USING ERRCODE = 'HM004', HINT = 'Comparisons stand right under a key: {"year": {"$gte": 2020}}.';
  END IF;
  plain := nullif(plain, '{}');
  predicate := nullif(pg_catalog.array_to_string(terms, ' && '), '')::jsonpath;
END
$$;

-- _passes: the filters of recall, the same for every channel. A filter that is not given lets everything pass.
CREATE OR REPLACE FUNCTION hindsight._passes(
  type text, tags text[], said_at timestamptz, session_id text, entities text[], confidence double precision, metadata jsonb,
  filter hindsight._filter)
  RETURNS boolean
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN filter IS NULL OR ((filter.types IS NULL OR type = ANY (filter.types))
  AND (filter.tags IS NULL OR tags && filter.tags)
  AND (filter.all_tags IS NULL OR tags @> filter.all_tags)
  AND (filter.no_tags IS NULL OR NOT tags && filter.no_tags)
  AND (filter.since IS NULL OR said_at >= filter.since)
  AND (filter.until IS NULL OR said_at <= filter.until)
  AND (filter.session_id IS NULL OR session_id = filter.session_id)
  AND (filter.entities IS NULL OR entities && filter.entities)
  AND (filter.min_confidence IS NULL OR confidence >= filter.min_confidence)
  AND (filter.metadata IS NULL OR metadata @> filter.metadata)
  AND (filter.predicate IS NULL OR coalesce(metadata @@ filter.predicate, false)));

-- _is_identifier: user_id, v1.2.3, C++, /etc/hosts, err-7731, but not 1st, 6am, e.g., and/or.
CREATE OR REPLACE FUNCTION hindsight._is_identifier(language text, word text)
  RETURNS boolean
  LANGUAGE sql STABLE
RETURN word ~ '[a-z]' AND word ~ '[0-9_/@+#.$%&]|^-' AND word !~ '^[0-9]+[a-z]{1,3}$'
  AND (word ~ '[+#]$|^[-.$#@~]' OR NOT EXISTS (
    SELECT FROM pg_catalog.regexp_split_to_table(word, '[^a-z0-9]+') AS part
    WHERE part ~ '^[a-z]$' OR (part ~ '^[a-z]+$' AND pg_catalog.to_tsvector(language::regconfig, part) = '')));

-- _query_words: the words of a query, at most 64 (the most frequent in it, then the longest), each with the tsquery
-- that finds it. prefixes are those of one CJK character, which stand for every bigram that they begin. emphasis is what
-- a word's IDF counts: 20 for an identifier (user_id, v1.2.3, C++), since whoever asks for one wants the memory that holds it and
-- not one like it; 0 for an entity as a whole ("=new york"), which finds memories while its words make the score.
CREATE OR REPLACE FUNCTION hindsight._query_words(
  language text, query text,
  OUT words text[], OUT finders tsquery[], OUT prefixes text[], OUT emphasis double precision[], OUT entities text[])
  LANGUAGE plpgsql STABLE
AS $$
BEGIN
  SELECT coalesce(pg_catalog.array_agg(q.lexeme), '{}'),
         coalesce(pg_catalog.array_agg((hindsight._quoted_lexeme(q.lexeme) || CASE WHEN q.is_prefix THEN ':*' ELSE '' END)::tsquery), '{}'),
         coalesce(pg_catalog.array_agg(q.lexeme) FILTER (WHERE q.is_prefix), '{}'),
         pg_catalog.array_agg(CASE WHEN q.is_entity THEN 0.0 WHEN q.lexeme ~ '[^a-z]' AND hindsight._is_identifier(language, q.lexeme) THEN 20.0 ELSE 1.0 END),
         coalesce(pg_catalog.array_agg(q.lexeme) FILTER (WHERE q.is_entity), '{}')
    INTO words, finders, prefixes, emphasis, entities
  FROM (
    SELECT named.lexeme, false AS is_prefix, true AS is_entity
    FROM pg_catalog.unnest(hindsight._entity_lexemes_v1(hindsight.entities(query))) AS named(lexeme)
    UNION ALL (
    SELECT l.lexeme, pg_catalog.length(l.lexeme) = 1 AND pg_catalog.ascii(l.lexeme) >= 12293, false -- from 々 on
    FROM pg_catalog.unnest(hindsight.text_tsv_v1(language, query, whole => false)) AS l
    ORDER BY pg_catalog.cardinality(l.positions) DESC, pg_catalog.length(l.lexeme) DESC, l.lexeme
    LIMIT 64)
  ) AS q;
END
$$;

-- _asks: whether a query asks for anything: white space and none do not.
CREATE OR REPLACE FUNCTION hindsight._asks(query text)
  RETURNS boolean
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN coalesce(query, '') ~ '[^\s\u00a0\u3000]';

-- _check_recall: raises HM004 for an argument of recall that is out of its range.
CREATE OR REPLACE FUNCTION hindsight._check_recall(
  query text, top_k integer, types text[], metadata jsonb, min_confidence double precision, min_score double precision,
  hops integer, diversity double precision, as_of timestamptz, valid_at timestamptz, queries text[], embeddings vector[])
  RETURNS void
  LANGUAGE plpgsql STABLE
AS $$
DECLARE
  longest constant integer := CASE WHEN queries IS NULL THEN length(query)
                                   ELSE greatest(length(query), (SELECT max(length(q)) FROM unnest(queries) AS q)) END;
BEGIN
  IF top_k IS NULL OR top_k NOT BETWEEN 1 AND 1000 THEN
    RAISE EXCEPTION 'top_k must lie between 1 and 1000, got %', coalesce(top_k::text, 'NULL')
      USING ERRCODE = 'HM004', HINT = 'It is how many memories are returned at most: 10 by default.';
  ELSIF longest > 10000 THEN
    RAISE EXCEPTION 'the query has % characters, at most 10000 are taken', longest
      USING ERRCODE = 'HM004', HINT = 'Ask with the sentence that matters.';
  ELSIF hops NOT BETWEEN 0 AND 2 THEN
    RAISE EXCEPTION 'hops must be 0, 1 or 2, got %', hops
      USING ERRCODE = 'HM004', HINT = '1 follows links and neighbours in the session, 2 also links of what is linked, 0 none.';
  ELSIF diversity > 0 AND top_k > 50 THEN
    RAISE EXCEPTION 'diversity compares every result with every other: at most 50, top_k is %', top_k
      USING ERRCODE = 'HM004', HINT = 'Ask for fewer, or leave diversity out.';
  ELSIF cardinality(queries) > 8 OR cardinality(embeddings) > coalesce(cardinality(queries), 0) THEN
    RAISE EXCEPTION '% further queries with % embeddings', coalesce(cardinality(queries), 0), coalesce(cardinality(embeddings), 0)
      USING ERRCODE = 'HM004', HINT = 'At most 8 are asked at once, each with its own embedding or none.';
  END IF;
  PERFORM _check_unit('min_score', min_score), _check_unit('min_confidence', min_confidence), _check_unit('diversity', diversity),
          _check_object('metadata', metadata), _check_time('as_of', as_of), _check_time('valid_at', valid_at);
  IF types IS NOT NULL THEN
    PERFORM _check_type(t) FROM unnest(types) AS t;
  END IF;
END
$$;
