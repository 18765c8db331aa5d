-- What personal data and secrets look like: for each kind an expression that finds candidates, and the question whether one is what
-- it looks like, by its checksum and the words beside it. The expressions have no back-reference, look around by one character only,
-- and are small: PostgreSQL runs such a one as an automaton, which it builds anew at each match (5 µs a match; 400 µs where all
-- kinds stand in one expression).

-- _secret_patterns: the expressions, in the order in which they are sought: what one has found the next ones do not see. U+E000 to
-- U+F8FF are left out of what is quoted, since marks of what was found stand there.
CREATE OR REPLACE FUNCTION hindsight._secret_patterns()
  RETURNS TABLE (kind text, form text, pattern text)
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
AS $$
DECLARE
  -- Perhaps whose it is, a verb or a sign; then what is quoted, or up to a space: a comma or an ampersand ends it where a name follows.
  named constant text := '(?: (?:for|of|on|at|in)(?: [A-Za-z0-9_.''-]+){1,4})?(?: +(?:is|was|has|been|changed|set|reset|now|to))*'
    '[\\"''`)\]]*[是为设置成改换到了写叫:：=＝>\s]*[\\"''“「`]*'
    '(?:(?<=")[^"\n\ue000-\uf8ff]+|(?<='')[^''\n\ue000-\uf8ff]+|[!#-%(-+.-:<-_a-~-]+(?:[,;&][!#-%(-+.-9<>-_a-~-]+(?![!#-%(-+.-:<-_a-~-]))*)';
BEGIN
  RETURN QUERY VALUES
    -- to the end of the block; or what is left of one that was cut off
    ('private_key', 'block', '-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?:(?:[^-\ue000-\uf8ff]|-[^-\ue000-\uf8ff])*'
       '-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|(?:(?:\s|\\[nr])*[A-Za-z0-9+/=]{20}[A-Za-z0-9+/=]*)*)'),
    ('password', 'url', '://[^\s/:@"''<>\ue000-\uf8ff]*:[^\s/"''<>\ue000-\uf8ff]+@'),
    ('api_key', 'hook', 'hooks\.slack\.com/services/[A-Za-z0-9/_]+'),
    ('password', 'named', '(?:(?:[Pp]ass(?:word|wd|phrase|code)|PASS(?:WORD|WD|PHRASE|CODE)|[Pp]wd|PWD|_pass|_PASS|PIN)(?![A-Za-z0-9_])|PIN码|密码|口令)' || named),
    ('api_key', 'named', '(?:(?:[Kk]ey|KEY|[Tt]oken|TOKEN|[Ss]ecret|SECRET)(?:[-_ ]?I[Dd]|_id)?(?![A-Za-z0-9_])|密钥|秘钥|令牌)' || named),
    ('api_key', 'bearer', '(?:[Bb]earer|Basic) +[A-Za-z0-9._~+/=-]+'),
    ('api_key', 'known', '(?<![A-Za-z0-9_])[A-Za-z0-9_][A-Za-z0-9_.-]{14}[A-Za-z0-9_.-]+'),
    ('email', 'address', '[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+'),
    ('iban', 'number', '(?<![A-Za-z0-9_])[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?(?![A-Za-z0-9_])'),
    ('resident_id', 'number', '(?<![A-Za-z0-9_])[1-9][0-9]{5}[ -]?[0-9]{8}[ -]?[0-9]{3}[0-9Xx](?![A-Za-z0-9_])'),
    ('card', 'number', '(?<![A-Za-z0-9_])(?:[2-69][0-9]{3}(?:[ -]?[0-9]{4}){3}(?:[ -]?[0-9]{1,3})?|3[0-9]{3}[ -]?[0-9]{6}[ -]?[0-9]{4,5})(?![A-Za-z0-9_])'),
    ('phone', 'abroad', '(?<![A-Za-z0-9_])(?:\+|00)[1-9](?:[ .-]?[(]?[0-9]\)?){7,14}(?![A-Za-z0-9_])'),
    ('phone', 'mobile', '(?<![A-Za-z0-9_])(?:(?:\(?\+86\)?|86) ?)?1[3-9][0-9][ -]?[0-9]{4}[ -]?[0-9]{4}(?![A-Za-z0-9_])'),
    ('ssn', 'number', '(?<![A-Za-z0-9_])[0-9]{3}[ -]?[0-9]{2}[ -]?[0-9]{4}(?![A-Za-z0-9_])'),
    ('ip', 'v4', '(?<![A-Za-z0-9_])[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?![A-Za-z0-9_])'),
    ('ip', 'v6', '(?<![A-Za-z0-9_:.])[0-9A-Fa-f]*:[0-9A-Fa-f]*:[0-9A-Fa-f:]*(?![A-Za-z0-9_:])');
