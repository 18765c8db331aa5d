-- Aliases: that two names name the same thing is believed where somebody says so, or where general knowledge does; never by spelling.

-- _abbreviates: whether a short name is made of a long one: its initials (WHO, World Health Organization), or its first and last letter
-- with the number of those between them (K8s, Kubernetes).
CREATE OR REPLACE FUNCTION hindsight._abbreviates(short text, long text)
  RETURNS boolean
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
  WHEN short ~ '^[A-Za-z][0-9]{1,2}[A-Za-z]$'
    THEN long ~ '^[A-Za-z]+$' AND pg_catalog.lower(short) = pg_catalog.lower(
           pg_catalog."left"(long, 1) || (pg_catalog.length(long) - 2) || pg_catalog."right"(long, 1))
  ELSE short ~ '^[A-Z][A-Za-z]*[A-Z]$' AND pg_catalog.upper(short) = pg_catalog.upper(
         (SELECT pg_catalog.string_agg(pg_catalog."left"(w.word, 1), '' ORDER BY w.place)
          FROM pg_catalog.regexp_split_to_table(long, '[\s-]+') WITH ORDINALITY AS w(word, place)
          WHERE w.word ~ '^[[:alnum:]]' AND pg_catalog.lower(w.word) <> ALL ('{of,the,for,and,de,la}')))
END;

-- aliases: the pairs of names that a text says are of one thing: "Kubernetes (K8s)", "Kubernetes, also known as K8s", 世界卫生组织，简称世卫.
-- In brackets alone a name says nothing (Paris (France)), unless it abbreviates the other.
CREATE OR REPLACE FUNCTION hindsight.aliases(content text)
  RETURNS TABLE (name text, alias text)
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
AS $$
DECLARE
  plain constant text := pg_catalog."left"(pg_catalog.normalize(content, 'NFKC'), 10000); -- full-width brackets are ASCII in it
  latin constant text := '[A-Z](?:[[:alnum:]_+#-]|\.(?=[[:alnum:]]))*(?: (?:of |the |for |and )?[A-Z0-9](?:[[:alnum:]_+#-]|\.(?=[[:alnum:]]))*){0,4}';
  any_name constant text := '["“「《]?([[:alnum:]][[:alnum:] _+#.·-]{0,39}?)["”」》]?';
BEGIN
  IF plain !~ '\(|a\.?k\.?a|known as|called|short for|[称名叫]' THEN
    RETURN;
  END IF;
  RETURN QUERY
    SELECT DISTINCT pg_catalog.regexp_replace(p.name, '^The ', ''), p.alias
    FROM (
      SELECT pg_catalog.btrim(f.match[1], ' .') AS name, pg_catalog.btrim(f.match[2], ' .') AS alias
      FROM pg_catalog.regexp_matches(plain, '(' || latin || ') \((' || latin || ')\)', 'g') AS f(match)
      WHERE hindsight._abbreviates(f.match[2], f.match[1]) OR hindsight._abbreviates(f.match[1], f.match[2])
      UNION ALL
      SELECT pg_catalog.btrim(f.match[1], ' .'), pg_catalog.btrim(f.match[2], ' .')
      FROM pg_catalog.regexp_matches(plain,
        '(' || latin || '),? \(?(?:is |are |was )?(?:aka|a\.k\.a\.|also known as|also called|short for|abbreviated as) ["“]?(' || latin || ')', 'g') AS f(match)
      UNION ALL
      SELECT pg_catalog.btrim(f.match[1], ' .'), pg_catalog.btrim(f.match[2], ' .')
      FROM pg_catalog.regexp_matches(plain,
        '(?:^|[。，,;；:：!！?？、\n])\s*' || any_name || '\s*[(,，]?\s*(?:又称|又名|也称|也叫|简称|别名|俗称|全称)(?:为|是|叫)?\s*' || any_name || '(?=[)。，,;；!！?？、\n]|$)', 'g') AS f(match)
    ) AS p
    WHERE pg_catalog.length(p.name) BETWEEN 2 AND 40 AND pg_catalog.length(p.alias) BETWEEN 2 AND 40
      AND pg_catalog.lower(p.name) <> pg_catalog.lower(p.alias) AND p.name !~ '^[这那它他她我你该其]'
    LIMIT 16;
END
$$;
COMMENT ON FUNCTION hindsight.aliases(text) IS
  'The pairs of names that a text says are of one thing, by rules: Kubernetes (K8s), also known as, 又称, 简称.';

-- _entity_key: a name for comparison: whatever its case and width.
CREATE OR REPLACE FUNCTION hindsight._entity_key(name text)
  RETURNS text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN pg_catalog."left"(pg_catalog.lower(pg_catalog.btrim(pg_catalog.normalize(name, 'NFKC'))), 100);

-- _general_name: what a name is generally known as, where it has a usual second one; else itself. To be extended for names that any user
-- would write in both ways.
CREATE OR REPLACE FUNCTION hindsight._general_name(key text)
  RETURNS text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE key
  WHEN 'k8s' THEN 'kubernetes' WHEN 'postgres' THEN 'postgresql' WHEN 'mongo' THEN 'mongodb' WHEN 'js' THEN 'javascript'
  WHEN 'ts' THEN 'typescript' WHEN 'vscode' THEN 'visual studio code' WHEN 'vs code' THEN 'visual studio code'
  WHEN 'nyc' THEN 'new york city' WHEN '微信' THEN 'wechat' WHEN '支付宝' THEN 'alipay' WHEN '阿里云' THEN 'alibaba cloud'
  ELSE key END;
