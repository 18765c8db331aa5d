-- Erasure, for a person's right to be forgotten: the content is gone from every table, and cannot be restored. What remains is a
-- receipt: one event that says who erased what, when and why, and how many rows of each kind. Seals of the trail hold, since they
-- know of an event's content by its salted digest only, and its salt goes with it.

-- _folded: a text for comparison, literally but for case, width, white space and punctuation; words stand between spaces, so that
-- 22 is not found in 2222.
CREATE OR REPLACE FUNCTION hindsight._folded(content text)
  RETURNS text
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
AS $$
DECLARE
  plain constant text := pg_catalog.lower(pg_catalog.normalize(content, 'NFKC'));
  words constant text := pg_catalog.btrim(pg_catalog.regexp_replace(
    plain, '[\u0001-\u002f\u003a-\u0040\u005b-\u0060\u007b-\u00bf\u2000-\u206f\u3000-\u303f]+', ' ', 'g'));
BEGIN
  IF words = '' THEN -- nothing but punctuation
    RETURN pg_catalog.btrim(plain);
  END IF;
  RETURN pg_catalog.regexp_replace(
    pg_catalog.regexp_replace(words, '([0-9a-z\u00c0-\u0dff]+)', ' \1 ', 'g'), ' +', ' ', 'g');
END
$$;

-- _holds: whether one of these texts holds one of the folded ones.
CREATE OR REPLACE FUNCTION hindsight._holds(folded text[], VARIADIC texts text[])
  RETURNS boolean
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
AS $$
DECLARE
  held text;
  sought text;
BEGIN
  FOREACH held IN ARRAY texts LOOP
    CONTINUE WHEN coalesce(held, '') = '';
    held := hindsight._folded(held);
    FOREACH sought IN ARRAY folded LOOP
      IF pg_catalog.strpos(held, sought) > 0 THEN
        RETURN true;
      END IF;
    END LOOP;
  END LOOP;
  RETURN false;
END
$$;

