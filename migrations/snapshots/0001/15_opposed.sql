-- What a new memory says against those that are believed, or says once more: asked by store of what no user said.

-- _opposed: the believed memory of a more trusted source that a new one contradicts (15_disagreement.sql), or NULL. Looked for among a hundred
-- that hold its first two words, so that it costs little in any bank.
CREATE OR REPLACE FUNCTION hindsight._opposed(fresh hindsight.memory, finder tsquery)
  RETURNS uuid
  LANGUAGE sql STABLE
RETURN (
  SELECT near.memory_id
  FROM (SELECT m.memory_id, m.content FROM hindsight.live_memory AS m
        WHERE m.bank_id = fresh.bank_id AND m.document @@ finder AND m.type <> 'hypothesis'
          AND hindsight._trust(m.source) > hindsight._trust(fresh.source)
          AND (m.expires_at IS NULL OR m.expires_at > pg_catalog.statement_timestamp()) LIMIT 100) AS near
  WHERE hindsight._disagreement(near.content, fresh.content) IS NOT NULL
  LIMIT 1);

-- _repeated: the believed memories of the last ten minutes that claim what a new one does in other words, where there are two already and
-- none was said by the user: half of their words are the same, and all numbers.
CREATE OR REPLACE FUNCTION hindsight._repeated(fresh hindsight.memory, said tsvector)
  RETURNS uuid[]
  LANGUAGE sql STABLE
RETURN (
  SELECT CASE WHEN count(*) >= 2 THEN pg_catalog.array_agg(near.memory_id ORDER BY near.memory_id) END
  FROM (SELECT m.memory_id, m.content, m.document FROM hindsight.memory AS m
        WHERE m.bank_id = fresh.bank_id AND m.changed_at > pg_catalog.clock_timestamp() - interval '10 minutes'
          AND m.source IS NOT DISTINCT FROM fresh.source AND m.digest <> fresh.digest
          AND m.deleted_at IS NULL AND m.superseded_by IS NULL AND m.archived_at IS NULL AND m.pending_reason IS NULL
        ORDER BY m.changed_at DESC LIMIT 20) AS near
  WHERE hindsight._alike(NULL, NULL, near.document, said) >= 0.5 AND hindsight._numbers(near.content) = hindsight._numbers(fresh.content));

-- _hold_repeated: holds the memories that claim the same as a new one, which is held with them: that a claim comes often is no evidence, and
-- somebody wants it to be believed. Returns the reason. Whoever locks several memories takes turns, and changes none before.
CREATE OR REPLACE FUNCTION hindsight._hold_repeated(of_bank bigint, ids uuid[])
  RETURNS text
  LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  reason constant text := pg_catalog.format('%sone claim %s times in ten minutes, by no user', hindsight._screened(), pg_catalog.cardinality(ids) + 1);
  locked hindsight.memory[];
  held hindsight.memory;
  changed hindsight.memory;
BEGIN
  PERFORM hindsight._take_turns(of_bank);
  locked := ARRAY(SELECT m FROM hindsight.memory AS m
                  WHERE m.bank_id = of_bank AND m.memory_id = ANY (ids) ORDER BY m.memory_id FOR NO KEY UPDATE);
  FOREACH held IN ARRAY locked LOOP
    CONTINUE WHEN hindsight._state(held, pg_catalog.clock_timestamp()) <> 'live' OR hindsight._was_released(of_bank, held.digest);
    changed := held;
    changed.pending_reason := reason;
    PERFORM hindsight._change('doubted', held, changed, reason);
  END LOOP;
  RETURN reason;
END
$$;
