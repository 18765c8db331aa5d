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
  'confirmations', m.confirmations, 'expires_at', m.expires_at, 'completed_at', m.completed_at, 'deleted_at', m.deleted_at,
  'superseded_by', m.superseded_by, 'valid_to', m.valid_to, 'archived_at', m.archived_at, 'pending_reason', m.pending_reason)) AS e
  WHERE e.value <> 'null');

-- _event_digest: what seals know of an event's content. Times in it are texts already, whatever the zone of the session.
CREATE OR REPLACE FUNCTION hindsight._event_digest(salt bytea, reason text, before jsonb, after jsonb)
  RETURNS bytea
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN pg_catalog.sha256(salt || pg_catalog.convert_to(pg_catalog.jsonb_build_array(reason, before, after)::text, 'UTF8'));

-- _request_id: the id of the request that a service works at, if it has set one for its transaction.
CREATE OR REPLACE FUNCTION hindsight._request_id()
  RETURNS text
  LANGUAGE sql STABLE
RETURN nullif(pg_catalog.left(pg_catalog.current_setting('hindsight.request_id', true), 128), '');

-- _leave_event: the one INSERT of events. The transaction has its number before the event has one, which seals count on.
CREATE OR REPLACE FUNCTION hindsight._leave_event(
  bank_id bigint, action text, memory_id uuid, reason text DEFAULT NULL, before jsonb DEFAULT NULL, after jsonb DEFAULT NULL)
  RETURNS void
  LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  salt constant bytea := pg_catalog.uuid_send(pg_catalog.gen_random_uuid());
BEGIN
  PERFORM pg_catalog.pg_current_xact_id();
  INSERT INTO hindsight.event (bank_id, principal, action, memory_id, reason, before, after, request_id, salt, digest)
  VALUES (bank_id, hindsight.principal(), action, memory_id, reason, before, after, hindsight._request_id(), salt,
          hindsight._event_digest(salt, reason, before, after));
END
$$;

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
  PERFORM hindsight._leave_event(
    bank_id, action, memory_id, reason,
    (SELECT pg_catalog.jsonb_object_agg(e.key, e.value) FROM pg_catalog.jsonb_each(was) AS e
     WHERE became -> e.key IS DISTINCT FROM e.value),
    (SELECT pg_catalog.jsonb_object_agg(e.key, e.value) FROM pg_catalog.jsonb_each(became) AS e
     WHERE was -> e.key IS DISTINCT FROM e.value));
END
$$;

-- _keep_version: keeps what a memory was until now, for recall(as_of).
CREATE OR REPLACE FUNCTION hindsight._keep_version(m hindsight.memory, believed_until timestamptz)
  RETURNS void
  LANGUAGE sql VOLATILE
BEGIN ATOMIC
  INSERT INTO hindsight.memory_version (
    bank_id, memory_id, version, content, type, tags, entities, slot, context, session_id, source, confidence, importance,
    metadata, language, occurred_at, created_at, confirmed_at, confirmations, changed_at, expires_at, completed_at, deleted_at,
    superseded_by, valid_to, archived_at, pending_reason, model_id, embedding, digest, document, believed_until)
  VALUES (
    m.bank_id, m.memory_id, m.version, m.content, m.type, m.tags, m.entities, m.slot, m.context, m.session_id, m.source,
    m.confidence, m.importance, m.metadata, m.language, m.occurred_at, m.created_at, m.confirmed_at, m.confirmations,
    m.changed_at, m.expires_at, m.completed_at, m.deleted_at, m.superseded_by, m.valid_to, m.archived_at, m.pending_reason,
    m.model_id, m.embedding, m.digest, m.document, believed_until);
END;

-- _insert: inserts a memory; false when its content or its slot is taken already.
CREATE OR REPLACE FUNCTION hindsight._insert(fresh hindsight.memory)
  RETURNS boolean
  LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
  INSERT INTO hindsight.memory (
    bank_id, memory_id, version, content, type, tags, entities, slot, context, session_id, source, confidence, importance,
    metadata, language, occurred_at, created_at, confirmed_at, confirmations, changed_at, expires_at, superseded_by, valid_to,
    pending_reason, model_id, embedding)
  VALUES (
    fresh.bank_id, fresh.memory_id, fresh.version, fresh.content, fresh.type, fresh.tags, fresh.entities, fresh.slot,
    fresh.context, fresh.session_id, fresh.source, fresh.confidence, fresh.importance, fresh.metadata, fresh.language,
    fresh.occurred_at, fresh.created_at, fresh.confirmed_at, fresh.confirmations, fresh.changed_at, fresh.expires_at,
    fresh.superseded_by, fresh.valid_to, fresh.pending_reason, fresh.model_id, fresh.embedding)
  ON CONFLICT DO NOTHING;
  RETURN FOUND;
