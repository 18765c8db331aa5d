-- The screen: whether a text looks like an attempt to plant something in an agent's memory. Rules, in Chinese and English, without
-- a model: cheap tests come first, since a session keeps 32 compiled expressions and every memory that is stored is asked. What the
-- rules find is held as pending, with the reason, for somebody to confirm or reject; they do not decide what is true.

-- _hidden_text: what a text hides from who reads it, in a few words; NULL: nothing. Joiners in emoji and in scripts that need
-- them, directions beside letters of scripts that run from right to left, and variants of Chinese characters are no hiding.
CREATE OR REPLACE FUNCTION hindsight._hidden_text(content text)
  RETURNS text
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
AS $$
DECLARE
  unseen constant text := '[\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164'
    '\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff]';
  rest text := content;
BEGIN
  IF content ~ unseen THEN
    rest := pg_catalog.regexp_replace(rest,
      '^\ufeff|\U0001f3f4[\U000e0030-\U000e007a]+\U000e007f'
      '|(?<=[0-9#*\u00a9\u00ae\u203c-\u3299\U0001f000-\U0001faff])[\ufe0e\ufe0f]'
      '|(?<=[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])[\U000e0100-\U000e01ef]'
      '|(?<=[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff])\u200b'
      '|(?<=[\u0590-\u08ff\u0900-\u0dff\ufe0f\u203c-\u3299\U0001f000-\U0001faff])[\u200c\u200d]', '', 'g');
    IF rest ~ '[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]' THEN
      rest := pg_catalog.translate(rest, U&'\061c\200e\200f\202a\202b\202c\2066\2067\2068\2069', '');
    END IF;
    IF rest ~ unseen THEN
      RETURN 'it holds characters that nobody sees';
    END IF;
  END IF;
  -- A word of Latin letters with Cyrillic or Greek ones that look like them.
  IF content ~ '[A-Za-z][асеорхуіѕјһԁАВСЕНКМОРТХοΟνικΑΒΕΖΗΙΚΜΝΟΡΤΥΧ]|[асеорхуіѕјһԁАВСЕНКМОРТХοΟνικΑΒΕΖΗΙΚΜΝΟΡΤΥΧ][A-Za-z]' THEN
    RETURN 'it mixes letters of different scripts that look alike';
  END IF;
  RETURN NULL;
END
$$;

-- _decoded: an encoded word as the text that it holds; NULL: it holds none. A digest or a key decodes to bytes that are no text.
CREATE OR REPLACE FUNCTION hindsight._decoded(word text)
  RETURNS text
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
AS $$
DECLARE
  bare constant text := pg_catalog.rtrim(pg_catalog.translate(word, '-_', '+/'), '=');
  plain text;
BEGIN
  plain := pg_catalog.convert_from(CASE
    WHEN word ~ '^([0-9a-fA-F]{2})+$' THEN pg_catalog.decode(word, 'hex')
    ELSE pg_catalog.decode(bare || pg_catalog.repeat('=', (4 - pg_catalog.length(bare) % 4) % 4), 'base64') END, 'UTF8');
  RETURN CASE WHEN plain !~ '[\x01-\x08\x0e-\x1f\x7f-\x9f]' AND plain ~ '[a-zA-Z]+ +[a-zA-Z]+ +[a-zA-Z]'
                                                                        '|[\u4e00-\u9fff]{4}' THEN plain END;
EXCEPTION WHEN data_exception THEN
  RETURN NULL;
END
$$;

-- _without_percents: a text with its %41 decoded; as it is where they are no UTF-8.
CREATE OR REPLACE FUNCTION hindsight._without_percents(content text)
  RETURNS text
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
AS $$
BEGIN
  RETURN (
    SELECT pg_catalog.string_agg(coalesce(m.part[2], pg_catalog.convert_from(
             pg_catalog.decode(pg_catalog.replace(m.part[1], '%', ''), 'hex'), 'UTF8')), '' ORDER BY m.place)
    FROM pg_catalog.regexp_matches(content, '((?:%[0-9A-Fa-f]{2})+)|([^%]+|%)', 'g') WITH ORDINALITY AS m(part, place));
EXCEPTION WHEN data_exception THEN
  RETURN content;
END
$$;

-- _payload: whether a text carries orders that are encoded, or a text that is. Who encodes sentences hides them.
CREATE OR REPLACE FUNCTION hindsight._payload(content text)
  RETURNS text
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
AS $$
BEGIN
  IF content ~ '[A-Za-z0-9+/_-]{24}' AND EXISTS (
       SELECT FROM pg_catalog.regexp_matches(content, '[A-Za-z0-9+/_-]{24,}={0,2}', 'g') AS m(word)
       WHERE hindsight._decoded(m.word[1]) IS NOT NULL LIMIT 1) THEN
    RETURN 'it holds a text that is encoded';
  ELSIF pg_catalog.strpos(content, '%') > 0 AND content ~ '(?:%[0-9A-Fa-f]{2}.?){4}|(?:%[0-9A-Fa-f]{2}.*){8}'
        AND hindsight._orders(hindsight._without_percents(content)) IS NOT NULL THEN
    RETURN 'it holds orders that are encoded';
  END IF;
  RETURN NULL;
