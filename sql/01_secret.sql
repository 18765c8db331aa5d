-- What personal data and secrets look like. An expression finds candidates (01_redact.sql); whether one is what it looks like is asked
-- here: of what has a name ('password: …'), of addresses and of the keys of known services.

-- _is_secret_word: whether what stands where a password or a key is expected can be one: no placeholder, variable, type or call, and
-- no word of a sentence about passwords.
CREATE OR REPLACE FUNCTION hindsight._is_secret_word(word text, after text)
  RETURNS boolean
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN pg_catalog."left"(word, 1) NOT IN ('', '$', '<', '{', '%', '*')
  AND pg_catalog.lower(word) <> ALL ('{...,none,"null",nil,true,false,undefined,string,str,text,int,any,required,optional,empty,missing,wrong,invalid,'
    'incorrect,expired,changed,reset,forgotten,lost,unknown,hidden,stored,saved,see,same,not,the,and,or,for,in,an,to,it,is,was,by,with,from,again,'
    'policy,manager,field,hash,hashed,protected,based,less,length,list,name,type,error,strength,must,should,cannot,can,will,has,that,which,here,'
    'below,above,before,after,xxx,xxxx,xxxxxx,xxxxxxxx}'::text[])
  AND word !~ '^(?:os|self|settings|config|process|env|request|req|args|this|ctx)[.[(]|^\[[a-z_]+:[0-9]|\('
  AND (after = '' OR after !~ '^ *(?:加密|存储|哈希|算法|格式|类型)'
       AND (after !~ '^ *(?:位|个|字|次|天|分|小时|char|digit|day|hour|min|sec|time)' OR word ~ '[^0-9~-]'));

-- _named_secret: of a candidate that begins with a name ('password for the box is …') the part before the secret, the secret (NULL:
-- it names none), and what follows it.
CREATE OR REPLACE FUNCTION hindsight._named_secret(
  kind text, candidate text, before text, after text, OUT lead text, OUT value text, OUT rest text)
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
AS $$
DECLARE
  name constant text := pg_catalog.substring(candidate, '^(?:_?[A-Za-z]+(?:[-_ ]?I[Dd](?![A-Za-z]))?码?|[^\u0001-\u2fff]{2})');
  said constant text := pg_catalog.substr(candidate, pg_catalog.length(name) + 1);
  quotation text;
  sign text;
  mixed boolean;
BEGIN
  lead := CASE WHEN said LIKE ' %' THEN pg_catalog.substring(said, '^(?: (?:for|of|on|at|in) .*?)? +(?:is|was|has) +') END; -- the shortest
  IF lead IS NOT NULL THEN
    sign := 'is';
    lead := lead || pg_catalog.substring(pg_catalog.substr(said, pg_catalog.length(lead) + 1),
                                         '^(?:(?:been|changed|set|reset|now|to) +)*[\\"''“`:]*');
  ELSE
    lead := pg_catalog.substring(said, '^[\\"''`)\]]*[是为设置成改换到了写叫:：=＝>\s]*[\\"''“「`]*');
    sign := CASE WHEN lead ~ '[是为设置成改换写叫:：=＝]' THEN ':' ELSE '' END;
  END IF;
  value := pg_catalog.substr(said, pg_catalog.length(lead) + 1);
  quotation := pg_catalog."right"(lead, 1);
  value := CASE WHEN quotation IN ('"', '''') THEN pg_catalog.rtrim(pg_catalog.split_part(value, quotation, 1), '\')
                ELSE pg_catalog.rtrim(pg_catalog.substring(value, '^[!-~]*'), '.,:;?)]}>"''`\') END;
  rest := pg_catalog.substr(said, pg_catalog.length(lead) + pg_catalog.length(value) + 1);
  lead := name || lead;
  mixed := value ~ '[0-9]' AND value ~ '[A-Za-z]';
  IF pg_catalog.length(value) NOT BETWEEN 3 AND 200 OR value LIKE ' %' OR lead LIKE '%==%'
     OR NOT hindsight._is_secret_word(value, CASE WHEN rest = '' THEN after ELSE rest END) THEN
    value := NULL;
  ELSIF kind = 'password' THEN
    IF NOT (CASE
         WHEN name LIKE 'PIN%' THEN value ~ '^[0-9]{4}[0-9]*$'
         WHEN name IN ('pwd', 'PWD') AND value ~ '^[/~]' THEN false -- the working directory
         WHEN quotation IN ('"', '''') THEN sign <> ''
         WHEN sign = ':' THEN pg_catalog.length(value) > 3 OR value ~ '[^0-9~-]'
         WHEN sign = 'is' THEN pg_catalog.length(value) > 3 AND value ~ '[0-9!@#$%^&*]'
         ELSE pg_catalog.length(value) > 3 AND (mixed OR (name !~ '[A-Za-z]' AND value !~ '[^0-9]')) END) THEN
      value := NULL;
    END IF;
  ELSIF NOT mixed OR pg_catalog.length(value) < 8 OR (sign = '' AND name ~ '[A-Za-z]')
     OR (name ILIKE 'key%' AND before !~* '(?:api|access|secret|auth|private|client|master|service|account)[-_ ]?$')
     OR ((name ILIKE 'token%' OR name = '令牌' OR name ILIKE 'secret') AND pg_catalog.length(value) < 12) THEN
    value := NULL;
  END IF;
