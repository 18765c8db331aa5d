-- What store asks before it inserts: is it believed, was it forgotten or corrected before, is it there already.

-- _believable: the confidence from which a memory is believed; below it, it is pending.
CREATE OR REPLACE FUNCTION hindsight._believable()
  RETURNS double precision LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 0.6;

-- _skip: leaves an event of what was not kept (under its digest, not its words), and is the row that store returns.
CREATE OR REPLACE FUNCTION hindsight._skip(fresh hindsight.memory, corrected hindsight.memory, reason text)
  RETURNS TABLE (memory_id uuid, outcome text, related_id uuid, reasons text[])
  LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
  PERFORM hindsight._leave_event(
    fresh.bank_id, 'skipped', corrected.memory_id, reason, NULL,
    pg_catalog.jsonb_build_object('digest', pg_catalog.encode(fresh.digest, 'hex'), 'type', fresh.type));
  RETURN QUERY SELECT corrected.memory_id, 'skipped', corrected.superseded_by, ARRAY[reason];
END
$$;

-- _gone: the memory for whose sake what was said at that time does not come back: forgotten since then, with the same content
-- (or one that it had before, or the same in other words) or the same slot; or the same content, corrected by something
-- that was said later and that still holds, in its place or in another memory. At most one.
CREATE OR REPLACE FUNCTION hindsight._gone(fresh hindsight.memory, said_at timestamptz)
  RETURNS SETOF hindsight.memory
  LANGUAGE plpgsql STABLE
AS $$
DECLARE
  nearest constant double precision := (SELECT r.merge_threshold FROM hindsight.embedding_model AS r WHERE r.model_id = fresh.model_id);
BEGIN
  RETURN QUERY
    SELECT m.* FROM hindsight.memory AS m
    WHERE m.bank_id = fresh.bank_id AND m.digest = fresh.digest AND (m.deleted_at IS NOT NULL OR m.superseded_by IS NOT NULL)
      AND (m.deleted_at > said_at
           OR (m.deleted_at IS NULL
               AND EXISTS (SELECT FROM hindsight.current_memory AS s
                           WHERE s.bank_id = m.bank_id AND s.memory_id = m.superseded_by
                             AND coalesce(s.occurred_at, s.created_at) > said_at)))
    ORDER BY m.deleted_at DESC NULLS LAST
    LIMIT 1;
  IF NOT FOUND THEN -- a content that was changed in place
    RETURN QUERY
      SELECT m.* FROM hindsight.memory_version AS v JOIN hindsight.memory AS m ON m.bank_id = v.bank_id AND m.memory_id = v.memory_id
      WHERE v.bank_id = fresh.bank_id AND v.digest = fresh.digest AND m.digest <> fresh.digest
        AND (m.deleted_at > said_at OR (m.deleted_at IS NULL AND m.archived_at IS NULL AND v.believed_until > said_at))
      ORDER BY m.deleted_at DESC NULLS LAST
      LIMIT 1;
  END IF;
  IF NOT FOUND AND fresh.slot IS NOT NULL THEN
    RETURN QUERY
      SELECT m.* FROM hindsight.memory AS m
      WHERE m.bank_id = fresh.bank_id AND m.slot = fresh.slot AND m.deleted_at IS NOT NULL AND m.deleted_at > said_at
      LIMIT 1;
  END IF;
  IF NOT FOUND THEN -- the same in other words, among the five hundred that went last
    RETURN QUERY
      SELECT m.*
      FROM (SELECT * FROM hindsight.memory AS m
            WHERE m.bank_id = fresh.bank_id AND (m.deleted_at IS NOT NULL OR m.superseded_by IS NOT NULL) AND m.changed_at > said_at
            ORDER BY m.changed_at DESC LIMIT 500) AS m
      WHERE CASE WHEN m.model_id = fresh.model_id THEN 1 - (m.embedding <=> fresh.embedding) >= nearest
                 ELSE hindsight._name_units_v1(m.content) = hindsight._name_units_v1(fresh.content) END
        AND (m.deleted_at > said_at
             OR (m.deleted_at IS NULL
                 AND EXISTS (SELECT FROM hindsight.current_memory AS s
                             WHERE s.bank_id = m.bank_id AND s.memory_id = m.superseded_by
                               AND coalesce(s.occurred_at, s.created_at) > said_at)))
        AND hindsight._says_the_same(m.content, fresh.content)
      LIMIT 1;
  END IF;
