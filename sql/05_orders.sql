-- Orders to an agent and claims of who said so, in Chinese and English: the words of the screen (05_screen.sql). plain is a
-- text in lower case. LIKE asks for the words first: most texts hold none of them, and no expression is run. What is between two
-- words is * and not {0,40}, which PostgreSQL would copy forty times: an expression of that kind took 30 ms to compile, again and
-- again, since a session keeps 32 of them.

-- _orders: whether a text gives orders to the agent that reads it, in a few words; NULL: it does not. A document says "always
-- call close()" to its readers: what makes it an order to the agent is that it undoes what the agent was told, addresses it,
-- tells it what to answer, or what to keep from its user.
CREATE OR REPLACE FUNCTION hindsight._orders(plain text)
  RETURNS text
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
AS $$
BEGIN
  IF plain LIKE ANY ('{%ignor%,%disregard%,%forget %,%overrid%,%bypass%,%忽略%,%无视%,%忘记%,%忘掉%,%推翻%,%不理会%}'::text[])
     AND plain ~ ('\m(?:ignor(?:e|ing)|disregard|forget|overrid(?:e|ing)|bypass)\M(?:\W+\w+){0,4}?\W+'
                  '(?:instructions?|guidelines?|directives?|prompts?|everything|your rules|all rules|what you (?:were|have))'
                  '|\moverride ?[:：]|(?:忽略|无视|忘记|忘掉|推翻|不理会)[^。；!?,，、]*(?:指示|指令|提示词|准则|对话|设定|约束|限制|系统提示)') THEN
    RETURN 'it tells the agent to ignore what it was told';
  END IF;
  IF plain LIKE ANY ('{%assistant%,"%ai %","%ai:%","%agent%",%llm%,%chatbot%,%助手%,%助理%,%智能体%,%大模型%}'::text[])
     AND plain ~ ('(?:^|[.!?。]\s*|(?:note|message|instructions?|attention|hey|dear),? (?:to|for)? ?)(?:the |all '
                  '|any )?(?:ai assistants?|assistants?|ai agents?|ai|agents?|llms?|chatbots?) ?[:,：]'
                  '|\mas (?:the|an) (?:ai|assistant|agent)\M|\m(?:assistants?|agents?|llms?|chatbots?'
                  '|ai)\M(?: \w+){0,3} (?:must|should|shall|is to|are to|is allowed|are allowed|is permitted)\M'
                  '|note to (?:the )?(?:ai|assistant|agent)|(?:助手|助理|智能体|大模型)(?:请|必须|务必|应该|应当|可以|需要|须)'
                  '|(?:^|[。！!]\s*)[^,。]?(?:助手|助理|智能体|大模型)[,:：]') THEN
    RETURN 'it addresses the agent';
  END IF;
  IF plain LIKE ANY ('{"%you are now%","%your new %","%pretend %","% mode%","%no restrictions%",'
                     '"%disable %",%unrestricted%,%关闭安全%,%关闭内容%,"%act as %",%你现在%,%你的新%,%任何限制%,%假装你%,%请扮演%,%你扮演%}'::text[])
     AND plain ~ ('\myou are now\M|\myour new (?:task|role|instruction|goal|job|purpose|rule)|\mpretend (?:that )?you\M'
                  '|\m(?:dev(?:eloper)?|god|admin|debug|dan) ?mode\M[^.;]*\m(?:no|without|enabled|on)\M'
                  '|\mact as (?:the |an? )?(?:dan|admin|root|system|unrestricted)|no restrictions'
                  '|\mdisable (?:all |any |the |your )*(?:safety|security|content|guardrails?)\M|unrestricted (?:\w+ )?access'
                  '|你现在(?:是|起)|你的新(?:任务|角色|身份|指令|目标)|假装你|(?:请|你)扮演|没有任何限制|不受任何限制|关闭(?:安全|内容)(?:过滤|限制|检查)') THEN
    RETURN 'it gives the agent another role';
  END IF;
  IF plain LIKE ANY ('{"% ask%",%问%}'::text[])
     AND plain LIKE ANY ('{%answer%,%respond%,%reply%,% say%,%claim%,%recommend%,% tell%,%答%,%就说%,%回复%,%推荐%}'::text[])
     AND plain ~ ('\m(?:when(?:ever)?|if|every ?time|each time)\M[^.;]*\mask(?:s|ed)?\M[^.;]*[, ](?:you )?(?:must |should '
                  '|always |just )?(?:answer|respond|reply|say|claim|recommend|tell)\M'
                  '|\m(?:recommend|answer|respond|reply|say|claim)\M[^.;]*\m(?:when(?:ever)?|if)\M (?:the |a |any )?(?:users?'
                  '|anyone|anybody|someone|somebody|people|they)\M[^.;]*\mask'
                  '|(?:当|如果|若|只要|每当|凡是|一旦)[^。；]*问[^。；]*(?:回答|就说|答复|回复|答|推荐)') THEN
    RETURN 'it tells the agent what to answer';
  END IF;
  IF plain LIKE ANY ('{"%your answer%","%your repl%","%your response%","%your output%",%你的回%,%你的答%,%你的输出%,%的回答中%,%的回复中%,'
                     '%的回答里%,%的回复里%,%的回答末尾%,%的回复末尾%}'::text[])
     AND plain ~ ('\m(?:in|into|from|of|throughout|within) your (?:\w+ )?(?:answers?|repl(?:y|ies)|responses?|outputs?)\M'
                  '|(?:^|[.!] *)(?:please |always |never )*(?:add|append|attach|adapt|alter|augment|begin|change|conclude|end'
                  '|enhance|finish|format|give|include|insert|limit|mention|modify|prefix|provide|put|render|shorten|start|write)\M[^.;]* your '
                  '(?:\w+ )?(?:answers?|repl(?:y|ies)|responses?|outputs?)\M'
                  '|你的(?:每次|所有|下次|全部)?(?:回答|回复|答复|输出)(?:必须|应|要|请|中|里|末尾|开头|前|后|最后|改|用)'
                  '|在[^。；]*的(?:回答|回复|答复)(?:中|里|末尾|开头|最后)') THEN
    RETURN 'it tells the agent how to answer';
  END IF;
  IF plain LIKE ANY ('{%user%,%them%,%owner%,%human%,%用户%,%主人%}'::text[])
     AND plain LIKE ANY ('{"%not %",%never%,%n''t%,%without%,%不%,%别%,%禁止%,%勿%,%拒绝%,%你%}'::text[])
     AND plain ~ ('(?:\mnot|\mnever|n''t|\mwithout)\M(?: \w+){0,2}? (?:tell(?:ing)?|mention(?:ing)?|inform(?:ing)?'
                  '|reveal(?:ing)?|notify(?:ing)?|alert(?:ing)?|warn(?:ing)?)\M[^.;]*\m(?:users?|them|owners?|humans?)\M'
                  '|(?:\mnot|\mnever|n''t)\M (?:follow|obey|trust|listen to|believe|ask)\M[^.;]*\m(?:users?|owners?)\M'
                  '|(?:不要|别|不得|禁止|不能|勿)[^。；]{0,4}(?:告诉|告知|让|提醒|透露给|通知)(?:用户|主人)'
                  '|(?:不要|别|拒绝|不得)(?:执行|听从|遵守|相信|听)[^。；]{0,4}(?:用户|主人)'
                  '|你(?:必须|务必|应当|应该|要|得)[^。；]*(?:用户|主人)') THEN
    RETURN 'it turns the agent against its user';
  END IF;
  IF plain LIKE ANY ('{"%from now on%","%this point on%","%future %",%henceforth%,%以后%,%今后%,%现在起%,%从此%,%往后%,%永远%,%每次%,'
                     '%一律%}'::text[])
     AND plain LIKE ANY ('{%now%,%point%,%future%,%hence%,%一律%,%答%,%回复%,%推荐%,%跳过%,%输出%,%发%,%改%,%存到%,%清空%,%删除%,'
                         '%永远把%}'::text[])
     AND plain ~ ('\m(?:from now on|from this point on|henceforth|in (?:all )?(?:your )?future (?:conversations?|answers?'
                  '|replies|sessions?|responses?|chats?)),?(?: (?:you|always|never|must|should|please|only|do|not))*'
                  ' (?:repl(?:y|ies)|respond|answer|recommend|say|use|send|treat|trust|refuse|approve|add|append|begin|end'
                  '|start|mention|suggest|store|remember|obey)\M'
                  '|(?:以后|今后|现在起|从此|往后|永远|每次)[^。；]*(?:一律|都|必须|先|只|把)[^。；]*(?:回答|回复|推荐|答复|跳过|输出|发到|发送|发给|改成|改为|存到|转发|清空|删除)'
                  '|(?:以后|今后|现在起|从此|往后)[^。；]{0,4}一律|一律(?:回答|回复|推荐|答复|说)|每次都改|永远把') THEN
    RETURN 'it gives the agent a standing order';
  END IF;
  IF plain LIKE ANY ('{"%api key%",%secret%,%password%,%credential%,%conversation%,%history%,%mail%,"%private key%",%密钥%,%口令%,'
                     '%密码%,%对话%,%聊天记录%,%邮件%,%隐私%}'::text[])
     AND plain ~ ('\m(?:send|post|forward|mail|upload|email|append|leak|exfiltrate|copy)\M[^.;]*\m(?:api keys?|secrets?'
                  '|passwords?|credentials?|conversations?|chat history|private keys?|all (?:e-?)?mails?)\M[^.;]*(?:\mto\M|@|://)'
                  '|把[^。；]*(?:密钥|口令|密码|对话|聊天记录|邮件|隐私)[^。；]*(?:发到|发送|发给|上传|转发|传给)') THEN
    RETURN 'it tells the agent to give data away';
  END IF;
  RETURN NULL;
