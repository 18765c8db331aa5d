-- Erasure, for a person's right to be forgotten: the content is gone from every table, and cannot be restored. What remains is a
-- receipt: one event that says who erased what, when and why, and how many rows of each kind. Seals of the trail hold, since they
-- know of an event's content by its salted digest only, and its salt goes with it.

-- _stands_on_erased: why a memory that was made of an erased one is pending. Nothing that is restored makes it believed again.
CREATE OR REPLACE FUNCTION hindsight._stands_on_erased()
  RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 'it stands on an erased memory';

-- _end_upkeep: waits until nobody counts or links in a bank, and keeps it so: their many rows would be locked in another order.
CREATE OR REPLACE FUNCTION hindsight._end_upkeep(of_bank bigint)
  RETURNS void
  LANGUAGE sql VOLATILE
BEGIN ATOMIC
  SELECT pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended(t.task, of_bank)) -- in the order of maintain
    FROM pg_catalog.unnest('{hindsight.maintain,hindsight.entities,hindsight.refresh_links}'::text[]) AS t(task);
END;

-- erase_memory: removes a memory for good, whatever its state, and its content, that of earlier versions too, from everything in
-- the bank where it stands literally but for case, width, white space and punctuation:
--   memories: this one; those that have the same content, forgotten ones among them; those that were made of it and quote it;
--   versions, links and recalls of these, and versions of others that hold it;
--   events: reason, before, after and salt of those of these memories, and of all that hold it or speak of these;
--   turns that hold it, in any session: '[erased]' is left, without tool calls and metadata;
--   contexts: context and metadata of other memories that hold it;
--   words and queries: the statistics of words that only it had, and cached embeddings of queries that are it.
-- What was made of it and does not quote it is pending from then on. Another memory that holds it among other words is a statement
-- of its own and stays: 'not erased' counts them. What it superseded stays superseded. The reason is kept with the receipt.
-- Raises HM001, HM002 (no such memory, or erased already), HM003 (not an owner), HM004 (the reason holds the content),
-- HM005 (no reason).
CREATE OR REPLACE FUNCTION hindsight.erase_memory(bank text, memory_id uuid, reason text)
  RETURNS TABLE (erased text, rows_erased bigint)
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
  SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
  opened constant hindsight.bank := _open_bank(bank, 'owner');
  named memory;
  contents text[];
  sought text[];
  digests bytea[];
  derived uuid[];
  gone uuid[]; -- the memories that go
  kept uuid[]; -- statements of their own
  doubted bigint := 0;
  contexts bigint;
  words text[];
  held memory;
  changed memory;
  counts jsonb;
  blank_events jsonb;
