-- Candidates: what each channel's index offers for a query. Scores are computed over their union, in recall.

-- _exact_limit: how many live memories a bank may have to be scanned exactly. Beyond it the bank's share of the HNSW
-- index is large enough to fill a result: scanning costs the bank's rows, searching costs the rows of others on the
-- way, and the two meet near the square root of the table.
CREATE OR REPLACE FUNCTION hindsight._exact_limit()
  RETURNS bigint
  LANGUAGE sql STABLE
RETURN (SELECT greatest(1000, pg_catalog.sqrt(80 * greatest(c.reltuples, 0)))::bigint
        FROM pg_catalog.pg_class AS c WHERE c.oid = 'hindsight.memory'::regclass);

-- _visible: the memories of a bank that recall may see: those that are live now, or (as_of) were believed then, as
-- they were then; with include_pending also those that are not believed yet. Inlined into the query that reads it.
CREATE OR REPLACE FUNCTION hindsight._visible(of_bank bigint, at timestamptz, as_of timestamptz, include_pending boolean)
  RETURNS TABLE (
    memory_id uuid, content text, type text, tags text[], entities text[], slot text, session_id text, source text,
    confidence double precision, metadata jsonb, occurred_at timestamptz, created_at timestamptz,
    confirmed_at timestamptz, pending_reason text, model_id integer, embedding halfvec, document tsvector, digest bytea)
  LANGUAGE sql STABLE
AS $$
  SELECT m.memory_id, m.content, m.type, m.tags, m.entities, m.slot, m.session_id, m.source, m.confidence, m.metadata,
         m.occurred_at, m.created_at, m.confirmed_at, m.pending_reason, m.model_id, m.embedding, m.document, m.digest
  FROM hindsight.live_memory AS m
  WHERE m.bank_id = of_bank AND (m.expires_at IS NULL OR m.expires_at > at) AND m.changed_at <= coalesce(as_of, m.changed_at)
  UNION ALL
  SELECT m.memory_id, m.content, m.type, m.tags, m.entities, m.slot, m.session_id, m.source, m.confidence, m.metadata,
         m.occurred_at, m.created_at, m.confirmed_at, m.pending_reason, m.model_id, m.embedding, m.document, m.digest
  FROM hindsight.current_memory AS m
  WHERE include_pending AND m.bank_id = of_bank AND (m.expires_at IS NULL OR m.expires_at > at)
    AND m.changed_at <= coalesce(as_of, m.changed_at)
    AND m.pending_reason IS NOT NULL
  UNION ALL
  SELECT v.memory_id, v.content, v.type, v.tags, v.entities, v.slot, v.session_id, v.source, v.confidence, v.metadata,
         v.occurred_at, v.created_at, v.confirmed_at, v.pending_reason, v.model_id, v.embedding, v.document, v.digest
  FROM hindsight.memory_version AS v
  WHERE as_of IS NOT NULL AND v.bank_id = of_bank AND (v.expires_at IS NULL OR v.expires_at > at)
    AND v.changed_at <= as_of AND as_of < v.believed_until
    AND v.deleted_at IS NULL AND v.superseded_by IS NULL AND v.archived_at IS NULL
    AND (v.pending_reason IS NULL OR include_pending)
$$;

-- _passes: the filters of recall, the same for every channel. A filter that is not given lets everything pass.
CREATE OR REPLACE FUNCTION hindsight._passes(
  type text, tags text[], said_at timestamptz, session_id text, entities text[], metadata jsonb, filter hindsight._filter)
  RETURNS boolean
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (filter.types IS NULL OR type = ANY (filter.types))
  AND (filter.tags IS NULL OR tags && filter.tags)
  AND (filter.all_tags IS NULL OR tags @> filter.all_tags)
  AND (filter.since IS NULL OR said_at >= filter.since)
  AND (filter.until IS NULL OR said_at <= filter.until)
  AND (filter.session_id IS NULL OR session_id = filter.session_id)
  AND (filter.entities IS NULL OR entities && filter.entities)
  AND (filter.metadata IS NULL OR metadata @> filter.metadata);

