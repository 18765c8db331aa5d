-- The past as rows: what a bank held at a moment, and what was learned, corrected and forgotten between two.

-- _as_memory: an earlier version as the row that it was, for what is written once for rows of memory. Inlined.
CREATE OR REPLACE FUNCTION hindsight._as_memory(v hindsight.memory_version)
  RETURNS hindsight.memory
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN ROW(
  v.bank_id, v.memory_id, v.version, v.content, v.type, v.tags, v.entities, v.slot, v.context, v.session_id, v.source, v.confidence,
  v.importance, v.metadata, v.language, v.occurred_at, v.created_at, v.confirmed_at, v.confirmations, v.changed_at, v.expires_at,
  v.completed_at, v.deleted_at, v.superseded_by, v.valid_to, v.archived_at, v.pending_reason, v.model_id, v.embedding, v.digest,
  v.document)::hindsight.memory;

-- state: the memories of a bank as they were at a moment (now, when it is left out), with the values and the state of then; the
-- newest first. states are those that are wanted: live by default; pending, expired, superseded, archived, deleted by name.
-- Raises HM001, HM004 (unknown state, time out of range).
CREATE OR REPLACE FUNCTION hindsight.state(bank text, as_of timestamptz DEFAULT NULL, states text[] DEFAULT '{live}')
  RETURNS SETOF hindsight.memory_record
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
  SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
  opened constant hindsight.bank := _open_bank(bank, 'reader');
  at constant timestamptz := coalesce(state.as_of, statement_timestamp());
  wanted constant text[] := coalesce(nullif(state.states, '{}'), '{live}');
  known constant text[] := '{live,pending,expired,superseded,archived,deleted}';
BEGIN
  PERFORM _check_time('as_of', state.as_of);
  IF NOT wanted <@ known THEN
    RAISE EXCEPTION 'unknown state %', (SELECT coalesce(quote_literal(w), 'NULL') FROM unnest(wanted) AS w
                                        WHERE (w = ANY (known)) IS NOT TRUE LIMIT 1)
      USING ERRCODE = 'HM004', HINT = 'States are ' || array_to_string(known, ', ') || '.';
  END IF;
  RETURN QUERY
    SELECT r.*
    FROM (SELECT shown.*
          FROM memory AS m CROSS JOIN LATERAL _shown(m, at) AS shown
          WHERE m.bank_id = opened.bank_id AND m.changed_at <= coalesce(state.as_of, m.changed_at)
          UNION ALL
          SELECT shown.*
          FROM memory_version AS v CROSS JOIN LATERAL _shown(_as_memory(v), at) AS shown
          WHERE state.as_of IS NOT NULL AND v.bank_id = opened.bank_id AND v.changed_at <= state.as_of AND state.as_of < v.believed_until
         ) AS r
    WHERE r.state = ANY (wanted)
    ORDER BY coalesce(r.occurred_at, r.created_at) DESC, r.memory_id;
END
$$;
COMMENT ON FUNCTION hindsight.state(text, timestamptz, text[]) IS
  'The memories of a bank as they were at a moment, with the state of then; those that were live, or of the states that are named.';

-- diff: what was learned, corrected and forgotten after one moment, up to another (now, when it is left out), in the order of time.
-- It explains how state(since) became state(until). change is one of
--   learned: believed from the start; or (related_id) what a value was before the one that is known already;
--   corrected: content instead of previous, of the same memory, or (related_id) of the memory whose place this one took;
--   believed: what was pending, or a guess; doubted: pending again; completed: a todo;
--   forgotten, restored; expired: its time was over, or had been when it was restored; archived: put away by maintain.
-- Left out: what was confirmed or skipped, what becomes of a pending memory until it is believed, and what changes no content; history
-- has it. What was forgotten is shown: forgetting can be taken back. What was erased is not there; what it had taken the place of
-- went without a successor, as if it was forgotten. Two indexes by time answer, whatever
-- the length of the history. Raises HM001, HM004 (no since, since after until, out of range).
CREATE OR REPLACE FUNCTION hindsight.diff(bank text, since timestamptz, until timestamptz DEFAULT NULL)
  RETURNS TABLE (at timestamptz, change text, memory_id uuid, content text, previous text, related_id uuid, reason text)
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
  SET enable_seqscan = off
  SET jit = off
AS $$
#variable_conflict use_column
DECLARE
  opened constant hindsight.bank := _open_bank(bank, 'reader');
  last_change constant timestamptz := coalesce(diff.until, 'infinity');
  last_expiry constant timestamptz := coalesce(diff.until, statement_timestamp());
