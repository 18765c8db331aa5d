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
  FROM hindsight._sentences(pg_catalog."right"(turn, 2000)) AS s ORDER BY s.place DESC LIMIT 1);

-- _problem_in: the first sentence of the last turns that tells of a problem, with what follows it of the message ("It says …"), or NULL.
CREATE OR REPLACE FUNCTION hindsight._problem_in(turns text[])
  RETURNS text
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN (
  SELECT hindsight._clipped(CASE WHEN t.following ~* '^(?:it|this) (?:says|reads|prints|shows)|^(?:the )?(?:error|message)|^(?:报错|提示|显示|错误|它说|说是)'
                                 THEN hindsight._joined(hindsight._without_opening(t.sentence), t.following)
                                 ELSE hindsight._without_opening(t.sentence) END, 300)
  FROM (SELECT t.place AS turn, s.place, s.sentence, pg_catalog.lead(s.sentence) OVER (PARTITION BY t.place ORDER BY s.place) AS following
        FROM pg_catalog.unnest(turns) WITH ORDINALITY AS t(content, place)
        CROSS JOIN LATERAL hindsight._sentences(pg_catalog."right"(t.content, 2000)) AS s) AS t
  CROSS JOIN LATERAL hindsight._plain(t.sentence) AS plain
  WHERE hindsight._shows(plain, hindsight._is_chinese(plain), 'problem')
  ORDER BY t.turn, t.place LIMIT 1);

-- _solved: a problem with its cure, as one text: what the sentence says of the cure, or else what the turn before said to do.
-- NULL: it is not said what the cure was.
CREATE OR REPLACE FUNCTION hindsight._solved(problem text, sentence text, plain text, last text)
  RETURNS text
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
AS $$
DECLARE
  says_how constant boolean := pg_catalog.octet_length(plain) > 14 AND hindsight._shows(plain, hindsight._is_chinese(plain), 'tells how')
    AND plain !~ ' (?:that|this|it) (?:fixed|solved) it (?!by |with |because )'; -- what that was, stands in the turn before
  cure constant text := CASE
    WHEN says_how THEN pg_catalog.regexp_replace(hindsight._without_opening(sentence),
      '^(?:问题)?(?:已经?|都)?(?:解决|搞定|修好|好|可以)了[,，。!！]\s*(?=.)', '')
    ELSE hindsight._advice_in(last) END;
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
  FROM hindsight._sentences(pg_catalog."right"(turn, 2000)) AS s
  CROSS JOIN LATERAL hindsight._plain(s.sentence) AS plain
  WHERE NOT hindsight._is_question(plain)
    AND plain ~ ('(?:^ ?|, |then |and )(?:please |you (?:can|should|need to|have to) |try |just )?(?:reboot|restart|enable'
      '|disable|turn|switch|set|install|reinstall|remove|delete|add'
      '|create|run|use|change|upgrade|downgrade|update|clear|prune|open|close|check|move|put|replace|increase|reduce|raise'
      '|lower|put|export|unset|start|stop|kill|free|allow|rename)\M'
      '|重启|打开|关闭|改成|改为|设置|安装|卸载|删除|清理|添加|新建|创建|建|运行|执行|升级|降级|换成|换|用|启用|禁用|重装|检查|调|加'));

-- _option: what the n-th option of a list in a turn is, or NULL.
CREATE OR REPLACE FUNCTION hindsight._option(turn text, choice text)
  RETURNS text
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
AS $$
DECLARE
  options constant text[] := (pg_catalog.regexp_split_to_array(
    pg_catalog."right"(turn, 2000), '(?:^|[\s:：。.;；,，(（])(?:[0-9A-D][.)）、]|[①-⑨]|[-*•](?= ))\s*'))[2:];
  place constant integer := CASE
    WHEN choice ~ '\m(?:last|latter)\M|最后一?个|后者' THEN pg_catalog.cardinality(options)
    WHEN choice ~ '\mfirst (?:one|option)|\mformer\M|\moption (?:a|1)\M|第[一1]个|前者|方案[一1a]' THEN 1
    WHEN choice ~ '\msecond (?:one|option)|\moption (?:b|2)\M|第[二2]个|方案[二2b]' THEN 2
    WHEN choice ~ '\mthird (?:one|option)|\moption (?:c|3)\M|第[三3]个|方案[三3c]' THEN 3
    WHEN choice ~ '\mfourth (?:one|option)|\moption (?:d|4)\M|第[四4]个|方案[四4d]' THEN 4 END;
BEGIN
  RETURN CASE WHEN pg_catalog.cardinality(options) > 1 THEN pg_catalog.btrim(options[place], E' \t\n.。;；,，') END;
END
$$;

-- _reply: what the first sentence of a turn says as a reply to the turn before: the choice with what was chosen, the question
-- with its answer. A row of NULLs: it is no reply, or says it all by itself.
CREATE OR REPLACE FUNCTION hindsight._reply(sentence text, plain text, is_chinese boolean, last text)
  RETURNS TABLE (content text, type text)
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE ROWS 1
AS $$
DECLARE
  chosen constant text := CASE WHEN plain LIKE ANY ('{%first%,%second%,%third%,%fourth%,%last%,%former%,%latter%,%option%,%第%,'
    '%前者%,%后者%,%方案%,%最后%}') THEN hindsight._option(last, plain) END;
  asked constant text := hindsight._asked_in(last);
  about text;
  asks_in_chinese boolean;
BEGIN
  IF chosen IS NOT NULL THEN
    content := pg_catalog.rtrim(hindsight._without_opening(sentence), '.。!！ ') || CASE WHEN is_chinese THEN '：' ELSE ': ' END || hindsight._clipped(chosen, 200);
    type := 'decision';
  ELSIF asked IS NOT NULL AND pg_catalog.length(sentence) <= 150 AND NOT hindsight._shows(plain, is_chinese, 'request') THEN
    about := hindsight._plain(asked);
    asks_in_chinese := hindsight._is_chinese(about);
    IF hindsight._shows(about, asks_in_chinese, 'proposal') THEN
      type := CASE WHEN hindsight._shows(plain, is_chinese, 'consent') THEN 'decision' END;
    ELSIF hindsight._shows(about, asks_in_chinese, 'about you') AND NOT hindsight._shows(about, asks_in_chinese, 'about this')
          AND hindsight._shows(plain, is_chinese, 'fragment') AND NOT hindsight._shows(plain, is_chinese, 'passing')
          AND hindsight.importance(sentence) >= 0.3 THEN -- more than: Great!
      type := CASE WHEN hindsight._shows(plain, is_chinese, 'preference') THEN 'preference' ELSE 'fact' END;
    END IF;
    content := CASE WHEN type IS NOT NULL THEN hindsight._joined(asked, sentence) END;
  END IF;
  RETURN NEXT;
END
$$;
