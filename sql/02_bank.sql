-- Banks: each is made by somebody who owns it, and gives others access to it.

-- _check_bank_name: raises HM004 for the name of an erased bank's receipt.
CREATE OR REPLACE FUNCTION hindsight._check_bank_name(name text)
  RETURNS void
  LANGUAGE plpgsql IMMUTABLE
AS $$
BEGIN
  IF name ~ '^erased-[0-9]+$' THEN
    RAISE EXCEPTION '% is the receipt of a bank that was erased', pg_catalog.quote_literal(name)
      USING ERRCODE = 'HM004', HINT = 'Such names are taken for receipts. Choose another one.';
  END IF;
END
$$;

-- create_bank: makes a bank owned by the caller and returns its id; a bank that the caller owns already is
-- returned as it is, so that setting up twice is safe.
-- language is a text-search configuration ('english', 'simple', 'german', …); decay_rate is λ, per day.
-- Raises HM003 (the name is taken), HM004 (bad argument).
CREATE OR REPLACE FUNCTION hindsight.create_bank(
  bank text, description text DEFAULT NULL, language text DEFAULT 'english', decay_rate double precision DEFAULT 0.01)
  RETURNS bigint
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
AS $$
DECLARE
  new_id bigint;
  known_language text;
BEGIN
  IF coalesce(bank, '') !~ '^\S(.{0,198}\S)?$' THEN
    RAISE EXCEPTION 'a bank needs a name of 1 to 200 characters without spaces around it, got %', coalesce(quote_literal(bank), 'NULL')
      USING ERRCODE = 'HM004', HINT = 'For example ''alice'' or ''team/search''.';
  END IF;
  PERFORM _check_bank_name(bank), _check_principal(principal());
  IF coalesce(_scope() ->> 'rights', 'owner') <> 'owner' OR NOT coalesce(_scope() -> 'banks' ? bank, true) THEN
    RAISE EXCEPTION 'this token makes no bank %', quote_literal(bank)
      USING ERRCODE = 'HM003', HINT = 'Whoever made the token has limited it to other banks, or to less than an owner''s rights.';
  END IF;
  -- The name is kept in every row, and a dump must find it again: PostgreSQL's own, or an extension's with its schema.
  SELECT CASE WHEN n.nspname = 'pg_catalog' THEN c.cfgname::text ELSE format('%I.%I', n.nspname, c.cfgname) END
    INTO known_language
    FROM pg_ts_config AS c JOIN pg_namespace AS n ON n.oid = c.cfgnamespace
    WHERE language IN (c.cfgname, n.nspname || '.' || c.cfgname)
      AND (n.nspname = 'pg_catalog'
           OR EXISTS (SELECT FROM pg_depend AS d
                      WHERE d.classid = 'pg_ts_config'::regclass AND d.objid = c.oid AND d.deptype = 'e'))
    ORDER BY n.nspname = 'pg_catalog' DESC
    LIMIT 1;
  IF known_language IS NULL THEN
    RAISE EXCEPTION 'unknown text-search configuration %', coalesce(quote_literal(language), 'NULL')
      USING ERRCODE = 'HM004',
            HINT = 'SELECT cfgname FROM pg_ts_config lists those of this server; it must be PostgreSQL''s own or an extension''s.';
  END IF;
  PERFORM _check_unit('decay_rate', decay_rate);
  INSERT INTO bank (name, description, language, decay_rate)
    VALUES (create_bank.bank, create_bank.description, known_language, coalesce(create_bank.decay_rate, 0.01))
    ON CONFLICT (name) DO NOTHING
    RETURNING bank_id INTO new_id;
  IF new_id IS NULL THEN
    SELECT b.bank_id INTO new_id FROM bank AS b WHERE b.name = create_bank.bank AND _rights(b.bank_id) = 'owner';
    IF new_id IS NULL THEN
      RAISE EXCEPTION 'the name % is taken', quote_literal(bank)
        USING ERRCODE = 'HM003', HINT = 'Choose another name, or ask the bank''s owner for access.';
    END IF;
    RETURN new_id;
  END IF;
  INSERT INTO access (bank_id, principal, rights) VALUES (new_id, principal(), 'owner');
  PERFORM _record(new_id, 'create_bank', NULL, description);
  RETURN new_id;
END
$$;
COMMENT ON FUNCTION hindsight.create_bank(text, text, text, double precision) IS
  'Makes a bank owned by the caller and returns its id; returns the bank as it is when the caller owns it already.';

-- _check_rights: raises HM004 for rights that there are not.
CREATE OR REPLACE FUNCTION hindsight._check_rights(rights text)
  RETURNS void
  LANGUAGE plpgsql IMMUTABLE
