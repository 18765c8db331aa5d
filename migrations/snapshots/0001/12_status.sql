-- Status: what runs, and what each bank holds.

-- status: every bank that the caller may read, with how many memories of each state it holds.
CREATE OR REPLACE FUNCTION hindsight.status()
  RETURNS TABLE (
    bank text, model text, dimensions integer, live bigint, pending bigint, expired bigint, archived bigint,
    superseded bigint, deleted bigint, unembedded bigint, sessions bigint, turns bigint)
  LANGUAGE sql STABLE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
AS $$
  SELECT b.name, r.name, r.dimensions,
         count(*) FILTER (WHERE m.state = 'live'), count(*) FILTER (WHERE m.state = 'pending'),
         count(*) FILTER (WHERE m.state = 'expired'), count(*) FILTER (WHERE m.state = 'archived'),
         count(*) FILTER (WHERE m.state = 'superseded'), count(*) FILTER (WHERE m.state = 'deleted'),
         count(*) FILTER (WHERE m.state IN ('live', 'pending') AND m.waits),
         (SELECT count(*) FROM session AS s WHERE s.bank_id = b.bank_id),
         (SELECT count(*) FROM turn AS t WHERE t.bank_id = b.bank_id)
  FROM bank AS b
  LEFT JOIN embedding_model AS r ON r.model_id = b.model_id
  LEFT JOIN LATERAL (SELECT _state(m, statement_timestamp()) AS state, m.embedding IS NULL AS waits
                     FROM memory AS m WHERE m.bank_id = b.bank_id) AS m ON true
  WHERE _may_read(b.bank_id)
  GROUP BY b.bank_id, r.model_id
  ORDER BY b.name
$$;
COMMENT ON FUNCTION hindsight.status() IS
  'Every bank that the caller may read, with its model and how many memories of each state it holds.';

-- banks: the banks that the caller may read, and what there is to do in them; for a worker that works for all banks, all of them, with
-- an owner, in whose name it keeps them. to_embed: it has memories that lack an embedding.
CREATE OR REPLACE FUNCTION hindsight.banks()
  RETURNS TABLE (
    bank text, description text, rights text, owner text, model text, distil_mode text, to_embed boolean, maintained_at timestamptz,
    audited_at timestamptz, findings integer, created_at timestamptz)
  LANGUAGE sql STABLE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
  SET enable_seqscan = off
AS $$
  SELECT b.name, b.description, _rights(b.bank_id),
         _owner(b.bank_id), r.name, b.distil_mode,
         EXISTS (SELECT FROM current_memory AS m WHERE m.bank_id = b.bank_id AND m.embedding IS NULL),
         b.maintained_at, b.audited_at, b.findings, b.created_at
  FROM bank AS b LEFT JOIN embedding_model AS r ON r.model_id = b.model_id
  WHERE (_may_read(b.bank_id) OR _works_everywhere()) AND b.name !~ '^erased-[0-9]+$'
  ORDER BY b.name
$$;
COMMENT ON FUNCTION hindsight.banks() IS 'The banks that the caller may read, or works for, and what there is to do in them.';

-- versions: of PostgreSQL, of pgvector, and of this schema (NULL when Alembic has not deployed it).
CREATE OR REPLACE FUNCTION hindsight.versions()
  RETURNS TABLE (postgresql text, pgvector text, revision text)
  LANGUAGE sql STABLE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
AS $$
  SELECT current_setting('server_version'), (SELECT e.extversion FROM pg_extension AS e WHERE e.extname = 'vector'),
         (SELECT max(v.version_num) FROM alembic_version AS v)
$$;
COMMENT ON FUNCTION hindsight.versions() IS 'The versions of PostgreSQL, pgvector and this schema.';