END
$$;

-- _same_meaning: the memory that says the same in other words: near by the model's merge threshold, of the same slot where both
-- have one, and with the same numbers, names and negation (_says_the_same). NULL: there is none.
CREATE OR REPLACE FUNCTION hindsight._same_meaning(opened hindsight.bank, used hindsight.embedding_model, fresh hindsight.memory)
  RETURNS uuid
  LANGUAGE plpgsql STABLE
AS $$
DECLARE
  near uuid[];
BEGIN
  IF opened.documents IS NULL
     AND NOT EXISTS (SELECT FROM hindsight.live_memory AS m WHERE m.bank_id = opened.bank_id OFFSET hindsight._exact_limit()) THEN
    near := ARRAY(SELECT m.memory_id FROM hindsight.current_memory AS m
                  WHERE m.bank_id = opened.bank_id AND m.model_id = used.model_id
                    AND 1 - (m.embedding <=> fresh.embedding) >= used.merge_threshold
                  ORDER BY m.embedding <=> fresh.embedding LIMIT 20);
  ELSE
    near := hindsight._search_by_meaning(opened.bank_id, pg_catalog.statement_timestamp(), NULL, 20, fresh.embedding, used)
            || hindsight._pending(opened.bank_id, pg_catalog.statement_timestamp(), NULL);
  END IF;
  RETURN (
    SELECT m.memory_id
    FROM hindsight.current_memory AS m
    WHERE m.bank_id = opened.bank_id AND m.memory_id = ANY (near) AND m.model_id = used.model_id
      AND 1 - (m.embedding <=> fresh.embedding) >= used.merge_threshold
      AND coalesce(m.slot = fresh.slot, true) AND hindsight._says_the_same(m.content, fresh.content)
    ORDER BY m.embedding <=> fresh.embedding
    LIMIT 1);
END
$$;

-- _merge: the same was said again: confirms the memory that holds it, and unites what the two say about it. Confidence rises
-- by what is evidence: other words from another conversation raise it, each time by less; the same words do not, but for a
-- user, document or tool that is surer (is_sure: a confidence was given); an echo of what was recalled never does.
CREATE OR REPLACE FUNCTION hindsight._merge(
  held hindsight.memory, again hindsight.memory, is_sure boolean, OUT reasons text[], OUT superseded_id uuid)
  LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  merged hindsight.memory := held;
  contest record;
  is_echo constant boolean := held.digest = again.digest OR again.source = 'inferred' OR again.session_id = held.session_id;