AS $$
BEGIN
  IF (rights IN ('reader', 'adder', 'writer', 'owner')) IS NOT TRUE THEN
    RAISE EXCEPTION 'there are no rights %', coalesce(pg_catalog.quote_literal(rights), 'NULL')
      USING ERRCODE = 'HM004', HINT = 'Rights are ''reader'', ''adder'', ''writer'' or ''owner''.';
  END IF;
END
$$;

-- _keep_an_owner: raises HM004 when the bank would have no owner without this principal.
CREATE OR REPLACE FUNCTION hindsight._keep_an_owner(opened hindsight.bank, leaving text)
  RETURNS void
  LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
  -- Two owners deposing each other: one waits. NO KEY: else whoever is to be revoked could put it off by a transaction left open.
  PERFORM FROM hindsight.bank AS b WHERE b.bank_id = opened.bank_id FOR NO KEY UPDATE;
  IF NOT EXISTS (SELECT FROM hindsight.access AS a
                 WHERE a.bank_id = opened.bank_id AND a.rights = 'owner' AND a.principal <> leaving) THEN
    RAISE EXCEPTION '% is the last owner of bank %', pg_catalog.quote_literal(leaving), pg_catalog.quote_literal(opened.name)
      USING ERRCODE = 'HM004', HINT = 'Grant ''owner'' to somebody else first.';
  END IF;
END
$$;

-- grant_access: gives a principal rights on a bank, or changes them: a reader reads; an adder stores, and is told nothing of what the
-- bank holds; a writer does both, and changes; an owner also decides on the bank. types: an adder or writer may write only
-- these types of memory; NULL: all.
-- Raises HM001, HM003 (not the owner), HM004 (unknown rights or types, types for others, or the last owner).
CREATE OR REPLACE FUNCTION hindsight.grant_access(bank text, principal text, rights text, types text[] DEFAULT NULL)
  RETURNS void
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
AS $$
DECLARE
  opened constant bank := _open_bank(bank, 'owner');
BEGIN
  PERFORM _check_principal(principal);
  PERFORM _check_rights(rights), _check_list('types', types);
  PERFORM _check_type(t) FROM unnest(types) AS t;
  IF types IS NOT NULL AND (rights NOT IN ('adder', 'writer') OR types = '{}') THEN
    RAISE EXCEPTION 'types limit what an adder or a writer may write, got % for %', quote_literal(types::text), rights
      USING ERRCODE = 'HM004', HINT = 'Name at least one type, or leave types out.';
  END IF;
  IF rights <> 'owner' THEN
    PERFORM _keep_an_owner(opened, principal);
  END IF;
  types := ARRAY(SELECT DISTINCT t FROM unnest(types) AS t ORDER BY t);
  INSERT INTO access AS a (bank_id, principal, rights, types)
    VALUES (opened.bank_id, grant_access.principal, grant_access.rights, nullif(grant_access.types, '{}'))
    ON CONFLICT ON CONSTRAINT access_pkey DO UPDATE SET rights = excluded.rights, types = excluded.types;
  PERFORM _record(opened.bank_id, 'grant_access', NULL,
                  rights || ' for ' || principal || coalesce(', only ' || array_to_string(nullif(types, '{}'), ', '), ''));
END
$$;
COMMENT ON FUNCTION hindsight.grant_access(text, text, text, text[]) IS
  'Gives a principal the rights reader, adder, writer or owner on a bank; an adder or writer may be limited to types of memory.';

-- revoke_access: takes a principal's rights on a bank; true when there were any. Raises HM001, HM003, HM004 (last owner).
CREATE OR REPLACE FUNCTION hindsight.revoke_access(bank text, principal text)
  RETURNS boolean
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
AS $$
DECLARE
  opened constant bank := _open_bank(bank, 'owner');
BEGIN
  PERFORM _keep_an_owner(opened, principal);
  DELETE FROM access AS a WHERE a.bank_id = opened.bank_id AND a.principal = revoke_access.principal;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  PERFORM _record(opened.bank_id, 'revoke_access', NULL, principal);
  RETURN true;
END
$$;
COMMENT ON FUNCTION hindsight.revoke_access(text, text) IS
  'Takes a principal''s rights on a bank; true when there were any.';

-- access: who may do what in a bank, by name. For its readers. Raises HM001, HM003.
CREATE OR REPLACE FUNCTION hindsight.access(bank text)
  RETURNS TABLE (principal text, rights text, types text[], granted_at timestamptz)
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
AS $$
#variable_conflict use_column
DECLARE
  opened constant hindsight.bank := _open_bank(bank, 'reader');
BEGIN
  RETURN QUERY
    SELECT a.principal, a.rights, a.types, a.granted_at FROM access AS a WHERE a.bank_id = opened.bank_id ORDER BY a.principal;
END
$$;
COMMENT ON FUNCTION hindsight.access(text) IS 'Who may do what in a bank: its principals with their rights.';
