-- Entities of a bank: what its memories name, with their kinds, aliases and counts. Writers of memories write none of it: two who store the
-- same name would wait for each other. maintain counts; what was said since then is counted where it is asked.

-- _note_aliases: keeps what a memory says of aliases, either way; with the memory they count, and are forgotten.
CREATE OR REPLACE FUNCTION hindsight._note_aliases(m hindsight.memory)
  RETURNS void
  LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
  DELETE FROM hindsight.entity_alias AS a WHERE a.bank_id = m.bank_id AND a.memory_id = m.memory_id;
  INSERT INTO hindsight.entity_alias (bank_id, memory_id, key, other_key, other_name)
    SELECT m.bank_id, m.memory_id, hindsight._entity_key(p.one), hindsight._entity_key(p.other), p.other
    FROM (SELECT a.name AS one, a.alias AS other FROM hindsight.aliases(m.content) AS a
          UNION ALL
          SELECT a.alias, a.name FROM hindsight.aliases(m.content) AS a) AS p
    ORDER BY 3, 4
    ON CONFLICT DO NOTHING;
END
$$;

-- _names_of: the names of what a name names, itself first: what live memories say are aliases of it, at most three steps away, and
-- general knowledge. At most 20.
CREATE OR REPLACE FUNCTION hindsight._names_of(of_bank bigint, name text)
  RETURNS text[]
  LANGUAGE sql STABLE
AS $$
  WITH RECURSIVE known(key, name, depth) AS (
    SELECT hindsight._entity_key(_names_of.name), pg_catalog.btrim(_names_of.name), 0
    UNION
    SELECT n.key, n.name, k.depth + 1
    FROM known AS k
    CROSS JOIN LATERAL (
      SELECT a.other_key AS key, a.other_name AS name
      FROM hindsight.entity_alias AS a
      JOIN hindsight.live_memory AS m ON m.bank_id = a.bank_id AND m.memory_id = a.memory_id
      WHERE a.bank_id = of_bank AND a.key = k.key AND (m.expires_at IS NULL OR m.expires_at > pg_catalog.statement_timestamp())
      UNION
      SELECT g.key, g.key FROM (SELECT hindsight._general_name(k.key) AS key) AS g WHERE g.key <> k.key) AS n
    WHERE k.depth < 3
  )
  SELECT (pg_catalog.array_agg(k.name ORDER BY k.depth, k.name))[:20]
  FROM (SELECT DISTINCT ON (k.key) k.* FROM known AS k ORDER BY k.key, k.depth, k.name) AS k
$$;

-- _holders: the live memories that name an entity by one of its names, at most so many, the newest first. Names are compared whatever
-- their case and width, to the letter otherwise: v1.2 is not v12.
CREATE OR REPLACE FUNCTION hindsight._holders(of_bank bigint, names text[], most integer)
  RETURNS SETOF hindsight.memory
  LANGUAGE plpgsql STABLE
  SET enable_indexscan = off -- a bitmap of the names, never a walk over the bank
AS $$
DECLARE
  keys constant text[] := ARRAY(SELECT hindsight._entity_key(n) FROM pg_catalog.unnest(names) AS n);
  labels constant text[] := ARRAY(
    SELECT of_bank || ':' || pg_catalog.array_to_string(hindsight._name_units_v1(n), '') FROM pg_catalog.unnest(names) AS n);
BEGIN
  RETURN QUERY
    SELECT m.*
    FROM hindsight.live_memory AS m
    WHERE hindsight._names_v1(m.bank_id, m.tags, m.entities, m.slot) && labels -- the keys hold the bank
      AND m.bank_id IS NOT DISTINCT FROM of_bank
      AND (m.slot IS NOT NULL OR m.tags <> '{}' OR m.entities <> '{}') -- to the letter as in the index
      AND (m.expires_at IS NULL OR m.expires_at > pg_catalog.statement_timestamp())
      AND (m.entities && names OR EXISTS (SELECT FROM pg_catalog.unnest(m.entities) AS e WHERE hindsight._entity_key(e) = ANY (keys)))
    ORDER BY m.confirmed_at DESC
    LIMIT most;
END
$$;

-- entity: what a bank knows of an entity, by any of its names: its names, its kind, how many live memories name it (10,000 are counted at
-- most), since when and until when, its five latest and five most important memories, and the ten entities that are named with it most
-- often. No row: nothing names it. Raises HM001, HM003, HM005.
CREATE OR REPLACE FUNCTION hindsight.entity(bank text, name text)
  RETURNS TABLE (
    entity text, kind text, names text[], memories bigint, first_at timestamptz, last_at timestamptz, latest uuid[], important uuid[],
    linked text[])
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
  SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
  opened constant hindsight.bank := _open_bank(bank, 'reader');
  known text[];
  keys text[];
