-- Whether a message asks for memory, by rules: cheap enough to ask for each message, before anything is embedded.

-- _cues: the rules, in their order: the first that a message (as _heard gives it) matches decides. Each is a list of phrases:
--   word   any of them, as whole words (Chinese has spaces around it, so that the ends of words hold beside it)
--   part   any of them, anywhere
--   whole  the message is made of them, and of nothing else
-- A phrase is a regular expression in lower case and simplified characters; @ stands for a person: I, you, we. Prefer * to
-- {0,12}: PostgreSQL copies what is counted, and a session keeps 32 compiled patterns, so that these are compiled again and again.
CREATE OR REPLACE FUNCTION hindsight._cues()
  RETURNS TABLE (recall boolean, reason text, form text, phrases text[])
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
VALUES
  (false, 'small talk', 'whole', ARRAY[
    '(hi|hey|hello|yo|welcome|bye|goodbye|see you|good (morning|afternoon|evening|night))( there| again| all| everyone)*',
    '(thanks?( you)?|thx|ty)( again| so much| very much| a lot| for .{1,30})*',
    'ok(ay)?|k|yes|yep|yeah|no|nope|sure|please|sorry|lol|(ha)+',
    'got it|i see|never mind|no (problem|worries)|you.re welcome|(sounds|looks|all) good|makes sense|that (helps|helped|works)',
    'great|cool|nice|perfect|awesome|fine|good|(well done|good job)|how are you( doing)?( today)?|what.s up|nice to meet you']),
  (false, 'small talk', 'whole', ARRAY[
    '(你好|您好|大家好|嗨|哈喽|早|早安|(早上|上午|中午|下午|晚上)好|晚安|再见|拜拜|在吗|在不在|你呢|最近(怎么样|好吗)|吃饭?了吗)(你|您|呀|啊)*',
    '(谢谢?|多谢|感谢|辛苦|抱歉|对不起|不好意思|没关系|不客气|没事|没问题|不用)(你|您|大家|啦|了|啊|的|帮助|帮忙)*',
    '(好|可以|行|对|是|嗯|哦|噢|哈|呵|嘿|收到|明白|知道|懂|了解|没错|不是|厉害|不错|[太真](好|棒))(的|啊|呀|啦|了|吧|嘛|嘞|哦|哈)*']),
  (false, 'arithmetic', 'whole', ARRAY[
    '(what.s |what is |how much is |calculate |compute |(计算|算一下) ?)?(sqrt|sin|cos|tan|log|ln)?[-+(]*[0-9][-+*/^×÷=%()x0-9., ]*',
    '(加上?|减去?|乘以?|除以|的|和|of|plus|minus|times|divided by) ?[-+(]*[0-9][-+*/^×÷=%()x0-9., ]*', '(等于|是)(几|多少)']),

  (true, 'refers to the past', 'word', ARRAY[
    'last (time|night|week|month|session|conversation|chat|meeting|call)',
    '(previous|earlier) (conversation|chat|session|discussion|message|answer)',
    'previously|again|the other day|back then|from yesterday|so far', '(as|like|than) before|before(?=[?.!,]|$)',
    '(as|like|same as) (always|usual)|(my|our) usual|the usual(?=[.?!,]|$)',
    '@ [^,.?!]*\m(earlier|before|already)|earlier,? @', '(as|like) @ (\w+ )?(said|discussed|agreed|mentioned|planned|told)',
    '(do|did|can|don.t) @ (still )?(remember|recall)|remember (when|what|that|how|who|where|the|my|our|me|us)',
    'i (forgot|forget|(don.t|can.t) remember)',
    'remind me (what|which|who|where|when|how|why|of|about)',
    'you (have )?(once )?(said|told|mentioned|suggested|recommended|promised|explained|shared|wrote|gave|given|made|showed|sent)',
    'have you (given|told|shared|recommended)',
    '(?<!if )(i|we|you) once',
    '(?<!if )(i|we) (\w+ )?(said|told|chose|used to|gave|showed|sent|went|bought|met|wrote|read|saw|ate|built)',
    '(?<!if )(i|we) (\w+ )?(?!need|feed|speed|proceed|exceed|succeed|embed|bleed)\w+ed|when i was',
    '(recently,? (i|we)|(i|we) [^,.?!]*recently)',
    'did you (\w+ )?(say|tell|mention|suggest|recommend|promise|share|give|show|send|write|make|find|explain)',
    'on (january|february|march|april|may|june|july|august|september|october|november|december) [0-9]+(st|nd|rd|th)?,? [^.?!]*@',
    '(did|have|had|were|was) (i|we)|where we (left off|were)', '(@ [^,.?!]*|from )yesterday|yesterday,? @',
    'that (project|problem|issue|bug|error|book|movie|song|restaurant|place|recipe|script|article|idea|trip) (@|from|about|again)']),
  (true, 'refers to the past', 'part', ARRAY[
    '上次|上回|上一次|刚才|刚刚|刚说|方才|前几天|前两天|前阵子|那次|那天|那会儿', '老样子|老规矩|照旧|一如既往|[跟像和同](往常|平时|以往)|还是(那|这|老)',
    '记不记得|[还你您]记得|我又?(忘|不记得)|印象吗|提醒我(一下)?,? ?(是|什么|当时|上|之前|我)', '接着(说|写|做|上|讲|聊)',
    '那个(项目|问题|报错|错误|方案|文件|脚本|文章|想法|计划|地方|餐厅|电影|书|人|客户|需求|功能|会议)',
    '(^|[ ,.!?。、跟和像按照比同]|@)(之前|以前|先前|从前)(?!端|人)', '(之前|以前|先前)(的?(说|提|聊|讲|讨论|用|写|做|定|遇到|约|推荐|给|发)|@)',
    '又(报错|出错|失败|崩|来了|出现|坏了|忘|挂了|不行|断|卡)', '再(说|讲|来|发|写|试)(一遍|一次|一下)',
    '(给[了过]我|[和跟向]你(说|提|讲|聊|分享|推荐|请教|咨询|讨论))|最近@|@最近',
    '@(说好|约好|(讨论|商量|约定|答应|推荐|决定|选|定|提到|告诉)(的|了|好))']),
  (true, 'refers to the past', 'part', ARRAY[ -- apart, since what stands between makes a pattern of many alternatives large
    '(昨天|昨晚|上周|上个月|去年|曾经|当时)[^,.!?。]*(@|说好|提过?)|@[^,.!?。]*(昨天|昨晚|上周|上个月|去年|曾经|当时)', '上周[^,.!?。]*过',
    '@[^,.!?。]*(说|提到?|讲|聊到?|问|用|做|去|买|看|写|试|见|讨论|告诉|推荐|答应|分享|请教|介绍|给|教|学|玩|吃|住|养|读|选|定|约)过(?!程|去|滤|来|度|敏|分|期)',
    '@[^,.!?。]*了(?!解)[^,.!?。]*(什么|哪|多久|多少|几|谁)|[0-9]+ 月 [0-9]+ [号日][^.!?。]*@|@[^,.!?。]*[0-9]+ 月 [0-9]+ [号日]']),

  (true, 'is about the user or their world', 'word', ARRAY[
    '(?<!oh )my(?! (god|goodness|gosh|bad|pleasure|dear))|mine|ours?|about (me|us)',
    '(do|am|should|will|would) i|should we|(who|what|where) (am|are) (i|we)',
    'i (usually|always|normally|prefer)|i [^.?!]*(right|correct)(?=\?)',
    '(do|should|are|shall) we (use|have|run|keep|store|deploy|host|pay|prefer|own|still|meet)',
    '(recommend|suggest) [^,.?!]*(me|us)']),
  (true, 'is about the user or their world', 'part', ARRAY[
    '我的|我们|咱|我[家司]|本(公司|组|项目)', '我(爸|妈|爷|奶|哥|弟|姐|妹|老婆|老公|妻子|丈夫|儿子|女儿|孩子|[男女]朋?友|朋友|同事|老板|上司|[猫狗组队])',
    '我(叫|是谁|是做|是什么|住|在哪|喜欢|不喜欢|讨厌|最|爱|常|平时|一般|习惯|对[^,.!?。]*过敏|几岁|多大|该|应该|用的|有没有|有什么|有多少|有几)',
    '[给帮]我推荐|(了解|认识|知道)我']),

  (true, 'follows up on what was said', 'whole', ARRAY[
    '(and|but|so|or) ([^ ,?]+ ?){1,5}\?', '(and )?then( what)?', 'why( not| so| is that)?|how( so| come)?',
    '(what|how) about .{1,40}', 'what (else|then|now)|which ones?|like what|such as',
    'anything else|and you|tell me more|go on|continue|keep going|carry on|elaborate|explain more|(more|further) details?',
    '(on|in|for|with|without|at|from|under|using) (?!wh)([^ ,?]+ ?){1,4}\?', '(the )?same (for|with|on) .{1,30}']),
  (true, 'follows up on what was said', 'whole', ARRAY[
    '[^,.!?。怎什谁哪几多干为吗]+呢', '那.*怎么办|那么?(还|可以|行|能|要|会|是|也|就|这).*吗', '(那|可是|但是|所以)?(为什么|为啥|为何|怎么说|怎么会|怎么回事|什么意思)呢?',
    '(然后|后来|接下来|还有)(呢|别的|其他的?)?[吗么]?', '(继续|接着)(吧|说|写|做|来)?', '再?[说讲写]?得?(详细|具体)(点|一点|些|一些)?',
    '[另下前后](一|两)?个', '换成.+', '比如说?|举个例子'])
