-- Seals: the trail of events in batches, each with the digest of its events and of the seal before, so that a gap or an edit shows.
-- Writers wait for nobody. An event that is committed late has a low number all the same, so a range of events is sealed only when
-- nobody can add to it any more: a seal is opened, which notes how far it reaches and the number of its own transaction, and closed
-- when every transaction before that one has ended.

-- _seal_events: how many events a seal holds, and their digest: of the seal before, then of a line for each event, whatever the
-- session's time zone. previous is NULL for the first seal.
CREATE OR REPLACE FUNCTION hindsight._seal_events(
  of_bank bigint, after_event bigint, last_event bigint, previous bytea, OUT events integer, OUT digest bytea)
  LANGUAGE sql STABLE
AS $$
  SELECT count(*),
         pg_catalog.sha256(coalesce(previous, '') || pg_catalog.convert_to(coalesce(pg_catalog.string_agg(
           pg_catalog.jsonb_build_array(e.event_id, extract(epoch FROM e.at)::text, e.principal, e.action, e.memory_id, e.request_id,
                                        pg_catalog.encode(e.digest, 'hex'))::text, E'\n' ORDER BY e.event_id), ''), 'UTF8'))
  FROM hindsight.event AS e
  WHERE e.bank_id = of_bank AND e.event_id > coalesce(after_event, -9223372036854775808) AND e.event_id <= _seal_events.last_event
$$;

-- _seal: seals the events of a bank that nobody can add to any more, up to a million, at most 10,000 a seal. Returns how many.
-- A transaction that has written before it calls this opens no seal: its number is too low to wait for.
-- An event's transaction has its number before the event has one (_leave_event), and the numbers of events are drawn one by one.
CREATE OR REPLACE FUNCTION hindsight._seal(of_bank bigint)
  RETURNS bigint
  LANGUAGE plpgsql VOLATILE
  SET enable_seqscan = off
AS $$
DECLARE
  newest bigint;
  has_no_number boolean; -- so that it will be higher than those of all who have left an event up to the newest
  previous hindsight.event_seal;
  seal hindsight.event_seal;
  upto bigint;
  sealed bigint := 0;
BEGIN
  IF NOT pg_catalog.pg_try_advisory_xact_lock(pg_catalog.hashtextextended('hindsight.seal', of_bank)) THEN
    RETURN 0; -- another one is at it
  END IF;
  newest := (SELECT e.event_id FROM hindsight.event AS e WHERE e.bank_id = of_bank ORDER BY e.event_id DESC LIMIT 1);
  has_no_number := pg_catalog.pg_current_xact_id_if_assigned() IS NULL;
  FOR attempt IN 1..100 LOOP
    SELECT s.* INTO previous FROM hindsight.event_seal AS s
      WHERE s.bank_id = of_bank AND s.digest IS NOT NULL ORDER BY s.seal_id DESC LIMIT 1;
    SELECT s.* INTO seal FROM hindsight.event_seal AS s
      WHERE s.bank_id = of_bank AND s.digest IS NULL ORDER BY s.seal_id LIMIT 1;
    IF NOT FOUND THEN
      EXIT WHEN NOT has_no_number OR newest IS NULL OR newest <= previous.last_event;
      INSERT INTO hindsight.event_seal (bank_id, seal_id, last_event, settles_at)
        VALUES (of_bank, coalesce(previous.seal_id, 0) + 1, newest, pg_catalog.pg_current_xact_id())
        RETURNING * INTO seal;
    END IF;
    -- Whoever sees a seal that another transaction has opened sees that one's number as past, unless the seal came from another
    -- cluster, by a dump: then nothing of that time is in flight.
    EXIT WHEN pg_catalog.pg_snapshot_xmin(pg_catalog.pg_current_snapshot()) < seal.settles_at
      AND (seal.settles_at < pg_catalog.pg_snapshot_xmax(pg_catalog.pg_current_snapshot())
           OR seal.settles_at IS NOT DISTINCT FROM pg_catalog.pg_current_xact_id_if_assigned());
    upto := coalesce((SELECT e.event_id FROM hindsight.event AS e
                      WHERE e.bank_id = of_bank AND e.event_id > coalesce(previous.last_event, -9223372036854775808)
                        AND e.event_id < seal.last_event
                      ORDER BY e.event_id OFFSET 9999 LIMIT 1), seal.last_event);
    UPDATE hindsight.event_seal AS s
      SET last_event = upto, events = d.events, digest = d.digest, sealed_at = pg_catalog.clock_timestamp()
      FROM hindsight._seal_events(of_bank, previous.last_event, upto, previous.digest) AS d
      WHERE s.bank_id = of_bank AND s.seal_id = seal.seal_id
      RETURNING sealed + s.events INTO sealed;
    IF upto < seal.last_event THEN
      INSERT INTO hindsight.event_seal (bank_id, seal_id, last_event, settles_at)
        VALUES (of_bank, seal.seal_id + 1, seal.last_event, seal.settles_at);
    END IF;
  END LOOP;
  RETURN sealed;
