-- More of the lexicon (05_synonym.sql has the form of an entry, and the words that the grammar needs): fillers, and words for
-- things, people, places, health, travel and work that say strictly the same.

-- _plain_words: entries that are met as they are written.
CREATE OR REPLACE FUNCTION hindsight._plain_words()
  RETURNS text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN $$
=as far as i know,as far as we know,afaik,as it happens,as a side note,on a side note,side note,just for the record,
to be precise,to be exact,to tell the truth,to put it simply,put simply,simply put,in a nutshell,in brief,briefly,
to put it briefly,in all honesty,to be fair,strictly speaking,technically,technically speaking,effectively,in effect,
ultimately,in the end,it is known that,we know that,as everyone knows,everyone knows that,as is well known,
it is well known that,it is clear that,there is no doubt that,without a doubt,undoubtedly,no doubt,
it goes without saying that,it goes without saying,most of the time,in most cases,more often than not,
under normal circumstances,as a general rule,as usual,as always,at this time,at this moment,at this point in time,
as things stand,as it stands,for the time being,currently speaking,in the main,kindly,just to be clear,just so we are clear,
just to remind you,friendly reminder,quick reminder,a quick reminder,quick update,small note,one note,please remember that,
please remember,please keep in mind that,please be aware that,be aware that,it is worth knowing that,what is more,
on top of that,besides that,apart from that,in any case,anyway,anyhow,at any rate,in that sense,so to speak,as it were,
all in all,in the final analysis,when all is said and done,in principle,in all fairness,truthfully,truly,literally,
quite simply,it so happens that,the reality is that,in point of fact,in actual fact,in actuality,as agreed,as discussed,
as you may know,as you might know,as we know,as you probably know,in conclusion,in a word,long story short is that,据我所知,据我们所知,
据了解,按理说,照理说,按道理,按道理说,按道理讲,按说,本质上,从本质上说,从本质上讲,说句心里话,不瞒你说,坦率地说,坦率说,坦率讲,坦白讲,实话说,说句老实话,说真的,实话实说,说句公道话,客观地说,客观来说,客观来讲,简单讲,简单说,简单点说,
简单来讲,通俗地说,通俗来讲,直白点说,直白地说,说得直白点,说得简单点,一言以蔽之,概括来说,概括地说,概括起来,大致来说,大致上,整体来说,整体来看,整体上,整体而言,总体上,总体来看,总体而言,总体上看,总体来讲,总的来看,总的来讲,总的说,
一般而言,一般来讲,一般说来,通常而言,通常来讲,通常说来,平常来说,正常来说,正常来讲,按惯例,照例,按照惯例,照惯例,按常规,一般情况,大多数情况下,多数情况下,大部分情况下,大多数时候,多数时候,大部分时候,绝大多数情况下,绝大多数时候,
大多时候,从结果看,从结果来看,实际情况是,情况是这样的,是这样的,这么说吧,这样说吧,可以这么说,需要强调的是,要强调的是,值得注意的是,值得说明的是,要提醒的是,需要提醒的是,需要补充的是,要补充的是,特此说明,特别说明,备注一下,温馨提示,
友情提示,提示一下,提个醒,提醒大家,记一下,请记住,请记得,请记下,请留意,请知悉,麻烦记一下,麻烦记住,麻烦您,如你所知,你知道的,你也知道,大家知道,我们知道,我们都知道,不难发现,可以看到,可以发现,可以看出,最后发现,最终发现,事后发现,
后来查明,最后查明,经查明,经检查,经核实,经核查,核实后发现,检查后发现,查了才知道,查过之后发现,检查下来,分析下来,测下来,测试下来,用下来,算下来,问下来,比较下来,对比下来,到头来,说来说去,本来就,本身就,倒是,实则,现阶段,当下,现如今,
时下,此刻,此时此刻,这会儿,截止目前,截至现在,截至今天,到现在为止,到现在,直到现在,至今,迄今,迄今为止,一直以来,长期以来,早已,早就,业已,一下,正在,将会,将要,严格说来,严格讲,严格来讲,准确来说,准确来讲,准确说,确切来说,确切说,
具体来讲,具体说来,具体说,细说起来,真要说的话,要我说,说实在的,说实在,老实交代,不得不说,必须承认,不可否认,无可否认,毋庸置疑,不用说,不言而喻,显而易见,很明显,很显然,明显地,自然而然,当然了,没错,好吧,这样的话,这样一来,如此一来,
相对来说,相对而言,从某种意义上说,某种程度上,在某种程度上,最终来看,事实上来说,实际上来说,实际来说,实际来看,从实际来看,认真说,认真地说,随口一提,顺嘴一提,顺便提一句,顺便提醒一下,顺便提醒,顺便一提,再说一遍,再说一次,再强调一下,
强调一下,重申一下,说明一下,声明一下,综上所述,归纳起来,长话短说,话不多说,言归正传,统统,全都,通通; #1 下午=一下午; ~在=是在,将在,将于,于,坐落,是位于,地处; 等于=等于; 属于=属于; 终于=终于; 在于=在于; 至于=至于;
位置=位置; 了解=了解; ~从=是从; ~因为=是因为,就是因为,正因为,正是因为,因为是,是由于,正是由于; ~为=是为了,为的是; ~通过=是通过,借助; ~按=是按,是按照,遵照,遵循,按着; ~对=针对; ~关于=有关于; _不=;
_不再=已经不再,已不再,已经不,已不,不复; _没=并没有,并没,并未,从没有过; _不必=没必要,没有必要,不需,毋须,毋需,无须要,大可不必; _不能=没有办法,没法子; _必须=非得,务须,一定得,须; _不允许=不被允许,不许可;
_允许=许可; _大多=绝大多数,绝大部分,大半; _所有=所有的,全部的,一切的,每一个,每一,每位,每名,每一位,每一名,各个,各位; _至少=少说,不下,不小于; _至多=最高不超过,不大于,不高于; _约=大致,将近; _只=只是,就只,单,
仅只,光是; _更 喜欢=偏爱,偏好,更爱,更偏爱,更偏好,更喜爱,更为喜欢; _非=不是,并不是,并非是; _所有 day=每一天,日日,每天都; _所有 month=每月,每个月,按月,每一个月; _所有 year=每年,年年,逐年,每一年;
_所有 hour=每小时,每个小时,每一小时; _所有 #2 day=每隔一天,隔天,隔日,每两天; _所有 #2 week=隔周,每隔一周,每两周,每两个星期; _所有 晚=每晚,每天晚上,每个晚上,每天夜里; _所有 早=每早,每天早上,每天早晨,
每个早上,每日清晨; #6 month=半年,half a year,half year; #18 month=一年半,a year and a half,one and a half years; #15 minute=一刻钟,
a quarter of an hour,quarter of an hour; #45 minute=三刻钟,three quarters of an hour; #90 minute=an hour and a half,
one and a half hours,one hour and a half; #150 minute=两个半小时,two and a half hours; #2 week=fortnight,a fortnight; #10 %=一成;
#20 %=两成,二成; #30 %=三成; #40 %=四成; #50 %=五成,一半,half of; #60 %=六成; #70 %=七成; #80 %=八成; #90 %=九成; _all #2 week=fortnightly,
every fortnight,every other week,every second week; _all #2 day=every other day,every second day;
_all #2 month=every other month,every second month; _all day=once a day,once per day,one time per day,on a daily basis,
day after day,every single day; _all week=once a week,once per week,each week,one time per week,on a weekly basis;
_all month=once a month,once per month,each month,on a monthly basis; _all year=once a year,once per year,each year,
on a yearly basis,on an annual basis; _all hour=once an hour,once per hour,each hour,on an hourly basis;
_all quarter=quarterly,every quarter,each quarter,once a quarter,per quarter; _all weekend~=on weekends,at weekends,
every weekend; _can=capable of,in a position to,is able to; _not _can=incapable of; _may=allowed to,permitted to;
_may _not=not allowed to,not permitted to,forbidden to,forbidden from,prohibited from,not authorized to; _not _must=need not,
no need to,not necessary to,not obliged to; _must=have got to,has got to,got to,gotta,obligated to,bound to,
it is necessary to,it is mandatory to; _should=advised to; want to=wanna; have=have got,has got; _would prefer=would rather;
manual~=by hand,manually; automat~=automatically,by itself,on its own; always~=always,all the time,at all times,invariably;
regular~=regularly,on a regular basis,at regular intervals; alone~=alone,by oneself,on my own,on his own,on her own,
by himself,by herself; temporari~=temporarily,on a temporary basis; perman~=permanently,on a permanent basis; again~=again,
once more,once again,one more time,another time; ~in=sits in,sit in,lies in,lie in,hosted in,located in,situated in,found in,
can be found in,housed in; ~before=in advance of,no later than; ~after=; ~during=over the course of,in the course of;
~because=on the grounds that,for the reason that,given that,seeing that,as a consequence of,on the basis that; ~if=as long as,
providing,providing that,in the event that,assuming that; ~about=around about,in the region of,on the subject of,
in relation to,with reference to,pertaining to; ~for=for the purpose of,on behalf of; ~to=with the aim of,for the sake of;
~with=in combination with,accompanied by,in conjunction with; ~against=in opposition to; ~despite=regardless of,
notwithstanding; ~through=; ~per=for each,for every; ~except=save for,with the exception of,excluding,aside from;
~near=in the vicinity of,adjacent to,in proximity to,not far from; ~while=whilst,during the time that; ~among=among,amongst;
_at_least=at a minimum,a minimum,minimum of,no lower than,not under; _at_most=at the most,at a maximum,maximum of,
no greater than,not exceeding,no higher than,does not exceed,must not exceed; _over=in excess of,upwards of;
_many=a large number of,a great many,a great deal of,many of; _some=a number of,a handful of; _most=the bulk of,
the greater part of,the vast majority of,a majority of; _all=any and all,the whole of,the entirety of,all of the; or=or else;
manager=manager,managers,boss,bosses; #1 hour=an hour; #1 minute=a minute; #1 week=a week; #1 month=a month; #1 year=a year;
_all=once every,once each; like=like to,likes to,liked to; love=love to,loves to,loved to; hate=hate to,hates to,hated to;
prefer=prefer to,prefers to,preferred to; begin=start to,starts to,started to,begin to,begins to,began to;
carry on=continue to,continues to,continued to; maximum=max
$$;

