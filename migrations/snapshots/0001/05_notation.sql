-- Notations: what is written in several ways, written in one.

-- _simplified: traditional characters as simplified ones, the common ones that have one counterpart.
CREATE OR REPLACE FUNCTION hindsight._simplified(content text)
  RETURNS text
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN CASE WHEN pg_catalog.octet_length(content) = pg_catalog.length(content) THEN content ELSE pg_catalog.translate(content,
  '愛礙罷備貝筆畢邊變標別賓補財參蠶慘倉層產長嘗場車徹陳稱誠遲齒蟲醜處觸傳創純詞辭從達帶單擔當黨導島燈鄧敵遞點電墊調釘頂訂東動凍斷對隊噸奪兒爾發罰閥飛費紛豐風瘋鋒縫膚輔負復蓋趕剛鋼崗綱鴿個給貢溝構購夠顧掛'
  '關觀館慣廣規軌歸櫃貴國過漢號賀轟後護戶華畫劃話懷壞歡還環緩換黃揮輝匯會彙繪貨獲機積極際繼級紀記計濟擠幾績夾價駕艱監檢減鹼簡見鍵間漸將獎講醬膠腳較階節結潔緊僅盡進勁經驚淨競靜舊舉據懼捲覺絕軍開殼課懇塊寬'
  '礦虧擴蘭攔藍欄爛覽樂類離籬裡裏禮麗勵歷曆聯連練煉簾鏈涼糧兩輛諒遼療獵鄰靈領劉龍樓錄陸驢呂鋁慮綠亂論羅邏媽馬嗎買賣麥滿貓貿門們夢彌麵廟滅鳴謀畝納難腦鬧內擬釀鳥寧農濃諾歐盤賠噴頻評憑蘋齊騎啟氣棄遷錢淺搶橋'
  '僑親輕傾請慶窮區驅權勸確讓擾熱認榮軟銳潤灑賽傘喪掃殺篩曬閃傷賞燒設紳審腎聲勝繩師獅詩時實識適勢飾視試壽獸書術樹屬數帥雙誰稅順說絲飼鬆訴蘇雖隨歲孫損縮鎖態灘談歎湯討騰題體條鐵聽廳統頭圖團彎萬網為圍偉衛溫'
  '聞穩問無誤務霧犧習襲戲細蝦嚇廈鮮纖閒賢鹹顯險縣現線憲鄉響項蕭銷曉協寫謝興鬚許續緒選學詢訓訊壓亞嚴顏煙鹽驗陽養樣搖藥爺頁葉業億憶藝議譯異陰銀飲隱應營蠅贏擁優憂郵猶遊魚漁與語預園員圓遠願約閱躍雲運韻雜災載'
  '贊髒責擇則賊贈戰張帳賬脹趙這針鎮陣爭徵鄭證織職執紙質鐘鍾種腫眾週豬諸燭築專磚轉賺裝壯狀準資總縱鑽庫於臺採併佈詳檔碼隻範誌駐盜註釋鋪濕廚爐籃襪褲淚懶膽臉齡雞鴨鵝騙綜緣繞纏脈蔥蘿薑製複診該諮譜貼趨跡蹤輯輸'
  '遺釣鈣銅鏡鑰閘韓頓顆額飄飯餅餃駛髮傑側偵債償儀儲冊劑勞卻堅報塵牆奮姊娛婦嬰嬸宮寶幣幫廁廢彈強徑惡惱戀拋掙擊擋擺攝敗暫暈棧棟槍橫殘毀沒況決洩測滯滾漲潛瀏煩獨癢碩礎禍窩簽籌紅紡終組絡維綁繫罵義聖聰臨莊錯閉'
  '鑒濾訪劇廠獻瓊澤滬陝麼麽讀來',
  '爱碍罢备贝笔毕边变标别宾补财参蚕惨仓层产长尝场车彻陈称诚迟齿虫丑处触传创纯词辞从达带单担当党导岛灯邓敌递点电垫调钉顶订东动冻断对队吨夺儿尔发罚阀飞费纷丰风疯锋缝肤辅负复盖赶刚钢岗纲鸽个给贡沟构购够顾挂'
  '关观馆惯广规轨归柜贵国过汉号贺轰后护户华画划话怀坏欢还环缓换黄挥辉汇会汇绘货获机积极际继级纪记计济挤几绩夹价驾艰监检减碱简见键间渐将奖讲酱胶脚较阶节结洁紧仅尽进劲经惊净竞静旧举据惧卷觉绝军开壳课恳块宽'
  '矿亏扩兰拦蓝栏烂览乐类离篱里里礼丽励历历联连练炼帘链凉粮两辆谅辽疗猎邻灵领刘龙楼录陆驴吕铝虑绿乱论罗逻妈马吗买卖麦满猫贸门们梦弥面庙灭鸣谋亩纳难脑闹内拟酿鸟宁农浓诺欧盘赔喷频评凭苹齐骑启气弃迁钱浅抢桥'
  '侨亲轻倾请庆穷区驱权劝确让扰热认荣软锐润洒赛伞丧扫杀筛晒闪伤赏烧设绅审肾声胜绳师狮诗时实识适势饰视试寿兽书术树属数帅双谁税顺说丝饲松诉苏虽随岁孙损缩锁态滩谈叹汤讨腾题体条铁听厅统头图团弯万网为围伟卫温'
  '闻稳问无误务雾牺习袭戏细虾吓厦鲜纤闲贤咸显险县现线宪乡响项萧销晓协写谢兴须许续绪选学询训讯压亚严颜烟盐验阳养样摇药爷页叶业亿忆艺议译异阴银饮隐应营蝇赢拥优忧邮犹游鱼渔与语预园员圆远愿约阅跃云运韵杂灾载'
  '赞脏责择则贼赠战张帐账胀赵这针镇阵争征郑证织职执纸质钟钟种肿众周猪诸烛筑专砖转赚装壮状准资总纵钻库于台采并布详档码只范志驻盗注释铺湿厨炉篮袜裤泪懒胆脸龄鸡鸭鹅骗综缘绕缠脉葱萝姜制复诊该咨谱贴趋迹踪辑输'
  '遗钓钙铜镜钥闸韩顿颗额飘饭饼饺驶发杰侧侦债偿仪储册剂劳却坚报尘墙奋姐娱妇婴婶宫宝币帮厕废弹强径恶恼恋抛挣击挡摆摄败暂晕栈栋枪横残毁没况决泄测滞滚涨潜浏烦独痒硕础祸窝签筹红纺终组络维绑系骂义圣聪临庄错闭'
  '鉴滤访剧厂献琼泽沪陕么么读来') END;

