-- The audit of a bank: what somebody should look at, and what can be put right without looking. Each check costs a walk over the
-- bank's rows at most; pairs are sought beside the newest thousand memories.

-- _audit_checks: the checks, in their order.
CREATE OR REPLACE FUNCTION hindsight._audit_checks()
  RETURNS text[] LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN '{contradictions,duplicates,stale,orphans,hypotheses,sources,tags}'::text[];

-- _in_quotes: a memory's content as a finding shows it: in quotation marks, at most so long, on one line.
CREATE OR REPLACE FUNCTION hindsight._in_quotes(content text)
  RETURNS text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN pg_catalog.format('"%s%s"', pg_catalog.regexp_replace(pg_catalog."left"(content, 120), '\s+', ' ', 'g'),
                         CASE WHEN pg_catalog.length(content) > 120 THEN '…' END);

-- _near_pairs: pairs of live memories that may be about the same, of which at least one is among the newest thousand: near by their
-- vectors, of which a large bank's are found by their index; or, where one has no vector, with at least half of their words in common.
CREATE OR REPLACE FUNCTION hindsight._near_pairs(
  opened hindsight.bank, used hindsight.embedding_model, at timestamptz, from_cosine double precision)
  RETURNS TABLE (one_id uuid, other_id uuid, cosine double precision)
  LANGUAGE plpgsql STABLE
AS $$
DECLARE
  newest constant uuid[] := ARRAY(
    SELECT m.memory_id FROM hindsight.live_memory AS m
    WHERE m.bank_id = opened.bank_id AND (m.expires_at IS NULL OR m.expires_at > at)
    ORDER BY m.confirmed_at DESC LIMIT 1000);
  is_large constant boolean := opened.documents IS NOT NULL
    OR EXISTS (SELECT FROM hindsight.live_memory AS m WHERE m.bank_id = opened.bank_id OFFSET hindsight._exact_limit());