BEGIN
  PERFORM _check_text('reason', erase_memory.reason, 2000),
          _end_upkeep(opened.bank_id),
          pg_advisory_xact_lock(hashtextextended('hindsight.model', opened.bank_id)), -- no vector of it is on its way any more
          _take_turns(opened.bank_id);
  erase_memory.reason := _redacted(opened, 'reason', erase_memory.reason);
  named := _lock_memory(opened, erase_memory.memory_id);
  contents := ARRAY(SELECT named.content UNION
                    SELECT v.content FROM memory_version AS v WHERE v.bank_id = opened.bank_id AND v.memory_id = named.memory_id);
  sought := _sought(contents);
  digests := ARRAY(SELECT DISTINCT content_digest_v1(c) FROM unnest(contents) AS c);
  IF _holds(sought, erase_memory.reason) THEN
    RAISE EXCEPTION 'the reason holds the content that is to be erased'
      USING ERRCODE = 'HM004', HINT = 'The reason is kept. Say why, not what: ''at the person''s request, ticket 4711''.';
  END IF;

  gone := ARRAY(SELECT m.memory_id FROM memory AS m
                WHERE m.bank_id = opened.bank_id AND (m.memory_id = named.memory_id OR m.digest = ANY (digests)));
  derived := ARRAY(SELECT _derived(opened.bank_id, gone));
  kept := ARRAY(SELECT m.memory_id FROM memory AS m
                WHERE m.bank_id = opened.bank_id AND m.memory_id <> ALL (gone) AND _holds(sought, m.content));
  gone := gone || ARRAY(SELECT k FROM unnest(kept) AS k WHERE k = ANY (derived));
  kept := ARRAY(SELECT k FROM unnest(kept) AS k WHERE k <> ALL (derived));
  PERFORM FROM memory AS m WHERE m.bank_id = opened.bank_id AND m.memory_id = ANY (gone) ORDER BY m.memory_id FOR UPDATE;

  FOR held IN
    SELECT m.* FROM current_memory AS m
    WHERE m.bank_id = opened.bank_id AND m.memory_id IN (SELECT _derived(opened.bank_id, gone)) AND m.memory_id <> ALL (gone)
      AND (m.pending_reason IS NULL OR m.pending_reason = _stands_on_forgotten())
    ORDER BY m.memory_id FOR UPDATE
  LOOP
    changed := held;
    changed.pending_reason := _stands_on_erased();
    PERFORM _change('doubted', held, changed, _stands_on_erased());
    doubted := doubted + 1;
  END LOOP;

  words := ARRAY(
    SELECT unnest(tsvector_to_array(m.document)) FROM memory AS m WHERE m.bank_id = opened.bank_id AND m.memory_id = ANY (gone)
    UNION
    SELECT unnest(tsvector_to_array(v.document)) FROM memory_version AS v
      WHERE v.bank_id = opened.bank_id AND v.memory_id = ANY (gone));
  contexts := _erase_contexts(opened.bank_id, gone, sought);
  WITH versions AS (
    DELETE FROM memory_version AS v
      WHERE v.bank_id = opened.bank_id
        AND (v.memory_id = ANY (gone) OR (v.memory_id <> ALL (kept) AND _holds(sought, v.content))) RETURNING 1
  ), links AS (
    DELETE FROM link AS l WHERE l.bank_id = opened.bank_id AND (l.from_id = ANY (gone) OR l.to_id = ANY (gone)) RETURNING 1
  ), recalls AS (
    DELETE FROM memory_use AS u WHERE u.bank_id = opened.bank_id AND u.memory_id = ANY (gone) RETURNING 1
  ), aliases AS (
    DELETE FROM entity_alias AS a WHERE a.bank_id = opened.bank_id AND a.memory_id = ANY (gone)
  ), named AS ( -- maintain counts what others still name
    DELETE FROM entity AS e
      WHERE e.bank_id = opened.bank_id
        AND e.key IN (SELECT _entity_key(n) FROM memory AS m CROSS JOIN LATERAL unnest(m.entities) AS n
                      WHERE m.bank_id = opened.bank_id AND m.memory_id = ANY (gone))
  ), sources AS (
    DELETE FROM memory_turn AS c WHERE c.bank_id = opened.bank_id AND c.memory_id = ANY (gone)
  ), events AS (
    UPDATE event AS e SET reason = NULL, before = NULL, after = NULL, salt = NULL
      WHERE e.bank_id = opened.bank_id AND e.salt IS NOT NULL AND e.action <> 'erased'
        AND (e.memory_id = ANY (gone) OR e.after ->> 'to_id' = ANY (gone::text[])
             OR e.after ->> 'digest' IN (SELECT encode(d, 'hex') FROM unnest(digests) AS d)
             OR (coalesce(e.memory_id <> ALL (kept), true)
                 AND (_holds(sought, e.reason) OR _holds(sought, e.before, e.after))))
      RETURNING e.event_id
  ), turns AS (
    UPDATE turn AS t SET content = '[erased]', tool_calls = NULL, metadata = '{}'
      WHERE t.bank_id = opened.bank_id AND (_holds(sought, t.content) OR _holds(sought, t.tool_calls, t.metadata))
      RETURNING 1
  ), desks AS (
    DELETE FROM working_value AS w WHERE w.bank_id = opened.bank_id AND _holds(sought, w.value) RETURNING 1
  ), statistics AS (
    DELETE FROM word_statistics AS s
      WHERE s.bank_id = opened.bank_id AND s.word = ANY (words) AND s.documents <= cardinality(gone) RETURNING 1
  ), embeddings AS (
    DELETE FROM next_embedding AS n WHERE n.bank_id = opened.bank_id AND n.memory_id = ANY (gone)
  ), queries AS (
    DELETE FROM query_embedding AS q WHERE q.digest IN (SELECT _query_digest(c) FROM unnest(contents) AS c) RETURNING 1
  ), memories AS (
    DELETE FROM memory AS m WHERE m.bank_id = opened.bank_id AND m.memory_id = ANY (gone) RETURNING 1
  )
  SELECT jsonb_build_object(
           'memories', (SELECT count(*) FROM memories), 'versions', (SELECT count(*) FROM versions),
           'links', (SELECT count(*) FROM links), 'recalls', (SELECT count(*) FROM recalls),
           'events', (SELECT count(*) FROM events), 'turns', (SELECT count(*) FROM turns), 'contexts', contexts,
           'working values', (SELECT count(*) FROM desks),
           'words', (SELECT count(*) FROM statistics), 'queries', (SELECT count(*) FROM queries)),
         (SELECT coalesce(jsonb_agg(e.event_id ORDER BY e.event_id), '[]') FROM events AS e)
    INTO counts, blank_events;
  PERFORM _leave_event(opened.bank_id, 'erased', named.memory_id, erase_memory.reason, NULL,
                       jsonb_build_object('rows', counts, 'events', blank_events));
  PERFORM _leave_event(opened.bank_id, 'erased', id, 'it held the content of an erased memory', NULL,
                       jsonb_build_object('with', named.memory_id))
    FROM unnest(gone) AS id WHERE id <> named.memory_id;
  RETURN QUERY SELECT e.key, e.value::bigint FROM jsonb_each_text(counts) AS e ORDER BY e.key = 'memories' DESC, e.key;
  RETURN QUERY SELECT n.what, n.rows
    FROM (VALUES ('not erased, pending: what was made of it', doubted),
                 ('not erased: other memories that hold it', cardinality(kept)::bigint)) AS n(what, rows)
    WHERE n.rows > 0;
  RETURN QUERY SELECT a.what, a.turns FROM _archives(opened.bank_id) AS a;
