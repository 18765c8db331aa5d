-- Recall across banks: what several banks know, each asked in its own right, and the answers put together.

-- _open_banks: the banks of these names, each once, if the caller may read all of them. None is searched before all are open, so that
-- one that the caller has no rights on looks, also by the clock, like one that does not exist.
-- Raises HM001, HM003, HM004 (none, too many).
CREATE OR REPLACE FUNCTION hindsight._open_banks(banks text[])
  RETURNS hindsight.bank[]
  LANGUAGE plpgsql STABLE
AS $$
DECLARE
  opened hindsight.bank[] := '{}';
  name text;
BEGIN
  PERFORM hindsight._check_list('banks', banks);
  IF coalesce(pg_catalog.cardinality(banks), 0) NOT BETWEEN 1 AND 20 THEN
    RAISE EXCEPTION 'banks must name 1 to 20 banks, got %', coalesce(pg_catalog.cardinality(banks), 0)
      USING ERRCODE = 'HM004', HINT = 'For example ''{alice,team}''. hindsight.status() lists the banks that you may read.';
  END IF;
  FOR name IN SELECT b FROM pg_catalog.unnest(banks) WITH ORDINALITY AS b(b, place) GROUP BY b ORDER BY min(place) LOOP
    opened := opened || hindsight._open_bank(name, 'reader');
  END LOOP;
  RETURN opened;
END
$$;

-- recall_across: recall in several banks at once, 1 to 20, all of which the caller may read. One formula makes all scores, so they compare:
-- the best of all, each with its bank. What several banks hold in the same words is shown once, as it scores best.
-- Each bank is asked by recall itself, with its own policies, statistics and screening: links, diversity and disputes end at a
-- bank's border. The best top_k of each contain the best top_k of all, since no bank holds the same words twice.
-- Raises HM001 (unknown bank: the first of them), HM003 (no access), HM004 (bad argument), HM010, HM011 (embedding).
CREATE OR REPLACE FUNCTION hindsight.recall_across(
  banks text[], query text DEFAULT '', embedding vector DEFAULT NULL, top_k integer DEFAULT 10, types text[] DEFAULT NULL,
  tags text[] DEFAULT NULL, all_tags text[] DEFAULT NULL, no_tags text[] DEFAULT NULL, since timestamptz DEFAULT NULL,
  until timestamptz DEFAULT NULL, session_id text DEFAULT NULL, entities text[] DEFAULT NULL, metadata jsonb DEFAULT NULL,
  min_confidence double precision DEFAULT NULL, min_score double precision DEFAULT NULL, hops integer DEFAULT 1,
  diversity double precision DEFAULT 0, include_pending boolean DEFAULT false, as_of timestamptz DEFAULT NULL,
  valid_at timestamptz DEFAULT NULL, queries text[] DEFAULT NULL, embeddings vector[] DEFAULT NULL, model text DEFAULT NULL)
  RETURNS SETOF hindsight.recalled
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
AS $$
#variable_conflict use_column
DECLARE
  opened constant hindsight.bank[] := _open_banks(recall_across.banks);
BEGIN
  RETURN QUERY
    SELECT best.*
    FROM (SELECT DISTINCT ON (content_digest_v1(r.content)) r.*
          FROM unnest(opened) AS o
          CROSS JOIN LATERAL recall(
            o.name, recall_across.query, recall_across.embedding, recall_across.top_k, recall_across.types, recall_across.tags,
            recall_across.all_tags, recall_across.no_tags, recall_across.since, recall_across.until, recall_across.session_id,
            recall_across.entities, recall_across.metadata, recall_across.min_confidence, recall_across.min_score, recall_across.hops,
            recall_across.diversity, recall_across.include_pending, recall_across.as_of, recall_across.valid_at, recall_across.queries,
            recall_across.embeddings, recall_across.model) AS r
          ORDER BY content_digest_v1(r.content), r.score DESC, r.confirmed_at DESC, r.memory_id) AS best
    ORDER BY best.score DESC, best.confirmed_at DESC, best.memory_id
    LIMIT greatest(recall_across.top_k, 1); -- below it recall refuses, once it is asked
END
$$;
COMMENT ON FUNCTION hindsight.recall_across(text[], text, vector, integer, text[], text[], text[], text[], timestamptz, timestamptz, text, text[],
    jsonb, double precision, double precision, integer, double precision, boolean, timestamptz, timestamptz, text[], vector[], text) IS
  'The best live memories of several banks for a query, each with its bank; for whoever may read all of them.';