BEGIN
  IF is_large AND used.model_id IS NOT NULL THEN
    RETURN QUERY EXECUTE pg_catalog.format( -- the expression and the two numbers are those of the model's index
      'SELECT DISTINCT least(m.memory_id, near.memory_id), greatest(m.memory_id, near.memory_id), near.cosine
       FROM unnest($1) AS n(memory_id)
       JOIN hindsight.memory AS m ON m.bank_id = $2 AND m.memory_id = n.memory_id AND m.model_id = %1$s
       CROSS JOIN LATERAL (
         SELECT o.memory_id, 1 - (o.embedding <=> m.embedding) AS cosine FROM hindsight.live_memory AS o
         WHERE o.model_id = %1$s AND o.bank_id = $2 AND (o.expires_at IS NULL OR o.expires_at > $3)
         ORDER BY o.embedding::halfvec(%2$s) <=> m.embedding::halfvec(%2$s)
         LIMIT 6) AS near
       WHERE near.memory_id <> m.memory_id AND near.cosine >= $4', used.model_id, used.dimensions)
      USING newest, opened.bank_id, at, from_cosine;
  ELSE
    RETURN QUERY
      WITH held AS MATERIALIZED (
        SELECT m.memory_id, m.embedding, n.memory_id IS NOT NULL AS is_new
        FROM hindsight.live_memory AS m LEFT JOIN pg_catalog.unnest(newest) AS n(memory_id) ON n.memory_id = m.memory_id
        WHERE m.bank_id = opened.bank_id AND m.model_id = used.model_id AND (m.expires_at IS NULL OR m.expires_at > at)
      )
      SELECT one.memory_id, other.memory_id, 1 - (one.embedding <=> other.embedding)
      FROM held AS one JOIN held AS other ON one.is_new AND (one.memory_id < other.memory_id OR NOT other.is_new)
      WHERE one.embedding <=> other.embedding <= 1 - from_cosine;
  END IF;
  IF EXISTS (SELECT FROM hindsight.memory AS m JOIN pg_catalog.unnest(newest) AS n(memory_id) ON n.memory_id = m.memory_id
             WHERE m.bank_id = opened.bank_id AND m.embedding IS NULL) THEN
    RETURN QUERY
      WITH word AS MATERIALIZED (
        SELECT m.memory_id, m.embedding IS NULL AND n.memory_id IS NOT NULL AS waits, d.lexeme
        FROM hindsight.live_memory AS m LEFT JOIN pg_catalog.unnest(newest) AS n(memory_id) ON n.memory_id = m.memory_id
        CROSS JOIN pg_catalog.unnest(m.document) AS d
        WHERE m.bank_id = opened.bank_id AND (m.expires_at IS NULL OR m.expires_at > at) AND 'A' = ANY (d.weights)
      ),
      rare AS ( -- a word that many have would join them all with one another
        SELECT w.lexeme FROM word AS w GROUP BY w.lexeme HAVING count(*) BETWEEN 2 AND 50 AND bool_or(w.waits)
      ),
      candidate AS MATERIALIZED (
        SELECT DISTINCT least(one.memory_id, other.memory_id) AS one_id, greatest(one.memory_id, other.memory_id) AS other_id
        FROM word AS one JOIN rare AS r ON r.lexeme = one.lexeme JOIN word AS other ON other.lexeme = one.lexeme
        WHERE one.waits AND other.memory_id <> one.memory_id
      )
      SELECT c.one_id, c.other_id, NULL::double precision
      FROM candidate AS c
      JOIN hindsight.memory AS one ON one.bank_id = opened.bank_id AND one.memory_id = c.one_id
      JOIN hindsight.memory AS other ON other.bank_id = opened.bank_id AND other.memory_id = c.other_id
      WHERE hindsight._alike(
        NULL, NULL, pg_catalog.ts_filter(one.document, '{a}'), pg_catalog.ts_filter(other.document, '{a}')) >= 0.5;
  END IF;
END
$$;

-- _is_duplicate: whether one memory can be merged into another without a loss: the same meaning by the model's merge threshold and
-- by the rules, of one kind, and with at most one slot between them.
CREATE OR REPLACE FUNCTION hindsight._is_duplicate(one hindsight.memory, other hindsight.memory, merge_threshold double precision)
  RETURNS boolean
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN one.model_id = other.model_id AND 1 - (one.embedding <=> other.embedding) >= merge_threshold
  AND (one.type = other.type OR 'hypothesis' IN (one.type, other.type))
  AND (one.slot IS NULL OR other.slot IS NULL) AND (one.completed_at IS NULL) = (other.completed_at IS NULL)
  AND hindsight._disagreement(one.content, other.content) IS NULL AND hindsight._says_the_same(one.content, other.content);

-- _compared: the near pairs with what the rules have against one another, and the link that says how they stand to each other, be it
-- a person's or a judge's. Two that have a slot each are two things, as whoever named them said.
CREATE OR REPLACE FUNCTION hindsight._compared(opened hindsight.bank, used hindsight.embedding_model, at timestamptz)
  RETURNS TABLE (newer hindsight.memory, older hindsight.memory, cosine double precision, against text, relation text)
  LANGUAGE sql STABLE
AS $$
  SELECT CASE WHEN o.is_newer THEN one ELSE other END, CASE WHEN o.is_newer THEN other ELSE one END, n.cosine,
         hindsight._disagreement(one.content, other.content),
         (SELECT l.relation FROM hindsight.link AS l
          WHERE l.bank_id = opened.bank_id AND l.removed_at IS NULL AND l.relation = ANY (hindsight._verdict_relations())
            AND (l.from_id = one.memory_id AND l.to_id = other.memory_id OR l.from_id = other.memory_id AND l.to_id = one.memory_id)
          ORDER BY l.created_at DESC LIMIT 1)
  FROM hindsight._near_pairs(opened, used, at, hindsight._related_cosine(used)) AS n
  JOIN hindsight.memory AS one ON one.bank_id = opened.bank_id AND one.memory_id = n.one_id
  JOIN hindsight.memory AS other ON other.bank_id = opened.bank_id AND other.memory_id = n.other_id
  CROSS JOIN LATERAL (
    SELECT coalesce(one.occurred_at, one.created_at) > coalesce(other.occurred_at, other.created_at)) AS o(is_newer)
  WHERE one.slot IS NULL OR other.slot IS NULL
$$;

-- _verdict_relations: the links that say how two memories that are about the same stand to each other.
CREATE OR REPLACE FUNCTION hindsight._verdict_relations()
  RETURNS text[] LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN '{same_as,evolved_into,contradicts,differs_from}'::text[];

-- _audit_pairs: contradictions and duplicates among the near pairs, by the rules or by a link. Of each pair the newer one comes first.
CREATE OR REPLACE FUNCTION hindsight._audit_pairs(opened hindsight.bank, at timestamptz, most integer, checks text[])
  RETURNS TABLE (finding text, memory_id uuid, other_id uuid, detail text, remedy text)
  LANGUAGE plpgsql STABLE
AS $$
#variable_conflict use_column
DECLARE
  used hindsight.embedding_model;
BEGIN
  SELECT r.* INTO used FROM hindsight.embedding_model AS r WHERE r.model_id = opened.model_id;
  RETURN QUERY
    WITH pair AS MATERIALIZED (
      SELECT c.newer, c.older, c.cosine, c.relation,
             coalesce(c.against, CASE c.relation WHEN 'contradicts' THEN 'they are linked so' END) AS against
      FROM hindsight._compared(opened, used, at) AS c
    ),
    judged AS (
      SELECT (p.newer).memory_id AS newer_id, (p.older).memory_id AS older_id, p.cosine, p.against,
             hindsight._in_quotes((p.newer).content) AS newer, hindsight._in_quotes((p.older).content) AS older,
             hindsight._evolves((p.older).content, (p.newer).content) AS evolves,
             CASE
               WHEN p.against IS NOT NULL THEN 'contradicts'
               WHEN hindsight._is_duplicate(p.newer, p.older, used.merge_threshold) THEN 'says the same as'
               WHEN p.relation = 'same_as' THEN 'may say the same as'
               WHEN p.relation IS NOT NULL THEN NULL
               WHEN p.cosine >= used.merge_threshold AND hindsight._names_the_same((p.newer).content, (p.older).content)
                    OR (p.cosine >= used.merge_threshold) IS NOT false AND hindsight._says_the_same((p.newer).content, (p.older).content)
                 THEN 'may say the same as'
             END AS verdict
      FROM pair AS p
    ),
    told AS (
      SELECT CASE j.verdict WHEN 'contradicts' THEN 'contradictions' ELSE 'duplicates' END AS finding,
             CASE j.verdict WHEN 'says the same as' THEN 'merge' ELSE 'review' END AS remedy,
             pg_catalog.format('%s %s %s%s%s', j.newer, j.verdict, j.older, ': ' || j.against,
                               CASE WHEN j.against IS NOT NULL AND j.evolves THEN ', another version' END) AS detail,
             j.newer_id, j.older_id, j.cosine
      FROM judged AS j
      WHERE j.verdict IS NOT NULL
    )
    SELECT f.finding, f.newer_id, f.older_id, f.detail, f.remedy
    FROM (SELECT t.*, pg_catalog.row_number() OVER (
            PARTITION BY t.finding ORDER BY t.remedy, t.cosine DESC NULLS LAST, t.newer_id, t.older_id) AS place
          FROM told AS t
          WHERE t.finding = ANY (checks)) AS f
    WHERE f.place <= most
    ORDER BY f.finding, f.place;
END
$$;

-- _names_the_same: whether two sentences hold the same numbers and names: Room 101 and Room 102 are no near duplicates.
CREATE OR REPLACE FUNCTION hindsight._names_the_same(one text, other text)
  RETURNS boolean
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (
  WITH name AS (
    SELECT t.side, pg_catalog.lower(n.name) AS name
    FROM (VALUES (1, one), (2, other)) AS t(side, content)
    CROSS JOIN LATERAL (SELECT pg_catalog.unnest(hindsight.entities(t.content)) AS name
                        UNION ALL SELECT (pg_catalog.regexp_matches(t.content, '\d+', 'g'))[1]) AS n
  )
  SELECT NOT EXISTS (SELECT FROM name AS n GROUP BY n.name HAVING count(DISTINCT n.side) = 1));

-- audit: what is wrong, or may be, with the live memories of a bank, at most so many findings of each check:
--   contradictions: two that are about the same, of which only one can be true (_disagreement);
--   duplicates: two that say the same, or may;
--   stale: facts and decisions that have faded to a tenth, pending memories and todos that are about to go;
--   orphans: what stands on something forgotten, and what was superseded by something that is gone;
--   hypotheses: inferred a month ago, and never confirmed;
--   sources: memories that came in a burst, or that nobody but a tool has made credible by saying them again and again;
--   tags: spelled in several ways, or not allowed.
-- remedy is what resolve does about it: merge, withdraw, retag; review: a person decides.
-- checks names some of them; NULL is all. Reads only. Raises HM001, HM004.
CREATE OR REPLACE FUNCTION hindsight.audit(bank text, checks text[] DEFAULT NULL, most integer DEFAULT 100)
  RETURNS TABLE (finding text, memory_id uuid, other_id uuid, detail text, remedy text)
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
  SET enable_seqscan = off
  SET hnsw.iterative_scan = strict_order
  SET hnsw.ef_search = 40
  SET jit = off
AS $$
#variable_conflict use_column
DECLARE
  opened constant hindsight.bank := _open_bank(bank, 'reader');
  wanted constant text[] := coalesce(nullif(audit.checks, '{}'), _audit_checks());
BEGIN
  PERFORM _check_finding(c.name) FROM unnest(wanted) AS c(name);
  IF (most BETWEEN 1 AND 1000) IS NOT TRUE THEN
    RAISE EXCEPTION 'most must lie between 1 and 1000, got %', coalesce(most::text, 'NULL')
      USING ERRCODE = 'HM004', HINT = 'It is how many findings of each check are shown: 100 by default.';
  END IF;
  IF wanted && '{contradictions,duplicates}' THEN
    RETURN QUERY SELECT * FROM _audit_pairs(opened, statement_timestamp(), most, wanted);
  END IF;
  IF 'stale' = ANY (wanted) THEN
    RETURN QUERY SELECT * FROM _audit_stale(opened, statement_timestamp(), most);
  END IF;
  IF 'orphans' = ANY (wanted) THEN
    RETURN QUERY SELECT * FROM _audit_orphans(opened, statement_timestamp(), most);
  END IF;
  IF 'hypotheses' = ANY (wanted) THEN
    RETURN QUERY SELECT * FROM _audit_hypotheses(opened, statement_timestamp(), most);
  END IF;
  IF 'sources' = ANY (wanted) THEN
    RETURN QUERY SELECT * FROM _audit_sources(opened, statement_timestamp(), most);
  END IF;
  IF 'tags' = ANY (wanted) THEN
    RETURN QUERY SELECT * FROM _audit_tags(opened, statement_timestamp(), most);
  END IF;
END
$$;
COMMENT ON FUNCTION hindsight.audit(text, text[], integer) IS
  'What is wrong, or may be, with a bank''s memories: contradictions, duplicates, stale, orphans, hypotheses, sources, tags.';

-- _check_finding: raises HM004 for a check that does not exist.
CREATE OR REPLACE FUNCTION hindsight._check_finding(name text)
  RETURNS void
  LANGUAGE plpgsql IMMUTABLE
AS $$
BEGIN
  IF (name = ANY (hindsight._audit_checks())) IS NOT TRUE THEN
    RAISE EXCEPTION 'unknown check %', coalesce(pg_catalog.quote_literal(name), 'NULL')
      USING ERRCODE = 'HM004', HINT = 'Checks are ' || pg_catalog.array_to_string(hindsight._audit_checks(), ', ') || '.';
  END IF;
END
$$;
