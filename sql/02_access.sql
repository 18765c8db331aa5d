-- Who is asking, and what they may do in a bank. Every entry point opens its bank through _open_bank, which checks access first.

-- principal: who is asking. A login is always itself; a member of hindsight_service may name the one it acts for, for a
-- transaction: SET LOCAL hindsight.principal = 'agent-7'. No other role may, so that whoever has SQL of its own becomes nobody else.
CREATE OR REPLACE FUNCTION hindsight.principal()
  RETURNS text
  LANGUAGE sql STABLE PARALLEL RESTRICTED
RETURN CASE
  WHEN pg_catalog.current_setting('hindsight.principal', true) <> ''
       AND pg_catalog.pg_has_role(session_user, 'hindsight_service', 'MEMBER')
    THEN pg_catalog.current_setting('hindsight.principal', true)
  ELSE session_user::text
END;
COMMENT ON FUNCTION hindsight.principal() IS
  'Who is asking: the login, or the name that a member of hindsight_service set in hindsight.principal.';

-- _scope: what a service has narrowed this transaction to, beneath the rights of whom it acts for, as the token of a request says:
-- SET LOCAL hindsight.scope = '{"banks": ["alice"], "rights": "reader"}'; either may be missing. NULL: it is not narrowed. What is no
-- JSON raises an error, and what says anything else lets nobody in.
CREATE OR REPLACE FUNCTION hindsight._scope()
  RETURNS jsonb
  LANGUAGE sql STABLE PARALLEL RESTRICTED
RETURN CASE
  WHEN pg_catalog.current_setting('hindsight.scope', true) <> ''
       AND pg_catalog.pg_has_role(session_user, 'hindsight_service', 'MEMBER')
    THEN CASE WHEN pg_catalog.current_setting('hindsight.scope', true)::jsonb - ARRAY['banks', 'rights'] = '{}'::jsonb
                THEN pg_catalog.current_setting('hindsight.scope', true)::jsonb
              ELSE '{"banks": [], "rights": ""}'::jsonb END
END;

-- _is_itself: whether the caller acts for nobody, and within no scope. A service that names its own login acts for that name: it has
-- the rights that the name was granted, and not an operator's.
CREATE OR REPLACE FUNCTION hindsight._is_itself()
  RETURNS boolean
  LANGUAGE sql STABLE PARALLEL RESTRICTED
RETURN NOT pg_catalog.pg_has_role(session_user, 'hindsight_service', 'MEMBER')
  OR coalesce(pg_catalog.current_setting('hindsight.principal', true), '') = ''
     AND coalesce(pg_catalog.current_setting('hindsight.scope', true), '') = '';

-- _is_operator: whether the caller may act as hindsight_owner, for itself: an operator owns every bank.
CREATE OR REPLACE FUNCTION hindsight._is_operator()
  RETURNS boolean
  LANGUAGE sql STABLE PARALLEL RESTRICTED
RETURN hindsight._is_itself() AND pg_catalog.pg_has_role(session_user, 'hindsight_owner', 'MEMBER');

-- _works_everywhere: whether the caller works for all banks: an operator, or a service that acts for nobody right now.
CREATE OR REPLACE FUNCTION hindsight._works_everywhere()
  RETURNS boolean
  LANGUAGE sql STABLE PARALLEL RESTRICTED
RETURN hindsight._is_itself() AND (pg_catalog.pg_has_role(session_user, 'hindsight_owner', 'MEMBER')
                                   OR pg_catalog.pg_has_role(session_user, 'hindsight_service', 'MEMBER'));

-- _covers: whether rights contain what is needed: an owner's contain all, a writer's those of a reader and of an adder.
CREATE OR REPLACE FUNCTION hindsight._covers(rights text, needed text)
  RETURNS boolean
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN rights = 'owner' OR rights = needed OR (rights = 'writer' AND needed IN ('reader', 'adder'));

-- _rights: the caller's rights on a bank: reader, adder, writer, owner, or NULL: what the principal was granted, within the scope.
CREATE OR REPLACE FUNCTION hindsight._rights(bank_id bigint)
  RETURNS text
  LANGUAGE sql STABLE
RETURN CASE WHEN hindsight._is_operator() THEN 'owner'
  ELSE (
    SELECT CASE WHEN coalesce(hindsight._covers(s.scope ->> 'rights', a.rights), true) THEN a.rights
                WHEN hindsight._covers(a.rights, s.scope ->> 'rights') THEN s.scope ->> 'rights' END
    FROM hindsight.access AS a, (SELECT hindsight._scope()) AS s(scope)
    WHERE a.bank_id = _rights.bank_id AND a.principal = hindsight.principal()
      AND (s.scope -> 'banks' IS NULL
           OR (SELECT s.scope -> 'banks' ? b.name FROM hindsight.bank AS b WHERE b.bank_id = a.bank_id)))
