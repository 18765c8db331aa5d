-- Candidates: what each channel's index offers for a query. Scores are computed over their union, in recall.

-- _exact_limit: how many live memories a bank may have to be scanned exactly. Beyond it the bank's share of the HNSW
-- index fills a result: scanning costs the bank's rows, searching those of others, and the two meet near the table's square root.
CREATE OR REPLACE FUNCTION hindsight._exact_limit()
  RETURNS bigint
  LANGUAGE sql STABLE
RETURN (SELECT greatest(1000, pg_catalog.sqrt(80 * greatest(c.reltuples, 0)))::bigint
        FROM pg_catalog.pg_class AS c WHERE c.oid = 'hindsight.memory'::regclass);

-- _visible: the memories of a bank that recall may see: those that are live now, or (as_of) were believed then, as they were then;
-- with include_pending also what is not believed yet; with valid_at what was true then, though another value has followed. Inlined.
CREATE OR REPLACE FUNCTION hindsight._visible(
  of_bank bigint, at timestamptz, as_of timestamptz, valid_at timestamptz, include_pending boolean)
  RETURNS TABLE (
    memory_id uuid, content text, type text, tags text[], entities text[], slot text, session_id text, source text,
    confidence double precision, metadata jsonb, occurred_at timestamptz, created_at timestamptz,
    confirmed_at timestamptz, completed_at timestamptz, valid_to timestamptz, pending_reason text, model_id integer,
    embedding halfvec, document tsvector, digest bytea)
  LANGUAGE sql STABLE
AS $$
  SELECT m.memory_id, m.content, m.type, m.tags, m.entities, m.slot, m.session_id, m.source, m.confidence, m.metadata,
         m.occurred_at, m.created_at, m.confirmed_at, m.completed_at, m.valid_to, m.pending_reason, m.model_id, m.embedding,
         m.document, m.digest
  FROM hindsight.live_memory AS m
  WHERE m.bank_id = of_bank AND (m.expires_at IS NULL OR m.expires_at > at)
    AND m.changed_at <= coalesce(as_of, m.changed_at)
    AND coalesce(m.occurred_at, m.created_at) <= coalesce(valid_at, 'infinity')
  UNION ALL
  SELECT m.memory_id, m.content, m.type, m.tags, m.entities, m.slot, m.session_id, m.source, m.confidence, m.metadata,
         m.occurred_at, m.created_at, m.confirmed_at, m.completed_at, m.valid_to, m.pending_reason, m.model_id, m.embedding,
         m.document, m.digest
  FROM hindsight.current_memory AS m
  WHERE include_pending AND m.bank_id = of_bank AND m.pending_reason IS NOT NULL
    AND (m.expires_at IS NULL OR m.expires_at > at) AND m.changed_at <= coalesce(as_of, m.changed_at)
    AND coalesce(m.occurred_at, m.created_at) <= coalesce(valid_at, 'infinity')
  UNION ALL
  SELECT m.memory_id, m.content, m.type, m.tags, m.entities, m.slot, m.session_id, m.source, m.confidence, m.metadata,
         m.occurred_at, m.created_at, m.confirmed_at, m.completed_at, m.valid_to, m.pending_reason, m.model_id, m.embedding,
         m.document, m.digest
  FROM hindsight.memory AS m
  WHERE valid_at IS NOT NULL AND m.bank_id = of_bank AND m.deleted_at IS NULL AND m.archived_at IS NULL AND m.valid_to > valid_at
    AND coalesce(m.occurred_at, m.created_at) <= valid_at AND m.superseded_by IS NOT NULL AND m.pending_reason IS NULL
    AND (m.expires_at IS NULL OR m.expires_at > at) AND m.changed_at <= coalesce(as_of, m.changed_at) AND NOT EXISTS ( -- _true_before
      SELECT FROM hindsight.memory AS h WHERE h.bank_id = m.bank_id AND h.memory_id = m.superseded_by AND h.digest = m.digest AND h.deleted_at <= at)
  UNION ALL
  SELECT v.memory_id, v.content, v.type, v.tags, v.entities, v.slot, v.session_id, v.source, v.confidence, v.metadata,
         v.occurred_at, v.created_at, v.confirmed_at, v.completed_at, v.valid_to, v.pending_reason, v.model_id, v.embedding,
         v.document, v.digest
  FROM hindsight.memory_version AS v
  WHERE as_of IS NOT NULL AND v.bank_id = of_bank AND v.changed_at <= as_of AND as_of < v.believed_until
    AND v.deleted_at IS NULL AND v.archived_at IS NULL AND (v.superseded_by IS NULL OR v.valid_to > valid_at)
    AND (v.pending_reason IS NULL OR include_pending) AND (v.expires_at IS NULL OR v.expires_at > at)
    AND coalesce(v.occurred_at, v.created_at) <= coalesce(valid_at, 'infinity')
