-- Archives: old months of turns are put into files by whoever calls this, a file for each bank and month; only when every turn of the
-- month is in a file, as proven by a checksum, is the month's partition dropped. For operators: a month belongs to all banks.

-- _month: the first day of a month and of the next, in UTC.
CREATE OR REPLACE FUNCTION hindsight._month(month date, OUT since timestamptz, OUT until timestamptz)
  LANGUAGE plpgsql STABLE
AS $$
BEGIN
  IF NOT month BETWEEN '1970-01-01' AND '9999-01-01' THEN
    RAISE EXCEPTION 'month must lie between 1970 and 9999, got %', month
      USING ERRCODE = 'HM004', HINT = 'Any day of the month: 2026-03-01.';
  END IF;
  since := pg_catalog.date_trunc('month', month::timestamp) AT TIME ZONE 'UTC';
  until := (pg_catalog.date_trunc('month', month::timestamp) + interval '1 month') AT TIME ZONE 'UTC';
END
$$;

-- _turn_line: a turn as it stands in an archive. Its times depend on the session's zone: who calls this has set UTC.
CREATE OR REPLACE FUNCTION hindsight._turn_line(t hindsight.turn)
  RETURNS text
  LANGUAGE sql STABLE
RETURN (pg_catalog.to_jsonb(t) - 'bank_id')::text;

-- _line_sum: what a line adds to the checksum of a file: the first 60 bits of its SHA-256. A sum does not depend on the order.
CREATE OR REPLACE FUNCTION hindsight._line_sum(line text)
  RETURNS bigint
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN ('x' || pg_catalog.left(pg_catalog.encode(pg_catalog.sha256(pg_catalog.convert_to(line, 'UTF8')), 'hex'), 15))::bit(60)::bigint;

-- _row_versions: a number that is another once a turn of the time is added, changed or gone: of each row, where it lies and who wrote it.
-- A tenth of the work of a checksum, for the moment in which everybody waits.
CREATE OR REPLACE FUNCTION hindsight._row_versions(since timestamptz, until timestamptz)
  RETURNS numeric
  LANGUAGE sql STABLE
RETURN (SELECT sum(pg_catalog.hashtextextended(t.ctid::text, t.xmin::text::bigint)) FROM hindsight.turn AS t
        WHERE t.logged_at >= _row_versions.since AND t.logged_at < _row_versions.until);

-- turn_months: the months that have turns, by bank: how many, how many of them wait to be distilled, and whether the month is over.
-- before: only months before this one's. Raises HM003 (not an operator).
CREATE OR REPLACE FUNCTION hindsight.turn_months(before date DEFAULT NULL)
  RETURNS TABLE (month date, bank text, turns bigint, waiting bigint, is_over boolean)
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
  SET TimeZone = 'UTC'
AS $$
#variable_conflict use_column
BEGIN
  PERFORM _check_operator();
  RETURN QUERY
    SELECT c.month, b.name, c.turns, CASE WHEN b.distil_mode = 'off' THEN 0 ELSE c.waiting END, (_month(c.month)).until <= clock_timestamp()
    FROM (SELECT date_trunc('month', t.logged_at)::date AS month, t.bank_id, count(*) AS turns,
                 count(*) FILTER (WHERE t.distilled_at IS NULL) AS waiting
          FROM turn AS t WHERE turn_months.before IS NULL OR t.logged_at < (_month(turn_months.before)).since
          GROUP BY 1, 2) AS c
    JOIN bank AS b ON b.bank_id = c.bank_id
    ORDER BY c.month, b.name;
END
$$;
COMMENT ON FUNCTION hindsight.turn_months(date) IS 'The months that have turns, by bank: how many, and how many are not distilled yet. For operators.';

-- month_lines: the turns of a bank that were logged in a month (UTC), a JSON object each, by session and sequence: at most so many, after
-- the one that is named. A file of such lines is what archive_month wants. Raises HM001, HM003 (not an operator), HM004.
CREATE OR REPLACE FUNCTION hindsight.month_lines(
  bank text, month date, after_session text DEFAULT '', after_sequence integer DEFAULT 0, most integer DEFAULT 1000)
  RETURNS TABLE (session_id text, sequence integer, line text)
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
  SET TimeZone = 'UTC'
  SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
  opened hindsight.bank;
