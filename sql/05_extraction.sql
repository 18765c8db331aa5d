-- Extraction: placeholder until the rules come.
CREATE OR REPLACE FUNCTION hindsight._is_explicit(content text)
  RETURNS boolean
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN content ~* '\m(remember|i (have )?decided)\M|记住|我决定|以后都用';

CREATE OR REPLACE FUNCTION hindsight._found_in(role text, content text, before text)
  RETURNS TABLE (content text, type text, confidence double precision, importance double precision, slot text, source text, is_correction boolean)
  LANGUAGE sql STABLE
AS $$
  SELECT _found_in.content, 'fact', 0.9::double precision, 0.5::double precision, NULL::text, 'user', false
  WHERE _found_in.role = 'user' AND hindsight.importance(_found_in.content, 'fact') >= 0.3
$$;

CREATE OR REPLACE FUNCTION hindsight._verbatim(role text, content text, before text)
  RETURNS TABLE (content text, type text, confidence double precision, importance double precision, slot text, source text, is_correction boolean)
  LANGUAGE sql STABLE
AS $$
  SELECT _verbatim.content, 'fact', 0.9::double precision, 0.5::double precision, NULL::text, 'user', false
  WHERE _verbatim.role <> 'system' AND hindsight.importance(_verbatim.content, 'fact') >= 0.3
$$;

CREATE OR REPLACE FUNCTION hindsight._summary_of(contents text[], types text[])
  RETURNS text
  LANGUAGE sql IMMUTABLE
RETURN 'Summary: ' || pg_catalog.left(pg_catalog.array_to_string(contents, ' '), 600);