$$;

-- _scan: of a small bank (or a past one), in one pass: how many memories it has and how long they are; each word's IDF; the
-- memories with that very text, then those that hold the rarest words; the nearest by distance, which untyped is no index's; the newest.
CREATE OR REPLACE FUNCTION hindsight._scan(
  of_bank bigint, moment hindsight._moment, filter hindsight._filter, most integer,
  asked halfvec, of_model integer, stands_beside boolean, finders tsquery[], emphasis double precision[], finder tsquery, exact_digest bytea,
  OUT documents double precision, OUT average_length double precision, OUT idf double precision[],
  OUT by_words uuid[], OUT by_meaning uuid[], OUT by_recency uuid[])
  LANGUAGE plpgsql STABLE
AS $$
BEGIN
  WITH held AS MATERIALIZED (
    SELECT m.memory_id, m.confirmed_at, pg_catalog.length(m.document) AS size,
           -- not @@: the bank's rows are fewer than the postings of all banks
           CASE WHEN pg_catalog.ts_match_vq(m.document, finder) THEN m.document END AS document,
           hindsight._embedding_by(of_model, stands_beside, of_bank, m.memory_id, m.digest, m.model_id, m.embedding) <=> asked AS distance,
           m.digest = exact_digest AS is_exact,
           hindsight._passes(m.type, m.tags, coalesce(m.occurred_at, m.created_at), m.session_id, m.entities, m.confidence, m.metadata, filter) AS passes
    FROM hindsight._visible(of_bank, moment.at, moment.as_of, moment.valid_at, moment.include_pending) AS m
  ),
  bank AS MATERIALIZED (
    SELECT count(*) AS documents, coalesce(avg(h.size), 1) AS average_length FROM held AS h
  ),
  hit AS MATERIALIZED (
    SELECT h.memory_id, h.confirmed_at, h.passes, q.place
    FROM held AS h
    JOIN pg_catalog.unnest(finders) WITH ORDINALITY AS q(finder, place) ON h.document @@ q.finder
    WHERE h.document IS NOT NULL
  ),
  word AS MATERIALIZED (
    SELECT q.place, q.emphasis, hindsight._idf((SELECT b.documents FROM bank AS b), count(h.place)) AS idf
    FROM pg_catalog.unnest(emphasis) WITH ORDINALITY AS q(emphasis, place) LEFT JOIN hit AS h ON h.place = q.place
    GROUP BY q.place, q.emphasis
  ),
  best_by_words AS (
    SELECT h.memory_id, sum(w.idf * greatest(w.emphasis, 1)) AS rarity, h.confirmed_at
    FROM hit AS h JOIN word AS w ON w.place = h.place
    WHERE h.passes
    GROUP BY h.memory_id, h.confirmed_at
    ORDER BY rarity DESC, h.confirmed_at DESC
    LIMIT most
  ),
  nearest AS (
    SELECT h.memory_id, h.distance FROM held AS h WHERE h.passes AND h.distance IS NOT NULL ORDER BY h.distance LIMIT most
  ),
  newest AS (
    SELECT h.memory_id FROM held AS h WHERE h.passes ORDER BY h.confirmed_at DESC
    LIMIT CASE WHEN finder IS NULL AND asked IS NULL THEN most ELSE 10 END -- a query wants few of them, a list wants nothing else
  )
  SELECT b.documents, b.average_length,
         (SELECT pg_catalog.array_agg(w.idf * w.emphasis ORDER BY w.place) FROM word AS w),
         (SELECT pg_catalog.array_agg(h.memory_id) FROM held AS h WHERE h.is_exact AND h.passes)
           || (SELECT pg_catalog.array_agg(w.memory_id ORDER BY w.rarity DESC, w.confirmed_at DESC) FROM best_by_words AS w),
         (SELECT pg_catalog.array_agg(n.memory_id ORDER BY n.distance) FROM nearest AS n),
         (SELECT pg_catalog.array_agg(n.memory_id) FROM newest AS n)
    INTO documents, average_length, idf, by_words, by_meaning, by_recency
    FROM bank AS b;
END
$$;

-- _search_by_words: of a large bank: IDFs from the bank's statistics, and the memories that hold the rarest words.
-- The channel's cost is its postings, so the rarest words are searched until a budget is spent, and the eight rarest order
-- what they find; the others still count in the score of every candidate. Beside vectors, where already the rarest word has
-- more postings than that, the memories that hold two of the three rarest are searched: the index intersects them before
-- a row is read. The plan is cached: GIN over (bank, words).
CREATE OR REPLACE FUNCTION hindsight._search_by_words(
  opened hindsight.bank, at timestamptz, filter hindsight._filter, most integer, words text[], finders tsquery[],
  prefixes text[], emphasis double precision[], must_find boolean, OUT idf double precision[], OUT ids uuid[])
  LANGUAGE plpgsql STABLE
  SET enable_indexscan = off -- a bitmap of the words' postings, never a walk over the bank
