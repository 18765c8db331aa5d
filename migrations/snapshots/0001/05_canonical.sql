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
  FROM (SELECT pg_catalog.split_part(reading, ':', 1)::integer AS hour, ':' || pg_catalog.split_part(reading, ':', 2) AS minutes) AS r);

-- _canonical: what a sentence says, in its order: each word without inflection and by one name for each thing, without those
-- that say nothing, numbers as digits. What others hang on stands before them: not_meat, 22_port, from~laptop; separators stand
-- alone. First stands <past, if the sentence tells of the past.
CREATE OR REPLACE FUNCTION hindsight._canonical(content text)
  RETURNS text[]
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
AS $$
DECLARE
  lexicon constant jsonb := hindsight._lexicon();
  irregular constant jsonb := hindsight._irregular_forms_v1() - '{children,men,women,feet,teeth,mice}'::text[];
  plain text := pg_catalog.lower(hindsight._simplified(pg_catalog.normalize(content, 'NFKC')));
  units text[];
  stems text[];
  unit text;
  place integer := 1;
  step integer;
  known text; -- the meaning of the units from place on, as many as step
  token text;
  parts text[];
  half text; -- of the day
  step_back integer;
  held text := '';
  said text[] := '{}';
  is_past boolean := false;
BEGIN
  plain := pg_catalog.regexp_replace(plain, '(\d),(?=\d{3}(?!\d))', '\1', 'g');
  IF plain ~ '[a-z]' THEN
    plain := pg_catalog.regexp_replace(pg_catalog.translate(plain, '’‘', ''''''), '\mcannot\M', 'can not', 'g');
    plain := pg_catalog.regexp_replace(plain, 'n''t\M', ' not', 'g');
    plain := pg_catalog.regexp_replace(plain, '''(?:re|ve|ll|d|m)\M', '', 'g');
    plain := pg_catalog.regexp_replace(plain, '''s\M|(?<=s)''(?= )', ' 的 ', 'g'); -- Alice's: 的
    plain := pg_catalog.regexp_replace(plain, '\m([a-z])-(?=[a-z]{3})', '\1', 'g'); -- e-mail
    plain := pg_catalog.regexp_replace(plain, '([a-z])-(?=[a-z]+(?:[\s,;!?.]|$))', '\1 ', 'g');
    IF plain ~ '\d(?:st|nd|rd|th)\M' THEN -- 3rd of March, March 3rd
      plain := pg_catalog.regexp_replace(plain, '(\d)(?:st|nd|rd|th) (?:of )?(?=(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec))', '\1 ', 'g');
      plain := pg_catalog.regexp_replace(plain, '\m((?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]* \d\d?)(?:st|nd|rd|th)\M', '\1', 'g');
    END IF;
    plain := pg_catalog.regexp_replace(plain, '(\d[\d:]*)\s*([ap])\.?m\M\.?', ' @\2m \1', 'g');
  END IF;
  IF plain ~ '[点:]' THEN
    plain := pg_catalog.regexp_replace(plain, '(?:早上|上午|凌晨|清晨|早晨)的?(?=[0-9一二两三四五六七八九十]+ ?[点:])', ' @am ', 'g');
    plain := pg_catalog.regexp_replace(plain, '(?:下午|晚上|傍晚|夜里|中午)的?(?=[0-9一二两三四五六七八九十]+ ?[点:])', ' @pm ', 'g');
  END IF;
  plain := pg_catalog.regexp_replace(plain, '百分之([零一二两三四五六七八九十百]+|[0-9.]+)', '\1%', 'g');
  plain := pg_catalog.regexp_replace(plain, '(\d{4})-(\d\d?)-(\d\d?)(?![\d-])', '\1年\2月\3日', 'g');
  plain := pg_catalog.regexp_replace(plain, '([0-9零一二两三四五六七八九十百]+[^\s0-9,;!?。]?[^\s0-9,;!?。]?[^\s0-9,;!?。]?)(?:左右|上下)', '约\1', 'g');
  IF plain ~ ', so |, therefore|,(?:所以|因此|因而|于是)' THEN -- a cause is named as one
    plain := pg_catalog.regexp_replace(plain, '^(?!because)([^,]+), (?:so|therefore,?) (?!that)', 'because \1, ');
    plain := pg_catalog.regexp_replace(plain, '^(?!因|由于)([^,。]+),(?:所以|因此|因而|于是)', '因为\1,');
  END IF;
  IF plain ~ '先' THEN -- B 之前先 A is 先 A, 再 B
    plain := pg_catalog.regexp_replace(plain, '^([^,。]*[^,。之以])[之以]?前,?(?:要|需要|需|必须|得|应)?先([^,。]+)', '先\2,再\1');
    plain := pg_catalog.regexp_replace(plain, '(?:要|需要|需|必须|得|应)先', '先', 'g');
  END IF;
  IF plain ~ '的话|为' THEN
    plain := pg_catalog.regexp_replace(plain, '(^|[,;。])(?!如果|要是|假如|若)([^,;。]+)的话', '\1如果\2', 'g');
    plain := pg_catalog.regexp_replace(plain, '为(?= ?[0-9一二两三四五六七八九十])', '是', 'g');
  END IF;
  units := ARRAY(
    SELECT m.match[1]
    FROM pg_catalog.regexp_matches(plain,
           '([\u2e80-\u3000\u3003-\uffff]|[,;!?。、]|[<>=≤≥≠]+|[^\s\u2e80-\uffff,;!?<>=≤≥≠"“”«»`''()\[\]{}…—–·•*|]+)', 'g')
         WITH ORDINALITY AS m(match, place)
    WHERE m.match[1] !~ '^[\u3003-\u3004\u3008-\u3020\u3030]$'
    ORDER BY m.place);
  units := ARRAY(SELECT CASE WHEN u.unit ~ '[.:/-]$' THEN pg_catalog.rtrim(u.unit, '.:/-') ELSE u.unit END
                 FROM pg_catalog.unnest(units) WITH ORDINALITY AS u(unit, place)
                 WHERE pg_catalog.rtrim(u.unit, '.:/-~') <> '' ORDER BY u.place);
  stems := ARRAY(SELECT CASE WHEN u.unit ~ '^[a-z]+$' THEN hindsight._stem(u.unit) ELSE u.unit END
                 FROM pg_catalog.unnest(units) WITH ORDINALITY AS u(unit, place) ORDER BY u.place);

  WHILE place <= pg_catalog.cardinality(units) LOOP
    unit := units[place];
    known := NULL;
    step := 1;
    IF unit IN (',', ';', '!', '?', '。', '、') THEN
      known := CASE unit WHEN '、' THEN unit ELSE ',' END;
    ELSIF pg_catalog.ascii(unit) >= 11904 THEN -- U+2E80: Chinese
      FOR size IN REVERSE coalesce((lexicon ->> ('^' || unit))::integer, 0)..1 LOOP
        known := lexicon ->> pg_catalog.array_to_string(units[place:place + size - 1], '');
        step := size;
        EXIT WHEN known IS NOT NULL;
      END LOOP;
      IF step = 1 AND unit ~ '[零〇一二两三四五六七八九十百千万亿]' THEN
        WHILE units[place + step] ~ '^[零〇一二两三四五六七八九十百千万亿]$' LOOP
          step := step + 1;
        END LOOP;
        known := hindsight._number(pg_catalog.array_to_string(units[place:place + step - 1], ''));
        known := CASE WHEN known ~ '^\d' THEN '#' || known ELSE known END;
      END IF;
    ELSIF unit ~ '^[a-z]' THEN
      FOR size IN REVERSE greatest((lexicon ->> ('^' || unit))::integer, (lexicon ->> ('^' || stems[place]))::integer, 0)..1 LOOP
        known := coalesce(lexicon ->> pg_catalog.array_to_string(units[place:place + size - 1], ' '),
                          lexicon ->> pg_catalog.array_to_string(stems[place:place + size - 1], ' '));
        step := size;
        EXIT WHEN known IS NOT NULL;
      END LOOP;
      IF unit IN ('the', 'a', 'an') AND held ~ '\d_$' THEN -- in 2020 the …
        said := said || pg_catalog.rtrim(held, '_');
        held := '';
      END IF;
      IF known IS NULL AND unit ~ '...ly$' THEN
        known := stems[place] || '~'; -- an adverb may stand elsewhere
      END IF;
      IF unit IN ('was', 'were', 'had', 'did') THEN
        is_past := true;
      ELSIF irregular ? unit OR (unit LIKE 're%' AND irregular ? pg_catalog.substr(unit, 3)) OR (unit LIKE '%ed' AND stems[place] <> unit) THEN
        step_back := place - 1;
        WHILE units[step_back] IN ('not', 'also', 'already', 'never', 'always', 'now', 'just') OR units[step_back] LIKE '%ly' LOOP
          step_back := step_back - 1;
        END LOOP;
        is_past := is_past OR units[step_back] IS NULL OR units[step_back] <> ALL ('{is,are,be,been,being,get,gets,to,will,can,must,may,should,would,could,might}');
      END IF;
      IF unit IN ('has', 'have', 'had') AND step = 1 THEN
        is_past := is_past OR coalesce(units[place + 1] = 'been' OR irregular ? units[place + 1] OR units[place + 1] LIKE '%ed', false);
        known := CASE WHEN units[place + 1] LIKE '%ed' OR irregular ? units[place + 1]
                        OR units[place + 1] IN ('been', 'not', 'never', 'already', 'just', 'now', 'also', 'recently') THEN '' ELSE 'have' END;
      END IF;
    ELSIF unit IN ('@am', '@pm') THEN
      half := pg_catalog.substr(unit, 2);
      known := '';
    ELSIF unit ~ '^[$€£]?[0-9]' THEN
      parts := pg_catalog.regexp_match(unit, '^([$€£]?)(\d+(?:[.:]\d+)*)([a-z%°]*)$');
      IF parts IS NULL OR parts[3] IN ('st', 'nd', 'rd', 'th') THEN
        known := unit;
      ELSE
        known := '#' || parts[2] || CASE WHEN parts[3] <> '' THEN ' ' || coalesce(lexicon ->> parts[3], parts[3])
                                         WHEN parts[1] <> '' THEN ' ' || coalesce(lexicon ->> parts[1], parts[1]) ELSE '' END;
      END IF;
    END IF;

    IF known ~ '^#\d+$' THEN -- a number: of a clock, of a date
      IF units[place + step] = '点' AND known ~ '^#\d\d?$' THEN
        parts := ARRAY[coalesce(CASE WHEN units[place + step + 1] = '半' THEN '30' END, '00')];
        step := step + CASE WHEN parts[1] = '30' OR units[place + step + 1] IN ('钟', '整') THEN 2 ELSE 1 END;
        IF parts[1] = '00' AND units[place + step] ~ '^([0-9]+|[一二三四五]|十)$' THEN
          token := '';
          WHILE units[place + step] ~ '^([0-9]+|[零一二三四五六七八九十])$' LOOP
            token := token || units[place + step];
            step := step + 1;
          END LOOP;
          parts := ARRAY[pg_catalog.lpad(CASE WHEN token ~ '^[0-9]+$' THEN token ELSE hindsight._number(token) END, 2, '0')];
          step := step + CASE WHEN units[place + step] = '分' AND units[place + step + 1] IS DISTINCT FROM '钟' THEN 1 ELSE 0 END;
        END IF;
        known := known || ':' || parts[1];
      ELSIF half IS NOT NULL AND known ~ '^#\d\d?$' THEN
        known := known || ':00';
      ELSIF units[place + step] = '月' THEN
        known := pg_catalog.ltrim(known, '#0') || '月';
        step := step + 1;
      ELSIF units[place + step] IN ('日', '号') AND said[pg_catalog.cardinality(said)] LIKE '%月' THEN
        known := '日' || pg_catalog.ltrim(known, '#0');
        step := step + 1;
      END IF;
    END IF;
    IF known ~ '^#\d\d?:\d\d$' THEN
      known := hindsight._clock(pg_catalog.substr(known, 2), half);
      half := NULL;
    END IF;

    FOREACH token IN ARRAY pg_catalog.string_to_array(coalesce(known, stems[place]), ' ') LOOP
      IF token = '_any' AND 'not' = ANY (units[:place]) THEN
        NULL; -- not … any: the negation says it
      ELSIF token ~ '^_.' THEN
        held := held || pg_catalog.substr(token, 2) || '_';
      ELSIF token IN ('''s', 'of') THEN
        said := CASE WHEN held = '' THEN said || token ELSE said END;
      ELSIF token ~ '^\*\d' THEN -- hundred, thousand, 万
        held := CASE WHEN held ~ '\d_$' THEN pg_catalog.regexp_replace(held, '[\d.]+_$', '')
                       || pg_catalog.trim_scale((pg_catalog.regexp_match(held, '(\d+(?:\.\d+)?)_$'))[1]::numeric * pg_catalog.substr(token, 2)::numeric)
                     ELSE held || pg_catalog.substr(token, 2) END || '_';
      ELSIF token ~ '^#[1-9]$' AND held ~ '(^|[~_])[2-9]0_$' AND unit ~ '^[a-z]' THEN -- twenty-five
        held := pg_catalog.regexp_replace(held, '0_$', pg_catalog.substr(token, 2) || '_');
      ELSIF token ~ '^[~#].' THEN
        IF held ~ '\d_$' THEN
          said := said || pg_catalog.rtrim(held, '_');
          held := '';
        END IF;
        held := held || pg_catalog.substr(token, 2) || CASE WHEN token ~ '^~' THEN '~' ELSE '_' END;
      ELSIF token IN (',', '、', '&') THEN
        said := CASE WHEN held = '' THEN said ELSE said || pg_catalog.rtrim(held, '_~') END || token;
        held := '';
      ELSIF token ~ '^\d+月$' AND (held ~ '(^|[~_])\d+_$' OR units[place + step] ~ '^\d\d?$') THEN -- 5 March, March 5
        IF held !~ '\d_$' THEN
          said := said || (held || token) || ('日' || pg_catalog.ltrim(units[place + step], '0'));
          step := step + CASE WHEN units[place + step + 1] IN ('日', '号') THEN 2 ELSE 1 END;
        ELSE
          said := said || (pg_catalog.regexp_replace(held, '\d+_$', '') || token)
                       || ('日' || (pg_catalog.regexp_match(held, '(\d+)_$'))[1]);
        END IF;
        held := '';
      ELSE
        IF held = '' AND token ~ '^周~' AND said[pg_catalog.cardinality(said) - 1] ~ '^[^周]+周~\d$' THEN -- on Monday and Friday
          held := pg_catalog.substring(said[pg_catalog.cardinality(said) - 1], '^[^周]+');
        END IF;
        said := said || (held || token);
        held := '';
      END IF;
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