BEGIN
  PERFORM _check_text('name', entity.name, 1000);
  known := _names_of(opened.bank_id, entity.name);
  keys := ARRAY(SELECT _entity_key(n) FROM unnest(known) AS n);
  RETURN QUERY
    WITH holder AS MATERIALIZED (
      SELECT m.memory_id, m.entities, m.importance, coalesce(m.occurred_at, m.created_at) AS said_at
      FROM _holders(opened.bank_id, known, 10000) AS m
    ),
    spelled AS (
      SELECT e.name, count(*) AS times, _entity_key(e.name) = ANY (keys) AS is_own
      FROM holder AS h CROSS JOIN LATERAL unnest(h.entities) AS e(name)
      GROUP BY e.name
    )
    SELECT best.name, entity_kind(best.name),
           ARRAY(SELECT n.name FROM (SELECT DISTINCT ON (_entity_key(a.name)) a.name, a.times
                                     FROM (SELECT s.name, s.times FROM spelled AS s WHERE s.is_own
                                           UNION ALL SELECT k, 0 FROM unnest(known) AS k) AS a
                                     ORDER BY _entity_key(a.name), a.times DESC) AS n ORDER BY n.times DESC, n.name),
           (SELECT count(*) FROM holder), (SELECT min(h.said_at) FROM holder AS h), (SELECT max(h.said_at) FROM holder AS h),
           ARRAY(SELECT h.memory_id FROM holder AS h ORDER BY h.said_at DESC, h.memory_id LIMIT 5),
           ARRAY(SELECT h.memory_id FROM holder AS h ORDER BY h.importance DESC, h.said_at DESC, h.memory_id LIMIT 5),
           ARRAY(SELECT o.name FROM (SELECT DISTINCT ON (_entity_key(s.name)) s.name, s.times FROM spelled AS s
                                     WHERE NOT s.is_own AND entity_kind(s.name) <> 'quantity'
                                     ORDER BY _entity_key(s.name), s.times DESC) AS o ORDER BY o.times DESC, o.name LIMIT 10)
    FROM (SELECT s.name FROM spelled AS s WHERE s.is_own ORDER BY s.times DESC, s.name LIMIT 1) AS best;
END
$$;
COMMENT ON FUNCTION hindsight.entity(text, text) IS
  'What a bank knows of an entity, by any of its names: names, kind, count, its latest and most important memories, what it is named with.';

-- known_entities: the entities of a bank that most memories name, as maintain counted them last; of these kinds, or of all. What nothing
-- names any more since then is left out, where so few did that it can be looked up.
-- Raises HM001, HM003, HM004.
CREATE OR REPLACE FUNCTION hindsight.known_entities(bank text, most integer DEFAULT 100, kinds text[] DEFAULT NULL)
  RETURNS TABLE (entity text, kind text, names text[], memories integer)
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
  SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
  opened constant hindsight.bank := _open_bank(bank, 'reader');
BEGIN
  PERFORM _check_most(known_entities.most);
  IF NOT known_entities.kinds <@ '{name,identifier,quantity,term}' THEN
    RAISE EXCEPTION 'unknown kind of entity in %', "left"(array_to_string(known_entities.kinds, ', ', 'NULL'), 100)
      USING ERRCODE = 'HM004', HINT = 'It is name, identifier, quantity or term.';
  END IF;
  RETURN QUERY
    SELECT e.name, e.kind, _names_of(opened.bank_id, e.name), e.memories
    FROM (SELECT c.* FROM hindsight.entity AS c
          WHERE c.bank_id = opened.bank_id AND (known_entities.kinds IS NULL OR c.kind = ANY (known_entities.kinds))
          ORDER BY c.memories DESC, c.key OFFSET 0) AS e -- fenced: only what is returned is looked up
    WHERE e.memories > 50 OR EXISTS (SELECT FROM _holders(opened.bank_id, ARRAY[e.name], 1))
    ORDER BY e.memories DESC, e.key
    LIMIT known_entities.most;
END
$$;
COMMENT ON FUNCTION hindsight.known_entities(text, integer, text[]) IS
  'The entities of a bank that most memories name, as maintain counted them last.';

-- _count_entities: counts what the live memories of a bank name. Rows that stay the same are not written. Returns how many entities there are.
CREATE OR REPLACE FUNCTION hindsight._count_entities(of_bank bigint)
  RETURNS bigint
  LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  counted bigint;
BEGIN
  IF NOT pg_catalog.pg_try_advisory_xact_lock(pg_catalog.hashtextextended('hindsight.entities', of_bank)) THEN
    RETURN 0; -- another one is at it
  END IF;
  WITH spelled AS ( -- normalised once for each spelling, not once for each memory
    SELECT e.name, count(*) AS memories FROM hindsight.live_memory AS m CROSS JOIN LATERAL pg_catalog.unnest(m.entities) AS e(name)
    WHERE m.bank_id = of_bank GROUP BY e.name
  ),
  fresh AS MATERIALIZED (
    SELECT hindsight._entity_key(s.name) AS key, (pg_catalog.array_agg(s.name ORDER BY s.memories DESC, s.name))[1] AS name, sum(s.memories)::integer AS memories
    FROM spelled AS s GROUP BY 1
  ),
  gone AS (
    DELETE FROM hindsight.entity AS e WHERE e.bank_id = of_bank AND NOT EXISTS (SELECT FROM fresh AS f WHERE f.key = e.key)
  ),
  kept AS (
    INSERT INTO hindsight.entity AS e (bank_id, key, name, kind, memories)
      SELECT of_bank, f.key, f.name, hindsight.entity_kind(f.name), f.memories FROM fresh AS f
      ON CONFLICT ON CONSTRAINT entity_pkey DO UPDATE SET name = excluded.name, kind = excluded.kind, memories = excluded.memories
      WHERE (e.name, e.memories) IS DISTINCT FROM (excluded.name, excluded.memories)
  )
  SELECT count(*) INTO counted FROM fresh;
  RETURN counted;
END
$$;
