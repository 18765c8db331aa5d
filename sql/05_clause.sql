-- Sentences: a turn cut where one ends, and a sentence in the form that rules are written for.

-- _sentences: the sentences of a turn, in their order, as they were said. Left out: blocks of code, what is quoted from a
-- message (> …), and the middle of a turn of more than 10,000 characters, whose beginning and end say what its writer wants.
-- A full stop ends a sentence only before white space, so that v1.2.3, 10.8.0.12 and acme.example stay whole, and so does
-- what stands in quotation marks.
CREATE OR REPLACE FUNCTION hindsight._sentences(content text)
  RETURNS TABLE (place bigint, sentence text)
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE ROWS 10
AS $$
DECLARE
  plain text := CASE WHEN pg_catalog.length(content) <= 10000 THEN content
                     ELSE pg_catalog."left"(content, 7000) || E'\n' || pg_catalog."right"(content, 3000) END;
  stop constant text := E'\x1f'; -- of an abbreviation
BEGIN
  IF plain LIKE '%```%' THEN
    plain := pg_catalog.regexp_replace(plain, '```([^`]|`[^`])*(```|$)', E'\n', 'g');
  END IF;
  plain := pg_catalog.regexp_replace(E'\n' || plain, '\n[ \t]*(?:>[^\n]*|[-*•+#]+[ \t]+'
    '|[0-9]{1,2}[.)、][ \t]*(?![0-9]))', E'\n', 'g');
  IF plain ~ '[.] ' THEN
    plain := pg_catalog.regexp_replace(plain, '\m(mr|mrs|ms|dr|prof|st|vs|approx|inc|ltd|e\.g|i\.e|a\.m|p\.m'
      '|no)\.(?= )', '\1' || stop, 'gi');
  END IF;
  RETURN QUERY
    SELECT pg_catalog.row_number() OVER (ORDER BY m.place), trimmed
    FROM pg_catalog.regexp_matches(plain,
           '((?:"[^"\n]*"|"(?![^"\n]*")|“[^”\n]*”|「[^」\n]*」|《[^》\n]*》|`[^`\n]*`|`(?![^`\n]*`)|[.?!;](?![\s.?!"”)]|$)'
           '|[^.。！？!?；;…"`\n])+(?:[.。！？!?；;…]+["”」)）]?)?)', 'g')
           WITH ORDINALITY AS m(match, place)
    CROSS JOIN LATERAL pg_catalog.btrim(pg_catalog.translate(m.match[1], stop, '.'), E' \t\r\u00a0\u3000') AS trimmed
    WHERE pg_catalog.length(trimmed) > 1
    LIMIT 300;
END
$$;

-- _is_chinese: whether a text is written in Chinese: names and code in it are not.
CREATE OR REPLACE FUNCTION hindsight._is_chinese(content text)
  RETURNS boolean
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (pg_catalog.octet_length(pg_catalog.translate(content, '“”‘’…–—', '')) - pg_catalog.length(pg_catalog.translate(content, '“”‘’…–—', ''))) * 8
  > pg_catalog.length(content);

-- _plain: a sentence in lower case, simplified characters and half width, with what it quotes as “” only: what is quoted is not said.
-- In English with contractions written out, a space around each word, and without the adverbs that may stand anywhere.
CREATE OR REPLACE FUNCTION hindsight._plain(sentence text)
  RETURNS text
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
AS $$
DECLARE
  plain text := pg_catalog.lower(pg_catalog.translate(hindsight._simplified(pg_catalog.normalize(sentence, 'NFKC')), '’‘', ''''''));
