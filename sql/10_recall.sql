-- Recall: the best live memories of a bank for a query, scored and explained.

-- _believed_at: the memories that were believed at a moment, as they were then.
CREATE OR REPLACE FUNCTION hindsight._believed_at(of_bank bigint, at timestamptz)
  RETURNS TABLE (
    bank_id bigint, memory_id uuid, content text, type text, tags text[], entities text[], slot text, session_id text,
    source text, confidence double precision, metadata jsonb, occurred_at timestamptz, created_at timestamptz,
    confirmed_at timestamptz, changed_at timestamptz, expires_at timestamptz, pending_reason text, model_id integer,
    embedding halfvec, document tsvector)
  LANGUAGE sql STABLE
AS $$
  SELECT m.bank_id, m.memory_id, m.content, m.type, m.tags, m.entities, m.slot, m.session_id, m.source, m.confidence,
         m.metadata, m.occurred_at, m.created_at, m.confirmed_at, m.changed_at, m.expires_at, m.pending_reason, m.model_id,
         m.embedding, m.document
  FROM hindsight.memory AS m
  WHERE m.bank_id = of_bank AND m.changed_at <= at
    AND m.deleted_at IS NULL AND m.superseded_by IS NULL AND m.archived_at IS NULL
  UNION ALL
  SELECT v.bank_id, v.memory_id, v.content, v.type, v.tags, v.entities, v.slot, v.session_id, v.source, v.confidence,
         v.metadata, v.occurred_at, v.created_at, v.confirmed_at, v.changed_at, v.expires_at, v.pending_reason, v.model_id,
         v.embedding, v.document
  FROM hindsight.memory_version AS v
  WHERE v.bank_id = of_bank AND v.changed_at <= at AND at < v.believed_until
    AND v.deleted_at IS NULL AND v.superseded_by IS NULL AND v.archived_at IS NULL
$$;

-- _query_words: the words of a query, at most 64 (the most frequent in it, then the longest), each with the tsquery
-- that finds it. A CJK character that stands alone finds every bigram that it begins.
CREATE OR REPLACE FUNCTION hindsight._query_words(language text, query text)
  RETURNS TABLE (word text, is_prefix boolean, finder tsquery)
  LANGUAGE sql STABLE
AS $$
  SELECT q.lexeme, q.is_prefix,
         ('''' || pg_catalog.replace(pg_catalog.replace(q.lexeme, '\', '\\'), '''', '''''') || ''''
          || CASE WHEN q.is_prefix THEN ':*' ELSE '' END)::tsquery
  FROM (
    SELECT l.lexeme, pg_catalog.length(l.lexeme) = 1 AND pg_catalog.ascii(l.lexeme) >= 12293 AS is_prefix -- from 々 on
    FROM pg_catalog.unnest(hindsight.text_tsv_v1(language, query, whole => false)) AS l
    ORDER BY pg_catalog.cardinality(l.positions) DESC, pg_catalog.length(l.lexeme) DESC, l.lexeme
    LIMIT 64
  ) AS q
$$;

-- _exact_limit: how many live memories a bank may have to be scanned exactly. Beyond it the bank's share of the HNSW
-- index is large enough to fill a result: scanning costs the bank's rows, searching the rows of others on the way, and
-- the two meet near the square root of the table.
CREATE OR REPLACE FUNCTION hindsight._exact_limit()
  RETURNS bigint
  LANGUAGE sql STABLE
RETURN (SELECT greatest(1000, pg_catalog.sqrt(80 * greatest(c.reltuples, 0)))::bigint
        FROM pg_catalog.pg_class AS c WHERE c.oid = 'hindsight.memory'::regclass);

