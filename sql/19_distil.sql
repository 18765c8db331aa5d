-- Distilling: the turns of a session become memories, in the transaction that marks them: each turn once.

-- extract_turns: what is worth keeping in turns (as claim_session returns them), by rules, as distil takes it. mode: rules, or
-- verbatim: every turn of importance as it was said. A memory has the turn before as its context: it is found by that too.
CREATE OR REPLACE FUNCTION hindsight.extract_turns(turns jsonb, before jsonb DEFAULT '[]', mode text DEFAULT 'rules')
  RETURNS jsonb
  LANGUAGE plpgsql STABLE
  SET search_path = pg_catalog, hindsight, public, pg_temp
AS $$
BEGIN
  PERFORM _check_array('turns', turns), _check_array('before', coalesce(before, '[]'));
  IF (mode = ANY ('{rules,verbatim}')) IS NOT TRUE THEN
    RAISE EXCEPTION 'turns are extracted by rules or verbatim, not %', coalesce(quote_literal(mode), 'NULL')
      USING ERRCODE = 'HM004', HINT = 'A language model is asked by the worker.';
  END IF;
  RETURN (
    WITH said AS (
      SELECT t.value ->> 'role' AS role, t.value ->> 'content' AS content, (t.value ->> 'sequence')::integer AS sequence,
             t.value -> 'occurred_at' AS occurred_at, t.is_new, lag(t.value ->> 'content') OVER turns AS preceding,
             lag(t.value ->> 'content', 2) OVER turns AS first
      FROM (SELECT b.value, b.place, false AS is_new FROM jsonb_array_elements(coalesce(before, '[]')) WITH ORDINALITY AS b(value, place)
            UNION ALL
            SELECT n.value, n.place, true FROM jsonb_array_elements(turns) WITH ORDINALITY AS n(value, place)) AS t
      WINDOW turns AS (ORDER BY t.is_new, t.place)
    )
    SELECT coalesce(jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
             'content', f.content, 'type', CASE WHEN f.is_correction AND f.type IN ('fact', 'hypothesis') THEN 'decision' ELSE f.type END,
             'confidence', f.confidence, 'importance', f.importance, 'slot', f.slot, 'source', f.source,
             'context', left(nullif(s.preceding, ''), 2000), 'turns', jsonb_build_array(s.sequence), 'occurred_at', s.occurred_at)) ORDER BY s.sequence), '[]')
    FROM said AS s
    CROSS JOIN LATERAL (SELECT r.* FROM _found_in(s.role, s.content, concat_ws(U&'\001E', s.first, s.preceding)) AS r WHERE mode = 'rules'
                        UNION ALL SELECT v.* FROM _verbatim(s.role, s.content, s.preceding) AS v WHERE mode = 'verbatim') AS f
    WHERE s.is_new AND s.content IS NOT NULL);
EXCEPTION WHEN data_exception THEN
  RAISE EXCEPTION 'the sequence of a turn must be a whole number: %', SQLERRM
    USING ERRCODE = 'HM004', HINT = 'Pass turns as claim_session returns them.';
END
$$;
COMMENT ON FUNCTION hindsight.extract_turns(jsonb, jsonb, text) IS
  'What is worth keeping in turns, by rules or verbatim, as distil takes it.';

-- _says_no_more: whether a sentence that a model takes for the same as a memory has no other number, and denies nothing of it.
CREATE OR REPLACE FUNCTION hindsight._says_no_more(fresh text, held text)
  RETURNS boolean
  LANGUAGE sql IMMUTABLE
RETURN hindsight._disagreement(fresh, held) IS NULL AND NOT hindsight._evolves(fresh, held)
  AND ARRAY(SELECT m.match[1] FROM pg_catalog.regexp_matches(fresh, '\d+(?:[.:]\d+)*', 'g') AS m(match) ORDER BY 1)
    = ARRAY(SELECT m.match[1] FROM pg_catalog.regexp_matches(held, '\d+(?:[.:]\d+)*', 'g') AS m(match) ORDER BY 1);

