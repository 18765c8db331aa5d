-- Tags: one spelling for each, so that a filter finds what it should.

-- _plain_tag: a tag in its plain spelling: lower case, half width, single spaces.
CREATE OR REPLACE FUNCTION hindsight._plain_tag(tag text)
  RETURNS text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN pg_catalog.btrim(pg_catalog.regexp_replace(pg_catalog.lower(pg_catalog.normalize(tag, 'NFKC')), '\s+', ' ', 'g'));

-- _bank_tags: tags in the bank's spelling: plain, aliases replaced, each once, in the order they came.
CREATE OR REPLACE FUNCTION hindsight._bank_tags(of_bank bigint, tags text[])
  RETURNS text[]
  LANGUAGE sql STABLE
RETURN CASE WHEN tags IS NULL OR tags = '{}' THEN tags ELSE (
  SELECT coalesce(pg_catalog.array_agg(kept.tag ORDER BY kept.place), '{}')
  FROM (SELECT coalesce(a.tag, plain.tag) AS tag, min(t.place) AS place
        FROM pg_catalog.unnest(tags) WITH ORDINALITY AS t(tag, place)
        CROSS JOIN LATERAL hindsight._plain_tag(t.tag) AS plain(tag)
        LEFT JOIN hindsight.tag_alias AS a ON a.bank_id = of_bank AND a.alias = plain.tag
        WHERE plain.tag <> ''
        GROUP BY coalesce(a.tag, plain.tag)) AS kept)
END;

-- _plain_tags: tags that an owner sets, each in its plain spelling, once. Raises HM004 for one that is none, or too long.
CREATE OR REPLACE FUNCTION hindsight._plain_tags(argument text, tags text[])
  RETURNS text[]
  LANGUAGE plpgsql IMMUTABLE STRICT
AS $$
BEGIN
  IF pg_catalog.cardinality(tags) > 10000
     OR EXISTS (SELECT FROM pg_catalog.unnest(tags) AS t(tag)
                WHERE coalesce(hindsight._plain_tag(t.tag), '') = '' OR pg_catalog.length(t.tag) > 200) THEN
    RAISE EXCEPTION '% holds a tag that is empty or longer than 200 characters, or more than 10000 of them', argument
      USING ERRCODE = 'HM004', HINT = 'A tag is a word or two: ''docker'', ''project x''.';
  END IF;
  RETURN ARRAY(SELECT hindsight._plain_tag(t.tag) FROM pg_catalog.unnest(tags) WITH ORDINALITY AS t(tag, place)
               GROUP BY 1 ORDER BY min(t.place));
END
$$;

-- _given_aliases: what set_tags is told of aliases, a row for each: {"frontend": ["front-end", "前端"]}. A tag without any has one
-- row, with NULL. Raises HM004 for another shape.
CREATE OR REPLACE FUNCTION hindsight._given_aliases(aliases jsonb)
  RETURNS TABLE (tag text, alias text)
  LANGUAGE plpgsql IMMUTABLE
AS $$
DECLARE
  given record;
  names text[];
BEGIN
  PERFORM hindsight._check_object('aliases', aliases);
  FOR given IN SELECT e.key, e.value FROM pg_catalog.jsonb_each(aliases) AS e LOOP
    IF pg_catalog.jsonb_typeof(given.value) <> 'array'
       OR EXISTS (SELECT FROM pg_catalog.jsonb_array_elements(given.value) AS a(name)
                  WHERE pg_catalog.jsonb_typeof(a.name) <> 'string') THEN
      RAISE EXCEPTION 'the aliases of % must be a list of texts, got %', pg_catalog.quote_literal(given.key), given.value
        USING ERRCODE = 'HM004', HINT = 'For example {"frontend": ["front-end", "front end"]}; [] takes the aliases of a tag away.';
    END IF;
    tag := (hindsight._plain_tags('aliases', ARRAY[given.key]))[1];
    names := pg_catalog.array_remove( -- a tag that is only written in other letters needs no alias
      hindsight._plain_tags('aliases', ARRAY(SELECT pg_catalog.jsonb_array_elements_text(given.value))), tag);
    RETURN QUERY SELECT given_aliases.tag, a.name FROM (SELECT _given_aliases.tag) AS given_aliases
                 LEFT JOIN pg_catalog.unnest(names) AS a(name) ON true;
  END LOOP;
END
$$;

-- set_tags: which tags the memories of a bank may have (allowed), and which other spellings mean the same (aliases). Tags are
-- compared without case, width and spaces around them. '{}' as allowed lifts the limit; NULL leaves as it is. aliases are given by
-- tag, and replace those that the tag has. Both hold for what is stored and asked from now on; audit finds the tags of older memories.
-- Raises HM001, HM003 (not an owner), HM004 (a tag that is none; an alias of two tags, or one that has aliases of its own), HM005.
CREATE OR REPLACE FUNCTION hindsight.set_tags(bank text, allowed text[] DEFAULT NULL, aliases jsonb DEFAULT NULL)
  RETURNS void
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
AS $$
#variable_conflict use_column
DECLARE
  opened constant hindsight.bank := _open_bank(bank, 'owner');
  permitted text[] := _plain_tags('allowed', set_tags.allowed);
  clash record;