-- recall: the best live memories of a bank for a query, scored and explained.
-- Candidates come from each channel's index; one exact score is computed over their union:
--   score = similarity × confidence × exp(−λ · days) × weight, similarity = noisy-OR of semantic and lexical.
-- Without min_score a memory must be relevant: similarity from the model's recall threshold on (0.2 by words alone), or
-- at least half of the query's words by their IDF. An empty query lists what is known, the best kept first.
-- Filters: types; tags (any of), all_tags; since and until (when it was said, else stored); session_id; entities (any
-- of); metadata (contains). as_of answers from what was believed at that moment.
-- semantic is NULL where there is no embedding to compare. Stable: runs on a hot standby.
-- Raises HM001 (unknown bank), HM003 (no access), HM004 (bad argument), HM010, HM011, HM012 (embedding).
CREATE OR REPLACE FUNCTION hindsight.recall(
  bank text, query text DEFAULT '', embedding vector DEFAULT NULL, top_k integer DEFAULT 10, types text[] DEFAULT NULL,
  tags text[] DEFAULT NULL, all_tags text[] DEFAULT NULL, since timestamptz DEFAULT NULL, until timestamptz DEFAULT NULL,
  session_id text DEFAULT NULL, entities text[] DEFAULT NULL, metadata jsonb DEFAULT NULL,
  min_score double precision DEFAULT NULL, include_pending boolean DEFAULT false, as_of timestamptz DEFAULT NULL,
  model text DEFAULT NULL)
  RETURNS SETOF hindsight.recalled
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
  SET hnsw.iterative_scan = strict_order
  SET hnsw.ef_search = 64
  SET hnsw.max_scan_tuples = 40000
  SET plan_cache_mode = force_custom_plan
  SET jit = off
AS $$
#variable_conflict use_column
DECLARE
  opened constant hindsight.bank := _open_bank(bank, 'reader');
  at constant timestamptz := coalesce(recall.as_of, statement_timestamp());
  asks constant boolean := coalesce(recall.query, '') ~ '[^\s\u00a0\u3000]' OR recall.embedding IS NOT NULL;
  used embedding_model;
  vector_asked halfvec;
  is_large boolean;
  most constant integer := greatest(40, 2 * recall.top_k); -- candidates of each channel
  believed text;  -- the relation that is searched
  matching text;  -- the conditions on its rows
  channel text[] := '{}'; -- a query for each channel
  words text[] := '{}';
  prefixes text[] := '{}';
  finders tsquery[] := '{}';
  holding bigint[] := '{}';
  idf double precision[] := '{}';
  finder tsquery;
  documents double precision := opened.documents;
  average_length double precision := coalesce(opened.average_length, 1);
