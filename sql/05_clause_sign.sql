-- What a sentence gives itself away by, in English and Chinese. The rules that read these signs are in 05_extraction.sql.

-- _sign: the pattern of one kind of saying, for a clause or a sentence as _plain gives it. English words are whole words. One pattern
-- a kind, since a session keeps 32 that are compiled; nothing is captured and nothing is counted high, so that none backtracks.
CREATE OR REPLACE FUNCTION hindsight._sign(kind text)
  RETURNS text
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN CASE kind

  -- Nobody says it for true: what would be if, what others are said to say, a part that is played.
  WHEN 'unreal' THEN
    '\m(?:if (?:i|we|you|it|they|he|she|there|only)(?: \w+)? (?:had|were|was|used|could|did|got|went|won)|if only|suppos(?:e|ing)|imagine|pretend'
    '|assum(?:e|ing)|let''s say|what if|hypothetically|would(?:n''t)? (?:have|be)|(?:i|we)''d(?! (?:like|rather|love|prefer))|it''d|act as|role ?play'
    '|(?:i|we)(?:''ve)?(?: (?:just|once|also|have|recently))? (?:read|heard) (?:somewhere|that|about|on|in|from)|(?:someone|somebody|people|everyone|they|he|she|(?:my|our|a|the) (?:\w+ )?(?:boss|friend|colleague|neighbou?r'
    '|guy|brother|sister|mother|father|news|internet|blog)) (?:say|says|said|told|claims?|thinks?|reckons?)|apparently|allegedly|rumou?rs?'
    '|supposedly|reportedly|act like|you are an?|who knows)\M'
    '|如果|假如|假设|假使|要是|倘若|万一|扮演|想象|听说|据说|有人说|人家说|网上|传闻|谣言|听[^,。]{1,4}说|(?:老板|同事|朋友|邻居|他们?|她们?|人家|别人|大家)都?(?:说|讲|觉得|认为)(?!好)'
    '|读到过?|说不定|谁知道|的话$'

  -- It asks for something in this conversation, of the assistant. At the beginning of a clause.
  WHEN 'request' THEN
    '^(?:(?:and|then|so|ok|okay|now|also|please|just|yes|yeah|good|great|hmm?|hi|hello|hey|but|or|perfect|thanks?|in the meantime|anyway)\M[ ,.!]*)*'
    '(?:(?:can|could|would|will) you|please|write|translate|make|fix|show|give|explain|list|add|run|send|draft|summari[sz]e|shorten|keep|change|rename'
    '|book|cancel|tell|help|check|try|take|correct|quiz|let me|ship|do(?!n''t)|don''t (?:worry|bother|stop)|go|create|delete|remove|update|convert|rewrite'
    '|format|find|search|look|open|read|compare|generate|continue|scale|double-check|drop|less|more|another|no need|i want (?:you )?to|i''d like'
    '|i would like|i need|(?:i''m )?looking for|set up|tighten|start|stop|sort|count|pick)\M'
    '|^(?:(?:那|好的?|嗯|再|先|请|麻烦|你|就|也|可以|顺便|行)[, ]*)*(?:(?:帮|给|替|教|陪)(?:我|他|她|咱)|把|翻译|润色|改(?!成|用|为)|写(?!的|东西)|讲|说说|解释|加个|加上|列|算|跑(?:一下|个)|提交'
    '|检查|看看|看一下|查|发(?:给|一|个)|总结|概括|换一?个|再来|再试|语气|字数|按|考考|取消|做个|画|找|推荐|试试|来个|来一|装吧|代码写|周.换)'

  -- What was so for a moment only, or is over.
  WHEN 'passing' THEN
    '\m(?:(?:i|we)(?: am|''m|''re| are|''ve been| have been)(?: (?:so|really|very|just|still|back|also|a bit|already|now|not|currently|recently))* (?!learning|studying|living|allergic|moving'
    '|training|playing|working (?:at|as|for|in|on the)|switching|using)(?:tired|busy|hungry|bored|sick|late|ill|stuck|lost|confused|sorry|happy|glad|sad|excited|ready'
    '|done|in$|here|back|home|afraid|scared|nervous|worried|grateful|impressed|amazed|surprised|[a-z]+ing)|(?:i|we)(?:''ve)?(?: (?:just|also|finally|always|sometimes|often|still|really|never|usually|all|sort of))* (?:went|got|tried|had|did|said|came|won|lost|saw|took|found|made|met|heard|guess|hope|wonder|feel|felt|believe|fear|worry|find it|don''t (?:know|feel|have any)'
    '|wish|wanted|thought|forgot|played|slept|barely)|(?:i|we)(?: (?:just|also|already|recently|accidentally))* (?!need|feed|decid|agree|mov|pick|chang|switch|settl|promis|nam|renam|rais|us)[a-z]+ed\M(?! by)'
    '|just (?:now|installed|started|got|finished|saw|noticed)|today|tonight|right now|at the moment|this (?:morning|afternoon|evening)|yesterday'
    '|last (?:night|week|month|year|time)|a minute ago|no idea|thinking (?:about|of)|i (?:might|may)|(?:maybe|perhaps) i|i''ll (?:try|see|think|check|look)|we''ll see'
    '|we should (?:move|try|think)|we (?:can|could)|(?:i|we)(?:''ll| will) (?!use|go with|only|never|always|be (?:in|at|on))|(?:makes?|bores?|enables?|allows?|helps?|gives?) me|to you|yet|ai companion|chatbot|with you|your (?:advice|suggestions?|help|recommendations?|answer|idea|support|tips?)|(?:want|would(?: also| really)? like) to (?!use|be called)|if you|you (?:can|could|should|may|might|must)|(?:my|our|the|his|her|their|its?|this|that)(?: \w+)* (?:was|were|had|went)(?! born)|lol|hehe|(?:ha)+|i love it|love it|you(?:''re| are)|thank(?:s| you)|in the meantime)\M'
    '|今天|今早|今晚|昨天|昨晚|刚(?:刚|才)?(?!好)|正在(?!学|用|读)|这会儿|去年|上周|上个月|前天|回头|好?困$|[累饿]|没睡好|连不上|在想|想要不要|可能试|还?没想好|试试看?|哈哈|谢谢|又(?:是|挂|坏|被)|还?困在'
    '|我们?也?(?:先|再|去|试|看|猜|打赌|赢|输|会(?!说|用|做|写|弹|开|讲)|一定会?|想(?!要?用)|很?(?:感觉|觉得|害怕|担心|相信|希望|怕))|感觉|不知道|困惑|迷茫|犯愁|压力|乏味|请你帮|^(?:那就)?(?:决定|定)了[!。]*$|紧张|总?觉得|伴侣|聊天|一起聊|和你|跟你|你的(?:建议|推荐|分享|帮助)|(?:去|看|吃|买|听|做|学|读|逛|玩|拍|跑|见|发现|遇到|认识)了(?!解)|了一(?:部|道|本|家|场|个|次|件|杯|条|只|下)|(?:给|让)我(?:带来|更|收获|感)|^你|你(?:真|好|太|救|可以|也|有)|想给|打赌|下雨|不聊|好美'

  -- Something does not work. Without its cure that is a moment too.
  WHEN 'problem' THEN
    '\m(?:fail(?:s|ed|ing|ure)?|errors?|refused|crash(?:es|ed|ing)?|broken?|hangs?|hung|won''t|can''t (?:connect|start|open|find|log)|cannot (?:connect|start|open|find)'
    '|not (?:detected|found|working|starting)|doesn''t (?:work|start|open)|stopped working|blank pages|leaking|rejected|times? out|timeouts?'
    '|denied|missing|returns? (?:4|5)\d\d|exception|stuck|all of a sudden)\M|npm err|报错|失败|出错|崩|挂了|卡住|卡在|连不上|打不开|启动不了|不工作|坏了|白纸|被打回|返回 ?[45]\d\d|漏水|超时|异常|一直报|not found'

  -- It works now.
  WHEN 'solved' THEN
    '\m(?:that (?:did|fixed|solved|was) it|(?:works?|worked|fine|starts?|green|passes?|good)(?: like a charm)? (?:now|again)|works like a charm|fixed (?:it )?(?:by|with|now|it)'
    '|solved (?:it|by)|(?:it|they|that|everything|all) (?:finally )?(?:works|passes?|prints fine|pass)|was it|did the trick|resolved|(?:the|root) (?:cause|culprit|fix) (?:was|is)'
    '|it was (?:because|due)|problem solved|they pass|turned out|works)\M'
    '|^好了|可以了|搞定|解决了|(?:就|都)(?:好|正常|绿|行|过|可以|通|通过|能用)了|能(?:启动|用|连上?|访问|打开|跑|装)了|修好了|之后过了|现在(?:可以|能)[^,。]{0,6}了|原因是'

  -- Why it did not work.
  WHEN 'cause' THEN
    '\m(?:found (?:it|out|the)|turn(?:s|ed) out|(?:the|root) (?:cause|culprit|reason|problem) (?:is|was))\M|原因|原来(?!如此)|查出来|发现是'

  -- It is to be kept, they say so.
  WHEN 'explicit' THEN
    '\m(?:remember(?: that|:| to|,| the| my| our| we| i)|(?:please |do )remember|don''t forget|do not forget|note that|(?:please |take )note|keep in mind|bear in mind|for the record'
    '|for (?:future|later) reference|from now on|for your information|fyi|save this|memori[sz]e|(?:i|we)(?:''ve| have)? (?:finally )?decided)\M'
    '|记住(?!了)|记下(?!来?了)|记一下(?!了)|请?记得|别忘|不要忘|牢记|备忘|切记|(?:我|我们|咱们?)决定|以后(?:都|请|就|用|给|别|不|一律|统一|每)|今后|从现在(?:起|开始)|从今'

  -- How it shall always be.
  WHEN 'standing' THEN
    '\m(?:always|never|from now on|in (?:the )?future|every time|each time|whenever|by default|as always|as usual|any [a-z]+ you|every mistake|going forward)\M'
    '|以后|今后|从现在|每次|一律|总是|永远|默认|统一|凡是|哪怕再|老规矩|一向'

  -- What shall not be: "no sudo, please", "don't deploy on Fridays".
  WHEN 'forbidding' THEN
    '(?:^|, |and |also |btw |but |so )(?:please )?(?:don''t|do not|never|avoid|nothing|without|no(?! (?:idea|problem|need|thanks|thank|worries|one|way|doubt|matter|clue|that|it|i|we)\M))\M [a-z]'
    '|\m(?:nothing|none) (?:before|after|with|of that)|(?:^|[, ])(?:请|也|就|那天|另外|都|前后|以前|平时)?(?:别(?!的|人|忘|名)|不要|不许|禁止|不准|切勿|不用(?!了|谢|客气|签)[^,。]{2})'

  -- The assistant asks whether something shall be so, not whether it shall do something now.
  WHEN 'proposal' THEN
    '\m(?:shall|should|can|could) (?:we|i) (?:go with|use|take|switch|keep|stay|put|store|make it|call|deploy|host)\M|(?:ok(?:ay)?|fine|good) (?:for|with) you|(?:要|需要)我?(?:们)?用[^,。]*吗|放[^。]*(?:可以|行|好)吗|就?用[^,。]*(?:可以|行|怎么样|如何)吗?'
  WHEN 'consent' THEN
    '^(?:yes|yeah|yep|sure|ok|okay|go ahead|go with|agreed|sounds good|fine|good|do it|do that|let''s)\M|^(?:可以|好|行|就|用|嗯|对|没问题|同意|要|是的)'

  -- A question about the one who is asked or their world, and one about what lies on the desk.
  WHEN 'about you' THEN
    '\m(?:you|your|yours|how (?:many|often|late|much|long|old|do|does|is|are)|she|he|they|which|when|where|who|any(?:thing|one)?|and (?:the|which))\M|你|您|哪|几|多少|什么|怎么|谁'
  WHEN 'about this' THEN
    '\m(?:it|this|that|these|those|says?|logs?|errors?|means?|shall i|should i|do you want|would you like|want me|ready|else|more|help|know|think|chat|talk|recommend\w*|suggest\w*|advice|feel|why|favou?rite|interesting|mood)\M|理由|聊|推荐|建议|想法|心情|喜欢|为什么|特别|是不是|今天|日志|场合|内容|确认|要不要|需要|再|还要|可以吗|要我|帮你|看看|还是|觉得'

  -- An answer that is no sentence of its own.
  WHEN 'fragment' THEN
    '^(?!(?:i|we|you|it|he|she|my|our|no|not|yes|yeah|well|actually|nothing|none|never|don''t|is|are|just|that|this|there|sure|ok|okay|maybe|of course|definitely|i|in|at first|recently|um|hm+)\M|是的?[,啊]|当然|对[啊,]|嗯|呃|在)[^,.。我你您这那想会没]{1,60}(?:[,.。]|$)'

  -- It judges, or is about nothing that is named.
  WHEN 'remark' THEN
    '^(?:(?:and|but|so|well|oh|wow|haha|yes|no),? )*(?:that|this(?! (?:machine|laptop|box|project|repo|repository|server|account|computer|pc|service|team)\M)|those|these|it|there|what|you|nice|great|good|looks?|sounds?|who)\M(?!.*(?:\m(?:every|each|per|listens|runs|lives|expires)\M|[a-z]\.[a-z]))'
    '|^(?:这(?!个项目|台|边|里|个仓库|个服务|个库|个团队|个账号)|那(?!天|边|台|里)|你)|真的?(?:好|棒|不错)'

  WHEN 'todo' THEN
    '\m(?:remind me|to-?do\M ?:?|(?:i|we|someone|somebody) (?:need|have|has|needs|must|ought|will have)(?: got)? to .*(?:by|before|until|on|about|next|tomorrow)'
    '|(?:is|are|was) due|deadline|due (?:on|by|date)|(?:has|have) to (?:reach|be) .*(?:by|before)|don''t forget(?: to|:)|remember to|(?:rotate|renew|pay|call|submit|send|book) .*'
    '(?:by|before|on) .*(?:time|\d|day|week|month|noon))\M'
    '|提醒我|待办|记得(?:要|给|把|去|在)|别忘了?(?!的)|不要忘|得有人|截止|(?:之?前|以前)(?:得|要|必须|务必)|(?:得|要|必须|务必)[^,。]{0,10}(?:之?前|以前)|下次[^,。]*换|(?:下|这|本)(?:周|个?月)[^,。]{0,3}要(?!求)'

  WHEN 'decision' THEN
    '\m(?:(?:i|we)(?:''ve| have)? (?:finally |just )?(?:decided|agreed|chose|picked|settled|opted)|ended up (?:with|picking|choosing|using|going)|(?:i|we) (?:went with|stick with)|(?:we''ll|i''ll|let''s|let us|we will)'
    ' (?:go with|go for|stick|use|pick|switch|choose|adopt|move to)|let''s (?:take|call|keep|name|make|do)|(?:i''m|we''re|we are|i am) (?:going (?:with|to use)|switching|moving) (?:to)?'
    '|go(?:ing)? (?:ahead )?with|the (?:first|second|third|fourth|last|former|latter) (?:one|option)|option [a-d1-4]|from now on|settled onx)\M|^(?:(?:and|also|please|then|but|so|ok|yes)[ ,]+)*(?:put|store|encrypt|deploy|host|save|log|use|sign) [^,.]+ (?:in|into|on|with|under|as)\M'
    '|决定|选了|选定|定了|就(?:用|选|叫|定|按|走)|采用|改用|换成|敲定|商定|确定用|那就(?!是)|用第.个|定(?:在|为)|放(?:在|到)[^,。]*吧|加密|选第.个|第.个吧'

  WHEN 'preference' THEN
    '\m(?:(?:i|we)(?: (?:really|also|do|still|quite|especially|personally|usually|always|don''t|do not|much|just|absolutely|both|all|particularly|mostly|generally))* (?:prefer|like(?! (?:i|it|that|this))|love|hate|dislike|enjoy|adore|detest|can''t stand|cannot stand)|prefers?|favou?rite|can''t stand|allergic|vegetarian|vegan|'
    'i (?:always|never|usually|only)|as always|instead of|rather than|i (?:do not|don''t) (?:want(?! to)|eat|drink|like|use|do)|i write (?:\w+ )?english|only for (?:us|me)|one-off)\M'
    '|喜欢|不爱|最爱|讨厌|偏好|习惯|一向|从不|从来不|过敏|只(?:坐|吃|喝|用|看|穿|买)|不吃|不喝|不碰|忌口|受不了|老规矩|闻不得|宁愿|更愿意|做不了'

  -- It is only half sure.
  WHEN 'hedge' THEN
    '\m(?:maybe|perhaps|i think|i guess|i believe|probably|possibly|might|may be|not sure|if i recall|i suppose|as far as i|seems?|kind of)\M'
    '|可能|也许|好像|大概|似乎|估计|或许|应该是?(?!以|用)|不太?确定|不一定|我猜|我觉得|我记得'

  -- It puts something right.
  WHEN 'correction' THEN
    '^(?:(?:oh|hm+|ah|oops|sorry|wait),? )*(?:no|nope|wrong|actually|correction|not quite|that''s (?:wrong|not right|incorrect))\M(?!,? (?:thanks?|problem|worries|need|idea|that''s (?:enough|all|fine|ok)))'
    '|\mactually[.! ]*$|\m(?:i meant|i was wrong|my mistake|i misspoke)\M'
    '|^(?:哦|噢|啊|抱歉|不好意思|等等|对不起)?[, ]*(?:不对|错了|不是的|说错|记错|更正|纠正一下|搞错)|应该是|说错了|记错了|记混了|搞错了'

  -- Somebody or something of theirs, and what it is or does all the time.
  WHEN 'fact' THEN
    '^(?:(?:and|but|so|also|well|yes|no|then|for|all|both|most|some|one|in|on|at|of|since|btw|by the way|because|right|oh|currently|the|good|great)[ ,]+)*(?:my|our|his|her|their)\M(?! (?:god|goodness|gosh|bad|question|point|mistake|pleasure|apolog|fault|guess|last|previous|next (?:question|message)|(?:[a-z]+ )?(?:friend|assistant|dear)[.,! ]*$))'
    '|\m(?:(?:i|we)(?:''re|''m| am| are) (?:a|an|the|from|based|vegetarian|vegan|diabetic|allergic|left-handed|colou?r-?blind|learning|studying|living|using|running'
    '|working|useless|on first|married|divorced|\d|(?:on|in|at|with)(?! (?:it|my way|the way|hold|a call|a hurry|time)))'
    '|(?:i|we) (?:(?:also|mostly|usually|always|only|never|still|both|all|often|mainly|don''t|do not|can''t|cannot) )*(?:live|work|run|own|have(?! (?:a (?:question|problem|idea)|no idea|to|been|seen|read|heard|made|done|gone|[a-z]+ed\M))|use|study|speak|play|write|teach|ship|bill|host|deploy|store|drive|grow|raise|sell|manage|lead|maintain|support|pay|charge|eat|drink|sleep'
    '|commute|train|wear|deliver|promised|release|test|commit|publish|come from|grew up|was born|were born|moved|get sick|serve|employ|accept|open|close|offer|take(?! (?:a|it|that|this|care)\M))'
    '|i''ve (?:been (?:a|an|in|at|with|on|learning|studying|playing|working|living|using|training)|played|worked|lived|had|used|known)|puts? (?:me|us)|is what we|(?:her|his|their) (?:dad|mum|mom|mother|father|son|daughter))\M'
    '|我(?:们|家)?(?:这边|这里|这台)?(?:叫|姓|是(?!说|想|不|否)|住|来自|养|有(?!点|些|没|听|一?个?(?:问题|想法|烦恼|疑问|困扰|事)|空|事)|属|怀孕|用的|在用|开了|在学|负责|拿的|一吃|只|从不|每|自己的|和我们)'
    '|我(?:现在|目前|最近|一直)?(?:正|还)?在(?:学(?!校)|[^,。]{1,10}(?:工作|上班|读|学|做|念|长大|系统))|(?:我|我们|咱)(?:的)?(?:爸|妈|爷|奶|哥|弟|姐|妹|老婆|老公|妻子|丈夫|儿子|女儿|闺女|孩子|表|堂|岳|公司|组|团队|店|学校|项目|网关|服务器|小程序|家的?[猫狗]|[猫狗])'
    '|(?:老公|老婆|儿子|女儿|闺女|孩子|小宝|老爷子|老太太|爸妈|房东|导师|客户|一家)[^,。]|落款|署名|(?:左|右)(?:手|脚|眼|腿|耳)|膝盖|腰不|血压|血糖|心脏|胃不|^(?:他|她)(?:是|有|在|住|姓|叫|一|每|不|对|喜欢|英语|血压|[^,。]{1,4}(?:高|低|一般|不好))|^我这台'

  -- A verb by which a thing is or does something all the time, and what ties it down.
  WHEN 'states' THEN
    '\m(?:is|are|has|have|runs?|lives?|listens?|uses?|takes?|expires?|starts?|costs?|belongs?|sits?|goes|go|keeps?|speaks?|reads?|writes?|stores?|holds?|requires?|needs?|wants?'
    '|must|cannot|can''t|kills?|insists?|arrives?|opens?|closes?|turns|lasts|weighs|only|every|blocks?|moved)\M'
    '|是|有|在|用|为|叫|跑|放|走|到期|只|都|必须|不许|超过|以内|支持|归|姓|改成|按|定|水平|收|保留|一共|维护|没|可以|过期|需要|属于|端口|地址|版本|承诺|账期|满'
END;

-- _lasting: the clauses of a sentence (as _plain gives it) that are neither a request nor about a moment.
CREATE OR REPLACE FUNCTION hindsight._lasting(plain text)
  RETURNS text
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN (
  SELECT pg_catalog.string_agg(c.clause, ', ' ORDER BY c.place)
  FROM pg_catalog.regexp_split_to_table(plain, '(?<!today|yesterday|tonight|recently|now|night|morning|week|evening|今天|昨天|昨晚|刚才|晚上|最近)[,:](?![0-9]) *| - | (?:but|so|because)(?= (?:i|we|my|our|no)\M)|(?<!\mmy [a-z]+) and(?= (?:i|we)\M)') WITH ORDINALITY AS c(clause, place)
  WHERE c.clause <> '' AND c.clause !~ hindsight._sign('passing') AND c.clause !~ '\?[ "”)]*$|怎么办|什么好'
    AND (c.clause !~ hindsight._sign('request') OR c.clause ~ hindsight._sign('standing')));
