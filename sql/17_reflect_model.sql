-- Reflection by a language model: what it is shown, and how far it has come. What it concludes goes through propose_insight.

-- to_reflect: groups of memories that resemble each other, for a language model to conclude something from: what has changed since
-- the last time (note_reflection), each with what resembles it; three memories at least in a group, and at most eight, most in all.
-- Only what may be evidence of an insight is in them, each memory once. until: up to which change of a memory they go; NULL:
-- nothing has changed. is_done: nothing is left after that. A bank that is not to be distilled by a model has no groups. Reads
-- only, for a writer, since only they propose. Raises HM001, HM003, HM004.
CREATE OR REPLACE FUNCTION hindsight.to_reflect(
  bank text, most integer DEFAULT 40, OUT until timestamptz, OUT is_done boolean, OUT groups jsonb)
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
  SET enable_seqscan = off
  SET hnsw.iterative_scan = strict_order
AS $$
DECLARE
  opened constant hindsight.bank := _open_bank(bank, 'writer');
  at constant timestamptz := statement_timestamp();
  deadline constant timestamptz := clock_timestamp() + interval '2 seconds';
  rows_read constant integer := 500;
  rows_seen integer := 0;
  reviewed record;
  near memory[];
  shown uuid[] := '{}';
BEGIN
  PERFORM _check_most(most);
  is_done := true;
  groups := '[]';
  IF opened.distil_mode <> ALL ('{auto,model}'::text[]) THEN
    RETURN;
  END IF;
  FOR reviewed IN SELECT r.* FROM _to_review(opened.bank_id, coalesce(opened.model_reflected_to, '-infinity'), rows_read) AS r LOOP
    IF (cardinality(shown) > most - 8 OR clock_timestamp() > deadline) AND reviewed.place > until THEN
      is_done := false;
      EXIT;
    END IF;
    until := reviewed.place;
    rows_seen := rows_seen + 1;
    CONTINUE WHEN (reviewed.m).memory_id = ANY (shown) OR cardinality(shown) > most - 3 OR NOT _is_evidence(reviewed.m, at);
    near := ARRAY(
      SELECT o FROM unnest(_like(opened, reviewed.m, left((reviewed.m).content, 500), 20, '{fact,preference,decision,knowledge,todo}')) WITH ORDINALITY AS l(id, place)
      JOIN memory AS o ON o.bank_id = opened.bank_id AND o.memory_id = l.id
      WHERE o.memory_id <> ALL (shown) AND _is_evidence(o, at) AND _is_about((reviewed.m).content, o.content)
      ORDER BY l.place LIMIT least(8, most - cardinality(shown)));
    CONTINUE WHEN cardinality(near) < 3;
    shown := shown || ARRAY(SELECT n.memory_id FROM unnest(near) AS n);
    groups := groups || jsonb_build_array((
      SELECT jsonb_agg(jsonb_build_object('memory_id', n.memory_id, 'content', n.content, 'type', n.type,
                                          'said_at', to_char(coalesce(n.occurred_at, n.created_at) AT TIME ZONE 'UTC', 'YYYY-MM-DD'))
                       ORDER BY coalesce(n.occurred_at, n.created_at), n.memory_id)
      FROM unnest(near) AS n));
  END LOOP;
  is_done := is_done AND rows_seen < rows_read;
END
$$;
COMMENT ON FUNCTION hindsight.to_reflect(text, integer) IS
  'Groups of memories that resemble each other, among what has changed since a model last reflected on the bank.';

-- note_reflection: a language model has looked at what to_reflect gave, up to that moment. Going back is ignored.
-- Raises HM001, HM003, HM004.
CREATE OR REPLACE FUNCTION hindsight.note_reflection(bank text, until timestamptz)
  RETURNS void
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
AS $$
DECLARE
  opened constant hindsight.bank := _open_bank(bank, 'writer');
BEGIN
  PERFORM _check_time('until', note_reflection.until);
  UPDATE hindsight.bank AS b SET model_reflected_to = note_reflection.until
    WHERE b.bank_id = opened.bank_id AND note_reflection.until > coalesce(b.model_reflected_to, '-infinity');
END
$$;
COMMENT ON FUNCTION hindsight.note_reflection(text, timestamptz) IS 'Says up to which moment a language model has reflected on a bank. For workers.';