BEGIN
  PERFORM _check_operator(), _check_most(month_lines.most);
  opened := _open_bank(bank, 'owner');
  RETURN QUERY
    SELECT t.session_id, t.sequence, _turn_line(t) FROM turn AS t
    WHERE t.bank_id = opened.bank_id AND t.logged_at >= (_month(month_lines.month)).since AND t.logged_at < (_month(month_lines.month)).until
      AND (t.session_id, t.sequence) > (coalesce(month_lines.after_session, ''), coalesce(month_lines.after_sequence, 0))
    ORDER BY t.session_id, t.sequence LIMIT month_lines.most;
END
$$;
COMMENT ON FUNCTION hindsight.month_lines(text, date, text, integer, integer) IS
  'The turns of a bank and a month as lines of an archive, page by page. For operators.';

-- archive_month: drops a month's turns, of all banks, once they are in files. files: a JSON array with {bank, location, digest, turns,
-- checksum} for each bank that has turns in the month: digest is the file's SHA-256 in hexadecimal, checksum the sum of the first 60
-- bits of the SHA-256 of each line. Each bank's turns are counted and summed again, and must agree; then, under a lock that nobody
-- reads or logs turns under, it is made sure that none of them was changed since. Memories that were made of them still say so (sources).
-- Raises HM003 (not an operator), HM004 (no such month, it is not over, or files that are none), HM006 (turns that are not distilled, or
-- are in no file), 55P03 (the lock was not to be had within five seconds: try again).
CREATE OR REPLACE FUNCTION hindsight.archive_month(month date, files jsonb)
  RETURNS TABLE (bank text, turns bigint, location text)
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
  SET TimeZone = 'UTC'
  SET lock_timeout = '5s'
AS $$
#variable_conflict use_column
DECLARE
  since constant timestamptz := (_month(archive_month.month)).since;
  name constant text := 'turn_' || to_char(since, 'YYYY_MM');
  until constant timestamptz := (_month(archive_month.month)).until;
  versions numeric;
  one record;
