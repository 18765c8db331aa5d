-- Storing a memory. Race-free by two unique indexes over live rows: one for each content, one for each slot.
-- Entry points set enable_seqscan off: a session keeps its plans, and one made while the table was empty would scan it
-- when it is large (measured: 30 ms a call at 1,500 rows instead of 1).

-- _believable: the confidence from which a memory is believed; below it, it is pending.
CREATE OR REPLACE FUNCTION hindsight._believable()
  RETURNS double precision LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 0.6;

-- _contest_slot: who holds a slot after a challenge. NULL: the challenger may take it, since it was free or its holder
-- is superseded now (the challenger is believed from that moment on). Otherwise the holder's id: it is more confident, or as confident and newer.
CREATE OR REPLACE FUNCTION hindsight._contest_slot(
  bank_id bigint, slot text, challenger uuid, confidence double precision, said_at timestamptz,
  OUT holder_id uuid, OUT superseded_id uuid, OUT superseded_at timestamptz)
  LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  holder hindsight.memory;
  changed hindsight.memory;
BEGIN
  SELECT m.* INTO holder FROM hindsight.live_memory AS m
    WHERE m.bank_id = _contest_slot.bank_id AND m.slot = _contest_slot.slot AND m.memory_id <> challenger
    FOR UPDATE;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  changed := holder;
  IF holder.expires_at <= pg_catalog.clock_timestamp() THEN
    PERFORM hindsight._archive(holder);
  ELSIF holder.confidence > confidence
        OR (holder.confidence = confidence AND coalesce(holder.occurred_at, holder.created_at) > said_at) THEN
    holder_id := holder.memory_id;
  ELSE
    superseded_id := holder.memory_id;
    changed.superseded_by := challenger;
    changed := hindsight._change('superseded', holder, changed, 'slot ' || slot || ' has a new value');
    superseded_at := changed.changed_at;
  END IF;
END
$$;

-- _archive: puts a memory away that has expired, which frees its content and its slot.
CREATE OR REPLACE FUNCTION hindsight._archive(expired hindsight.memory)
  RETURNS void
  LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  changed hindsight.memory := expired;
BEGIN
  changed.archived_at := pg_catalog.clock_timestamp();
  PERFORM hindsight._change('archived', expired, changed, 'expired');
END
$$;

-- _insert: inserts a memory; false when its content or its slot is taken already.
CREATE OR REPLACE FUNCTION hindsight._insert(fresh hindsight.memory)
  RETURNS boolean
  LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
  INSERT INTO hindsight.memory (
    bank_id, memory_id, version, content, type, tags, entities, slot, context, session_id, source, confidence, importance,
    metadata, language, occurred_at, created_at, confirmed_at, confirmations, changed_at, expires_at, superseded_by,
    pending_reason, model_id, embedding)
  VALUES (
    fresh.bank_id, fresh.memory_id, fresh.version, fresh.content, fresh.type, fresh.tags, fresh.entities, fresh.slot,
    fresh.context, fresh.session_id, fresh.source, fresh.confidence, fresh.importance, fresh.metadata, fresh.language,
    fresh.occurred_at, fresh.created_at, fresh.confirmed_at, fresh.confirmations, fresh.changed_at, fresh.expires_at,
    fresh.superseded_by, fresh.pending_reason, fresh.model_id, fresh.embedding)
  ON CONFLICT DO NOTHING;
  RETURN FOUND;
END
$$;

-- _merge: the same content came again: confirms the memory that holds it, and unites what the two say about it.
-- Only a confidence that was stated (is_sure) raises the one that is held: an echo does not.
CREATE OR REPLACE FUNCTION hindsight._merge(
  held hindsight.memory, again hindsight.memory, is_sure boolean, OUT reasons text[], OUT superseded_id uuid)
  LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  merged hindsight.memory := held;
  slot_holder uuid;
