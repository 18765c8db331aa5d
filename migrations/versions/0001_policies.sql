-- The second wall behind the functions: a direct SELECT sees the rows of banks that its role was granted.
DO $policies$
DECLARE
  name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['bank', 'bank_type', 'tag_alias', 'access', 'session', 'turn', 'turn_archive', 'session_archive', 'working_value', 'memory', 'memory_version', 'next_embedding', 'memory_turn', 'link', 'entity', 'entity_alias', 'event', 'event_seal', 'memory_use',
                           'word_statistics', 'model_usage'] LOOP
    EXECUTE format('ALTER TABLE hindsight.%I ENABLE ROW LEVEL SECURITY', name);
    EXECUTE format('CREATE POLICY readable ON hindsight.%I FOR SELECT USING (bank_id IN (SELECT hindsight._readable_banks()))', name);
  END LOOP;
  ALTER TABLE hindsight.query_embedding ENABLE ROW LEVEL SECURITY;
  CREATE POLICY readable ON hindsight.query_embedding FOR SELECT USING (principal = hindsight.principal());
END
$policies$;