END
$$;

-- verify_events: what is wrong with a bank's trail of events; no row: nothing. Each seal and each event's digest is computed anew.
--   event changed: its content does not match its digest;
--   content gone: without an erasure (erase_memory) that names the event;
--   seal does not match: an event of its range was changed, added or taken away, or the seal was;
--   missing seal: the chain has a gap.
-- Stable: runs on a hot standby. Raises HM001.
CREATE OR REPLACE FUNCTION hindsight.verify_events(bank text)
  RETURNS TABLE (problem text, event_id bigint, seal_id integer, detail text)
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
  SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
  opened constant hindsight.bank := _open_bank(bank, 'reader');
  previous event_seal;
  seal event_seal;
  counted integer;
  computed bytea;
BEGIN
  RETURN QUERY
    WITH erased AS MATERIALIZED ( -- the numbers of the events whose content went by an erasure
      SELECT number FROM event AS e
      CROSS JOIN LATERAL jsonb_array_elements(
        CASE jsonb_typeof(e.after -> 'events') WHEN 'array' THEN e.after -> 'events' ELSE '[]' END) AS number
      WHERE e.bank_id = opened.bank_id AND e.action = 'erased'
    )
    SELECT CASE WHEN e.salt IS NULL AND num_nonnulls(e.reason, e.before, e.after) = 0 THEN 'content gone' ELSE 'event changed' END,
           e.event_id, NULL::integer,
           format('%s by %s at %s, of %s', e.action, e.principal, e.at, coalesce('memory ' || e.memory_id, 'the bank'))
    FROM event AS e
    WHERE e.bank_id = opened.bank_id
      AND CASE WHEN e.salt IS NULL
            THEN num_nonnulls(e.reason, e.before, e.after) > 0 OR to_jsonb(e.event_id) NOT IN (SELECT number FROM erased)
            ELSE e.digest <> _event_digest(e.salt, e.reason, e.before, e.after) END
    ORDER BY e.event_id;

  FOR seal IN
    SELECT s.* FROM event_seal AS s WHERE s.bank_id = opened.bank_id AND s.digest IS NOT NULL ORDER BY s.seal_id
  LOOP
    IF seal.seal_id <> coalesce(previous.seal_id, 0) + 1 THEN
      RETURN QUERY SELECT 'missing seal', NULL::bigint, coalesce(previous.seal_id, 0) + 1,
        format('the events after %s up to %s are not sealed, though later ones are', coalesce(previous.last_event, 0),
               seal.last_event);
    ELSE
      SELECT d.events, d.digest INTO counted, computed
        FROM _seal_events(opened.bank_id, previous.last_event, seal.last_event, previous.digest) AS d;
      IF (counted, computed) IS DISTINCT FROM (seal.events, seal.digest) THEN
        RETURN QUERY SELECT 'seal does not match', NULL::bigint, seal.seal_id,
          format('of the events after %s up to %s: %s were sealed, %s are there%s', coalesce(previous.last_event, 0),
                 seal.last_event, seal.events, counted,
                 CASE WHEN counted = seal.events THEN ', and one of them or the seal before differs' END);
      END IF;
    END IF;
    previous := seal;
  END LOOP;
END
$$;
COMMENT ON FUNCTION hindsight.verify_events(text) IS
  'What is wrong with a bank''s trail of events: changes, gaps, broken seals. No row: nothing.';