BEGIN
  reasons := ARRAY[CASE WHEN held.digest = again.digest THEN 'the same content was stored before'
                        ELSE 'the same was stored before, in other words' END];
  merged.confirmed_at := greatest(held.confirmed_at, again.confirmed_at);
  merged.confirmations := held.confirmations + 1;
  merged.confidence := CASE
    WHEN is_echo IS NOT TRUE
      THEN greatest(held.confidence, least(0.99, 1 - (1 - held.confidence) * (1 - 0.25 * again.confidence)))
    WHEN is_sure AND again.source IN ('user', 'document', 'tool') THEN greatest(held.confidence, again.confidence)
    WHEN held.pending_reason = 'low confidence' AND coalesce(again.source IN ('user', 'document', 'tool'), is_sure)
      THEN greatest(held.confidence, again.confidence)
    ELSE held.confidence END;
  merged.importance := greatest(held.importance, again.importance);
  merged.tags := (hindsight._clean_labels(held.tags || again.tags))[:100];
  merged.entities := (hindsight._clean_labels(held.entities || again.entities))[:100];
  merged.metadata := held.metadata || again.metadata;
  merged.context := coalesce(held.context, again.context);
  merged.source := coalesce(held.source, again.source);
  merged.occurred_at := coalesce(held.occurred_at, again.occurred_at);
  IF NOT merged.tags @> again.tags OR NOT merged.entities @> again.entities THEN
    reasons := reasons || 'it has a hundred tags or entities already, and takes no more'::text;
  END IF;
  IF pg_catalog.length(merged.metadata::text) > 100000 THEN
    merged.metadata := held.metadata;
    reasons := reasons || 'it keeps its metadata: united they would be too large'::text;
  END IF;
  IF held.type = 'hypothesis' AND again.type <> 'hypothesis' AND again.pending_reason IS NULL THEN
    merged.type := again.type;
    merged.source := coalesce(again.source, held.source);
    merged.confidence := greatest(merged.confidence, again.confidence);
    reasons := reasons || pg_catalog.format('said now, not only inferred: a %s', again.type);
  ELSIF held.type <> again.type THEN
    reasons := reasons || pg_catalog.format('it stays a %s, not a %s', held.type, again.type);
  END IF;
  merged.slot := coalesce(held.slot, again.slot);
  merged.expires_at := CASE WHEN held.expires_at IS NOT NULL AND again.expires_at IS NOT NULL
                         THEN greatest(held.expires_at, again.expires_at) END;
  IF held.completed_at IS NOT NULL AND again.type = 'todo' THEN
    merged.completed_at := NULL;
    merged.expires_at := again.expires_at;
    reasons := reasons || 'it was done, and is to be done again'::text;
  END IF;
  IF held.embedding IS NULL AND held.digest = again.digest THEN
    merged.embedding := again.embedding;
    merged.model_id := again.model_id;
  END IF;
  IF held.slot <> again.slot THEN
    reasons := reasons || pg_catalog.format('it keeps its slot %s, not %s', held.slot, again.slot);
  END IF;
  IF held.pending_reason = 'low confidence' AND merged.confidence >= hindsight._believable() THEN
    merged.pending_reason := NULL;
    reasons := reasons || 'a confident statement of it: it is believed now'::text;
  ELSIF held.pending_reason IS NOT NULL THEN
    reasons := reasons || ('still pending: ' || held.pending_reason);
  END IF;
  IF merged.slot IS NOT NULL AND merged.pending_reason IS NULL
     AND (held.slot IS NULL OR held.pending_reason IS NOT NULL) THEN
    SELECT c.* INTO contest FROM hindsight._contest_slot(merged, coalesce(again.occurred_at, again.created_at)) AS c;
    superseded_id := contest.superseded_id;
    IF contest.holder_id IS NOT NULL AND held.pending_reason IS NOT NULL THEN
      merged.superseded_by := contest.holder_id;
      merged.valid_to := contest.valid_to;
      reasons := reasons || contest.reason;
    ELSIF contest.holder_id IS NOT NULL THEN
      merged.slot := NULL;
      reasons := reasons || contest.reason;
    END IF;
  END IF;
  PERFORM hindsight._change('merged', held, merged, reasons[1]);
END
$$;

-- _supersede: the memory that was named gives way to another. Returns its id.
-- Raises HM002 (no such memory, or forgotten), HM006 (superseded already).
CREATE OR REPLACE FUNCTION hindsight._supersede(opened hindsight.bank, old_id uuid, new_id uuid, said_at timestamptz)
  RETURNS uuid
  LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  held constant hindsight.memory := hindsight._lock_memory(opened, old_id);
  changed hindsight.memory := held;
BEGIN
  IF held.deleted_at IS NOT NULL THEN
    PERFORM hindsight._raise_unknown_memory(opened.name, old_id);
  ELSIF held.superseded_by IS NOT NULL THEN
    RAISE EXCEPTION 'memory % was superseded by % already', old_id, held.superseded_by
      USING ERRCODE = 'HM006', HINT = 'Supersede that one, or store without supersedes.';
  END IF;
  changed.superseded_by := new_id;
  IF hindsight._on_conflict(held.bank_id, held.type) = 'history' THEN
    changed.valid_to := said_at;
  END IF;
  PERFORM hindsight._change('superseded', held, changed, 'superseded by name');
  RETURN held.memory_id;
END
$$;
