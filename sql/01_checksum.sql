-- Numbers that carry a check of their own. What fails it is another number (an order, a serial), and stays.

-- _is_card: whether these are the digits of a payment card: a range that cards have, with its length, and Luhn's checksum. The table
-- holds what each pair of digits adds to it, the first one doubled: a loop over digits takes ten times as long.
CREATE OR REPLACE FUNCTION hindsight._is_card(digits text)
  RETURNS boolean
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
AS $$
DECLARE
  pair constant bytea := '\x0001020304050607080902030405060708090a0b0405060708090a0b0c0d060708090a0b0c0d0e0f08090a0b0c0d0e0f1011'
    '0102030405060708090a030405060708090a0b0c05060708090a0b0c0d0e0708090a0b0c0d0e0f10090a0b0c0d0e0f101112';
  size constant integer := pg_catalog.length(digits);
  start constant integer := pg_catalog."left"(digits, 4)::integer;
  d constant text := pg_catalog.lpad(digits, 20, '0');
BEGIN
  RETURN CASE size
      WHEN 16 THEN start BETWEEN 4000 AND 4999 OR start BETWEEN 5100 AND 5599 OR start BETWEEN 2221 AND 2720 OR start BETWEEN 3500 AND 3599
                   OR start = 6011 OR start BETWEEN 6200 AND 6299 OR start BETWEEN 6440 AND 6599
      WHEN 15 THEN start BETWEEN 3400 AND 3499 OR start BETWEEN 3700 AND 3799
      WHEN 14 THEN start BETWEEN 3000 AND 3059 OR start BETWEEN 3600 AND 3699 OR start BETWEEN 3800 AND 3999
      WHEN 19 THEN start BETWEEN 4000 AND 4999 OR start BETWEEN 6200 AND 6299 OR start = 9558
      ELSE size IN (17, 18) AND start BETWEEN 6200 AND 6299 END
    AND (pg_catalog.get_byte(pair, pg_catalog.substr(d, 1, 2)::integer) + pg_catalog.get_byte(pair, pg_catalog.substr(d, 3, 2)::integer)
         + pg_catalog.get_byte(pair, pg_catalog.substr(d, 5, 2)::integer) + pg_catalog.get_byte(pair, pg_catalog.substr(d, 7, 2)::integer)
         + pg_catalog.get_byte(pair, pg_catalog.substr(d, 9, 2)::integer) + pg_catalog.get_byte(pair, pg_catalog.substr(d, 11, 2)::integer)
         + pg_catalog.get_byte(pair, pg_catalog.substr(d, 13, 2)::integer) + pg_catalog.get_byte(pair, pg_catalog.substr(d, 15, 2)::integer)
         + pg_catalog.get_byte(pair, pg_catalog.substr(d, 17, 2)::integer) + pg_catalog.get_byte(pair, pg_catalog.substr(d, 19, 2)::integer)) % 10 = 0;
END
$$;

-- _is_resident_id: whether this is a resident identity number of mainland China: 6 digits of a place, a date of birth, 3 digits, and
-- the checksum of GB 11643 (ISO 7064, MOD 11-2), whose 10 is an X.
CREATE OR REPLACE FUNCTION hindsight._is_resident_id(number text)
  RETURNS boolean
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
AS $$
DECLARE
  bytes constant bytea := number::bytea;
  total integer := 0;
BEGIN
  IF pg_catalog.length(number) <> 18 OR pg_catalog.substr(number, 7, 2) NOT IN ('19', '20')
     OR pg_catalog.substr(number, 11, 2) NOT BETWEEN '01' AND '12' OR pg_catalog.substr(number, 13, 2) NOT BETWEEN '01' AND '31' THEN
    RETURN false;
  END IF;
  FOR place IN 0..16 LOOP -- the weights are the powers of 2 by 11, from the right
    total := (total * 2 + (pg_catalog.get_byte(bytes, place) - 48)) % 11;
  END LOOP;
  RETURN pg_catalog.substr('10X98765432', total * 2 % 11 + 1, 1) = pg_catalog."right"(number, 1);
END
$$;

-- _iban_length: how many characters an IBAN of that country has; 0: the country has none.
CREATE OR REPLACE FUNCTION hindsight._iban_length(country text)
  RETURNS integer
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN (CASE WHEN country !~ '^[A-Z]{2}$' THEN '0' ELSE '0' || pg_catalog.substr(pg_catalog.split_part(
  'AD24AE23AL28AT20AZ28BA20BE16BG22BH22BI27BR29BY28CH21CR22CY28CZ24DE22DJ27DK18DO28EE20EG29ES24FI18FK18FO18FR27GB22GE22GI23GL18GR27GT28'
  'HR21HU28IE22IL23IQ23IS26IT27JO30KW30KZ20LB28LC32LI21LT20LU20LV21LY25MC27MD24ME22MK19MN20MR27MT31MU30NI28NL18NO15OM23PK24PL28PS29PT25'
  'QA29RO24RS22RU33SA24SC31SD18SE24SI19SK24SM27SO23ST25SV28TL23TN24TR26UA29VA22VG24XK20YE30', country, 2), 1, 2) END)::integer;

-- _is_iban: whether this is an IBAN without spaces: its country's length, and 1 as the remainder by 97 (ISO 7064, MOD 97-10).
CREATE OR REPLACE FUNCTION hindsight._is_iban(number text)
  RETURNS boolean
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
AS $$
DECLARE
  bytes constant bytea := (pg_catalog.substr(number, 5) || pg_catalog."left"(number, 4))::bytea;
  remainder integer := 0;
  code integer;
BEGIN
  IF pg_catalog.length(number) <> hindsight._iban_length(pg_catalog."left"(number, 2)) THEN
    RETURN false;
  END IF;
  FOR place IN 0..pg_catalog.length(bytes) - 1 LOOP
    code := pg_catalog.get_byte(bytes, place);
    remainder := CASE WHEN code < 65 THEN remainder * 10 + code - 48 ELSE remainder * 100 + code - 55 END % 97;
  END LOOP;
  RETURN remainder = 1;
END
$$;

-- _is_abroad: whether these are the digits of a telephone number in international form: a country code of E.164 and 15 digits at
-- most; of North America (1) and Russia (7) 11, where an area code does not begin with 0 or 1.
CREATE OR REPLACE FUNCTION hindsight._is_abroad(digits text)
  RETURNS boolean
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
AS $$
DECLARE
  size constant integer := pg_catalog.length(digits);
BEGIN
  RETURN CASE
    WHEN digits LIKE '1%' THEN size = 11 AND pg_catalog.substr(digits, 2, 1) >= '2' AND pg_catalog.substr(digits, 5, 1) >= '2'
    WHEN digits LIKE '7%' THEN size = 11
    WHEN pg_catalog."left"(digits, 2) IN ('20', '27', '30', '31', '32', '33', '34', '36', '39', '40', '41', '43', '44', '45', '46', '47', '48', '49',
      '51', '52', '53', '54', '55', '56', '57', '58', '60', '61', '62', '63', '64', '65', '66', '81', '82', '84', '86', '90', '91', '92', '93', '94',
      '95', '98') THEN size BETWEEN 9 AND 15
    WHEN pg_catalog."left"(digits, 2) IN ('21', '22', '23', '24', '25', '26', '29', '35', '37', '38', '42', '50', '59', '67', '68', '69', '80', '85',
      '87', '88', '96', '97', '99') THEN size BETWEEN 10 AND 15
    ELSE false END;
END
$$;
