-- What a sentence is worth, by rules, in Chinese and English.

-- _small_talk: phrases that say nothing worth keeping, beside those that _cues calls small talk.
CREATE OR REPLACE FUNCTION hindsight._small_talk()
  RETURNS text[]
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN ARRAY[
  'let me (just |quickly )?(check|see|think|look|have a look|take a look)( (that|it|this|into (it|that|this)|for you'
    '|again))*|(one|just a|give me a) (moment|minute|second|sec)|hold on|wait( a (minute|second|moment))?',
  '(i am |i.m )?(working|looking) (on|into) (it|that)|i.ll (check|look into (it|that)|get back to you|be right back)|on it'
    '|will do|understood|noted|roger( that)?|brb|be right back',
  'congrat(s|ulations)|have a (nice|good|great|lovely) (day|evening|night|weekend|one|time)|(talk|speak'
    '|see) (to )?you (soon|later|then|tomorrow)|take care|cheers|(happy|glad) to (help|hear (that|it))',
  '(my pleasure|anytime|well|wow|oh|ah|aha|h+m+|u+m+|u+h+|huh|yay|ugh|yup|alright|right|exactly|absolutely|of course'
    '|definitely|indeed|really|true|agreed|cheers|lmao|rofl|(he)+|xd)',
  'how (are (you|things)|is it going|have you been|do you do)( today| doing)*|how.s (it going|everything|your day)'
    '|are you (there|ready|ok)|(that.s|it.s|this is) (ok|okay|fine|great|good|cool|nice|awesome|perfect|funny|all)|go ahead'
    '|done|next|continue|test(ing)?',
  '(我|让我|我来|我先|先|容我)(再|先|来)?(看看|看一看|查查|想想|试试|(查|看|想|确认|检查|核实|处理)(一下|下))|(请?稍等|稍候|等等|等一?下|等我一?下)(一下|片刻)?|马上(来|就好|就来|处理)?|(正在'
    '|在)(处理|查|看|弄)(中|了)?',
  '(嗯|哦|噢|唔|额|呃|啊|哇|唉|诶|哎|哎呀|哈|呵|嘻|嘿)+|加油|恭喜|恭喜恭喜|好久不见|(很|非常)?高兴(认识|见到)(你|您)|祝(你|您).{1,8}|(周末|节日|新年|生日)(愉快|快乐)|(一会|回头|明天|改天'
    '|下次)儿?(见|聊|说)|原来如此|原来是?这样|这样啊|真的吗?|是吗|不会吧|太好了|明白了|了解了|继续吧?|没了|就这样|先这样|随便|都行|都可以|同意|赞|棒|牛|好吧|行吧|好呀|好嘞|没事的?|okay?'];

-- importance: how much a sentence is worth keeping, in [0, 1]. Under 0.3 are only greetings, thanks, acknowledgements and bare
-- questions, which store then skips; what says something has 0.5, and more for a decision, a preference, a number, a name, a
-- thing to do or to remember. A memory lost is worse than one too many: what is not understood is kept, and so is what the
-- caller calls a decision, preference, todo, knowledge or lesson.
CREATE OR REPLACE FUNCTION hindsight.importance(content text, type text DEFAULT 'fact')
  RETURNS double precision
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
AS $$
DECLARE
  heard constant text := hindsight._heard(coalesce(content, ''));
  least_of_type constant double precision :=
    CASE WHEN type IN ('decision', 'preference', 'todo', 'knowledge', 'lesson') THEN 0.5 ELSE 0 END;
  small_talk constant text := hindsight._cue_pattern('whole', hindsight._small_talk()
    || ARRAY(SELECT p FROM hindsight._cues() AS c CROSS JOIN LATERAL pg_catalog.unnest(c.phrases) AS p
             WHERE c.reason = 'small talk'));
  opening constant text := '^(?:(?:hey|hi|hello|ok|okay|so|and|but|well|also|please|sorry|thanks|excuse me),? )*';
  asks_what constant boolean := heard ~ (opening || '(?:what|who|whom|whose|where|when|why|how|which)\M');
  asks_whether constant boolean := heard ~ (opening || '(?:can|could|would|will|shall|should|do|does|did|is|are|am|was|were'
    '|has|have|had|may|might)(?:n.t)? (?:you|i|we|it|there|he|she|they|this|that|these|those|the|my|your|our|any|anyone'
    '|someone|[^ ]+)\M');
  tells constant boolean := heard ~ '\m(remember|note|keep in mind|because|since|always|never|from now on|in (the )?future'
    '|by the way|btw|that (i|my|we|our)|i am|i.m|i was|i have|i.ve)\M|记住|记下|记得我|别忘|以后|今后|从现在|总是|永远|因为|我(对|是|叫|姓|在|有|住|喜欢|不'
    '|讨厌|习惯)';
  worth double precision := 0.5;
