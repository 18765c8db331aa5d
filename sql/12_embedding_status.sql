-- How far the embeddings of a bank are, and which indexes of vectors no bank needs any more.

-- embedding_status: the bank's model; where a change of it is (embedding, switched, settling; NULL: none), with the other model, which
-- is coming or going; how many memories are live or pending, and of them how many have a vector of the model that is worked for (the
-- coming one while embedding, else the bank's), wait for one, are claimed, have failed; and how many have theirs beside them still.
-- Raises HM001.
CREATE OR REPLACE FUNCTION hindsight.embedding_status(
  bank text, OUT model text, OUT dimensions integer, OUT reembedding text, OUT other_model text, OUT other_dimensions integer,
  OUT memories bigint, OUT embedded bigint, OUT waiting bigint, OUT claimed bigint, OUT failed bigint, OUT unsettled bigint,
  OUT next_try_at timestamptz, OUT last_error text)
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
  SET enable_seqscan = off
AS $$
DECLARE
  opened constant hindsight.bank := _open_bank(bank, 'reader');
  wanted constant integer := CASE WHEN opened.reembedding = 'embedding' THEN opened.other_model_id ELSE opened.model_id END;
BEGIN
  SELECT r.name, r.dimensions INTO model, dimensions FROM embedding_model AS r WHERE r.model_id = opened.model_id;
  SELECT r.name, r.dimensions INTO other_model, other_dimensions FROM embedding_model AS r WHERE r.model_id = opened.other_model_id;
  reembedding := opened.reembedding;
  SELECT count(*), count(*) FILTER (WHERE s.is_own OR s.is_beside), count(*) FILTER (WHERE NOT (s.is_own OR s.is_beside)),
         count(*) FILTER (WHERE NOT (s.is_own OR s.is_beside) AND s.is_claimed AND s.not_before > statement_timestamp()),
         count(*) FILTER (WHERE NOT (s.is_own OR s.is_beside) AND s.error IS NOT NULL AND NOT s.is_claimed),
         count(*) FILTER (WHERE s.is_beside AND NOT s.is_own AND opened.switched_at IS NOT NULL),
         min(s.not_before) FILTER (WHERE s.error IS NOT NULL AND NOT s.is_claimed),
         (array_agg(s.error ORDER BY s.not_before DESC) FILTER (WHERE s.error IS NOT NULL))[1]
    INTO memories, embedded, waiting, claimed, failed, unsettled, next_try_at, last_error
    FROM (SELECT coalesce(m.model_id = wanted, false) AS is_own, n.embedding IS NOT NULL AS is_beside, n.is_claimed, n.not_before,
                 n.last_error AS error
          FROM current_memory AS m
          LEFT JOIN next_embedding AS n
            ON n.bank_id = m.bank_id AND n.memory_id = m.memory_id AND n.model_id = wanted AND n.digest = m.digest
          WHERE m.bank_id = opened.bank_id) AS s;
END
$$;
COMMENT ON FUNCTION hindsight.embedding_status(text) IS
  'How many memories of a bank have their embedding, wait for it or failed, and where a change of its model is.';

-- settling_indexes: statements that make the settling of many vectors several times as quick, for operators: while some have to settle, the
-- one that drops the index which each would be put into, where no other bank is searched by it (this one is by the index of those beside);
-- once all have, the one that makes it again. CONCURRENTLY, as in unused_indexes. hindsight reembed runs them, before and after. None
-- where there is nothing to do. Raises HM001, HM003.
CREATE OR REPLACE FUNCTION hindsight.settling_indexes(bank text)
  RETURNS SETOF text
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
  SET enable_seqscan = off
AS $$
DECLARE
  opened constant hindsight.bank := _open_bank(bank, 'owner');
  held embedding_model;
  index_id regclass;
BEGIN
  PERFORM _check_operator();
  IF opened.switched_at IS NULL THEN
    RETURN;
  END IF;
  SELECT r.* INTO held FROM embedding_model AS r WHERE r.model_id = opened.model_id;
  index_id := to_regclass(_index_name(held));
  IF NOT _has_settled(opened) THEN
    IF index_id IS NOT NULL AND to_regclass(_next_index_name(held)) IS NOT NULL
       AND NOT EXISTS (SELECT FROM bank AS b WHERE b.bank_id <> opened.bank_id AND held.model_id IN (b.model_id, b.other_model_id)) THEN
      RETURN NEXT format('DROP INDEX CONCURRENTLY IF EXISTS %s', _index_name(held));
    END IF;
  ELSIF index_id IS NULL THEN
    RETURN NEXT _index_statement(held, 'CONCURRENTLY');
  ELSIF EXISTS (SELECT FROM pg_index AS i WHERE i.indexrelid = index_id AND NOT i.indisvalid) THEN -- broken off
    RETURN NEXT format('REINDEX INDEX CONCURRENTLY %s', _index_name(held));
  END IF;
END
$$;
COMMENT ON FUNCTION hindsight.settling_indexes(text) IS
  'Statements that drop, and later make again, the index that settling vectors would be put into one by one, for operators.';

-- unused_indexes: statements that drop the indexes of vectors that no bank needs: of models that none has, and those that stood beside
-- while one changed. For operators, since only the owner of a table can run them; CONCURRENTLY, so that nobody waits, and
-- not in a transaction. hindsight reembed runs them at its end, \gexec in psql as well. Raises HM003.
CREATE OR REPLACE FUNCTION hindsight.unused_indexes(models text[] DEFAULT NULL)
  RETURNS SETOF text
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
AS $$
BEGIN
  PERFORM _check_operator();
  RETURN QUERY
    SELECT format('DROP INDEX CONCURRENTLY IF EXISTS %s', i.name)
    FROM embedding_model AS r
    CROSS JOIN LATERAL (VALUES
      (_index_name(r), EXISTS (SELECT FROM bank AS b WHERE r.model_id IN (b.model_id, b.other_model_id))),
      (_next_index_name(r), EXISTS (SELECT FROM bank AS b WHERE b.reembedding IS NOT NULL AND r.model_id IN (b.model_id, b.other_model_id)))
    ) AS i(name, is_used)
    WHERE NOT i.is_used AND to_regclass(i.name) IS NOT NULL AND (models IS NULL OR r.name = ANY (models))
    ORDER BY i.name;
END
$$;
COMMENT ON FUNCTION hindsight.unused_indexes(text[]) IS
  'Statements that drop the indexes of vectors that no bank needs any more, for operators.';
