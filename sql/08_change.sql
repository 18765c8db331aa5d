-- Reading one memory and changing it.

-- _lock_memory: the memory, locked for a change. Raises HM002. NO KEY, here and elsewhere: no change touches a memory's key, so
-- that whatever only refers to it (a recall that is noted, a link) waits for no writer, and no writer for it.
CREATE OR REPLACE FUNCTION hindsight._lock_memory(opened hindsight.bank, memory_id uuid)
  RETURNS hindsight.memory
  LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  held hindsight.memory;
BEGIN
  SELECT m.* INTO held FROM hindsight.memory AS m
    WHERE m.bank_id = opened.bank_id AND m.memory_id = _lock_memory.memory_id FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    PERFORM hindsight._raise_unknown_memory(opened.name, memory_id);
  END IF;
  RETURN held;
END
$$;

-- _lock_current: the memory, locked for a change that only one that is live or pending can take.
-- Raises HM002, HM006 (superseded or archived).
CREATE OR REPLACE FUNCTION hindsight._lock_current(opened hindsight.bank, memory_id uuid)
  RETURNS hindsight.memory
  LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  held constant hindsight.memory := hindsight._lock_memory(opened, memory_id);
BEGIN
  IF held.deleted_at IS NOT NULL THEN
    PERFORM hindsight._raise_unknown_memory(opened.name, memory_id);
  ELSIF held.superseded_by IS NOT NULL THEN
    RAISE EXCEPTION 'memory % was superseded by %', memory_id, held.superseded_by
      USING ERRCODE = 'HM006', HINT = 'Change the memory that took its place, or store the old statement anew.';
  ELSIF held.archived_at IS NOT NULL OR held.expires_at <= pg_catalog.clock_timestamp() THEN
    RAISE EXCEPTION 'memory % %', memory_id, CASE WHEN held.archived_at IS NULL THEN 'has expired' ELSE 'was archived' END
      USING ERRCODE = 'HM006', HINT = 'Store the statement anew.';
  END IF;
  RETURN held;
END
$$;

-- _shown: a memory as get shows it.
CREATE OR REPLACE FUNCTION hindsight._shown(m hindsight.memory, at timestamptz)
  RETURNS hindsight.memory_record
  LANGUAGE sql STABLE
RETURN ROW(
  m.memory_id, m.content, m.type, hindsight._state(m, at), m.tags, m.entities, m.slot, m.context, m.session_id, m.source,
  m.confidence, m.importance, m.metadata, m.occurred_at, m.created_at, m.confirmed_at, m.confirmations, m.changed_at, m.expires_at,
  m.completed_at, m.superseded_by, m.valid_to, m.pending_reason, m.version, m.embedding IS NOT NULL)::hindsight.memory_record;

-- get: one memory by its id, whatever its state but forgotten.
-- Raises HM001, HM002 (no such memory, or forgotten).
CREATE OR REPLACE FUNCTION hindsight.get(bank text, memory_id uuid)
  RETURNS SETOF hindsight.memory_record
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
  SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
  opened constant hindsight.bank := _open_bank(bank, 'reader');
BEGIN
  RETURN QUERY
    SELECT shown.* FROM memory AS m CROSS JOIN LATERAL _shown(m, statement_timestamp()) AS shown
    WHERE m.bank_id = opened.bank_id AND m.memory_id = get.memory_id AND m.deleted_at IS NULL;
  IF NOT FOUND THEN
    PERFORM _raise_unknown_memory(bank, get.memory_id);
  END IF;
END
$$;
COMMENT ON FUNCTION hindsight.get(text, uuid) IS 'One memory by its id, with its state; a forgotten one is not there.';