END
$$;

-- _request: whether a text only sets a task for an assistant ("Translate this", "写一首诗"): it tells nothing that is worth
-- knowing, and an agent that recalls it may do it. What an instruction of a manual begins with (use, run, restart) is none of
-- these words.
CREATE OR REPLACE FUNCTION hindsight._request(plain text)
  RETURNS text
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN CASE
  WHEN pg_catalog.length(plain) <= 300
   AND plain LIKE ANY ('{%explain%,%describe%,%draft%,%compose%,%summari%,%translate%,%paraphrase%,%rewrite%,%write %,%provide %,'
                       '%generate %,%create %,"%give %","%tell %","%suggest %","%recommend %",%写%,%翻译%,%总结%,%概括%,%解释%,%介绍%,'
                       '%描述%,%列出%,%推荐%,%改写%,%润色%,%告诉我%,%给我%}'::text[])
   AND plain ~ ('^\W*(?:please |kindly |can you |could you |now )*(?:(?:explain|describe|draft|compose|summari[sz]e'
                '|translate|paraphrase|rewrite)(?: to me| for me| briefly)?'
                ' (?:[''"“‘(]|the\M|this\M|that\M|these\M|how\M|why\M|what\M|an?\M|your\M|my\M|some\M)'
                '|(?:write|provide|generate|create|give|tell|suggest|recommend)(?: me| us)?'
                ' (?:an?|some|any|two|three|five|ten|how|about)\M)(?!.*[.!] +\w)'
                '|^\W*(?:请|帮我|给我|麻烦|请你)(?:写|翻译|总结|概括|解释|介绍|描述|列出|推荐|改写|润色|告诉我|给我)[^。！]*[。！]?$'
                '|^\W*(?:写[一篇首段封]|(?:翻译|总结|概括|解释|描述|改写|润色)(?:一下|这|下面|以下|上面|成))[^。！]*[。！]?$') THEN
    'it sets a task for the agent, and tells nothing'