-- _is_identifier: user_id, v1.2.3, C++, /etc/hosts, err-7731, but not 1st, 6am, e.g., and/or.
CREATE OR REPLACE FUNCTION hindsight._is_identifier(language text, word text)
  RETURNS boolean
  LANGUAGE sql STABLE
RETURN word ~ '[a-z]' AND word ~ '[0-9_/@+#.$%&]|^-' AND word !~ '^[0-9]+[a-z]{1,3}$'
  AND (word ~ '[+#]$|^[-.$#@~]' OR NOT EXISTS (
    SELECT FROM pg_catalog.regexp_split_to_table(word, '[^a-z0-9]+') AS part
    WHERE part ~ '^[a-z]$' OR (part ~ '^[a-z]+$' AND pg_catalog.to_tsvector(language::regconfig, part) = '')));

-- _query_words: the words of a query, at most 64 (the most frequent in it, then the longest), each with the tsquery
-- that finds it. prefixes are those of one CJK character, which stand for every bigram that they begin. An identifier
-- (user_id, v1.2.3, C++) has an emphasis of 20: whoever asks for one wants the memory that holds it, not one like it.
CREATE OR REPLACE FUNCTION hindsight._query_words(
  language text, query text,
  OUT words text[], OUT finders tsquery[], OUT prefixes text[], OUT emphasis double precision[])
  LANGUAGE sql STABLE
AS $$
  SELECT coalesce(pg_catalog.array_agg(q.lexeme), '{}'),
         coalesce(pg_catalog.array_agg((
           '''' || pg_catalog.replace(pg_catalog.replace(q.lexeme, '\', '\\'), '''', '''''') || ''''
           || CASE WHEN q.is_prefix THEN ':*' ELSE '' END)::tsquery), '{}'),
         coalesce(pg_catalog.array_agg(q.lexeme) FILTER (WHERE q.is_prefix), '{}'),
         pg_catalog.array_agg(CASE WHEN hindsight._is_identifier(language, q.lexeme) THEN 20.0 ELSE 1.0 END)
  FROM (
    SELECT l.lexeme, pg_catalog.length(l.lexeme) = 1 AND pg_catalog.ascii(l.lexeme) >= 12293 AS is_prefix -- from 々 on
    FROM pg_catalog.unnest(hindsight.text_tsv_v1(language, query, whole => false)) AS l
    ORDER BY pg_catalog.cardinality(l.positions) DESC, pg_catalog.length(l.lexeme) DESC, l.lexeme
    LIMIT 64
  ) AS q
$$;

-- _rank_by_words: of a small bank (or a past one): every word's IDF, counted, and the memories that hold the rarest.
CREATE OR REPLACE FUNCTION hindsight._rank_by_words(
  of_bank bigint, at timestamptz, as_of timestamptz, include_pending boolean, filter hindsight._filter, most integer,
  documents double precision, finders tsquery[], emphasis double precision[], finder tsquery, OUT idf double precision[], OUT ids uuid[])
  LANGUAGE plpgsql STABLE
AS $$
BEGIN
  WITH holder AS MATERIALIZED (
    -- The concatenation takes a long document out of TOAST once, not once for each word.
    SELECT m.memory_id, m.type, m.tags, m.occurred_at, m.created_at, m.session_id, m.entities, m.metadata, m.confirmed_at,
           m.document OPERATOR(pg_catalog.||) ''::tsvector AS document
    FROM hindsight._visible(of_bank, at, as_of, include_pending) AS m
    WHERE pg_catalog.ts_match_vq(m.document, finder) -- not @@: the bank's rows are fewer than the postings of all banks
  ),
  word AS MATERIALIZED (
    SELECT q.place, q.finder,
           hindsight._idf(documents, (SELECT count(*) FROM holder AS h WHERE h.document @@ q.finder)) * q.emphasis AS idf
    FROM ROWS FROM (pg_catalog.unnest(finders), pg_catalog.unnest(emphasis)) WITH ORDINALITY AS q(finder, emphasis, place)
  ),
  best AS (
    SELECT h.memory_id
    FROM holder AS h
    WHERE hindsight._passes(h.type, h.tags, coalesce(h.occurred_at, h.created_at), h.session_id, h.entities, h.metadata, filter)
    ORDER BY (SELECT sum(w.idf) FROM word AS w WHERE h.document @@ w.finder) DESC, h.confirmed_at DESC
    LIMIT most
  )
  SELECT (SELECT pg_catalog.array_agg(w.idf ORDER BY w.place) FROM word AS w),
         (SELECT pg_catalog.array_agg(b.memory_id) FROM best AS b)
    INTO idf, ids;
