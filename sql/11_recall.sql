-- Recall: the best live memories of a bank for a query, scored and explained.

-- recall: candidates come from each channel's index (10_candidate.sql); one exact score is computed over their union:
--   score = similarity × confidence × exp(−λ · days) × weight, similarity = noisy-OR of semantic, lexical and activation.
-- Without min_score a memory must be relevant of its own: semantic from the model's recall threshold on, or from three quarters
-- of it on with words in common (lexical from 0.15 on); where there is no vector, similarity from 0.2 on; or at least half
-- of the query's words by their IDF; or linked with one that is. Words alone would lift what is unrelated over any threshold.
-- An empty query lists what is known, the best kept first.
-- Filters: types; tags (any of), all_tags, no_tags; since and until (when it was said, else stored); session_id; entities (any
-- of); metadata (contains, or compares: _metadata_filter); min_confidence. as_of answers from what was believed at that moment,
-- valid_at from what was true then, as it is known now: the values that another has followed since as well.
-- hops: 1 follows links and neighbours in the session, 2 links of what is linked as well, 0 none. What a link brings up is relevant
-- as far as the memory is that it comes from, and is worth what its own confidence is: links carry no trust. diversity: 0 takes the best; up to 1 passes over what
-- resembles better results (maximal marginal relevance, Carbonell and Goldstein 1998). queries, each with its embedding in
-- embeddings: asked as well, and a memory counts by the query that it answers best.
-- Of the eight best, what more trusted ones or the majority of the others contradict is disputed_by those, and weighs half.
-- semantic is NULL where there is no embedding to compare. Stable: runs on a hot standby.
-- Raises HM001 (unknown bank), HM003 (no access), HM004 (bad argument), HM010, HM011 (embedding).
CREATE OR REPLACE FUNCTION hindsight.recall(
  bank text, query text DEFAULT '', embedding vector DEFAULT NULL, top_k integer DEFAULT 10, types text[] DEFAULT NULL,
  tags text[] DEFAULT NULL, all_tags text[] DEFAULT NULL, no_tags text[] DEFAULT NULL, since timestamptz DEFAULT NULL,
  until timestamptz DEFAULT NULL, session_id text DEFAULT NULL, entities text[] DEFAULT NULL, metadata jsonb DEFAULT NULL,
  min_confidence double precision DEFAULT NULL, min_score double precision DEFAULT NULL, hops integer DEFAULT 1,
  diversity double precision DEFAULT 0, include_pending boolean DEFAULT false, as_of timestamptz DEFAULT NULL,
  valid_at timestamptz DEFAULT NULL, queries text[] DEFAULT NULL, embeddings vector[] DEFAULT NULL, model text DEFAULT NULL)
  RETURNS SETOF hindsight.recalled
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
  SET enable_seqscan = off
  SET plan_cache_mode = force_generic_plan
  SET hnsw.iterative_scan = strict_order
  SET hnsw.ef_search = 80
  SET hnsw.max_scan_tuples = 40000
  SET jit = off
  SET max_parallel_workers_per_gather = 0 -- to start a worker takes longer than to recall
AS $$
#variable_conflict use_column
DECLARE
  opened constant hindsight.bank := _open_bank(bank, 'reader');
  at constant timestamptz := coalesce(recall.as_of, statement_timestamp());
  asks_words constant boolean := _asks(recall.query);
  most constant integer := greatest(40, 2 * least(greatest(recall.top_k, 1), 1000)); -- candidates of each channel
  pending constant boolean := coalesce(recall.include_pending, false);
  moment constant _moment := (at, recall.as_of, recall.valid_at, pending);
  filter _filter;
  used embedding_model;
  stands_beside boolean := false;
  asked halfvec;
  from_semantic double precision;
  is_large boolean;
  documents double precision := opened.documents;
  average_length double precision := opened.average_length;
  words text[] := '{}';
  finders tsquery[] := '{}';
  prefixes text[] := '{}';
  emphasis double precision[] := '{}';
  named text[] := '{}';
  named_finder tsquery;
  finder tsquery;
  idf double precision[] := '{}';
  by_words uuid[];
  by_meaning uuid[];
  by_recency uuid[];
  by_review uuid[];
  edges _edge[];
  further _edge[]; -- of the second hop
  seeds uuid[];
  found_rows recalled[];
  picked uuid[];
  exact_digest bytea;