-- update_memory: changes what is given and keeps the rest; created_at and what links to the memory stay. A new content
-- without its embedding waits for one. clear names what shall be empty: 'slot', 'context', 'occurred_at', 'expires_at'.
-- Returns the new version. expected_version refuses the change when somebody else was faster.
-- Raises HM001, HM002, HM003, HM004 (also for a tag that the bank does not allow: it has no row of reasons to say so in, as store has),
-- HM005, HM006 (content or slot taken, superseded, or another version), HM007 (personal data or secrets, where the bank refuses them),
-- HM010, HM011, HM012.
CREATE OR REPLACE FUNCTION hindsight.update_memory(
  bank text, memory_id uuid, content text DEFAULT NULL, type text DEFAULT NULL, tags text[] DEFAULT NULL,
  confidence double precision DEFAULT NULL, importance double precision DEFAULT NULL, slot text DEFAULT NULL,
  entities text[] DEFAULT NULL, context text DEFAULT NULL, occurred_at timestamptz DEFAULT NULL,
  expires_at timestamptz DEFAULT NULL, metadata jsonb DEFAULT NULL, clear text[] DEFAULT NULL, reason text DEFAULT NULL,
  expected_version integer DEFAULT NULL, embedding vector DEFAULT NULL, model text DEFAULT NULL)
  RETURNS integer
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
  SET enable_seqscan = off
AS $$
DECLARE
  opened constant hindsight.bank := _open_bank(bank, 'writer');
  used embedding_model;
  held memory;
  changed memory;
  kept record;
BEGIN
  PERFORM _check_optional_text('content', content, 10000), _check_optional_text('context', context, 10000),
          _check_optional_text('slot', slot, 200), _check_optional_text('reason', reason, 2000),
          _check_unit('confidence', confidence), _check_unit('importance', importance),
          _check_labels('tags', tags), _check_labels('entities', entities), _check_object('metadata', metadata),
          _check_time('occurred_at', occurred_at), _check_time('expires_at', expires_at);
  IF NOT clear <@ ARRAY['slot', 'context', 'occurred_at', 'expires_at'] THEN
    RAISE EXCEPTION 'cannot clear %', array_to_string(clear, ', ')
      USING ERRCODE = 'HM004', HINT = 'slot, context, occurred_at and expires_at can be cleared.';
  END IF;
  IF type IS NOT NULL THEN
    PERFORM _check_type(type);
  END IF;
  IF expires_at <= clock_timestamp() THEN
    RAISE EXCEPTION 'expires_at % has passed already', expires_at
      USING ERRCODE = 'HM004', HINT = 'Give a time to come, or forget the memory.';
  END IF;
  kept := _redact_memory(opened, slot, content, context, tags, entities, metadata);
  IF kept.reason IS NOT NULL THEN
    IF kept.content <> content THEN
      embedding := NULL; -- it was made of what is not kept
    END IF;
    content := kept.content;
    context := kept.context;
    tags := kept.tags;
    entities := kept.entities;
    metadata := kept.metadata;
  END IF;
  reason := _redacted(opened, 'reason', reason);
  used := CASE WHEN embedding IS NOT NULL THEN _adopt_model(opened, model) END;
  IF slot IS NOT NULL OR EXISTS (SELECT FROM link AS l -- of what is changed an insight may have been made, which is withdrawn
                                 WHERE l.bank_id = opened.bank_id AND l.to_id = update_memory.memory_id AND l.relation = 'derived_from') THEN
    PERFORM _take_turns(opened.bank_id);
  END IF;
  held := _lock_current(opened, memory_id);
  IF held.version <> expected_version THEN
    RAISE EXCEPTION 'memory % is at version %, not %', memory_id, held.version, expected_version
      USING ERRCODE = 'HM006', HINT = 'Somebody changed it meanwhile: get it again, then decide.';
  END IF;

  changed := held;
  changed.content := coalesce(content, held.content);
  changed.type := coalesce(type, held.type);
  changed.tags := held.tags;
  IF tags IS NOT NULL THEN
    changed.tags := _bank_tags(opened.bank_id, tags);
    PERFORM _check_allowed(opened, changed.tags);
  END IF;
  changed.entities := CASE
    WHEN entities IS NOT NULL THEN _clean_labels(entities)
    WHEN changed.content = held.content THEN held.entities
    ELSE _with_entities( -- what the old content named goes with it
      ARRAY(SELECT e.name FROM unnest(held.entities) WITH ORDINALITY AS e(name, place)
            WHERE e.name <> ALL (entities(held.content)) ORDER BY e.place), changed.content) END;
  changed.confidence := coalesce(confidence, held.confidence);
  changed.importance := coalesce(importance, held.importance);
  changed.metadata := coalesce(metadata, held.metadata);
  changed.slot := CASE WHEN 'slot' = ANY (clear) THEN NULL ELSE coalesce(slot, held.slot) END;
  changed.context := CASE WHEN 'context' = ANY (clear) THEN NULL ELSE coalesce(context, held.context) END;
  changed.occurred_at := CASE WHEN 'occurred_at' = ANY (clear) THEN NULL ELSE coalesce(occurred_at, held.occurred_at) END;
  changed.expires_at := CASE WHEN 'expires_at' = ANY (clear) THEN NULL ELSE coalesce(expires_at, held.expires_at) END;
  IF embedding IS NOT NULL THEN
    changed.embedding := _check_embedding(embedding, used);
    changed.model_id := used.model_id;
  ELSIF changed.content <> held.content THEN
    changed.embedding := NULL;
    changed.model_id := NULL;
  END IF;
  -- A person who changes a memory has looked at it: the new content is confirmed now.
  IF changed.content <> held.content THEN
    changed.confirmed_at := clock_timestamp();
  END IF;
  IF held.pending_reason = 'low confidence' AND changed.confidence >= _believable() THEN
    changed.pending_reason := NULL;
  ELSIF held.pending_reason IS NULL AND changed.confidence < _believable() THEN
    changed.pending_reason := 'low confidence';
  END IF;
  changed := _change_unless_taken('updated', held, changed, reason);
  RETURN changed.version;