-- _keep_found: stores one memory that was found in a session, through store and all its gates. What the finder says of its relation
-- to a memory that it was shown (related_id): same: that one is told again, unless numbers or negation differ; evolved: it takes
-- that one's place, unless it was inferred; contradicts: both stay, linked. A memory that store refuses is told as refused.
CREATE OR REPLACE FUNCTION hindsight._keep_found(opened hindsight.bank, in_session text, given jsonb)
  RETURNS TABLE (memory_id uuid, outcome text, related_id uuid, reasons text[], content text)
  LANGUAGE plpgsql VOLATILE
AS $$
#variable_conflict use_column
DECLARE
  sequences integer[];
  related hindsight.memory;
  is_told_again boolean := false;
  takes_place boolean;
  masking hindsight.bank := opened; -- the turn before may be from a time with another policy: it costs no memory
BEGIN
  masking.redaction := CASE WHEN opened.redaction = 'refuse' THEN 'mask' ELSE opened.redaction END;
  content := given ->> 'content';
  sequences := ARRAY(SELECT n.value::integer FROM pg_catalog.jsonb_array_elements_text(given -> 'turns') AS n);
  SELECT m.* INTO related FROM hindsight.live_memory AS m
    WHERE m.bank_id = opened.bank_id AND m.memory_id = (given ->> 'related_id')::uuid;
  IF FOUND AND given ->> 'relation' = 'same' AND hindsight._says_no_more(content, related.content) THEN
    content := related.content;
    is_told_again := true;
  END IF;
  takes_place := given ->> 'relation' = 'evolved' AND given ->> 'source' IN ('user', 'tool', 'document')
    AND coalesce((given ->> 'confidence')::double precision, 0.9) >= greatest(hindsight._believable(), related.confidence - 0.2);
  SELECT s.memory_id, s.outcome, s.related_id, s.reasons INTO memory_id, outcome, related_id, reasons
    FROM hindsight.store(
      opened.name, content, type => coalesce(given ->> 'type', 'fact'),
      tags => ARRAY(SELECT pg_catalog.jsonb_array_elements_text(given -> 'tags')), session_id => in_session,
      confidence => (given ->> 'confidence')::double precision, importance => (given ->> 'importance')::double precision,
      source => coalesce(given ->> 'source', 'inferred'), slot => given ->> 'slot',
      entities => ARRAY(SELECT pg_catalog.jsonb_array_elements_text(given -> 'entities')),
      context => hindsight._redacted(masking, 'context', given ->> 'context'),
      occurred_at => coalesce((given ->> 'occurred_at')::timestamptz,
                              (SELECT max(t.occurred_at) FROM hindsight.turn AS t
                               WHERE t.bank_id = opened.bank_id AND t.session_id = in_session AND t.sequence = ANY (sequences))),
      supersedes => CASE WHEN takes_place THEN related.memory_id END,
      embedding => CASE WHEN NOT is_told_again THEN (given ->> 'embedding')::vector END,
      model => CASE WHEN NOT is_told_again THEN given ->> 'model' END) AS s;
  INSERT INTO hindsight.memory_turn (bank_id, memory_id, session_id, sequence)
    SELECT opened.bank_id, memory_id, in_session, n FROM pg_catalog.unnest(sequences) AS n WHERE memory_id IS NOT NULL
    ON CONFLICT DO NOTHING;
  IF given ->> 'relation' = 'contradicts' AND related.memory_id IS NOT NULL AND outcome IN ('stored', 'pending') THEN
    PERFORM hindsight._link(opened, memory_id, related.memory_id, 'contradicts', 1);
  END IF;
  RETURN NEXT;