-- _stem: an English word by PostgreSQL's stemmer, irregular forms by their base (went: go, rewrote: rewrite); what the stemmer
-- takes for a stop word as it is. One expression, so that it is inlined.
CREATE OR REPLACE FUNCTION hindsight._stem(word text)
  RETURNS text
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN coalesce(
  hindsight._irregular_forms_v1() ->> coalesce((pg_catalog.ts_lexize('pg_catalog.english_stem', word))[1], word),
  CASE WHEN word LIKE 're%' THEN 're' || (hindsight._irregular_forms_v1() ->> pg_catalog.substr(word, 3)) END,
  (pg_catalog.ts_lexize('pg_catalog.english_stem', word))[1], word);

-- _rewritten: a sentence in lower case and simplified characters, with what is written in several ways written in one: numbers,
-- dates, times, contractions, and clauses whose order a conjunction turns (A, so B: because A, B).
-- Each rule is tried where its sign is seen: a session keeps 32 compiled patterns, and a miss costs more than all the rest.
CREATE OR REPLACE FUNCTION hindsight._rewritten(content text)
  RETURNS text
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
AS $$
DECLARE
  plain text := pg_catalog.lower(hindsight._simplified(pg_catalog.normalize(content, 'NFKC')));
  has_digits constant boolean := pg_catalog.translate(plain, '0123456789', '') <> plain;
