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

-- _said_last: when a memory was last said: by its date, or by one that it had before an earlier one was told (_true_before).
CREATE OR REPLACE FUNCTION hindsight._said_last(m hindsight.memory)
  RETURNS timestamptz
  LANGUAGE sql STABLE
RETURN greatest(coalesce(m.occurred_at, m.created_at), (
  SELECT max(coalesce(v.occurred_at, v.created_at)) FROM hindsight.memory_version AS v
  WHERE v.bank_id = m.bank_id AND v.memory_id = m.memory_id AND v.digest = m.digest));

-- _went_after: whether a memory was forgotten after that time, or corrected by something else that was said later and that still holds.
CREATE OR REPLACE FUNCTION hindsight._went_after(
  of_bank bigint, of_digest bytea, deleted_at timestamptz, superseded_by uuid, said_at timestamptz)
  RETURNS boolean
  LANGUAGE sql STABLE
RETURN deleted_at > said_at
  OR (deleted_at IS NULL
      AND EXISTS (SELECT FROM hindsight.memory AS s
                  WHERE s.bank_id = of_bank AND s.memory_id = _went_after.superseded_by
                    AND s.deleted_at IS NULL AND s.superseded_by IS NULL AND s.archived_at IS NULL
                    AND s.digest <> of_digest AND hindsight._said_last(s) > said_at));

-- _gone: the memory for whose sake what was said at that time does not come back: it went after that (_went_after), and had the same
-- content (also one that was changed in place since, or the same in other words), or was forgotten, had the same slot and came from the
-- same session: distilled once more, that may put it into any words. Another session's value of the slot is other information.
-- At most one.
CREATE OR REPLACE FUNCTION hindsight._gone(fresh hindsight.memory, said_at timestamptz)
  RETURNS SETOF hindsight.memory
  LANGUAGE plpgsql STABLE
AS $$
DECLARE
  nearest constant double precision := (SELECT r.merge_threshold FROM hindsight.embedding_model AS r WHERE r.model_id = fresh.model_id);
  units constant text[] := hindsight._name_units_v1(fresh.content);
BEGIN
  RETURN QUERY
    SELECT m.* FROM hindsight.memory AS m
    WHERE m.bank_id = fresh.bank_id AND m.digest = fresh.digest AND (m.deleted_at IS NOT NULL OR m.superseded_by IS NOT NULL)
      AND hindsight._went_after(m.bank_id, m.digest, m.deleted_at, m.superseded_by, said_at)
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
  IF NOT FOUND AND fresh.slot IS NOT NULL AND fresh.session_id IS NOT NULL THEN
    RETURN QUERY
      SELECT m.* FROM hindsight.memory AS m
      WHERE m.bank_id = fresh.bank_id AND m.slot = fresh.slot AND m.session_id = fresh.session_id
        AND m.deleted_at IS NOT NULL AND m.deleted_at > said_at
      LIMIT 1;
  END IF;
  IF NOT FOUND THEN -- the same in other words, among the five hundred that went last
    RETURN QUERY
      WITH latest AS MATERIALIZED (
        SELECT m.memory_id, m.content, m.digest, m.deleted_at, m.superseded_by, m.model_id, m.embedding
        FROM hindsight.memory AS m
        WHERE m.bank_id = fresh.bank_id AND (m.deleted_at IS NOT NULL OR m.superseded_by IS NOT NULL) AND m.changed_at > said_at
        ORDER BY m.changed_at DESC LIMIT 500
      ),
      near AS MATERIALIZED ( -- first: the words are compared in a millisecond, the vectors in a microsecond
        SELECT l.* FROM latest AS l
        WHERE CASE WHEN l.model_id = fresh.model_id THEN 1 - (l.embedding <=> fresh.embedding) >= nearest
                   ELSE hindsight._name_units_v1(l.content) = units END
      )
      SELECT m.*
      FROM near AS n JOIN hindsight.memory AS m ON m.bank_id = fresh.bank_id AND m.memory_id = n.memory_id
      WHERE hindsight._went_after(fresh.bank_id, n.digest, n.deleted_at, n.superseded_by, said_at)
        AND hindsight._says_the_same(n.content, fresh.content)
      LIMIT 1;
  END IF;
END
$$;

