-- Signs: whether a clause shows what 05_clause_english.sql and 05_clause_chinese.sql know it by.

-- _shows: whether a clause or a sentence as _plain gives it shows a sign of that kind. An English pattern is tried where a part
-- of one of its words is seen.
CREATE OR REPLACE FUNCTION hindsight._shows(plain text, is_chinese boolean, kind text)
  RETURNS boolean
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN is_chinese THEN plain ~ hindsight._chinese_sign(kind)
            ELSE plain LIKE ANY (hindsight._english_hint(kind)) AND plain ~ hindsight._english_sign(kind) END;

-- _lasting: the clauses of a sentence (as _plain gives it) that are neither a request nor about a moment, without conjunctions
-- before them. NULL: there is none.
CREATE OR REPLACE FUNCTION hindsight._lasting(plain text, is_chinese boolean)
  RETURNS text
  LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
AS $$
DECLARE
  cut constant text := pg_catalog.regexp_replace(plain, CASE WHEN is_chinese THEN '(?<!今天|昨天|昨晚|刚才|晚上|最近)[,:](?![0-9]) *'
    ELSE '(?<!today|yesterday|tonight|now|night|morning|week|evening) [,:;] | - | (?:but|so|because) (?=(?:i|we|my|our|no) )'
      '|(?<! my [a-z]+) and (?=(?:i|we) )' END, E'\n', 'g');
  clause text;
  kept text;
BEGIN
  FOREACH clause IN ARRAY pg_catalog.string_to_array(cut, E'\n') LOOP
    clause := CASE WHEN is_chinese THEN pg_catalog.regexp_replace(clause, '^(?:不过|但是?|所以|因为|其实|反正|而且|另外|还有|对了)', '')
      ELSE pg_catalog.regexp_replace(' ' || pg_catalog.btrim(clause) || ' ', '^ (?:(?:and|but|so|then|well|yes|yeah|ok|okay'
        '|please|now|oh|right|because|since|good|great|perfect|thanks|btw'
                                     '|by the way|hi|hello|hey|in the meantime|anyway|that|for the record|unfortunately'
                                     '|recently|[.!]) )*', ' ') END;
    CONTINUE WHEN pg_catalog.btrim(clause, ' .!。') = '' OR clause ~ '[?？]["”) ]*$|怎么办'
      '|什么好' OR hindsight._shows(clause, is_chinese, 'passing')
      OR (hindsight._shows(clause, is_chinese, 'request') AND NOT hindsight._shows(plain, is_chinese, 'standing'));
    kept := coalesce(kept || ',', '') || clause;
  END LOOP;
  RETURN kept;
END
$$;
