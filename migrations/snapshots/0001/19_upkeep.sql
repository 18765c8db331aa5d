-- Upkeep by turns: which bank is to be maintained, audited or reflected on next is the state of its row, so that several workers share the
-- banks.

-- _is_idle: whether nothing has been stored, changed or logged in a bank for so long. A turn that has been distilled since left a memory
-- that changed, or held nothing.
CREATE OR REPLACE FUNCTION hindsight._is_idle(b hindsight.bank, since timestamptz)
  RETURNS boolean
  LANGUAGE sql STABLE
RETURN NOT EXISTS (SELECT FROM hindsight.memory AS m WHERE m.bank_id = b.bank_id AND m.changed_at > since)
  AND (b.distil_mode = 'off'
       OR NOT EXISTS (SELECT FROM hindsight.turn AS t WHERE t.bank_id = b.bank_id AND t.distilled_at IS NULL AND t.logged_at > since));

-- claim_upkeep: the bank whose turn it is for a task (maintain, audit, reflect), because that was begun longer ago than every; it is
-- marked as begun now. To be reflected on it must have been idle, too, for so long. No row: none is due. The caller keeps it
-- in the name of its owner. Raises HM004.
CREATE OR REPLACE FUNCTION hindsight.claim_upkeep(task text, every interval, idle interval DEFAULT '10 minutes')
  RETURNS TABLE (bank text, owner text)
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
  SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
  before timestamptz;
BEGIN
  IF claim_upkeep.task IS NULL OR claim_upkeep.task <> ALL ('{maintain,audit,reflect}')
     OR (claim_upkeep.every BETWEEN '1 millisecond' AND '10 years') IS NOT TRUE OR (claim_upkeep.idle BETWEEN '0' AND '10 years') IS NOT TRUE THEN
    RAISE EXCEPTION 'task must be maintain, audit or reflect, every lie between a millisecond and ten years, and idle between 0 and ten years, got %, % and %',
        coalesce(quote_literal(claim_upkeep.task), 'NULL'), coalesce(claim_upkeep.every::text, 'NULL'), coalesce(claim_upkeep.idle::text, 'NULL')
      USING ERRCODE = 'HM004', HINT = 'For example claim_upkeep(''maintain'', ''10 minutes'').';
  END IF;
  before := clock_timestamp() - claim_upkeep.every;
  RETURN QUERY
    WITH due AS (
      SELECT b.bank_id FROM hindsight.bank AS b
      WHERE coalesce(CASE claim_upkeep.task WHEN 'maintain' THEN b.maintained_at WHEN 'audit' THEN b.audited_at ELSE b.reflected_at END,
                     CASE claim_upkeep.task WHEN 'audit' THEN b.created_at ELSE '-infinity' END) < before
        AND (_works_everywhere() OR _rights(b.bank_id) IN ('writer', 'owner')) AND b.name !~ '^erased-[0-9]+$'
        AND (claim_upkeep.task <> 'reflect' OR _is_idle(b, clock_timestamp() - claim_upkeep.idle))
      ORDER BY b.bank_id LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED
    )
    UPDATE hindsight.bank AS b
      SET maintained_at = CASE WHEN claim_upkeep.task = 'maintain' THEN clock_timestamp() ELSE b.maintained_at END,
          audited_at = CASE WHEN claim_upkeep.task = 'audit' THEN clock_timestamp() ELSE b.audited_at END,
          reflected_at = CASE WHEN claim_upkeep.task = 'reflect' THEN clock_timestamp() ELSE b.reflected_at END
      FROM due WHERE b.bank_id = due.bank_id
      RETURNING b.name, _owner(b.bank_id);
END
$$;
COMMENT ON FUNCTION hindsight.claim_upkeep(text, interval, interval) IS
  'The bank whose turn it is to be maintained, audited or, where it is idle, reflected on; it is marked as begun. For workers.';

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
