-- Numbers and keys that are secrets by their shape.

-- _is_known_key: whether this is a key or token as a known service gives them out, by how it begins.
CREATE OR REPLACE FUNCTION hindsight._is_known_key(candidate text, before text)
  RETURNS boolean
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
  WHEN pg_catalog."left"(candidate, 3) IN ('sk-', 'eyJ', 'SG.', 'hf_', 'r8_') THEN
    candidate ~ '^(?:sk-.{17}|eyJ.{5,}\..{5,}\.|SG\..{15,}\..{15}|hf_.{25}|r8_.{25})' AND candidate ~ '[0-9]'
  WHEN pg_catalog."left"(candidate, 4) IN ('AKIA', 'ASIA') THEN candidate ~ '^.{4}[A-Z0-9]{16}$'
  WHEN pg_catalog."left"(candidate, 4) IN ('LTAI', 'AKID') THEN candidate ~ '^.{4}[A-Za-z0-9]{12,36}$'
  WHEN pg_catalog."left"(candidate, 4) IN ('AIza', 'ghp_', 'gho_', 'ghu_', 'ghs_', 'ghr_', 'npm_', 'gsk_') THEN pg_catalog.length(candidate) >= 30
  WHEN pg_catalog."left"(candidate, 5) IN ('xoxb-', 'xoxp-', 'xoxa-', 'xoxs-', 'xoxr-', 'xoxe-', 'xapp-', 'pypi-', 'tvly-', 'pplx-', 'ya29.') THEN
    candidate ~ '[0-9]'
  WHEN pg_catalog."left"(candidate, 6) IN ('glpat-', 'dop_v1', 'shpat_', 'shpss_', 'nvapi-', 'github') THEN candidate !~ '^github(?!_pat_)|^dop_v1(?!_)'
  WHEN pg_catalog."left"(candidate, 3) IN ('sk_', 'rk_') THEN candidate ~ '^.k_(?:live|test)_.{10}'
  WHEN pg_catalog."left"(candidate, 2) = 'AA' THEN before ~ '[0-9]{8,10}:$' AND pg_catalog.length(candidate) BETWEEN 33 AND 36 -- Telegram
  ELSE false
END;

-- _secret_number: a number as it is compared with others, or NULL where it is none of its kind; and what follows it.
CREATE OR REPLACE FUNCTION hindsight._secret_number(
  kind text, form text, candidate text, before text, after text, OUT value text, OUT rest text)
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
AS $$
DECLARE
  digits text := pg_catalog.upper(pg_catalog.translate(candidate, ' -.()+', ''));
  size integer;
BEGIN
  rest := '';
  IF kind <> 'ip' AND (before ~ '[A-Za-z0-9_][.-]$|[$¥€£]$' OR after ~ '^[.@-][A-Za-z0-9]') THEN
    RETURN; -- a part of a name: report-138….pdf, 123-45-6789-A
  ELSIF kind IN ('card', 'phone', 'ssn') AND form <> 'abroad' AND before ~*
     '(?:订单|单号|编号|流水|运单|快递|工单|序列|条码|学号|合同|order|invoice|ticket|tracking|serial|part|sku|build)[^0-9A-Za-z]*(?:number|num|no|号|id)?[^0-9A-Za-z]*$' THEN
    RETURN;
  END IF;
  CASE kind
  WHEN 'resident_id' THEN
    IF hindsight._is_resident_id(digits) THEN
      value := digits;
    END IF;
  WHEN 'card' THEN
    IF NOT hindsight._is_card(digits) AND candidate ~ '[ -][0-9]{1,3}$' THEN -- another number may follow a card
      rest := pg_catalog.substring(candidate, '[ -][0-9]{1,3}$');
      digits := pg_catalog."left"(digits, 1 - pg_catalog.length(rest));
    END IF;
    IF hindsight._is_card(digits) AND digits !~ '^[1-9][0-9]{5}(?:19|20)[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])[0-9]{4}$' THEN
      value := digits;
    END IF;
  WHEN 'iban' THEN
    size := hindsight._iban_length(pg_catalog."left"(digits, 2));
    IF pg_catalog.length(digits) > size THEN -- words in capitals may follow
      size := size + CASE WHEN candidate LIKE '____ %' THEN (size - 1) / 4 ELSE 0 END;
      rest := pg_catalog.substr(candidate, size + 1);
      digits := pg_catalog.replace(pg_catalog."left"(candidate, size), ' ', '');
    END IF;
    IF hindsight._is_iban(digits) THEN
      value := digits;
    END IF;
  WHEN 'ssn' THEN
    IF digits !~ '^(?:000|666)|^...00|0000$'
       AND (candidate ~ '^...-..-' OR before ~* '(?:ssn|social security|社保|社安|社会安全|taxpayer)[^0-9]*$') THEN
      value := digits;
    END IF;
  WHEN 'phone' THEN
    IF form = 'abroad' THEN
      digits := pg_catalog.ltrim(digits, '0');
      IF digits ~ '^861' THEN
        digits := pg_catalog.substr(digits, 3);
      ELSIF NOT hindsight._is_abroad(digits) OR (candidate ~ '^0' AND candidate !~ '^00[0-9]{1,3}[ -]') THEN
        RETURN;
      ELSE
        value := '+' || digits;
        RETURN;
      END IF;
    END IF;
    digits := pg_catalog."right"(digits, 11);
    IF digits ~ '^1(?:3[0-9]|4[5-9]|5[0-35-9]|6[2567]|7[0-8]|8[0-9]|9[0-35-9])[0-9]{8}$' THEN
      value := digits;
    END IF;
  ELSE
    IF form = 'v6' THEN
      IF candidate ~ '[0-9]' AND candidate !~ '^::1?$|^[0-9A-Fa-f]*::$' AND candidate ~ '[0-9A-Fa-f].*:.*[0-9A-Fa-f].*:|::.*[0-9]'
         AND pg_catalog.pg_input_is_valid(candidate, 'inet') THEN
        value := pg_catalog.host(candidate::inet);
      END IF;
    ELSIF candidate !~ '^(?:0|127|255)\.|(?:^|\.)0[0-9]' AND pg_catalog.pg_input_is_valid(candidate, 'inet')
       AND before !~ '[A-Za-z0-9_][.-]$|\.$' AND after !~ '^[.-][A-Za-z0-9]'
       AND before !~* '(?:version|release|ver|build|section|sections|chapter|版本|版|升级|第|§)[ .:：=到至为是号]*(?:is |of )?(?:[0-9.]+ ?(?:and|to|,|、|与|和|到) ?)?$' THEN
      value := candidate;
    END IF;
  END CASE;
END
$$;