AS $$
DECLARE
  budget constant integer := CASE WHEN must_find THEN 1000 ELSE 250 END; -- beside vectors, 250 find what 500 do
  holding bigint[];
  counted double precision := opened.documents;
  finder tsquery;
  rare tsquery[];
  rarity double precision[];
  fewest bigint; -- postings of the rarest word
BEGIN
  IF counted IS NULL THEN -- never counted (maintain): the index counts, which common words make slow
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
  SELECT pg_catalog.array_agg(r.idf * r.emphasis ORDER BY r.place),
         pg_catalog.array_agg(r.finder ORDER BY r.holding, r.place),
         pg_catalog.array_agg(r.idf * greatest(r.emphasis, 1) ORDER BY r.holding, r.place),
         pg_catalog.string_agg(r.finder::text, ' | ') FILTER (WHERE r.running <= budget OR (r.rank = 1 AND must_find))::tsquery,
         min(r.holding)
    INTO idf, rare, rarity, finder, fewest
    FROM (SELECT q.*, hindsight._idf(counted, q.holding) AS idf, sum(q.holding) OVER rarity AS running,
                 pg_catalog.row_number() OVER rarity AS rank
          FROM ROWS FROM (pg_catalog.unnest(holding), pg_catalog.unnest(finders), pg_catalog.unnest(emphasis))
               WITH ORDINALITY AS q(holding, finder, emphasis, place)
          WINDOW rarity AS (ORDER BY q.holding, q.place)) AS r;
  IF finder IS NULL AND fewest <= 10 * budget AND pg_catalog.cardinality(rare) > 1 THEN
    finder := CASE WHEN rare[3] IS NULL THEN rare[1] && rare[2]
                   ELSE (rare[1] && (rare[2] || rare[3])) || (rare[2] && rare[3]) END;
  END IF;
  IF finder IS NOT NULL THEN
    SELECT pg_catalog.array_agg(b.memory_id) INTO ids
      FROM (SELECT m.memory_id
            FROM hindsight.live_memory AS m
            WHERE m.bank_id = opened.bank_id AND (m.expires_at IS NULL OR m.expires_at > at) AND m.document @@ finder
              AND hindsight._passes(m.type, m.tags, coalesce(m.occurred_at, m.created_at), m.session_id, m.entities, m.confidence, m.metadata, filter)
            ORDER BY CASE WHEN m.document @@ rare[1] THEN rarity[1] ELSE 0 END + CASE WHEN m.document @@ rare[2] THEN rarity[2] ELSE 0 END
                   + CASE WHEN m.document @@ rare[3] THEN rarity[3] ELSE 0 END + CASE WHEN m.document @@ rare[4] THEN rarity[4] ELSE 0 END
                   + CASE WHEN m.document @@ rare[5] THEN rarity[5] ELSE 0 END + CASE WHEN m.document @@ rare[6] THEN rarity[6] ELSE 0 END
                   + CASE WHEN m.document @@ rare[7] THEN rarity[7] ELSE 0 END + CASE WHEN m.document @@ rare[8] THEN rarity[8] ELSE 0 END DESC,
                     m.confirmed_at DESC
            LIMIT most) AS b;
  END IF;
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
            AND hindsight._passes(m.type, m.tags, coalesce(m.occurred_at, m.created_at), m.session_id, m.entities, m.confidence, m.metadata, filter)
          ORDER BY m.changed_at DESC
          LIMIT 200) AS p);
END
$$;

-- _newest: of a large bank: the memories that were confirmed last.
CREATE OR REPLACE FUNCTION hindsight._newest(of_bank bigint, at timestamptz, filter hindsight._filter, most integer)
  RETURNS uuid[]
  LANGUAGE plpgsql STABLE
AS $$
BEGIN
  RETURN (
    SELECT pg_catalog.array_agg(b.memory_id)
    FROM (SELECT m.memory_id
          FROM hindsight.live_memory AS m
          WHERE m.bank_id = of_bank AND (m.expires_at IS NULL OR m.expires_at > at)
            AND hindsight._passes(m.type, m.tags, coalesce(m.occurred_at, m.created_at), m.session_id, m.entities, m.confidence, m.metadata, filter)
          ORDER BY m.confirmed_at DESC
          LIMIT most) AS b);
END
$$;
