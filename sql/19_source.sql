-- Sources: the turns that a memory was distilled from.

-- sources: the turns that a memory stands on, as they were said, the oldest first. One that was put into a file (archive_month) is
-- told by its place, and by where the file is. Raises HM001, HM002, HM003.
CREATE OR REPLACE FUNCTION hindsight.sources(bank text, memory_id uuid)
  RETURNS TABLE (session_id text, sequence integer, role text, content text, tool_calls jsonb, occurred_at timestamptz, archived_in text[])
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
  SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
  opened constant hindsight.bank := _open_bank(bank, 'reader');
BEGIN
  PERFORM FROM memory AS m WHERE m.bank_id = opened.bank_id AND m.memory_id = sources.memory_id AND m.deleted_at IS NULL;
  IF NOT FOUND THEN
    PERFORM _raise_unknown_memory(bank, sources.memory_id);
  END IF;
  RETURN QUERY
    SELECT c.session_id, c.sequence, t.role, t.content, t.tool_calls, t.occurred_at,
           CASE WHEN t.sequence IS NULL THEN ARRAY(
             SELECT f.location FROM session_archive AS a JOIN turn_archive AS f ON f.bank_id = a.bank_id AND f.month = a.month
             WHERE a.bank_id = c.bank_id AND a.session_id = c.session_id AND array_position(a.sequences, c.sequence) IS NOT NULL
             ORDER BY f.archived_at) END
    FROM memory_turn AS c
    LEFT JOIN turn AS t ON t.bank_id = c.bank_id AND t.session_id = c.session_id AND t.sequence = c.sequence
    WHERE c.bank_id = opened.bank_id AND c.memory_id = sources.memory_id
    ORDER BY t.occurred_at NULLS FIRST, c.session_id, c.sequence;
END
$$;
COMMENT ON FUNCTION hindsight.sources(text, uuid) IS 'The turns that a memory was distilled from, as they were said.';