BEGIN
  plain := pg_catalog.translate(plain, '’‘', '''''');
  IF plain LIKE '%''%' THEN
    plain := pg_catalog.replace(plain, 'n''t', ' not');
    IF plain LIKE '%''d %' THEN
      plain := pg_catalog.regexp_replace(plain, '''d(?= (?:like|love|prefer|rather)\M)', ' would', 'g'); -- I'd like is not I like
    END IF;
    IF plain LIKE ANY ('{%t''s%,%e''s%,%o''s%}') THEN
      plain := pg_catalog.regexp_replace(plain, '\m(it|that|there|here|what|who|where|he|she)''s\M', '\1 is', 'g');
    END IF;
    plain := pg_catalog.replace(plain, '''ve ', ' have ');
    plain := pg_catalog.regexp_replace(plain, '''(?:re|ve|ll|d|m)\M', '', 'g');
    plain := pg_catalog.regexp_replace(plain, '''s\M|(?<=s)''(?= )', ' 的 ', 'g'); -- Alice's: 的
  END IF;
  IF plain LIKE '%-%' THEN
    plain := pg_catalog.regexp_replace(plain, '\m([a-z])-(?=[a-z]{3})', '\1', 'g'); -- e-mail
    plain := pg_catalog.regexp_replace(plain, '([a-z])-(?=[a-z]+(?:[\s,;!?.]|$))', '\1 ', 'g');
  END IF;
  IF plain LIKE ANY ('{%ise%,%isin%,%isat%}') THEN -- centralise: centralize
    plain := pg_catalog.regexp_replace(plain, '\m(?!adver|enterp|super|compr|prom)([a-z]{3,}[lnrmtd])is(e|es|ed|ing|ations?|ers?)\M',
                                       '\1iz\2', 'g');
  END IF;
  IF has_digits THEN
    IF plain LIKE '%-%' THEN -- a 30-day trial
      plain := pg_catalog.regexp_replace(plain, '\m(\d+)-(?=(?:day|week|month|year|hour|minute|second)\M)', '\1 ', 'g');
    END IF;
    IF plain LIKE '%,%' THEN
      plain := pg_catalog.regexp_replace(plain, '(\d),(?=\d{3}(?!\d))', '\1', 'g');
    END IF;
    IF plain LIKE ANY ('{%am%,%pm%,%a.m%,%p.m%}') THEN
      plain := pg_catalog.regexp_replace(plain, '(\d[\d:]*)\s*([ap])\.?m\M\.?', ' @\2m \1', 'g');
    END IF;
    IF plain LIKE '%-%-%' THEN
      plain := pg_catalog.regexp_replace(plain, '(\d{4})-(\d\d?)-(\d\d?)(?![\d-])', '\1年\2月\3日', 'g');
    END IF;
    IF plain LIKE ANY ('{%1st%,%2nd%,%3rd%,%th%}') THEN -- 3rd of March, March 3rd
      plain := pg_catalog.regexp_replace(plain, '(\d)(?:st|nd|rd|th) (?:of )?(?=jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov'
        '|dec)', '\1 ', 'g');
      plain := pg_catalog.regexp_replace(plain, '\m((?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]* \d\d?)(?:st'
        '|nd|rd|th)\M', '\1', 'g');
    END IF;
  END IF;
  IF plain LIKE '%点%' OR plain LIKE '%:%' THEN
    IF plain LIKE ANY ('{%每晚%,%每早%}') THEN
      plain := pg_catalog.regexp_replace(plain, '每([晚早])上?(?=[0-9一二两三四五六七八九十]+ ?[点:])', '每天\1上', 'g');
    END IF;
    IF plain LIKE ANY ('{%晚上%,%夜里%,%半夜%,%深夜%}') THEN
      plain := pg_catalog.regexp_replace(plain, '(?:晚上|夜里|半夜|深夜)的?(?=(?:[1-5]|[一二两三四五]|12|十二) ?[点:])', ' @am ', 'g');
    END IF;
    plain := pg_catalog.regexp_replace(plain, '(?:早上|上午|凌晨|清晨|早晨)的?(?=[0-9一二两三四五六七八九十]+ ?[点:])', ' @am ', 'g');
    plain := pg_catalog.regexp_replace(plain, '(?:下午|晚上|傍晚|夜里|中午)的?(?=[0-9一二两三四五六七八九十]+ ?[点:])', ' @pm ', 'g');
  END IF;
  IF plain LIKE '%百分之%' THEN
    plain := pg_catalog.regexp_replace(plain, '百分之([零一二两三四五六七八九十百]+|[0-9.]+)', '\1%', 'g');
  END IF;
  IF plain LIKE '%左右%' OR plain LIKE '%上下%' THEN
    plain := pg_catalog.regexp_replace(plain, '([0-9零一二两三四五六七八九十百]+[^\s0-9,;!?。]?[^\s0-9,;!?。]?[^\s0-9,;!?。]?)(?:左右'
      '|上下)', '约\1', 'g');
  END IF;
  IF plain LIKE ANY ('{"%, so %","%, therefore%"}') THEN
    plain := pg_catalog.regexp_replace(plain, '^(?!because)([^,]+), (?:so|therefore,?) (?!that)', 'because \1, ');
  ELSIF plain LIKE ANY ('{"%,所以%","%,因此%","%,因而%","%,于是%"}') THEN
    plain := pg_catalog.regexp_replace(plain, '^(?!因|由于)([^,。]+),(?:所以|因此|因而|于是)', '因为\1,');
  END IF;
  IF plain LIKE '%先%' THEN -- B 之前先 A: 先 A, 再 B
    plain := pg_catalog.regexp_replace(plain, '^([^,。]*[^,。之以])[之以]?前,?(?:要|需要|需|必须|得|应)?先([^,。]+)', '先\2,再\1');
    plain := pg_catalog.regexp_replace(plain, '(?:要|需要|需|必须|得|应)先', '先', 'g');
  END IF;
  IF plain LIKE '%的话%' THEN
    plain := pg_catalog.regexp_replace(plain, '(^|[,;。])(?!如果|要是|假如|若)([^,;。]+)的话', '\1如果\2', 'g');
  END IF;
  IF plain LIKE '%为%' THEN
    plain := pg_catalog.regexp_replace(plain, '为(?= ?[0-9一二两三四五六七八九十])', '是', 'g');
  END IF;
  RETURN hindsight._restated(pg_catalog.rtrim(plain, ' .。!'));
END
$$;