BEGIN
  PERFORM _check_time('since', diff.since), _check_time('until', diff.until);
  IF (diff.since <= last_change) IS NOT TRUE THEN
    RAISE EXCEPTION 'since must come before until, got % and %', coalesce(diff.since::text, 'NULL'), coalesce(diff.until::text, 'now')
      USING ERRCODE = 'HM004', HINT = 'For example since => now() - interval ''7 days''.';
  END IF;
  RETURN QUERY
    WITH version AS ( -- those that began between the two moments
      SELECT m.memory_id, m.version, m.changed_at, m.content, m.type, m.superseded_by, m.valid_to, m.completed_at,
             m.pending_reason, _state(m, m.changed_at) AS state
      FROM memory AS m
      WHERE m.bank_id = opened.bank_id AND m.changed_at > diff.since AND m.changed_at <= last_change
      UNION ALL
      SELECT v.memory_id, v.version, v.changed_at, v.content, v.type, v.superseded_by, v.valid_to, v.completed_at,
             v.pending_reason, _state(_as_memory(v), v.changed_at)
      FROM memory_version AS v
      WHERE v.bank_id = opened.bank_id AND v.changed_at > diff.since AND v.changed_at <= last_change
    ),
    step AS ( -- each with the version that it replaced
      SELECT n.*, was.content AS old_content, CASE
          WHEN was.state IS NULL THEN
            CASE WHEN n.state = 'live' OR (n.state = 'superseded' AND n.valid_to IS NOT NULL) THEN 'learned' END
          WHEN was.state = 'deleted' THEN CASE WHEN n.state <> 'deleted' AND n.pending_reason IS NULL THEN 'restored' END
          WHEN n.state = 'deleted' THEN CASE WHEN was.pending_reason IS NULL THEN 'forgotten' END
          WHEN was.state = 'superseded' THEN NULL
          WHEN n.state = 'superseded' THEN CASE WHEN was.state <> 'pending' THEN 'superseded' END
          WHEN n.state = 'archived' THEN CASE WHEN was.state NOT IN ('archived', 'expired', 'pending') THEN 'archived' END
          WHEN was.state = 'live' AND n.state = 'pending' THEN 'doubted'
          WHEN n.state = 'live' AND (was.state = 'pending' OR (was.type = 'hypothesis' AND n.type <> 'hypothesis')) THEN 'believed'
          WHEN n.completed_at IS NOT NULL AND was.completed_at IS NULL THEN 'completed'
          WHEN n.state = 'live' AND n.content <> was.content THEN 'corrected'
        END AS change
      FROM version AS n
      LEFT JOIN LATERAL (
        SELECT v.content, v.type, v.completed_at, v.pending_reason, _state(_as_memory(v), n.changed_at) AS state FROM memory_version AS v
        WHERE v.bank_id = opened.bank_id AND v.memory_id = n.memory_id AND v.version = n.version - 1) AS was ON true
    ),
    line AS MATERIALIZED (
      SELECT s.changed_at AS at, s.change, s.memory_id, s.content, CASE WHEN s.content <> s.old_content THEN s.old_content END AS previous,
             CASE WHEN s.change IN ('learned', 'superseded') THEN s.superseded_by END AS related_id
      FROM step AS s
      WHERE s.change IS NOT NULL
      UNION ALL
      SELECT s.changed_at, 'expired', s.memory_id, s.content, NULL, NULL
      FROM step AS s
      WHERE s.change = 'restored' AND s.state = 'expired'
      UNION ALL -- what was over by the clock, whether it has been put away since or not
      SELECT m.expires_at, 'expired', m.memory_id, m.content, NULL, NULL
      FROM live_memory AS m
      WHERE m.bank_id = opened.bank_id AND m.expires_at > diff.since AND m.expires_at <= last_expiry AND m.expires_at >= m.changed_at
      UNION ALL
      SELECT v.expires_at, 'expired', v.memory_id, v.content, NULL, NULL
      FROM memory_version AS v
      WHERE v.bank_id = opened.bank_id AND v.expires_at > diff.since AND v.expires_at <= last_expiry
        AND v.expires_at >= v.changed_at AND v.expires_at < v.believed_until
        AND v.deleted_at IS NULL AND v.superseded_by IS NULL AND v.archived_at IS NULL AND v.pending_reason IS NULL
    )
    SELECT l.at, CASE told.change WHEN 'superseded' THEN 'corrected' ELSE told.change END,
           CASE told.change WHEN 'superseded' THEN l.related_id ELSE l.memory_id END,
           CASE told.change WHEN 'superseded' THEN newer.content ELSE l.content END,
           CASE told.change WHEN 'superseded' THEN l.content ELSE l.previous END,
           CASE WHEN told.change = 'superseded' THEN l.memory_id WHEN told.change = l.change THEN l.related_id END,
           CASE WHEN told.change = l.change THEN event.reason ELSE 'what took its place was erased' END
    FROM line AS l
    LEFT JOIN LATERAL ( -- what took its place, as it was then
      SELECT n.content
      FROM (SELECT v.version, v.content FROM memory_version AS v
            WHERE v.bank_id = opened.bank_id AND v.memory_id = l.related_id AND v.believed_until > l.at
            UNION ALL
            SELECT m.version, m.content FROM memory AS m WHERE m.bank_id = opened.bank_id AND m.memory_id = l.related_id) AS n
      WHERE l.change = 'superseded'
      ORDER BY n.version LIMIT 1) AS newer ON true
    CROSS JOIN LATERAL (SELECT CASE WHEN l.change = 'superseded' AND newer.content IS NULL THEN 'forgotten' ELSE l.change END) AS told(change)
    LEFT JOIN LATERAL (
      SELECT e.reason FROM event AS e
      WHERE l.change <> 'expired' AND e.bank_id = opened.bank_id AND e.memory_id = l.memory_id AND e.at >= l.at
        AND e.action NOT IN ('linked', 'unlinked', 'skipped')
      ORDER BY e.event_id LIMIT 1) AS event ON true
    WHERE NOT (l.change = 'learned' AND EXISTS ( -- one line for a correction: the new memory has taken the place of another
      SELECT FROM line AS o WHERE o.change = 'superseded' AND o.related_id = l.memory_id AND o.at <= l.at))
    ORDER BY l.at, 3, told.change = 'expired'; -- what is restored when its time was over
END
$$;
COMMENT ON FUNCTION hindsight.diff(text, timestamptz, timestamptz) IS
  'What a bank learned, corrected and forgot after one moment up to another, in the order of time, with what was said before.';
