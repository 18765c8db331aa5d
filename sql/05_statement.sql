-- Whether two sentences say the same, by rules, in Chinese and English. The vectors of a model find what is near; they can't
-- tell 8.0 from 8.4 or "does" from "does not". Here both sentences are brought to one form, and are the same if only what
-- paraphrase changes differs. A missed paraphrase costs a row; a wrong one costs the truth: in doubt they are not the same.

-- _words: a canonical sentence without separators and possessives.
CREATE OR REPLACE FUNCTION hindsight._words(said text[])
  RETURNS text[]
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN ARRAY(
  SELECT s.word FROM pg_catalog.unnest(said) WITH ORDINALITY AS s(word, place)
  WHERE s.word <> ALL ('{",",、,&,''s,of}') ORDER BY s.place);

-- _bag: the words of a canonical sentence in an order of their own, without the marks of the voice.
CREATE OR REPLACE FUNCTION hindsight._bag(said text[])
  RETURNS text[]
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN ARRAY(
  SELECT w.word
  FROM pg_catalog.unnest(said) AS s(marked)
  CROSS JOIN LATERAL pg_catalog.regexp_replace(s.marked, '^(?:by|被|由|把)~', '') AS w(word)
  WHERE s.marked <> ALL ('{",",、,&,''s,of}')
  ORDER BY w.word COLLATE "C");

-- _other_number: whether one sentence speaks of one thing (a brother), the other of several (brothers): the stemmer folds them.
CREATE OR REPLACE FUNCTION hindsight._other_number(one text, other text)
  RETURNS boolean
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN EXISTS (
  SELECT FROM pg_catalog.regexp_matches(pg_catalog.lower(one), '\m(?:an?|one) ([a-z]+)(?: ([a-z]+))?', 'g') AS m(match)
  CROSS JOIN LATERAL pg_catalog.unnest(m.match) AS w(word)
  WHERE w.word NOT LIKE '%day' AND pg_catalog.lower(other) ~ ('\m' || w.word || 'e?s\M') AND pg_catalog.lower(other) !~ ('\m' || w.word || '\M'));

-- _same_order: whether two canonical sentences of the same words have them in the same order, but for what may stand elsewhere:
-- an adjunct (on Sunday we … / we … on Sunday), the items of a list, whole clauses. What changes places around a word does
-- not: Erin is older than Frank.
CREATE OR REPLACE FUNCTION hindsight._same_order(one text[], other text[])
  RETURNS boolean
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
AS $$
DECLARE
  a text[] := hindsight._words(one);
  b text[] := hindsight._words(other);
  adjunct constant text := '~|^\d+_年$|^(all|所有)_(day|night|week|month|year|hour|晚|早)|^日\d|^\d+月$|^\d+:\d\d|^(今天|明天|昨天)$';
  same_before integer := 0;
  same_after integer := 0;
  size integer;
BEGIN
  IF a = b THEN
    RETURN true;
  END IF;
  size := pg_catalog.cardinality(a);
  IF size <> pg_catalog.cardinality(b) THEN
    RETURN false;
  END IF;
  WHILE a[same_before + 1] = b[same_before + 1] LOOP
    same_before := same_before + 1;
  END LOOP;
  WHILE a[size - same_after] = b[size - same_after] LOOP
    same_after := same_after + 1;
  END LOOP;
  a := a[same_before + 1:size - same_after];
  b := b[same_before + 1:size - same_after];
  size := pg_catalog.cardinality(a);
  FOR cut IN 1..size - 1 LOOP
    IF a[cut + 1] = b[1] AND (a[1] ~ adjunct OR b[1] ~ adjunct) AND a[cut + 1:] || a[:cut] = b THEN
      RETURN true;
    END IF;
  END LOOP;
  RETURN hindsight._same_items(one, other);
END
$$;

-- _same_items: whether two canonical sentences are the same but for the order of the items of a list, or of clauses. An order
-- that is spoken of counts.
CREATE OR REPLACE FUNCTION hindsight._same_items(one text[], other text[])
  RETURNS boolean
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
AS $$
DECLARE
  size constant integer := pg_catalog.cardinality(one);
  same_before integer := 0;
  same_after integer := 0;
