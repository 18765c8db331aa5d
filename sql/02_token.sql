-- Tokens: what a client of the servers shows in place of a login. A token acts for one principal, within banks and rights; it is kept as
-- its SHA-256 only, which is enough: it has 256 random bits, and nobody guesses those.

-- _check_tokens: raises HM003 unless the caller works for all banks, since a token may act for anybody.
CREATE OR REPLACE FUNCTION hindsight._check_tokens()
  RETURNS void
  LANGUAGE plpgsql STABLE
AS $$
BEGIN
  IF NOT hindsight._works_everywhere() THEN
    RAISE EXCEPTION '% may not look after tokens, which act for anybody', pg_catalog.quote_literal(hindsight.principal())
      USING ERRCODE = 'HM003', HINT = 'Log in as an operator (a member of hindsight_owner), or as a service (hindsight_service).';
  END IF;
END
$$;

-- create_token: makes a token for a principal, and returns it: only now, since its digest alone is kept. banks and rights narrow what the
-- principal may do; NULL: they do not. ttl: how long it holds; NULL: until it is revoked.
-- Raises HM003 (no operator), HM004, HM005, HM006 (there is one of that name).
CREATE OR REPLACE FUNCTION hindsight.create_token(
  name text, principal text, banks text[] DEFAULT NULL, rights text DEFAULT NULL, ttl interval DEFAULT NULL)
  RETURNS text
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
AS $$
DECLARE
  made constant text := 'hs_' || encode(sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())), 'hex');
BEGIN
  IF NOT _is_operator() THEN
    RAISE EXCEPTION '% is no operator: a token may act for anybody', quote_literal(principal())
      USING ERRCODE = 'HM003', HINT = 'Log in as an operator, a member of the role hindsight_owner.';
  END IF;
  PERFORM _check_text('name', name, 200), _check_principal(principal), _check_list('banks', banks), _check_ttl(ttl, NULL);
  PERFORM _check_text('banks', b, 200) FROM unnest(banks) AS b;
  IF rights IS NOT NULL THEN
    PERFORM _check_rights(rights);
  END IF;
  INSERT INTO access_token AS t (name, digest, principal, banks, rights, expires_at)
    VALUES (create_token.name, sha256(convert_to(made, 'UTF8')), create_token.principal, create_token.banks, create_token.rights,
            clock_timestamp() + create_token.ttl)
    ON CONFLICT ON CONSTRAINT access_token_pkey DO NOTHING;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'there is a token % already', quote_literal(name)
      USING ERRCODE = 'HM006', HINT = 'Names are not used again, so that a log tells which one it was: choose another.';
  END IF;
  RETURN made;
END
$$;
COMMENT ON FUNCTION hindsight.create_token(text, text, text[], text, interval) IS
  'Makes a token of the servers for a principal, within banks and rights, and returns it, only now. For operators.';

-- check_token: whom a token acts for, by its SHA-256, and within what (hindsight.scope); no row for one that is unknown, revoked or over.
-- The digest is looked up in a unique index: how long that takes tells nothing of a token, of which it is no part. Notes the use, once a
-- minute at most, and where it can write. For servers. Raises HM003.
CREATE OR REPLACE FUNCTION hindsight.check_token(digest bytea)
  RETURNS TABLE (name text, principal text, scope jsonb, expires_at timestamptz)
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
AS $$
#variable_conflict use_column
DECLARE
  used access_token;
BEGIN
  PERFORM _check_tokens();
  SELECT t.* INTO used FROM access_token AS t
    WHERE t.digest = check_token.digest AND t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > clock_timestamp());
  IF NOT FOUND THEN
    RETURN;
  END IF;
  IF NOT current_setting('transaction_read_only')::boolean AND coalesce(used.last_used_at < clock_timestamp() - interval '1 minute', true) THEN
    UPDATE access_token AS t SET last_used_at = clock_timestamp()
      WHERE t.name = (SELECT o.name FROM access_token AS o WHERE o.name = used.name FOR NO KEY UPDATE SKIP LOCKED);
  END IF;
  RETURN QUERY SELECT used.name, used.principal, jsonb_strip_nulls(jsonb_build_object('banks', used.banks, 'rights', used.rights)), used.expires_at;
END
$$;
COMMENT ON FUNCTION hindsight.check_token(bytea) IS 'Whom a token acts for, by its SHA-256, and within what; no row: it does not hold. For servers.';

-- access_tokens: the tokens, newest first, and what became of each; never the token itself. state: valid, expired, revoked. Raises HM003.
CREATE OR REPLACE FUNCTION hindsight.access_tokens()
  RETURNS TABLE (
    name text, principal text, banks text[], rights text, state text, created_at timestamptz, expires_at timestamptz,
    last_used_at timestamptz, revoked_at timestamptz)
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
AS $$
#variable_conflict use_column
BEGIN
  PERFORM _check_tokens();
  RETURN QUERY
    SELECT t.name, t.principal, t.banks, t.rights,
           CASE WHEN t.revoked_at IS NOT NULL THEN 'revoked' WHEN t.expires_at <= statement_timestamp() THEN 'expired' ELSE 'valid' END,
           t.created_at, t.expires_at, t.last_used_at, t.revoked_at
    FROM access_token AS t ORDER BY t.created_at DESC, t.name;
END
$$;
COMMENT ON FUNCTION hindsight.access_tokens() IS 'The tokens of the servers, whom each acts for, when it was used last, and whether it holds. For operators and servers.';

-- revoke_token: a token holds no more. True when it did until now. Raises HM002 (no such token), HM003.
CREATE OR REPLACE FUNCTION hindsight.revoke_token(name text)
  RETURNS boolean
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
AS $$
DECLARE
  held access_token;
BEGIN
  PERFORM _check_tokens();
  SELECT t.* INTO held FROM access_token AS t WHERE t.name = revoke_token.name FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'there is no token of that name' -- which is not shown: it may be the token itself, by mistake
      USING ERRCODE = 'HM002', HINT = 'Give its name, as hindsight.access_tokens() lists it, and not the token.';
  END IF;
  UPDATE access_token AS t SET revoked_at = clock_timestamp() WHERE t.name = revoke_token.name AND t.revoked_at IS NULL;
  RETURN FOUND;
END
$$;
COMMENT ON FUNCTION hindsight.revoke_token(text) IS 'A token holds no more. True when it did until now. For operators and servers.';
