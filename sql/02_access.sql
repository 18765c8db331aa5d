-- Banks and who may use them. Every entry point opens its bank through _open_bank, which checks access first.

-- principal: who is asking. A login is always itself; a member of hindsight_app, the service's role, may name the
-- one it acts for, for a transaction: SET LOCAL hindsight.principal = 'agent-7'.
CREATE OR REPLACE FUNCTION hindsight.principal()
  RETURNS text
  LANGUAGE sql STABLE PARALLEL RESTRICTED
RETURN CASE
  WHEN pg_catalog.current_setting('hindsight.principal', true) <> ''
       AND pg_catalog.pg_has_role(session_user, 'hindsight_app', 'MEMBER')
    THEN pg_catalog.current_setting('hindsight.principal', true)
  ELSE session_user::text
END;
COMMENT ON FUNCTION hindsight.principal() IS
  'Who is asking: the login, or the name that a member of hindsight_app set in hindsight.principal.';

-- _rights: the caller's rights on a bank: reader, writer, owner, or NULL. Whoever may act as hindsight_owner (an
-- operator) owns every bank, unless acting for somebody.
CREATE OR REPLACE FUNCTION hindsight._rights(bank_id bigint)
  RETURNS text
  LANGUAGE sql STABLE
RETURN CASE
  WHEN hindsight.principal() = session_user AND pg_catalog.pg_has_role(session_user, 'hindsight_owner', 'MEMBER')
    THEN 'owner'
  ELSE (SELECT a.rights FROM hindsight.access AS a
        WHERE a.bank_id = _rights.bank_id AND a.principal = hindsight.principal())
END;

-- _works_everywhere: whether the caller works for all banks: an operator, or a service that acts for nobody right now.
CREATE OR REPLACE FUNCTION hindsight._works_everywhere()
  RETURNS boolean
  LANGUAGE sql STABLE
RETURN hindsight.principal() = session_user
  AND (pg_catalog.pg_has_role(session_user, 'hindsight_owner', 'MEMBER') OR pg_catalog.pg_has_role(session_user, 'hindsight_app', 'MEMBER'));

-- _owner: who has owned a bank for longest: in that name a worker reads and keeps it.
CREATE OR REPLACE FUNCTION hindsight._owner(of_bank bigint)
  RETURNS text
  LANGUAGE sql STABLE
RETURN (SELECT a.principal FROM hindsight.access AS a WHERE a.bank_id = of_bank AND a.rights = 'owner' ORDER BY a.granted_at, a.principal LIMIT 1);

-- _open_bank: the bank of that name, if the caller has at least the rights asked for.
-- A bank that the caller has no rights on looks like one that does not exist.
-- Raises HM001 (unknown bank), HM003 (no access).
CREATE OR REPLACE FUNCTION hindsight._open_bank(name text, needed text)
  RETURNS hindsight.bank
  LANGUAGE plpgsql STABLE
AS $$
DECLARE
  found_bank hindsight.bank;
  rights text;
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
  IF pg_catalog.array_position(ARRAY['reader', 'writer', 'owner'], rights)
     < pg_catalog.array_position(ARRAY['reader', 'writer', 'owner'], needed) THEN
    RAISE EXCEPTION '% is % of bank %, this needs %', pg_catalog.quote_literal(hindsight.principal()), rights,
        pg_catalog.quote_literal(name), needed
      USING ERRCODE = 'HM003', HINT = 'An owner of the bank can call hindsight.grant_access.';
  END IF;
  RETURN found_bank;
END
$$;

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

-- _keep_an_owner: raises HM004 when the bank would have no owner without this principal.
CREATE OR REPLACE FUNCTION hindsight._keep_an_owner(opened hindsight.bank, leaving text)
  RETURNS void
  LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
  PERFORM FROM hindsight.bank AS b WHERE b.bank_id = opened.bank_id FOR UPDATE; -- two owners deposing each other: one waits
  IF NOT EXISTS (SELECT FROM hindsight.access AS a
                 WHERE a.bank_id = opened.bank_id AND a.rights = 'owner' AND a.principal <> leaving) THEN
    RAISE EXCEPTION '% is the last owner of bank %', pg_catalog.quote_literal(leaving), pg_catalog.quote_literal(opened.name)
      USING ERRCODE = 'HM004', HINT = 'Grant ''owner'' to somebody else first.';
  END IF;
END
$$;

-- grant_access: gives a principal rights on a bank (reader < writer < owner), or changes them.
-- Raises HM001, HM003 (not the owner), HM004 (unknown rights, or the last owner).
CREATE OR REPLACE FUNCTION hindsight.grant_access(bank text, principal text, rights text)
  RETURNS void
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
AS $$
DECLARE
  opened constant bank := _open_bank(bank, 'owner');
BEGIN
  PERFORM _check_principal(principal);
  IF (rights IN ('reader', 'writer', 'owner')) IS NOT TRUE THEN
    RAISE EXCEPTION 'cannot grant % to %', coalesce(quote_literal(rights), 'NULL'), quote_literal(principal)
      USING ERRCODE = 'HM004', HINT = 'Rights are ''reader'', ''writer'' or ''owner''.';
  END IF;
  IF rights <> 'owner' THEN
    PERFORM _keep_an_owner(opened, principal);
  END IF;
  INSERT INTO access AS a (bank_id, principal, rights)
    VALUES (opened.bank_id, grant_access.principal, grant_access.rights)
    ON CONFLICT ON CONSTRAINT access_pkey DO UPDATE SET rights = excluded.rights;
  PERFORM _record(opened.bank_id, 'grant_access', NULL, rights || ' for ' || principal);
END
$$;
COMMENT ON FUNCTION hindsight.grant_access(text, text, text) IS
  'Gives a principal the rights reader, writer or owner on a bank.';

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

-- _readable_banks: the banks that the caller has rights on, for the row-level policies.
CREATE OR REPLACE FUNCTION hindsight._readable_banks()
  RETURNS SETOF bigint
  LANGUAGE sql STABLE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
AS $$
  SELECT b.bank_id FROM bank AS b WHERE _rights(b.bank_id) IS NOT NULL
$$;
