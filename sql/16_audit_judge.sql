-- What the rules of an audit leave undecided, for a language model or a person to judge.

-- undecided: pairs of live memories that may be about the same, of which the rules can tell neither that they contradict each other
-- nor that they say the same; the nearest first, at most so many. Of each pair memory_id is the newer one, by what said_at tells.
-- A pair that a link says something about (same_as, evolved_into, contradicts, differs_from) is decided. Reads only.
-- Raises HM001, HM004.
CREATE OR REPLACE FUNCTION hindsight.undecided(bank text, most integer DEFAULT 100)
  RETURNS TABLE (memory_id uuid, other_id uuid, content text, other_content text, said_at timestamptz, other_said_at timestamptz,
                 cosine double precision)
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
  used embedding_model;
BEGIN
  IF (most BETWEEN 1 AND 1000) IS NOT TRUE THEN
    RAISE EXCEPTION 'most must lie between 1 and 1000, got %', coalesce(most::text, 'NULL')
      USING ERRCODE = 'HM004', HINT = 'It is how many pairs are returned: 100 by default.';
  END IF;
  SELECT r.* INTO used FROM embedding_model AS r WHERE r.model_id = opened.model_id;
  RETURN QUERY
    SELECT (c.newer).memory_id, (c.older).memory_id, (c.newer).content, (c.older).content,
           coalesce((c.newer).occurred_at, (c.newer).created_at), coalesce((c.older).occurred_at, (c.older).created_at), c.cosine
    FROM _compared(opened, used, statement_timestamp()) AS c
    WHERE c.against IS NULL AND c.relation IS NULL AND _is_duplicate(c.newer, c.older, used.merge_threshold) IS NOT TRUE
    ORDER BY c.cosine DESC NULLS LAST, 1, 2
    LIMIT most;
END
$$;
COMMENT ON FUNCTION hindsight.undecided(text, integer) IS
  'Pairs of memories that may be about the same, and whose relation the rules of an audit cannot tell; the nearest first.';