-- _english_words: entries that are met in all forms of their words.
CREATE OR REPLACE FUNCTION hindsight._english_words()
  RETURNS text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN $$
begin=get started,get going,get underway,get under way; boot=boot up,start up; power off=power down; send=dispatch,transmit;
pick up=retrieve; reserve a table=book a table; reserve a room=book a room; reserve a seat=book a seat;
reserve a flight=book a flight; reserve a ticket=book a ticket; reserve a hotel=book a hotel; laptop=notebook computer,
notebook pc,laptop computer; cinema=movie theater,movie theatre,film theatre; pharmacy=drugstore,drug store; veterinarian=vet;
gas station=petrol station,filling station; parking lot=car park; restroom=washroom; diaper=nappy; stroller=pushchair;
eggplant=aubergine; zucchini=courgette; cilantro=coriander; subway=metro,underground railway; train station=railway station,
railroad station; roundabout=traffic circle; driver license=driving licence,driving license,driver licence; math=maths,
mathematics; fall asleep=go to sleep; birth date=date of birth,birthdate; hometown=home town,native town;
native language=mother tongue,native tongue,first language; employee=staff member,member of staff;
teleconference=telephone conference,conference call,telco,phone conference; standup=stand up meeting,standup meeting,
daily standup; business day=working day,workday,work day; year old=year of age; made up of=consist of,composed of,comprise,
comprised of; telephone number=phone number; residential address=home address; username=user name,login name; pull request=pr;
ci=continuous integration; ui=user interface; os=operating system; ai=artificial intelligence; ml=machine learning;
ram=memory,main memory; disk=hard drive,hard disk,disk drive,hard disk drive; wifi=wi fi,wireless network,wlan;
usb stick=usb drive,flash drive,thumb drive,usb flash drive,pen drive; screenshot=screen capture,screen shot,screen grab;
stove=cooker; attic=loft; basement=cellar; living room=lounge,sitting room; vacuum cleaner=hoover; teenager=teen,adolescent;
vp=vice president; ceo=chief executive officer,chief executive; cto=chief technology officer,chief technical officer;
cfo=chief financial officer; phd=doctorate,doctoral degree; hypertension=high blood pressure; influenza=flu;
physiotherapy=physical therapy; painkiller=pain reliever,pain medication; vaccinate=inoculate,immunize; jog=go jogging;
swim=go swimming; hike=go hiking; ski=go skiing; go running=go for a run; go for a walk=take a walk,go for a stroll;
free of charge=at no cost,for free,without charge,at no charge,gratis; sold out=out of stock; out of order=not working;
abroad=overseas,in a foreign country; downtown=city center,city centre,town centre,town center; outdoors=out of door;
work remotely=work from home,telecommute,telework,work remote; boring=dull; crazy=insane; busy=occupied; tiny=minuscule;
ignore case=not case sensitive,case insensitive,disregard case; hate=can not stand,can not bear,cannot stand,cannot bear,
ca not stand,ca not bear,despise,abhor; team lead=team leader; postpone=hold off; fail=not succeed; rename=change name of;
overwrite=write over; decompress=unzip,uncompress,unpack; encrypt=encipher; decrypt=decipher; authenticate=authentication;
authorize=authorization,authorisation,authorise; back up=make backup of,create backup of,take backup of; roll back=revert,
undo; choose=opt for; decide=make up mind,take decision,come to decision,reach decision; approve=sign off on,give approval to;
refuse=turn down; hire=recruit; resign=hand in notice,hand in resignation; borrow=take out loan; meet=meet up with,meet with;
return=get back,go back; return home=come home,get home; suffer from=afflicted with; recover from=get over;
eat breakfast=have breakfast; eat lunch=have lunch; dine=have dinner,eat dinner; drink coffee=have coffee;
learn by heart=memorize,memorise; play guitar=play the guitar; play piano=play the piano; play violin=play the violin;
take photo=take picture; interested in=have interest in; addicted to=hooked on; hard=arduous; easy=straightforward,effortless;
slow=sluggish; fast=swift; expensive=high priced,pricy; cheap=low cost,low priced; faulty=defective; rich=well off,affluent;
famous=renowned; modern=contemporary; obvious=evident; rubbish bin=trash can,garbage can,dustbin; holiday home=vacation home;
mother=mama,mummy; father=papa; puppy=young dog; kitten=young cat; sneaker=running shoe; bathing suit=swimsuit,
swimming costume; ping pong=table tennis; motorcycle=motorbike; itinerary=travel plan; lodging=accommodation;
seaside=seashore; error=mistake; discount=price reduction; law=statute; rule=regulation; police officer=policeman,policewoman;
firefighter=fireman; mail carrier=postman,mailman; chairperson=chairman; owner=proprietor; tenant=renter; friend=buddy,pal;
opponent=rival; participant=attendee; supplier=vendor; headquarters=head office,main office,hq; branch=branch office;
meeting room=conference room; canteen=cafeteria; lab=laboratory; remember=recall,recollect; forget=not remember;
lately=of late; rarely=infrequently; nap=take nap; tell=let know; weekday=week day; fulfill=fulfil; skillful=skilful;
harbor=harbour; vapor=vapour; odor=odour; armor=armour; endeavor=endeavour; rigor=rigour; vigor=vigour; tumor=tumour;
mold=mould; plow=plough; draft=draught; skeptical=sceptical; curb=kerb; aging=ageing; judgment=judgement;
acknowledgment=acknowledgement; installment=instalment; fiber=fibre; caliber=calibre; dialog=dialogue; analog=analogue;
cozy=cosy; check list=checklist; mustache=moustache; yogurt=yoghurt; donut=doughnut; grandkid=grandchild,grandchildren;
burn=burnt; dream=dreamt; spell=spelt; spoil=spoilt; lean=leant; leave=set off,set out,head off; remove=purge,dispose of,
eliminate,wipe; choose=opt for; require=in need of; monitor=keep an eye on; agree=concur; compress=gzip;
postpone=get pushed back; invoice=bill; accelerate=speed up; baby=infant; talk to=speak to,speak with,talk with;
same=identical; end=terminate; give=grant; collaborate=cooperate,co operate,work together; supervise=oversee;
contact=get in touch with,reach out to; extra=additional; id=identifier; spec=specification;
prod=production; param=parameter; message=msg; stats=statistics; infra=infrastructure; artifact=artefact;
specialty=speciality; disk=disc; focus=focussed; counselor=counsellor; woolen=woollen; offense=offence;
neighborhood=neighbourhood; maneuver=manoeuvre; pediatrician=paediatrician; enrollment=enrolment; abandon=give up on;
anybody=anyone; somebody=someone; whiskey=whisky; omelet=omelette
$$;
