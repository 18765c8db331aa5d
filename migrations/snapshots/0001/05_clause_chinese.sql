-- What a Chinese clause gives itself away by: the same kinds as in 05_clause_english.sql.

-- _chinese_sign: the pattern of one kind of saying, for a clause as _plain gives it.
CREATE OR REPLACE FUNCTION hindsight._chinese_sign(kind text)
  RETURNS text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE kind
  WHEN 'unreal' THEN
    '如果|假如|假设|假使|要是|倘若|万一|扮演|想象|听说|据说|有人说|人家说|网上|传闻|谣言|(?:老板|同事|朋友|邻居|他|他们|她|她们|人家|别人|大家)都?(?:说|讲|觉得|认为)(?!好)|读到|说不定|谁知道|的话$'
  WHEN 'request' THEN
    '^(?:那|好|好的|嗯|再|先|请|请你|麻烦|麻烦你|你|就|也|可以|顺便|行)?(?:(?:帮|给|替|教|陪)(?:我|他|她|咱)|把|翻译|润色|改(?!成|用|为)|写(?!的|东西)|讲|说说|解释|加个|加上|列|算|跑一?下|跑个|提交|检查'
    '|看看|看一下|查|发给|发一|发个|总结|概括|换个|换一|再来|再试|语气|字数|按|考考|取消|做个|画|找|推荐|试试|来个|来一|装吧|代码写|周.换)'
  WHEN 'passing' THEN
    '今天|今早|今晚|昨天|昨晚|刚刚|刚才|刚(?!好)|正在(?!学|用|读)|这会儿|去年|上周|上个月|前天|回头|困$|[累饿]|没睡好|连不上|在想|想要不要|可能试|没想好|试试|哈哈|谢谢|又(?:是|挂|坏|被)|困在'
    '|我们?也?(?:先|再|去|试|看|猜|打赌|赢|输|会(?!说|用|做|写|弹|开|讲)|一定|想(?!要?用)|很?(?:感觉|觉得|害怕|担心|相信|希望|怕))|感觉|不知道|困惑|迷茫|犯愁|压力|乏味|请你帮|^那?就?(?:决定|定)了[!。]*$'
    '|紧张|总觉得|伴侣|聊天|一起聊|和你|跟你|你的(?:建议|推荐|分享|帮助)|(?:去|看|吃|买|听|做|学|读|逛|玩|拍|跑|见|发现|遇到|认识)了(?!解)|了一(?:部|道|本|家|场|个|次|件|杯|条|只|下)|(?:给|让)我(?:带来|更|收获|感)'
    '|^你|你(?:真|好|太|救|可以|也|有)|想给|打赌|下雨|不聊|好美'
  WHEN 'problem' THEN
    '报错|失败|出错|崩|挂了|卡住|卡在|连不上|打不开|启动不了|不工作|坏了|白纸|被打回|返回 ?[45][0-9]|漏水|超时|异常|一直报|not found|not detected|error'
  WHEN 'solved' THEN
    '^好了|可以了|搞定|解决了|[就都](?:好|正常|绿|行|过|可以|通|通过|能用)了|能(?:启动|用|连|连上|访问|打开|跑|装)了|修好了|之后过了|现在(?:可以|能)[^,。]*了|原因是'
  WHEN 'cause' THEN '原因|原来(?!如此)|查出来|发现是'
  WHEN 'tells how' THEN '改成|换了|打开|关掉|关闭|加上|删|清|装上|重装|升级|降级|换成|原因|调|以后就|之后就|配'
  WHEN 'explicit' THEN
    '记住(?!了)|记下(?!来?了)|记一下(?!了)|记得|别忘|不要忘|牢记|备忘|切记|我们?决定|咱们?决定|以后[都请就用给别不一统每]|今后|从现在[起开]|从今|remember|todo'
  WHEN 'standing' THEN '以后|今后|从现在|每次|一律|总是|永远|默认|统一|凡是|哪怕再|老规矩|一向'
  WHEN 'forbidding' THEN '^(?:请|也|就|那天|另外|都|前后|以前|平时|[^,。]*以前)?(?:别(?!的|人|忘|名)|不要|不许|禁止|不准|切勿|不用(?!了|谢|客气|签)[^,。])|[^,。]以前别'
  WHEN 'todo' THEN '提醒我|待办|记得[要给把去在]|别忘了?(?!的)|不要忘|得有人|截止|得|要(?!求)|必须|务必|下次|todo'
  WHEN 'dated' THEN '提醒|待办|记得|别忘|不要忘|有人|截止|之前|以前|前[得要必务把]|前,|下次|下周|下个?月|这周|本周|本月|明天|后天|todo'
  WHEN 'decision' THEN
    '决定|选了|选定|定了|就[用选叫定按走]|采用|改用|换成|敲定|商定|确定用|那就(?!是)|用第.个|定[在为]|放[在到][^,。]*吧|加密|选第.个|第.个吧'
  WHEN 'preference' THEN
    '喜欢|不爱|最爱|讨厌|偏好|习惯|一向|从不|从来不|过敏|只[坐吃喝用看穿买]|不吃|不喝|不碰|忌口|受不了|老规矩|闻不得|宁愿|更愿意|做不了'
  WHEN 'hedge' THEN '可能|也许|好像|大概|似乎|估计|或许|应该(?!以|用)|不太?确定|不一定|我猜|我觉得|我记得'
  WHEN 'correction' THEN
    '^(?:哦|噢|啊|抱歉|不好意思|等等|对不起)?[, ]*(?:不对|错了|不是的|说错|记错|更正|纠正一下|搞错)|应该是|说错了|记错了|记混了|搞错了'
  WHEN 'fact' THEN
    '我(?:们|家|们家)?(?:这边|这里|这台)?(?:叫|姓|是(?!说|想|不|否)|住|来自|养|有(?!点|些|没|听|一?个?(?:问题|想法|烦恼|疑问|困扰|事)|空|事)|属|怀孕|用的|在用|开了|在学|负责|拿的|一吃|只|从不|每|自己的|和我们)'
    '|我(?:的名字|现在|目前|最近|一直)?(?:正|还)?在(?:学(?!校)|[^,。]*(?:工作|上班|读|学|做|念|长大|系统))|(?:我|我们|咱)的?(?:爸|妈|爷|奶|哥|弟|姐|妹|老婆|老公|妻子|丈夫|儿子|女儿|闺女|孩子|表|堂|岳|公司|组|团队'
    '|店|学校|项目|网关|服务器|小程序|家的?[猫狗]|[猫狗]|名字)|(?:老公|老婆|儿子|女儿|闺女|孩子|小宝|老爷子|老太太|爸妈|房东|导师|客户|一家)[^,。]|落款|署名|[左右][手脚眼腿耳]|膝盖|腰不|血压|血糖|心脏|胃不'
    '|^[他她](?:是|有|在|住|姓|叫|一|每|不|对|喜欢|英语|血压|[^,。]*(?:高|低|一般|不好)$)|^我这台|最近在学'
  WHEN 'states' THEN
    '是|有|在|用|为|叫|跑|放|走|到期|只|都|必须|不许|超过|以内|支持|归|姓|改成|按|定|水平|收|保留|一共|维护|没|可以|过期|需要|属于|端口|地址|版本|承诺|账期|满'
  WHEN 'remark' THEN '^(?:这(?!个项目|台|边|里|个仓库|个服务|个库|个团队|个账号)|那(?!天|边|台|里)|你)|真的?[好棒不]'
  WHEN 'proposal' THEN '要我?们?用[^,。]*吗|放[^。]*[可行好][以]?吗|用[^,。]*(?:可以|行|怎么样|如何)'
  WHEN 'consent' THEN '^(?:可以|好|行|就|用|嗯|对|没问题|同意|要|是的)'
  WHEN 'about you' THEN '[你您哪几谁]|多少|什么|怎么'
  WHEN 'about this' THEN '理由|日志|场合|内容|确认|要不要|需要|再|还要|可以吗|要我|帮你|看看|还是|觉得|聊|推荐|建议|想法|心情|喜欢|为什么|特别|是不是|今天'
  WHEN 'fragment' THEN '^(?!是的?[,啊]|当然|对[啊,]|嗯|呃|在)[^,。我你您这那想会没]+(?:[,。]|$)'