BEGIN
  PERFORM _check_recall(recall.query, recall.top_k, recall.types, recall.metadata, recall.min_confidence, recall.min_score,
                        recall.hops, recall.diversity, recall.as_of, recall.valid_at, recall.queries, recall.embeddings);
  IF recall.diversity > 0 THEN
    found_rows := ARRAY(
      SELECT r FROM recall(bank, recall.query, recall.embedding, most, recall.types, recall.tags, recall.all_tags, recall.no_tags,
                           recall.since, recall.until, recall.session_id, recall.entities, recall.metadata, recall.min_confidence,
                           recall.min_score, recall.hops, 0, recall.include_pending, recall.as_of, recall.valid_at, recall.queries, recall.embeddings,
                           recall.model) AS r);
    picked := _diverse(opened.bank_id, moment, ARRAY(SELECT r.memory_id FROM unnest(found_rows) AS r),
                       ARRAY(SELECT r.score FROM unnest(found_rows) AS r), recall.top_k, recall.diversity);
    RETURN QUERY SELECT r.* FROM unnest(found_rows) AS r WHERE r.memory_id = ANY (picked);
    RETURN;
  ELSIF recall.queries IS NOT NULL
        AND EXISTS (SELECT FROM unnest(recall.queries, recall.embeddings) AS q(query, embedding)
                    WHERE _asks(q.query) OR q.embedding IS NOT NULL) THEN
    RETURN QUERY
      SELECT best.*
      FROM (SELECT DISTINCT ON (r.memory_id) r.*
            FROM (SELECT recall.query AS query, recall.embedding AS embedding
                  UNION ALL
                  SELECT * FROM unnest(recall.queries, recall.embeddings)) AS q(query, embedding)
            CROSS JOIN LATERAL recall(
              bank, q.query, q.embedding, recall.top_k, recall.types, recall.tags, recall.all_tags, recall.no_tags, recall.since,
              recall.until, recall.session_id, recall.entities, recall.metadata, recall.min_confidence, recall.min_score,
              recall.hops, 0, recall.include_pending, recall.as_of, recall.valid_at, model => recall.model) AS r
            WHERE _asks(q.query) OR q.embedding IS NOT NULL -- a blank one would list the bank
            ORDER BY r.memory_id, r.score DESC) AS best
      ORDER BY best.score DESC, best.confirmed_at DESC, best.memory_id
      LIMIT recall.top_k;
    RETURN;
  END IF;
  IF num_nonnulls(recall.types, recall.tags, recall.all_tags, recall.no_tags, recall.since, recall.until, recall.session_id,
                  recall.entities, recall.min_confidence, recall.metadata) > 0 THEN -- else it stays NULL, which is quick to pass
    filter := (recall.types, _bank_tags(opened.bank_id, recall.tags), _bank_tags(opened.bank_id, recall.all_tags),
               _bank_tags(opened.bank_id, recall.no_tags), recall.since, recall.until, recall.session_id, NULL, recall.entities,
               recall.min_confidence, NULL, NULL);
  END IF;
  IF recall.metadata IS NOT NULL THEN
    SELECT f.plain, f.predicate INTO filter.metadata, filter.predicate FROM _metadata_filter(recall.metadata) AS f;
  END IF;
  IF recall.embedding IS NOT NULL AND opened.model_id IS NOT NULL THEN -- else there is nothing to compare it with
    used := _bank_model(opened, recall.model);
    stands_beside := _stands_beside(opened, used.model_id);
    asked := _check_embedding(recall.embedding, used);
    from_semantic := semantic(used.recall_threshold, used.floor);
    PERFORM set_config('hnsw.ef_search', used.hnsw_ef_search::text, true); -- until the end of this call: see the header
  END IF;
  IF asks_words THEN
    exact_digest := content_digest_v1(recall.query); -- the exact text of a memory finds it, whatever words and vectors say
    SELECT q.words, q.finders, q.prefixes, q.emphasis, q.entities INTO words, finders, prefixes, emphasis, named
      FROM _query_words(opened.language, recall.query) AS q;
    finder := array_to_string(finders, ' | ')::tsquery;
    IF named <> '{}' THEN
      named_finder := (SELECT string_agg(_quoted_lexeme(e), ' | ') FROM unnest(named) AS e)::tsquery;
    END IF;
  END IF;

  is_large := recall.as_of IS NULL AND recall.valid_at IS NULL -- the past is scanned: indexes hold what is live
    AND (documents IS NOT NULL
         OR EXISTS (SELECT FROM live_memory AS m WHERE m.bank_id = opened.bank_id OFFSET _exact_limit()));
  IF NOT is_large THEN
    SELECT s.documents, s.average_length, s.idf, s.by_words, s.by_meaning, s.by_recency
      INTO documents, average_length, idf, by_words, by_meaning, by_recency
      FROM _scan(opened.bank_id, moment, filter, most, asked, used.model_id, stands_beside, finders, emphasis,
                 finder, exact_digest) AS s;
  ELSE
    IF words <> '{}' THEN
      SELECT s.idf, s.ids INTO idf, by_words
        FROM _search_by_words(opened, at, filter, most, words, finders, prefixes, emphasis, must_find => asked IS NULL) AS s;
    END IF;
    IF asked IS NOT NULL THEN
      by_meaning := _search_by_meaning(opened, at, filter, most, asked, used);
    END IF;
    IF pending THEN
      by_review := _pending(opened.bank_id, at, filter);
    END IF;
    -- What is new may score above what is near: decay has not touched it yet.
    by_recency := _newest(opened.bank_id, at, filter, CASE WHEN asks_words OR asked IS NOT NULL THEN 10 ELSE most END);
    IF asks_words THEN
      SELECT array_agg(m.memory_id) || by_words INTO by_words
        FROM _visible(opened.bank_id, at, recall.as_of, recall.valid_at, pending) AS m
        WHERE m.digest = exact_digest
          AND _passes(m.type, m.tags, coalesce(m.occurred_at, m.created_at), m.session_id, m.entities, m.confidence, m.metadata, filter);
    END IF;
  END IF;
  IF coalesce(recall.hops, 1) > 0 AND (asks_words OR asked IS NOT NULL) THEN
    seeds := ARRAY(SELECT s.memory_id FROM unnest(by_meaning[:10], by_words[:10]) WITH ORDINALITY AS c(by_meaning, by_words, place)
                   CROSS JOIN LATERAL unnest(ARRAY[c.by_meaning, c.by_words]) AS s(memory_id)
                   WHERE s.memory_id IS NOT NULL GROUP BY s.memory_id ORDER BY min(c.place));
    edges := _linked(opened.bank_id, moment, seeds);
    IF recall.hops > 1 THEN
      further := _linked_further(opened.bank_id, moment, seeds[:6], edges); -- those whose links were followed
    END IF;
  END IF;

  RETURN QUERY
    WITH part AS MATERIALIZED ( -- once: inlined, each expression would be computed for every use of it
      SELECT m.memory_id, m.content, m.type, m.tags, m.entities, m.slot, m.session_id, m.source, m.confidence, m.metadata, m.occurred_at,
             m.created_at, m.confirmed_at, m.completed_at, m.valid_to, m.pending_reason, match.coverage,
             m.document @@ named_finder AND m.entities <> '{}' AS is_named,
             CASE WHEN m.model_id = used.model_id THEN semantic(1 - (m.embedding <=> asked), used.floor)
                  WHEN stands_beside
                    THEN (SELECT semantic(1 - (e.embedding <=> asked), used.floor)
                          FROM (SELECT _embedding_beside(opened.bank_id, m.memory_id, m.digest, used.model_id)) AS e(embedding)
                          WHERE e.embedding IS NOT NULL)
                  END AS semantic,
             CASE WHEN m.digest = exact_digest OR NOT (asks_words OR asked IS NOT NULL) THEN 1
                  ELSE lexical(match.bm25) END AS lexical,
             decay(extract(epoch FROM at - m.confirmed_at)::double precision / 86400,
                   coalesce(CASE WHEN m.completed_at IS NULL THEN coalesce(b.decay_rate, t.decay_rate) END, opened.decay_rate)) AS decay,
             coalesce(b.weight, t.weight) -- what was inferred is a hypothesis: its type says so already
               * CASE WHEN m.type = 'hypothesis' AND m.source = 'inferred' THEN 1 ELSE _trust_weight(m.source) END AS weight
      FROM _visible(opened.bank_id, at, recall.as_of, recall.valid_at, pending) AS m
      CROSS JOIN LATERAL _match(m.document, finder, words, idf, prefixes, average_length) AS match
      JOIN memory_type AS t ON t.type = m.type
      LEFT JOIN bank_type AS b ON b.bank_id = opened.bank_id AND b.type = m.type
      WHERE m.memory_id = ANY (by_meaning || by_words || by_recency || by_review || ARRAY(SELECT e.child_id FROM unnest(edges || further) AS e))
        AND _passes(m.type, m.tags, coalesce(m.occurred_at, m.created_at), m.session_id, m.entities, m.confidence, m.metadata, filter)
    ),
    own AS MATERIALIZED (
      SELECT p.memory_id, s.similarity,
             p.coverage >= 0.5
             OR CASE WHEN p.semantic IS NULL THEN s.similarity >= 0.2
                     ELSE p.semantic >= from_semantic OR (p.semantic >= 0.75 * from_semantic AND p.lexical >= 0.15)
                END AS is_relevant
      FROM part AS p CROSS JOIN LATERAL (SELECT similarity(p.semantic, p.lexical)) AS s(similarity)
    ),
    lit AS MATERIALIZED ( -- each edge, with what comes along it
      SELECT e.child_id, e.parent_id, e.relation, e.relation <> 'same_session' AS is_link, o.similarity * e.weight AS activation,
             o.is_relevant, ARRAY[e.parent_id] AS path
      FROM unnest(edges) AS e JOIN own AS o ON o.memory_id = e.parent_id
    ),
    lit_further AS MATERIALIZED ( -- nothing without the second hop; a candidate that is relevant by a link alone hands that on as well
      SELECT e.child_id, e.parent_id, e.relation, true AS is_link,
             similarity(CASE WHEN e.is_further THEN o.similarity ELSE 0 END, 0, 1 - exp(sum(ln(1 - least(l.activation, 0.999))))) * e.weight AS activation,
             o.is_relevant OR bool_or(l.is_relevant AND l.is_link) AS is_relevant,
             ARRAY[(array_agg(l.parent_id ORDER BY l.activation DESC) FILTER (WHERE l.is_link))[1], e.parent_id] AS path
      FROM (SELECT f.*, true AS is_further FROM unnest(further) AS f
            UNION ALL
            SELECT n.*, false FROM unnest(edges) AS n WHERE recall.hops > 1 AND n.relation <> 'same_session') AS e
      JOIN own AS o ON o.memory_id = e.parent_id
      JOIN lit AS l ON l.child_id = e.parent_id AND l.parent_id <> e.child_id AND (e.is_further OR (l.is_link AND l.is_relevant AND NOT o.is_relevant))
      GROUP BY e.child_id, e.parent_id, e.relation, e.weight, e.is_further, o.similarity, o.is_relevant
    ),
    activated AS MATERIALIZED ( -- noisy-OR over the edges; neighbours in a session are too weak to recall one another
      SELECT e.child_id, 1 - exp(sum(ln(1 - least(e.activation, 0.999)))) AS activation,
             (array_agg(e.parent_id ORDER BY e.is_relevant DESC, e.activation DESC))[1] AS linked_from,
             (array_agg(e.relation ORDER BY e.is_relevant DESC, e.activation DESC))[1] AS relation,
             (array_agg(e.path::text ORDER BY e.is_relevant DESC, e.activation DESC))[1]::uuid[] AS path, -- arrays of two lengths can't be aggregated
             bool_or(e.is_link) AS is_linked, bool_or(e.is_link AND e.is_relevant) AS is_relevant
      FROM (SELECT * FROM lit UNION ALL SELECT * FROM lit_further) AS e
      GROUP BY e.child_id
    ),
    scored AS MATERIALIZED (
      SELECT p.*, s.similarity, coalesce(a.activation, 0) AS activation, a.linked_from, a.relation, a.path, a.is_linked,
             _product(s.similarity, p.confidence, p.decay, p.weight) AS score, o.is_relevant OR coalesce(a.is_relevant, false) AS is_relevant
      FROM part AS p
      JOIN own AS o ON o.memory_id = p.memory_id
      LEFT JOIN activated AS a ON a.child_id = p.memory_id
      CROSS JOIN LATERAL (SELECT similarity(p.semantic, p.lexical, a.activation)) AS s(similarity)
    ),
    best AS MATERIALIZED ( -- more than are returned, since what is disputed may give way to others
      SELECT s.* FROM scored AS s
      WHERE CASE WHEN recall.min_score IS NULL THEN s.is_relevant ELSE s.similarity > 0 AND s.score >= recall.min_score END
      ORDER BY s.score DESC, s.confirmed_at DESC, s.memory_id
      LIMIT recall.top_k + 8
    ),
    disputed AS MATERIALIZED ( -- of the eight best, what stands alone against the others is worth half
      SELECT d.memory_id, d.disputed_by
      FROM _disputed(opened.bank_id, ARRAY(SELECT b.memory_id FROM best AS b ORDER BY b.score DESC LIMIT 8)) AS d
      WHERE opened.screening AND recall.as_of IS NULL AND recall.valid_at IS NULL AND (asks_words OR asked IS NOT NULL)
    ),
    ranked AS MATERIALIZED (
      SELECT b.*, d.disputed_by, CASE WHEN d.memory_id IS NULL THEN 1 ELSE 0.5 END AS standing
      FROM best AS b LEFT JOIN disputed AS d ON d.memory_id = b.memory_id
      WHERE recall.min_score IS NULL OR d.memory_id IS NULL OR 0.5 * b.score >= recall.min_score
      ORDER BY b.score * CASE WHEN d.memory_id IS NULL THEN 1 ELSE 0.5 END DESC, b.confirmed_at DESC, b.memory_id
      LIMIT recall.top_k
    )
    SELECT r.memory_id, r.content, r.type, r.score * r.standing, r.similarity, r.semantic, r.lexical, r.activation,
           r.confidence, r.decay, r.weight * r.standing,
           array_remove(ARRAY[CASE WHEN r.memory_id = ANY (by_meaning) THEN 'vector' END,
                              CASE WHEN r.memory_id = ANY (by_words) THEN 'text' END,
                              CASE WHEN r.is_named THEN 'entity' END,
                              CASE WHEN '=' || lower(r.slot) = ANY (named) THEN 'slot' END,
                              CASE WHEN r.memory_id = ANY (by_recency) AND r.memory_id <> ALL (coalesce(by_meaning || by_words, '{}')) THEN 'recency' END,
                              CASE WHEN r.is_linked THEN 'links' WHEN r.activation > 0 THEN 'session' END,
                              CASE WHEN r.memory_id = ANY (by_review) THEN 'pending' END], NULL),
           r.tags, r.entities, r.slot, r.session_id, r.source, r.metadata, r.occurred_at, r.created_at, r.confirmed_at,
           r.completed_at, r.valid_to, r.pending_reason, r.linked_from, r.relation, r.path, coalesce(r.disputed_by, '{}'), opened.name
    FROM ranked AS r
    ORDER BY r.score * r.standing DESC, r.confirmed_at DESC, r.memory_id;
END
$$;
COMMENT ON FUNCTION hindsight.recall(text, text, vector, integer, text[], text[], text[], text[], timestamptz, timestamptz, text, text[],
    jsonb, double precision, double precision, integer, double precision, boolean, timestamptz, timestamptz, text[], vector[], text) IS
  'The best live memories of a bank for a query, each with its score and the parts and channels that made it.';