BEGIN
  reasons := ARRAY['the same content was stored before'];
  merged.confirmed_at := greatest(held.confirmed_at, again.confirmed_at);
  merged.confirmations := held.confirmations + 1;
  merged.confidence := CASE WHEN is_sure THEN greatest(held.confidence, again.confidence) ELSE held.confidence END;
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
  IF held.type <> again.type THEN
    reasons := reasons || pg_catalog.format('it stays a %s, not a %s', held.type, again.type);
  END IF;
  merged.slot := coalesce(held.slot, again.slot);
  merged.expires_at := CASE WHEN held.expires_at IS NOT NULL AND again.expires_at IS NOT NULL
                         THEN greatest(held.expires_at, again.expires_at) END;
  IF held.embedding IS NULL THEN
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
    SELECT c.holder_id, c.superseded_id INTO slot_holder, superseded_id
      FROM hindsight._contest_slot(held.bank_id, merged.slot, held.memory_id, merged.confidence,
                                   coalesce(again.occurred_at, again.created_at)) AS c;
    IF slot_holder IS NOT NULL AND held.pending_reason IS NOT NULL THEN
      merged.superseded_by := slot_holder;
      reasons := reasons || pg_catalog.format('slot %s has a more confident or newer value', merged.slot);
    ELSIF slot_holder IS NOT NULL THEN
      merged.slot := NULL;
      reasons := reasons || pg_catalog.format('slot %s stays with a more confident or newer memory', again.slot);
    END IF;
  END IF;
  PERFORM hindsight._change('merged', held, merged, reasons[1]);
END
$$;

-- store: keeps a memory, or says what became of it instead.
--   outcome: stored; merged (memory_id is the memory that says the same); pending (confidence under 0.6: kept, not
--   believed yet); superseding (related_id is the memory that held the slot); superseded (related_id holds the slot:
--   it is more confident, or newer).
-- confidence and importance lie in [0, 1]; NULL means 0.9 and 0.5. embedding comes with the model that made it.
-- Raises HM001, HM003, HM004, HM005, HM010, HM011, HM012.
CREATE OR REPLACE FUNCTION hindsight.store(
  bank text, content text, type text DEFAULT 'fact', tags text[] DEFAULT NULL, session_id text DEFAULT NULL,
  confidence double precision DEFAULT NULL, importance double precision DEFAULT NULL, source text DEFAULT NULL,
  slot text DEFAULT NULL, entities text[] DEFAULT NULL, context text DEFAULT NULL, occurred_at timestamptz DEFAULT NULL,
  expires_at timestamptz DEFAULT NULL, metadata jsonb DEFAULT NULL, embedding vector DEFAULT NULL, model text DEFAULT NULL)
  RETURNS TABLE (memory_id uuid, outcome text, related_id uuid, reasons text[])
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
  SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
  opened constant hindsight.bank := _open_bank(bank, 'writer');
  used embedding_model;
  fresh memory;
  held memory;
  slot_holder uuid;
