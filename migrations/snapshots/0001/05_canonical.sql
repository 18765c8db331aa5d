-- The canonical form of a sentence: what is left of it when paraphrase is taken away.

-- _number: a Chinese numeral as digits: 一千二百 is 1200, 二〇二五 is 2025. 三四 may be three or four: as it is.
CREATE OR REPLACE FUNCTION hindsight._number(numeral text)
  RETURNS text
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
AS $$
DECLARE
  sign text;
  digit bigint := 0;
  unit bigint := 1;
  section bigint := 0;
  total bigint := 0;
BEGIN
  IF numeral !~ '[十百千万亿]' THEN
    RETURN CASE WHEN pg_catalog.length(numeral) = 2 AND numeral !~ '[零〇]' THEN numeral
                ELSE pg_catalog.translate(numeral, '零〇一二两三四五六七八九', '001223456789') END;
  ELSIF numeral ~ '^[百千万亿]' OR pg_catalog.length(numeral) > 15 THEN
    RETURN numeral;
  END IF;
  FOREACH sign IN ARRAY pg_catalog.string_to_array(numeral, NULL) LOOP
    IF sign IN ('零', '〇') THEN
      unit := 1;
    ELSIF sign ~ '[一二两三四五六七八九]' THEN
      digit := pg_catalog.translate(sign, '一二两三四五六七八九', '1223456789')::bigint;
    ELSIF sign IN ('万', '亿') THEN
      unit := CASE sign WHEN '万' THEN 10000 ELSE 100000000 END;
      total := (total + section + digit) * unit;
      section := 0;
      digit := 0;
    ELSE
      unit := CASE sign WHEN '十' THEN 10 WHEN '百' THEN 100 ELSE 1000 END;
      section := section + greatest(digit, 1) * unit;
      digit := 0;
    END IF;
  END LOOP;
  RETURN total + section + digit * CASE WHEN unit >= 100 THEN unit / 10 ELSE 1 END; -- 一百二 is 120
END
$$;

-- _clock: a time of day: 4:00 with am or pm where it is known, 15:00 as 3:00pm.
CREATE OR REPLACE FUNCTION hindsight._clock(reading text, half text)
  RETURNS text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (
  SELECT CASE WHEN hour > 24 OR reading !~ '^\d\d?:\d\d$' THEN reading
              WHEN hour > 12 THEN hour - 12 || minutes || CASE hour WHEN 24 THEN 'am' ELSE 'pm' END
              WHEN hour = 12 THEN CASE half WHEN 'am' THEN '0' ELSE '12' END || minutes || coalesce(half, 'pm')
              ELSE hour || minutes || coalesce(half, CASE WHEN reading ~ '^0' THEN 'am' ELSE '' END) END
  FROM (SELECT pg_catalog.split_part(reading, ':', 1)::integer AS hour,
               ':' || pg_catalog.split_part(reading, ':', 2) AS minutes) AS r);

-- _units: the words, numbers, Chinese characters and separators of a rewritten sentence; quotes, brackets and dashes are none.
CREATE OR REPLACE FUNCTION hindsight._units(plain text)
  RETURNS text[]
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN ARRAY(
  SELECT u.unit
  FROM pg_catalog.regexp_matches(plain,
         '([\u2e80-\u3000\u3005-\u3007\u3021-\u302f\u3031-\uffff]|[,;!?。、]|[<>=≤≥≠]+|[^\s\u2e80-\uffff,;!?<>=≤≥≠"“”«»`''()\[\]{}…—–·•*|]+)', 'g')
       WITH ORDINALITY AS m(match, place)
  CROSS JOIN LATERAL pg_catalog.rtrim(m.match[1], '.:/-') AS u(unit)
  WHERE u.unit NOT IN ('', '~')
  ORDER BY m.place);

-- _is_past: whether the verb at a place tells of the past: wrote, was; not is written, to be written.
CREATE OR REPLACE FUNCTION hindsight._is_past(units text[], stems text[], place integer)
  RETURNS boolean
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
AS $$
DECLARE
  irregular constant jsonb := hindsight._irregular_forms_v1() - '{children,men,women,feet,teeth,mice}'::text[];
  unit constant text := units[place];
  before integer := place - 1;