END
$$;
COMMENT ON FUNCTION hindsight.erase_memory(text, uuid, text) IS
  'Removes a memory for good, and its content from everything in the bank; leaves a receipt without content. Returns what went.';

-- _archives: the files with turns of a bank, which SQL does not reach: whoever erases has to look through them.
CREATE OR REPLACE FUNCTION hindsight._archives(of_bank bigint)
  RETURNS TABLE (what text, turns bigint)
  LANGUAGE sql STABLE
AS $$
  SELECT 'not erased, to be looked through: ' || a.location, a.turns FROM hindsight.turn_archive AS a
  WHERE a.bank_id = of_bank ORDER BY a.month, a.location
$$;

-- _erase_contexts: takes what is sought out of the context and the metadata of memories and their versions, whose documents are made
-- anew with it. Returns how many rows.
CREATE OR REPLACE FUNCTION hindsight._erase_contexts(of_bank bigint, except_ids uuid[], sought text[])
  RETURNS bigint
  LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  changed bigint;
  of_versions bigint;
BEGIN
  UPDATE hindsight.memory AS m
    SET context = CASE WHEN NOT hindsight._holds(sought, m.context) THEN m.context END,
        metadata = hindsight._without(m.metadata, sought)
    WHERE m.bank_id = of_bank AND m.memory_id <> ALL (except_ids)
      AND (hindsight._holds(sought, m.context) OR hindsight._holds(sought, m.metadata));
  GET DIAGNOSTICS changed = ROW_COUNT;
  UPDATE hindsight.memory_version AS v
    SET context = c.context, metadata = hindsight._without(v.metadata, sought),
        document = hindsight.document_tsv_v1(v.language, v.content, v.tags, v.entities, v.slot, c.context)
    FROM hindsight.memory_version AS o
    CROSS JOIN LATERAL (SELECT CASE WHEN NOT hindsight._holds(sought, o.context) THEN o.context END AS context) AS c
    WHERE o.bank_id = of_bank AND o.memory_id <> ALL (except_ids)
      AND (hindsight._holds(sought, o.context) OR hindsight._holds(sought, o.metadata))
      AND v.bank_id = of_bank AND v.memory_id = o.memory_id AND v.version = o.version;
  GET DIAGNOSTICS of_versions = ROW_COUNT;
  RETURN changed + of_versions;
