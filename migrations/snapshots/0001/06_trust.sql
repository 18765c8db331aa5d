-- Trust: how much a source counts, what a less trusted one says against a more trusted one, and the switch of it all.

-- _trust: the rank of a source. What is inferred ranks above what has no source: the product made it from what was said.
CREATE OR REPLACE FUNCTION hindsight._trust(source text)
  RETURNS integer
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE source WHEN 'user' THEN 4 WHEN 'document' THEN 3 WHEN 'tool' THEN 2 WHEN 'inferred' THEN 1 ELSE 0 END;

-- _trust_weight: what a source counts in the score. The steps are small: between two memories that answer a question equally well
-- the more trusted comes first; one that answers it better stays first. In a bank of one source no order changes.
CREATE OR REPLACE FUNCTION hindsight._trust_weight(source text)
  RETURNS double precision
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE source WHEN 'user' THEN 1 WHEN 'document' THEN 0.98 WHEN 'tool' THEN 0.96 WHEN 'inferred' THEN 0.94 ELSE 0.92 END;

-- set_screening: whether what is stored in this bank from now on is screened: held as pending when it looks planted, when it
-- contradicts what a more trusted source said, or when it is one claim again and again. Off is for measuring, and for banks in
-- which only people write. Raises HM001, HM003 (not an owner), HM004.
CREATE OR REPLACE FUNCTION hindsight.set_screening(bank text, screening boolean)
  RETURNS void
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
AS $$
#variable_conflict use_column
DECLARE
  opened constant hindsight.bank := _open_bank(bank, 'owner');
BEGIN
  IF set_screening.screening IS NULL THEN
    RAISE EXCEPTION 'screening must be on or off, got NULL' USING ERRCODE = 'HM004', HINT = 'Give true or false.';
  END IF;
  UPDATE bank AS b SET screening = set_screening.screening WHERE b.bank_id = opened.bank_id;
  PERFORM _leave_event(opened.bank_id, 'set_screening', NULL, NULL, NULL,
                       jsonb_build_object('screening', set_screening.screening));
END
$$;
COMMENT ON FUNCTION hindsight.set_screening(text, boolean) IS
  'Whether what is stored in a bank is screened for what looks planted.';

-- screening: whether a bank screens what is stored. Raises HM001.
CREATE OR REPLACE FUNCTION hindsight.screening(bank text)
  RETURNS boolean
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
AS $$
DECLARE
  opened constant hindsight.bank := _open_bank(bank, 'reader');
BEGIN
  RETURN opened.screening;
END
$$;
COMMENT ON FUNCTION hindsight.screening(text) IS 'Whether a bank screens what is stored.';

-- _screened: what a pending memory's reason begins with, when the screen holds it.
CREATE OR REPLACE FUNCTION hindsight._screened()
  RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 'suspicious: ';

-- _contradicts_trusted: why a memory is pending that contradicts what a more trusted source said.
CREATE OR REPLACE FUNCTION hindsight._contradicts_trusted()
  RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 'contradicts what a more trusted source said';

-- _is_evidence_once: whether it is suspicious when a memory's source says the same three times in ten minutes in other words: a
-- tool or document has no reason to. An agent that names no source may well store a preference again and again; it is asked
-- about numbers and addresses only.
CREATE OR REPLACE FUNCTION hindsight._is_evidence_once(m hindsight.memory)
  RETURNS boolean
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN m.source IN ('tool', 'document') OR (m.source IS NULL AND m.content ~ '\d|[a-z]\.[a-z]{2}');

-- _one_claim: why memories are pending of which a tool or a document has said the same three times in ten minutes, in other
-- words.
CREATE OR REPLACE FUNCTION hindsight._one_claim()
  RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN hindsight._screened() || 'one claim again and again, in other words';

-- _was_released: whether somebody confirmed a memory of this content that was held: it is not held again.
CREATE OR REPLACE FUNCTION hindsight._was_released(of_bank bigint, of_digest bytea)
  RETURNS boolean
  LANGUAGE sql STABLE
RETURN EXISTS (
  SELECT FROM hindsight.event AS e
  WHERE e.bank_id = of_bank AND e.action = 'confirmed' AND e.before ? 'pending_reason'
    AND e.memory_id IN (SELECT m.memory_id FROM hindsight.current_memory AS m WHERE m.bank_id = of_bank AND m.digest = of_digest
                        UNION ALL
                        SELECT m.memory_id FROM hindsight.memory AS m
                        WHERE m.bank_id = of_bank AND m.digest = of_digest
                          AND (m.deleted_at IS NOT NULL OR m.superseded_by IS NOT NULL)));

-- _is_own_repetition: whether what says again what a memory holds comes from nobody else than before: the same principal stored
-- it, and no user said it. That is no second witness.
CREATE OR REPLACE FUNCTION hindsight._is_own_repetition(held hindsight.memory, again hindsight.memory)
  RETURNS boolean
  LANGUAGE sql STABLE
RETURN again.source IN ('tool', 'document') AND again.source = held.source
  AND (SELECT b.screening FROM hindsight.bank AS b WHERE b.bank_id = held.bank_id)
  AND hindsight.principal() = (SELECT e.principal FROM hindsight.event AS e
                               WHERE e.bank_id = held.bank_id AND e.memory_id = held.memory_id ORDER BY e.event_id LIMIT 1);

-- _numbers: the numbers in a text, in their order: row 1, column 2 is another cell than row 2, column 1.
CREATE OR REPLACE FUNCTION hindsight._numbers(content text)
  RETURNS text[]
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN ARRAY(SELECT m.number[1]
             FROM pg_catalog.regexp_matches(content, '\d+(?:[.:]\d+)*|[〇零一二两三四五六七八九十百千万亿]+', 'g')
                  WITH ORDINALITY AS m(number, place) ORDER BY m.place);