BEGIN
  IF unit IN ('was', 'were', 'had', 'did') THEN
    RETURN true;
  ELSIF irregular ? unit OR (unit LIKE 're%' AND irregular ? pg_catalog.substr(unit, 3))
     OR (unit LIKE '%ed' AND stems[place] <> unit) THEN
    WHILE units[before] IN ('not', 'also', 'already', 'never', 'always', 'now', 'just') OR units[before] LIKE '%ly' LOOP
      before := before - 1;
    END LOOP;
    RETURN units[before] IS NULL
      OR units[before] <> ALL ('{is,are,be,been,being,get,gets,to,will,can,must,may,should,would,could,might}');
  END IF;
  RETURN unit IN ('has', 'have') AND units[place + 1] = 'been';
END
$$;

-- _minutes: of a time such as 三点二十分 the minutes, from the unit after 点 on, and how many units they take.
CREATE OR REPLACE FUNCTION hindsight._minutes(units text[], place integer, OUT minutes text, OUT size integer)
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
AS $$
DECLARE
  numeral text := '';
BEGIN
  size := 0;
  IF units[place] = '半' THEN
    minutes := '30';
    size := 1;
    RETURN;
  ELSIF pg_catalog.ascii(units[place]) BETWEEN 48 AND 57 THEN
    numeral := units[place];
    size := 1;
  ELSE
    WHILE pg_catalog.strpos('零一二三四五六七八九十', units[place + size]) > 0 LOOP
      numeral := numeral || units[place + size];
      size := size + 1;
    END LOOP;
    numeral := hindsight._number(numeral);
  END IF;
  minutes := pg_catalog.lpad(numeral, 2, '0');
  IF units[place + size] IN ('分', '钟', '整') THEN
    size := size + 1;
  END IF;
END
$$;

-- _canonical: what a sentence says, in its order: each word without inflection and by one name for each thing, without those
-- that say nothing, numbers as digits. What others hang on stands before them: not_meat, 22_port, from~laptop; separators stand
-- alone. First stands <past, if the sentence tells of the past.
CREATE OR REPLACE FUNCTION hindsight._canonical(content text)
  RETURNS text[]
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
AS $$
DECLARE
  lexicon constant jsonb := hindsight._lexicon();
  numerals constant text := '零〇一二两三四五六七八九十百千万亿';
  units constant text[] := hindsight._units(hindsight._rewritten(content));
  stems constant text[] := ARRAY(
    SELECT CASE WHEN pg_catalog.ascii(u.unit) BETWEEN 97 AND 122 THEN hindsight._stem(u.unit) ELSE u.unit END
                                 FROM pg_catalog.unnest(units) WITH ORDINALITY AS u(unit, place) ORDER BY u.place);
  place integer := 1;
  step integer;
  unit text;
  sign integer; -- its first character
  known text; -- the meaning of the units from place on, as many as step
  parts text[];
  token text;
  half text; -- of the day
  held text := ''; -- what the next word hangs on
  has_number boolean; -- held ends with one
  said text[] := '{}';
  is_past boolean := false;
