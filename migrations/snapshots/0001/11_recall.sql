-- Recall: the best live memories of a bank for a query, scored and explained.

-- recall: candidates come from each channel's index (10_candidate.sql); one exact score is computed over their union:
--   score = similarity × confidence × exp(−λ · days) × weight, similarity = noisy-OR of semantic and lexical.
-- Without min_score a memory must be relevant: similarity from the model's recall threshold on (0.2 by words alone), or
-- at least half of the query's words by their IDF. An empty query lists what is known, the best kept first.
-- Filters: types; tags (any of), all_tags; since and until (when it was said, else stored); session_id; entities (any
-- of); metadata (contains). as_of answers from what was believed at that moment.
-- semantic is NULL where there is no embedding to compare. Stable: runs on a hot standby.
-- Raises HM001 (unknown bank), HM003 (no access), HM004 (bad argument), HM010, HM011 (embedding).
CREATE OR REPLACE FUNCTION hindsight.recall(
  bank text, query text DEFAULT '', embedding vector DEFAULT NULL, top_k integer DEFAULT 10, types text[] DEFAULT NULL,
  tags text[] DEFAULT NULL, all_tags text[] DEFAULT NULL, since timestamptz DEFAULT NULL, until timestamptz DEFAULT NULL,
  session_id text DEFAULT NULL, entities text[] DEFAULT NULL, metadata jsonb DEFAULT NULL,
  min_score double precision DEFAULT NULL, include_pending boolean DEFAULT false, as_of timestamptz DEFAULT NULL,
  model text DEFAULT NULL)
  RETURNS SETOF hindsight.recalled
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
  SET enable_seqscan = off
  SET plan_cache_mode = force_generic_plan
  SET hnsw.iterative_scan = strict_order
  SET hnsw.ef_search = 64
  SET hnsw.max_scan_tuples = 40000
  SET jit = off
AS $$
#variable_conflict use_column
DECLARE
  opened constant hindsight.bank := _open_bank(bank, 'reader');
  at constant timestamptz := coalesce(recall.as_of, statement_timestamp());
  filter constant _filter := (recall.types, recall.tags, recall.all_tags, recall.since, recall.until, recall.session_id,
                              recall.entities, recall.metadata);
  asks_words constant boolean := coalesce(recall.query, '') ~ '[^\s\u00a0\u3000]';
  most constant integer := greatest(40, 2 * recall.top_k); -- candidates of each channel
  pending constant boolean := coalesce(recall.include_pending, false);
  used embedding_model;
  asked halfvec;
  is_large boolean;
  documents double precision := opened.documents;
  average_length double precision := opened.average_length;
  words text[] := '{}';
  finders tsquery[];
  prefixes text[] := '{}';
  emphasis double precision[];
  finder tsquery;
  idf double precision[] := '{}';
  by_words uuid[];
  by_meaning uuid[];
  by_recency uuid[];
  by_review uuid[];
  exact_digest bytea;