EXCEPTION
  WHEN data_exception OR SQLSTATE 'HM002' OR SQLSTATE 'HM004' OR SQLSTATE 'HM005' OR SQLSTATE 'HM006' OR SQLSTATE 'HM007'
    OR SQLSTATE 'HM010' THEN
    memory_id := NULL;
    outcome := 'refused';
    related_id := NULL;
    reasons := ARRAY[SQLERRM];
    RETURN NEXT;
END
$$;

-- _summarise: keeps the summary of a session that has ended: the one that is given, or one made by rules of its memories. It stands
-- on them: where one of them is forgotten it is not believed any more. A later one takes its place. Its slot is the session's id, or
-- a digest of it where it can be no slot: it is long, or a telephone number. What is kept verbatim has none: it would say the turns once
-- more, and be found in their place (LoCoMo: R@5 55.7 with it, 66.5 without). Returns why it was refused, if it was.
CREATE OR REPLACE FUNCTION hindsight._summarise(opened hindsight.bank, in_session text, given text)
  RETURNS text
  LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  slot text;
  ids uuid[];
  made text;
  refused text;
BEGIN
  SELECT pg_catalog.array_agg(m.memory_id ORDER BY m.occurred_at, m.created_at),
         coalesce(given, hindsight._summary_of(pg_catalog.array_agg(m.content ORDER BY m.occurred_at, m.created_at),
                                               pg_catalog.array_agg(m.type ORDER BY m.occurred_at, m.created_at)))
    INTO ids, made
    FROM hindsight.live_memory AS m
    WHERE m.bank_id = opened.bank_id AND m.session_id = in_session AND m.type <> 'summary'
      AND (m.expires_at IS NULL OR m.expires_at > pg_catalog.clock_timestamp());
  IF coalesce(pg_catalog.btrim(made), '') = '' OR (given IS NULL AND opened.distil_mode = 'verbatim') THEN
    RETURN NULL;
  END IF;
  FOREACH slot IN ARRAY ARRAY['session.' || in_session, 'session.' || pg_catalog.md5(in_session)] LOOP
    BEGIN
      PERFORM hindsight.store(opened.name, made, type => 'summary', session_id => in_session, confidence => 0.9, importance => 0.6,
                              source => 'inferred', slot => slot, derived_from => ids[:100]);
      RETURN NULL;
    EXCEPTION WHEN data_exception OR SQLSTATE 'HM004' OR SQLSTATE 'HM005' OR SQLSTATE 'HM006' OR SQLSTATE 'HM007' THEN
      refused := SQLERRM;
    END;
  END LOOP;
  RETURN refused;
END
$$;

-- _stands_for: in whose name the memories of a session are stored: of whoever logged it, or, if that one may not write any more, an
-- owner of the bank.
CREATE OR REPLACE FUNCTION hindsight._stands_for(of_bank bigint, logged_by text)
  RETURNS text
  LANGUAGE sql STABLE
RETURN coalesce(
  (SELECT a.principal FROM hindsight.access AS a
   WHERE a.bank_id = of_bank AND a.principal = logged_by AND a.rights IN ('writer', 'owner')),
  hindsight._owner(of_bank));

-- distil: what was found in a claimed session becomes memories, its turns are marked, and the claim ends: all in one transaction,
-- so that each turn is distilled once. sequences: the turns that were looked at, found in or not. memories: a JSON array of
-- {content, type, confidence, importance, tags, entities, slot, source, context, occurred_at, turns, relation, related_id,
-- embedding, model}, each stored by store, in the name of whoever logged the session. is_ending: the session is summarised, by
-- summary, or else by rules, of its memories. Returns what became of each memory.
-- Raises HM001, HM002, HM003, HM004, HM006 (the claim has ended: nothing is stored).
CREATE OR REPLACE FUNCTION hindsight.distil(
  bank text, session_id text, claim uuid, sequences integer[], memories jsonb, is_ending boolean DEFAULT false, summary text DEFAULT NULL)
  RETURNS TABLE (memory_id uuid, outcome text, related_id uuid, reasons text[], content text)
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
  SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
  opened constant hindsight.bank := _open_for_work(bank);
  caller constant text := coalesce(current_setting('hindsight.principal', true), '');
  held session;
  given jsonb;
  marked integer;
