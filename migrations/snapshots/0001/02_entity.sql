-- Entities: the names and numbers that a text is about, recognised by rules.

-- _opening_words: words that begin a sentence with a capital and name nobody.
CREATE OR REPLACE FUNCTION hindsight._opening_words()
  RETURNS text[]
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN '{a,about,absolutely,actually,add,after,again,agreed,all,also,although,always,am,amazing,an,and,another,any,anything,appreciate,are,as,ask,at,awesome,
  be,because,been,before,being,best,both,but,buy,by,bye,call,can,check,cheers,congrats,cool,could,currently,dear,definitely,did,do,does,each,either,even,every,
  everyone,everything,exactly,few,find,first,for,forget,from,get,give,given,glad,go,going,gonna,good,got,gotta,great,had,happy,has,have,having,he,hello,her,here,
  hers,hey,hi,his,hope,how,i,if,in,into,is,it,its,just,keep,know,last,let,lets,like,long,look,looking,looks,lots,love,made,make,making,many,may,maybe,me,might,
  mine,more,most,much,must,my,need,neither,never,next,nice,no,nobody,none,nor,not,note,nothing,now,of,off,oh,ok,okay,on,one,only,or,other,our,ours,out,over,
  perhaps,please,plus,prefer,prefers,put,quick,quite,really,recently,remember,remind,right,run,said,same,say,second,see,seeing,seems,send,set,shall,she,should,
  show,since,so,some,someone,something,sometimes,sorry,sounds,still,such,sure,take,taking,talk,tell,than,thank,thanks,that,the,their,them,then,there,these,they,
  things,think,third,this,those,though,three,to,today,tomorrow,tonight,too,totally,true,try,trying,two,under,unfortunately,until,up,us,use,used,user,using,usually,
  very,wanna,want,wants,was,way,we,welcome,well,were,what,whatever,when,where,whether,which,while,who,whose,why,will,with,without,woah,work,working,would,wow,yeah,
  yep,yes,yesterday,yet,you,your,yours,yup,
  monday,tuesday,wednesday,thursday,friday,saturday,sunday,
  january,february,march,april,june,july,august,september,october,november,december}'::text[];

-- _name: what a run of capitalised words names: "Remember New York" names New York, "What" names nobody.
CREATE OR REPLACE FUNCTION hindsight._name(run text)
  RETURNS text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
  WHEN run !~ '\s' THEN CASE WHEN NOT pg_catalog.lower(run) = ANY (hindsight._opening_words()) THEN run END
  ELSE (WITH word AS MATERIALIZED (
          SELECT w.word, w.place, w.word ~ '[A-Z\u00c0-\u00de]' AND NOT pg_catalog.lower(w.word) = ANY (hindsight._opening_words()) AS names
          FROM pg_catalog.regexp_split_to_table(run, '\s+') WITH ORDINALITY AS w(word, place))
        SELECT pg_catalog.string_agg(word, ' ' ORDER BY place) FROM word
        WHERE place >= (SELECT min(place) FROM word WHERE names))
END;

-- entities: what a text names, at most 32, each of at most 100 characters, as it is spelled first: names in Latin script
-- (Alice, New York, MySQL), identifiers (ERR-7731, v1.2.3, user_id, /etc/hosts, foo@example.org), numbers with their
-- unit (8 GB, 30 分钟), and what stands in quotation marks or in 《》「」. By rules: no model, a fraction of a millisecond.
CREATE OR REPLACE FUNCTION hindsight.entities(content text)
  RETURNS text[]
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
AS $$
DECLARE
  plain constant text := pg_catalog."left"(pg_catalog.normalize(content, 'NFKC'), 10000);
  quotes constant boolean := plain ~ '[《「『“"`]';
  signs constant boolean := plain ~ '[0-9_@/#+]|[a-z]\.[a-z]';
  capitals constant boolean := plain ~ '[A-Z\u00c0-\u00de]';
  capital constant text := '(?:[A-Z\u00c0-\u00de]|[a-z]{1,3}[A-Z])[A-Za-z0-9\u00c0-\u024f]*(?:[-’''][A-Z\u00c0-\u00de][A-Za-z0-9\u00c0-\u024f]*)*'
                           '\M(?![’''](?:t|m|re|ve|ll|d)\M)'; -- not Don't