BEGIN
  IF recall.top_k IS NULL OR recall.top_k NOT BETWEEN 1 AND 1000 THEN
    RAISE EXCEPTION 'top_k must lie between 1 and 1000, got %', coalesce(recall.top_k::text, 'NULL') USING ERRCODE = 'HM004';
  END IF;
  IF length(recall.query) > 10000 THEN
    RAISE EXCEPTION 'the query has % characters, at most 10000 are taken', length(recall.query)
      USING ERRCODE = 'HM004', HINT = 'Ask with the sentence that matters.';
  END IF;
  PERFORM _check_unit('min_score', recall.min_score), _check_object('metadata', recall.metadata),
          _check_time('as_of', recall.as_of);
  IF recall.types IS NOT NULL THEN
    PERFORM _check_type(t) FROM unnest(recall.types) AS t;
  END IF;
  IF recall.embedding IS NOT NULL AND opened.model_id IS NOT NULL THEN -- else there is nothing to compare it with
    used := _bank_model(opened, recall.model);
    asked := _check_embedding(recall.embedding, used);
  END IF;

  is_large := documents IS NOT NULL AND recall.as_of IS NULL; -- the past is scanned: indexes hold what is live
  IF NOT is_large THEN
    SELECT count(*), coalesce(avg(length(m.document)), 1) INTO documents, average_length
      FROM (SELECT v.document FROM _visible(opened.bank_id, at, recall.as_of, pending) AS v
            LIMIT CASE WHEN recall.as_of IS NULL THEN _exact_limit() + 1 END) AS m;
    is_large := documents > _exact_limit() AND recall.as_of IS NULL;
  END IF;

  IF asks_words THEN
    SELECT q.words, q.finders, q.prefixes, q.emphasis INTO words, finders, prefixes, emphasis
      FROM _query_words(opened.language, recall.query) AS q;
    finder := array_to_string(finders, ' | ')::tsquery;
  END IF;
  IF words <> '{}' AND is_large THEN
    SELECT s.idf, s.ids INTO idf, by_words
      FROM _search_by_words(opened, at, filter, most, words, finders, prefixes, emphasis, must_find => asked IS NULL) AS s;
  ELSIF words <> '{}' THEN
    SELECT s.idf, s.ids INTO idf, by_words
      FROM _rank_by_words(opened.bank_id, at, recall.as_of, pending, filter, most, documents, finders, emphasis, finder) AS s;
  END IF;
  IF asked IS NOT NULL AND is_large THEN
    by_meaning := _search_by_meaning(opened.bank_id, at, filter, most, asked, used);
  ELSIF asked IS NOT NULL THEN
    by_meaning := _scan_by_meaning(opened.bank_id, at, recall.as_of, pending, filter, most, asked, used.model_id);
  ELSIF NOT asks_words THEN
    by_recency := _newest(opened.bank_id, at, recall.as_of, pending, filter, most);
  END IF;
  IF asks_words THEN -- the exact text of a memory finds it, whatever words and vectors say
    exact_digest := content_digest_v1(recall.query);
    SELECT by_words || array_agg(m.memory_id) INTO by_words
      FROM _visible(opened.bank_id, at, recall.as_of, pending) AS m
      WHERE m.digest = exact_digest
        AND _passes(m.type, m.tags, coalesce(m.occurred_at, m.created_at), m.session_id, m.entities, m.metadata, filter);
  END IF;
  IF is_large AND pending THEN
    by_review := _pending(opened.bank_id, at, filter);
  END IF;

  RETURN QUERY
    WITH part AS MATERIALIZED ( -- once: inlined, each expression would be computed for every use of it
      SELECT m.*, match.coverage,
             CASE WHEN m.model_id = used.model_id THEN semantic(1 - (m.embedding <=> asked), used.floor) END AS semantic,
             CASE WHEN m.digest = exact_digest OR NOT (asks_words OR asked IS NOT NULL) THEN 1
                  ELSE lexical(match.bm25) END AS lexical,
             decay(extract(epoch FROM at - m.confirmed_at)::double precision / 86400,
                   coalesce(b.decay_rate, t.decay_rate, opened.decay_rate)) AS decay,
             coalesce(b.weight, t.weight) AS weight
      FROM _visible(opened.bank_id, at, recall.as_of, pending) AS m
      CROSS JOIN LATERAL _match(m.document, finder, words, idf, prefixes, average_length) AS match
      JOIN memory_type AS t ON t.type = m.type
      LEFT JOIN bank_type AS b ON b.bank_id = opened.bank_id AND b.type = m.type
      WHERE m.memory_id = ANY (by_meaning || by_words || by_recency || by_review)
    ),
    scored AS MATERIALIZED (
      SELECT p.*, s.similarity, _product(s.similarity, p.confidence, p.decay, p.weight) AS score
      FROM part AS p CROSS JOIN LATERAL (SELECT similarity(p.semantic, p.lexical)) AS s(similarity)
    )
    SELECT s.memory_id, s.content, s.type, s.score, s.similarity, s.semantic, s.lexical, s.confidence, s.decay, s.weight,
           array_remove(ARRAY[CASE WHEN s.memory_id = ANY (by_meaning) THEN 'vector' END,
                              CASE WHEN s.memory_id = ANY (by_words) THEN 'text' END,
                              CASE WHEN s.memory_id = ANY (by_recency) THEN 'recency' END,
                              CASE WHEN s.memory_id = ANY (by_review) THEN 'pending' END], NULL),
           s.tags, s.entities, s.slot, s.session_id, s.source, s.metadata, s.occurred_at, s.created_at, s.confirmed_at,
           s.pending_reason
    FROM scored AS s
    WHERE CASE WHEN recall.min_score IS NOT NULL THEN s.score >= recall.min_score
               ELSE s.coverage >= 0.5
                 OR s.similarity >= CASE WHEN s.semantic IS NULL THEN 0.2
                                         ELSE semantic(used.recall_threshold, used.floor) END END
    ORDER BY s.score DESC, s.confirmed_at DESC, s.memory_id
    LIMIT recall.top_k;
END
$$;
COMMENT ON FUNCTION hindsight.recall(text, text, vector, integer, text[], text[], text[], timestamptz, timestamptz, text, text[],
    jsonb, double precision, boolean, timestamptz, text) IS
  'The best live memories of a bank for a query, each with its score and the parts and channels that made it.';
