-- Text: what makes two contents the same, and which words a text is found by.
-- These functions feed generated columns and indexes: a new behaviour is a new version (_v2), never a replacement.

-- content_digest_v1: SHA-256 of the text; Unicode composition and white space do not count, everything else does
-- ("8.0" and "8.4", "Polish" and "polish", "x²" and "x2" are different texts).
CREATE OR REPLACE FUNCTION hindsight.content_digest_v1(content text)
  RETURNS bytea
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN pg_catalog.sha256(pg_catalog.convert_to(
  pg_catalog.btrim(pg_catalog.regexp_replace(pg_catalog.normalize(content, 'NFC'), '[\s\u00a0\u3000]+', ' ', 'g')),
  'UTF8'));
COMMENT ON FUNCTION hindsight.content_digest_v1(text) IS
  'SHA-256 of a text, Unicode-composed and with its white space folded: equal digests are the same content.';

-- _quoted_lexeme: a lexeme as tsvector and tsquery read it.
CREATE OR REPLACE FUNCTION hindsight._quoted_lexeme(lexeme text)
  RETURNS text
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN '''' || pg_catalog.replace(pg_catalog.replace(lexeme, '\', '\\'), '''', '''''') || '''';

-- _cjk_tsv_v1: bigrams of every run of Chinese, Japanese or Korean characters, with positions; likewise of Thai, Lao,
-- Burmese and Khmer, which do not separate words either, and of emoji.
-- whole => true adds each run's last character, so that each character of a run starts one of its lexemes and a
-- query of a single character can be answered by prefix.
CREATE OR REPLACE FUNCTION hindsight._cjk_tsv_v1(folded text, whole boolean)
  RETURNS tsvector
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN (
  SELECT coalesce(pg_catalog.string_agg(bigram.characters || ':' || least(run.start + bigram.place, 16383)::text, ' '), '')::tsvector
  FROM (
    SELECT found.characters,
           pg_catalog.length(found.characters) AS size,
           pg_catalog.sum(pg_catalog.length(found.characters)) OVER (ORDER BY found.place)
             - pg_catalog.length(found.characters) AS start
    FROM pg_catalog.regexp_matches(folded,
           '[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2600-\u27bf\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff\U0001f300-\U0001faff]+', 'g')
           WITH ORDINALITY AS match(groups, place)
    CROSS JOIN LATERAL (SELECT match.groups[1] AS characters, match.place AS place) AS found
  ) AS run
  CROSS JOIN LATERAL ( -- character by character: cutting a long text at each place would walk it again each time
    SELECT c.one || coalesce(pg_catalog.lead(c.one) OVER (ORDER BY c.place), '') AS characters, c.place
    FROM pg_catalog.string_to_table(run.characters, NULL) WITH ORDINALITY AS c(one, place)
  ) AS bigram
  WHERE whole OR run.size = 1 OR bigram.place < run.size
);
COMMENT ON FUNCTION hindsight._cjk_tsv_v1(text, boolean) IS
  'Bigrams of the Chinese, Japanese and Korean runs of a folded text, with positions.';

