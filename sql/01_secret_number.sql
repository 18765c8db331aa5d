-- _secret_number: a number as it is compared with others of its kind, or NULL: its checksum is wrong, it is part of a name, or the text
-- before it says that it is something else. rest: what the candidate has after it.
CREATE OR REPLACE FUNCTION hindsight._secret_number(
  kind text, form text, candidate text, before text, after text, OUT lead text, OUT value text, OUT rest text)
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
AS $$
DECLARE
  digits text := pg_catalog.translate(candidate, ' -.()+', '');
  size integer;
BEGIN
  lead := '';
  rest := '';
  IF kind = 'resident_id' THEN
    digits := pg_catalog.upper(digits);
    value := CASE WHEN hindsight._is_resident_id(digits) THEN digits END;
  ELSIF kind = 'card' THEN
    IF pg_catalog.length(digits) > 16 AND candidate ~ '[ -][0-9]+$' AND NOT hindsight._is_card(digits) THEN -- another number may follow
      rest := pg_catalog.substring(candidate, '[ -][0-9]+$');
      digits := pg_catalog."left"(digits, 1 - pg_catalog.length(rest));
    END IF;
    value := CASE WHEN hindsight._is_card(digits)
                    AND (pg_catalog.length(digits) <> 18 OR digits !~ '^......(?:19|20)..(?:0[1-9]|1[0-2])(?:[012][0-9]|3[01])....$') THEN digits END;
  ELSIF kind = 'iban' THEN
    size := hindsight._iban_length(pg_catalog."left"(digits, 2));
    IF size > 0 AND pg_catalog.length(digits) > size THEN -- words in capitals may follow
      size := size + CASE WHEN candidate LIKE '____ %' THEN (size - 1) / 4 ELSE 0 END;
      rest := pg_catalog.substr(candidate, size + 1);
      digits := pg_catalog.replace(pg_catalog."left"(candidate, size), ' ', '');
    END IF;
    value := CASE WHEN hindsight._is_iban(digits) AND rest NOT SIMILAR TO '[A-Z0-9]%' THEN digits END;
  ELSIF kind = 'ssn' THEN
    value := CASE
      WHEN pg_catalog."left"(digits, 3) IN ('000', '666') OR pg_catalog.substr(digits, 4, 2) = '00' OR digits LIKE '%0000' THEN NULL
      WHEN candidate LIKE '___-__-____' OR before ~* '(?:ssn|social security|社保|社安|社会安全|taxpayer)[^0-9]*$' THEN digits END;
  ELSIF form = 'v6' THEN
    value := CASE
      WHEN candidate ~ '[0-9]' AND candidate <> ALL ('{::1,::0,::}'::text[]) AND pg_catalog.length(candidate) > 5
           AND pg_catalog.pg_input_is_valid(candidate, 'inet') THEN pg_catalog.host(candidate::inet) END;
    RETURN;
  ELSIF form = 'v4' THEN
    value := CASE
      WHEN pg_catalog.split_part(candidate, '.', 1) IN ('0', '127', '255') OR NOT pg_catalog.pg_input_is_valid(candidate, 'inet')
           OR (pg_catalog."right"(before, 1) IN ('.', '-') AND before ~ '[A-Za-z0-9_].$')
           OR (pg_catalog."left"(after, 1) IN ('.', '-') AND after ~ '^.[A-Za-z0-9]')
           OR (candidate LIKE '_.%' AND after !~ '^[:/][0-9]' -- such an address is rare, and such a version is not
               AND before !~* '\mip|host|server|addr|dns|ping|gateway|ssh|node|client|from|peer|[@/]$|地址|主机|服务器|网关|节点|机器|来自')
           OR (pg_catalog.lower(before) LIKE ANY ('{%ver%,%release%,%build%,%section%,%chapter%,%版%,%升级%,%第%,%§%,%kernel%,%firmware%,%linux%,%内核%,%固件%}')
               AND before ~* ('(?:version|release|ver|build|sections?|chapters?|kernel|firmware|driver|linux|版本?|升级|第|§|内核|固件|驱动)[ .:：=到至为是号]*(?:is |of )?'
                              '(?:[0-9.]+ ?(?:and|to|,|、|与|和|到) ?)?$')) THEN NULL
      ELSE candidate END;
    RETURN;
  ELSE
    IF form = 'abroad' THEN
      digits := pg_catalog.ltrim(digits, '0');
      IF NOT hindsight._is_abroad(digits) OR (candidate ~ '^\(?0' AND candidate !~ '^\(?00(?:86|[0-9]+[ )-])') THEN
        RETURN;
      END IF;
    END IF;
    IF form = 'mobile' OR digits LIKE '861%' THEN
      digits := pg_catalog."right"(digits, 11);
      value := CASE WHEN pg_catalog."left"(digits, 2) IN ('13', '18')
                      OR pg_catalog."left"(digits, 3) IN ('145', '146', '147', '148', '149', '150', '151', '152', '153', '155', '156', '157', '158', '159',
                        '162', '165', '166', '167', '170', '171', '172', '173', '174', '175', '176', '177', '178', '190', '191', '192', '193', '195',
                        '196', '197', '198', '199') THEN digits END;
    ELSE
      value := '+' || digits;
    END IF;
  END IF;
  IF value IS NULL THEN
    RETURN;
  ELSIF (pg_catalog."right"(before, 1) IN ('.', '-') AND before ~ '[A-Za-z0-9_].$') OR pg_catalog."right"(before, 1) IN ('$', '¥', '€', '£')
     OR (pg_catalog."left"(after, 1) IN ('.', '-', '@') AND after ~ '^.[A-Za-z0-9]') THEN
    value := NULL; -- part of a name: report-138….pdf, 123-45-6789-A; or an amount
  ELSIF kind IN ('card', 'phone', 'ssn') AND form <> 'abroad' AND pg_catalog.lower(before) LIKE ANY (
          '{%order%,%invoice%,%ticket%,%track%,%serial%,%part%,%sku%,%build%,%订单%,%单号%,%编号%,%流水%,%运单%,%快递%,%工单%,%序列%,%条码%,%学号%,%合同%}')
     AND before ~* ('(?:order|invoice|ticket|tracking|serial|part|sku|build|订单|单号|编号|流水|运单|快递|工单|序列|条码|学号|合同)'
                    '(?:[ _-]?(?:n[uo]m?(?:ber)?|id|号码?))?[ #:：=.是为]*$') THEN
    value := NULL;
  END IF;
END
$$;
