-- Slots: the key of what a sentence gives a value to, where a pattern is sure of it. The same in English and Chinese, so that a
-- later value takes the place of an earlier one. In doubt there is none: a wrong slot makes one fact supersede another.

-- _products: how products are spelled that can be the value of a slot: as the pattern of any of them.
CREATE OR REPLACE FUNCTION hindsight._products(kind text)
  RETURNS text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE kind
  WHEN 'os' THEN '(?:windows|mac ?os|os x|ubuntu|debian|arch|fedora|mint|linux|nixos|deepin|gentoo|opensuse|freebsd|manjaro'
    '|chromeos|centos|统信)'
  WHEN 'editor' THEN '(?:vs ?code|visual studio code|neovim|nvim|vim|emacs|zed|sublime|intellij|pycharm|webstorm|goland|cursor'
    '|helix|nano|notepad|kate|textmate|rider|clion|xcode|android studio)'
  WHEN 'database' THEN '(?:postgres|postgresql|mysql|mariadb|sqlite|oracle|sql server|mongodb|cockroachdb|tidb|clickhouse'
    '|duckdb|达梦|oceanbase)'
END;

-- _single: the slot, if the sentence names one product of that kind: of two it is not clear which is the value.
CREATE OR REPLACE FUNCTION hindsight._single(plain text, kind text, slot text)
  RETURNS text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN (SELECT count(DISTINCT m.match[1]) FROM pg_catalog.regexp_matches(plain, hindsight._products(kind), 'g') AS m(match)) = 1 THEN slot END;

-- _slot_of: the slot of a sentence, or NULL. A pattern is tried where a word of it is seen, so that few are compiled.
CREATE OR REPLACE FUNCTION hindsight._slot_of(sentence text)
  RETURNS text
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
AS $$
DECLARE
  plain constant text := hindsight._plain(sentence);
BEGIN
  IF plain LIKE ANY ('{"% not %","%never %","%no longer%","%used to %","%instead of%",%不再%,%不用%,%没用%,%以前用%,%不是%}') THEN
    RETURN NULL; -- what it is not
  END IF;
  RETURN CASE
    WHEN plain LIKE ANY ('{"%my %name is%","%call me %","%i am called%",%我叫%,%我的名字%,%叫我%}')
      AND plain ~ '\mmy (?:full |first )?name is\M|\m(?:call me|i am called)\M(?! (?:back|at|when|if|on|tomorrow|later)\M)'
        '|(?:^|[,。!] ?)我(?:叫(?![他她车外])|的名字叫?是?)|叫我[^做去来,。]+(?:就|吧|即可|[。.]?$)' THEN 'user.name'
    WHEN plain LIKE ANY ('{"%my birthday%","%i was born on%",%我生日%,%我的生日%,%我出生于%}') THEN 'user.birthday'
    WHEN plain LIKE ANY ('{"%my email%is%","%my e-mail%is%","%my mail%is%",%我邮箱%,%我的邮箱%}') THEN 'user.email'
    WHEN plain LIKE ANY ('{"%my phone%is%","%my mobile%is%",%我电话%,%我的电话%,%我手机号%,%我的手机号%}') THEN 'user.phone'
    WHEN plain LIKE ANY ('{"%my timezone is%","%my time zone is%","%i am in utc%","%i am on utc%","%i am in cet%",'
      '"%i am in gmt%",%我的时区%,%我在东_区%,%我在西_区%}') THEN 'user.timezone'
    WHEN plain LIKE ANY ('{"%i live in %","%i moved to %","%i have moved to %","%i am based in %","%i relocated to %",%我%住%,'
      '%我%搬到%,%我%搬去%,%我%定居%}')
      AND plain ~ '\mi (?:live in|(?:have )?moved to|relocated to|am based in)\M|(?:^|[,。] ?)(?:现在)?我们?(?:现在|目前|一直|家)?(?:住|搬到'
        '|搬去|定居)' THEN 'user.location'
    WHEN plain LIKE ANY ('{"% in %",%用%}')
      AND plain ~ ('\m(?:answer|reply|respond|write|speak|talk)(?: to)?(?: me)? in (?:english|german|french|spanish|chinese'
        '|mandarin|japanese|italian|portuguese|russian|korean|dutch)\M'
                   '|用[中英日德法韩粤俄][文语](?:回答|回复|跟我说|交流|沟通)') THEN 'user.language'
    WHEN plain LIKE ANY ('{"%i work at %","%i work for %","%i am employed %",我%在%工作%,我%在%上班%,我%在%任职%}') THEN 'user.employer'
    WHEN plain LIKE ANY ('{"%i work as a%","%my job is %","%my profession is %","%my occupation is %","%i am a%",我是%}')
      AND plain ~ ('\mi work as an?\M|\mmy (?:job|profession|occupation) is\M|\mi am an? (?:[a-z]+ )?(?:[a-z]+ )?(?:engineer'
        '|developer|teacher|nurse|doctor|designer|lawyer|accountant|manager|student'
                   '|architect|scientist|analyst|baker|chef)\M|^我是[^,。我你的]*(?:工程师|程序员|老师|教师|医生|护士|设计师|律师|会计|经理|学生'
                   '|架构师)[。.]?$') THEN 'user.occupation'
    WHEN plain LIKE ANY ('{"%project%","%our database%","%our db%",%项目%,%我们%数据库%}')
      AND plain ~ '\m(?:database|db|uses?|using|runs on)\M|数据库|用|存' THEN hindsight._single(plain, 'database', 'project.database')
    WHEN plain LIKE ANY ('{"%i am on %","%i use %","%i run %","%my laptop %","%my machine %","%this machine %",'
      '"%my computer %","%my pc %","%my os %","%my desktop %","%switched to %",%我%用%,%我%装%,%我这台%,%我%换成%,%我%系统%}')
      AND plain ~ (('\m(?:i am on|i (?:now )?(?:use|run)|i (?:have )?switched to|(?:my|this) (?:laptop|machine|computer|pc|os'
        '|desktop|operating system) (?:is|runs|has|uses)(?: on)?) (?:an? |now )?'
                   || hindsight._products('os')) || '\M|我(?:现在|目前|平时|一直|这台)?(?:在?用|用的是?|装的?是?|换成了?|是|的?(?:电脑|笔记本'
                     '|系统)[是用装][^,。]*) ?' || hindsight._products('os'))
      THEN hindsight._single(plain, 'os', 'user.os')
    WHEN plain LIKE ANY ('{"%i use %","%switched to %","%i moved to %","%editor%","%i edit %","%i code in %",%我%用%,%我%换成%,%编辑器%}')
      AND plain ~ (('\m(?:i (?:always |now |only )?(?:use|edit in|edit with|code in)|i (?:have )?(?:switched|moved) to'
        '|my (?:main |favou?rite |default )?editor is|editor[^?]*[?]) '
                   || hindsight._products('editor')) || '\M|(?:我(?:现在|目前|平时|一直)?(?:在?用|用的是?|换成了?|习惯用|写代码用)'
                     '|编辑器[是用换][^,。]*) ?' || hindsight._products('editor'))
      THEN hindsight._single(plain, 'editor', 'user.editor')
  END;
END
$$;