BEGIN
  IF NOT quotes AND NOT signs AND NOT capitals THEN
    RETURN '{}';
  END IF;
  RETURN (
    SELECT coalesce(pg_catalog.array_agg(n.name ORDER BY n.kind, n.place), '{}')
    FROM (SELECT * FROM (
      SELECT DISTINCT ON (pg_catalog.lower(trimmed)) trimmed AS name, m.kind, m.place
      FROM (
        SELECT 1 AS kind, f.place, pg_catalog.array_to_string(f.match, '') AS name
        FROM pg_catalog.regexp_matches(plain, '《([^《》\n]+)》|「([^「」\n]+)」|『([^『』\n]+)』|“([^“”\n]+)”|"([^"\n]+)"|`([^`\n]+)`', 'g')
             WITH ORDINALITY AS f(match, place)
        WHERE quotes
        UNION ALL
        SELECT 2, f.place, run
        FROM pg_catalog.regexp_matches(plain, '[A-Za-z0-9_.+@/~#:%=&?-]+', 'g') WITH ORDINALITY AS f(match, place)
        CROSS JOIN LATERAL pg_catalog.btrim(f.match[1], ':-?=&%') AS near
        CROSS JOIN LATERAL pg_catalog.rtrim(near, '.') AS run
        WHERE signs AND run ~ '[0-9_.@/#+]'
          AND run ~ ('^(?:https?://\S+|[\w.+-]+@[\w-]+\.[\w.-]+|~?\.{0,2}(?:/[\w.+@-]+){2,}|~?/[\w.+@-]+|v?\d+(?:\.\d+){1,3}[A-Za-z][\w.-]*|v\d[\w.]*|\d+(?:\.\d+){2,3}'
                     '|[A-Za-z]+[-_.]?\d[\w.-]*|\w+(?:_\w+)+|[a-z]\w+(?:\.[a-z]\w+)+|[A-Za-z](?:\+\+|#)|[A-Za-z]+(?:-[A-Za-z]*\d\w*)+)$')
          AND run !~* '^\d+(?:\.\d+)?(?:st|nd|rd|th|am|pm|k)$'
        UNION ALL
        SELECT 3, f.place, f.match[1]
        FROM pg_catalog.regexp_matches(plain,
          '(\d+(?:[.,]\d+)*\s?(?:(?:%|°[CF]?|[KMGTk]i?B|[kMG]?Hz|[kcm]?m|km/h|mph|[km]?g|lbs?|[kM]?W|kWh|mAh|ms|min|hours?|minutes?|seconds?'
          '|days?|weeks?|months?|years?|dollars?|euros?|USD|EUR|CNY|RMB|px|fps|tokens?)(?![[:alnum:]])'
          '|个月|小时|分钟|秒|天|周|岁|元|块钱|美元|欧元|万|亿|公里|千米|厘米|毫米|米|公斤|千克|克|斤|度|楼|层|室))', 'g')
             WITH ORDINALITY AS f(match, place)
        WHERE signs
        UNION ALL
        SELECT 4, f.place, hindsight._name(f.match[1])
        FROM pg_catalog.regexp_matches(plain,
          '(?<![\w@/.-])(' || capital || '(?:(?:\s(?:of|the|de|van|von|der|da|del|di|la|le)){0,2}\s' || capital || ')*)', 'g')
             WITH ORDINALITY AS f(match, place)
        WHERE capitals
      ) AS m
      CROSS JOIN LATERAL pg_catalog.btrim(m.name, E' \t.,;:!?。，、；：！？') AS trimmed
      WHERE pg_catalog.length(trimmed) BETWEEN 2 AND 100
      ORDER BY pg_catalog.lower(trimmed), m.kind, m.place
    ) AS distinct_name ORDER BY kind, place LIMIT 32) AS n);
END
$$;
COMMENT ON FUNCTION hindsight.entities(text) IS
  'What a text names: names in Latin script, identifiers, numbers with units, quoted terms and titles; by rules.';

-- entity_kind: what kind of thing a name names, by its form: quantity (8 GB, 30 分钟), identifier (ERR-7731, v1.2.3, user_id, /etc/hosts,
-- foo@example.org), name (Alice, New York, MySQL), or term (what was quoted, or has no capital: 汇率).
CREATE OR REPLACE FUNCTION hindsight.entity_kind(name text)
  RETURNS text
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN CASE
  WHEN name ~ '^[0-9]+([.,][0-9]+)*\s?([A-Za-z]{1,7}|[%°][CF]?|km/h|[\u3400-\u9fff]{1,2})$' THEN 'quantity'
  WHEN name ~ '^\S*([0-9_@/#+]|[a-z]\.[a-z])\S*$' THEN 'identifier'
  WHEN name ~ '[A-Z\u00c0-\u00de]' THEN 'name'
  ELSE 'term'
END;
COMMENT ON FUNCTION hindsight.entity_kind(text) IS
  'What kind of thing a name names, by its form: quantity, identifier, name or term.';