END;

-- _shows: whether a clause or a sentence as _plain gives it shows a sign of that kind. An English pattern is tried where a part of one of
-- its words is seen.
CREATE OR REPLACE FUNCTION hindsight._shows(plain text, is_chinese boolean, kind text)
  RETURNS boolean
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN is_chinese THEN plain ~ hindsight._chinese_sign(kind)
            ELSE plain LIKE ANY (hindsight._english_hint(kind)) AND plain ~ hindsight._english_sign(kind) END;

-- _lasting: the clauses of a sentence (as _plain gives it) that are neither a request nor about a moment, without conjunctions before them.
CREATE OR REPLACE FUNCTION hindsight._lasting(plain text, is_chinese boolean)
  RETURNS text
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
AS $$
DECLARE
  cut text := pg_catalog.regexp_replace(plain, CASE WHEN is_chinese THEN '(?<!今天|昨天|昨晚|刚才|晚上|最近)[,:](?![0-9]) *'
    ELSE '(?<!today|yesterday|tonight|now|night|morning|week|evening)[,:](?![0-9]) *| - | (?:but|so|because)(?= (?:i|we|my|our|no)\M)|(?<!\mmy [a-z]+) and(?= (?:i|we)\M)' END, E'\n', 'g');
  clause text;
  kept text;
BEGIN
  FOREACH clause IN ARRAY pg_catalog.string_to_array(cut, E'\n') LOOP
    clause := CASE WHEN is_chinese THEN pg_catalog.regexp_replace(clause, '^(?:不过|但是?|所以|因为|其实|反正|而且|另外|还有|对了)', '')
      ELSE pg_catalog.regexp_replace(clause, '^ *(?:(?:and|but|so|then|well|yes|yeah|ok|okay|please|now|oh|right|because|since|good|great|perfect|thanks|btw|by the way|hi|hello|hey'
                                             '|in the meantime|anyway|that|for the record|unfortunately)[ ,.!]+)*', '') END;
    CONTINUE WHEN clause = '' OR clause ~ '[?？]["”) ]*$|怎么办|什么好' OR hindsight._shows(clause, is_chinese, 'passing')
      OR (hindsight._shows(clause, is_chinese, 'request') AND NOT hindsight._shows(plain, is_chinese, 'standing'));
    kept := pg_catalog.concat_ws(', ', kept, clause);
  END LOOP;
  RETURN kept;
END
$$;