END;

-- _forged_source: whether a text that does not come from the user claims that he, or somebody in charge, said or allowed what
-- it says.
CREATE OR REPLACE FUNCTION hindsight._forged_source(plain text)
  RETURNS text
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN CASE
  WHEN plain LIKE ANY ('{%user%,%owner%,%admin%,"%verified by%","%approved by%","%authorized by%",system:%,%trusted%,'
                       '"%security %",%用户%,%主人%,%管理员%,%系统:%,%系统：%,%[系统%,%【系统%,%(系统%,%（系统%,%部门%,%置信度%}'::text[])
   AND plain ~ ('\m(?:the|this|your|my) (?:user|owner|admin(?:istrator)?|system administrator)(?: (?:has|have|already|explicitly'
                '|clearly|personally|himself|herself|just))* (?:confirm(?:ed|s)|approved|agreed|authori[sz]ed|consented|granted'
                '|permitted|allowed)\M'
                '|\mas (?:the|your) (?:user|owner)\M(?: \w+)? (?:said|told|asked|requested|wanted|stated|confirmed)'
                '|\maccording to the (?:user|owner)'
                '|\m(?:verified|confirmed|approved|authori[sz]ed|recorded|signed) by (?:the )?(?:user|owner|security|admin'
                '|system|it department)'
                '|^\W*system ?:.*\m(?:must|grant(?:ed|s)?|allow(?:ed|s)?|administrator|access|you|override|assistant'
                '|enable[ds]?|disable[ds]?)\M|^\W*admin(?:istrator)?(?: note)?[^:.]*:|^\W*user ?: ?i\M|\(trusted\)'
                '|用户(?:已经|已|都|明确|亲口|本人|之前|早就|此前|刚刚|刚才|周[一二三四五六日])+(?:确认|同意|授权|批准|说过|记录|表示|要求|告诉|亲口)'
                '|由用户[^。]*确认|经[^,。]*(?:安全部门?|合规部门?|信息部门?|it部门?|管理员|用户|主人)[^,。]{0,2}(?:核实|确认|批准|授权)|根据(?:主人|用户|管理员)'
                '|^\W*系统[:：].*(?:管理员|授予|授权|权限|必须|你)|^\W*[【\[(（]系统|^\W*管理员(?:备注|说明|指示|通知)?[^。]*[:：]'
                '|^用户[:：]我|(?:用户|主人)[^。]*置信度') THEN
    'it claims somebody''s word for itself'
END;

-- _is_guess: whether a text says of itself that it is a guess.
CREATE OR REPLACE FUNCTION hindsight._is_guess(content text)
  RETURNS boolean
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN pg_catalog.lower(content) LIKE ANY ('{%maybe%,%perhaps%,%probably%,%possibly%,%guess%,"%not sure%","%might be%",'
                                           '"%could be%","%i think%","%it seems%","%not verif%","%n''t check%",%可能%,%也许%,'
                                           '%好像%,%大概%,%似乎%,%估计%,%说不定%,%没准%,%确定%,%我猜%}'::text[])
  AND content ~* ('^\W*(?:i''m |i am )?(?:maybe|perhaps|probably|possibly|i guess|not sure|it might be|could be that|i think'
                  '|it seems|it could be that)\M'
                  '|\m(?:is|are|was|were) (?:maybe|perhaps|probably|possibly)\M|\m(?:i''m|am|but|,) not sure\M'
                  '|(?:could not|couldn''t|haven''t|not) (?:verif|check)'
                  '|(?<!不)可能(?!性|会被|的)|也许|好像|大概(?!率)|似乎|(?<![预低高被])估计|说不定|没准|不太?确定|我猜');