BEGIN
  PERFORM _check_array('memories', distil.memories), _take_turns(opened.bank_id);
  held := _claimed(opened, distil.session_id, distil.claim);
  IF _works_everywhere() THEN
    PERFORM set_config('hindsight.principal', _stands_for(opened.bank_id, held.principal), true);
  END IF;
  -- Values of slots come first, in the order in which they were said; then by content: one order for every writer.
  FOR given IN
    SELECT g FROM jsonb_array_elements(distil.memories) AS g
    ORDER BY g ->> 'slot' IS NULL AND g ->> 'related_id' IS NULL, g ->> 'slot', g ->> 'occurred_at', g ->> 'content'
  LOOP
    RETURN QUERY SELECT k.* FROM _keep_found(opened, distil.session_id, given) AS k;
  END LOOP;
  IF distil.is_ending THEN
    reasons := ARRAY[_summarise(opened, distil.session_id, distil.summary)];
    IF reasons[1] IS NOT NULL THEN
      outcome := 'refused';
      content := coalesce(distil.summary, '');
      RETURN NEXT;
    END IF;
  END IF;
  PERFORM set_config('hindsight.principal', caller, true);

  UPDATE turn AS t SET distilled_at = clock_timestamp()
    WHERE t.bank_id = opened.bank_id AND t.session_id = held.session_id AND t.sequence = ANY (distil.sequences) AND t.distilled_at IS NULL;
  GET DIAGNOSTICS marked = ROW_COUNT;
  held.waiting := held.waiting - marked;
  held.summarised_at := CASE WHEN distil.is_ending THEN clock_timestamp() ELSE held.summarised_at END;
  UPDATE session AS s
    SET waiting = held.waiting, summarised_at = held.summarised_at, claim = NULL, attempts = 0, last_error = NULL,
        due_at = _distil_at(opened, held, EXISTS (
          SELECT FROM turn AS t
          WHERE t.bank_id = held.bank_id AND t.session_id = held.session_id AND t.distilled_at IS NULL AND t.role = 'user'
            AND _is_explicit(t.content)))
    WHERE s.bank_id = held.bank_id AND s.session_id = held.session_id;
END
$$;
COMMENT ON FUNCTION hindsight.distil(text, text, uuid, integer[], jsonb, boolean, text) IS
  'Stores what was found in a claimed session and marks its turns, in one transaction. Returns what became of each memory.';

-- distil_waiting: distils sessions that are due, at most so many, by rules, without a worker: for psql and pg_cron. A bank that is to
-- be distilled by a language model is left to the worker. Returns how many sessions and turns it did. Raises HM001, HM003, HM004.
CREATE OR REPLACE FUNCTION hindsight.distil_waiting(bank text DEFAULT NULL, most integer DEFAULT 100, OUT sessions integer, OUT turns integer)
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
AS $$
DECLARE
  due record;
BEGIN
  PERFORM _check_most(most);
  sessions := 0;
  turns := 0;
  WHILE sessions < most LOOP
    SELECT c.* INTO due FROM claim_session(bank, modes => '{auto,rules,verbatim}') AS c;
    EXIT WHEN NOT FOUND;
    PERFORM distil(due.bank_name, due.session_id, due.claim,
                   ARRAY(SELECT (t ->> 'sequence')::integer FROM jsonb_array_elements(due.turns) AS t),
                   extract_turns(due.turns, due.before, replace(due.mode, 'auto', 'rules')), due.is_ending);
    sessions := sessions + 1;
    turns := turns + jsonb_array_length(due.turns);
  END LOOP;
END
$$;
COMMENT ON FUNCTION hindsight.distil_waiting(text, integer) IS
  'Distils sessions that are due, by rules, without a worker: for psql and pg_cron.';