END
$$;

-- _secret_text: the same of what stands in a URL or after 'Bearer', of addresses and keys; and of what is a secret as a whole.
CREATE OR REPLACE FUNCTION hindsight._secret_text(form text, candidate text, before text, OUT lead text, OUT value text, OUT rest text)
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
AS $$
DECLARE
  secret text;
BEGIN
  lead := '';
  rest := '';
  IF form = 'whole' THEN
    value := candidate;
  ELSIF form = 'url' THEN
    lead := pg_catalog.substring(candidate, '^://[^:]*:');
    secret := pg_catalog.rtrim(pg_catalog.substr(candidate, pg_catalog.length(lead) + 1), '@');
    rest := '@';
    value := CASE WHEN hindsight._is_secret_word(secret, '') THEN secret END;
  ELSIF form = 'hook' THEN
    lead := 'hooks.slack.com/services/';
    value := pg_catalog.substr(candidate, pg_catalog.length(lead) + 1);
  ELSIF form = 'bearer' THEN
    lead := pg_catalog.substring(candidate, '^[A-Za-z]+ +');
    secret := pg_catalog.rtrim(pg_catalog.substr(candidate, pg_catalog.length(lead) + 1), '.');
    rest := pg_catalog.substr(candidate, pg_catalog.length(lead) + pg_catalog.length(secret) + 1);
    value := CASE WHEN pg_catalog.length(secret) >= 16 AND (secret ~ '[0-9]' OR before ~* 'authorization') THEN secret END;
  ELSIF form = 'known' THEN
    secret := pg_catalog.rtrim(candidate, '.-');
    rest := pg_catalog.substr(candidate, pg_catalog.length(secret) + 1);
    value := CASE WHEN hindsight._is_known_key(secret, before) THEN secret END;
  ELSIF pg_catalog."left"(candidate, 4) <> 'git@' AND pg_catalog."left"(candidate, 1) NOT IN ('.', '-') AND candidate ~ '\.[A-Za-z][A-Za-z]+$'
     AND before NOT LIKE '%://'
     AND candidate !~ '\.(?:png|jpe?g|gif|svg|webp|ico|js|ts|css|py|json|html?|md|sql|sh|txt|pdf|so|dll|exe|zip|gz)$' THEN
    value := pg_catalog.lower(candidate);
  END IF;
END
$$;

-- _is_known_key: whether this is a key or token as a known service gives them out, by how it begins.
CREATE OR REPLACE FUNCTION hindsight._is_known_key(candidate text, before text)
  RETURNS boolean
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
AS $$
DECLARE
  size constant integer := pg_catalog.length(candidate);
  start constant text := pg_catalog."left"(candidate, 4);
BEGIN
  RETURN CASE
    WHEN start LIKE 'sk-%' THEN size >= 20 AND candidate ~ '[0-9]'
    WHEN start LIKE 'eyJ%' THEN pg_catalog.split_part(candidate, '.', 3) <> '' OR candidate ~ '^[^.]+\.[^.]+\.$' -- a JWT
    WHEN start LIKE 'SG.%' THEN pg_catalog.split_part(candidate, '.', 3) <> ''
    WHEN start IN ('AKIA', 'ASIA') THEN size = 20 AND candidate = pg_catalog.upper(candidate) AND candidate !~ '[^A-Z0-9]'
    WHEN start IN ('LTAI', 'AKID') THEN size BETWEEN 16 AND 40 AND candidate !~ '[^A-Za-z0-9]'
    WHEN start IN ('AIza', 'ghp_', 'gho_', 'ghu_', 'ghs_', 'ghr_', 'npm_', 'gsk_') OR start LIKE 'hf\_%' OR start LIKE 'r8\_%' THEN size >= 28
    WHEN start IN ('xoxb', 'xoxp', 'xoxa', 'xoxs', 'xoxr', 'xoxe', 'xapp', 'pypi', 'tvly', 'pplx') THEN candidate ~ '^....-.*[0-9]'
    WHEN start IN ('sk_l', 'sk_t', 'rk_l', 'rk_t') THEN candidate ~ '^.k_(?:live|test)_'
    WHEN start IN ('glpa', 'dop_', 'shpa', 'shps', 'nvap', 'gith', 'ya29', 'xai-') THEN
      candidate ~ '^(?:glpat-|dop_v1_|shp(?:at|ss)_|nvapi-|github_pat_|ya29\.|xai-).{16}'
    WHEN start LIKE 'AA%' THEN size BETWEEN 33 AND 36 AND before ~ '[0-9]{8}:$' -- a bot of Telegram
    ELSE false END;
END
$$;
