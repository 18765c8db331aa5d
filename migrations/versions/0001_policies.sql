-- The second wall behind the functions: a direct SELECT sees the rows of banks that its role was granted. The banks are an array, so
-- that every index, which a bank leads, is entered by them: what an EXPLAIN ANALYZE counts as visited are the caller's own rows. The other
-- form of the same, array_position, is for scans of the table: it costs no more than the cheapest condition of the caller's, so that it is
-- looked at first. Else a condition like content = '…' would be, and whether the policy's own query was executed would tell that some
-- bank has such a row.
DO $policies$
DECLARE
  name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['bank', 'bank_type', 'tag_alias', 'access', 'session', 'turn', 'turn_archive', 'session_archive', 'working_value', 'memory', 'memory_version', 'next_embedding', 'memory_turn', 'link', 'entity', 'entity_alias', 'event', 'event_seal', 'memory_use',
                           'word_statistics', 'model_usage'] LOOP
    EXECUTE format('ALTER TABLE hindsight.%I ENABLE ROW LEVEL SECURITY', name);
    EXECUTE format('CREATE POLICY readable ON hindsight.%I FOR SELECT USING (
      array_position(ARRAY(SELECT hindsight._readable_banks()), bank_id) IS NOT NULL
      AND bank_id = ANY (ARRAY(SELECT hindsight._readable_banks())))', name);
  END LOOP;
  ALTER TABLE hindsight.query_embedding ENABLE ROW LEVEL SECURITY;
  CREATE POLICY readable ON hindsight.query_embedding FOR SELECT USING (principal = hindsight.principal());
  ALTER TABLE hindsight.access_token ENABLE ROW LEVEL SECURITY; -- without a policy: nobody sees a row
END
$policies$;
