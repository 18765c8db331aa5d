-- Storing a memory. Race-free by two unique indexes over live rows: one for each content, one for each slot.
-- Entry points set enable_seqscan off: a session keeps its plans, and one made while the table was empty would scan it
-- when it is large (measured: 30 ms a call at 1,500 rows instead of 1).

-- store: keeps a memory, or says what became of it instead. Its gates, in this order, each with its reason in the result and
-- in the event:
--   importance: by rules when it is not given (importance); under 0.3 the memory is skipped;
--   type: what was inferred is no fact (preference, decision, knowledge) but a hypothesis;
--         and what says of itself that it is a guess ("maybe …") is one;
--   belief: with a confidence under 0.6 it is pending: kept, not recalled until confirmed;
--   the screen: so is what looks planted (_suspicion), or contradicts what a more trusted source said; off by set_screening;
--   the past: what was said (occurred_at) before it was forgotten or corrected does not come back;
--   duplicates: the same content, or the same meaning in other words, is merged;
--   conflict: of two values of a slot one supersedes the other (set_policy).
-- outcome: stored; merged (memory_id is the memory that says the same); pending; superseding (related_id is the memory whose
-- place it took); superseded (related_id holds the slot); skipped (memory_id is NULL, or the memory that was corrected); taken: all
-- that an adder is told, unless its own words were skipped as unimportant.
-- confidence and importance lie in [0, 1]; NULL confidence means 0.9, of what was inferred 0.6. supersedes names a memory
-- whose place it takes, whatever the policy (a guess takes that of no statement); derived_from those that it was made of, which it does not outlive. It ends at
-- expires_at, or after ttl, or when the policy of its type says. embedding comes with the model that made it.
-- Personal data and secrets are masked first, or refused, as the bank's policy says (set_redaction); what is masked waits for an embedding
-- of its own, since the one that came was made of the secret.
-- Raises HM001, HM002 (supersedes, derived_from), HM003, HM004, HM005, HM007, HM010, HM011, HM012.
CREATE OR REPLACE FUNCTION hindsight.store(
  bank text, content text, type text DEFAULT 'fact', tags text[] DEFAULT NULL, session_id text DEFAULT NULL,
  confidence double precision DEFAULT NULL, importance double precision DEFAULT NULL, source text DEFAULT NULL,
  slot text DEFAULT NULL, entities text[] DEFAULT NULL, context text DEFAULT NULL, occurred_at timestamptz DEFAULT NULL,
  expires_at timestamptz DEFAULT NULL, ttl interval DEFAULT NULL, metadata jsonb DEFAULT NULL, supersedes uuid DEFAULT NULL,
  derived_from uuid[] DEFAULT NULL, embedding vector DEFAULT NULL, model text DEFAULT NULL)
  RETURNS TABLE (memory_id uuid, outcome text, related_id uuid, reasons text[])
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
  SET enable_seqscan = off
  SET hnsw.iterative_scan = strict_order
  SET hnsw.ef_search = 40
AS $$
#variable_conflict use_column
DECLARE
  opened constant hindsight.bank := _open_bank(bank, 'adder');
  is_blind constant boolean := NOT _may_read(opened.bank_id);
  used embedding_model;
  fresh memory;
  held memory;
  gone memory;
  contest record;
  said_at timestamptz;
  begins timestamptz;
  gates text[] := '{}';
  suspicion text;
  against _against; -- once: it stays when a race is lost
  kept record;