BEGIN
  IF coalesce(content, '') !~ '[^\s!-/:-@[-`{-~\u00a0-\u00bf\u2000-\u206f\u2190-\u27bf\u3000-\u3003\u3008-\u3020\ufe00-\ufe0f\uff01-\uff0f\uff1a-\uff20\U0001f000-\U0001faff]' THEN
    RETURN greatest(0.1, least_of_type); -- punctuation, emoji
  ELSIF pg_catalog.length(heard) BETWEEN 1 AND 80 AND heard ~ small_talk THEN
    RETURN greatest(0.1, least_of_type);
  ELSIF pg_catalog.length(heard) BETWEEN 1 AND 200 AND heard !~ '[.!;。\n] *[^.!?;。 ]' THEN -- one sentence
    IF (heard ~ '\? *$' AND (asks_what OR (asks_whether AND NOT tells)))
       OR heard ~ '^(?:what|who|where|when|why|how)(?:.s| (?:is|are|was|were|do|does|did|can|could|should|would|will)) [^,:]*$'
       OR (heard ~ '(?:[吗么呢]|\?)[?。! ]*$' AND heard !~ '[,:，：]' AND heard ~ '[吗么呢什谁哪几怎多否何干没]'
           AND (NOT tells OR heard ~ '什么|谁|哪|几|怎|多少|多久|多大|为何')) THEN
      RETURN greatest(0.2, least_of_type);
    END IF;
  END IF;
  IF heard ~ '^[a-z]+$|^.{1,3}$' THEN
    worth := 0.4; -- a word
  END IF;
  worth := worth
    + CASE WHEN heard ~ '\m(remember|don.t forget|important|crucial|note that|make sure)\M|记住|记下|别忘|不要忘|重要|务必'
      '|切记' THEN 0.2 ELSE 0 END
    + CASE WHEN heard ~ '\m(decided?|decision|agreed (on|to)|chose|chosen|settled on|(will|going to) (use|switch)|switch(ed'
      '|ing) to|instead of)\M|决定|选定|商定|敲定|改用|换成|采用|确定用' THEN 0.2 ELSE 0 END
    + CASE WHEN heard ~ '\m(prefers?|preferred|preference|likes?|loves?|hates?|dislikes?|favou?rite|always|never|allergic'
      '|wants?)\M|喜欢|讨厌|偏好|习惯|最爱|过敏|从不|总是|希望|想要' THEN 0.15 ELSE 0 END
    + CASE WHEN heard ~ '\m(must|needs? to|has to|have to|to ?do|deadline|due|remind)\M|待办|必须|需要|截止|到期|提醒' THEN 0.1 ELSE 0 END
    + CASE WHEN heard ~ '[0-9]|[一二三四五六七八九十百千万]{2}' THEN 0.1 ELSE 0 END
    + CASE WHEN hindsight.entities(content) <> '{}' THEN 0.1 ELSE 0 END;
  RETURN greatest(least(pg_catalog.round(worth::numeric, 2), 0.9), least_of_type);
END
$$;
COMMENT ON FUNCTION hindsight.importance(text, text) IS
  'How much a sentence is worth keeping, in [0, 1], by rules; under 0.3 it is small talk or a bare question, which store skips.';
