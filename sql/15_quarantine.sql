-- Quarantine: what the screen holds, for somebody to confirm or reject, and how right it was.

-- _is_held: whether this is why the screen holds a memory, and not that it was said with little confidence or stands on
-- something forgotten.
CREATE OR REPLACE FUNCTION hindsight._is_held(pending_reason text)
  RETURNS boolean
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN pending_reason LIKE hindsight._screened() || '%' OR pending_reason LIKE hindsight._contradicts_trusted() || '%';

-- quarantine: what is held because it looks planted, the newest first: why, where it says that it comes from, who stored it and
-- since when. pending lists that and the rest that waits. Raises HM001, HM004.
CREATE OR REPLACE FUNCTION hindsight.quarantine(bank text, most integer DEFAULT 100)
  RETURNS TABLE (memory_id uuid, content text, reason text, source text, author text, session_id text, held_at timestamptz)
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
  SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
  opened constant hindsight.bank := _open_bank(bank, 'reader');
BEGIN
  PERFORM _check_most(most);
  RETURN QUERY
    SELECT m.memory_id, m.content, m.pending_reason, m.source, e.principal, m.session_id, m.changed_at
    FROM current_memory AS m
    CROSS JOIN LATERAL (SELECT v.principal FROM event AS v WHERE v.bank_id = m.bank_id AND v.memory_id = m.memory_id
                        ORDER BY v.event_id LIMIT 1) AS e
    WHERE m.bank_id = opened.bank_id AND m.pending_reason IS NOT NULL AND _is_held(m.pending_reason)
      AND (m.expires_at IS NULL OR m.expires_at > statement_timestamp())
    ORDER BY m.changed_at DESC
    LIMIT most;
END
$$;
COMMENT ON FUNCTION hindsight.quarantine(text, integer) IS
  'What is held because it looks planted, with the reason, its source and author, and since when.';

-- quarantine_figures: how much was held, why and from whom, and what became of it: rejected (it was held rightly), confirmed by
-- somebody or said by a user (wrongly), waiting, or gone undecided. wrongly is the share of what was decided; NULL: nothing
-- was. Memories that were erased are not counted. Raises HM001.
CREATE OR REPLACE FUNCTION hindsight.quarantine_figures(bank text)
  RETURNS TABLE (
    reason text, source text, author text, held bigint, waiting bigint, rejected bigint, confirmed bigint, wrongly double precision)
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
  SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
  opened constant hindsight.bank := _open_bank(bank, 'reader');
BEGIN
  RETURN QUERY
    WITH holding AS MATERIALIZED ( -- why each was held first
      SELECT DISTINCT ON (e.memory_id) e.memory_id, e.event_id, e.after ->> 'pending_reason' AS reason
      FROM event AS e
      WHERE e.bank_id = opened.bank_id AND e.after ? 'pending_reason' AND _is_held(e.after ->> 'pending_reason')
      ORDER BY e.memory_id, e.event_id
    ),
    fate AS MATERIALIZED (
      SELECT h.reason, m.source, (SELECT v.principal FROM event AS v WHERE v.bank_id = m.bank_id AND v.memory_id = m.memory_id
                                  ORDER BY v.event_id LIMIT 1) AS author,
             CASE WHEN m.deleted_at IS NOT NULL AND d.action = 'rejected' THEN 'rejected'
                  WHEN d.action IN ('confirmed', 'merged') THEN 'confirmed'
                  WHEN _state(m, statement_timestamp()) = 'pending' THEN 'waiting' END AS fate
      FROM holding AS h
      JOIN memory AS m ON m.bank_id = opened.bank_id AND m.memory_id = h.memory_id
      LEFT JOIN LATERAL ( -- the last decision
        SELECT v.action FROM event AS v
        WHERE v.bank_id = opened.bank_id AND v.memory_id = h.memory_id AND v.event_id > h.event_id
          AND (v.action = 'rejected'
               OR (v.action IN ('confirmed', 'merged') AND v.before ? 'pending_reason' AND v.after ->> 'pending_reason' IS NULL))
        ORDER BY v.event_id DESC LIMIT 1) AS d ON true
    )
    SELECT f.reason, f.source, f.author, count(*), count(*) FILTER (WHERE f.fate = 'waiting'),
           count(*) FILTER (WHERE f.fate = 'rejected'), count(*) FILTER (WHERE f.fate = 'confirmed'),
           count(*) FILTER (WHERE f.fate = 'confirmed')::double precision
             / nullif(count(*) FILTER (WHERE f.fate IN ('rejected', 'confirmed')), 0)
    FROM fate AS f
    GROUP BY f.reason, f.source, f.author
    ORDER BY count(*) DESC, f.reason, f.source, f.author;
END
$$;
COMMENT ON FUNCTION hindsight.quarantine_figures(text) IS
  'How much was held because it looked planted, why and from whom, and how much of it was confirmed: held wrongly.';
