-- What an English clause gives itself away by. The rules that read these signs are in 05_extraction.sql.

-- _english_sign: the pattern of one kind of saying, for a clause as _plain gives it: contractions written out (i am, do not),
-- adverbs left out, no conjunction before it, and a space around each word, which is faster than to ask for the ends of words.
-- A session keeps 32 compiled patterns and compiles the others each time. So they are few and repeat no group, and Chinese has
-- its own: each character that a pattern names multiplies what its classes cost. In one pattern for both, a turn took 300 ms.
CREATE OR REPLACE FUNCTION hindsight._english_sign(kind text)
  RETURNS text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE kind

  -- Nobody says it for true: what would be if, what others are said to say, a part that is played.
  WHEN 'unreal' THEN
    ' (?:if (?:i|we|you|it|they|he|she|there) (?:had|were|was|used|could|did|got|went|won)|if only|suppose|supposing|imagine'
    '|pretend|assume|assuming|let''s say'
    '|what if|hypothetically|would (?:not )?(?:have|be)|(?:i|we) would(?! (?:like|rather|love|prefer) )|act as|act like'
    '|role ?play|you are an?'
    '|(?:i|we|once|have) (?:read|heard) (?:somewhere|that|about|on|in|from)|(?:someone|somebody|people|everyone|they|he|she'
    '|boss|friend|colleague|neighbou?r|guy|brother'
    '|sister|mother|father|news|internet|blog) (?:say|says|said|told|claim|claims|thinks?|reckons?)|apparently|allegedly'
    '|rumou?rs?|supposedly|reportedly|who knows) '

  -- It asks for something in this conversation, of the assistant.
  WHEN 'request' THEN
    '^ (?:can you|could you|would you|will you|please|write|translate|make|fix|show|give|explain|list|add|run|send|draft'
    '|summari[sz]e|shorten|keep|change|rename|book|cancel|tell'
    '|help|check|try|take|correct|quiz|let me|ship|do(?! not)|do not (?:worry|bother|stop)|go|create|delete|remove|update'
    '|convert|rewrite|format|find|search|look|open|read'
    '|compare|generate|continue|scale|double-check|drop|less|more|another|no need|i want you|i want to|i would like'
    '|i need(?! to (?!know|see|understand|find|figure|get|write))'
    '|i am looking for|looking for|set up|tighten|start'
    '|stop|sort|count|pick|recommend|suggest|feel free) '

  -- What was so for a moment only, is over, is felt, or is said of the conversation.
  WHEN 'passing' THEN
    ' (?:(?:i|we)(?: am| are| have been| was| were)(?: so| back| a bit| now| not)? (?!learning|studying|living|training'
    '|playing|working (?:at|as|for|in|on the)|switching|moving|using'
    '|allergic)(?:tired|busy|hungry|bored|sick|late|ill|stuck|lost|confused|sorry|happy|glad|sad|excited|ready|done|here|back'
    '|home|afraid|scared|nervous|worried|grateful'
    '|impressed|amazed|surprised|[a-z]+ing)'
    '|(?:i|we)(?: have(?! (?:played|worked|lived|used|known) )| always| sometimes| never| usually)? (?:went|got|tried|had|did'
    '|said|came|won|lost|saw|took|found|made|met|heard|guess|bet|hope|wonder|feel|felt|believe|fear'
    '|worry|find it|do not (?:know|feel|have any)|wish|wanted|thought|forgot|played|slept|barely|might|may|could|(?!decid'
    '|agree|mov|pick|chang|switch|migrat|settl|promis|nam|renam'
    '|rais|us|ne|fe|spe)[a-z]+ed)'
    '|installed|noticed|started|got|finished|today|tonight|right now|just now|at the moment|this (?:morning|afternoon|evening)'
    '|yesterday|last (?:night|week|month|year|time)'
    '|a minute ago|no idea|thinking (?:about|of)|(?:maybe|perhaps) i|i will (?:try|see|think|check|look)|we will see'
    '|we (?:should (?:move|try|think)|can|could)'
    '|(?:i|we) will (?!use|go with|only|never|always|be (?:in|at|on))|(?:makes?|bores?|enables?|allows?|helps?|gives?) me'
    '|to you|yet|ai companion|chatbot|with you'
    '|your (?:advice|suggestions?|help|recommendations?|answer|idea|support|tips?)|(?:want|would like|like) to (?:travel|go'
    '|see|visit|know|find|chat|talk|share|learn|ask|try)'
    '|have to (?:go|leave|run)|bye|goodbye|again next time|see you|if you|you (?:are|can|cannot|could|should|may|might|must)|lol|hehe|haha|hahaha|love it|thanks?|thank you|(?:my|our|the'
    '|his|her|their|it|this|that)(?: [a-z]+)?(?: [a-z]+)? (?:was|were|had|went)) '

  -- Something does not work. Without its cure that is a moment too.
  WHEN 'problem' THEN
    ' (?:fails?|failed|failing|failure|errors?|refused|crash|crashes|crashed|crashing|broken?|hangs?|hung|will not (?:start'
    '|open|connect|work|boot)|can ?not (?:connect|start|open|find|log)'
    '|not (?:detected|found|working|starting)|does not (?:work|start|open)|stopped working|blank pages|leaking|rejected'
    '|times? out|timeouts?|denied|missing|returns? [45]\d\d'
    '|exception|stuck|all of a sudden|npm err) '

  -- It works now.
  WHEN 'solved' THEN
    ' (?:that (?:(?:did|fixed|solved|was) it|worked)|(?:works?|worked|fine|starts?|green|passes?|good|runs) (?:like a charm )?(?:now'
    '|again)|works like a charm|fixed (?:it|by|with|now)'
    '|solved (?:it|by)|(?:it|they|that|everything|all) (?:works|passes|passed|pass|prints fine)|was it|did the trick|resolved'
    '|(?:cause|culprit|fix) (?:was|is)'
    '|it was (?:because|due)|problem solved|turned out|works) '
  WHEN 'cause' THEN ' (?:found (?:it|out|the)|turns out|turned out|(?:cause|culprit|reason|problem) (?:is|was)) '
  WHEN 'tells how' THEN
    ' (?:by|with|because|cause|found it|solved it|fixed it|turns out|turned out|new|was set|changing|setting|adding|removing'
    '|switching|had to|needed) '

  -- They say that it is to be kept.
  WHEN 'explicit' THEN
    ' (?:remember(?: that| :| to| ,| the| my| our| we| i)|do remember|do not forget|note that|take note|keep in mind'
    '|bear in mind|for the record|for (?:future|later) reference'
    '|from now on|for your information|fyi|save this|memori[sz]e|(?:i|we)(?: have)? decided) '

  -- How it shall always be, or shall not.
  WHEN 'standing' THEN
    ' (?:always|never|from now on|in (?:the )?future|every time|each time|whenever|by default|as usual|any [a-z]+ you'
    '|every mistake|going forward|anything longer) '
  WHEN 'forbidding' THEN '^ (?:please |btw |and )?(?:do not|never|avoid|nothing|without|no(?! (?:idea|problem|need|thanks'
    '|thank|worries|one|way|doubt|matter|clue|that|it|i|we) )) [a-z]| (?:nothing|none) (?:before|after|with|of that) '

  WHEN 'todo' THEN
    ' (?:remind me|to-?do:?|(?:is|are|was) due|deadline|due (?:on|by|date)|do not forget(?: to|:)|remember to'
    '|(?:i|we|someone|somebody) (?:need|have|has|needs|must|ought)(?: got)? to|(?:has|have) to (?:reach|be)|(?:rotate|renew'
    '|pay|call|submit|send|book)) '
  WHEN 'dated' THEN ' (?:by|before|until|on|next|tomorrow|due|deadline|remind|about|end of|to-?do) '

  WHEN 'decision' THEN
    ' (?:(?:i|we)(?: have)? (?:decided|agreed|chose|picked|settled|opted|switched to|migrated to)|ended up (?:with|picking'
    '|choosing|using|going)|(?:i|we) (?:went with|stick with)|(?:let''s|let us|we will|i will) '
    '(?:go with|go for|stick|use|pick|switch|choose|adopt|move to)|let''s (?:take|call|keep|name|make|do)|(?:i am'
    '|we are) (?:going with|going to use|switching to|moving to)'
    '|going with|go (?:ahead )?with|the (?:first|second|third|fourth|last|former|latter) (?:one|option)|option [a-d1-4]'
    '|settled on) '
    '|^ (?:put|store|encrypt|deploy|host|save|log|use|sign) [^,.]+ (?:in|into|on|with|under|as) '

  WHEN 'preference' THEN
    ' (?:(?:i|we)(?: do not| do| always| usually| never| much)? (?:prefer|like(?! (?:i|it|that|this) )|love|hate|dislike|enjoy'
    '|adore|detest|can ?not stand)|prefers?|favou?rite|can ?not stand'
    '|allergic|vegetarian|vegan|i (?:always|never|usually|only)|as always|instead of|rather than|i do not (?:want(?! to)|eat'
    '|drink|use|do)|i write [a-z]+ english|only for (?:us|me)) '

  -- It is only half sure.
  WHEN 'hedge' THEN
    ' (?:maybe|perhaps|i think|i guess|i believe|probably|possibly|might|may be|not sure|if i recall|i suppose|as far as i'
    '|seems?|kind of) '

  -- It puts something right.
  WHEN 'correction' THEN
    '^ (?:(?:oh|hm|hmm|ah|oops|sorry|wait) (?:, )?)?(?:no|nope|wrong|actually|correction|not quite|that''s (?:wrong|not right'
    '|incorrect)) (?!(?:, )?(?:thanks?|problem|worries|need|idea|that''s|i do not|i have) )'
    '| actually[.! ]*$| (?:i meant|i was wrong|my mistake|i misspoke) '

  -- Somebody, something of theirs, and what it is or does all the time.
  WHEN 'fact' THEN
    '^ (?:in |on |at |of |most of |some of |one of |the |the [a-z]+ of |part of )?(?:my|our|his|her|their) (?!(?:god|goodness'
    '|gosh|bad|question|point|mistake|pleasure|apolog(?:y|ies)|fault|guess|last'
    '|previous|next|assistant|helpful|dear|friend [,.!]|friend $))'
    '| (?:(?:i|we) (?:am|are) (?:a|an|the|from|based|vegetarian|vegan|diabetic|allergic|left-handed|colou?r-?blind|learning'
    '|studying|living|using|running|working|useless|on first'
    '|married|divorced|\d+|(?:on|in|at|with) (?!(?:it|my way|the way|hold|a call|a hurry|time) )[^ ,.]+)'
    '|(?:i|we)(?: usually| always| only| never| do not| can ?not)? (?:live|work|run|own|have(?! (?:a (?:question|problem|idea)'
    '|no idea|to|been|seen|read|heard|made|done|gone|[a-z]+ed) )'
    '|use|study|speak|play|write|teach|ship|bill|host|deploy|store|drive|grow|raise|sell|manage|lead|maintain|support|pay'
    '|charge|eat|drink|sleep|commute|train|wear|deliver|promised'
    '|release|test|commit|publish|come from|grew up|was born|were born|moved|get sick|serve|employ|accept|open|close|offer'
    '|take(?! (?:a|it|that|this|care) ))'
    '|i have (?:been (?:a|an|in|at|with|on|learning|studying|playing|working|living|using|training)|played|worked|lived|used'
    '|known)|puts? (?:me|us)|is what we) '

  -- A verb by which a thing is or does something all the time; of a sentence that names things.
  WHEN 'states' THEN
    ' (?:is|are|has|have|runs?|lives?|listens?|uses?|takes?|expires?|starts?|costs?|belongs?|sits?|goes|go|keeps?|speaks?'
    '|reads?|writes?|stores?|holds?|requires?|needs?|wants?'
    '|must|can ?not|kills?|insists?|arrives?|opens?|closes?|turns|lasts|weighs|only|every|blocks?|moved|arrived|launched|owns?) '
  -- It judges, or is about nothing that it names.
  WHEN 'remark' THEN
    '^ (?:wow |haha )?(?:that|this(?! (?:machine|laptop|box|project|repo|repository|server|account|computer|pc|service|team) )'
    '|those|these|it|there|what|you|nice|great|good|looks?|sounds?|who) '
    '(?!.* (?:every|each|per|listens|runs|lives|expires) )(?!.*[a-z]\.[a-z])'

  -- Replies. The assistant asks whether something shall be so, not whether it shall do something now.
  WHEN 'proposal' THEN ' (?:shall|should|can|could) (?:we|i) (?:go with|use|take|switch|keep|stay|put|store|make it|call'
    '|deploy|host) | (?:ok|okay|fine|good) (?:for|with) you '
  WHEN 'consent' THEN '^ (?:yes|yeah|yep|sure|ok|okay|go ahead|go with|agreed|sounds good|fine|good|do it|do that|let''s) '
  WHEN 'about you' THEN ' (?:you|your|yours|how|which|when|where|who|anything|anyone|any|he|she|they|and (?:the|which)) '
  WHEN 'about this' THEN
    ' (?:it|this|that|these|those|says?|logs?|errors?|means?|shall i|should i|do you want|would you like|want me|ready|else'
    '|more|help|know|think|chat|talk|recommend|recommended'
    '|recommendations|suggest|suggestions|advice|feel|why|how about|what about|favou?rite|interesting|mood) '
  WHEN 'fragment' THEN
    '^ (?!(?:i|we|you|it|he|she|my|our|no|not|yes|yeah|well|actually|nothing|none|never|do|is|are|that|this|there|sure|ok|okay'
    '|maybe|of course|definitely|in|at first|recently|um|hm+|thanks?|exactly|right) )'
    '[^,.]+(?:[,.]|$)'