BEGIN
  IF plain LIKE ANY (ARRAY['%"%', '%“%', '%「%', '%《%', '%`%']) THEN
    plain := pg_catalog.regexp_replace(plain, '"[^"]*"|“[^”]*”|「[^」]*」|《[^》]*》|`[^`]*`', '“”', 'g');
  END IF;
  IF hindsight._is_chinese(plain) THEN
    RETURN plain;
  END IF;
  IF plain LIKE '%''%' THEN
    plain := pg_catalog.replace(pg_catalog.replace(pg_catalog.replace(pg_catalog.replace(pg_catalog.replace(pg_catalog.replace(pg_catalog.replace(pg_catalog.replace(
      plain, 'can''t', 'cannot'), 'won''t', 'will not'), 'n''t', ' not'), 'i''m', 'i am'), '''re ', ' are '), '''ve ', ' have '), '''ll ', ' will '), '''d ', ' would ');
  END IF;
  plain := pg_catalog.replace(pg_catalog.replace(pg_catalog.replace(pg_catalog.replace(pg_catalog.replace(pg_catalog.replace(
    ' ' || pg_catalog.replace(plain, '。', '. ') || ' ', ', ', ' , '), '. ', ' . '), '? ', ' ? '), '! ', ' ! '), ': ', ' : '), '; ', ' ; ');
  IF plain LIKE ANY ('{"% also %","%ly %","% just %","% still %","% very %","% quite %","% often %","% all %","% both %",'
    '"% already %","% sometimes %"}') THEN
    plain := pg_catalog.regexp_replace(plain, ' (?:also|really|just|still|currently|recently|lately|very|quite|mostly'
      '|especially|personally|absolutely|already|finally|simply'
      '|generally|typically|often|mainly|all|both|definitely|particularly|basically|sometimes)(?= )', '', 'g');
  END IF;
  RETURN plain;
END
$$;

-- _is_question: whether a sentence (as _plain gives it) only asks. Where a question follows after a comma, the rest is said.
CREATE OR REPLACE FUNCTION hindsight._is_question(plain text)
  RETURNS boolean
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN plain LIKE ANY ('{%?%,%吗%,%呢%,%怎么%,%什么%,%是不是%,%有没有%,%能不能%,%要不要%,%可不可以%,%几点%," wh%"," how%"," is%"," are%"," do%",'
  '" did%"," has%"," was%"," were%"," can%"," could%"," would%"," will%"," should%"," shall%"," and%"," so%"," but%"," ok%",'
  '" hey%"," hi%"," hello%"," well%"," then%"," now%"}')
  AND plain ~ ('^[^,:]*\?["”) ]*$|(?:right|correct|or not|okay|ok|no|is not it|对吧|是吧|对吗|是吗|行吗|可以吗|好吗|是不是|真的吗) ?\?["”) ]*$'
    '|[吗呢][。!. ]*$|^[^,]*(?:怎么(?:办|样|弄|走|去|打|写|用|做)|什么(?:时候|区别|意思)?[。. ]*$|为什么)'
  '|是不是|有没有|能不能|要不要|可不可以|几点[。. ]*$'
  '|^ (?:(?:and|so|but|ok|okay|hey|hi|hello|well|then|now|also) (?:, )?)*(?:what|who|whose|where|why|how|which|is|are|does'
  '|do you|did|has|was|were|can|could|would|will|should|shall) '
  '(?:[^,:]*$|.*\?["”) ]*$)');

-- _is_person: whether a role is somebody who tells of themselves. Roles are free text: a person's name is one. What an assistant
-- proposes counts when it is accepted; what a tool returns was true when it was asked, and is written by strangers.
CREATE OR REPLACE FUNCTION hindsight._is_person(role text)
  RETURNS boolean
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN pg_catalog.lower(role) <> ALL ('{assistant,ai,model,bot,agent,system,developer,tool,function,tool_result}'::text[]);

-- _own_words: a turn without the text that it brings along to be worked on: "Translate this: …". NULL: somebody is played.
CREATE OR REPLACE FUNCTION hindsight._own_words(content text)
  RETURNS text
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN pg_catalog.regexp_replace(content,
  '^([^\n:：]*(?:translat|proofread|rewrit|rephras|summari[sz]|paraphras|shorten|grammar|polish|翻译|译成|润色|改写|总结|概括|校对|缩写'
  '|语法)[^\n:：]*[:：\n]).*$', '\1', 'i');

-- _without_opening: a sentence without the words that only introduce it.
CREATE OR REPLACE FUNCTION hindsight._without_opening(sentence text)
  RETURNS text
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN pg_catalog.regexp_replace(sentence,
  '^(?:(?:(?:hi|hello|hey|hi there|ok|okay|great|thanks|thank you|perfect|and|also|oh|btw|by the way|fyi|for the record|note'
  '|please|remember|note that|please note|keep in mind)'
  '(?:[,:.!]+ *| that | (?=remember|note))'
  '|please remember (?:that )?|remember that |don''t forget that |keep in mind that |note that '
  '|(?:你好|您好|好的?|嗯|哦|对了|另外|还有|顺便说(?:一?下|一句)?|请?(?:你)?(?:帮我)?记(?:住|下|一下)|备忘|提醒一下)[，,:： ]+|请?(?:帮我)?记住|请记下)[ ]*)+', '', 'i');

-- _is_bound: whether a sentence names what it is about: a number, a name, an identifier.
CREATE OR REPLACE FUNCTION hindsight._is_bound(sentence text)
  RETURNS boolean
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN sentence ~ ('[0-9]|[A-Za-z0-9][._/@-]+[A-Za-z0-9]|[^.!? ] ?[“"「`]|[a-z,;] [A-Z][a-z]|\m[A-Z]{2,}'
  '|[\u4e00-\u9fff] ?[A-Za-z]{2,}|[A-Za-z]{3,} ?[\u4e00-\u9fff]'
  '|[二两三四五六七八九十百][个号天点年月岁台分周次块元倍日]|一[号天点年月岁周]|\m(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|first|second'
  '|third|twice|once'
  '|mondays?|tuesdays?|wednesdays?|thursdays?|fridays?|saturdays?|sundays?|every|each|per)\M');