END
$$;

-- _search_by_words: of a large bank: IDFs from the bank's statistics, and the memories that hold the rarest words.
-- The channel's cost is its postings, so the rarest words are searched until a budget is spent; the others still
-- count in the score of every candidate. A statement of its own, planned for its values: GIN over (bank, words).
CREATE OR REPLACE FUNCTION hindsight._search_by_words(
  opened hindsight.bank, at timestamptz, filter hindsight._filter, most integer, words text[], finders tsquery[],
  prefixes text[], emphasis double precision[], must_find boolean, OUT idf double precision[], OUT ids uuid[])
  LANGUAGE plpgsql STABLE
AS $$
DECLARE
  budget constant integer := 500;
  holding bigint[];
  counted bigint;
  finder tsquery;
  rarity text; -- an expression: the IDF of the words that a row holds
BEGIN
  IF opened.documents IS NULL THEN -- never counted (maintain): the index counts, which common words make slow
    EXECUTE 'SELECT array_agg((SELECT count(*) FROM hindsight.live_memory AS m WHERE m.bank_id = $1 AND m.document @@ q.finder)
                              ORDER BY q.place) FROM unnest($2) WITH ORDINALITY AS q(finder, place)'
      INTO holding USING opened.bank_id, finders;
    SELECT count(*) INTO counted FROM hindsight.live_memory AS m WHERE m.bank_id = opened.bank_id;
  ELSE
    SELECT pg_catalog.array_agg(coalesce(
             CASE WHEN q.word = ANY (prefixes)
               THEN (SELECT sum(s.documents) FROM hindsight.word_statistics AS s
                     WHERE s.bank_id = opened.bank_id AND s.word >= q.word AND s.word < q.word || U&'\+10FFFF')
               ELSE (SELECT s.documents FROM hindsight.word_statistics AS s
                     WHERE s.bank_id = opened.bank_id AND s.word = q.word)
             END, 1) ORDER BY q.place)
      INTO holding FROM pg_catalog.unnest(words) WITH ORDINALITY AS q(word, place);
  END IF;
  SELECT pg_catalog.array_agg(hindsight._idf(coalesce(opened.documents, counted), r.holding) * emphasis[r.place]
                              ORDER BY r.place),
         pg_catalog.string_agg(r.finder::text, ' | ') FILTER (
           WHERE r.running <= budget OR (r.rarest AND (r.holding <= 10 * budget OR must_find)))::tsquery
    INTO idf, finder
    FROM (SELECT q.*, sum(q.holding) OVER rarity AS running, pg_catalog.row_number() OVER rarity = 1 AS rarest
          FROM ROWS FROM (pg_catalog.unnest(holding), pg_catalog.unnest(finders)) WITH ORDINALITY AS q(holding, finder, place)
          WINDOW rarity AS (ORDER BY q.holding, q.place)) AS r;
  IF finder IS NOT NULL THEN
    SELECT pg_catalog.string_agg(pg_catalog.format('CASE WHEN m.document @@ ($5)[%1$s] THEN ($6)[%1$s] ELSE 0 END', place), ' + ')
      INTO rarity FROM pg_catalog.generate_series(1, pg_catalog.cardinality(finders)) AS place;
    EXECUTE pg_catalog.format('SELECT array_agg(b.memory_id) FROM (
        SELECT m.memory_id FROM hindsight.live_memory AS m
        WHERE m.bank_id = $1 AND (m.expires_at IS NULL OR m.expires_at > $2) AND m.document @@ $3
          AND hindsight._passes(m.type, m.tags, coalesce(m.occurred_at, m.created_at), m.session_id, m.entities, m.metadata, $4)
        ORDER BY %s DESC, m.confirmed_at DESC
        LIMIT $7) AS b', rarity)
      INTO ids USING opened.bank_id, at, finder, filter, finders, idf, most;
  END IF;
