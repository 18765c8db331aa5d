-- Insights: hypotheses that were made of other memories and cite them (derived_from). They stand on what people, documents and tools
-- said, never on each other; what they stand on decides how sure they are, and whether they are believed at all.

-- _is_withdrawn: whether a memory is pending for the sake of what it was made of.
CREATE OR REPLACE FUNCTION hindsight._is_withdrawn(m hindsight.memory)
  RETURNS boolean
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN coalesce(m.pending_reason IN (hindsight._stands_on_forgotten(), hindsight._stands_on_erased(), hindsight._stands_on_doubted()), false);

-- _withdraw_insights: what was inferred from a memory that has just lost its belief, or says something else now, is pending until it
-- is made anew of the rest (reflect). For _change, in whose transaction it happens, and which has locked them.
CREATE OR REPLACE FUNCTION hindsight._withdraw_insights(of_bank bigint, id uuid)
  RETURNS void
  LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  held hindsight.memory;
  changed hindsight.memory;
BEGIN
  FOR held IN
    SELECT m.* FROM hindsight.link AS l
    JOIN hindsight.current_memory AS m ON m.bank_id = l.bank_id AND m.memory_id = l.from_id
    WHERE l.bank_id = of_bank AND l.to_id = id AND l.relation = 'derived_from' AND l.removed_at IS NULL
      AND m.type = 'hypothesis' AND coalesce(m.pending_reason, 'low confidence') = 'low confidence'
    ORDER BY m.memory_id
  LOOP
    changed := held;
    changed.pending_reason := hindsight._stands_on_doubted();
    PERFORM hindsight._change('doubted', held, changed, hindsight._stands_on_doubted());
  END LOOP;
END
$$;

-- _is_evidence: whether an insight may stand on a memory: it is live, somebody said it, it was not made of others (an insight that was
-- confirmed or said again is still none), and no other live memory contradicts it.
CREATE OR REPLACE FUNCTION hindsight._is_evidence(m hindsight.memory, at timestamptz)
  RETURNS boolean
  LANGUAGE sql STABLE
RETURN m.source IN ('user', 'document', 'tool') AND m.type <> ALL ('{hypothesis,summary,lesson}'::text[])
  AND hindsight._state(m, at) = 'live' AND pg_catalog.length(m.content) <= 1000
  AND NOT EXISTS (SELECT FROM hindsight.link AS l
                  WHERE l.bank_id = m.bank_id AND l.from_id = m.memory_id AND l.relation = 'derived_from' AND l.removed_at IS NULL)
  AND NOT EXISTS (SELECT FROM hindsight.link AS l
                  JOIN hindsight.live_memory AS o ON o.bank_id = l.bank_id AND o.memory_id = CASE WHEN l.from_id = m.memory_id THEN l.to_id ELSE l.from_id END
                  WHERE l.bank_id = m.bank_id AND (l.from_id = m.memory_id OR l.to_id = m.memory_id) AND l.relation = 'contradicts'
                    AND l.removed_at IS NULL AND l.weight > 0);