END;

-- _english_hint: parts of words of which the pattern of a kind needs one: cheaper than a pattern, and not compiled.
CREATE OR REPLACE FUNCTION hindsight._english_hint(kind text)
  RETURNS text[]
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE kind
  WHEN 'unreal' THEN '{"%if %",%suppos%,%imagin%,%pretend%,%assum%,"%let''s say%","%would %","% as %",%like%,%role%,'
    '"%you are a%","%read %","%heard %","% say%","% said%","% told%","% claim%",'
    '"% think%",%reckon%,%apparent%,%allege%,%rumo%,%reportedly%,%hypothet%,"%who knows%"}'
  WHEN 'solved' THEN '{"%that %",%now%,%again%,%charm%,%fixed%,%solved%,%works%,%pass%,%prints%,%was%,%trick%,"% is%",%turned%}'
  WHEN 'cause' THEN '{"%found %",%turn%,%cause%,%culprit%,%reason%,%problem%}'
  WHEN 'explicit' THEN '{%remember%,%forget%,%note%,%mind%,%record%,%reference%,"%from now on%",%information%,%fyi%,'
    '"%save this%",%memori%,%decided%}'
  WHEN 'standing' THEN '{%always%,%never%,"%from now%",%future%,%time%,%whenever%,%default%,%usual%,%any%,%every%,%forward%}'
  WHEN 'forbidding' THEN '{"%do not %","%never %",%avoid%,%nothing%,%without%,"% no %",%none%}'
  WHEN 'todo' THEN '{%remind%,"%need%",%must%,%ought%,"% has%","% have%",%due%,%deadline%,%forget%,%remember%,%to-do%,%todo%,'
    '%rotate%,%renew%,"%pay %","%call %",%submit%,"%send %","%book %"}'
  WHEN 'hedge' THEN '{%maybe%,%perhaps%,"%i think%","%i guess%","%i believe%",%probably%,%possibly%,%might%,"%may be%",'
    '"%not sure%",%recall%,%suppose%,"%as far as%",%seem%,"%kind of%"}'
  WHEN 'correction' THEN '{"% no %","% no %","% no",%wrong%,%actually%,%correction%,"%not quite%",%incorrect%,"%not right%",'
    '%meant%,%mistake%,%misspoke%}'
  WHEN 'preference' THEN '{%prefer%,"% like%",%love%,%hate%,%dislike%,%enjoy%,%ador%,%detest%,%stand%,%favo%,%allergic%,'
    '%vegetarian%,%vegan%,"% always%","% never%","%usual%","% only%","%instead of%",'
    '"%rather than%","% do not%","% english%"}'
  WHEN 'decision' THEN '{%decid%,%agree%,%chose%,%pick%,%settle%,%opted%,"%ended up%","% went with%","%stick%","%let''s%",'
    '"%let us%","% will %","%go% with%","%going to use%","%switch%","%moving to%",'
    '"% one%",%option%,"%migrated%","% put %","% store %","% encrypt %","% deploy %","% host %","% save %","% log %",'
    '"% use %","% sign %",%former%,%latter%}'
  WHEN 'problem' THEN '{%fail%,%err%,%refus%,%crash%,%brok%,%hang%,%hung%,%cannot%,"%can not%","% not %",%stopped%,%blank%,'
    '%leak%,%reject%,%time%,%denied%,%missing%,%return%,%exception%,%stuck%,%sudden%}'
  WHEN 'fact' THEN '{"% my %","% our %","% his %","% her %","% their %","% i %","% we %","% me %","% us %"}'
  ELSE '{%}'
END::text[];