BEGIN
  PERFORM FROM bank AS b WHERE b.bank_id = opened.bank_id FOR UPDATE; -- two owners: the second one sees what the first has set
  FOR clash IN
    WITH given AS MATERIALIZED (SELECT g.tag, g.alias FROM _given_aliases(set_tags.aliases) AS g),
    afterwards AS (
      SELECT a.tag, a.alias FROM tag_alias AS a WHERE a.bank_id = opened.bank_id AND a.tag NOT IN (SELECT g.tag FROM given AS g)
      UNION SELECT g.tag, g.alias FROM given AS g WHERE g.alias IS NOT NULL
    )
    SELECT one.alias, one.tag, other.alias AS other_alias, other.tag AS other_tag
    FROM afterwards AS one JOIN afterwards AS other ON (other.alias = one.alias AND other.tag > one.tag) OR other.tag = one.alias
    LIMIT 1
  LOOP
    IF clash.other_alias = clash.alias THEN
      RAISE EXCEPTION '% cannot be an alias of both % and %', quote_literal(clash.alias), quote_literal(clash.tag),
          quote_literal(clash.other_tag)
        USING ERRCODE = 'HM004', HINT = 'Give it to one of them; [] takes the aliases of a tag away.';
    END IF;
    RAISE EXCEPTION '% cannot be an alias of %: it has the alias % itself', quote_literal(clash.alias), quote_literal(clash.tag),
        quote_literal(clash.other_alias)
      USING ERRCODE = 'HM004',
            HINT = format('Give all of them to %s, and [] to %s.', quote_literal(clash.tag), quote_literal(clash.alias));
  END LOOP;
  IF set_tags.aliases IS NOT NULL THEN
    DELETE FROM tag_alias AS a
      WHERE a.bank_id = opened.bank_id AND a.tag IN (SELECT g.tag FROM _given_aliases(set_tags.aliases) AS g);
    INSERT INTO tag_alias (bank_id, alias, tag)
      SELECT DISTINCT opened.bank_id, g.alias, g.tag FROM _given_aliases(set_tags.aliases) AS g WHERE g.alias IS NOT NULL;
  END IF;
  -- What is allowed is kept in the bank's spelling, which the aliases may just have changed.
  permitted := _bank_tags(
    opened.bank_id, coalesce(permitted, (SELECT b.allowed_tags FROM bank AS b WHERE b.bank_id = opened.bank_id)));
  UPDATE bank AS b SET allowed_tags = nullif(permitted, '{}')
    WHERE b.bank_id = opened.bank_id AND b.allowed_tags IS DISTINCT FROM nullif(permitted, '{}');
  PERFORM _leave_event(opened.bank_id, 'set_tags', NULL, NULL, NULL,
                       jsonb_strip_nulls(jsonb_build_object('allowed', set_tags.allowed, 'aliases', set_tags.aliases)));
END
$$;
COMMENT ON FUNCTION hindsight.set_tags(text, text[], jsonb) IS
  'Which tags the memories of a bank may have, and which other spellings mean the same.';

-- tags: the tags of a bank's live memories, the most frequent first, with their other spellings; and those that are allowed or have
-- aliases, and no memory has. Raises HM001.
CREATE OR REPLACE FUNCTION hindsight.tags(bank text)
  RETURNS TABLE (tag text, memories bigint, aliases text[])
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
  SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
  opened constant hindsight.bank := _open_bank(bank, 'reader');
BEGIN
  RETURN QUERY
    SELECT k.tag, sum(k.held)::bigint,
           ARRAY(SELECT a.alias FROM tag_alias AS a WHERE a.bank_id = opened.bank_id AND a.tag = k.tag ORDER BY a.alias)
    FROM (SELECT t.tag, 1 AS held FROM live_memory AS m CROSS JOIN unnest(m.tags) AS t(tag)
          WHERE m.bank_id = opened.bank_id AND (m.expires_at IS NULL OR m.expires_at > statement_timestamp())
          UNION ALL SELECT t.tag, 0 FROM unnest(opened.allowed_tags) AS t(tag)
          UNION ALL SELECT a.tag, 0 FROM tag_alias AS a WHERE a.bank_id = opened.bank_id) AS k
    GROUP BY k.tag
    ORDER BY 2 DESC, 1;
END
$$;
COMMENT ON FUNCTION hindsight.tags(text) IS
  'The tags of a bank, the most frequent first: how many live memories have each, and its other spellings.';

-- _check_allowed: raises HM004 for tags that the bank does not allow.
CREATE OR REPLACE FUNCTION hindsight._check_allowed(opened hindsight.bank, tags text[])
  RETURNS void
  LANGUAGE plpgsql IMMUTABLE
AS $$
BEGIN
  IF NOT tags <@ opened.allowed_tags THEN
    RAISE EXCEPTION 'bank % does not allow the tags %', pg_catalog.quote_literal(opened.name),
        (SELECT pg_catalog.string_agg(t.tag, ', ') FROM pg_catalog.unnest(tags) AS t(tag) WHERE t.tag <> ALL (opened.allowed_tags))
      USING ERRCODE = 'HM004',
            HINT = pg_catalog.format('It allows %s; its owner can change that (hindsight.set_tags).',
                                     pg_catalog.array_to_string(opened.allowed_tags[:20], ', ')
                                     || CASE WHEN pg_catalog.cardinality(opened.allowed_tags) > 20 THEN ', …' ELSE '' END);
  END IF;
END
$$;
