-- What paraphrase changes: words that say the same, words that say nothing, and those that others hang on. General knowledge:
-- to be extended for a word that any user would need, never for a sentence.

-- _lexicon: word or phrase → what it stands for. An entry is `meaning = words`. Of a meaning
--   nothing   the words are left out: they change the tone, or repeat what the grammar says already
--   _word     what follows hangs on it: a negation, a quantifier, a modal verb
--   ~word     what follows is an adjunct, which may stand elsewhere in the sentence: a preposition, a conjunction
--   #number   a number;   &   stands between the items of a list
-- A phrase wins over its words, so that one can be exempted: 自己=自己. English words of the first text are met as they are
-- written (usually is left out, usual is not), those of the others in all their forms, by their stems.
-- Called without arguments and immutable: a session computes it once, when the plan of its caller is made.
CREATE OR REPLACE FUNCTION hindsight._lexicon()
  RETURNS jsonb
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (
  WITH entry AS MATERIALIZED (
    SELECT t.place > 1 AS is_stemmed, pg_catalog.btrim(pg_catalog.split_part(e, '=', 1), E' \n') AS meaning,
           pg_catalog.split_part(e, '=', 2) AS words
    FROM pg_catalog.unnest(ARRAY[hindsight._plain_words() || ';' || $$
=a,an,the,is,are,am,was,were,be,been,being,do,does,did,will,wo,shall,that,which is,which are,who is,who are,there is,
there are,it,its,as a reminder,just a reminder,reminder,note that,please,please note,please note that,keep in mind that,
bear in mind that,remember that,fyi,by the way,btw,it turns out that,it turns out,turns out,as it turns out,
it turned out that,actually,basically,in fact,as a matter of fact,to be honest,honestly,for the record,for your information,
just so you know,it is worth noting that,it should be noted that,the thing is,of course,obviously,clearly,essentially,
in essence,as you know,generally,in general,generally speaking,usually,normally,typically,ordinarily,as a rule,simply,well,
also,too,as well,additionally,in addition,moreover,furthermore,still,already,currently,now,at the moment,at present,
at this point,right now,nowadays,these days,presently,very,really,indeed,certainly,definitely,it is true that,
it is a fact that,happens to,happen to,tends to,tend to,located,situated,in total,altogether,to be clear,in short,
in other words,to recap,works as,work as,working as,needless to say,for what it is worth,long story short,interestingly,
fortunately,unfortunately,naturally,admittedly,frankly,truth be told,you know,mind you,after all,at the end of the day,
all things considered,for context,for reference,quick note,heads up,just to clarify,to clarify,to summarize,in summary,
to sum up,overall,on the whole,the fact is that,the truth is that,as mentioned,as mentioned before,as i said,as said before,
as noted,as stated earlier,it should be mentioned that,it is important to note that,it is worth mentioning that,
one thing to note is that,the point is that,what matters is that,mainly,in practice,in reality,in the meantime,is going to,
are going to,as of now,as of today,so far,until now,to date,for now,do note that,了,着,吗,呢,吧,啊,呀,哦,嘛,啦,也,都,均,皆,就,便,已,已经,曾,曾经,现在,
目前,如今,当前,眼下,现时,仍,仍然,依然,依旧,一般,通常,平时,平常,一般来说,通常来说,一般情况下,通常情况下,正常情况下,其实,实际上,事实上,说白了,说到底,总的来说,总体来说,总之,换句话说,也就是说,简单来说,简单地说,坦白说,老实说,
说实话,顺便说一下,顺便说一句,顺便提一下,顺带一提,另外,此外,请,请注意,提醒一下,需要说明的是,需要注意的是,要知道,查下来,看下来,原来,结果发现,后来发现,基本上,会,一律,一概,的话,所以,因此,因而,于是,非常,很,十分,特别,相当,
极其,个,位,名,这个,该,所,之,当然,显然,确实,的确,一共,总共,共,合计,总计,进行,麻烦你,值得一提的是,需要指出的是,要说明的是,要注意的是,事实是,老实讲,众所周知,大家都知道,顺便,对了,话说,说起来,总而言之,简而言之,一句话,综上,
总结一下,补充一下,补充一点,补充说明一下,再次提醒,如前所述,正如之前所说,经确认,经查,经过排查,排查后发现,排查下来,调查发现,后来才知道,目前来看,目前为止,到目前为止,截至目前,事实证明,毫无疑问,毕竟,反正,可以说,平日里,平日,日常,
一向,历来,向来,都会,就会,便会,说句实话,讲真,归根结底,归根到底,说穿了,究其原因,从根本上说,大体上,总的说来,我跟你说,跟你说,怎么说呢,真的,算是,应该说,确切地说,准确地说,就是说,换言之,目前来说,话说回来,严格来说,严格地说,
具体来说,具体而言,说来; 's=的; of=of; 是=是,即是,就是,便是,是一个,是一名,是一位,是个,是位,乃是,即为; 用=用的是,使用的是,采用的是; _不会=不会,不太会; _会=会说,会做,会开,会用,会写,会弹,会唱,会游,会骑,
会编,会修,学会; _not=not,do not,does not,did not; _not _can=ca not,can not,cannot,could not,unable to,not able to,incapable of;
_can=can,could,able to,capable of; _no=no,none; nobody=no one; _no_longer=no longer; _must=must,have to,has to,had to,need to,
needs to,needed to,required to,obliged to; _should=should,ought to,supposed to; _might=might,maybe,perhaps,possibly;
_never=never; _may=may; _would=would; _just=just; _even=even; _any=any; _few=few; _much=much; _more=more; _less=less;
_least=least; _only=only,solely,exclusively,merely,nothing but; _all=all,every,each,every single,all of,each of;
everyone=everybody; _some=some,some of,several,a few,a couple of,a little; _most=most,most of,the majority of; _many=many,
a lot of,lots of,plenty of,numerous; _at_least=at least,a minimum of,no less than,no fewer than,not less than;
_at_most=at most,up to,a maximum of,no more than,not more than; _almost=almost,nearly; _exactly=exactly,precisely; _over=over,
more than,greater than,higher than,exceeding; _under=under,less than,fewer than,lower than,below; phone=named;
_not open=is closed,are closed,stays closed,remains closed,is shut; _no_longer not=not anymore; _不=不,并不; _没=没,没有,还没,还没有,未,尚未,
未曾; _无=无; _非=非,并非; _别=别,勿; _不再=不再; _从不=从不,从来不,从来都不; _从没=从没,从未,从来没,从来没有; _不全=不都,不全,并不都,不是所有; _能=能,可以,可,能够; _不能=不能,不可以,不可,无法,没法,
没办法,不能够; _不允许=不允许,禁止,不得,不许,不准,严禁; _允许=允许,准许; _必须=必须,务必,必需,必得,一定要; _不必=不必,不用,无需,无须,不需要,用不着; _应=应,应该,应当,理应; _可能=可能,也许,或许,说不定;
_只=只,仅,仅仅,只有,单单; _最=最; _更=更,更加; _太=太; _所有=在每,在每个,所有,全部,一切,全体,各,每,每个; _大多=大多,大多数,多数,大部分; _有些=有些,部分,一些,某些; _至少=至少,最少,起码,不少于,不低于;
_至多=至多,最多,不超过,不多于,顶多; _超过=超过,大于,高于,多于; _不足=不足,小于,低于,少于,不到; _约=约,大约,大概,约莫,差不多,近; ~in=in,inside,within,based in,inside of;
~on=on,upon,on top of; ~at=at; ~from=from; ~to=to,toward,towards,in order to,so as to; ~into=into; ~onto=onto; ~by=by;
~for=for; ~with=with,together with,along with; ~without=without; ~before=before,prior to,ahead of; ~after=after,subsequent to;
~until=until,till; ~since=since,ever since; ~during=during; ~while=while; ~when=when,whenever,once,as soon as;
~between=between; ~through=through,via,by means of,throughout; ~about=about,approximately,roughly,circa,approx,around,
regarding,concerning,with regard to,with respect to,in regard to; ~against=against; ~across=across; ~behind=behind;
~near=near,close to,next to; ~per=per; ~than=than; ~as=as; ~like=such as; ~according=according to,as per; ~because=because,
because of,due to,owing to,thanks to,as a result of,on account of; ~if=if,provided that,on condition that,in case;
~unless=unless; ~above=above; ~except=except,apart from,other than,except for; ~although=although,though,even though;
~instead=instead of,rather than,in place of; ~despite=despite,in spite of; &=and,as well as,plus; or=or; but=but,however,
whereas; ~在=在,位于,处于,坐落于,坐落在; ~从=从,自,自从,打从; ~到=到,至,直到; ~对=对,对于; ~给=给; ~向=向,往,朝; ~比=比; ~被=被,是被; ~由=由,是由; ~把=把,将; ~因为=因为,由于,因,
因为有,鉴于; ~如果=如果,假如,要是,若,倘若,若是; ~当=当; ~为=为了,为; ~除=除了,除; ~按=按照,按,根据,依照,依据; ~关于=关于,有关; ~通过=通过,经由; ~虽=虽然,尽管; &=和,与,及,以及,并且,而且,并,还有;
~跟=跟; 或=或者,或是,抑或; 但=但是,不过,可是,然而,只不过; 后=之后,以后; 前=之前,以前; 时=的时候,时候; 期间=这段时间,在此期间,这期间; 今天~=今天,今日; 明天~=明天,明日; 昨天~=昨天,昨日; 今年~=今年;
明年~=明年; 去年~=去年; 周末~=周末; 早上~=早上,早晨,清晨; 上午~=上午; 中午~=中午; 下午~=下午; 晚上~=晚上,晚间,夜里; 凌晨~=凌晨; 上周~=上周,上星期; 下周~=下周,下星期;
yesterday~=yesterday; tomorrow~=tomorrow; weekend~=weekends,weekend; tonight~=tonight; 自己=自己; 有 #1=有个,有一个,有一名,有一位; _不 同意=不同意;
#1.5=一个半; #2.5=两个半; 是 #1.5=是一个半; 自动=自动; 自由=自由; 及时=及时; 参与=参加,出席; 不同=不同; 不错=不错; 无线=无线; 别人=别人; 未来=未来; #0=zero; #1=one;
#2=two; #3=three; #4=four; #5=five; #6=six; #7=seven; #8=eight; #9=nine; #10=ten; #11=eleven; #12=twelve,a dozen;
#13=thirteen; #14=fourteen; #15=fifteen; #16=sixteen; #17=seventeen; #18=eighteen; #19=nineteen; #20=twenty; #30=thirty;
#40=forty; #50=fifty; #60=sixty; #70=seventy; #80=eighty; #90=ninety; *100=hundred; *1000=thousand; *1000000=million;
*10000=万; #100=a hundred; #1000=a thousand; #30 minute=half an hour,half hour,半小时,半个小时; #2 time=twice; #12:00pm=noon,midday,
正午; #0:00am=midnight,午夜; 1st=first; 3rd=third; 4th=fourth; 5th=fifth; 周~1=monday,mondays,周一,星期一,礼拜一; 周~2=tuesday,tuesdays,周二,
星期二,礼拜二; 周~3=wednesday,wednesdays,周三,星期三,礼拜三; 周~4=thursday,thursdays,周四,星期四,礼拜四; 周~5=friday,fridays,周五,星期五,礼拜五; 周~6=saturday,
saturdays,周六,星期六,礼拜六; _all 周~1=on mondays; _all 周~2=on tuesdays; _all 周~3=on wednesdays; _all 周~4=on thursdays;
_all 周~5=on fridays; _all 周~6=on saturdays; _all 周~7=on sundays; 周~7=sunday,sundays,周日,周天,星期日,星期天,礼拜天,礼拜日; 1月=january,jan;
2月=february,feb; 3月=march; 4月=april,apr; 6月=june,jun; 7月=july,jul; 8月=august,aug; 9月=september,sept,sep; 10月=october,oct;
11月=november,nov; 12月=december,dec; _all day=daily,every day,each day,per day; _所有 day=每日,天天; _all night=nightly,every night,
each night,per night; _all week=weekly,every week,each week,per week; _all month=monthly,every month,per month;
_all year=yearly,annually,every year,per year; _all hour=hourly,every hour,per hour; %=percent,per cent; second=s,sec,secs,
seconds,秒,秒钟; minute=min,mins,minutes,分钟; hour=h,hr,hrs,hours,小时,个小时,钟头; day=days,天; week=weeks,周,星期,礼拜,个星期; month=months,个月;
ms=milliseconds,millisecond,毫秒; km=kilometers,kilometer,kilometres,kilometre,公里,千米; m=meters,meter,metres,metre,米;
cm=centimeters,centimetres,厘米; kg=kilograms,kilogram,kilos,公斤,千克; gb=gigabytes,gigabyte; mb=megabytes,megabyte; tb=terabytes,
terabyte; kb=kilobytes,kilobyte; usd=dollar,dollars,$,美元,美金; eur=euro,euros,€,欧元; cny=yuan,rmb,元,块,块钱,人民币
$$, $$
begin=start,commence,kick off; write down=jot down,note down; wake up=get up; look at=view; figure out=make out;
set up=configure; carry out=perform,conduct; point out=mention; find out=learn; turn into=become; carry on=continue,go on,
proceed; hand in=submit,turn in; fill in=fill out; head=lead; own up=admit; pick up=fetch; end=finish,conclude;
complete=finalize; stop=halt,cease; buy=purchase; car=automobile; phone=call,ring,telephone; remove=delete,erase,discard,
get rid of,throw away; large=big,huge; fast=quick,rapid,quickly,speedy; help=assist,aid; show=display; use=utilize,utilise,
make use of,employ; build=construct; fix=repair,mend; choose=select,pick; get=receive,obtain; reply=answer,respond;
live=reside,dwell; work for=work at,be employed by,employed by,employed at; company=firm; child=kid; mother=mom,mum,mommy;
father=dad,daddy; grandmother=grandma,granny; grandfather=grandpa,granddad; photo=photograph; movie=film; tv=television;
bike=bicycle,cycle; apartment=flat; elevator=lift; vacation=holiday; store=save; doctor=physician; lawyer=attorney; sick=ill,
unwell; happy=glad; angry=mad; afraid=scared,frightened; smart=clever,intelligent; rich=wealthy; easy=simple; hard=difficult,
tough; wrong=incorrect; entire=whole; enough=sufficient; often=frequently; rarely=seldom,hardly ever; sometimes=occasionally,
from time to time; immediately=instantly,at once,right away,straight away; soon=shortly; allow=permit,let; enable=turn on,
switch on,activate; disable=turn off,switch off,deactivate; like=enjoy,be fond of; hate=detest,loathe; want=wish,would like;
plan=intend; require=need; contain=include; happen=occur,take place; leave=depart; return=come back; move=relocate;
change=modify,alter; increase=raise,go up,rise; decrease=reduce,go down,lower; improve=enhance; postpone=delay,push back,
put off,defer; cancel=call off; search=look for,seek; find=locate,discover; discuss=talk about; participate=take part,partake;
quit=give up,resign from; run=execute; publish=release; restart=reboot; copy=duplicate; directory=folder; app=application;
db=database; repo=repository; config=configuration; docs=documentation; admin=administrator; env=environment;
info=information; kubernetes=k8s; postgresql=postgres; javascript=js; monitor=screen; bug=defect; issue=problem;
customer=client; colleague=coworker,co worker,workmate; deadline=due date; salary=wage; have=own,possess;
responsible for=in charge of; look after=take care of; color=colour; favorite=favourite; center=centre; organize=organise;
gray=grey; license=licence; program=programme; theater=theatre; liter=litre; behavior=behaviour; neighbor=neighbour;
honor=honour; analyze=analyse; catalog=catalogue; labor=labour; flavor=flavour; rumor=rumour; humor=humour; realize=realise;
recognize=recognise; optimize=optimise; customize=customise; synchronize=synchronise,sync; summarize=summarise;
initialize=initialise; defense=defence; practice=practise; check=verify; airplane=aeroplane,plane; aluminum=aluminium;
tire=tyre; jewelry=jewellery; pajamas=pyjamas; email=mail; trash=garbage,rubbish; taxi=cab; cookie=biscuit; sofa=couch;
spouse=partner; luggage=baggage; mobile phone=cell phone,cellphone; gym=fitness center; dinner=supper; present=gift;
exam=examination; student=pupil; teacher=instructor; goal=objective,aim; result=outcome; reason=cause,lead to,result in,
bring about; way=manner; place=spot; part=portion; amount=quantity; kind=type,sort; job=occupation; say=state; tell=inform,
notify; ask=inquire,enquire,request; think=believe; try=attempt; keep=retain,maintain; give=provide,supply; cook=prepare food;
hurt=injure; close=shut; allergic to=allergy to,have allergy to; wed=marry; prefer=favor,favour; main=primary,principal;
latest=newest,most recent; previous=prior,former; next=upcoming; safe=secure; cheap=inexpensive; expensive=costly,pricey;
quiet=silent; noisy=loud; short=brief; long=lengthy; famous=well known; fridge=refrigerator; tap=faucet; shoe=footwear;
enormous=gigantic; beautiful=pretty; strange=odd,weird; correct=right answer; enjoyable=fun; lately=recently; trip=journey;
nation=country; illness=disease,sickness; medicine=medication,drug; injury=wound; forest=woods; stone=rock; coat=jacket;
trousers=pants; sweater=jumper; truck=lorry; petrol=gasoline; highway=motorway; pavement=sidewalk; post code=zip code,
postcode; queue=line up approve=approval; decide=decision,make decision; arrive=arrival,get to; fail=failure;
complain=complaint; reply=response; renew=renewal; refuse=refusal,decline,reject; propose=proposal,suggest,recommend;
grow=growth; lose=loss; analyze=analysis; extend=extension,prolong; expand=expansion; describe=description;
subscribe=subscription; permission=access right; important=importance; inspect=examine,review; gather=collect; warn=alert;
assess=evaluate,evaluation; estimate=guess; accept=agree to; achieve=accomplish,attain; adjust=adapt,tweak; annoy=irritate;
apologize=apologise,say sorry; appear=show up,turn up; argue=quarrel; assemble=put together; assign=allocate; assume=suppose;
await=wait for; beginner=novice; beverage=drink; block=obstruct; brave=courageous; clean=tidy; combine=merge,join;
comfortable=comfy; comprehend=understand,grasp; conceal=hide; create=generate,produce; crucial=vital,critical;
customer=patron; dead=deceased; delicious=tasty; deploy=roll out; destroy=demolish; detect=notice; device=gadget;
die=pass away; dine=eat out; dirty=filthy; document=write up; duration=length of time; eat=consume; encounter=run into,
come across; enroll=enrol,sign up,register; ensure=make sure,guarantee; exercise=work out; exhausted=worn out;
expect=anticipate; expire=run out,lapse; explain=clarify; forecast=predict; funny=amusing; garden=yard; glasses=spectacles,
eyeglasses; guide=manual,handbook; handle=deal with,take care; happy=pleased,content; illegal=unlawful; lack=be short of;
launch=go live; legal=lawful; link=connect; log in=sign in,login; log out=sign off,sign out; love=adore; mandatory=compulsory,
obligatory; migrate=transfer,shift; money=cash; nervous=anxious; tell=let know; object to=oppose; optional=not mandatory;
outdated=obsolete,out of date; package=parcel; pain=ache; pause=suspend; peak hours=rush hour; people=persons;
persuade=convince; power off=shut down; pregnant=expecting; prepare=get ready; prevent=avoid,keep from; protect=guard;
put on=wear; rarely=not often; refund=reimburse,pay back; rely on=depend on; remain=stay; rent=lease; replace=swap,substitute;
resign=step down; resolve=solve,sort out; restaurant=eatery; retry=try again; reveal=disclose; roommate=flatmate;
schedule=timetable; shout=yell; skip=omit; split=divide; staff=personnel; stick to=adhere to; subject=topic; talk=chat,
converse; thin=slim; transform=convert; urgent=pressing; vegetable=veggie; confirm=validate; victory=win; website=site,
web site; woman=lady; worried=concerned; write=author
$$, $$
_not allow=forbid,prohibit,ban,disallow; _not like=dislike; _not possible=impossible; _not available=unavailable;
_not known=unknown; _not happy=unhappy; _not used=unused; _not supported=unsupported; _not necessary=unnecessary;
_not married=unmarried; _not safe=unsafe,insecure; begin=initiate
$$, $$
住=居住,居于,定居; 买=购买,购入,购置; 想=想要,打算,准备要; 删除=删掉,清除,移除,删,去掉,清掉,清理; 开始=启动,开始执行; 结束=完成,完毕,完结; 父亲=爸爸,爸,老爸; 母亲=妈妈,妈,老妈; 妻子=老婆,太太; 丈夫=老公;
孩子=小孩,小孩子; 哥哥=哥; 姐姐=姐; 弟弟=弟; 妹妹=妹; 爷爷=祖父; 奶奶=祖母; 外公=姥爷,外祖父; 外婆=姥姥,外祖母; 喜欢=喜爱,爱,热爱,钟爱; _不 喜欢=讨厌,厌恶,反感; 害怕=怕,恐惧,畏惧; 高兴=开心,快乐;
难过=伤心; 手机=移动电话; 电脑=计算机; 自行车=单车,脚踏车; 出租车=的士,计程车; 医生=大夫; 老师=教师; 上级=上司,领导; 工作=上班,任职,供职,就职; 吃饭=用餐,就餐; 早饭=早餐; 午饭=午餐,中饭; 晚饭=晚餐;
土豆=马铃薯; 西红柿=番茄; 香菜=芫荽; 红薯=地瓜; 阅读=看书,读书; 说=讲; 告诉=告知,通知; 问=询问; 回答=答复; 帮助=帮忙,协助,帮; 修改=更改,改动,变更; 创建=建立,新建,创立; 增加=添加,新增,加; 减少=降低;
提高=提升,增强; 用=使用,采用,利用,运用,选用; 需要=需; 保存=存储,储存,存放,存,保留; 发送=发,发出; 收到=接收,接到; 打开=开启,启用; 关闭=关掉,关上; 停用=禁用; 停止=停掉,停下,终止,中止,停; 重启=重新启动;
安装=装; 登录=登陆; 运行=跑,执行; 迁移=转移; 经常=常常,时常,常,往往; 总是=老是,始终,一直; 有时=有时候,偶尔; 马上=立刻,立即,即刻; 住址=地址; 电话=电话号码; 邮箱=电子邮箱,邮件地址,邮箱地址; 邮件=电子邮件;
密码=口令; 端口=端口号; 账号=帐号,账户,帐户; 价格=价钱,售价; 费用=花费,开销; 工资=薪水,薪资; 租金=房租; 名字=姓名; 家乡=老家,故乡; 原因=理由,缘由; 叫=名叫,叫做,称为,名为,取名,命名为; 患=患有,得了;
附近=周边; 包含=包括,含有,包含有; 缺少=缺乏,缺; 得到=获得,取得; 选择=挑选,选; 同意=赞成; 举行=召开,举办; 检查=核查; 显示=展示; 用户=使用者,user; 客户=顾客; 最晚=最迟; 漂亮=美丽,好看; 快=迅速,快速;
最近=近来,近期; 很多=许多,不少,大量,好多; 如何=怎么,怎样; 什么=啥; 困难=难; 容易=简单; 昂贵=贵; 文件夹=目录; 照片=相片; 电影=影片; 公司=企业; 朋友=友人; 味道=口味; 旅行=旅游,出游; 出发=动身,启程;
到达=抵达; 返回=回到,回去; 结婚=成婚; 去世=过世,逝世; 生病=患病; 吸烟=抽烟; 喝酒=饮酒; 锻炼=健身; 睡觉=入睡; 学习=学; 教=教授; 写=编写,撰写; 记录=记下; 推迟=延期,延后,推后; 建议=提议; 尝试=试;
寻找=找,查找; 设置=设定,设为,设成; 生成=产生; 恢复=还原; 默认=缺省; 临时=暂时; 全量重建=从头重建; 忽略=无视; 租=租赁,租用; 修=修理,维修,修复; 坏=损坏; 丢=丢失,遗失; 赠送=送给; 吃=食用; 喝=饮用;
戴=佩戴; 开车=驾车,驾驶; 走路=步行; 等=等待,等候; 见=见面,会面; 遇到=碰到,遇见; 忘=忘记; 记=记住,记得; 认识=结识; 知道=知晓,晓得; 认为=觉得,以为; 希望=期望,盼望; 担心=担忧; 改进=改善,改良; 调查=排查;
讨论=商讨,商议,商量; 沟通=交流; 汇报=报告; 批准=审批; 提交=递交,上交; 取消=撤销; 拆分=拆解; 替换=替代,取代; 更换=换; 读取=读; 查询=查; 监控=监测; 报警=告警; 避免=防止; 保证=确保; 依赖=依靠;
来自=源自,来源于; 导致=造成,引起,引发,致使; 女儿=闺女; 男友=男朋友; 女友=女朋友; 室友=舍友; 员工=职员,雇员; 饭店=餐馆,饭馆,餐厅; 商店=店铺; 房子=住房,住宅,房屋; 家=家里; 汽车=车,轿车; 火车=列车;
公交=公交车,公共汽车,巴士; 礼物=礼品; 衣服=衣物; 药=药物,药品; 病=疾病; 书=书籍; 歌=歌曲; 网站=站点; 网址=链接; 硬盘=磁盘; 屏幕=显示器,显示屏; 仓库=代码库,代码仓库; 计划=规划; 开发者=开发人员; 生产=线上;
云端=云上; 令牌=token; 接口=api; 显卡=gpu; 处理器=cpu; 紧急=急; 缓慢=慢; 便宜=廉价; 干净=整洁; 舒服=舒适; 累=疲惫,疲劳; 忙=忙碌; 热=炎热; 冷=寒冷; 逐渐=渐渐,慢慢; 突然=忽然; 刚=刚刚,
刚才; 很少=极少,不常; 完全=彻底; 一起=一同,一块儿; 独自=一个人; 手动=人工; 次=遍,回,趟; 起床=起身; 截止日期=最后期限; 期限=时限; 每逢=每到,每当; 起=开始算; 大家=所有人,每个人,人人; 没人=没有人,无人;
生日=出生日期; 国外=海外; 上传=传到; 毕业于=从毕业; 预订=预定; 座位=位子; 离职=辞职; 招聘=招; 主管=主任; 擅长=善于; 负责=承担; 全量=完整; 重建=重新构建; 耗时=需要时间; 期间=过程中; 说明=解释;
顶部=最上面,最上方; 底部=最下面,最下方; 开头=开始处; 结尾=末尾; 里=里面,内,里头; 上=上面,上边; 下=下面,下边; 左边=左侧,左面; 右边=右侧,右面; 旁边=边上
$$, hindsight._english_words(), hindsight._chinese_words()]) WITH ORDINALITY AS t(entries, place)
    CROSS JOIN LATERAL pg_catalog.string_to_table(t.entries, ';') AS e),
  phrase AS MATERIALIZED (
    SELECT e.meaning, e.is_stemmed, pg_catalog.btrim(said, E' \n') AS phrase
    FROM entry AS e CROSS JOIN LATERAL pg_catalog.string_to_table(e.meaning || ',' || e.words, ',') AS said),
  stemmed AS (
    SELECT p.phrase,
           pg_catalog.string_agg(CASE WHEN w.word ~ '^[a-z]' THEN hindsight._stem(w.word) ELSE w.word END, ' '
                                 ORDER BY w.place) AS stems
    FROM (SELECT DISTINCT phrase FROM phrase WHERE is_stemmed) AS p
    CROSS JOIN LATERAL pg_catalog.string_to_table(p.phrase, ' ') WITH ORDINALITY AS w(word, place)
    GROUP BY p.phrase),
  word AS MATERIALIZED (
    SELECT CASE WHEN p.is_stemmed THEN k.stems ELSE p.phrase END AS key,
           CASE WHEN p.is_stemmed THEN m.stems ELSE p.meaning END AS meaning
    FROM phrase AS p LEFT JOIN stemmed AS k USING (phrase) LEFT JOIN stemmed AS m ON m.phrase = p.meaning
    WHERE p.phrase <> '' AND p.phrase !~ '^[_~#&*]'),
  longest AS ( -- under the first word, or character, of phrases: how many the longest has
    SELECT '^' || first AS key, max(size)::text AS meaning
    FROM word
    CROSS JOIN LATERAL (SELECT CASE WHEN key ~ '^[\u2e80-\uffff]' THEN "left"(key, 1) ELSE split_part(key, ' ', 1) END AS first,
                               CASE WHEN key ~ '^[\u2e80-\uffff]' THEN length(key)
                                    ELSE cardinality(string_to_array(key, ' ')) END AS size) AS s
    GROUP BY first)
  SELECT pg_catalog.jsonb_object_agg(e.key, e.meaning)
  FROM (SELECT key, meaning FROM word UNION ALL SELECT key, meaning FROM longest) AS e);