-- _speaker: whose words the screen takes a memory for: an insight all of whose evidence a user said is in his words ("always answer in
-- Chinese"), and no order by somebody who has none to give; else for its source's.
CREATE OR REPLACE FUNCTION hindsight._speaker(fresh hindsight.memory, evidence uuid[])
  RETURNS text
  LANGUAGE sql STABLE
RETURN CASE WHEN fresh.source = 'inferred' AND fresh.metadata ? 'insight' AND evidence <> '{}'
                 AND NOT EXISTS (SELECT FROM pg_catalog.unnest(evidence) AS e(id)
                                 LEFT JOIN hindsight.live_memory AS m ON m.bank_id = fresh.bank_id AND m.memory_id = e.id
                                 WHERE m.source IS DISTINCT FROM 'user')
            THEN 'user' ELSE fresh.source END;

-- _surest: how sure an insight is that stands on so many memories, where that many are needed: 0.6, the least that is believed, and a
-- little more for each further one, but never as sure as what was said.
CREATE OR REPLACE FUNCTION hindsight._surest(evidence integer, needed integer)
  RETURNS double precision
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN least(0.7, 0.6 + 0.02 * (evidence - needed));

-- _akin: the insights that stand on at least two of these memories, or stood on them; the one with the most in common first.
CREATE OR REPLACE FUNCTION hindsight._akin(of_bank bigint, evidence uuid[])
  RETURNS TABLE (insight hindsight.memory, shared integer)
  LANGUAGE sql STABLE
AS $$
  SELECT m, s.shared
  FROM (SELECT l.from_id, count(DISTINCT l.to_id)::integer AS shared FROM hindsight.link AS l
        WHERE l.bank_id = of_bank AND l.to_id = ANY (evidence) AND l.relation = 'derived_from'
        GROUP BY l.from_id HAVING count(DISTINCT l.to_id) >= 2) AS s
  JOIN hindsight.memory AS m ON m.bank_id = of_bank AND m.memory_id = s.from_id AND m.metadata ? 'insight'
  ORDER BY s.shared DESC, m.created_at
$$;

-- _grow: an insight is known already: what else it stands on is linked with it. More evidence makes it surer, and more evidence alone;
-- one that was withdrawn is believed again, of what is left. Returns grown, believed, or NULL: it was so.
CREATE OR REPLACE FUNCTION hindsight._grow(opened hindsight.bank, held hindsight.memory, evidence uuid[], needed integer)
  RETURNS text
  LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  changed hindsight.memory := held;
  is_withdrawn constant boolean := hindsight._is_withdrawn(held);
  edge hindsight.link;
  linked boolean := false;
  stands_on integer;
BEGIN
  IF is_withdrawn THEN
    FOR edge IN
      UPDATE hindsight.link AS l SET removed_at = pg_catalog.clock_timestamp()
        WHERE l.bank_id = opened.bank_id AND l.from_id = held.memory_id AND l.relation = 'derived_from' AND l.removed_at IS NULL
          AND l.to_id <> ALL (evidence)
        RETURNING l.*
    LOOP
      PERFORM hindsight._record_link(opened.bank_id, 'unlinked', edge.from_id, edge.to_id, edge.relation, edge.weight);
    END LOOP;
  END IF;
  SELECT coalesce(bool_or(hindsight._link(opened, held.memory_id, e.id, 'derived_from', 1)), false) INTO linked
    FROM pg_catalog.unnest(evidence) AS e(id)
    WHERE NOT EXISTS (SELECT FROM hindsight.link AS l
                      WHERE l.bank_id = opened.bank_id AND l.from_id = held.memory_id AND l.to_id = e.id
                        AND l.relation = 'derived_from' AND l.removed_at IS NULL);
  IF NOT linked AND NOT is_withdrawn THEN
    RETURN NULL;
  END IF;
  stands_on := (SELECT count(*) FROM hindsight.link AS l
                WHERE l.bank_id = opened.bank_id AND l.from_id = held.memory_id AND l.relation = 'derived_from' AND l.removed_at IS NULL);
  IF is_withdrawn THEN
    changed.confidence := CASE WHEN needed IS NULL THEN held.confidence ELSE hindsight._surest(stands_on, needed) END;
    changed.pending_reason := CASE WHEN changed.confidence < hindsight._believable() THEN 'low confidence' END;
    PERFORM hindsight._change('believed', held, changed, pg_catalog.format('it stands on %s other memories', stands_on));
    RETURN 'believed';
  ELSIF held.type = 'hypothesis' AND held.pending_reason IS NULL AND hindsight._surest(stands_on, needed) > held.confidence THEN
    changed.confidence := hindsight._surest(stands_on, needed);
    PERFORM hindsight._change('grown', held, changed, pg_catalog.format('it stands on %s memories now', stands_on));
  END IF;
  RETURN 'grown';
END
$$;

-- _keep_insight: stores an insight with its evidence, through store and its gates; or lets the one that is known already grow. What a
-- person has rejected or forgotten is not proposed again. kind: preference and solution are the rules', of whom two memories in common
-- make it the same insight; else (model) it is by its words or when it has no evidence of its own. needed: how many memories the
-- rule needs (_surest); NULL: the confidence is given. outcome is NULL where nothing is to be done, or the evidence is gone meanwhile.
CREATE OR REPLACE FUNCTION hindsight._keep_insight(
  opened hindsight.bank, kind text, said text, evidence uuid[], needed integer, sure double precision, labels text[],
  OUT memory_id uuid, OUT outcome text, OUT reasons text[])
  LANGUAGE plpgsql VOLATILE
AS $$
#variable_conflict use_variable
DECLARE
  digest constant bytea := hindsight.content_digest_v1(said);
  at timestamptz;
  akin hindsight.memory;
  is_by_rules constant boolean := needed IS NOT NULL;
BEGIN
  PERFORM hindsight._take_turns(opened.bank_id);
  PERFORM FROM hindsight.memory AS m WHERE m.bank_id = opened.bank_id AND m.memory_id = ANY (evidence) ORDER BY m.memory_id FOR NO KEY UPDATE;
  at := pg_catalog.clock_timestamp();
  IF (SELECT count(*) FROM hindsight.memory AS m
      WHERE m.bank_id = opened.bank_id AND m.memory_id = ANY (evidence) AND hindsight._is_evidence(m, at)) < pg_catalog.cardinality(evidence) THEN
    RETURN;
  ELSIF EXISTS (SELECT FROM hindsight.memory AS m WHERE m.bank_id = opened.bank_id AND m.digest = digest AND m.deleted_at IS NOT NULL)
     OR EXISTS (SELECT FROM hindsight._akin(opened.bank_id, evidence) AS a
                WHERE (a.insight).deleted_at IS NOT NULL AND (a.insight).metadata ->> 'insight' = kind
                  AND (is_by_rules OR a.shared = pg_catalog.cardinality(evidence))) THEN
    RETURN;
  END IF;
  SELECT (a.insight).* INTO akin
    FROM hindsight._akin(opened.bank_id, evidence) AS a
    WHERE (a.insight).deleted_at IS NULL AND (a.insight).superseded_by IS NULL AND (a.insight).archived_at IS NULL
      AND ((a.insight).digest = digest OR ((a.insight).metadata ->> 'insight' = kind
           AND (is_by_rules OR a.shared = pg_catalog.cardinality(evidence) OR hindsight._says_the_same((a.insight).content, said))))
    ORDER BY (a.insight).digest = digest DESC, a.shared DESC
    LIMIT 1;
  IF FOUND THEN
    SELECT m.* INTO akin FROM hindsight.memory AS m
      WHERE m.bank_id = opened.bank_id AND m.memory_id = akin.memory_id FOR NO KEY UPDATE; -- somebody may have changed it meanwhile
    IF NOT hindsight._is_withdrawn(akin) OR akin.digest = digest THEN
      memory_id := akin.memory_id;
      outcome := hindsight._grow(opened, akin, evidence, needed);
      RETURN;
    ELSIF is_by_rules THEN -- it quotes what is gone, or may: it is made anew
      PERFORM hindsight._retire(opened.bank_id, ARRAY[akin.memory_id], 'archived', 'made anew of what is left of its evidence');
    END IF;
  END IF;
  IF EXISTS (SELECT FROM hindsight.current_memory AS m WHERE m.bank_id = opened.bank_id AND m.digest = digest) THEN
    RETURN; -- it was said, or is known without its evidence
  END IF;
  SELECT s.memory_id, s.outcome, s.reasons INTO memory_id, outcome, reasons
    FROM hindsight.store(
      opened.name, said, type => 'hypothesis', source => 'inferred', confidence => coalesce(sure, hindsight._surest(pg_catalog.cardinality(evidence), needed)),
      importance => 0.6, tags => labels, derived_from => evidence, metadata => pg_catalog.jsonb_build_object('insight', kind)) AS s;
EXCEPTION WHEN data_exception OR SQLSTATE 'HM004' OR SQLSTATE 'HM005' OR SQLSTATE 'HM007' THEN -- redaction refuses it, or it is too long
  memory_id := NULL;
  outcome := 'refused';
  reasons := ARRAY[SQLERRM];
END
$$;

-- _unsupported: what of an insight none of its evidence bears out: a number or a name. NULL: nothing.
CREATE OR REPLACE FUNCTION hindsight._unsupported(said text, evidence text)
  RETURNS text
  LANGUAGE sql STABLE
RETURN (
  SELECT n.name
  FROM (SELECT m.match[1] AS name FROM pg_catalog.regexp_matches(pg_catalog.normalize(said, 'NFKC'), '\d+(?:[.:,]\d+)*', 'g') AS m(match)
        UNION ALL
        SELECT e.name FROM pg_catalog.unnest(hindsight.entities(said)) AS e(name)) AS n
  WHERE n.name !~ '^\d' AND pg_catalog.strpos(pg_catalog.lower(pg_catalog.normalize(evidence, 'NFKC')), pg_catalog.lower(n.name)) = 0
     OR n.name ~ '^\d' AND pg_catalog.normalize(evidence, 'NFKC') !~ ('(?<![\d.:,])' || pg_catalog.regexp_replace(n.name, '\.', '\\.', 'g') || '(?![.:,]?\d)')
  LIMIT 1);

-- propose_insight: keeps what somebody, a language model say, concludes from memories, with them as its evidence: as a hypothesis of a
-- confidence from 0.5 to 0.7 (0.6), whatever is given; under 0.6 it is pending. Two live memories at least, that were said (by a
-- user, a document or a tool), that nothing contradicts, and that have words in common with it, must be its evidence; its numbers
-- and names must be theirs. The others that are cited do not count. One that is known gets the evidence that it lacks; one that was
-- rejected or forgotten, with the same evidence or in the same words, stays so. It is withdrawn when its evidence is.
-- outcome: stored, pending, merged, skipped (as store says); grown, believed; known: nothing was to be done; refused, with the reasons.
-- Raises HM001, HM003, HM004, HM005.
CREATE OR REPLACE FUNCTION hindsight.propose_insight(
  bank text, content text, derived_from uuid[], confidence double precision DEFAULT NULL, tags text[] DEFAULT NULL)
  RETURNS hindsight.insight
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
  SET enable_seqscan = off
AS $$
DECLARE
  opened constant hindsight.bank := _open_bank(bank, 'writer');
  found_out hindsight.insight;
  evidence uuid[];
  words text;
  missing text;
  why text[] := '{}';
BEGIN
  PERFORM _check_text('content', propose_insight.content, 1000), _check_unit('confidence', propose_insight.confidence),
          _check_list('derived_from', propose_insight.derived_from), _check_labels('tags', propose_insight.tags);
  IF cardinality(propose_insight.derived_from) > 100 THEN
    RAISE EXCEPTION 'an insight cites % memories, at most 100 are taken', cardinality(propose_insight.derived_from)
      USING ERRCODE = 'HM004', HINT = 'Cite those that say it best.';
  END IF;
  PERFORM pg_advisory_xact_lock(hashtextextended('hindsight.reflect', opened.bank_id)); -- one at a time finds what is known
  SELECT array_agg(m.memory_id ORDER BY m.created_at, m.memory_id), string_agg(m.content, E'\n') INTO evidence, words
    FROM memory AS m
    WHERE m.bank_id = opened.bank_id AND m.memory_id = ANY (propose_insight.derived_from) AND _is_evidence(m, clock_timestamp())
      AND _is_about(propose_insight.content, m.content);
  IF cardinality(evidence) < cardinality(ARRAY(SELECT DISTINCT d FROM unnest(propose_insight.derived_from) AS d)) OR evidence IS NULL THEN
    why := why || 'what is not live, not said, contradicted, or about something else does not count as evidence'::text;
  END IF;
  missing := _unsupported(propose_insight.content, coalesce(words, ''));
  found_out.content := propose_insight.content;
  found_out.derived_from := coalesce(evidence, '{}');
  IF cardinality(found_out.derived_from) < 2 THEN
    found_out.outcome := 'refused';
    why := why || 'it needs two memories at least that say it'::text;
  ELSIF missing IS NOT NULL THEN
    found_out.outcome := 'refused';
    why := why || format('its evidence has no %s', missing);
  ELSE
    SELECT k.memory_id, coalesce(k.outcome, 'known'), why || k.reasons INTO found_out.memory_id, found_out.outcome, why
      FROM _keep_insight(opened, 'model', propose_insight.content, evidence, NULL,
                         greatest(0.5, least(0.7, coalesce(propose_insight.confidence, 0.6))), propose_insight.tags) AS k;
  END IF;
  found_out.reasons := why;
  RETURN found_out;
END
$$;
COMMENT ON FUNCTION hindsight.propose_insight(text, text, uuid[], double precision, text[]) IS
  'Keeps what is concluded from at least two memories as a hypothesis that cites them, and says what became of it.';