$$;

-- _cue_pattern: the regular expression of a cue's phrases. Nothing is captured, which halves what compiling costs.
CREATE OR REPLACE FUNCTION hindsight._cue_pattern(form text, phrases text[])
  RETURNS text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN pg_catalog.replace(pg_catalog.replace(
  CASE form WHEN 'word' THEN '\m(' WHEN 'whole' THEN '^((' ELSE '' END
  || pg_catalog.replace(pg_catalog.array_to_string(phrases, '|'), '@',
                        CASE form WHEN 'word' THEN '(i|we|you|me|us)' ELSE '(我|你|您|咱)们?' END)
  || CASE form WHEN 'word' THEN ')\M' WHEN 'whole' THEN ')[\s,.?!。、~]*)+$' ELSE '' END,
  '(', '(?:'), '(?:?', '(?');

-- _heard: what a person says in a message, in the form that the cues are written for: its beginning and its end, without code,
-- quotations and addresses, in lower case and simplified characters, with spaces around Chinese.
CREATE OR REPLACE FUNCTION hindsight._heard(message text)
  RETURNS text
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
AS $$
DECLARE
  heard text := pg_catalog.lower(pg_catalog.normalize(
    CASE WHEN pg_catalog.length(message) <= 3000 THEN message
         ELSE pg_catalog."left"(message, 2000) || E' …\n' || pg_catalog."right"(message, 1000) END, 'NFKC'));