END
$$;

-- _without: a JSON object without the keys whose values hold one of the contents that are sought.
CREATE OR REPLACE FUNCTION hindsight._without(value jsonb, sought text[])
  RETURNS jsonb
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN value - ARRAY(SELECT e.key FROM pg_catalog.jsonb_each(value) AS e WHERE hindsight._holds(sought, e.value));

-- erase_bank: removes everything of a bank for good, in every table, and cached queries of everybody who had rights on it. What
-- remains is a bank called 'erased-' and the old bank_id, which only operators (members of hindsight_owner) see, with one event:
-- who erased it, when and why, and how many rows of each table. The name can be used anew. Writers that are at work in the bank fail.
-- Raises HM001, HM003 (not an owner), HM004 (it is erased already), HM005 (no reason).
CREATE OR REPLACE FUNCTION hindsight.erase_bank(bank text, reason text)
  RETURNS TABLE (erased text, rows_erased bigint)
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
  SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
  opened constant hindsight.bank := _open_bank(bank, 'owner');
  receipt_id bigint;
  counts jsonb := '{}';
  archives record;
BEGIN
  PERFORM _check_text('reason', erase_bank.reason, 2000), _check_bank_name(opened.name),
          _end_upkeep(opened.bank_id),
          pg_advisory_xact_lock(hashtextextended('hindsight.model', opened.bank_id)), -- no vector is on its way any more
          _take_turns(opened.bank_id);
  erase_bank.reason := _redacted(opened, 'reason', erase_bank.reason);
  -- Waits for its writers. Those that come later fail, since they have opened a bank that is not there.
  PERFORM FROM bank AS b WHERE b.bank_id = opened.bank_id FOR UPDATE;
  IF NOT FOUND THEN -- somebody was faster
    PERFORM _open_bank(bank, 'owner');
  END IF;
  UPDATE access_token AS t SET banks = array_remove(t.banks, opened.name) WHERE opened.name = ANY (t.banks); -- the name may be used anew
  DELETE FROM query_embedding AS q USING access AS a WHERE a.bank_id = opened.bank_id AND q.principal = a.principal;
  SELECT array_agg(a.what) AS what, array_agg(a.turns) AS turns INTO archives FROM _archives(opened.bank_id) AS a;
  -- What refers to another table goes before it.
  FOREACH erased IN ARRAY ARRAY['memory_use', 'memory_turn', 'memory_version', 'next_embedding', 'link', 'entity_alias', 'entity', 'memory', 'turn', 'turn_archive',
                                'session_archive', 'working_value', 'session', 'word_statistics', 'model_usage', 'tag_alias', 'bank_type', 'event_seal', 'event', 'access', 'bank'] LOOP
    EXECUTE format('DELETE FROM hindsight.%I WHERE bank_id = $1', erased) USING opened.bank_id;
    GET DIAGNOSTICS rows_erased = ROW_COUNT;
    counts := counts || jsonb_build_object(erased, rows_erased);
    RETURN NEXT;
  END LOOP;
  INSERT INTO bank (name) VALUES ('erased-' || opened.bank_id) RETURNING bank_id INTO receipt_id;
  PERFORM _leave_event(receipt_id, 'erase_bank', NULL, erase_bank.reason, NULL,
                       jsonb_strip_nulls(jsonb_build_object('bank_id', opened.bank_id, 'rows', counts, 'archives', archives.what)));
  RETURN QUERY SELECT a.what, a.turns FROM unnest(archives.what, archives.turns) AS a(what, turns);
END
$$;
COMMENT ON FUNCTION hindsight.erase_bank(text, text) IS
  'Removes everything of a bank for good; leaves a receipt without content, for operators. Returns what went.';