BEGIN
  IF recall.top_k IS NULL OR recall.top_k NOT BETWEEN 1 AND 1000 THEN
    RAISE EXCEPTION 'top_k must lie between 1 and 1000, got %', coalesce(recall.top_k::text, 'NULL') USING ERRCODE = 'HM004';
  END IF;
  IF length(recall.query) > 10000 THEN
    RAISE EXCEPTION 'the query has % characters, at most 10000 are taken', length(recall.query)
      USING ERRCODE = 'HM004', HINT = 'Ask with the sentence that matters.';
  END IF;
  PERFORM _check_unit('min_score', recall.min_score), _check_object('metadata', recall.metadata);
  PERFORM _check_type(t) FROM unnest(recall.types) AS t;
  IF recall.embedding IS NOT NULL AND opened.model_id IS NOT NULL THEN -- else there is nothing to compare it with
    used := _bank_model(opened, recall.model);
    vector_asked := _check_embedding(recall.embedding, used);
  END IF;

  is_large := recall.as_of IS NULL AND (
    opened.documents IS NOT NULL
    OR (SELECT count(*) FROM (SELECT FROM live_memory AS m WHERE m.bank_id = opened.bank_id LIMIT _exact_limit() + 1) AS r)
       > _exact_limit());
  believed := CASE WHEN recall.as_of IS NULL THEN 'live_memory' ELSE '_believed_at($1, $2)' END;
  matching := 'm.bank_id = $1 AND (m.expires_at IS NULL OR m.expires_at > $2)'
    || CASE WHEN recall.as_of IS NOT NULL AND NOT recall.include_pending THEN ' AND m.pending_reason IS NULL' ELSE '' END;

  -- Words and how rare each is: counted in small banks, looked up in large ones.
  IF asks AND recall.query <> '' THEN
    SELECT coalesce(array_agg(q.word ORDER BY q.word), '{}'), coalesce(array_agg(q.finder ORDER BY q.word), '{}'),
           coalesce(array_agg(q.word) FILTER (WHERE q.is_prefix), '{}')
      INTO words, finders, prefixes FROM _query_words(opened.language, recall.query) AS q;
    IF opened.documents IS NOT NULL AND recall.as_of IS NULL THEN
      SELECT array_agg(coalesce(
               CASE WHEN q.word = ANY (prefixes)
                 THEN (SELECT sum(s.documents) FROM word_statistics AS s
                       WHERE s.bank_id = opened.bank_id AND s.word >= q.word AND s.word < q.word || U&'\+10FFFF')
                 ELSE (SELECT s.documents FROM word_statistics AS s WHERE s.bank_id = opened.bank_id AND s.word = q.word)
               END, 0) ORDER BY q.place)
        INTO holding FROM unnest(words) WITH ORDINALITY AS q(word, place);
    ELSE
      EXECUTE format(
        'SELECT count(*), coalesce(avg(length(m.document)), 1),
                (SELECT array_agg((SELECT count(*) FROM %1$s AS m WHERE %2$s AND m.document @@ q.finder) ORDER BY q.place)
                 FROM unnest($3) WITH ORDINALITY AS q(finder, place))
         FROM %1$s AS m WHERE %2$s', believed, matching)
        INTO documents, average_length, holding USING opened.bank_id, at, finders;
    END IF;
    -- The channel's cost is its postings: in a large bank the rarest words go first, until a budget is spent.
    SELECT array_agg(_idf(documents, r.holding) ORDER BY r.place),
           string_agg(r.finder::text, ' | ') FILTER (
             WHERE NOT is_large OR r.running <= 500 OR (r.rarest AND (r.holding <= 5000 OR vector_asked IS NULL)))::tsquery
      INTO idf, finder
      FROM (SELECT q.*, sum(q.holding) OVER rarity AS running, row_number() OVER rarity = 1 AS rarest
            FROM unnest(holding, finders) WITH ORDINALITY AS q(holding, finder, place)
            WINDOW rarity AS (ORDER BY q.holding, q.place)) AS r;
  END IF;

  matching := matching || concat(
    CASE WHEN recall.types IS NOT NULL THEN ' AND m.type = ANY ($4)' END,
    CASE WHEN recall.tags IS NOT NULL THEN ' AND m.tags && $5' END,
    CASE WHEN recall.all_tags IS NOT NULL THEN ' AND m.tags @> $6' END,
    CASE WHEN recall.since IS NOT NULL THEN ' AND coalesce(m.occurred_at, m.created_at) >= $7' END,
    CASE WHEN recall.until IS NOT NULL THEN ' AND coalesce(m.occurred_at, m.created_at) <= $8' END,
    CASE WHEN recall.session_id IS NOT NULL THEN ' AND m.session_id = $9' END,
    CASE WHEN recall.entities IS NOT NULL THEN ' AND m.entities && $10' END,
    CASE WHEN recall.metadata IS NOT NULL THEN ' AND m.metadata @> $11' END);
  IF vector_asked IS NOT NULL THEN
    -- Typed, the expression is the one of the model's HNSW index; untyped, it is no index's, and the scan is exact.
    channel := channel || format(
      '(SELECT m.memory_id, ''vector'' FROM %s AS m WHERE %s AND m.model_id = %s ORDER BY %s LIMIT %s)',
      believed, matching, used.model_id,
      CASE WHEN is_large THEN format('m.embedding::halfvec(%1$s) <=> $12::halfvec(%1$s)', used.dimensions)
           ELSE 'm.embedding <=> $12' END, most);
  END IF;
  IF finder IS NOT NULL THEN
    channel := channel || format(
      '(SELECT m.memory_id, ''text'' FROM %s AS m WHERE %s AND m.document @@ $3
        ORDER BY (SELECT sum(q.idf) FROM unnest($13, $14) AS q(finder, idf) WHERE m.document @@ q.finder) DESC, m.confirmed_at DESC
        LIMIT %s)', believed, matching, most);
  END IF;
  IF NOT asks THEN
    channel := channel || format(
      '(SELECT m.memory_id, ''recency'' FROM %s AS m WHERE %s ORDER BY m.confirmed_at DESC LIMIT %s)', believed, matching, most);
  END IF;
  IF recall.include_pending AND recall.as_of IS NULL THEN
    channel := channel || format(
      '(SELECT m.memory_id, ''pending'' FROM memory AS m WHERE %s AND m.pending_reason IS NOT NULL AND m.deleted_at IS NULL
          AND m.superseded_by IS NULL AND m.archived_at IS NULL ORDER BY m.changed_at DESC LIMIT 200)', matching);
  END IF;
  IF channel = '{}' THEN
    RETURN; -- nothing but stop words was asked
  END IF;

  RETURN QUERY EXECUTE format($query$
    WITH candidate AS (
      SELECT c.memory_id, array_agg(DISTINCT c.channel) AS channels FROM (%s) AS c(memory_id, channel) GROUP BY c.memory_id
    ),
    part AS (
      SELECT m.*, c.channels, match.coverage,
             CASE WHEN m.model_id = $15 THEN semantic(1 - (m.embedding <=> $12), $16) END AS semantic,
             CASE WHEN $19 THEN lexical(match.bm25) ELSE 1 END AS lexical,
             decay(extract(epoch FROM $2 - m.confirmed_at)::float8 / 86400,
                   coalesce(b.decay_rate, t.decay_rate, $20)) AS decay,
             coalesce(b.weight, t.weight) AS weight
      FROM candidate AS c
      JOIN %s AS m ON m.bank_id = $1 AND m.memory_id = c.memory_id
      CROSS JOIN LATERAL _match(m.document, $17, $14, $18, $21) AS match
      JOIN memory_type AS t ON t.type = m.type
      LEFT JOIN bank_type AS b ON b.bank_id = $1 AND b.type = m.type
    ),
    scored AS (
      SELECT p.*, s.similarity, s.similarity * p.confidence * p.decay * p.weight AS score
      FROM part AS p CROSS JOIN LATERAL (SELECT similarity(p.semantic, p.lexical)) AS s(similarity)
    )
    SELECT s.memory_id, s.content, s.type, s.score, s.similarity, s.semantic, s.lexical, s.confidence, s.decay, s.weight,
           s.channels, s.tags, s.entities, s.slot, s.session_id, s.source, s.metadata, s.occurred_at, s.created_at,
           s.confirmed_at, s.pending_reason
    FROM scored AS s
    WHERE CASE WHEN $22 IS NOT NULL THEN s.score >= $22
               ELSE s.coverage >= 0.5 OR s.similarity >= CASE WHEN s.semantic IS NULL THEN 0.2 ELSE $23 END END
    ORDER BY s.score DESC, s.confirmed_at DESC, s.memory_id
    LIMIT $24
    $query$, array_to_string(channel, ' UNION ALL '), CASE WHEN recall.as_of IS NULL THEN 'memory' ELSE believed END)
    USING opened.bank_id, at, finder, recall.types, recall.tags, recall.all_tags, recall.since, recall.until,
          recall.session_id, recall.entities, recall.metadata, vector_asked, finders, idf, used.model_id, used.floor,
          words, prefixes, asks, opened.decay_rate, average_length, recall.min_score,
          semantic(used.recall_threshold, used.floor), recall.top_k;
END
$$;
COMMENT ON FUNCTION hindsight.recall(text, text, vector, integer, text[], text[], text[], timestamptz, timestamptz, text, text[],
    jsonb, double precision, boolean, timestamptz, text) IS
  'The best live memories of a bank for a query, each with its score and the parts and channels that made it.';

-- maintain: keeps a bank quick: counts the words of a large bank, so that recall need not. Returns what it did.
-- Raises HM001, HM003.
CREATE OR REPLACE FUNCTION hindsight.maintain(bank text)
  RETURNS TABLE (task text, affected bigint)
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
AS $$
#variable_conflict use_column
DECLARE
  opened constant hindsight.bank := _open_bank(bank, 'writer');
  counted integer;
  mean_length double precision;
BEGIN
  task := 'words counted';
  affected := 0;
  IF pg_try_advisory_xact_lock(hashtextextended('hindsight.maintain', opened.bank_id)) THEN -- another one is at it
    SELECT count(*), avg(length(m.document)) INTO counted, mean_length FROM live_memory AS m WHERE m.bank_id = opened.bank_id;
    DELETE FROM word_statistics AS s WHERE s.bank_id = opened.bank_id;
    IF counted > _exact_limit() THEN
      INSERT INTO word_statistics (bank_id, word, documents)
        SELECT opened.bank_id, s.word, s.ndoc
        FROM ts_stat(format('SELECT document FROM hindsight.live_memory WHERE bank_id = %s', opened.bank_id)) AS s;
      GET DIAGNOSTICS affected = ROW_COUNT;
      UPDATE bank AS b SET documents = counted, average_length = mean_length WHERE b.bank_id = opened.bank_id;
    ELSE
      UPDATE bank AS b SET documents = NULL, average_length = NULL WHERE b.bank_id = opened.bank_id AND b.documents IS NOT NULL;
    END IF;
  END IF;
  RETURN NEXT;
END
$$;
COMMENT ON FUNCTION hindsight.maintain(text) IS 'Keeps a bank quick: counts the words of a large bank. Returns what it did.';
