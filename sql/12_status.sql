-- Status and upkeep: what runs, what each bank holds, and what keeps it quick.

-- status: every bank that the caller may read, with how many memories of each state it holds.
CREATE OR REPLACE FUNCTION hindsight.status()
  RETURNS TABLE (
    bank text, model text, dimensions integer, live bigint, pending bigint, expired bigint, archived bigint,
    superseded bigint, deleted bigint, unembedded bigint, sessions bigint, turns bigint)
  LANGUAGE sql STABLE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
AS $$
  SELECT b.name, r.name, r.dimensions,
         count(*) FILTER (WHERE m.state = 'live'), count(*) FILTER (WHERE m.state = 'pending'),
         count(*) FILTER (WHERE m.state = 'expired'), count(*) FILTER (WHERE m.state = 'archived'),
         count(*) FILTER (WHERE m.state = 'superseded'), count(*) FILTER (WHERE m.state = 'deleted'),
         count(*) FILTER (WHERE m.state IN ('live', 'pending') AND m.waits),
         (SELECT count(*) FROM session AS s WHERE s.bank_id = b.bank_id),
         (SELECT count(*) FROM turn AS t WHERE t.bank_id = b.bank_id)
  FROM bank AS b
  LEFT JOIN embedding_model AS r ON r.model_id = b.model_id
  LEFT JOIN LATERAL (SELECT _state(m, statement_timestamp()) AS state, m.embedding IS NULL AS waits
                     FROM memory AS m WHERE m.bank_id = b.bank_id) AS m ON true
  WHERE _rights(b.bank_id) IS NOT NULL
  GROUP BY b.bank_id, r.model_id
  ORDER BY b.name
$$;
COMMENT ON FUNCTION hindsight.status() IS
  'Every bank that the caller may read, with its model and how many memories of each state it holds.';

-- versions: of PostgreSQL, of pgvector, and of this schema (NULL when Alembic has not deployed it).
CREATE OR REPLACE FUNCTION hindsight.versions()
  RETURNS TABLE (postgresql text, pgvector text, revision text)
  LANGUAGE sql STABLE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
AS $$
  SELECT current_setting('server_version'), (SELECT e.extversion FROM pg_extension AS e WHERE e.extname = 'vector'),
         (SELECT max(v.version_num) FROM alembic_version AS v)
$$;
COMMENT ON FUNCTION hindsight.versions() IS 'The versions of PostgreSQL, pgvector and this schema.';

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