BEGIN
  IF heard LIKE ANY (ARRAY['"%"', '“%”']) THEN -- all of it is quoted: then it is what is said
    heard := pg_catalog.btrim(heard, '"“”');
  END IF;
  heard := pg_catalog.regexp_replace(heard,
    '```([^`]|`[^`])*(```|$)|`[^`\n]*`' -- code
    '|(^|\n)[^\n]*[;{}][ \t\r]*(?=\n|$)' -- a line of code
    '|"[^"\n]*"|“[^”\n]*”|「[^」\n]*」|《[^》\n]*》' -- a quotation, a title
    '|[!-~]*[a-z][!-~]*[_={}\\<>|/][!-~]*|[!-~]*[_={}\\<>|/][!-~]*[a-z][!-~]*|[a-z]+[.(][a-z]\S*' -- a name in code, an address
    '|[\u2600-\u27bf\ufe00-\ufe0f\U0001f000-\U0001faff]+', ' ', 'g');
  heard := pg_catalog.translate(heard, '’還剛記說們過個樣這謝嗎麼麽為時幫問開續講談給歡當週會買見養學讀選約訂兒愛對習應該發後來間錯試寫嘗從決議論餐廳電腦',
                                       '''还刚记说们过个样这谢吗么么为时帮问开续讲谈给欢当周会买见养学读选约订儿爱对习应该发后来间错试写尝从决议论餐厅电脑');
  heard := pg_catalog.btrim(pg_catalog.regexp_replace(
    pg_catalog.regexp_replace(heard, '[\u3400-\u9fff]+', ' \& ', 'g'), '\s+', ' ', 'g'));
  RETURN pg_catalog.replace(pg_catalog.replace(pg_catalog.replace(pg_catalog.replace(pg_catalog.replace(
    heard, ' ,', ','), ' .', '.'), ' ?', '?'), ' !', '!'), ' 。', '。');
END
$$;

-- _known_name: a tag, an entity or the slot of a live memory of the bank that a message names, or NULL. All runs of up to
-- four words or eight characters are looked up in the index of names: their number is the message's, not the bank's.
CREATE OR REPLACE FUNCTION hindsight._known_name(opened hindsight.bank, message text)
  RETURNS text
  LANGUAGE plpgsql STABLE
AS $$
DECLARE
  units constant text[] := (hindsight._name_units_v1(pg_catalog."left"(message, 1000)))[:200];
  names text[];
BEGIN
  SELECT pg_catalog.array_agg(DISTINCT opened.bank_id || ':' || n.name) INTO names
    FROM pg_catalog.generate_series(1, pg_catalog.cardinality(units)) AS start
    CROSS JOIN pg_catalog.generate_series(1, CASE WHEN pg_catalog.ascii(units[start]) < 3584 THEN 4 ELSE 8 END) AS size
    CROSS JOIN LATERAL (SELECT pg_catalog.array_to_string(units[start:start + size - 1], '') AS name) AS n
    WHERE start + size - 1 <= pg_catalog.cardinality(units)
      AND pg_catalog.length(n.name) BETWEEN 2 AND 60 AND pg_catalog.ltrim(n.name, '0123456789') <> ''
      AND NOT (size = 1 AND pg_catalog.octet_length(n.name) BETWEEN 2 AND 10
               AND pg_catalog.to_tsvector(opened.language::regconfig, n.name) = ''); -- a stop word
  RETURN (
    SELECT l.label
    FROM hindsight.live_memory AS m
    CROSS JOIN LATERAL pg_catalog.unnest(m.entities || m.tags || m.slot) AS l(label)
    WHERE hindsight._names_v1(m.bank_id, m.tags, m.entities, m.slot) && names -- the keys hold the bank
      AND m.bank_id IS NOT DISTINCT FROM opened.bank_id
      AND (m.slot IS NOT NULL OR m.tags <> '{}' OR m.entities <> '{}') -- to the letter as in the index
      AND (m.expires_at IS NULL OR m.expires_at > pg_catalog.statement_timestamp())
      AND hindsight._names_v1(m.bank_id, '{}', '{}', l.label) && names
    LIMIT 1);
END
$$;

-- should_recall: whether a message refers to the past, to the user or to something known, so that recalling may help; with
-- the reason. Names are those of live memories. Stable: runs on a hot standby. Raises HM001, HM003.
CREATE OR REPLACE FUNCTION hindsight.should_recall(bank text, message text)
  RETURNS TABLE (recall boolean, reason text)
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
  SET enable_seqscan = off
  SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
  opened constant hindsight.bank := _open_bank(bank, 'reader');
  heard constant text := _heard(coalesce(message, ''));
  cue record;
  pattern text;
  name text;
BEGIN
  IF btrim(coalesce(message, ''), E' \t\n\r\v\f\u00a0\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\u3000\ufeff') = '' THEN
    RETURN QUERY SELECT false, 'the message is empty';
    RETURN;
  END IF;
  FOR cue IN SELECT * FROM _cues() LOOP
    pattern := _cue_pattern(cue.form, cue.phrases);
    IF (cue.form <> 'whole' OR length(heard) BETWEEN 1 AND 60) AND heard ~ pattern THEN
      RETURN QUERY SELECT cue.recall, format('%s: %s', cue.reason, btrim(substring(heard FROM pattern)));
      RETURN;
    END IF;
  END LOOP;
  name := _known_name(opened, message);
  RETURN QUERY SELECT name IS NOT NULL,
    coalesce('the bank knows ' || name, 'nothing in it refers to the past, to the user or to what the bank knows');
END
$$;
COMMENT ON FUNCTION hindsight.should_recall(text, text) IS
  'Whether a message refers to the past, to the user or to something that the bank knows, by rules, with the reason.';