END
$$;

-- _is_secret_word: whether what stands where a password or a key is expected can be one: no placeholder, variable, type or call, and
-- no word of a sentence about passwords.
CREATE OR REPLACE FUNCTION hindsight._is_secret_word(word text, after text)
  RETURNS boolean
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN word !~ ('^(?:[$<{%*]|\.\.|\[[a-z_]+:[0-9]+\]|[xX*]+$|(?:os|self|settings|config|process|env|request|req|args|this|ctx)[.\[(]|get)|\(|^(?:None|null|nil|'
                'true|false|undefined|string|str|text|int|any|required|optional|empty|missing|wrong|invalid|incorrect|expired|changed|reset|forgotten|'
                'lost|unknown|hidden|stored|saved|see|same|not|the|and|or|for|in|an|to|it|is|was|by|with|from|again|policy|manager|field|hash|hashed|'
                'protected|based|less|length|list|name|type|error|strength|must|should|cannot|can|will|has|that|which|here|below|above)$')
  AND (word !~ '^[0-9~-]+$' OR after !~ '^ *(?:位|个|字|次|天|分|小时|char|digit|day|hour|min|sec|time)')
  AND after !~ '^ *(?:加密|存储|哈希|算法|格式|类型)';

-- _named_secret: of a candidate that begins with a name ('password for the box is …') the part before the secret, the secret, and
-- what follows it; NULL: it names none.
CREATE OR REPLACE FUNCTION hindsight._named_secret(
  kind text, candidate text, before text, after text, OUT lead text, OUT secret text, OUT rest text)
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
AS $$
DECLARE
  name constant text := pg_catalog.substring(candidate, '^(?:[A-Za-z]*_?[A-Za-z]+(?:[-_ ]?I[Dd](?![A-Za-z]))?码?|[^\u0001-\u2fff]{2})');
  said text := pg_catalog.substr(candidate, pg_catalog.length(name) + 1);
  sign text;
  is_plain boolean;
  mixed boolean;
