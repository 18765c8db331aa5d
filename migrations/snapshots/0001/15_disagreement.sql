-- Whether two sentences about the same contradict each other: rules, in Chinese and English, without a model. What they say
-- differently is found by taking away what they have in common; what is left decides. Anything else than the cases below is no
-- contradiction: a person reads what audit finds, and reads on only as long as most of it is right.

-- _assertion: a sentence as the units that are compared: English words by their stems, numbers with their unit, single characters
-- of scripts that do not separate words. Words that mean the same in this comparison are one, in both languages: not, only, all, some.
CREATE OR REPLACE FUNCTION hindsight._assertion(content text, is_stemmed boolean DEFAULT true)
  RETURNS text[]
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
AS $$
DECLARE
  plain text := pg_catalog.replace(pg_catalog.lower(pg_catalog.normalize(content, 'NFKC')), '’', '''');
  rewrite text[];
BEGIN
  -- LIKE asks first: a session keeps 32 compiled expressions, and a sentence needs few of these.
  FOREACH rewrite SLICE 1 IN ARRAY ARRAY[
    ['{%can''t%,%cant%,%cannot%}', '\mcan''?t\M|\mcannot\M', 'can not'], ['{%won''t%}', '\mwon''t\M', 'will not'],
    ['{%n''t%}', 'n''t\M', ' not'], ['{"%no longer%",%never%}', '\mno longer\M|\mnever\M', 'not'],
    ['{"%nothing but%","%nobody but%","%no one but%","%none but%"}', '\m(nothing|nobody|no one|none) but\M', 'only'],
    ['{%no%,%neither%,%without%}', '\m(nothing|nobody|no one|none|no|neither|without)\M', 'not'],
    ['{%every%,%each%,%any%,%always%,%entire%,%whole%}', '\m(every|everyone|everybody|each|any|always|entire|whole)\M', 'all'],
    ['{%few%,%half%,%partly%,%sometimes%,%several%}', '\m(few|half|partly|sometimes|several)\M', 'some'],
    ['{"%,0%","%,1%","%,2%","%,3%","%,4%","%,5%","%,6%","%,7%","%,8%","%,9%"}', '(\d),(?=\d{3}(\D|$))', '\1'],
    ['{%0%}', '(?<![\d.])0+(?=\d)', ''],
    ['{%sec%,%秒%}', '(?<=[\d一二两三四五六七八九十百千万])\s?(?:seconds?|secs?|秒钟?)(?![a-z])', 's '],
    ['{%min%,%分钟%}', '(?<=[\d一二两三四五六七八九十百千万])\s?(?:minutes?|mins?|分钟)(?![a-z])', 'min '],
    ['{%hour%,%hr%,%小时%}', '(?<=[\d一二两三四五六七八九十百千万])\s?(?:hours?|hrs?|小时)(?![a-z])', 'h '],
    ['{%day%,%天%}', '(?<=[\d一二两三四五六七八九十百千万])\s?(?:days?|天)(?![a-z])', 'd '], ['{%percent%}', '(?<=\d)\s?percent\M', '%'],
    ['{%只有%,%仅有%,%唯有%}', '只有|仅有|唯有', ' only '],
    ['{%所有%,%全%,%任何%,%每个%,%一律%,%总是%}', '所有|全部|全都|全体|任何|每个|一律|总是', ' all '],
    ['{%部分%,%有些%,%一些%,%一半%,%有时%}', '部分|有些|一些|一半|有时', ' some '],
    ['{%之前%,%以前%}', '之前|以前', ' before '], ['{%之后%,%以后%}', '之后|以后', ' after '],
    ['{%无%,%没%,%不%,%未%,%勿%}', '无法|没有|没能|从不|决不|绝不|并不|不是|未能|尚未|不再|[没勿]|未(?!来)|无(?=需|须|权|效|人)'
     '|(?<![差得])不(?!同|错|仅|但|过|少|论|断|管|如|止|得不)', ' not '] -- not what holds the character and denies nothing
  ] LOOP
    IF plain LIKE ANY (rewrite[1]::text[]) THEN
      plain := pg_catalog.regexp_replace(plain, rewrite[2], rewrite[3], 'g');
    END IF;
  END LOOP;
  RETURN ARRAY(
    SELECT CASE
      WHEN NOT is_stemmed THEN u.unit
      WHEN u.unit ~ '^[a-z]+$' THEN coalesce((pg_catalog.ts_lexize('pg_catalog.english_stem', u.unit))[1], u.unit)
      ELSE pg_catalog.regexp_replace(u.unit, '\s', '', 'g') END
    FROM pg_catalog.regexp_matches(plain,
      '((?:早上|上午|中午|下午|晚上|凌晨|周|星期)?(?:[〇零一二两三四五六七八九十百千万亿]+|\d+(?:[.:/]\d+)*)'
      '(?:\s?(?:%|[kmgt]i?b|毫秒|ms|s|min|h|d|am|pm|[cmk]?m|k?g)(?![a-z]))?'
      '|[a-z\u00df-\u024f0-9]+(?:[-_.@/][a-z\u00df-\u024f0-9]+)*|''s\M|[^\x01-\u02ff\u2000-\u206f\u3000-\u303f\uff00-\uff0f])', 'g')
      WITH ORDINALITY AS m(groups, place)
    CROSS JOIN LATERAL (SELECT m.groups[1] AS unit) AS u
    ORDER BY m.place);
END
$$;

-- _written: some units of a sentence in the words that it has for them.
CREATE OR REPLACE FUNCTION hindsight._written(units text[], content text)
  RETURNS text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (
  WITH word AS MATERIALIZED (
    SELECT w.stem, w.word, w.place
    FROM ROWS FROM (pg_catalog.unnest(hindsight._assertion(content)), pg_catalog.unnest(hindsight._assertion(content, false)))
      WITH ORDINALITY AS w(stem, word, place)
  )
  SELECT pg_catalog.btrim(pg_catalog.string_agg(
           CASE WHEN u.unit ~ '^[\x01-\u02ff]' THEN ' ' ELSE '' END
           || coalesce((SELECT w.word FROM word AS w WHERE w.stem = u.unit ORDER BY w.place LIMIT 1), u.unit), '' ORDER BY u.place))
  FROM pg_catalog.unnest(units) WITH ORDINALITY AS u(unit, place));

-- _beyond: the units of one that the other has not, in their order.
CREATE OR REPLACE FUNCTION hindsight._beyond(units text[], other text[])
  RETURNS text[]
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN ARRAY(
  SELECT u.unit
  FROM (SELECT t.unit, t.place, pg_catalog.row_number() OVER (PARTITION BY t.unit ORDER BY t.place) AS time
        FROM pg_catalog.unnest(units) WITH ORDINALITY AS t(unit, place)) AS u
  WHERE u.time > pg_catalog.cardinality(pg_catalog.array_positions(other, u.unit))
  ORDER BY u.place);

-- _opposite: whether two words (stems) are opposites. is_bound: also those of which many things have both (a left and a right
-- knee), and which contradict each other only where something is said to be so.
CREATE OR REPLACE FUNCTION hindsight._opposite(one text, other text, is_bound boolean)
  RETURNS boolean
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
AS $$
DECLARE
  pair constant text[] := ARRAY[one || ' ' || other, other || ' ' || one];
  free constant text[] := '{accept reject,allow deni,allow forbid,allow prohibit,allow block,permit forbid,permit deni,grant deni,approv reject,
    encrypt plaintext,increas decreas,increas reduc,rais lower,rise fall,grow shrink,gain lose,public privat,on off,
    open close,open shut,before after,enabl disabl,activ inactiv,succeed fail,success failur,pass fail,true fals,
    valid invalid,easi difficult,easier harder,easi hard,simpl complex,simpl complic,like hate,love hate,like dislik,
    prefer avoid,agre disagre,includ exclud,option mandatori,option requir,start stop,synchron asynchron,sync async,
    abov below,cheap expens,safe danger,safe unsaf,alway never,more less,more fewer,most least,better wors,faster slower,
    fast slow,higher lower,larger smaller,longer shorter,older younger,earlier later,win lose,buy sell,lend borrow,
    singl marri,onlin offlin,keep delet,允许 禁止,允许 拒绝,接受 拒绝,批准 驳回,同意 反对,同意 拒绝,支持 反对,打开 关闭,开启 关闭,启用 停用,启 禁,开 关,增加 减少,增 减,
    上升 下降,升高 降低,提高 降低,变快 变慢,公开 保密,公开 私有,公开 非公开,公 私,简单 复杂,容易 困难,容易 难,成功 失败,通过 失败,喜欢 讨厌,喜欢 反感,爱 讨厌,爱 恨,安全 危险,真 假,对 错,必须 可选,
    必填 可选,必填 选填,在线 离线,同步 异步,包含 排除,保留 删除,便宜 贵,有效 无效,加密 明文,赢 输,买 卖,已婚 未婚}';
  bound constant text[] := '{left right,up down,high low,hot cold,earli late,big small,larg small,long short,new old,first last,morn even,am pm,左 右,
    高 低,大 小,多 少,快 慢,长 短,早 晚,上 下,冷 热,新 旧,难 易,强 弱,轻 重,胖 瘦,好 坏,松 紧,深 浅,高 矮}';
  prefixes constant text[] := '{un,in,dis,non,im,ir,不,非,未}';
BEGIN
  RETURN free && pair OR (is_bound AND bound && pair)
    OR EXISTS (SELECT FROM pg_catalog.unnest(prefixes) AS p
               WHERE other <> '' AND one = p || other OR one <> '' AND other = p || one);
END
$$;

-- _changes_places: the two parts that change places between sentences of the same words: "Erin is older than Frank", "Frank is
-- older than Erin". NULL where only clauses or the members of a list do.
CREATE OR REPLACE FUNCTION hindsight._changes_places(one text[], other text[], content text)
  RETURNS text
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
AS $$
DECLARE
  size integer := pg_catalog.cardinality(one);
  first integer := 1;
  between text[];
BEGIN
  WHILE first <= size AND one[first] = other[first] LOOP
    first := first + 1;
  END LOOP;
  WHILE size >= first AND one[size] = other[size] LOOP
    size := size - 1;
  END LOOP;
  FOR x IN 1..least(4, size - first) LOOP
    CONTINUE WHEN one[first : first + x - 1] <> other[size - x + 1 : size];
    FOR y IN 1..least(4, size - first - x) LOOP
      between := one[first + x : size - y];
      IF one[size - y + 1 : size] = other[first : first + y - 1] AND between = other[first + y : size - x]
         AND NOT between <@ '{and,or,with,和,与,或,跟,同,及,、}' -- neither first: a list
         AND NOT between && '{marri,sibl,friend,meet,met,near,same,equal,夫,认,友,邻,等}' THEN -- true both ways
        RETURN pg_catalog.format('%s and %s change places', hindsight._written(one[first : first + x - 1], content),
                                 hindsight._written(one[size - y + 1 : size], content));
      END IF;
    END LOOP;
  END LOOP;
  RETURN NULL;
END
$$;

-- _clauses: the clauses of a sentence in one order.
CREATE OR REPLACE FUNCTION hindsight._clauses(content text)
  RETURNS text[]
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN ARRAY(
  SELECT pg_catalog.array_to_string(hindsight._assertion(c.clause), ' ')
  FROM pg_catalog.regexp_split_to_table(content, '[,;，；。]|\.(?!\S)|\mand\M|、') AS c(clause)
  WHERE c.clause ~ '\S' ORDER BY 1);

-- _beyond_articles: units without the article that they begin with.
CREATE OR REPLACE FUNCTION hindsight._beyond_articles(units text[])
  RETURNS text[]
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN pg_catalog.cardinality(units) = 1 THEN units
            WHEN units[1] = ANY ('{in,at}'::text[]) AND units[2] = ANY ('{a,an,the}'::text[]) THEN units[3:]
            WHEN units[1] = ANY ('{a,an,the,in,at}'::text[]) THEN units[2:] ELSE units END;

-- _disagreement: what two sentences contradict each other in, in a few words; NULL: nothing that these rules know.
--   negation: what is left is a negation on one side ("not open" and "closed" agree);
--   opposites: allow and deny, 打开 and 关闭; quantifiers: all, and only some;
--   places: the same words, two of which change places;
--   numbers: the same words with another number or unit, which is no label (room 101, the third experiment);
--   values: the same attribute of the same thing (the user's blood type is …) with another value.
CREATE OR REPLACE FUNCTION hindsight._disagreement(one text, other text)
  RETURNS text
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
AS $$
DECLARE
  fillers constant text[] := '{a,an,the,is,are,was,were,be,been,am,do,does,did,has,have,had,of,that,this,it,its,there,to,as,so,by,
    also,just,will,would,can,could,may,might,must,shall,should,need,''s,turn,的,了,着,过,地,得,都,也,就,是,很,还,会,能,够,可,以,要,应,该,须,必,需,才,
    把,被,有,法,not,all,only,some}';
  number constant text := '^((早上|上午|中午|下午|晚上|凌晨|周|星期)?(\d.*|[〇零一二两三四五六七八九十百千万亿]+.*)|one|two|three|four|five'
    '|six|seven|eight|nine|ten|eleven|twelv|twenti|thirti|forti|fifti|once|twice|thrice|doubl|tripl)$';
  said constant text[] := hindsight._assertion(one);
  answered constant text[] := hindsight._assertion(other);
  here text[] := hindsight._beyond(said, answered);
  there text[] := hindsight._beyond(answered, said);
  denies constant boolean := pg_catalog.cardinality(pg_catalog.array_positions(here || there, 'not')) % 2 = 1;
  is_partial constant boolean := 'all' = ANY (here) AND there && '{only,some}' OR 'all' = ANY (there) AND here && '{only,some}';
  is_quantified constant boolean := here || there && '{all,only,some}';
  is_latin constant boolean := one ~ '[A-Za-z]' AND one !~ '[\u4e00-\u9fff]';
  glue constant text := CASE WHEN is_latin THEN ' ' ELSE '' END;
  longest constant integer := CASE WHEN is_latin THEN 3 ELSE 8 END; -- units of a value
  states constant text[] := '{is,are,was,were,be,than,越,是,在,更,很,太,较,得,变,偏,比}';
  grade constant text := '\mA(?=\W*$|[型级组座班])'; -- no article: the blood type is A
  common integer := 0;   -- units that both begin with
  verb integer;          -- where it says that something is so
BEGIN
  IF one || other ~ '[?？]|(?<![访顾学])问(?!题)|想知道' OR said || answered && '{ask,wonder}' -- of two questions neither is wrong
     OR greatest(pg_catalog.cardinality(said), pg_catalog.cardinality(answered)) > 200 OR NOT said && answered THEN
    RETURN NULL;
  ELSIF here = '{}' AND there = '{}' THEN
    RETURN CASE WHEN hindsight._clauses(one) <> hindsight._clauses(other) THEN hindsight._changes_places(said, answered, one) END;
  END IF;
  WHILE said[common + 1] = answered[common + 1] LOOP
    common := common + 1;
  END LOOP;
  here := ARRAY(SELECT u FROM pg_catalog.unnest(here) AS u WHERE u <> ALL (fillers) OR (u = 'a' AND one ~ grade));
  there := ARRAY(SELECT u FROM pg_catalog.unnest(there) AS u WHERE u <> ALL (fillers) OR (u = 'a' AND other ~ grade));
  -- What is left of each, beside negations and quantifiers.
  IF here = '{}' AND there = '{}' THEN
    RETURN CASE WHEN denies THEN 'one denies what the other says' WHEN is_partial THEN 'one says it of all, the other of some' END;
  ELSIF hindsight._opposite(
      pg_catalog.array_to_string(here, glue), pg_catalog.array_to_string(there, glue), said[:common] && states) THEN
    RETURN CASE WHEN NOT denies THEN pg_catalog.format(
      '%s and %s are opposites', hindsight._written(here, one), hindsight._written(there, other)) END;
  ELSIF denies THEN
    RETURN NULL;
  ELSIF is_partial AND greatest(pg_catalog.cardinality(here), pg_catalog.cardinality(there)) <= 3 THEN
    RETURN 'one says it of all, the other only of some';
  ELSIF is_quantified OR here = '{}' OR there = '{}' THEN
    RETURN NULL;
  END IF;
  IF (SELECT bool_and(coalesce(h ~ number AND t ~ number AND (h ~ '\d') = (t ~ '\d') AND (h ~ '^[a-z]') = (t ~ '^[a-z]'), false))
      FROM ROWS FROM (pg_catalog.unnest(here), pg_catalog.unnest(there)) AS u(h, t)) THEN
    RETURN CASE WHEN common >= 3 AND said[common] <> '第'
                THEN pg_catalog.format('%s or %s', hindsight._written(here, one), hindsight._written(there, other)) END;
  END IF;
  -- The value begins after the verb: characters of it may be the same (湖南, 湖北).
  verb := (SELECT max(u.place) FROM pg_catalog.unnest(said[:common]) WITH ORDINALITY AS u(unit, place)
           WHERE u.unit = ANY ('{is,are,was,were,cal,name,是,为,叫,在,于}') AND u.place >= common - 2);
  here := hindsight._beyond_articles(said[verb + 1 :]);
  there := hindsight._beyond_articles(answered[verb + 1 :]);
  IF said[:verb - 1] && '{''s,of,的,住}' AND NOT '的' = ANY (here[:pg_catalog.cardinality(here) - 1])
     AND NOT here || there && '{and,or,with,from,on,to,和,与,或,、,not,only,all,some}'
     AND pg_catalog.cardinality(here) BETWEEN 1 AND longest AND pg_catalog.cardinality(there) BETWEEN 1 AND longest THEN
    RETURN pg_catalog.format('%s or %s', hindsight._written(here, one), hindsight._written(there, other));
  END IF;
  RETURN NULL;
END
$$;