BEGIN
  IF size <> pg_catalog.cardinality(other)
     OR one && '{1st,then,step,order,rout,prioriti,rank,先,再,序,骤,接,次}' OR NOT one && '{",",、,&}' THEN
    RETURN false;
  END IF;
  WHILE one[same_before + 1] = other[same_before + 1] LOOP
    same_before := same_before + 1;
  END LOOP;
  WHILE one[size - same_after] = other[size - same_after] LOOP
    same_after := same_after + 1;
  END LOOP;
  RETURN EXISTS (
    SELECT
    FROM (SELECT DISTINCT greatest(same_before - n, 0) AS before FROM pg_catalog.generate_series(0, 3) AS n) AS b,
         (SELECT DISTINCT greatest(same_after - n, 0) AS after FROM pg_catalog.generate_series(0, 3) AS n) AS e,

         pg_catalog.regexp_replace(one[before + 1], '^([^~_]+~)?.*$', '\1') AS mark,
         hindsight._items(one[before + 1:size - after], '''s' = ANY (one[before + 1:])) AS items,
         hindsight._items(other[before + 1:size - after], '''s' = ANY (other[before + 1:])) AS others
    WHERE items = others);
END
$$;

-- _items: the items of a list, or the clauses, in an order of their own. NULL: it is none: a comma can also set off what
-- belongs to a word (his son, Tom, and his daughter, Amy), so that between single words it must be followed by an
-- "and"; and of Alice and Bob's brother only one is a brother.
CREATE OR REPLACE FUNCTION hindsight._items(said text[], is_owned boolean)
  RETURNS text[]
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN (
  WITH item AS MATERIALIZED (
    SELECT i.item FROM pg_catalog.regexp_split_to_table(
      pg_catalog.array_to_string(said, ' '), '(?:^| )[,、&](?: |$)') AS i(item)
    WHERE i.item <> '')
  SELECT pg_catalog.array_agg(item.item ORDER BY item.item COLLATE "C")
  FROM item, (SELECT pg_catalog.string_agg(s, '') AS separators FROM pg_catalog.unnest(said) AS s WHERE s IN (',', '、', '&')) AS s
  WHERE (s.separators ~ '^(&+|、+|[,、]+&)$' AND NOT is_owned)
     OR NOT EXISTS (SELECT FROM item AS i WHERE pg_catalog.cardinality(pg_catalog.string_to_array(i.item, ' ')) < 4)
);

-- _readings: a canonical sentence in the active voice, in all ways in which its parts may be cut: the log is compressed by the
-- job, 日志被任务压缩, 任务把日志压缩 are all: job compress log. None, if it is in the active voice.
CREATE OR REPLACE FUNCTION hindsight._readings(said text[], owners boolean)
  RETURNS SETOF text[]
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE ROWS 10
BEGIN ATOMIC
  SELECT said[:place - 1 - thing] || said[place + 1:place + owner] || said[place - thing:place - 1] || said[place + owner + 1:]
  FROM generate_subscripts(said, 1) AS place, generate_series(1, 2) AS thing, generate_series(1, 3) AS owner
  WHERE owners AND said[place] = 'of' AND thing < place
  UNION ALL
  (WITH voice AS (
    SELECT p.place - c.start AS place, "left"(said[p.place], -length(v.rest)) AS mark, said[:c.start] AS head, said[c.stop:] AS tail,
           said[c.start + 1:p.place - 1] AS before, v.rest || said[p.place + 1:c.stop - 1] AS after
    FROM generate_subscripts(said, 1) AS p(place), regexp_replace(said[p.place], '^(by|被|由|把)~', '') AS v(rest),
         LATERAL (SELECT 0 AS start, cardinality(said) + 1 AS stop -- the whole, or the clause alone
                  UNION
                  SELECT coalesce(max(s) FILTER (WHERE s < p.place), 0),
                         coalesce(min(s) FILTER (WHERE s > p.place), cardinality(said) + 1)
                  FROM unnest(array_positions(said, ',')) AS s) AS c
    WHERE v.rest <> said[p.place])
  SELECT head || CASE mark
    WHEN 'by~' THEN after[:cut] || before[verb] || before[:verb - 1] || before[verb + 1:] || after[cut + 1:]
    WHEN '把~' THEN before || after[cut + 1:] || after[:cut]
    ELSE after || before END || tail
  FROM voice
  CROSS JOIN LATERAL generate_series(1, CASE WHEN mark IN ('by~', '把~') THEN cardinality(after) ELSE 1 END) AS cut
  CROSS JOIN LATERAL generate_series(CASE WHEN mark = 'by~' THEN greatest(place - 3, 1) ELSE 1 END,
                                     CASE WHEN mark = 'by~' THEN place - 1 ELSE 1 END) AS verb
  WHERE mark <> 'by~' OR verb = place - 1 OR before[verb + 1] LIKE '%~%');
END;

-- _case_sensitive: the paths, addresses and identifiers that a sentence names, as they are written: /etc/Hosts is not /etc/hosts.
CREATE OR REPLACE FUNCTION hindsight._case_sensitive(content text)
  RETURNS text[]
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN ARRAY(
  SELECT match.groups[1] FROM pg_catalog.regexp_matches(content, '([A-Za-z0-9._~-]*[A-Za-z][A-Za-z0-9._~-]*[/_][A-Za-z0-9._/~-]*[A-Za-z0-9]|/[A-Za-z0-9._/~-]*[A-Za-z0-9])', 'g') AS match(groups)
  ORDER BY 1);

-- _says_the_same: whether merging one sentence into another loses nothing. The caller has found them near by their vectors.
-- Texts of more than a thousand characters are no sentences, and never the same: of so many words some are turned unseen.
CREATE OR REPLACE FUNCTION hindsight._says_the_same(one text, other text)
  RETURNS boolean
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
AS $$
DECLARE
  a text[];
  b text[];
BEGIN
  IF pg_catalog.length(one) > 1000 OR pg_catalog.length(other) > 1000
     OR one ~ '[?？]\s*$' <> (other ~ '[?？]\s*$') THEN -- a question tells nothing
    RETURN false;
  ELSIF one ~* '(passw\w*|passcode|\m(pin|secret|token|key)) *(is|=|:)|(密码|口令|密钥|令牌) *(是|为|=|:|：)' THEN -- of a secret each character counts
    RETURN pg_catalog.btrim(one, ' .。!！') = pg_catalog.btrim(other, ' .。!！');
  ELSIF hindsight._case_sensitive(one) <> hindsight._case_sensitive(other) THEN
    RETURN false;
  END IF;
  a := hindsight._canonical(one);
  b := hindsight._canonical(other);
  IF a = '{}' THEN
    RETURN false;
  ELSIF hindsight._bag(a) <> hindsight._bag(b) THEN -- setup, set up
    RETURN pg_catalog.array_to_string(hindsight._words(a), '') = pg_catalog.array_to_string(hindsight._words(b), '');
  END IF;
  a := pg_catalog.array_remove(a, '<past');
  b := pg_catalog.array_remove(b, '<past');
  IF hindsight._other_number(one, other) OR hindsight._other_number(other, one) THEN
    RETURN false;
  END IF;
  RETURN hindsight._same_order(a, b) OR EXISTS (
    SELECT
    FROM (SELECT a AS said UNION ALL SELECT hindsight._readings(a, '''s' = ANY (b)) LIMIT 50) AS x,
         (SELECT b AS said UNION ALL SELECT hindsight._readings(b, '''s' = ANY (a)) LIMIT 50) AS y
    WHERE hindsight._same_order(x.said, y.said));
END
$$;


-- _versions: the versions that a sentence names, each as name and number: MySQL 8.4, Android 14, v1.2, 5.1版. A whole number
-- is one only after a name with a capital, or with a word for it (version, v, 版): port 22 and Room 101 are none.
CREATE OR REPLACE FUNCTION hindsight._versions(content text)
  RETURNS TABLE (name text, number text)
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE ROWS 2
BEGIN ATOMIC
  SELECT CASE WHEN is_name THEN lower(m.match[1]) END, m.match[3]
  FROM regexp_matches(normalize(content, NFKC),
         '(?:([A-Za-z][A-Za-z+#]*)[ -]?)?'
         '((?<![A-Za-z])(?:[vV]ersion (?:[a-z]+ )*|[rR]elease |[vV])|版本[^0-9,。;]*|(?<![A-Za-z0-9.])|(?<=[A-Za-z+#])(?=\d+\.))'
         '(\d+(?:\.\d+)*)( ?版(?!权|税|面))?'
         '(?!\d|[-:]\d| ?(?:%|°|[kKMGT]i?B|[km]?[mg]|m?s|euros?|dollars?|percent|元|万|公里|米|岁|年|月|号|点)(?![a-z]))', 'g') AS m(match)
  CROSS JOIN LATERAL (SELECT m.match[2] <> '' OR m.match[4] IS NOT NULL
                               OR lower(m.match[1]) IN ('v', 'version', 'release') AS is_called_so,
                             m.match[3] LIKE '%.%' AS is_dotted,
                             m.match[1] IS NOT NULL AND lower(m.match[1]) <> ALL (hindsight._opening_words() || '{v,
      port,ports,room,page,line,step,chapter,gate,flight,building,unit,
      floor,table,route,bus,level,section,number,no,track,platform,terminal,part,apartment,suite,
      box,id,ids,team,group,
      episode,season,ticket,issue,pr,case,order,http,error,code,ip,ipv,utc,gmt,usd,eur,top,day,week,
      row,column,price,cost,costs,is,was,of,to,at,
      rate,ratio,score,weighs,weight,height,about,
      than,over,under,temperature,from,between,by,chapter,exit,zone,seat,class,grade,shelf,slot,rack,
      node,server,host,version,release}'::text[]) AS is_name) AS n
  WHERE is_called_so OR (is_name AND (is_dotted OR m.match[1] ~ '^[A-Z]|[a-z][A-Z]'))
     OR (is_dotted AND content ~* 'upgrad|updat|migrat|升级|升到|更新|→');
END;

-- _evolves: whether one sentence names another version of what the other names: MySQL 8.0, MySQL 8.4.
CREATE OR REPLACE FUNCTION hindsight._evolves(one text, other text)
  RETURNS boolean
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN EXISTS (
  SELECT FROM hindsight._versions(one) AS o CROSS JOIN hindsight._versions(other) AS n
  WHERE coalesce(o.name = n.name, true) AND o.number <> n.number
    AND NOT EXISTS (SELECT FROM hindsight._versions(one) AS also WHERE also.number = n.number));
