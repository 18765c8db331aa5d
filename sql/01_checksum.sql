-- Numbers that carry a check of their own. What fails it is another number (an order, a serial), and stays.

-- _is_card: whether these are the 14 to 19 digits of a payment card: a range that cards have, with its length, and Luhn's checksum.
CREATE OR REPLACE FUNCTION hindsight._is_card(digits text)
  RETURNS boolean
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN digits ~ ('^(?:4[0-9]{15}|4[0-9]{18}|5[1-5][0-9]{14}|2(?:2[2-9]|[3-6][0-9]|7[01])[0-9]{13}|2720[0-9]{12}|3[47][0-9]{13}'
                 '|3(?:0[0-5]|[68][0-9])[0-9]{11}|35[0-9]{14}|6(?:011|4[4-9][0-9]|5[0-9]{2})[0-9]{12}|62[0-9]{14,17}|9558[0-9]{15})$')
  AND (SELECT pg_catalog.sum(CASE WHEN (pg_catalog.length(digits) - d.place) % 2 = 0 THEN d.digit::integer
                                  ELSE d.digit::integer * 2 - CASE WHEN d.digit > '4' THEN 9 ELSE 0 END END)
       FROM pg_catalog.string_to_table(digits, NULL) WITH ORDINALITY AS d(digit, place)) % 10 = 0;

-- _is_resident_id: whether this is a resident identity number of mainland China: 6 digits of a place, a date of birth, 3 digits, and
-- the checksum of GB 11643 (ISO 7064, MOD 11-2), whose 10 is an X.
CREATE OR REPLACE FUNCTION hindsight._is_resident_id(number text)
  RETURNS boolean
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN CASE
  WHEN number !~ '^[1-9][0-9]{5}(?:19|20)[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])[0-9]{3}[0-9X]$' THEN false
  ELSE pg_catalog.substr('10X98765432',
    (SELECT pg_catalog.sum(d.digit::integer * w.weight)
     FROM pg_catalog.string_to_table(pg_catalog."left"(number, 17), NULL) WITH ORDINALITY AS d(digit, place)
     JOIN pg_catalog.unnest('{7,9,10,5,8,4,2,1,6,3,7,9,10,5,8,4,2}'::integer[]) WITH ORDINALITY AS w(weight, place) USING (place)
    )::integer % 11 + 1, 1) = pg_catalog."right"(number, 1)
END;

-- _iban_length: how many characters an IBAN of that country has; NULL: the country has none.
CREATE OR REPLACE FUNCTION hindsight._iban_length(country text)
  RETURNS integer
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN ('{"AD":24,"AE":23,"AL":28,"AT":20,"AZ":28,"BA":20,"BE":16,"BG":22,"BH":22,"BI":27,"BR":29,"BY":28,"CH":21,"CR":22,"CY":28,
  "CZ":24,"DE":22,"DJ":27,"DK":18,"DO":28,"EE":20,"EG":29,"ES":24,"FI":18,"FK":18,"FO":18,"FR":27,"GB":22,"GE":22,"GI":23,"GL":18,
  "GR":27,"GT":28,"HR":21,"HU":28,"IE":22,"IL":23,"IQ":23,"IS":26,"IT":27,"JO":30,"KW":30,"KZ":20,"LB":28,"LC":32,"LI":21,"LT":20,
  "LU":20,"LV":21,"LY":25,"MC":27,"MD":24,"ME":22,"MK":19,"MN":20,"MR":27,"MT":31,"MU":30,"NI":28,"NL":18,"NO":15,"OM":23,"PK":24,
  "PL":28,"PS":29,"PT":25,"QA":29,"RO":24,"RS":22,"RU":33,"SA":24,"SC":31,"SD":18,"SE":24,"SI":19,"SK":24,"SM":27,"SO":23,"ST":25,
  "SV":28,"TL":23,"TN":24,"TR":26,"UA":29,"VA":22,"VG":24,"XK":20,"YE":30}'::jsonb ->> country)::integer;

-- _is_iban: whether this is an IBAN without spaces: its country's length, and 1 as the remainder by 97 (ISO 7064, MOD 97-10).
CREATE OR REPLACE FUNCTION hindsight._is_iban(number text)
  RETURNS boolean
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN CASE
  WHEN number !~ '^[A-Z]{2}[0-9]{2}[A-Z0-9]+$' OR pg_catalog.length(number) IS DISTINCT FROM hindsight._iban_length(pg_catalog."left"(number, 2))
    THEN false
  ELSE (
    SELECT pg_catalog.string_agg(CASE WHEN c.one >= 'A' COLLATE "C" THEN (pg_catalog.ascii(c.one) - 55)::text ELSE c.one END, '' ORDER BY c.place)
    FROM pg_catalog.string_to_table(pg_catalog.substr(number, 5) || pg_catalog."left"(number, 4), NULL) WITH ORDINALITY AS c(one, place)
  )::numeric % 97 = 1
END;

-- _is_abroad: whether these are the digits of a telephone number in international form: a country code of E.164 and 15 digits at
-- most; of North America (1) and Russia (7) 11, where an area code does not begin with 0 or 1.
CREATE OR REPLACE FUNCTION hindsight._is_abroad(digits text)
  RETURNS boolean
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN digits ~ ('^(?:1[2-9][0-9]{2}[2-9][0-9]{6}|7[0-9]{10}|(?:2[07]|3[0-469]|4[013-9]|5[1-8]|6[0-6]|8[1246]|9[0-58])[0-9]{7,13}'
                 '|(?:2[1-69]|3[578]|42|5[09]|6[789]|8[058]|9[679])[0-9][0-9]{6,12})$');
