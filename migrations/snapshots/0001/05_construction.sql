-- Constructions: sentences that say the same with their parts in other places, said in one way. Of two converses one is kept:
-- B reports to A, A is B's manager: A manages B. Each rule is tried where its sign is seen, as in 05_notation.sql.

-- _restated: a rewritten sentence, with constructions of English and Chinese in one form. In Chinese also the clauses.
CREATE OR REPLACE FUNCTION hindsight._restated(plain text)
  RETURNS text
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
AS $$
DECLARE
  bare constant text := pg_catalog.replace(plain, '的', ''); -- which stands for 's too
BEGIN
  IF pg_catalog.octet_length(bare) > pg_catalog.length(bare) + 3 THEN -- more than an accent or two
    RETURN hindsight._restated_chinese(plain);
  END IF;
  IF plain LIKE '% where %' THEN -- Rome is where Bob lives: Bob lives in Rome
    plain := pg_catalog.regexp_replace(plain, '^([^,;]+?) is where ([^,;]+)$', '\2 in \1');
  END IF;
  IF plain LIKE '%the reason%' THEN
    plain := pg_catalog.regexp_replace(plain, '^the reason (?:why |that |for )?([^,;]+?) (?:is|was) (?:that|because) ([^;]+)$',
                                       '\1 because \2');
    plain := pg_catalog.regexp_replace(plain, '^([^,;]+?) (is|was) the reason (?:why|that|for) ([^,;]+)$', '\3 because of \1');
  END IF;
  IF plain LIKE '% is why %' THEN
    plain := pg_catalog.regexp_replace(plain, '^([^,;]+)[,;] (?:which|that|this) is why ([^,;]+)$', 'because \1, \2');
  END IF;
  IF plain LIKE ANY ('{"since %,%","as %,%"}') THEN -- since the shop is closed; not: since he was a child
    plain := pg_catalog.regexp_replace(plain, '^(?:since|as) (?!soon|long|far|well|of )([^,;]+ (?:is|are|has|have|does|do|can'
      '|cannot|must|needs?) [^,;]+), ', 'because \1, ');
  END IF;
  IF plain LIKE ANY ('{%anymore%,%any more%,%any longer%}') THEN
    plain := pg_catalog.regexp_replace(plain, '\m(?:(?:do|does|is|are|can) ?)not ([^,;]+?) (?:anymore|any more|any longer)(?=$|[,;]| (?:on|in|at)\M)',
                                       'no longer \1');
  END IF;
  IF plain LIKE '%never %day%' THEN -- never on a Friday: not on Fridays
    plain := pg_catalog.regexp_replace(plain, '\mnever ([^,;]+) on (?:an?y? )?((?:mon|tues|wednes|thurs|fri|satur|sun)day)s?\M',
                                       'not \1 on \2s');
  END IF;
  IF plain LIKE '% belongs to %' THEN
    plain := pg_catalog.regexp_replace(plain, '^([^,;]+) belongs to ([^,;]+)$', '\2 has \1');
  END IF;
  IF plain LIKE '% report%to %' THEN
    plain := pg_catalog.regexp_replace(plain, '^([^,;]+?) (?:reports|is reporting) (?:directly )?to ([^,;]+)$', '\2 manages \1');
  END IF;
  IF plain LIKE ANY ('{"% manager%","% boss%"}') THEN
    plain := pg_catalog.regexp_replace(plain, '^((?:the )?[^,; ]+) is ([^,;]+?) +的 +(?:manager|boss)$', '\1 manages \2');
    plain := pg_catalog.regexp_replace(plain, '^((?:the )?[^,; ]+) +的 +(?:manager|boss) is ((?:the )?[^,;的 ]+)$', '\2 manages \1');
  END IF;
  IF plain LIKE ANY ('{"% younger than %","% slower than %","% smaller than %","% cheaper than %"}') THEN
    plain := pg_catalog.regexp_replace(
      pg_catalog.regexp_replace(plain, '^([^,;]+?) is ((?:[^,; ]+ ){0,3})(younger|slower|smaller|cheaper) than ([^,;]+)$',
                                '\4 is \2<\3> than \1'),
      '<(?:younger|slower|smaller|cheaper)>',
      CASE WHEN plain LIKE '%younger than%' THEN 'older' WHEN plain LIKE '%slower than%' THEN 'faster'
           WHEN plain LIKE '%smaller than%' THEN 'bigger' ELSE 'more expensive' END);
  END IF;
  IF plain LIKE ANY ('{"%prefer% over %","%prefer% rather than %"}') THEN
    plain := pg_catalog.regexp_replace(plain, '\m(prefers?) ([^,;]+?) (?:over|rather than) ', '\1 \2 to ');
  ELSIF plain LIKE '%like% than %' THEN
    plain := pg_catalog.regexp_replace(plain, '\mlike(s?) ([^,;]+?) (?:more|better) than ', 'prefer\1 \2 to ');
  END IF;
  IF plain LIKE 'the name of %' OR plain LIKE '%的 %name is %' THEN
    plain := pg_catalog.regexp_replace(plain, '^the name of ([^,;]+?) is ([^,;]+)$', '\1 is named \2');
    plain := pg_catalog.regexp_replace(plain, '^([^,;]+?) +的 +name is ([^,;]+)$', '\1 is named \2');
  END IF;
  IF plain LIKE ANY ('{"%the price of %","%the cost of %"}') THEN
    plain := pg_catalog.regexp_replace(plain, '^the (?:price|cost) of ([^,;]+?) is ([^,;]+)$', '\1 costs \2');
  END IF;
  IF plain LIKE ANY ('{"% a day%","% a week%","% a month%","% a year%","% a second%","% a minute%","% an hour%"}') THEN
    plain := pg_catalog.regexp_replace(plain, '\m(euros?|dollars?|pounds|times|hours|minutes|requests|once|twice|km|gb|mb|[$€£]?\d[\d.]*) an? '
      '(day|week|month|year|hour|minute|second|night)\M', '\1 per \2', 'g');
  END IF;
  IF plain LIKE '%both % and %' THEN
    plain := pg_catalog.regexp_replace(plain, '\mboth (?=[a-z0-9]+ (?:[a-z0-9]+ )?and )', '', 'g');
  END IF;
  IF plain LIKE '% borrowed % from %' THEN
    plain := pg_catalog.regexp_replace(plain, '^([^,;]+?) borrowed ([^,;]+) from ([^,; ]+)(?=$| )', '\3 lent \1 \2');
  END IF;
  IF plain LIKE '% or more %' THEN
    plain := pg_catalog.regexp_replace(plain, '\m(\d+|two|three|four|five|six|seven|eight|nine|ten|twelve) or more ', 'at least \1 ');
  END IF;
  IF plain LIKE 'it t%s % to %' OR plain LIKE 'it took % to %' THEN -- it takes an hour to build it: to build it takes an hour
    plain := pg_catalog.regexp_replace(plain, '^it (takes|took) ([^,;]+?) to ([^,;]+)$', '\3 \1 \2');
  END IF;
  IF plain LIKE 'it %s % who %' THEN
    plain := pg_catalog.regexp_replace(plain, '^it (?:is|was) ([^,;]+?) who ([^,;]+)$', '\1 \2');
  ELSIF plain LIKE 'the % who % is %' THEN
    plain := pg_catalog.regexp_replace(plain, '^the (?:one|person) who ([^,;]+) is ([^,; ]+)$', '\2 \1');
  END IF;
  RETURN plain;
