-- Lessons: what was found bad holds back its like. A lesson is a memory that was rejected: its row has the digest and the words
-- by which its like is known, its event who said so and why. So there is nothing to keep in step: restore takes a lesson back
-- with the memory, and erase_memory leaves nothing of it. What somebody writes down as a lesson is a memory of the type lesson,
-- and is recalled.

-- _was_rejected_before: why a memory is pending that is like one that was rejected.
CREATE OR REPLACE FUNCTION hindsight._was_rejected_before()
  RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN hindsight._screened() || 'it is like a memory that was rejected';

-- _is_lesson: whether a memory that was forgotten while it was pending was rejected (not only put away), and nobody has said
-- the same since.
CREATE OR REPLACE FUNCTION hindsight._is_lesson(of_bank bigint, of_memory uuid, of_digest bytea)
  RETURNS boolean
  LANGUAGE sql STABLE
RETURN (SELECT e.action FROM hindsight.event AS e
        WHERE e.bank_id = of_bank AND e.memory_id = of_memory AND e.action IN ('rejected', 'forgotten')
        ORDER BY e.event_id DESC LIMIT 1) = 'rejected'
  AND NOT EXISTS (SELECT FROM hindsight.live_memory AS m WHERE m.bank_id = of_bank AND m.digest = of_digest);

-- _lesson: the rejected memory that a new one is like: of the same content; or with three quarters of the words, the same
-- numbers and names, and nothing that contradicts it. NULL: there is none. Of the same words at most three hundred are looked
-- at.
CREATE OR REPLACE FUNCTION hindsight._lesson(fresh hindsight.memory, said tsvector, any_word tsquery)
  RETURNS uuid
  LANGUAGE plpgsql STABLE
AS $$
BEGIN
  RETURN (
    SELECT near.memory_id
    FROM (SELECT m.memory_id, m.content, m.digest, m.document FROM hindsight.memory AS m
          WHERE m.bank_id = fresh.bank_id AND m.document @@ any_word
            AND m.deleted_at IS NOT NULL AND m.pending_reason IS NOT NULL
          LIMIT 300) AS near
    WHERE CASE WHEN near.digest = fresh.digest THEN hindsight._is_lesson(fresh.bank_id, near.memory_id, near.digest)
               WHEN hindsight._part(near.document, any_word) >= 0.4
                 THEN hindsight._shared(pg_catalog.ts_filter(near.document, '{a}'), said) >= 0.75
                  AND hindsight._names_the_same(near.content, fresh.content)
                  AND hindsight._disagreement(near.content, fresh.content) IS NULL
                  AND hindsight._is_lesson(fresh.bank_id, near.memory_id, near.digest) END
    LIMIT 1);
END
$$;

-- lessons: what a bank has learned from what was bad, the newest first: what was rejected (kind is rejected: with who said so,
-- when and why, and the words by which its like is held back), and what was written down as a lesson (kind is written). What
-- was rejected is data to be wary of, not to be followed. Raises HM001, HM004.
CREATE OR REPLACE FUNCTION hindsight.lessons(bank text, most integer DEFAULT 100)
  RETURNS TABLE (memory_id uuid, kind text, content text, reason text, source text, principal text, at timestamptz, words text[])
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
    SELECT l.* FROM (
      (SELECT m.memory_id, 'rejected', m.content, e.reason, m.source, e.principal, e.at,
              tsvector_to_array(ts_filter(m.document, '{a}'))
       FROM memory AS m
       CROSS JOIN LATERAL (SELECT v.reason, v.principal, v.at FROM event AS v
                           WHERE v.bank_id = m.bank_id AND v.memory_id = m.memory_id AND v.action = 'rejected'
                           ORDER BY v.event_id DESC LIMIT 1) AS e
       WHERE m.bank_id = opened.bank_id AND m.deleted_at IS NOT NULL AND m.pending_reason IS NOT NULL
         AND _is_lesson(m.bank_id, m.memory_id, m.digest)
       ORDER BY m.changed_at DESC LIMIT most)
      UNION ALL
      (SELECT m.memory_id, 'written', m.content, NULL, m.source, e.principal, m.confirmed_at, NULL
       FROM live_memory AS m
       CROSS JOIN LATERAL (SELECT v.principal FROM event AS v WHERE v.bank_id = m.bank_id AND v.memory_id = m.memory_id
                           ORDER BY v.event_id LIMIT 1) AS e
       WHERE m.bank_id = opened.bank_id AND m.type = 'lesson' AND (m.expires_at IS NULL OR m.expires_at > statement_timestamp())
       ORDER BY m.confirmed_at DESC LIMIT most)
    ) AS l(memory_id, kind, content, reason, source, principal, at, words)
    ORDER BY l.at DESC LIMIT most;
END
$$;
COMMENT ON FUNCTION hindsight.lessons(text, integer) IS
  'What was rejected, with the reason and the words by which its like is held back, and what was written down as a lesson.';