-- _says_it_too: whether a memory can take in another: near by the model's merge threshold, of the same slot where both have one, and
-- with the same numbers, names and negation (_says_the_same).
CREATE OR REPLACE FUNCTION hindsight._says_it_too(
  content text, slot text, embedding halfvec, fresh hindsight.memory, merge_threshold double precision)
  RETURNS boolean
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN 1 - (embedding <=> fresh.embedding) >= merge_threshold
  AND coalesce(slot = fresh.slot, true) AND hindsight._says_the_same(content, fresh.content);

-- _same_meaning: the nearest memory that says the same in other words (_says_it_too). NULL: there is none.
CREATE OR REPLACE FUNCTION hindsight._same_meaning(opened hindsight.bank, used hindsight.embedding_model, fresh hindsight.memory)
  RETURNS uuid
  LANGUAGE plpgsql STABLE
AS $$
DECLARE
  stands_beside constant boolean := hindsight._stands_beside(opened, used.model_id);
  near constant uuid[] := hindsight._nearest(opened, used, fresh.embedding, used.merge_threshold);
BEGIN
  RETURN (
    SELECT m.memory_id
    FROM hindsight.current_memory AS m
    CROSS JOIN LATERAL (SELECT hindsight._embedding_by(
      used.model_id, stands_beside, m.bank_id, m.memory_id, m.digest, m.model_id, m.embedding)) AS e(embedding)
    WHERE m.bank_id = opened.bank_id AND m.memory_id = ANY (near)
      AND hindsight._says_it_too(m.content, m.slot, e.embedding, fresh, used.merge_threshold)
    ORDER BY e.embedding <=> fresh.embedding
    LIMIT 1);
END
$$;

-- _united: a memory with what another that says the same has beside it, but for metadata, confidence and confirmations. It was true
-- from the earlier of the two dates on, whichever was told first.
CREATE OR REPLACE FUNCTION hindsight._united(kept hindsight.memory, other hindsight.memory)
  RETURNS hindsight.memory
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
AS $$
DECLARE
  united hindsight.memory := kept;
BEGIN
  united.tags := (hindsight._clean_labels(kept.tags || other.tags))[:100];
  united.entities := (hindsight._clean_labels(kept.entities || other.entities))[:100];
  united.slot := coalesce(kept.slot, other.slot);
  united.context := coalesce(kept.context, other.context);
  united.source := coalesce(kept.source, other.source);
  united.occurred_at := CASE WHEN coalesce(other.occurred_at, other.created_at) < coalesce(kept.occurred_at, kept.created_at)
                          THEN coalesce(other.occurred_at, other.created_at) ELSE kept.occurred_at END;
  united.importance := greatest(kept.importance, other.importance);
  united.confirmed_at := greatest(kept.confirmed_at, other.confirmed_at);
  united.expires_at := CASE WHEN kept.expires_at IS NOT NULL AND other.expires_at IS NOT NULL
                         THEN greatest(kept.expires_at, other.expires_at) END;
  RETURN united;
END
$$;

-- _merge: the same was said again: confirms the memory that holds it, and unites what the two say about it. Confidence rises
-- by what is evidence: other words from another conversation raise it, each time by less; the same words do not, but for a
-- user, document or tool that is surer (is_sure: a confidence was given); an echo of what was recalled never does, nor does a
-- tool or document that the same principal brings again. What the screen holds adds nothing to a memory; and what it held is
-- believed when a user says it.
CREATE OR REPLACE FUNCTION hindsight._merge(
  held hindsight.memory, again hindsight.memory, is_sure boolean, OUT reasons text[], OUT superseded_id uuid)
  LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  is_held constant boolean := coalesce(again.pending_reason LIKE hindsight._screened() || '%', false);
  merged hindsight.memory := CASE WHEN is_held THEN held ELSE hindsight._united(held, again) END;
  contest record;
  since timestamptz; -- when another value of the slot ended
  earlier record;
  is_echo boolean;