END
$$;

-- _restated_chinese: the same for a sentence in Chinese.
CREATE OR REPLACE FUNCTION hindsight._restated_chinese(plain text)
  RETURNS text
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
AS $$
BEGIN
  IF plain LIKE '%原因%' THEN
    plain := pg_catalog.regexp_replace(plain, '^([^,;。]+)的原因(?:就?是|在于)(?:因为)?([^,;。]+)$', '因为\2,\1');
  END IF;
  IF plain LIKE '%之所以%' THEN
    plain := pg_catalog.regexp_replace(plain, '^([^,;。]*)之所以([^,;。]+),?就?是因为([^;。]+)$', '因为\3,\1\2');
  END IF;
  IF plain LIKE '只有%才%' THEN -- only if it passes it can be: if it fails it cannot be
    plain := pg_catalog.regexp_replace(plain, '^只有(?:当|在)?([^,;。]+?)(?:通过|成功)(?:之后|以后|了|后|时)*,?才(?:能够?|可以)([^,;。]+)$',
                                       '如果\1失败,不能\2');
  END IF;
  IF plain LIKE '%的事%' OR plain LIKE '%的东西' OR plain LIKE '%的地方' THEN
    plain := pg_catalog.regexp_replace(plain, '^([^,;。]+)是([^,;。]+[^,;。的])的(?:事|事情|东西)$', '\2\1');
    plain := pg_catalog.regexp_replace(plain, '^([^,;。]+)是([^,;。]+?)(居住|住|工作|上班|出生|长大|上学|存放|部署)的地方$', '\2\3在\1');
  END IF;
  IF plain LIKE ANY ('{%不在%周%,%不在%星期%,%不在%礼拜%,%每逢%,%每到%}') THEN
    plain := pg_catalog.regexp_replace(plain, '每[逢到](?=(?:周|星期|礼拜)[一二三四五六日天])', '每', 'g');
    plain := pg_catalog.regexp_replace(plain, '从来?都?不在每?个?((?:周|星期|礼拜)[一二三四五六日天])', '每\1不', 'g');
    plain := pg_catalog.regexp_replace(plain, '([^从来都])不在((?:周|星期|礼拜)[一二三四五六日天])(?=[^$,;。])', '\1\2不', 'g');
  END IF;
  IF plain LIKE '%汇报' OR plain LIKE '%报告' THEN
    plain := pg_catalog.regexp_replace(plain, '^([^,;。]+?)(?:直接)?向([^,;。]+?)(?:直接)?(?:汇报|报告)(?:工作)?$', '\2管理\1');
  END IF;
  IF plain LIKE ANY ('{%的%上级%,%的%上司%,%的%领导%,%的%经理%,%的%下属,%的%部下}') THEN
    plain := pg_catalog.regexp_replace(plain, '^([^,;。的不]+)是([^,;。]+)的(?:直属|直接)?(?:上级|上司|领导|经理)$', '\1管理\2');
    plain := pg_catalog.regexp_replace(plain, '^([^,;。的不]+)是([^,;。]+)的(?:直属|直接)?(?:下属|部下)$', '\2管理\1');
    plain := pg_catalog.regexp_replace(plain, '^([^,;。]+)的(?:直属|直接)?(?:上级|上司|领导|经理)是([^,;。的]+)$', '\2管理\1');
  END IF;
  IF plain LIKE '%比%小%' THEN -- of 大 and 小 one
    plain := pg_catalog.regexp_replace(plain, '^([^,;。]+)比([^,;。]+)小([0-9一二两三四五六七八九十半]+[岁个]?[月]?|一点|一些|很多|得多)?$', '\2比\1大\3');
  ELSIF plain LIKE '%比%慢%' THEN
    plain := pg_catalog.regexp_replace(plain, '^([^,;。]+)比([^,;。]+)慢(一点|一些|很多|得多)?$', '\2比\1快\3');
  ELSIF plain LIKE '%比%矮%' THEN
    plain := pg_catalog.regexp_replace(plain, '^([^,;。]+)比([^,;。]+)矮([0-9一二两三四五六七八九十半]+(?:厘米|公分|cm))?$', '\2比\1高\3');
  END IF;
  IF plain LIKE '%借%' THEN -- who borrows from: who lends to
    plain := pg_catalog.regexp_replace(plain, '^([^,;。]+?)(?:向|从|跟|找)([^,;。]+?)(?:那里|那儿|处)?借了?([0-9一二两三四五六七八九十百千万]+[^,;。]*)$',
                                       '\2借给\1\3');
  END IF;
  IF plain LIKE '%是%的' THEN -- 他是坐地铁来的: 他坐地铁来
    plain := pg_catalog.regexp_replace(plain, '^([^,;。]+[^不,;。])是((?:坐|用|在|从|由|因为|为了|乘|骑|靠|通过|跟|被|按)[^,;。]+)的$', '\1\2');
  END IF;
  IF plain LIKE ANY ('{%每隔%,%每%一次}') THEN -- 每隔六小时备份一次: 每六小时备份
    plain := pg_catalog.regexp_replace(plain, '每隔(?=[0-9一二两三四五六七八九十半]+个?(?:小时|分钟|秒))', '每');
    plain := pg_catalog.regexp_replace(plain, '(每[^,;。]+)一次$', '\1');
  END IF;
  IF plain LIKE ANY ('{%的名字%,%的名称%}') THEN
    plain := pg_catalog.regexp_replace(plain, '^([^,;。]+)的名(?:字|称)(?:就?是|叫做?|为)([^,;。]+)$', '\1叫\2');
  END IF;
  IF plain LIKE ANY ('{%及以上%,%或以上%,%或更多%}') THEN
    plain := pg_catalog.regexp_replace(plain, '([0-9零一二两三四五六七八九十百千万]+[^\s0-9,;。]{0,2})(?:及以上|或以上|或更多)', '至少\1', 'g');
  END IF;
  IF plain LIKE ANY ('{负责%的%是%,主管%的%是%,维护%的%是%,管理%的%是%,编写%的%是%,开发%的%是%,设计%的%是%}') THEN
    plain := pg_catalog.regexp_replace(plain, '^(负责|主管|维护|管理|编写|开发|设计)([^,;。]+?)的人?是([^,;。的]+)$', '\3\1\2');
  END IF;
  RETURN plain;
END
$$;