BEGIN
  lead := pg_catalog.substring(said, '^(?: (?:for|of|on|at|in) .*?)? +(?:is|was|has) +'); -- the first verb, the shortest match
  IF lead IS NOT NULL THEN
    lead := lead || pg_catalog.substring(pg_catalog.substr(said, pg_catalog.length(lead) + 1),
                                         '^(?:(?:been|changed|set|reset|now|to) +)*[\\"''“`:]*');
    sign := 'is';
  ELSE
    lead := pg_catalog.substring(said, '^[\\"''`)\]]*[是为设置成改换到了写叫:：=＝>\s]*[\\"''“「`]*');
    sign := CASE WHEN lead ~ '[^\\"''`)\]\s“「>]' THEN ':' ELSE '' END;
  END IF;
  secret := pg_catalog.substr(said, pg_catalog.length(lead) + 1);
  is_plain := pg_catalog."right"(lead, 1) NOT IN ('"', '''');
  secret := CASE WHEN is_plain THEN pg_catalog.rtrim(pg_catalog.substring(secret, '^[!-~]*'), '.,:;?)]}>"''`\')
                 ELSE pg_catalog.rtrim(pg_catalog.substring(secret, CASE pg_catalog."right"(lead, 1) WHEN '"' THEN '^[^"]*' ELSE '^[^'']*' END), '\') END;
  rest := pg_catalog.substr(said, pg_catalog.length(lead) + pg_catalog.length(secret) + 1);
  lead := name || lead;
  mixed := secret ~ '[0-9]' AND secret ~ '[A-Za-z]';
  IF pg_catalog.length(secret) > 200 OR NOT hindsight._is_secret_word(secret, CASE WHEN rest = '' THEN after ELSE rest END) THEN
    secret := NULL;
  ELSIF kind = 'password' THEN
    IF NOT (CASE
         WHEN name LIKE 'PIN%' THEN secret ~ '^[0-9]{4,12}$'
         WHEN name ~* 'pwd' AND secret ~ '^[/~]' THEN false -- the working directory
         WHEN NOT is_plain THEN sign <> '' AND pg_catalog.length(secret) >= 3
         WHEN sign = ':' THEN pg_catalog.length(secret) >= CASE WHEN secret ~ '^[0-9~-]+$' THEN 4 ELSE 3 END
         WHEN sign = 'is' THEN pg_catalog.length(secret) >= 4 AND secret ~ '[0-9!@#$%^&*]'
         ELSE pg_catalog.length(secret) >= 4 AND (mixed OR (name ~ '[^\u0001-\u2fff]' AND secret ~ '^[0-9]+$')) END) THEN
      secret := NULL;
    END IF;
  ELSIF NOT mixed OR pg_catalog.length(secret) < 8 OR sign = '' AND name ~ '^[A-Za-z]'
     OR (name ~* '^key' AND before !~* '(?:api|access|secret|auth|private|client|master|service|account)[-_ ]?$')
     OR (name ~* '^token|令牌|^secret$' AND pg_catalog.length(secret) < 12) THEN
    secret := NULL;
  END IF;
END
$$;

-- _secret: of a candidate the part that stays before the secret, the secret as it is compared with others (value), how long it is as it
-- stands, and what follows. No value: it is none, since its checksum is wrong, or the text beside it says that it is something else.
CREATE OR REPLACE FUNCTION hindsight._secret(
  kind text, form text, candidate text, before text, after text, OUT lead text, OUT value text, OUT rest text)
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
AS $$
DECLARE
  found_secret text := candidate;
  digits text;
BEGIN
  lead := '';
  rest := '';
  CASE form
  WHEN 'block', 'own' THEN
    value := candidate;
  WHEN 'url' THEN
    lead := pg_catalog.substring(candidate, '^://[^:]*:');
    found_secret := pg_catalog.rtrim(pg_catalog.substr(candidate, pg_catalog.length(lead) + 1), '@');
    rest := '@';
    IF hindsight._is_secret_word(found_secret, '') THEN
      value := found_secret;
    END IF;
  WHEN 'hook' THEN
    lead := 'hooks.slack.com/services/';
    value := pg_catalog.substr(candidate, pg_catalog.length(lead) + 1);
  WHEN 'named' THEN
    SELECT n.lead, n.secret, n.rest INTO lead, value, rest FROM hindsight._named_secret(kind, candidate, before, after) AS n;
  WHEN 'bearer' THEN
    lead := pg_catalog.substring(candidate, '^[A-Za-z]+ +');
    found_secret := pg_catalog.rtrim(pg_catalog.substr(candidate, pg_catalog.length(lead) + 1), '.');
    rest := pg_catalog.substr(candidate, pg_catalog.length(lead) + pg_catalog.length(found_secret) + 1);
    IF pg_catalog.length(found_secret) >= 16 AND (found_secret ~ '[0-9]' OR before ~* 'authorization') THEN
      value := found_secret;
    END IF;
  WHEN 'known' THEN
    found_secret := pg_catalog.rtrim(candidate, '.-');
    rest := pg_catalog.substr(candidate, pg_catalog.length(found_secret) + 1);
    IF hindsight._is_known_key(found_secret, before) THEN
      value := found_secret;
    END IF;
  WHEN 'address' THEN
    IF candidate ~ '\.[A-Za-z]{2,24}$' AND candidate !~* '^git@|\.(?:png|jpe?g|gif|svg|webp|ico|js|ts|css|py|json|html?|md|sql|sh|txt|pdf|so|dll|exe|zip|gz)$'
       AND candidate !~ '^[.-]' AND before !~ '://$' THEN
      value := pg_catalog.lower(candidate);
    END IF;
  ELSE
    SELECT n.value, n.rest INTO value, rest FROM hindsight._secret_number(kind, form, candidate, before, after) AS n;
  END CASE;
END
$$;