END
$$;
COMMENT ON FUNCTION hindsight.update_memory(text, uuid, text, text, text[], double precision, double precision, text, text[],
    text, timestamptz, timestamptz, jsonb, text[], text, integer, vector, text) IS
  'Changes what is given of a memory and keeps the rest; the old values stay in its history. Returns the new version.';

-- _change_unless_taken: _change for a memory that somebody named: a content or slot that another memory holds is a
-- conflict for them to solve, HM006. A holder that has expired gives way, unless somebody is at it: nobody is waited for, since two
-- who exchange their contents would wait for each other.
CREATE OR REPLACE FUNCTION hindsight._change_unless_taken(
  action text, before hindsight.memory, after hindsight.memory, reason text, since timestamptz DEFAULT NULL)
  RETURNS hindsight.memory
  LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  wanted constant bytea := hindsight.content_digest_v1(after.content);
  holder hindsight.memory;
BEGIN
  FOR attempt IN 1..10 LOOP
    BEGIN
      RETURN hindsight._change(action, before, after, reason, since);
    EXCEPTION WHEN unique_violation THEN
      SELECT m.* INTO holder FROM hindsight.current_memory AS m
        WHERE m.bank_id = before.bank_id AND m.memory_id <> before.memory_id
          AND (m.digest = wanted OR (m.slot = after.slot AND m.pending_reason IS NULL))
        ORDER BY m.expires_at <= pg_catalog.clock_timestamp() NULLS FIRST
        LIMIT 1;
      IF holder.expires_at <= pg_catalog.clock_timestamp() THEN
        PERFORM hindsight._retire(holder.bank_id, ARRAY(
          SELECT m.memory_id FROM hindsight.current_memory AS m
          WHERE m.bank_id = holder.bank_id AND m.memory_id = holder.memory_id AND m.expires_at <= pg_catalog.clock_timestamp()
          FOR NO KEY UPDATE SKIP LOCKED), 'archived', 'expired');
      ELSIF FOUND THEN
        RAISE EXCEPTION 'memory % holds the same %', holder.memory_id,
            CASE WHEN holder.digest = wanted THEN 'content' ELSE 'slot ' || holder.slot END
          USING ERRCODE = 'HM006', HINT = 'Forget or update that one first.';
      END IF;
    END;
  END LOOP;
  RAISE EXCEPTION 'many writers contend for the content or slot of memory %', before.memory_id
    USING ERRCODE = 'serialization_failure', HINT = 'Try the same call again.';
END
$$;
