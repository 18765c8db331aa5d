-- Upkeep by turns: which bank is to be maintained or audited next is the state of its row, so that several workers share the banks.

-- claim_upkeep: the bank whose turn it is to be maintained, or audited, because that was begun longer ago than every; it is marked as
-- begun now. No row: none is due. The caller keeps it in the name of its owner. Raises HM004.
CREATE OR REPLACE FUNCTION hindsight.claim_upkeep(task text, every interval)
  RETURNS TABLE (bank text, owner text)
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
AS $$
#variable_conflict use_column
DECLARE
  before timestamptz;
BEGIN
  IF claim_upkeep.task IS NULL OR claim_upkeep.task <> ALL ('{maintain,audit}')
     OR (claim_upkeep.every BETWEEN '1 millisecond' AND '10 years') IS NOT TRUE THEN
    RAISE EXCEPTION 'task must be maintain or audit, and every lie between a millisecond and ten years, got % and %',
        coalesce(quote_literal(claim_upkeep.task), 'NULL'), coalesce(claim_upkeep.every::text, 'NULL')
      USING ERRCODE = 'HM004', HINT = 'For example claim_upkeep(''maintain'', ''10 minutes'').';
  END IF;
  before := clock_timestamp() - claim_upkeep.every;
  RETURN QUERY
    WITH due AS (
      SELECT b.bank_id FROM hindsight.bank AS b
      WHERE coalesce(CASE claim_upkeep.task WHEN 'maintain' THEN b.maintained_at ELSE b.audited_at END,
                     CASE claim_upkeep.task WHEN 'audit' THEN b.created_at ELSE '-infinity' END) < before
        AND (_works_everywhere() OR _may_write(b.bank_id)) AND b.name !~ '^erased-[0-9]+$'
      ORDER BY b.bank_id LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED
    )
    UPDATE hindsight.bank AS b
      SET maintained_at = CASE WHEN claim_upkeep.task = 'maintain' THEN clock_timestamp() ELSE b.maintained_at END,
          audited_at = CASE WHEN claim_upkeep.task = 'audit' THEN clock_timestamp() ELSE b.audited_at END
      FROM due WHERE b.bank_id = due.bank_id
      RETURNING b.name, _owner(b.bank_id);
END
$$;
COMMENT ON FUNCTION hindsight.claim_upkeep(text, interval) IS
  'The bank whose turn it is to be maintained, or audited; it is marked as begun. For workers.';

-- note_audit: keeps how many findings the last audit of a bank had. Raises HM001, HM003, HM004.
CREATE OR REPLACE FUNCTION hindsight.note_audit(bank text, findings integer)
  RETURNS void
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
AS $$
DECLARE
  opened constant hindsight.bank := _open_bank(bank, 'writer');
BEGIN
  IF (findings >= 0) IS NOT TRUE THEN
    RAISE EXCEPTION 'findings must be a number from 0 on, got %', coalesce(findings::text, 'NULL')
      USING ERRCODE = 'HM004', HINT = 'It is how many rows audit returned.';
  END IF;
  UPDATE hindsight.bank AS b SET findings = note_audit.findings WHERE b.bank_id = opened.bank_id;
END
$$;
COMMENT ON FUNCTION hindsight.note_audit(text, integer) IS 'Keeps how many findings the last audit of a bank had: banks() shows it.';