BEGIN
  PERFORM _check_text('content', store.content, 10000), _check_optional_text('context', store.context, 10000),
          _check_optional_text('slot', store.slot, 200), _check_type(store.type),
          _check_unit('confidence', store.confidence), _check_unit('importance', store.importance),
          _check_labels('tags', store.tags), _check_labels('entities', store.entities),
          _check_object('metadata', store.metadata), _check_time('occurred_at', store.occurred_at),
          _check_time('expires_at', store.expires_at);
  IF store.source NOT IN ('user', 'document', 'tool', 'inferred') THEN
    RAISE EXCEPTION 'unknown source %', quote_literal(store.source)
      USING ERRCODE = 'HM004', HINT = 'Sources are user, document, tool and inferred; leave it out when unknown.';
  END IF;
  IF store.expires_at <= clock_timestamp() THEN
    RAISE EXCEPTION 'expires_at % has passed already', store.expires_at
      USING ERRCODE = 'HM004', HINT = 'Give a time to come, or leave it out.';
  END IF;
  used := CASE WHEN store.embedding IS NOT NULL THEN _adopt_model(opened, store.model) END;
  IF store.slot IS NOT NULL THEN
    -- Writers of slots take turns in a bank, so that two batches with slots and contents in common do not deadlock.
    PERFORM pg_advisory_xact_lock(hashtextextended('hindsight.slot', opened.bank_id));
  END IF;
  IF store.session_id IS NOT NULL THEN
    PERFORM _open_session(opened.bank_id, store.session_id);
  END IF;

  fresh.bank_id := opened.bank_id;
  fresh.memory_id := gen_random_uuid();
  fresh.version := 1;
  fresh.content := store.content;
  fresh.digest := content_digest_v1(store.content);
  fresh.type := store.type;
  fresh.tags := _clean_labels(store.tags);
  fresh.entities := _with_entities(store.entities, store.content);
  fresh.slot := store.slot;
  fresh.context := store.context;
  fresh.session_id := store.session_id;
  fresh.source := store.source;
  fresh.confidence := coalesce(store.confidence, 0.9);
  fresh.importance := coalesce(store.importance, 0.5);
  fresh.metadata := coalesce(store.metadata, '{}');
  fresh.language := opened.language;
  fresh.occurred_at := store.occurred_at;
  fresh.confirmations := 0;
  fresh.expires_at := store.expires_at;
  fresh.pending_reason := CASE WHEN fresh.confidence < _believable() THEN 'low confidence' END;
  fresh.embedding := _check_embedding(store.embedding, used);
  fresh.model_id := CASE WHEN store.embedding IS NOT NULL THEN used.model_id END;

  -- Whoever loses a race for the content or the slot starts again, and finds the winner's row.
  FOR attempt IN 1..100 LOOP
    fresh.created_at := clock_timestamp();
    fresh.confirmed_at := fresh.created_at;
    fresh.changed_at := fresh.created_at;
    SELECT m.* INTO held FROM current_memory AS m
      WHERE m.bank_id = opened.bank_id AND m.digest = fresh.digest
      FOR UPDATE;
    IF FOUND AND held.expires_at <= clock_timestamp() THEN
      PERFORM _archive(held);
    ELSIF FOUND THEN
      memory_id := held.memory_id;
      outcome := 'merged';
      BEGIN
        SELECT g.reasons, g.superseded_id INTO reasons, related_id FROM _merge(held, fresh, store.confidence IS NOT NULL) AS g;
      EXCEPTION WHEN unique_violation THEN -- somebody took the slot that the merged memory was to have
        CONTINUE;
      END;
      RETURN NEXT;
      RETURN;
    END IF;

    memory_id := fresh.memory_id;
    related_id := NULL;
    reasons := '{}';
    IF fresh.pending_reason IS NOT NULL THEN
      outcome := 'pending';
      reasons := ARRAY[format('confidence %s is under %s: kept, not believed until confirmed', fresh.confidence, _believable())];
    ELSE
      outcome := 'stored';
    END IF;
    IF fresh.slot IS NULL OR fresh.pending_reason IS NOT NULL THEN
      CONTINUE WHEN NOT _insert(fresh);
    ELSE
      BEGIN -- what the contest wrote is undone when the row cannot be inserted
        SELECT c.holder_id, c.superseded_id, coalesce(c.superseded_at, clock_timestamp())
          INTO slot_holder, related_id, fresh.created_at
          FROM _contest_slot(opened.bank_id, fresh.slot, fresh.memory_id, fresh.confidence,
                             coalesce(fresh.occurred_at, fresh.created_at)) AS c;
        fresh.confirmed_at := fresh.created_at;
        fresh.changed_at := fresh.created_at;
        IF slot_holder IS NOT NULL THEN
          outcome := 'superseded';
          related_id := slot_holder;
          reasons := ARRAY[format('slot %s has a more confident or newer value', fresh.slot)];
          fresh.superseded_by := slot_holder;
        ELSIF related_id IS NOT NULL THEN
          outcome := 'superseding';
          reasons := ARRAY[format('slot %s had another value', fresh.slot)];
        END IF;
        IF NOT _insert(fresh) THEN
          RAISE unique_violation;
        END IF;
      EXCEPTION WHEN unique_violation THEN
        fresh.superseded_by := NULL;
        CONTINUE;
      END;
    END IF;
    IF cardinality(fresh.entities) = 100 AND NOT fresh.entities @> entities(fresh.content) THEN
      reasons := reasons || 'it has a hundred entities, and takes no more from its content'::text;
    END IF;
    PERFORM _record(opened.bank_id, outcome, fresh.memory_id, reasons[1], NULL, fresh);
    RETURN NEXT;
    RETURN;
  END LOOP;
  RAISE EXCEPTION 'many writers contend for %', CASE WHEN store.slot IS NULL THEN 'this content' ELSE 'slot ' || store.slot END
    USING ERRCODE = 'serialization_failure', HINT = 'Try the same call again.';
END
$$;
COMMENT ON FUNCTION hindsight.store(text, text, text, text[], text, double precision, double precision, text, text, text[],
                                    text, timestamptz, timestamptz, jsonb, vector, text) IS
  'Keeps a memory and says what became of it: stored, merged, pending, superseding or superseded.';