END
$$;

-- _change: writes a memory's new values, after keeping the version that they replace, and leaves an event.
-- The caller holds the row's lock, and passes the row as it was read under it and as it shall be. since: when what it takes the place of
-- ended, so that no moment is without a value; else now. A memory that is no longer believed, or says something else, takes with it
-- what was inferred from it (_withdraw_insights), which is locked first.
CREATE OR REPLACE FUNCTION hindsight._change(
  action text, before hindsight.memory, after hindsight.memory, reason text DEFAULT NULL, since timestamptz DEFAULT NULL)
  RETURNS hindsight.memory
  LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  at constant timestamptz := greatest(coalesce(since, pg_catalog.clock_timestamp()), before.changed_at + interval '1 microsecond');
  is_lost constant boolean := action <> 'doubted' AND hindsight._state(before, '-infinity') = 'live'
    AND (hindsight._state(after, '-infinity') <> 'live' OR after.content <> before.content);
BEGIN
  IF is_lost THEN
    PERFORM hindsight._lock_derived(before.bank_id, ARRAY[before.memory_id]);
  END IF;
  PERFORM hindsight._keep_version(before, at);
  UPDATE hindsight.memory AS m
    SET version = before.version + 1, changed_at = at,
        content = after.content, type = after.type, tags = after.tags, entities = after.entities, slot = after.slot,
        context = after.context, source = after.source, confidence = after.confidence, importance = after.importance,
        metadata = after.metadata, occurred_at = after.occurred_at, confirmed_at = after.confirmed_at,
        confirmations = after.confirmations, expires_at = after.expires_at, completed_at = after.completed_at,
        deleted_at = after.deleted_at, superseded_by = after.superseded_by, valid_to = after.valid_to,
        archived_at = after.archived_at, pending_reason = after.pending_reason, model_id = after.model_id, embedding = after.embedding
    WHERE m.bank_id = before.bank_id AND m.memory_id = before.memory_id
    RETURNING m.* INTO after;
  PERFORM hindsight._record(before.bank_id, action, before.memory_id, reason, before, after);
  IF is_lost THEN
    PERFORM hindsight._withdraw_insights(before.bank_id, before.memory_id);
  END IF;
  RETURN after;
END
$$;

-- _retire: forgets (action 'forgotten', 'rejected') or puts away ('archived') memories that the caller has locked, all at once.
-- Returns how many: those that were gone already are passed over.
CREATE OR REPLACE FUNCTION hindsight._retire(of_bank bigint, ids uuid[], action text, reason text)
  RETURNS integer
  LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  now_at constant timestamptz := pg_catalog.clock_timestamp();
  is_archived constant boolean := action = 'archived';
  retired integer;
BEGIN
  PERFORM hindsight._keep_version(m, greatest(now_at, m.changed_at + interval '1 microsecond'))
    FROM hindsight.memory AS m
    WHERE m.bank_id = of_bank AND m.memory_id = ANY (ids) AND m.deleted_at IS NULL AND NOT (is_archived AND m.archived_at IS NOT NULL);
  WITH gone AS (
    UPDATE hindsight.memory AS m
      SET version = m.version + 1, changed_at = greatest(now_at, m.changed_at + interval '1 microsecond'),
          deleted_at = CASE WHEN is_archived THEN m.deleted_at ELSE now_at END,
          archived_at = CASE WHEN is_archived THEN now_at ELSE m.archived_at END
      WHERE m.bank_id = of_bank AND m.memory_id = ANY (ids) AND m.deleted_at IS NULL AND NOT (is_archived AND m.archived_at IS NOT NULL)
      RETURNING m.memory_id
  )
  SELECT count(*) INTO retired
    FROM gone AS g
    CROSS JOIN LATERAL hindsight._leave_event(
      of_bank, action, g.memory_id, reason, NULL,
      pg_catalog.jsonb_build_object(CASE WHEN is_archived THEN 'archived_at' ELSE 'deleted_at' END, now_at)) AS event;
  RETURN retired;
END
$$;

-- history: a memory's life, oldest event first: who did what to it, when and why, and the values that changed.
-- Raises HM001, HM002 (the bank has never had such a memory).
CREATE OR REPLACE FUNCTION hindsight.history(bank text, memory_id uuid)
  RETURNS TABLE (at timestamptz, principal text, action text, reason text, before jsonb, after jsonb, request_id text)
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
  SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
  opened constant hindsight.bank := _open_bank(bank, 'reader');
BEGIN
  RETURN QUERY
    SELECT e.at, e.principal, e.action, e.reason, e.before, e.after, e.request_id
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