-- _identifier_tsv_v1: whole identifiers, which a language's parser splits or mangles: ERR-7731, user_id, v1.2.3,
-- foo.bar@example.org, C++, /etc/hosts, .NET, --flag, $HOME, #1234, R&D, 50%.
CREATE OR REPLACE FUNCTION hindsight._identifier_tsv_v1(folded text)
  RETURNS tsvector
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN (
  SELECT coalesce(pg_catalog.string_agg(
           '''' || match.groups[1] || ''':' || least(match.place, 16383)::text, ' '), '')::tsvector
  FROM pg_catalog.regexp_matches(folded,
         '((?:(?<![a-z0-9_./:@#+&-])(?:--?|~/\.?|[.$#@])[a-z0-9_]+|[a-z0-9]+(?=[-_./:@#+&]+[a-z0-9]|\+\+|#|%))'
         '(?:[-_./:@#+&]+[a-z0-9]+)*(?:\+\+|#|%)?)', 'g')
         WITH ORDINALITY AS match(groups, place)
  WHERE pg_catalog.length(match.groups[1]) <= 200
);
COMMENT ON FUNCTION hindsight._identifier_tsv_v1(text) IS
  'Whole identifiers of a folded text (error codes, versions, paths, addresses), with positions.';

-- _irregular_forms_v1: irregular forms of English words and their base forms, both as stems: the stemmer knows endings only.
CREATE OR REPLACE FUNCTION hindsight._irregular_forms_v1()
  RETURNS jsonb
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN '{
  "ate": "eat", "eaten": "eat", "becam": "becom", "began": "begin", "begun": "begin", "blew": "blow", "blown": "blow",
  "bought": "buy", "broke": "break", "broken": "break", "brought": "bring", "built": "build", "came": "come",
  "caught": "catch", "children": "child", "chose": "choos", "chosen": "choos", "dealt": "deal", "drank": "drink",
  "drawn": "draw", "dreamt": "dream", "drew": "draw", "driven": "drive", "drove": "drive", "drunk": "drink",
  "dug": "dig", "fallen": "fall", "fed": "feed", "feet": "foot", "fell": "fall", "felt": "feel", "flew": "fli",
  "flown": "fli", "forgot": "forget", "forgotten": "forget", "fought": "fight", "found": "find", "froze": "freez",
  "frozen": "freez", "gave": "give", "given": "give", "gone": "go", "got": "get", "gotten": "get", "grew": "grow",
  "grown": "grow", "heard": "hear", "held": "hold", "hid": "hide", "hidden": "hide", "hung": "hang", "kept": "keep",
  "knew": "know", "known": "know", "knive": "knife", "laid": "lay", "learnt": "learn", "led": "lead", "left": "leav",
  "lent": "lend", "lit": "light", "lost": "lose", "made": "make", "meant": "mean", "men": "man", "met": "meet",
  "mice": "mous", "paid": "pay", "ran": "run", "rang": "ring", "ridden": "ride", "risen": "rise", "rode": "ride",
  "rose": "rise", "rung": "ring", "said": "say", "sang": "sing", "sat": "sit", "saw": "see", "seen": "see",
  "sent": "send", "shaken": "shake", "shook": "shake", "shot": "shoot", "slept": "sleep", "sold": "sell",
  "sought": "seek", "spent": "spend", "spoke": "speak", "spoken": "speak", "stole": "steal", "stolen": "steal",
  "stood": "stand", "struck": "strike", "stuck": "stick", "sung": "sing", "swam": "swim", "swum": "swim",
  "taken": "take", "taught": "teach", "teeth": "tooth", "thought": "think", "threw": "throw", "thrown": "throw",
  "told": "tell", "took": "take", "tore": "tear", "torn": "tear", "understood": "understand", "wive": "wife",
  "woke": "wake", "woken": "wake", "women": "woman", "won": "win", "wore": "wear", "worn": "wear", "went": "go",
  "written": "write", "wrote": "write"}'::jsonb;

-- _base_forms_v1: lexemes of English words with their irregular forms replaced by the base form: who asks where she
-- went finds that she goes there.
CREATE OR REPLACE FUNCTION hindsight._base_forms_v1(lexemes tsvector)
  RETURNS tsvector
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
AS $$
DECLARE
  base constant jsonb := hindsight._irregular_forms_v1();
  held constant text[] := pg_catalog.tsvector_to_array(lexemes);
BEGIN
  IF NOT base ?| held THEN
    RETURN lexemes;
  END IF;
  RETURN (
    SELECT pg_catalog.string_agg(hindsight._quoted_lexeme(coalesce(base ->> l.lexeme, l.lexeme)) || ':'
                                 || pg_catalog.array_to_string(l.positions, ','), ' ')::tsvector
    FROM pg_catalog.unnest(lexemes) AS l);
END
$$;
COMMENT ON FUNCTION hindsight._base_forms_v1(tsvector) IS
  'English lexemes with irregular forms replaced by the base form: went by go, children by child.';

-- text_tsv_v1: the lexemes of a text: words of its language, whole identifiers, and bigrams of CJK runs.
-- whole => true for what is stored, false for a query (see _cjk_tsv_v1). Raises HM004 (unknown language).
CREATE OR REPLACE FUNCTION hindsight.text_tsv_v1(language text, content text, whole boolean DEFAULT true)
  RETURNS tsvector
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
AS $$
DECLARE
  -- One form of each character, without accents, vowel marks and characters of no width: naïve is naive.
  plain constant text := pg_catalog.normalize(pg_catalog.regexp_replace(pg_catalog.normalize(content, 'NFKD'),
    '[\u0300-\u036f\u064b-\u0652\u00ad\u200b-\u200f\u2060\ufeff]', '', 'g'), 'NFKC');
  folded constant text := pg_catalog.lower(plain);
  cjk constant tsvector := CASE WHEN folded ~ '[^\u0001-\u0dff]' THEN hindsight._cjk_tsv_v1(folded, whole) ELSE '' END;
  -- The parser would keep err-7731 as (err, -7731), tcp/ip as one path and 端口49222 as one word.
  words text := pg_catalog.regexp_replace(folded,
    '[-/\\_@#:+]|[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2600-\u27bf\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff\U0001f300-\U0001faff]+'
    '|(?<=[a-z])\.(?=[a-z])', ' ', 'g');
  lexemes tsvector;
BEGIN
  IF NOT pg_catalog.pg_input_is_valid(language, 'regconfig') THEN
    RAISE EXCEPTION 'unknown text-search configuration %', pg_catalog.quote_literal(pg_catalog."left"(language, 200))
      USING ERRCODE = 'HM004', HINT = 'SELECT cfgname FROM pg_ts_config lists those of this server.';
  END IF;
  IF plain ~ '[a-z][A-Z]' THEN -- getUserById, by its parts as well
    words := words || ' ' || (
      SELECT pg_catalog.string_agg(pg_catalog.lower(pg_catalog.regexp_replace(match.groups[1], '([a-z])([A-Z])', '\1 \2', 'g')), ' ')
      FROM pg_catalog.regexp_matches(plain, '([A-Za-z0-9]*[a-z][A-Z][A-Za-z0-9]*)', 'g') AS match(groups));
  END IF;
  lexemes := pg_catalog.to_tsvector(language::regconfig, words);
  RETURN CASE WHEN language = 'english' THEN hindsight._base_forms_v1(lexemes) ELSE lexemes END
    OPERATOR(pg_catalog.||) CASE WHEN folded ~ '[^\sa-z]' THEN hindsight._identifier_tsv_v1(folded) ELSE '' END
    OPERATOR(pg_catalog.||) cjk;
END
$$;
COMMENT ON FUNCTION hindsight.text_tsv_v1(text, text, boolean) IS
  'The lexemes of a text: words of the language, whole identifiers, bigrams of Chinese, Japanese and Korean.';

-- _entity_lexemes_v1: entities and slots as lexemes of their own, which find a memory and do not count in its BM25: "=new york".
CREATE OR REPLACE FUNCTION hindsight._entity_lexemes_v1(entities text[])
  RETURNS text[]
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (
  SELECT coalesce(pg_catalog.array_agg(DISTINCT '=' || pg_catalog."left"(pg_catalog.lower(pg_catalog.normalize(e, 'NFKC')), 200)), '{}')
  FROM pg_catalog.unnest(entities) AS e
  WHERE e <> '');

-- document_tsv_v1: what a memory is found by. Weight A: its content; B: tags, entities and slot, as far as the content
-- does not say them; C: its context. Entities and slot also stand whole, without a weight.
CREATE OR REPLACE FUNCTION hindsight.document_tsv_v1(
  language text, content text, tags text[], entities text[], slot text, context text)
  RETURNS tsvector
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
AS $$
DECLARE
  said constant tsvector := hindsight.text_tsv_v1(language, content);
  document tsvector := pg_catalog.setweight(said, 'A');
  labels constant text := pg_catalog.concat_ws(' ', pg_catalog.array_to_string(tags, ' '), pg_catalog.array_to_string(entities, ' '), slot);
BEGIN
  IF labels <> '' THEN
    document := document
      OPERATOR(pg_catalog.||) pg_catalog.setweight(pg_catalog.ts_delete(hindsight.text_tsv_v1(language, labels), pg_catalog.tsvector_to_array(said)), 'B')
      OPERATOR(pg_catalog.||) pg_catalog.array_to_tsvector(
        hindsight._entity_lexemes_v1(ARRAY(SELECT pg_catalog.unnest(entities)) || slot));
  END IF;
  IF context <> '' THEN
    document := document OPERATOR(pg_catalog.||) pg_catalog.setweight(hindsight.text_tsv_v1(language, context), 'C');
  END IF;
  RETURN document;
END
$$;
COMMENT ON FUNCTION hindsight.document_tsv_v1(text, text, text[], text[], text, text) IS
  'The weighted lexemes of a memory: A content, B tags, entities and slot, C context.';

-- _name_units_v1: a text as the units that names are made of: words and numbers in lower case, with their + or # (C++, F#),
-- and single characters of scripts that do not separate words.
CREATE OR REPLACE FUNCTION hindsight._name_units_v1(content text)
  RETURNS text[]
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN ARRAY(
  SELECT match.groups[1]
  FROM pg_catalog.regexp_matches(pg_catalog.lower(pg_catalog.normalize(content, 'NFKC')),
         '([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]'
         '|[^\x01-\x2f\x3a-\x60\x7b-\xbf\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2000-\u206f\u3000-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]+[+#]*)', 'g')
         WITH ORDINALITY AS match(groups, place)
  ORDER BY match.place
);

-- _names_v1: what a memory calls the things it is about (tags, entities, slot), each as its units in one ("New York" and
-- new-york are newyork) after its bank. An index holds them, for should_recall: the bank is in the key, so that no plan
-- can prefer an index of the bank's rows and compute this for each of them.
CREATE OR REPLACE FUNCTION hindsight._names_v1(bank_id bigint, tags text[], entities text[], slot text)
  RETURNS text[]
  LANGUAGE sql IMMUTABLE PARALLEL SAFE COST 1000
RETURN ARRAY(
  SELECT DISTINCT bank_id || ':' || pg_catalog.array_to_string(hindsight._name_units_v1(label), '')
  FROM pg_catalog.unnest(tags OPERATOR(pg_catalog.||) entities OPERATOR(pg_catalog.||) slot) AS label
  WHERE label IS NOT NULL
);