BEGIN
  IF held.metadata ? 'insight' AND (again.source IN ('user', 'document', 'tool')) IS NOT TRUE THEN -- who read it here may have said it
    again.source := 'inferred';
    again.type := 'hypothesis';
  END IF;
  is_echo := held.digest = again.digest OR again.source = 'inferred' OR again.session_id = held.session_id
    OR is_held OR hindsight._is_own_repetition(held, again);
  reasons := ARRAY[CASE WHEN held.digest = again.digest THEN 'the same content was stored before'
                        ELSE 'the same was stored before, in other words' END];
  merged.confirmations := held.confirmations + 1;
  merged.confidence := CASE
    WHEN is_echo IS NOT TRUE
      THEN greatest(held.confidence, least(0.99, 1 - (1 - held.confidence) * (1 - 0.25 * again.confidence)))
    WHEN is_sure AND again.source IN ('user', 'document', 'tool') THEN greatest(held.confidence, again.confidence)
    WHEN held.pending_reason = 'low confidence' AND coalesce(again.source IN ('user', 'document', 'tool'), is_sure)
      THEN greatest(held.confidence, again.confidence)
    ELSE held.confidence END;
  merged.metadata := CASE WHEN is_held THEN held.metadata ELSE held.metadata || again.metadata END;
  IF is_held THEN
    reasons := reasons || again.pending_reason;
  ELSIF NOT merged.tags @> again.tags OR NOT merged.entities @> again.entities THEN
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
  ELSIF held.pending_reason LIKE hindsight._screened() || '%' AND again.source = 'user' AND again.pending_reason IS NULL THEN
    merged.pending_reason := NULL;
    merged.source := again.source;
    merged.confidence := greatest(merged.confidence, again.confidence);
    reasons := reasons || 'the user says it: it is believed now'::text;
  ELSIF held.pending_reason IS NOT NULL THEN
    reasons := reasons || ('still pending: ' || held.pending_reason);
  END IF;
  IF held.pending_reason IS NULL AND held.confirmations >= 1 AND held.digest <> again.digest
     AND hindsight._is_evidence_once(again)
     AND again.source IS NOT DISTINCT FROM held.source AND held.created_at > pg_catalog.clock_timestamp() - interval '10 minutes'
     AND (SELECT b.screening FROM hindsight.bank AS b WHERE b.bank_id = held.bank_id)
     AND NOT hindsight._was_released(held.bank_id, held.digest) THEN
    merged.pending_reason := hindsight._one_claim();
    reasons := reasons || merged.pending_reason;
  END IF;
  IF merged.slot IS NOT NULL AND merged.pending_reason IS NULL
     AND (held.slot IS NULL OR held.pending_reason IS NOT NULL) THEN
    SELECT c.* INTO contest FROM hindsight._contest_slot(merged, coalesce(again.occurred_at, again.created_at)) AS c;
    superseded_id := contest.superseded_id;
    since := contest.superseded_at;
    IF contest.is_distrusted AND held.pending_reason IS NOT NULL THEN
      merged.pending_reason := contest.reason;
      reasons := reasons || contest.reason;
    ELSIF contest.holder_id IS NOT NULL AND held.pending_reason IS NOT NULL THEN
      merged.superseded_by := contest.holder_id;
      merged.valid_to := contest.valid_to;
      reasons := reasons || contest.reason;
    ELSIF contest.holder_id IS NOT NULL THEN
      merged.slot := NULL;
      reasons := reasons || contest.reason;
    END IF;
  END IF;
  IF merged.occurred_at IS DISTINCT FROM held.occurred_at THEN
    SELECT e.* INTO earlier FROM hindsight._true_before(held, again, merged.occurred_at) AS e;
    IF earlier.reason IS NOT NULL THEN
      merged.occurred_at := held.occurred_at;
      reasons := reasons || earlier.reason;
    END IF;
  END IF;
  PERFORM hindsight._change('merged', held, merged, reasons[1], since);
END
$$;

-- _supersede: the memory that was named gives way to another, told as fresh. Returns its id. A guess takes the place of no statement
-- that is believed, by name as little as by slot.
-- Raises HM002 (no such memory, or forgotten), HM004 (a guess for a statement), HM006 (superseded already).
CREATE OR REPLACE FUNCTION hindsight._supersede(
  opened hindsight.bank, old_id uuid, new_id uuid, fresh hindsight.memory, said_at timestamptz)
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
  ELSIF fresh.type = 'hypothesis' AND held.type <> 'hypothesis' AND hindsight._state(held, pg_catalog.clock_timestamp()) = 'live' THEN
    RAISE EXCEPTION 'memory % is a %, which a guess cannot supersede', old_id, held.type
      USING ERRCODE = 'HM004',
            HINT = 'Store the guess without supersedes; or, where somebody said it, with source ''user'', ''document'' or ''tool'' and another type.';
  END IF;
  changed.superseded_by := new_id;
  IF hindsight._on_conflict(held.bank_id, held.type) = 'history' THEN
    changed.valid_to := said_at;
  END IF;
  PERFORM hindsight._change('superseded', held, changed, 'superseded by name');
  RETURN held.memory_id;
END
$$;
