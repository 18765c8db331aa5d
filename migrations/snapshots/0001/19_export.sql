-- Export: all that is known of a bank, as lines of JSON, for another place or for the person it is about.

-- export_bank: every row of a bank in every table, a JSON object each with its table: the bank, its types, tags and rights, sessions,
-- turns, memories in every state with their earlier versions, links, events, uses. What is computed from the rest is left out (words,
-- vectors, digests of contents), and so is the bank's number. One snapshot: what changes meanwhile is not in it. What archive_month put
-- into files is named (turn_archive), not read. Raises HM001, HM003 (not an owner).
CREATE OR REPLACE FUNCTION hindsight.export_bank(bank text)
  RETURNS SETOF jsonb
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
  SET TimeZone = 'UTC'
AS $$
DECLARE
  opened constant hindsight.bank := _open_bank(bank, 'owner');
  name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['bank', 'bank_type', 'tag_alias', 'access', 'session', 'turn', 'turn_archive', 'session_archive', 'working_value',
                              'memory', 'memory_version', 'memory_turn', 'next_embedding', 'link', 'entity_alias', 'memory_use', 'event', 'event_seal',
                              'model_usage'] LOOP
    RETURN QUERY EXECUTE format(
      'SELECT jsonb_build_object(''table'', %L::text) || (to_jsonb(t) - ''{bank_id,model_id,embedding,document,documents,average_length,link_id,linked_to,link_round}''::text[])'
      || CASE WHEN name IN ('memory', 'memory_version') THEN ' - ''digest''::text' ELSE '' END
      || ' FROM hindsight.%I AS t WHERE t.bank_id = $1 ORDER BY %s',
      name, name,
      (SELECT string_agg(format('t.%I', a.attname), ', ' ORDER BY k.place)
       FROM pg_constraint AS c
       CROSS JOIN LATERAL unnest(c.conkey) WITH ORDINALITY AS k(attnum, place)
       JOIN pg_attribute AS a ON a.attrelid = c.conrelid AND a.attnum = k.attnum
       WHERE c.conrelid = ('hindsight.' || name)::regclass AND c.contype = 'p'))
      USING opened.bank_id;
  END LOOP;
END
$$;
COMMENT ON FUNCTION hindsight.export_bank(text) IS 'All that is known of a bank, every row of every table as a JSON object. For its owners.';
