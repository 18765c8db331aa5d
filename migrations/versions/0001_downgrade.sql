-- Back to an empty schema. Memories are not dropped by accident.

DO $downgrade$
DECLARE
  kept bigint;
  signature text;
  signatures text[];
BEGIN
  SELECT count(*) INTO kept FROM hindsight.memory;
  IF kept > 0 AND pg_catalog.current_setting('hindsight.drop_memories', true) IS DISTINCT FROM 'yes' THEN
    RAISE EXCEPTION 'the downgrade would drop % memories', kept
      USING HINT = 'Export them first. Then, if they shall go: alembic -x drop-memories=yes downgrade base';
  END IF;
  SELECT array_agg(p.oid::regprocedure::text) INTO signatures FROM pg_catalog.pg_proc AS p
    WHERE p.pronamespace = 'hindsight'::regnamespace;
  DROP VIEW hindsight.current_memory, hindsight.live_memory CASCADE;
  DROP TABLE hindsight.query_embedding, hindsight.model_usage, hindsight.word_statistics, hindsight.memory_use, hindsight.event_seal, hindsight.event, hindsight.entity, hindsight.entity_alias, hindsight.link,
    hindsight.next_embedding, hindsight.memory_version, hindsight.memory_turn, hindsight.memory,
    hindsight.turn, hindsight.turn_archive, hindsight.session_archive, hindsight.working_value,
    hindsight.session, hindsight.access_token, hindsight.access, hindsight.tag_alias, hindsight.bank_type, hindsight.bank, hindsight.memory_type,
    hindsight.embedding_model CASCADE;
  FOREACH signature IN ARRAY signatures LOOP
    CONTINUE WHEN pg_catalog.to_regprocedure(signature) IS NULL; -- went with a table that it takes a row of
    EXECUTE 'DROP ROUTINE ' || signature || ' CASCADE';
  END LOOP;
  DROP TYPE hindsight.recalled, hindsight._filter, hindsight._moment, hindsight._edge, hindsight.neighbour, hindsight.memory_record, hindsight.forgotten, hindsight.insight,
    hindsight.matched, hindsight.extracted, hindsight._against;
  REVOKE ALL ON SCHEMA hindsight FROM hindsight_app, hindsight_service, hindsight_reader;
END
$downgrade$;