END
$$;

-- _forged_mark: whether a text holds what only a prompt's frame has: the tokens of a chat template, the end of the block of
-- memories, a citation of a memory, a comment to the assistant that a page does not show.
CREATE OR REPLACE FUNCTION hindsight._forged_mark(plain text)
  RETURNS text
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN CASE
  WHEN plain LIKE ANY ('{%<|%|>%,%[inst]%,%[/inst]%,%<</sys>>%,%</memor%,%<memories%,%<system>%,'
                       '%</system>%}'::text[]) THEN 'it holds a mark of a prompt''s frame'
  WHEN pg_catalog.strpos(plain, '[m:') > 0 AND plain ~ '\[m:[0-9a-f]{8}-' THEN 'it cites a memory as if it were one'
  WHEN pg_catalog.strpos(plain, '<!--') > 0 AND plain ~ '<!--[^>]*(?:assistant|\mai\M|agent|instruction|ignore|助手|智能体|指令'
                                                        '|忽略)' THEN 'it holds a hidden comment'
END;

-- _leak: whether a text holds a link that takes data out: one that is filled with what was said, or with what a shell returns.
CREATE OR REPLACE FUNCTION hindsight._leak(plain text)
  RETURNS text
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN CASE WHEN pg_catalog.strpos(plain, '://') > 0 AND pg_catalog.strpos(plain, '=') > 0
    AND plain ~ ('://[^\s]*[?&][^\s=&]*=[^\s&]*(?:\$[({]|(?:[{<\[]|%7b)[^\s&}>\]]*(?:conversation|chat|history|secret|memor'
                 '|message|prompt|password'
                 '|context|对话|聊天|记忆|密钥|口令|密码|历史|隐私))')
  THEN 'it holds a link that would carry data out' END;

-- _suspicion: why a text is held, in a few words; NULL: it is not. Of what a user says only what is hidden counts: he may give
-- orders to his own agent ("from now on answer in Chinese"), and his words need no proof. The same words from a tool, a
-- document, an inference or nobody known are an order from somebody who has none to give. What stands in quotes is no order
-- where the text is about such orders.
CREATE OR REPLACE FUNCTION hindsight._suspicion(content text, source text DEFAULT NULL)
  RETURNS text
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
AS $$
DECLARE
  plain text := pg_catalog.lower(content);
  -- What is odd in any way, by one expression for every text: only then those are run that tell what it is.
  odd constant text := '[\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164'
    '\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff]|[A-Za-z][\u0370-\u052f]|[\u0370-\u052f][A-Za-z]|[A-Za-z0-9+/_-]{24}';
  reason text;
BEGIN
  IF content ~ odd OR pg_catalog.strpos(content, '%') > 0 THEN
    reason := coalesce(hindsight._hidden_text(content), hindsight._payload(content));
  END IF;
  reason := coalesce(reason, hindsight._forged_mark(plain));
  IF reason IS NOT NULL OR source = 'user' THEN
    RETURN reason;
  END IF;
  IF pg_catalog.octet_length(content) > pg_catalog.length(content) THEN
    plain := pg_catalog.lower(pg_catalog.normalize(pg_catalog.translate(content, U&'\00ad\200b\200c\200d\2060', ''), 'NFKC'));
  END IF;
  reason := coalesce(hindsight._leak(plain), hindsight._orders(plain), hindsight._forged_source(plain));
  IF reason IS NOT NULL
     AND plain LIKE ANY ('{%inject%,%attack%,%jailbreak%,%example%,%test%,%issue%,%bug%,%phish%,%filter%,%detect%,%scan%,%paper%,'
                         '%chapter%,%incident%,"%red team%",%注入%,%攻击%,%越狱%,%例%,%测试%,%缺陷%,%工单%,%过滤%,%检测%,%扫描%,'
                         '%论文%,%章%,%红队%,%事故%,%钓鱼%}'::text[]) THEN
    plain := pg_catalog.regexp_replace(plain, '"[^"]*"|“[^”]*”|「[^」]*」|‘[^’]*’|(?<![a-z])''[^'']*''(?![a-z])', '…', 'g');
    reason := coalesce(hindsight._leak(plain), hindsight._orders(plain), hindsight._forged_source(plain));
  END IF;
  RETURN reason;
END
$$;