BEGIN
  PERFORM _check_text('content', store.content, 10000), _check_optional_text('context', store.context, 10000),
          _check_optional_text('slot', store.slot, 200), _check_type(store.type),
          _check_unit('confidence', store.confidence), _check_unit('importance', store.importance),
          _check_labels('tags', store.tags), _check_labels('entities', store.entities),
          _check_list('derived_from', store.derived_from), _check_object('metadata', store.metadata), _check_time('occurred_at', store.occurred_at),
          _check_time('expires_at', store.expires_at), _check_source(store.source), _check_ttl(store.ttl, store.expires_at);
  IF store.expires_at <= clock_timestamp() THEN
    RAISE EXCEPTION 'expires_at % has passed already', store.expires_at
      USING ERRCODE = 'HM004', HINT = 'Give a time to come, or leave it out.';
  END IF;
  kept := _redact_memory(opened, store.slot, store.content, store.context, store.tags, store.entities, store.metadata);
  IF kept.reason IS NOT NULL THEN
    gates := gates || kept.reason;
    IF kept.content <> store.content THEN
      store.embedding := NULL;
    END IF;
    store.content := kept.content;
    store.context := kept.context;
    store.tags := kept.tags;
    store.entities := kept.entities;
    store.metadata := kept.metadata;
  END IF;
  used := CASE WHEN store.embedding IS NOT NULL THEN _adopt_model(opened, store.model) END;

  fresh.bank_id := opened.bank_id;
  fresh.memory_id := gen_random_uuid();
  fresh.version := 1;
  fresh.content := store.content;
  fresh.digest := content_digest_v1(store.content);
  fresh.type := CASE WHEN store.source = 'inferred' AND store.type IN ('fact', 'preference', 'decision', 'knowledge') THEN 'hypothesis' ELSE store.type END;
  fresh.tags := _bank_tags(opened.bank_id, coalesce(store.tags, '{}'));
  fresh.entities := _with_entities(store.entities, store.content);
  fresh.slot := store.slot;
  fresh.context := store.context;
  fresh.session_id := store.session_id;
  fresh.source := store.source;
  fresh.confidence := coalesce(store.confidence, CASE WHEN store.source = 'inferred' THEN 0.6 ELSE 0.9 END);
  fresh.importance := coalesce(store.importance, importance(store.content, store.type));
  fresh.metadata := coalesce(store.metadata, '{}');
  fresh.language := opened.language;
  fresh.occurred_at := store.occurred_at;
  fresh.confirmations := 0;
  fresh.expires_at := coalesce(store.expires_at, clock_timestamp() + store.ttl, _lives_until(opened.bank_id, fresh.type));
  fresh.embedding := _check_embedding(store.embedding, used);
  fresh.model_id := CASE WHEN store.embedding IS NOT NULL THEN used.model_id END;
  IF opened.screening THEN
    IF fresh.type IN ('fact', 'preference', 'decision', 'knowledge') AND store.source IS DISTINCT FROM 'document'
       AND store.confidence IS NULL AND _is_guess(store.content) THEN -- whoever gives a confidence has judged it
      fresh.type := 'hypothesis';
    END IF;
    suspicion := _suspicion(store.content, _speaker(fresh, store.derived_from));
    IF suspicion IS NULL AND store.context IS NOT NULL THEN
      suspicion := _suspicion(store.context, store.source);
    END IF;
    IF suspicion IS NOT NULL AND NOT _was_released(opened.bank_id, fresh.digest) THEN
      fresh.pending_reason := _screened() || suspicion;
      gates := gates || (fresh.pending_reason || ': kept, not believed until confirmed');
      IF store.supersedes IS NOT NULL THEN
        store.supersedes := NULL;
        gates := gates || 'it takes the place of nothing while it is pending'::text;
      END IF;
    END IF;
  END IF;
  said_at := least(coalesce(store.occurred_at, clock_timestamp()), clock_timestamp());

  PERFORM _check_writes(opened.bank_id, fresh.type);
  IF is_blind AND (store.supersedes IS NOT NULL OR store.derived_from <> '{}') THEN
    RAISE EXCEPTION '% may add to bank %, and names no memories of it', quote_literal(principal()), quote_literal(opened.name)
      USING ERRCODE = 'HM003', HINT = 'Leave out supersedes and derived_from. An owner of the bank can call hindsight.grant_access.';
  END IF;
  IF store.importance IS NULL AND fresh.importance < 0.3 THEN
    RETURN QUERY SELECT * FROM _skip(fresh, NULL, format('importance %s is under 0.3: a greeting, an acknowledgement or a question', fresh.importance));
    RETURN;
  END IF;
  IF fresh.type <> store.type THEN
    gates := gates || format('a hypothesis, not a %s: %s', store.type,
                             CASE WHEN store.source = 'inferred' THEN 'it was inferred, not said'
                                  ELSE 'it says of itself that it is a guess' END);
  END IF;
  IF fresh.confidence < _believable() THEN
    fresh.pending_reason := coalesce(fresh.pending_reason, 'low confidence');
    gates := gates || format('confidence %s is under %s: kept, not believed until confirmed', fresh.confidence, _believable());
    IF store.supersedes IS NOT NULL THEN
      RAISE EXCEPTION 'a memory of confidence % is not believed, and cannot supersede %', fresh.confidence, store.supersedes
        USING ERRCODE = 'HM004', HINT = format('Give a confidence of %s or more, or leave supersedes out.', _believable());
    END IF;
  END IF;
  IF cardinality(fresh.entities) = 100 AND NOT fresh.entities @> entities(fresh.content) THEN
    gates := gates || 'it has a hundred entities, and takes no more from its content'::text;
  END IF;
  IF opened.allowed_tags IS NOT NULL AND NOT fresh.tags <@ opened.allowed_tags THEN
    gates := gates || format('the bank does not allow the tags %s',
                             (SELECT string_agg(t, ', ') FROM unnest(fresh.tags) AS t WHERE t <> ALL (opened.allowed_tags)));
    fresh.tags := ARRAY(SELECT t.tag FROM unnest(fresh.tags) WITH ORDINALITY AS t(tag, place)
                        WHERE t.tag = ANY (opened.allowed_tags) ORDER BY t.place);
  END IF;
  -- Whoever may lock several memories takes turns; a pending one that has a slot contends for it when it is believed, and a value
  -- that was true before it was known may end another (_true_before).
  IF store.slot IS NOT NULL OR store.supersedes IS NOT NULL OR store.derived_from <> '{}'
     OR EXISTS (SELECT FROM current_memory AS m
                WHERE m.bank_id = opened.bank_id AND m.digest = fresh.digest AND m.slot IS NOT NULL
                  AND (m.pending_reason IS NOT NULL OR store.occurred_at < coalesce(m.occurred_at, m.created_at))) THEN
    PERFORM _take_turns(opened.bank_id);
  END IF;
  IF store.session_id IS NOT NULL THEN
    PERFORM _open_session(opened.bank_id, store.session_id);
  END IF;
  IF store.supersedes IS NOT NULL OR store.derived_from <> '{}' THEN
    PERFORM FROM memory AS m
      WHERE m.bank_id = opened.bank_id
        AND m.memory_id = ANY (store.derived_from || store.supersedes
                               || (SELECT h.memory_id FROM live_memory AS h WHERE h.bank_id = opened.bank_id AND h.slot = store.slot))
      ORDER BY m.memory_id FOR NO KEY UPDATE;
  END IF;

  -- Whoever loses a race for the content or the slot starts again, and finds the winner's row.
  FOR attempt IN 1..100 LOOP
    fresh.created_at := clock_timestamp();
    fresh.confirmed_at := fresh.created_at;
    fresh.changed_at := fresh.created_at;
    reasons := gates;
    related_id := against.other_id;
    SELECT m.* INTO held FROM current_memory AS m
      WHERE m.bank_id = opened.bank_id AND m.digest = fresh.digest
      FOR NO KEY UPDATE;
    IF store.occurred_at IS NOT NULL THEN -- asked under the lock, for which somebody who forgets or corrects it is waited for
      SELECT g.* INTO gone FROM _gone(fresh, said_at) AS g;
      IF gone.deleted_at IS NOT NULL THEN
        SELECT s.* INTO memory_id, outcome, related_id, reasons
          FROM _skip(fresh, NULL, format('forgotten at %s: what was said before does not come back', gone.deleted_at)) AS s;
        EXIT;
      ELSIF gone.memory_id IS NOT NULL THEN
        SELECT s.* INTO memory_id, outcome, related_id, reasons
          FROM _skip(fresh, gone, 'it was corrected: what was said before does not come back') AS s;
        EXIT;
      END IF;
    END IF;
    IF held.memory_id IS NULL AND fresh.embedding IS NOT NULL AND suspicion IS NULL THEN
      SELECT m.* INTO held FROM current_memory AS m
        WHERE m.bank_id = opened.bank_id AND m.memory_id = _same_meaning(opened, used, fresh)
          AND _says_it_too(m.content, m.slot, _embedding_by(used.model_id, _stands_beside(opened, used.model_id), m.bank_id, m.memory_id,
                                                            m.digest, m.model_id, m.embedding), fresh, used.merge_threshold) -- still: whoever had it locked may have changed it
        FOR NO KEY UPDATE;
    END IF;
    IF held.expires_at <= clock_timestamp() THEN
      PERFORM _retire(opened.bank_id, ARRAY[held.memory_id], 'archived', 'expired');
      CONTINUE WHEN held.digest <> fresh.digest;
    ELSIF held.type <> ALL (_writable_types(opened.bank_id)) THEN -- merging would be writing it
      SELECT s.* INTO memory_id, outcome, related_id, reasons
        FROM _skip(fresh, held, format('it is known as a %s, which the writer may not change', held.type)) AS s;
      EXIT;
    ELSIF held.memory_id IS NOT NULL THEN
      memory_id := held.memory_id;
      outcome := 'merged';
      BEGIN
        IF store.supersedes <> memory_id THEN -- first: the slot of the one that was named is free then
          related_id := _supersede(opened, store.supersedes, memory_id, fresh, said_at);
        END IF;
        SELECT gates || g.reasons, coalesce(related_id, g.superseded_id) INTO reasons, related_id
          FROM _merge(held, fresh, store.confidence IS NOT NULL) AS g;
      EXCEPTION WHEN unique_violation THEN -- somebody took the slot that the merged memory was to have
        CONTINUE;
      END;
      EXIT;
    END IF;

    IF against IS NULL AND opened.screening AND fresh.pending_reason IS NULL AND store.source IS DISTINCT FROM 'user'
       AND fresh.type <> 'summary' AND store.supersedes IS NULL AND coalesce(store.derived_from, '{}') = '{}' THEN
      against := _held_back(fresh);
      IF against.reason IS NOT NULL THEN
        PERFORM _hold_repeated(opened.bank_id, against.repeated);
        fresh.pending_reason := against.reason;
        related_id := against.other_id;
        gates := gates || fresh.pending_reason;
        reasons := gates;
      END IF;
    END IF;
    memory_id := fresh.memory_id;
    outcome := CASE WHEN fresh.pending_reason IS NOT NULL THEN 'pending' ELSE 'stored' END;
    BEGIN -- what the contest wrote is undone when the row cannot be inserted
      fresh.superseded_by := NULL;
      fresh.valid_to := NULL;
      begins := NULL;
      IF store.supersedes IS NOT NULL THEN
        related_id := _supersede(opened, store.supersedes, fresh.memory_id, fresh, said_at);
        begins := (SELECT m.changed_at FROM memory AS m WHERE m.bank_id = opened.bank_id AND m.memory_id = related_id);
        outcome := 'superseding';
        reasons := reasons || 'it takes the place of the memory that was named'::text;
      END IF;
      IF fresh.slot IS NOT NULL AND fresh.pending_reason IS NULL THEN
        SELECT c.* INTO contest FROM _contest_slot(fresh, said_at) AS c;
        begins := coalesce(contest.superseded_at, begins);
        IF contest.is_distrusted THEN
          outcome := 'pending';
          fresh.pending_reason := contest.reason;
        ELSIF contest.holder_id IS NOT NULL THEN
          outcome := 'superseded';
          fresh.superseded_by := contest.holder_id;
          fresh.valid_to := contest.valid_to;
        ELSIF contest.superseded_id IS NOT NULL THEN
          outcome := 'superseding';
        END IF;
        related_id := coalesce(contest.holder_id, contest.superseded_id, related_id);
        reasons := reasons || array_remove(ARRAY[contest.reason], NULL);
      END IF;
      fresh.created_at := coalesce(begins, clock_timestamp()); -- when what it supersedes ends
      fresh.confirmed_at := fresh.created_at;
      fresh.changed_at := fresh.created_at;
      IF NOT _insert(fresh) THEN
        RAISE unique_violation;
      END IF;
    EXCEPTION WHEN unique_violation THEN
      CONTINUE;
    END;
    PERFORM _record(opened.bank_id, outcome, fresh.memory_id, nullif(array_to_string(reasons, '; '), ''), NULL, fresh);
    EXIT;
  END LOOP;
  IF outcome IS NULL THEN
    RAISE EXCEPTION 'many writers contend for %', CASE WHEN store.slot IS NULL THEN 'this content' ELSE 'slot ' || store.slot END
      USING ERRCODE = 'serialization_failure', HINT = 'Try the same call again.';
  END IF;
  PERFORM _link(opened, memory_id, source_id, 'derived_from', 1) FROM unnest(store.derived_from) AS source_id
    WHERE source_id IS DISTINCT FROM memory_id AND outcome <> 'skipped'; -- it may have been merged into one of them
  IF is_blind THEN -- what became of it would tell what the bank holds
    memory_id := NULL;
    outcome := 'taken';
    related_id := NULL;
    reasons := gates;
  END IF;
  RETURN NEXT;
END
$$;
COMMENT ON FUNCTION hindsight.store(text, text, text, text[], text, double precision, double precision, text, text, text[],
                                    text, timestamptz, timestamptz, interval, jsonb, uuid, uuid[], vector, text) IS
  'Keeps a memory and says what became of it: stored, merged, pending, superseding, superseded or skipped.';
