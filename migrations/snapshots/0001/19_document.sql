-- Documents: what memories were imported from, a file or the dump of another memory system (metadata.document), and where in it they
-- stood (metadata.place). Who imports it again asks for what is there, and changes only what has changed.

-- imported: the newest memory for each place and each content of a document, whatever became of it: state as get tells it, and why it
-- was forgotten. Raises HM001, HM003.
CREATE OR REPLACE FUNCTION hindsight.imported(bank text, document text)
  RETURNS TABLE (memory_id uuid, place text, content text, state text, metadata jsonb, forgotten_reason text)
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
  SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
  opened constant hindsight.bank := _open_bank(bank, 'reader');
BEGIN
  RETURN QUERY
    SELECT DISTINCT ON (m.metadata ->> 'place', m.digest)
           m.memory_id, m.metadata ->> 'place', m.content, _state(m, statement_timestamp()), m.metadata,
           CASE WHEN m.deleted_at IS NOT NULL THEN
             (SELECT e.reason FROM event AS e
              WHERE e.bank_id = m.bank_id AND e.memory_id = m.memory_id AND e.action = 'forgotten' ORDER BY e.event_id DESC LIMIT 1) END
    FROM memory AS m
    WHERE m.bank_id = opened.bank_id AND m.metadata ? 'document' AND m.metadata ->> 'document' = imported.document
    ORDER BY m.metadata ->> 'place', m.digest, m.deleted_at IS NOT NULL OR m.superseded_by IS NOT NULL, m.changed_at DESC;
END
$$;
COMMENT ON FUNCTION hindsight.imported(text, text) IS
  'The memories that were imported from a document or a dump, with their places in it and their states.';

-- documents: what the live memories of a bank were imported from, with how many of each. Raises HM001, HM003.
CREATE OR REPLACE FUNCTION hindsight.documents(bank text)
  RETURNS TABLE (document text, memories bigint)
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
  SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
  opened constant hindsight.bank := _open_bank(bank, 'reader');
BEGIN
  RETURN QUERY
    SELECT m.metadata ->> 'document', count(*) FROM current_memory AS m
    WHERE m.bank_id = opened.bank_id AND m.metadata ? 'document' AND m.metadata ->> 'document' IS NOT NULL
    GROUP BY 1 ORDER BY 1;
END
$$;
COMMENT ON FUNCTION hindsight.documents(text) IS 'What the memories of a bank were imported from, with how many of each.';