END;

-- _may_read: whether the caller may read a bank.
CREATE OR REPLACE FUNCTION hindsight._may_read(bank_id bigint)
  RETURNS boolean
  LANGUAGE sql STABLE
RETURN coalesce(hindsight._covers(hindsight._rights(bank_id), 'reader'), false);

-- _writable_types: the types of memory that the caller may write in a bank; NULL: all.
CREATE OR REPLACE FUNCTION hindsight._writable_types(bank_id bigint)
  RETURNS text[]
  LANGUAGE sql STABLE
RETURN CASE WHEN NOT hindsight._is_operator() THEN (
  SELECT a.types FROM hindsight.access AS a WHERE a.bank_id = _writable_types.bank_id AND a.principal = hindsight.principal()) END;

-- _may_write: whether the caller may write all types of memory in a bank.
CREATE OR REPLACE FUNCTION hindsight._may_write(bank_id bigint)
  RETURNS boolean
  LANGUAGE sql STABLE
RETURN coalesce(hindsight._covers(hindsight._rights(bank_id), 'writer'), false) AND hindsight._writable_types(bank_id) IS NULL;

-- _owner: who has owned a bank for longest: in that name a worker reads and keeps it.
CREATE OR REPLACE FUNCTION hindsight._owner(of_bank bigint)
  RETURNS text
  LANGUAGE sql STABLE
RETURN (SELECT a.principal FROM hindsight.access AS a WHERE a.bank_id = of_bank AND a.rights = 'owner' ORDER BY a.granted_at, a.principal LIMIT 1);

-- _open_bank: the bank of that name, if the caller has at least the rights asked for. A writer of some types only is let in where the
-- function looks at the type of what it writes (by_type); else it needs all of them.
-- A bank that the caller has no rights on looks like one that does not exist.
-- Raises HM001 (unknown bank), HM003 (no access).
CREATE OR REPLACE FUNCTION hindsight._open_bank(name text, needed text, by_type boolean DEFAULT false)
  RETURNS hindsight.bank
  LANGUAGE plpgsql STABLE
AS $$
DECLARE
  found_bank hindsight.bank;
  rights text;
  types text[];
BEGIN
  SELECT * INTO found_bank FROM hindsight.bank AS b WHERE b.name = _open_bank.name;
  IF FOUND THEN
    rights := hindsight._rights(found_bank.bank_id);
  END IF;
  IF rights IS NULL THEN
    RAISE EXCEPTION 'unknown bank %', coalesce(pg_catalog.quote_literal(name), 'NULL')
      USING ERRCODE = 'HM001',
            HINT = 'Make it with hindsight.create_bank, or ask its owner for access (hindsight.grant_access).';
  END IF;
  IF NOT hindsight._covers(rights, needed) THEN
    RAISE EXCEPTION '% is % of bank %, this needs %', pg_catalog.quote_literal(hindsight.principal()), rights,
        pg_catalog.quote_literal(name), CASE needed WHEN 'adder' THEN 'adder or writer' ELSE needed END
      USING ERRCODE = 'HM003', HINT = 'An owner of the bank can call hindsight.grant_access.';
  END IF;
  IF needed = 'writer' AND NOT by_type THEN
    types := hindsight._writable_types(found_bank.bank_id);
    IF types IS NOT NULL THEN
      RAISE EXCEPTION '% may write only % in bank %, this may change memories of any type', pg_catalog.quote_literal(hindsight.principal()),
          pg_catalog.array_to_string(types, ', '), pg_catalog.quote_literal(name)
        USING ERRCODE = 'HM003', HINT = 'An owner of the bank can call hindsight.grant_access without types.';
    END IF;
  END IF;
  RETURN found_bank;
END
$$;

-- _check_writes: raises HM003 where the caller may not write a type of memory.
CREATE OR REPLACE FUNCTION hindsight._check_writes(bank_id bigint, type text)
  RETURNS void
  LANGUAGE plpgsql STABLE
AS $$
DECLARE
  types constant text[] := hindsight._writable_types(bank_id);
BEGIN
  IF type <> ALL (types) THEN
    RAISE EXCEPTION '% may write only %, not a memory of type %', pg_catalog.quote_literal(hindsight.principal()),
        pg_catalog.array_to_string(types, ', '), type
      USING ERRCODE = 'HM003', HINT = 'An owner of the bank can call hindsight.grant_access with other types.';
  END IF;
END
$$;

-- _readable_banks: the banks that the caller may read, for the row-level policies.
CREATE OR REPLACE FUNCTION hindsight._readable_banks()
  RETURNS SETOF bigint
  LANGUAGE sql STABLE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
AS $$
  SELECT b.bank_id FROM bank AS b WHERE _may_read(b.bank_id)
$$;