BEGIN
  WHILE place <= pg_catalog.cardinality(units) LOOP
    unit := units[place];
    sign := pg_catalog.ascii(unit);
    known := NULL;
    step := 1;
    IF unit IN (',', ';', '!', '?', '。', '、') THEN
      known := CASE unit WHEN '、' THEN unit ELSE ',' END;
    ELSIF sign >= 11904 THEN -- from U+2E80 on: Chinese
      FOR size IN REVERSE coalesce((lexicon ->> ('^' || unit))::integer, 0)..1 LOOP
        known := lexicon ->> pg_catalog.array_to_string(units[place:place + size - 1], '');
        step := size;
        EXIT WHEN known IS NOT NULL;
      END LOOP;
      IF step = 1 AND pg_catalog.strpos(numerals, unit) > 0 THEN
        WHILE pg_catalog.strpos(numerals, units[place + step]) > 0 LOOP
          step := step + 1;
        END LOOP;
        token := hindsight._number(pg_catalog.array_to_string(units[place:place + step - 1], ''));
        known := CASE WHEN pg_catalog.ascii(token) <= 57 THEN '#' || token WHEN step = 1 THEN known ELSE '=' || token END;
      END IF;
    ELSIF sign BETWEEN 97 AND 122 THEN -- a to z
      FOR size IN REVERSE greatest((lexicon ->> ('^' || unit))::integer, (lexicon ->> ('^' || stems[place]))::integer, 0)..1 LOOP
        known := coalesce(lexicon ->> pg_catalog.array_to_string(units[place:place + size - 1], ' '),
                          lexicon ->> pg_catalog.array_to_string(stems[place:place + size - 1], ' '));
        step := size;
        EXIT WHEN known IS NOT NULL;
      END LOOP;
      is_past := is_past OR hindsight._is_past(units, stems, place);
      IF step = 1 AND unit IN ('has', 'have', 'had') THEN -- what one has, or a tense
        token := units[place + 1];
        is_past := is_past OR coalesce(token LIKE '%ed' OR hindsight._irregular_forms_v1() ? token, false);
        known := CASE WHEN token LIKE '%ed' OR hindsight._irregular_forms_v1() ? token
                        OR token IN ('been', 'not', 'never', 'already', 'just', 'now', 'also', 'recently') THEN ''
                      ELSE 'have' END;
      ELSIF unit IN ('get', 'gets', 'got') AND (units[place + 1] LIKE '%ed' OR hindsight._irregular_forms_v1() ? units[place + 1])
        AND step = 1 AND units[place + 1] NOT IN ('used', 'married', 'tired', 'divorced', 'engaged', 'lost', 'left') THEN
        known := ''; -- gets sent: is sent
      ELSIF known IS NULL AND unit LIKE '___%ly' THEN
        known := stems[place] || '~'; -- an adverb may stand elsewhere
      ELSIF unit IN ('the', 'a', 'an') AND pg_catalog."right"(held, 2) COLLATE "C" BETWEEN '0_' AND '9_' THEN -- in 2020 the …
        said := said || pg_catalog.rtrim(held, '_');
        held := '';
      END IF;
    ELSIF unit IN ('@am', '@pm') THEN
      half := pg_catalog.substr(unit, 2);
      known := '';
    ELSIF sign BETWEEN 48 AND 57 OR pg_catalog.strpos('$€£', pg_catalog."left"(unit, 1)) > 0 THEN
      parts := pg_catalog.regexp_match(unit, '^([$€£]?)(\d+(?:[.:]\d+)*)([a-z%°]*)$');
      IF parts[3] NOT IN ('st', 'nd', 'rd', 'th') THEN
        token := coalesce(nullif(parts[3], ''), parts[1]);
        known := '#' || parts[2] || CASE WHEN token = '' THEN '' ELSE ' ' || coalesce(lexicon ->> token, token) END;
      END IF;
    END IF;

    IF known LIKE '#%' AND pg_catalog.translate(known, '0123456789', '') = '#' THEN
      IF units[place + step] = '点' AND pg_catalog.length(known) <= 3 THEN
        step := step + 1;
        SELECT known || ':' || m.minutes, step + m.size INTO known, step FROM hindsight._minutes(units, place + step) AS m;
      ELSIF half IS NOT NULL AND pg_catalog.length(known) <= 3 THEN
        known := known || ':00';
      ELSIF units[place + step] = '月' THEN
        known := pg_catalog.ltrim(known, '#0') || '月';
        step := step + 1;
      ELSIF units[place + step] IN ('台', '辆', '部', '只', '条', '张', '本', '枚', '篇', '艘')
        AND pg_catalog.ascii(units[place + step + 1]) >= 19968 AND units[place + step + 1] NOT IN ('分', '门', '长', '地', '身') THEN
        step := step + 1; -- a measure word before what is counted
      ELSIF units[place + step] IN ('日', '号') AND said[pg_catalog.cardinality(said)] LIKE '%月' THEN
        known := '日' || pg_catalog.ltrim(known, '#0');
        step := step + 1;
      END IF;
    END IF;
    IF known LIKE '#%:__' THEN
      known := '=' || hindsight._clock(pg_catalog.substr(known, 2), half);
      half := NULL;
    END IF;

    FOREACH token IN ARRAY pg_catalog.string_to_array(coalesce(known, '=' || stems[place]), ' ') LOOP
      has_number := pg_catalog."right"(held, 2) COLLATE "C" BETWEEN '0_' AND '9_';
      CASE pg_catalog."left"(token, 1)
      WHEN '_' THEN
        IF token <> '_any' OR 'not' <> ALL (units[:place]) THEN -- not … any: the negation says it
          held := held || pg_catalog.substr(token, 2) || '_';
        END IF;
      WHEN '*' THEN -- hundred, thousand, 万
        parts := pg_catalog.regexp_match(held, '^(.*?)(\d+(?:\.\d+)?)_$');
        held := coalesce(parts[1] || pg_catalog.trim_scale(parts[2]::numeric * pg_catalog.substr(token, 2)::numeric),
                         held || pg_catalog.substr(token, 2)) || '_';
      WHEN '#', '~' THEN
        IF has_number AND token LIKE '#_' AND held LIKE '%0\_' AND sign BETWEEN 97 AND 122 THEN -- twenty-five
          held := pg_catalog."left"(held, -2) || pg_catalog.substr(token, 2) || '_';
        ELSE
          IF has_number THEN
            said := said || pg_catalog.rtrim(held, '_');
            held := '';
          END IF;
          held := held || pg_catalog.substr(token, 2) || CASE WHEN token LIKE '#%' THEN '_' ELSE '~' END;
        END IF;
      ELSE
        IF token IN (',', '、', '&') THEN
          said := CASE WHEN held = '' THEN said ELSE said || pg_catalog.rtrim(held, '_~') END || token;
          held := '';
        ELSIF token IN ('''s', 'of') THEN
          said := CASE WHEN held = '' THEN said || token ELSE said END;
        ELSIF token LIKE '%月' AND has_number THEN -- 5 March
          parts := pg_catalog.regexp_match(held, '^(.*?)(\d+)_$');
          said := said || (parts[1] || token) || ('日' || parts[2]);
          held := '';
        ELSE
          IF held = '' AND token LIKE '周~%' AND said[pg_catalog.cardinality(said) - 1] LIKE '_%周~_' THEN -- on Monday and Friday
            held := pg_catalog.split_part(said[pg_catalog.cardinality(said) - 1], '周', 1);
          END IF;
          IF has_number AND token IN ('week', 'hour', 'minute') AND coalesce(said[pg_catalog.cardinality(said)] NOT LIKE '%第', true) THEN
            parts := pg_catalog.regexp_match(held, '^(.*?)(\d+(?:\.\d+)?)_$'); -- two weeks are 14 days
            held := coalesce(parts[1] || pg_catalog.trim_scale(
              parts[2]::numeric * CASE token WHEN 'week' THEN 7 WHEN 'hour' THEN 3600 ELSE 60 END) || '_', held);
            token := CASE WHEN parts IS NULL THEN token WHEN token = 'week' THEN 'day' ELSE 'second' END;
          END IF;
          said := said || (held || CASE WHEN token LIKE '=%' THEN pg_catalog.substr(token, 2) ELSE token END);
          held := '';
          IF token LIKE '%月' AND pg_catalog.ascii(units[place + step]) BETWEEN 48 AND 57
             AND pg_catalog.length(units[place + step]) <= 2 THEN
            said := said || ('日' || pg_catalog.ltrim(units[place + step], '0')); -- March 5
            step := step + CASE WHEN units[place + step + 1] IN ('日', '号') THEN 2 ELSE 1 END;
          END IF;
        END IF;
      END CASE;
    END LOOP;
    place := place + step;
  END LOOP;
  IF held <> '' THEN
    said := said || pg_catalog.rtrim(held, '_~');
  END IF;
  WHILE said[pg_catalog.cardinality(said)] IN (',', '、', '&', '''s', 'of') LOOP
    said := pg_catalog.trim_array(said, 1);
  END LOOP;
  RETURN CASE WHEN is_past THEN '<past'::text || said ELSE said END;
END
$$;
