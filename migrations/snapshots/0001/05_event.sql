-- Events and earlier versions: what happened to a memory, and what it was before.

-- current_memory and live_memory: the two predicates, written once. A query on these views uses the partial indexes,
-- whose predicates are the same; readers add the expiry, which is a matter of time: (expires_at IS NULL OR expires_at > …).
CREATE OR REPLACE VIEW hindsight.current_memory WITH (security_invoker = true) AS
  SELECT * FROM hindsight.memory
  WHERE deleted_at IS NULL AND superseded_by IS NULL AND archived_at IS NULL;
COMMENT ON VIEW hindsight.current_memory IS
  'Memories whose content is taken: live, or pending. Expiry is checked by their readers.';
CREATE OR REPLACE VIEW hindsight.live_memory WITH (security_invoker = true) AS
  SELECT * FROM hindsight.current_memory WHERE pending_reason IS NULL;
COMMENT ON VIEW hindsight.live_memory IS
  'Memories that are believed: not deleted, superseded, archived or pending. Expiry is checked by its readers.';

-- _state: what a memory is: live, pending, expired, archived, superseded or deleted.
CREATE OR REPLACE FUNCTION hindsight._state(m hindsight.memory, at timestamptz)
  RETURNS text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
  WHEN m.deleted_at IS NOT NULL THEN 'deleted'
  WHEN m.superseded_by IS NOT NULL THEN 'superseded'
  WHEN m.archived_at IS NOT NULL THEN 'archived'
  WHEN m.expires_at <= at THEN 'expired'
  WHEN m.pending_reason IS NOT NULL THEN 'pending'
  ELSE 'live'
END;

-- _described: a memory as an event shows it: without vectors, lexemes and keys.
CREATE OR REPLACE FUNCTION hindsight._described(m hindsight.memory)
  RETURNS jsonb
  LANGUAGE sql STABLE
RETURN (SELECT pg_catalog.jsonb_object_agg(e.key, e.value) FROM pg_catalog.jsonb_each(pg_catalog.jsonb_build_object(
  'content', m.content, 'type', m.type, 'tags', m.tags, 'entities', m.entities, 'slot', m.slot, 'context', m.context,
  'session_id', m.session_id, 'source', m.source, 'confidence', m.confidence, 'importance', m.importance,
  'metadata', m.metadata, 'occurred_at', m.occurred_at, 'confirmed_at', m.confirmed_at,
  'confirmations', m.confirmations, 'expires_at', m.expires_at, 'deleted_at', m.deleted_at,
  'superseded_by', m.superseded_by, 'archived_at', m.archived_at, 'pending_reason', m.pending_reason)) AS e
  WHERE e.value <> 'null');

-- _record: leaves an event. Of a change it keeps the values that differ, before and after.
CREATE OR REPLACE FUNCTION hindsight._record(
  bank_id bigint, action text, memory_id uuid DEFAULT NULL, reason text DEFAULT NULL,
  before hindsight.memory DEFAULT NULL, after hindsight.memory DEFAULT NULL)
  RETURNS void
  LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  was constant jsonb := CASE WHEN before.memory_id IS NOT NULL THEN hindsight._described(before) END;
  became constant jsonb := CASE WHEN after.memory_id IS NOT NULL THEN hindsight._described(after) END;
BEGIN
  INSERT INTO hindsight.event (bank_id, principal, action, memory_id, reason, before, after)
  VALUES (
    _record.bank_id, hindsight.principal(), _record.action, _record.memory_id, _record.reason,
    (SELECT pg_catalog.jsonb_object_agg(e.key, e.value) FROM pg_catalog.jsonb_each(was) AS e
     WHERE became -> e.key IS DISTINCT FROM e.value),
    (SELECT pg_catalog.jsonb_object_agg(e.key, e.value) FROM pg_catalog.jsonb_each(became) AS e
     WHERE was -> e.key IS DISTINCT FROM e.value));
END
$$;

-- _change: writes a memory's new values, after keeping the version that they replace, and leaves an event.
-- The caller holds the row's lock, and passes the row as it was read under it and as it shall be.
CREATE OR REPLACE FUNCTION hindsight._change(
  action text, before hindsight.memory, after hindsight.memory, reason text DEFAULT NULL)
  RETURNS hindsight.memory
  LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  at constant timestamptz := greatest(pg_catalog.clock_timestamp(), before.changed_at + interval '1 microsecond');
BEGIN
  INSERT INTO hindsight.memory_version (
    bank_id, memory_id, version, content, type, tags, entities, slot, context, session_id, source, confidence, importance,
    metadata, language, occurred_at, created_at, confirmed_at, confirmations, changed_at, expires_at, deleted_at,
    superseded_by, archived_at, pending_reason, model_id, embedding, digest, document, believed_until)
  VALUES (
    before.bank_id, before.memory_id, before.version, before.content, before.type, before.tags, before.entities,
    before.slot, before.context, before.session_id, before.source, before.confidence, before.importance,
    before.metadata, before.language, before.occurred_at, before.created_at, before.confirmed_at, before.confirmations,
    before.changed_at, before.expires_at, before.deleted_at, before.superseded_by, before.archived_at,
    before.pending_reason, before.model_id, before.embedding, before.digest, before.document, at);
  UPDATE hindsight.memory AS m
    SET version = before.version + 1, changed_at = at,
        content = after.content, type = after.type, tags = after.tags, entities = after.entities, slot = after.slot,
        context = after.context, source = after.source, confidence = after.confidence, importance = after.importance,
        metadata = after.metadata, occurred_at = after.occurred_at, confirmed_at = after.confirmed_at,
        confirmations = after.confirmations, expires_at = after.expires_at, deleted_at = after.deleted_at,
        superseded_by = after.superseded_by, archived_at = after.archived_at, pending_reason = after.pending_reason,
        model_id = after.model_id, embedding = after.embedding
    WHERE m.bank_id = before.bank_id AND m.memory_id = before.memory_id
    RETURNING m.* INTO after;
  PERFORM hindsight._record(before.bank_id, action, before.memory_id, reason, before, after);
  RETURN after;
END
$$;

-- history: a memory's life, oldest event first: who did what to it, when and why, and the values that changed.
-- Raises HM001, HM002 (the bank has never had such a memory).
CREATE OR REPLACE FUNCTION hindsight.history(bank text, memory_id uuid)
  RETURNS TABLE (at timestamptz, principal text, action text, reason text, before jsonb, after jsonb)
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
  SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
  opened constant hindsight.bank := _open_bank(bank, 'reader');
BEGIN
  RETURN QUERY
    SELECT e.at, e.principal, e.action, e.reason, e.before, e.after
    FROM event AS e
    WHERE e.bank_id = opened.bank_id AND e.memory_id = history.memory_id
    ORDER BY e.event_id;
  IF NOT FOUND THEN
    PERFORM _raise_unknown_memory(bank, history.memory_id);
  END IF;
END
$$;
COMMENT ON FUNCTION hindsight.history(text, uuid) IS
  'A memory''s life, oldest event first: who did what to it, when and why, and the values that changed.';

-- _raise_unknown_memory: the one message for what is not there, so that another bank's memory looks like none.
CREATE OR REPLACE FUNCTION hindsight._raise_unknown_memory(bank text, memory_id uuid)
  RETURNS void
  LANGUAGE plpgsql IMMUTABLE
AS $$
BEGIN
  RAISE EXCEPTION 'bank % has no memory %', pg_catalog.quote_literal(bank), coalesce(memory_id::text, 'NULL')
    USING ERRCODE = 'HM002', HINT = 'hindsight.recall lists the memories of a bank with their ids.';
END
$$;
