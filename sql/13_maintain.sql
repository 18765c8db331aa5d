-- Upkeep: puts away what has expired, seals the trail of events, and keeps large banks quick.

-- _due: memories of a bank that are due to be put away for one of the reasons, at most so many, locked; what somebody else has
-- locked is left for the next time.
CREATE OR REPLACE FUNCTION hindsight._due(of_bank bigint, reason text, most integer)
  RETURNS uuid[]
  LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  month_ago constant timestamptz := pg_catalog.clock_timestamp() - interval '30 days';
BEGIN
  CASE reason
    WHEN 'expired' THEN
      RETURN ARRAY(
        SELECT m.memory_id FROM hindsight.current_memory AS m
        WHERE m.bank_id = of_bank AND m.expires_at <= pg_catalog.clock_timestamp()
        ORDER BY m.expires_at LIMIT most FOR NO KEY UPDATE SKIP LOCKED);
    WHEN 'not confirmed within 30 days' THEN
      RETURN ARRAY(
        SELECT m.memory_id FROM hindsight.current_memory AS m
        WHERE m.bank_id = of_bank AND m.pending_reason IS NOT NULL AND m.changed_at <= month_ago
        ORDER BY m.changed_at LIMIT most FOR NO KEY UPDATE SKIP LOCKED);
    WHEN 'of little importance for 30 days' THEN
      RETURN ARRAY(
        SELECT m.memory_id FROM hindsight.live_memory AS m
        WHERE m.bank_id = of_bank AND m.importance < 0.3 AND m.confirmed_at <= month_ago
        ORDER BY m.confirmed_at LIMIT most FOR NO KEY UPDATE SKIP LOCKED);
    WHEN 'not recalled within 30 days, and of little value' THEN
      IF NOT EXISTS (SELECT FROM hindsight.memory_use AS u WHERE u.bank_id = of_bank AND u.first_at <= month_ago) THEN
        RETURN '{}'; -- nobody has noted recalls for that long
      END IF;
      RETURN ARRAY(
        SELECT m.memory_id FROM hindsight.live_memory AS m
        WHERE m.bank_id = of_bank AND m.importance >= 0.3 AND m.importance < 0.5 AND m.confirmations = 0 AND m.confirmed_at <= month_ago
          AND NOT EXISTS (SELECT FROM hindsight.memory_use AS u WHERE u.bank_id = of_bank AND u.memory_id = m.memory_id)
        ORDER BY m.confirmed_at LIMIT most FOR NO KEY UPDATE SKIP LOCKED);
  END CASE;
END
$$;

-- sweep: puts away (archives) what is due, at most so many memories: what has expired; what is pending for 30 days; what was of little
-- importance (under 0.3) for 30 days; and, where recalls are noted (note_recall), what nobody recalled in them and is of little
-- value (under 0.5, never confirmed again). After 25 it goes on for 20 milliseconds at most. Its locks last as long as its transaction: call it again and again, each time in a
-- transaction of its own, until it returns nothing, or CALL maintain_all(). Raises HM001, HM003, HM004.
CREATE OR REPLACE FUNCTION hindsight.sweep(bank text, most integer DEFAULT 100)
  RETURNS TABLE (task text, affected bigint)
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
  SET enable_seqscan = off
AS $$
DECLARE
  opened constant hindsight.bank := _open_bank(bank, 'writer');
  room integer := most;
  batch integer;
  until constant timestamptz := clock_timestamp() + interval '20 milliseconds'; -- on a busy machine a hundred take long
BEGIN
  IF (most BETWEEN 1 AND 10000) IS NOT TRUE THEN
    RAISE EXCEPTION 'most must lie between 1 and 10000, got %', coalesce(most::text, 'NULL')
      USING ERRCODE = 'HM004', HINT = 'It is how many memories are locked at once: 100 by default.';
  END IF;
  FOREACH task IN ARRAY ARRAY['expired', 'not confirmed within 30 days', 'of little importance for 30 days',
                              'not recalled within 30 days, and of little value'] LOOP
    EXIT WHEN room = 0;
    affected := 0;
    LOOP
      batch := _retire(opened.bank_id, _due(opened.bank_id, task, least(room, 25)), 'archived', task);
      affected := affected + batch;
      room := CASE WHEN batch = 25 AND clock_timestamp() > until THEN 0 ELSE room - batch END;
      EXIT WHEN batch < 25 OR room = 0;
    END LOOP;
    IF affected > 0 THEN
      RETURN NEXT;
    END IF;
  END LOOP;
