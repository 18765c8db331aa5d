-- What a turn says only together with what was said before: an answer, a choice, a consent, a cure.

-- _clipped: at most so many characters of a text.
CREATE OR REPLACE FUNCTION hindsight._clipped(content text, most integer)
  RETURNS text
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN CASE WHEN pg_catalog.length(content) <= most THEN content ELSE pg_catalog."left"(content, most - 1) || '…' END;

-- _joined: two sentences after one another.
CREATE OR REPLACE FUNCTION hindsight._joined(one text, other text)
  RETURNS text
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN one || CASE WHEN one ~ '[.。!！?？;；…:：]["”」]?$' THEN '' WHEN hindsight._is_chinese(one) THEN '。' ELSE '.' END
  || CASE WHEN hindsight._is_chinese(one) THEN '' ELSE ' ' END || other;

-- _asked_in: the question that a turn ends with, or NULL.
CREATE OR REPLACE FUNCTION hindsight._asked_in(turn text)
  RETURNS text
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN (
  SELECT CASE WHEN hindsight._is_question(hindsight._plain(s.sentence)) AND pg_catalog.length(s.sentence) <= 200 THEN s.sentence END
  FROM hindsight._sentences(turn) AS s ORDER BY s.place DESC LIMIT 1);

-- _problem_in: the last sentence of the last turns that tells of a problem, or NULL.
CREATE OR REPLACE FUNCTION hindsight._problem_in(turns text[])
  RETURNS text
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN (
  SELECT hindsight._clipped(hindsight._without_opening(s.sentence), 200)
  FROM pg_catalog.unnest(turns) WITH ORDINALITY AS t(content, place)
  CROSS JOIN LATERAL hindsight._sentences(t.content) AS s
  CROSS JOIN LATERAL hindsight._plain(s.sentence) AS plain
  WHERE hindsight._shows(plain, hindsight._is_chinese(plain), 'problem')
  ORDER BY t.place, s.place LIMIT 1);

-- _solved: a problem with its cure, as one text: what the sentence says of the cure, or else what the turn before said to do.
-- NULL: it is not said what the cure was.
CREATE OR REPLACE FUNCTION hindsight._solved(problem text, sentence text, plain text, last text)
  RETURNS text
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
AS $$
DECLARE
  says_how constant boolean := pg_catalog.length(plain) > 12 AND hindsight._shows(plain, hindsight._is_chinese(plain), 'tells how');
  cure constant text := CASE WHEN says_how THEN hindsight._without_opening(sentence) ELSE hindsight._advice_in(last) END;
BEGIN
  RETURN CASE
    WHEN cure IS NULL THEN NULL
    WHEN problem IS NULL THEN cure
    ELSE hindsight._joined(problem, CASE WHEN hindsight._is_chinese(problem) THEN '解决方法：' ELSE 'Solution: ' END || hindsight._clipped(cure, 300)) END;
END
$$;

-- _advice_in: the sentences of a turn that say what to do, or NULL.
CREATE OR REPLACE FUNCTION hindsight._advice_in(turn text)
  RETURNS text
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN (
  SELECT pg_catalog.string_agg(s.sentence, CASE WHEN hindsight._is_chinese(turn) THEN '' ELSE ' ' END ORDER BY s.place)
  FROM hindsight._sentences(turn) AS s
  CROSS JOIN LATERAL hindsight._plain(s.sentence) AS plain
  WHERE NOT hindsight._is_question(plain)
    AND plain ~ ('(?:^|, |then |and )(?:please |you (?:can|should|need to|have to) |try |just )?(?:reboot|restart|enable|disable|turn|switch|set|install|reinstall|remove|delete|add'
      '|create|run|use|change|upgrade|downgrade|update|clear|prune|open|close|check|move|put|replace|increase|reduce|raise|lower|put|export|unset|start|stop|kill|free|allow|rename)\M'
      '|重启|打开|关闭|改成|改为|设置|安装|卸载|删除|清理|添加|新建|创建|建|运行|执行|升级|降级|换成|换|用|启用|禁用|重装|检查|调|加'));

-- _option: what the n-th option of a list in a turn is, or NULL.
CREATE OR REPLACE FUNCTION hindsight._option(turn text, choice text)
  RETURNS text
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
AS $$
DECLARE
  options constant text[] := (pg_catalog.regexp_split_to_array(
    turn, '(?:^|[\s:：。.;；,，(（])(?:[0-9A-D][.)）、]|[①-⑨]|[-*•](?= ))\s*'))[2:];
  place constant integer := CASE
    WHEN choice ~ 'last|latter|最后|后者' THEN pg_catalog.cardinality(options)
    WHEN choice ~ 'first|former|第一|前者|方案一|[ 第]1|\ma\M' THEN 1
    WHEN choice ~ 'second|第二|第两|方案二|[ 第]2|\mb\M' THEN 2
    WHEN choice ~ 'third|第三|方案三|[ 第]3|\mc\M' THEN 3
    WHEN choice ~ 'fourth|第四|方案四|[ 第]4|\md\M' THEN 4 END;
BEGIN
  RETURN CASE WHEN pg_catalog.cardinality(options) > 1 THEN pg_catalog.btrim(options[place], E' \t\n.。;；,，') END;
END
$$;

-- _reply: what the first sentence of a turn says as a reply: the choice with what was chosen, the question with its answer. No row, or of NULLs: it
-- is none, or stands alone.
CREATE OR REPLACE FUNCTION hindsight._reply(sentence text, plain text, last text, asked text)
  RETURNS TABLE (content text, type text)
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE ROWS 1
AS $$
DECLARE
  about text;
  chosen text := pg_catalog.substring(plain, '(?:the |option |go with |take )?(?:first|second|third|fourth|last|former|latter)(?: one| option)?|option [a-d1-4]\M|第[一二三四1-4]个|最后一?个|前者|后者|方案[一二三四]');
BEGIN
  IF chosen IS NOT NULL AND hindsight._option(last, chosen) IS NOT NULL THEN
    content := pg_catalog.rtrim(sentence, '.。!！ ') || CASE WHEN hindsight._is_chinese(sentence) THEN '：' ELSE ': ' END || hindsight._clipped(hindsight._option(last, chosen), 200);
    type := 'decision';
  ELSIF asked IS NOT NULL AND pg_catalog.length(sentence) <= 150 AND NOT hindsight._shows(plain, hindsight._is_chinese(plain), 'request') THEN
    about := hindsight._plain(asked);
    IF hindsight._shows(about, hindsight._is_chinese(about), 'proposal') THEN
      IF hindsight._shows(plain, hindsight._is_chinese(plain), 'consent') THEN
        type := 'decision';
      END IF;
    ELSIF hindsight._shows(about, hindsight._is_chinese(about), 'about you') AND NOT hindsight._shows(about, hindsight._is_chinese(about), 'about this')
          AND hindsight._shows(plain, hindsight._is_chinese(plain), 'fragment') AND NOT hindsight._shows(plain, hindsight._is_chinese(plain), 'passing') THEN
      type := CASE WHEN hindsight._shows(plain, hindsight._is_chinese(plain), 'preference') THEN 'preference' ELSE 'fact' END;
    END IF;
    content := CASE WHEN type IS NOT NULL THEN hindsight._joined(asked, sentence) END;
  END IF;
  RETURN NEXT;
END
$$;