BEGIN
  PERFORM _check_operator();
  IF until > clock_timestamp() THEN
    RAISE EXCEPTION 'the month % is not over', to_char(since, 'YYYY-MM') USING ERRCODE = 'HM004', HINT = 'Months are archived from their end on, in UTC.';
  END IF;
  IF jsonb_typeof(archive_month.files) IS DISTINCT FROM 'array' THEN
    RAISE EXCEPTION 'files must be a JSON array, got %', coalesce('a JSON ' || jsonb_typeof(archive_month.files), 'NULL')
      USING ERRCODE = 'HM004', HINT = 'A {bank, location, digest, turns, checksum} for each bank with turns in the month; hindsight archive makes them.';
  END IF;
  IF current_setting('transaction_isolation') <> 'read committed' THEN -- it would not see what others have logged
    RAISE EXCEPTION 'archive_month does not run in a transaction that is %', current_setting('transaction_isolation')
      USING ERRCODE = 'HM004', HINT = 'Call it in one that is READ COMMITTED, the default.';
  END IF;
  PERFORM pg_advisory_xact_lock(hashtextextended('hindsight.archive', 0)); -- one at a time
  IF to_regclass('hindsight.' || name) IS NULL THEN
    RAISE EXCEPTION 'there are no turns of the month %', to_char(since, 'YYYY-MM')
      USING ERRCODE = 'HM004', HINT = 'SELECT * FROM hindsight.turn_months() lists the months.';
  END IF;
  versions := _row_versions(since, until);
  FOR one IN
    SELECT b.bank_id, b.name, b.distil_mode, f.location, f.digest, f.turns AS said, f.checksum AS said_sum, c.turns, c.checksum, c.waiting
    FROM (SELECT t.bank_id, count(*) AS turns, sum(_line_sum(_turn_line(t))) AS checksum,
                 count(*) FILTER (WHERE t.distilled_at IS NULL) AS waiting
          FROM turn AS t WHERE t.logged_at >= since AND t.logged_at < until GROUP BY t.bank_id) AS c
    JOIN bank AS b ON b.bank_id = c.bank_id
    FULL JOIN jsonb_to_recordset(archive_month.files) AS f(bank text, location text, digest text, turns bigint, checksum numeric) ON f.bank = b.name
    ORDER BY b.name
  LOOP
    IF one.bank_id IS NULL OR coalesce(one.location, '') = '' OR (one.digest ~ '^[0-9a-f]{64}$') IS NOT TRUE
       OR (one.turns, one.checksum) IS DISTINCT FROM (one.said, one.said_sum) THEN
      RAISE EXCEPTION 'the files do not hold the turns of the month %: bank % has %, its file %', to_char(since, 'YYYY-MM'),
          coalesce(quote_literal(one.name), 'of ' || coalesce(quote_literal(one.location), 'no name')), coalesce(one.turns, 0),
          coalesce(one.said::text, 'is missing') || CASE WHEN one.turns = one.said THEN ', with other contents, or no digest' ELSE '' END
        USING ERRCODE = 'HM006', HINT = 'Nothing is dropped. Move the file away and write it anew: hindsight archive does.';
    ELSIF one.waiting > 0 AND one.distil_mode <> 'off' THEN
      RAISE EXCEPTION '% turns of bank % in the month % are not distilled', one.waiting, quote_literal(one.name), to_char(since, 'YYYY-MM')
        USING ERRCODE = 'HM006', HINT = 'Let the worker do it first; SELECT * FROM hindsight.queue() tells what waits.';
    END IF;
    INSERT INTO turn_archive (bank_id, month, location, turns, digest)
      VALUES (one.bank_id, since::date, one.location, one.turns, decode(one.digest, 'hex'))
      ON CONFLICT ON CONSTRAINT turn_archive_pkey DO UPDATE SET turns = excluded.turns, digest = excluded.digest, archived_at = excluded.archived_at;
    PERFORM _leave_event(one.bank_id, 'archive_month', NULL, NULL, NULL,
                         jsonb_build_object('month', since::date, 'turns', one.turns, 'location', one.location, 'digest', one.digest));
    bank := one.name;
    turns := one.turns;
    location := one.location;
    RETURN NEXT;
  END LOOP;
  INSERT INTO session_archive (bank_id, session_id, month, sequences, turn_keys)
    SELECT t.bank_id, t.session_id, since::date, array_agg(t.sequence ORDER BY t.sequence), array_agg(_turn_key(t.turn_id) ORDER BY t.sequence)
    FROM turn AS t WHERE t.logged_at >= since AND t.logged_at < until GROUP BY t.bank_id, t.session_id
    ON CONFLICT DO NOTHING; -- of turns that came back from a file: it knows them all
  UPDATE session AS s SET waiting = s.waiting - w.waiting -- of banks that do not distil
    FROM (SELECT t.bank_id, t.session_id, count(*) AS waiting FROM turn AS t
          WHERE t.logged_at >= since AND t.logged_at < until AND t.distilled_at IS NULL GROUP BY t.bank_id, t.session_id) AS w
    WHERE s.bank_id = w.bank_id AND s.session_id = w.session_id;
  LOCK TABLE ONLY hindsight.turn IN ACCESS EXCLUSIVE MODE;
  IF _row_versions(since, until) IS DISTINCT FROM versions THEN
    RAISE EXCEPTION 'turns of the month % were changed meanwhile', to_char(since, 'YYYY-MM')
      USING ERRCODE = 'HM006', HINT = 'Nothing is dropped. Run hindsight archive again.';
  END IF;
  EXECUTE format('ALTER TABLE hindsight.turn DETACH PARTITION hindsight.%I', name);
  EXECUTE format('DROP TABLE hindsight.%I', name);
END
$$;
COMMENT ON FUNCTION hindsight.archive_month(date, jsonb) IS
  'Drops a month of turns once a file of each bank holds them, as counted and summed under a lock. For operators.';