-- _strings: the texts in a JSON value, one a line; also those in a text that is JSON itself, as the arguments of tool calls are.
CREATE OR REPLACE FUNCTION hindsight._strings(value jsonb)
  RETURNS text
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
AS $$
BEGIN
  RETURN (
    SELECT pg_catalog.string_agg(
             CASE WHEN s.string LIKE ANY ('{"{%","[%"}') AND s.string IS JSON AND s.string NOT LIKE '%\\u0000%'
               THEN hindsight._strings(s.string::jsonb) ELSE s.string END, E'\n')
    FROM pg_catalog.jsonb_path_query(value, 'strict $.**') AS v
    CROSS JOIN LATERAL (SELECT v #>> '{}' AS string) AS s
    WHERE pg_catalog.jsonb_typeof(v) IN ('string', 'number'));
END
$$;

-- _stands_on_erased: why a memory that was made of an erased one is pending. Nothing that is restored makes it believed again.
CREATE OR REPLACE FUNCTION hindsight._stands_on_erased()
  RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 'it stands on an erased memory';

-- erase_memory: removes a memory for good, whatever its state, and its content from everything in the bank, where it stands literally
-- but for case, width, white space and punctuation, in any of its versions:
--   memories: this one; those that have the same content, forgotten ones among them; those that were made of it and quote it;
--   versions, links and recalls of these, and versions of others that hold it;
--   events: reason, before, after and salt of those of these memories, and of all that hold it or speak of these;
--   turns that hold it, in any session: '[erased]' is left, without tool calls and metadata;
--   contexts: context and metadata of other memories that hold it;
--   words and queries: the statistics of words that only it had, and cached embeddings of queries that are it.
-- What was made of it and does not quote it is pending from then on. Another memory that holds it among other words is a statement
-- of its own and stays: 'not erased' counts them. What it superseded stays superseded. The reason is kept with the receipt.
-- Raises HM001, HM002 (no such memory, or erased already), HM003 (not an owner), HM004 (the reason holds the content), HM005 (no reason).
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
  folded text[];
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
  PERFORM _check_text('reason', erase_memory.reason, 2000), _take_turns(opened.bank_id);
  named := _lock_memory(opened, erase_memory.memory_id);
  contents := ARRAY(SELECT named.content UNION
                    SELECT v.content FROM memory_version AS v WHERE v.bank_id = opened.bank_id AND v.memory_id = named.memory_id);
  folded := ARRAY(SELECT DISTINCT _folded(c) FROM unnest(contents) AS c);
  digests := ARRAY(SELECT DISTINCT content_digest_v1(c) FROM unnest(contents) AS c);
  IF _holds(folded, erase_memory.reason) THEN
    RAISE EXCEPTION 'the reason holds the content that is to be erased'
      USING ERRCODE = 'HM004', HINT = 'The reason is kept. Say why, not what: ''at the person''s request, ticket 4711''.';
  END IF;

  gone := ARRAY(SELECT m.memory_id FROM memory AS m
                WHERE m.bank_id = opened.bank_id AND (m.memory_id = named.memory_id OR m.digest = ANY (digests)));
  derived := ARRAY(SELECT _derived(opened.bank_id, gone));
  kept := ARRAY(SELECT m.memory_id FROM memory AS m
                WHERE m.bank_id = opened.bank_id AND m.memory_id <> ALL (gone) AND _holds(folded, m.content));
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

  words := ARRAY(SELECT unnest(tsvector_to_array(m.document)) FROM memory AS m WHERE m.bank_id = opened.bank_id AND m.memory_id = ANY (gone)
                 UNION SELECT unnest(tsvector_to_array(v.document)) FROM memory_version AS v
                       WHERE v.bank_id = opened.bank_id AND v.memory_id = ANY (gone));
  contexts := _erase_contexts(opened.bank_id, gone, folded);
  WITH versions AS (
    DELETE FROM memory_version AS v
      WHERE v.bank_id = opened.bank_id
        AND (v.memory_id = ANY (gone) OR (v.memory_id <> ALL (kept) AND _holds(folded, v.content))) RETURNING 1
  ), links AS (
    DELETE FROM link AS l WHERE l.bank_id = opened.bank_id AND (l.from_id = ANY (gone) OR l.to_id = ANY (gone)) RETURNING 1
  ), recalls AS (
    DELETE FROM memory_use AS u WHERE u.bank_id = opened.bank_id AND u.memory_id = ANY (gone) RETURNING 1
  ), events AS (
    UPDATE event AS e SET reason = NULL, before = NULL, after = NULL, salt = NULL
      WHERE e.bank_id = opened.bank_id AND e.salt IS NOT NULL AND e.action <> 'erased'
        AND (e.memory_id = ANY (gone) OR e.after ->> 'to_id' = ANY (gone::text[])
             OR e.after ->> 'digest' IN (SELECT encode(d, 'hex') FROM unnest(digests) AS d)
             OR (coalesce(e.memory_id <> ALL (kept), true)
                 AND _holds(folded, e.reason, _strings(e.before), _strings(e.after))))
      RETURNING e.event_id
  ), turns AS (
    UPDATE turn AS t SET content = '[erased]', tool_calls = NULL, metadata = '{}'
      WHERE t.bank_id = opened.bank_id AND _holds(folded, t.content, _strings(t.tool_calls), _strings(t.metadata))
      RETURNING 1
  ), statistics AS (
    DELETE FROM word_statistics AS s
      WHERE s.bank_id = opened.bank_id AND s.word = ANY (words) AND s.documents <= cardinality(gone) RETURNING 1
  ), queries AS (
    DELETE FROM query_embedding AS q WHERE q.digest IN (SELECT _query_digest(c) FROM unnest(contents) AS c) RETURNING 1
  ), memories AS (
    DELETE FROM memory AS m WHERE m.bank_id = opened.bank_id AND m.memory_id = ANY (gone) RETURNING 1
  )
  SELECT jsonb_build_object(
           'memories', (SELECT count(*) FROM memories), 'versions', (SELECT count(*) FROM versions), 'links', (SELECT count(*) FROM links),
           'recalls', (SELECT count(*) FROM recalls), 'events', (SELECT count(*) FROM events), 'turns', (SELECT count(*) FROM turns),
           'contexts', contexts, 'words', (SELECT count(*) FROM statistics), 'queries', (SELECT count(*) FROM queries)),
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
END
$$;
COMMENT ON FUNCTION hindsight.erase_memory(text, uuid, text) IS
  'Removes a memory for good, and its content from everything in the bank; leaves a receipt without content. Returns what went.';

-- _erase_contexts: takes texts out of the context and the metadata of memories and their versions. The document is made anew with it.
CREATE OR REPLACE FUNCTION hindsight._erase_contexts(of_bank bigint, except_ids uuid[], folded text[])
  RETURNS bigint
  LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  changed bigint;
  of_versions bigint;
BEGIN
  UPDATE hindsight.memory AS m
    SET context = CASE WHEN NOT hindsight._holds(folded, m.context) THEN m.context END,
        metadata = hindsight._without(m.metadata, folded)
    WHERE m.bank_id = of_bank AND m.memory_id <> ALL (except_ids)
      AND hindsight._holds(folded, m.context, hindsight._strings(m.metadata));
  GET DIAGNOSTICS changed = ROW_COUNT;
  UPDATE hindsight.memory_version AS v
    SET context = c.context, metadata = hindsight._without(v.metadata, folded),
        document = hindsight.document_tsv_v1(v.language, v.content, v.tags, v.entities, v.slot, c.context)
    FROM hindsight.memory_version AS o
    CROSS JOIN LATERAL (SELECT CASE WHEN NOT hindsight._holds(folded, o.context) THEN o.context END AS context) AS c
    WHERE o.bank_id = of_bank AND o.memory_id <> ALL (except_ids)
      AND hindsight._holds(folded, o.context, hindsight._strings(o.metadata))
      AND v.bank_id = of_bank AND v.memory_id = o.memory_id AND v.version = o.version;
  GET DIAGNOSTICS of_versions = ROW_COUNT;
  RETURN changed + of_versions;
END
$$;

-- _without: a JSON object without the keys whose values hold one of some folded texts.
CREATE OR REPLACE FUNCTION hindsight._without(value jsonb, folded text[])
  RETURNS jsonb
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN value - ARRAY(SELECT e.key FROM pg_catalog.jsonb_each(value) AS e WHERE hindsight._holds(folded, hindsight._strings(e.value)));

-- erase_bank: removes everything of a bank for good, in every table. What remains is a bank without a name ('erased-' and the old
-- bank_id), which only operators (members of hindsight_owner) see, with one event: who erased it, when and why, and how many rows of
-- each kind. The name can be used anew. Writers that are at work in the bank fail. Cached queries of everybody who had rights on it go.
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
BEGIN
  PERFORM _check_text('reason', erase_bank.reason, 2000), _check_bank_name(opened.name);
  PERFORM FROM bank AS b WHERE b.bank_id = opened.bank_id FOR UPDATE; -- waits for its writers; those that come later find no bank
  IF NOT FOUND THEN -- somebody was faster
    PERFORM _open_bank(bank, 'owner');
  END IF;
  DELETE FROM query_embedding AS q USING access AS a WHERE a.bank_id = opened.bank_id AND q.principal = a.principal;
  -- What refers to another table goes before it.
  FOREACH erased IN ARRAY ARRAY['memory_use', 'memory_version', 'link', 'memory', 'turn', 'session', 'word_statistics', 'tag_alias',
                                'bank_type', 'event_seal', 'event', 'access', 'bank'] LOOP
    EXECUTE format('DELETE FROM hindsight.%I WHERE bank_id = $1', erased) USING opened.bank_id;
    GET DIAGNOSTICS rows_erased = ROW_COUNT;
    counts := counts || jsonb_build_object(erased, rows_erased);
    RETURN NEXT;
  END LOOP;
  INSERT INTO bank (name) VALUES ('erased-' || opened.bank_id) RETURNING bank_id INTO receipt_id;
  PERFORM _leave_event(receipt_id, 'erase_bank', NULL, erase_bank.reason, NULL,
                       jsonb_build_object('bank_id', opened.bank_id, 'rows', counts));
END
$$;
COMMENT ON FUNCTION hindsight.erase_bank(text, text) IS
  'Removes everything of a bank for good; leaves a receipt without content, for operators. Returns what went.';