END
$$;

-- _search_by_meaning: of a large bank: the nearest by HNSW. The expression and the two numbers are those of the
-- model's index. Where the filters leave too few on the way, the bank is scanned.
CREATE OR REPLACE FUNCTION hindsight._search_by_meaning(
  of_bank bigint, at timestamptz, filter hindsight._filter, most integer, asked halfvec, model hindsight.embedding_model)
  RETURNS uuid[]
  LANGUAGE plpgsql STABLE
AS $$
DECLARE
  ids uuid[];
BEGIN
  EXECUTE pg_catalog.format(
    'SELECT array_agg(b.memory_id) FROM (
       SELECT m.memory_id FROM hindsight.live_memory AS m
       WHERE m.model_id = %1$s AND m.bank_id = $1 AND (m.expires_at IS NULL OR m.expires_at > $2)
         AND hindsight._passes(m.type, m.tags, coalesce(m.occurred_at, m.created_at), m.session_id, m.entities, m.metadata, $3)
       ORDER BY m.embedding::halfvec(%2$s) <=> $4::halfvec(%2$s)
       LIMIT $5) AS b', model.model_id, model.dimensions)
    INTO ids USING of_bank, at, filter, asked, most;
  IF pg_catalog.cardinality(coalesce(ids, '{}')) < most THEN
    ids := hindsight._scan_by_meaning(of_bank, at, NULL, false, filter, most, asked, model.model_id);
  END IF;
  RETURN ids;
END
$$;

-- _scan_by_meaning: of a small bank (or a past one): the nearest, exactly. Untyped, the distance is no index's.
CREATE OR REPLACE FUNCTION hindsight._scan_by_meaning(
  of_bank bigint, at timestamptz, as_of timestamptz, include_pending boolean, filter hindsight._filter, most integer,
  asked halfvec, of_model integer)
  RETURNS uuid[]
  LANGUAGE plpgsql STABLE
AS $$
BEGIN
  RETURN (
    SELECT pg_catalog.array_agg(b.memory_id)
    FROM (SELECT m.memory_id
          FROM hindsight._visible(of_bank, at, as_of, include_pending) AS m
          WHERE m.model_id = of_model
            AND hindsight._passes(m.type, m.tags, coalesce(m.occurred_at, m.created_at), m.session_id, m.entities, m.metadata, filter)
          ORDER BY m.embedding <=> asked
          LIMIT most) AS b);
END
$$;

-- _pending: what waits for confirmation in a large bank, whose indexes hold what is live; in a small one it is scanned.
CREATE OR REPLACE FUNCTION hindsight._pending(of_bank bigint, at timestamptz, filter hindsight._filter)
  RETURNS uuid[]
  LANGUAGE plpgsql STABLE
AS $$
BEGIN
  RETURN (
    SELECT pg_catalog.array_agg(p.memory_id)
    FROM (SELECT m.memory_id
          FROM hindsight.current_memory AS m
          WHERE m.bank_id = of_bank AND (m.expires_at IS NULL OR m.expires_at > at) AND m.pending_reason IS NOT NULL
            AND hindsight._passes(m.type, m.tags, coalesce(m.occurred_at, m.created_at), m.session_id, m.entities, m.metadata, filter)
          ORDER BY m.changed_at DESC
          LIMIT 200) AS p);
END
$$;

-- _newest: the memories of a bank that were confirmed last.
CREATE OR REPLACE FUNCTION hindsight._newest(
  of_bank bigint, at timestamptz, as_of timestamptz, include_pending boolean, filter hindsight._filter, most integer)
  RETURNS uuid[]
  LANGUAGE plpgsql STABLE
AS $$
BEGIN
  RETURN (
    SELECT pg_catalog.array_agg(b.memory_id)
    FROM (SELECT m.memory_id
          FROM hindsight._visible(of_bank, at, as_of, include_pending) AS m
          WHERE hindsight._passes(m.type, m.tags, coalesce(m.occurred_at, m.created_at), m.session_id, m.entities, m.metadata, filter)
          ORDER BY m.confirmed_at DESC
          LIMIT most) AS b);
END
$$;