END
$$;
COMMENT ON FUNCTION hindsight.sweep(text, integer) IS
  'Puts away what is due: expired, pending for long, of little importance or never recalled. Returns what it did.';

-- _count_words: counts the words of a large bank, so that recall need not. Returns how many there are.
CREATE OR REPLACE FUNCTION hindsight._count_words(of_bank bigint)
  RETURNS bigint
  LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  words bigint := 0;
  counted integer;
  mean_length double precision;
BEGIN
  IF NOT pg_catalog.pg_try_advisory_xact_lock(pg_catalog.hashtextextended('hindsight.maintain', of_bank)) THEN
    RETURN 0; -- another one is at it
  END IF;
  SELECT count(*), avg(pg_catalog.length(m.document)) INTO counted, mean_length FROM hindsight.live_memory AS m WHERE m.bank_id = of_bank;
  DELETE FROM hindsight.word_statistics AS s WHERE s.bank_id = of_bank;
  IF counted > hindsight._exact_limit() THEN
    INSERT INTO hindsight.word_statistics (bank_id, word, documents)
      SELECT of_bank, s.word, s.ndoc
      FROM pg_catalog.ts_stat(pg_catalog.format('SELECT document FROM hindsight.live_memory WHERE bank_id = %s', of_bank)) AS s;
    GET DIAGNOSTICS words = ROW_COUNT;
    UPDATE hindsight.bank AS b SET documents = counted, average_length = mean_length WHERE b.bank_id = of_bank;
  ELSE
    UPDATE hindsight.bank AS b SET documents = NULL, average_length = NULL WHERE b.bank_id = of_bank AND b.documents IS NOT NULL;
  END IF;
  RETURN words;
END
$$;

-- maintain: seals the events of a bank (first: a transaction that has written opens no seal), counts its words if it is large and its entities, links
-- what is new and some of the others (refresh_links), clears desks of what has expired, and sweeps once (sweep), last, so that its locks are short. Returns what it did. Raises HM001, HM003.
CREATE OR REPLACE FUNCTION hindsight.maintain(bank text)
  RETURNS TABLE (task text, affected bigint)
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
  SET enable_seqscan = off
  SET hnsw.iterative_scan = strict_order
  SET hnsw.ef_search = 40
AS $$
DECLARE
  opened constant hindsight.bank := _open_bank(bank, 'writer');
BEGIN
  RETURN QUERY SELECT 'events sealed', _seal(opened.bank_id);
  RETURN QUERY SELECT 'words counted', _count_words(opened.bank_id);
  RETURN QUERY SELECT 'entities counted', _count_entities(opened.bank_id);
  RETURN QUERY SELECT 'memories linked', _refresh_links(opened, 500, with_round => true)::bigint;
  RETURN QUERY SELECT 'working values cleared', _clear_desks(opened.bank_id);
  RETURN QUERY SELECT s.task, s.affected FROM sweep(bank) AS s;
END
$$;
COMMENT ON FUNCTION hindsight.maintain(text) IS
  'Keeps a bank: seals its events, counts the words of a large one, links what is new, puts away what is due. Returns what it did.';

-- maintain_all: maintains every bank that the caller may write to, each batch in a transaction of its own; for pg_cron and psql:
--   SELECT cron.schedule('hindsight', '*/10 * * * *', 'CALL hindsight.maintain_all()');
-- Inside a transaction of the caller's it cannot commit: PostgreSQL refuses it at once (2D000), before anything is done.
CREATE OR REPLACE PROCEDURE hindsight.maintain_all()
  LANGUAGE plpgsql
AS $$
DECLARE
  name text;
  swept bigint;
BEGIN
  COMMIT;
  FOR name IN SELECT b.name FROM hindsight.bank AS b ORDER BY b.bank_id LOOP
    BEGIN
      PERFORM hindsight.maintain(name);
    EXCEPTION WHEN SQLSTATE 'HM003' THEN -- one that the caller may only read
      CONTINUE;
    END;
    COMMIT;
    LOOP
      SELECT sum(s.affected) INTO swept FROM hindsight.sweep(name) AS s;
      COMMIT;
      EXIT WHEN swept IS NULL;
    END LOOP;
  END LOOP;
END
$$;
COMMENT ON PROCEDURE hindsight.maintain_all() IS
  'Maintains every bank that the caller may write to, each batch in a transaction of its own: for pg_cron.';
