-- Slots: the key of what a sentence gives a value to, where a pattern is sure of it. The same in English and Chinese, so that a later value takes the
-- place of an earlier one. In doubt there is none: a wrong slot makes one fact supersede another.

-- _slot_of: the slot of a sentence, or NULL.
CREATE OR REPLACE FUNCTION hindsight._slot_of(sentence text)
  RETURNS text
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
AS $$
DECLARE
  plain constant text := hindsight._plain(sentence);
  systems constant text := '(?:windows|mac ?os|os x|ubuntu|debian|arch|fedora|mint|linux|nixos|deepin|gentoo|opensuse|freebsd|manjaro|pop!?_os|chromeos|centos|统信)';
  editors constant text := '(?:vs ?code|visual studio code|neovim|nvim|vim|emacs|zed|sublime(?: text)?|intellij(?: idea)?|idea|pycharm|webstorm|goland|cursor|helix|nano|notepad\+\+|kate|textmate|rider|clion|xcode)';
  databases constant text := '(?:postgres(?:ql)?|mysql|mariadb|sqlite|oracle|sql server|mongodb|cockroachdb|tidb|clickhouse|duckdb|达梦|oceanbase)';
  is_negated constant boolean := plain ~ '\m(?:not|n''t|never|no longer|don''t|used to|instead of)\M|不再|不用|没用|以前用|不是';
  named text[];
BEGIN
  IF is_negated THEN
    RETURN NULL;
  ELSIF plain ~ '\mmy (?:full |first |last )?name is\M|\m(?:call me|i''m called|i am called)\M|^我(?:的名字)?(?:叫|是叫)(?!他|她|车|外卖)|[,。]我叫(?!他|她|车|外卖)|叫我[^做去来,。]{2,6}(?:就|吧|即可|[。.]?$)' THEN
    RETURN 'user.name';
  ELSIF plain ~ '\m(?:my birthday is|i was born on)\M|我(?:的)?生日(?:是|在)|我[^,。]{0,6}月[^,。]{1,4}[日号](?:出生|生日|生的)' THEN
    RETURN 'user.birthday';
  ELSIF plain ~ '\mmy (?:e-?mail|mail)(?: address)? is\M|我的?(?:邮箱|电子邮件)(?:地址)?(?:是|:)' THEN
    RETURN 'user.email';
  ELSIF plain ~ '\mmy (?:phone|mobile)(?: number)? is\M|我的?(?:电话|手机号?)(?:码)?(?:是|:)' THEN
    RETURN 'user.phone';
  ELSIF plain ~ '\mmy time ?zone is\M|\mi(?:''m| am) (?:in|on) (?:utc|gmt|cet|pst|est|eastern|pacific)|我的?时区|我在(?:东|西).{1,2}区' THEN
    RETURN 'user.timezone';
  ELSIF plain ~ '^(?:\w+ ){0,3}i (?:now |currently |mostly )?(?:live in|moved to|(?:have )?relocated to)\M|\mi(?:''m| am) based in\M|^(?:现在)?我(?:现在|目前|一直|们家|家)?(?:住在?|搬到|搬去|定居)' THEN
    RETURN 'user.location';
  ELSIF plain ~ '\m(?:answer|reply|respond|write|speak|talk)(?: to)?(?: me)? in (?:english|german|french|spanish|chinese|mandarin|japanese|italian|portuguese|russian|korean|dutch)\M'
              '|用(?:中文|英文|英语|日文|日语|德语|法语|韩语|粤语|普通话)(?:回答|回复|跟我说|交流|沟通|说)' THEN
    RETURN 'user.language';
  ELSIF plain ~ '\mi work (?:at|for)\M|\mi(?:''m| am) employed (?:at|by)\M|^我(?:现在|目前)?在[^,。]{2,15}(?:公司|集团|厂|局|大学|医院|银行|科技)(?:工作|上班|任职)' THEN
    RETURN 'user.employer';
  ELSIF plain ~ '\mi work as an?\M|\mmy (?:job|profession|occupation) is\M|\mi(?:''m| am) an? (?:\w+ ){0,3}(?:engineer|developer|teacher|nurse|doctor|designer|lawyer|accountant|manager|student|architect|scientist|analyst|baker|chef)\M'
              '|^我是(?:一?[名个位])?[^,。我你]{0,8}(?:工程师|程序员|老师|教师|医生|护士|设计师|律师|会计|经理|学生|架构师|产品经理)[。.]?$' THEN
    RETURN 'user.occupation';
  ELSIF plain ~ '\m(?:project|our (?:data|db))|项目|我们的?(?:数据)?库' AND plain ~ databases AND plain ~ '\m(?:database|db|uses?|using|runs on|is on|use)\M|数据库|用|存' THEN
    named := ARRAY(SELECT DISTINCT m[1] FROM pg_catalog.regexp_matches(plain, '(' || databases || ')', 'g') AS m);
    RETURN CASE WHEN pg_catalog.cardinality(named) = 1 THEN 'project.database' END;
  ELSIF plain ~ ('\m(?:i''m on|i am on|i(?: now| mostly| always| only| switched to| moved to)? ?(?:use|run|have)?|(?:my|this) (?:laptop|machine|computer|pc|os|desktop|operating system)(?: is| runs| has)?(?: on)?) ?(?:an? )?' || systems || '\M'
                 '|我(?:现在|目前|平时|一直)?(?:在?用|用的是?|装的是?|换成了?|这台是?|的?(?:电脑|笔记本|系统)(?:是|用|装)[^,。]{0,4}) ?' || systems) THEN
    named := ARRAY(SELECT DISTINCT m[1] FROM pg_catalog.regexp_matches(plain, '(' || systems || ')', 'g') AS m);
    RETURN CASE WHEN pg_catalog.cardinality(named) = 1 THEN 'user.os' END;
  ELSIF plain ~ ('\m(?:i(?: now| mostly| always| only| still)? (?:use|switched to|moved to|edit (?:in|with)|code in)|my (?:main |favou?rite |default )?editor is|editor[^,?]*\?) ?' || editors || '\M'
                 '|(?:我(?:现在|目前|平时|一直)?(?:在?用|用的是?|换成了?|习惯用|写代码用)|编辑器(?:是|用|换成了?|现在用的?是?哪个[?])) ?' || editors) THEN
    named := ARRAY(SELECT DISTINCT m[1] FROM pg_catalog.regexp_matches(plain, '(' || editors || ')', 'g') AS m);
    RETURN CASE WHEN pg_catalog.cardinality(named) = 1 THEN 'user.editor' END;
  END IF;
  RETURN NULL;
END
$$;
