-- Reflection by rules: patterns in what was said, found without a model: a preference that was stated in three sessions, a problem
-- that was solved the same way in two. Both are quoted, so that nothing is concluded that nobody said.

-- _gist: what a sentence is about: the words of its canonical form, without those that only say that somebody prefers or uses
-- something. What another thing is compared with is marked: pnpm, <npm.
CREATE OR REPLACE FUNCTION hindsight._gist(content text)
  RETURNS text[]
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN ARRAY(
  SELECT DISTINCT CASE WHEN u.unit ~ '^(?:to|instead|than|比)~.' THEN '<' ELSE '' END || w.word
  FROM pg_catalog.unnest(hindsight._canonical(content)) AS u(unit)
  CROSS JOIN LATERAL pg_catalog.regexp_replace(u.unit, '^.*[~_](?=.)', '') AS w(word)
  WHERE w.word <> ALL ('{i,me,my,mine,we,our,us,you,your,user,用户,prefer,like,love,favorit,favourit,enjoy,want,wish,hope,need,requir,use,
    keep,make,give,have,get,would,should,must,can,alway,always,always~,everi,best,better,most,more,rather,instead,pleas,let,go,do,a,an,the,be,
    it,that,this,for,in,on,at,of,to,with,and,&,<past,",",、,''s,
    我,你,他,她,们,我们,大家,咱,喜欢,爱,希望,想,要,想要,需要,用,请,后,今后,以后,总是,每次,给,让,把,的,更,最,偏好,偏,好,习惯,里,在}'::text[]));

-- _is_about: whether an insight and a memory have words in common, so that the one can stand on the other: a word of Latin script of
-- three letters or a longer Chinese one, or two of any length.
CREATE OR REPLACE FUNCTION hindsight._is_about(said text, evidence text)
  RETURNS boolean
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN (
  SELECT count(*) >= 2 OR coalesce(bool_or(pg_catalog.length(g.word) >= CASE WHEN g.word ~ '[\u2e80-\uffff]' THEN 2 ELSE 3 END), false)
  FROM (SELECT pg_catalog.ltrim(u, '<') AS word FROM pg_catalog.unnest(hindsight._gist(said)) AS u
        INTERSECT SELECT pg_catalog.ltrim(u, '<') FROM pg_catalog.unnest(hindsight._gist(evidence)) AS u) AS g);

-- _leaning: what must not differ between sentences that say the same of something: denial, aversion, and their numbers.
CREATE OR REPLACE FUNCTION hindsight._leaning(content text)
  RETURNS text[]
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN ARRAY[
    ('not' = ANY (hindsight._assertion(content)))::text,
    (pg_catalog.lower(content) ~ ('\m(?:hate|hates|dislike\w*|avoid\w*|never|stop|refuse\w*|less|fewer|worse|except|unless|allergic|tired of)\M|compared'
      '|讨厌|反感|避免|拒绝|除非|除了|厌|戒|比起|与其|相比|过敏|(?<![特区分个级类性识差])别(?![的人])'))::text]
  || ARRAY(SELECT m.match[1] FROM pg_catalog.regexp_matches(pg_catalog.normalize(content, 'NFKC'), '\d+(?:[.:]\d+)*', 'g') AS m(match) ORDER BY 1);

-- _solution_in: how a problem was solved, in the words of a sentence that tells it. NULL: it tells of none.
CREATE OR REPLACE FUNCTION hindsight._solution_in(content text)
  RETURNS text
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN (
  SELECT pg_catalog.btrim(s.said, ' ,:：，"''')
  FROM (SELECT CASE WHEN content ~ '[\u4e00-\u9fff]' THEN coalesce(
      pg_catalog.substring(content, '(?:解决|修复|处理)(?:办法|方法|方案|方式)(?:是|为|：|:)\s*([^。；;！!，]+)'),
      pg_catalog.substring(content, '(?:^|[，。；,;！：:]|通过|靠)\s*(?:通过|靠|最后|后来)?([^，。；,;！：:]{2,}?)'
        '(?:之后|以后|后)?[，,]?(?:问题)?(?:就|便|才|终于)?(?:解决|修复|修好|恢复|好|正常|搞定|通)(?:了|$|。|问题|正常)'))
    ELSE coalesce(
      pg_catalog.substring(content, '(?i)\m(?:fixed|solved|resolved|cured|repaired|worked around|works? (?:again|now)|went away|helped)(?: it| this| that'
        '| the (?:problem|issue|error))? (?:by|with|after|once|when|through) ((?:[^.;!?]|\.(?=\S))+)'),
      pg_catalog.substring(content, '(?i)\m(?:fix|solution|cure|remedy|workaround)(?: for [^.;]*?)? (?:is|was)(?: to)? ((?:[^.;!?]|\.(?=\S))+)'),
      pg_catalog.substring(content, '(?i)([^.,;:!?]{4,}?),? (?:has |have |finally |also )*(?:fixed|solved|resolved|cured|repaired)'
        ' (?:it|this|that|the (?:problem|issue|error))\M')) END) AS s(said)
  WHERE pg_catalog.length(pg_catalog.btrim(s.said)) >= 2);

-- _pattern_in: the kind of pattern that a memory may be a case of, and the words that are compared: a preference of a person, or the
-- solution of a problem. No row: neither.
CREATE OR REPLACE FUNCTION hindsight._pattern_in(m hindsight.memory)
  RETURNS TABLE (kind text, said text)
  LANGUAGE sql STABLE
BEGIN ATOMIC
  SELECT 'preference', m.content WHERE m.type = 'preference' AND m.source = 'user'
  UNION ALL
  SELECT 'solution', s.said FROM hindsight._solution_in(m.content) AS s(said)
    WHERE m.type IN ('fact', 'decision', 'knowledge') AND s.said IS NOT NULL;
END;

-- _holds_gist: whether what one sentence is about is in another as well, said with the same leaning. One that compares things must name
-- them in the same order.
CREATE OR REPLACE FUNCTION hindsight._holds_gist(one text, one_gist text[], other text, other_gist text[])
  RETURNS boolean
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
AS $$
DECLARE
  compares constant text := '\m(?:over|than|instead|rather)\M|比|代替|而不是|而非|胜过';
BEGIN
  IF one_gist = '{}' OR NOT one_gist <@ other_gist OR hindsight._leaning(one) <> hindsight._leaning(other) THEN
    RETURN false;
  ELSIF one ~* compares OR other ~* compares THEN
    RETURN ARRAY(SELECT w.word FROM pg_catalog.unnest(hindsight._canonical(one)) WITH ORDINALITY AS u(unit, place)
                 CROSS JOIN LATERAL pg_catalog.regexp_replace(u.unit, '^.*[~_](?=.)', '') AS w(word)
                 WHERE w.word = ANY (one_gist) OR '<' || w.word = ANY (one_gist) ORDER BY u.place)
         = ARRAY(SELECT w.word FROM pg_catalog.unnest(hindsight._canonical(other)) WITH ORDINALITY AS u(unit, place)
                 CROSS JOIN LATERAL pg_catalog.regexp_replace(u.unit, '^.*[~_](?=.)', '') AS w(word)
                 WHERE w.word = ANY (one_gist) OR '<' || w.word = ANY (one_gist) ORDER BY u.place);
  END IF;
  RETURN hindsight._disagreement(one, other) IS NULL AND NOT hindsight._evolves(one, other);
END
$$;

-- _like: the ids of the memories that resemble one, itself among them: what recall finds for its words and its vector.
CREATE OR REPLACE FUNCTION hindsight._like(opened hindsight.bank, m hindsight.memory, said text, most integer, types text[])
  RETURNS uuid[]
  LANGUAGE plpgsql STABLE
AS $$
DECLARE
  has_vector constant boolean := m.model_id = opened.model_id AND opened.reembedding IS NULL;
BEGIN
  RETURN m.memory_id || ARRAY(
    SELECT r.memory_id
    FROM hindsight.recall(
      opened.name, said, hops => 0, top_k => most, min_score => 0, types => _like.types,
      embedding => CASE WHEN has_vector THEN m.embedding::vector END,
      model => CASE WHEN has_vector THEN (SELECT e.name FROM hindsight.embedding_model AS e WHERE e.model_id = m.model_id) END) AS r
    WHERE r.memory_id <> m.memory_id);
END
$$;

-- _repeated: the pattern that a memory is a case of, if there is one: among those that resemble it, the case that says least, so that it
-- is in all the others, with these as the evidence. Preferences of three sessions, solutions of two. What was told in several
-- sessions in the same words counts for each of them.
CREATE OR REPLACE FUNCTION hindsight._repeated(opened hindsight.bank, m hindsight.memory, at timestamptz)
  RETURNS TABLE (kind text, said text, evidence uuid[], needed integer, labels text[])
  LANGUAGE plpgsql STABLE
AS $$
#variable_conflict use_column
DECLARE
  like_it uuid[];
BEGIN
  FOR kind, said, needed IN SELECT p.kind, p.said, CASE p.kind WHEN 'preference' THEN 3 ELSE 2 END FROM hindsight._pattern_in(m) AS p LOOP
    like_it := hindsight._like(opened, m, said, 20, CASE kind WHEN 'preference' THEN '{preference}'::text[] ELSE '{fact,decision,knowledge}' END);
    RETURN QUERY
      WITH near AS MATERIALIZED (
        SELECT o.memory_id, p.said, hindsight._gist(p.said) AS gist, o.created_at, o.tags,
               ARRAY(SELECT o.session_id WHERE o.session_id IS NOT NULL
                     UNION SELECT t.session_id FROM hindsight.memory_turn AS t WHERE t.bank_id = o.bank_id AND t.memory_id = o.memory_id) AS sessions
        FROM hindsight.memory AS o
        CROSS JOIN LATERAL hindsight._pattern_in(o) AS p
        WHERE o.bank_id = opened.bank_id AND o.memory_id = ANY (like_it)
          AND p.kind = _repeated.kind AND hindsight._is_evidence(o, at)
      ),
      pattern AS (
        SELECT c.memory_id, c.said, c.gist, c.created_at, pg_catalog.array_agg(DISTINCT n.memory_id) AS evidence,
               count(DISTINCT s.session) AS sessions
        FROM near AS c
        JOIN near AS n ON hindsight._holds_gist(c.said, c.gist, n.said, n.gist)
        LEFT JOIN LATERAL pg_catalog.unnest(n.sessions) AS s(session) ON true
        WHERE pg_catalog.cardinality(c.gist) >= 2 OR c.gist[1] ~ '[\u2e80-\uffff]{3}' OR hindsight.entities(c.said) <> '{}'
        GROUP BY c.memory_id, c.said, c.gist, c.created_at
        HAVING bool_or(n.memory_id = m.memory_id) AND count(DISTINCT n.memory_id) >= 2
      )
      SELECT _repeated.kind,
             CASE WHEN p.said ~ '[\u4e00-\u9fff]'
                  THEN CASE _repeated.kind WHEN 'preference' THEN '多次对话中都说过：' ELSE '不止一次用同一个办法解决了问题：' END
                  ELSE CASE _repeated.kind WHEN 'preference' THEN 'Stated in several conversations: ' ELSE 'Problems were solved the same way more than once: ' END
             END || p.said,
             p.evidence, _repeated.needed,
             ARRAY(SELECT t.tag FROM near AS n CROSS JOIN pg_catalog.unnest(n.tags) AS t(tag) WHERE n.memory_id = ANY (p.evidence)
                   GROUP BY t.tag HAVING count(*) = pg_catalog.cardinality(p.evidence) ORDER BY t.tag)
      FROM pattern AS p
      WHERE p.sessions >= _repeated.needed
      ORDER BY p.sessions DESC, pg_catalog.cardinality(p.gist), p.created_at, p.memory_id
      LIMIT 1;
  END LOOP;
END
$$;

-- _to_review: the memories of a bank that have changed after a moment, so many of them, in that order; an insight that was withdrawn is
-- followed by what it stands on, so that it is made anew of what is left. Unfiltered, so that a call's work is bounded.
CREATE OR REPLACE FUNCTION hindsight._to_review(of_bank bigint, since timestamptz, most integer)
  RETURNS TABLE (place timestamptz, m hindsight.memory)
  LANGUAGE sql STABLE
AS $$
  WITH recent AS MATERIALIZED (
    SELECT m FROM hindsight.memory AS m
    WHERE m.bank_id = of_bank AND m.changed_at > since
    ORDER BY m.changed_at FETCH FIRST most ROWS WITH TIES
  )
  SELECT (r.m).changed_at, r.m FROM recent AS r
  UNION ALL
  SELECT (r.m).changed_at, e
    FROM recent AS r
    JOIN hindsight.link AS l ON l.bank_id = of_bank AND l.from_id = (r.m).memory_id AND l.relation = 'derived_from' AND l.removed_at IS NULL
    JOIN hindsight.memory AS e ON e.bank_id = of_bank AND e.memory_id = l.to_id
    WHERE (r.m).pending_reason IS NOT NULL AND (r.m).metadata ? 'insight' AND hindsight._is_withdrawn(r.m)
  ORDER BY 1
$$;

-- reflect: reviews, by rules, what was said in a bank since the last time, with what resembles it, and keeps the patterns that it finds as
-- insights: hypotheses that quote what was said, cite it as evidence (derived_from), and are as sure as that is often (0.6 to 0.7).
--   preference: a person stated the same preference in three sessions;
--   solution: problems were solved the same way in two sessions.
-- Only what a user, a document or a tool said is evidence, believed and contradicted by nothing; no insight is. A second time it finds
-- nothing new. most: how many memories are looked into, in two seconds at most, before it stores anything; where there is more, the last
-- row's outcome is 'more': call it again, in a transaction of its own. Returns what became of each insight: as propose_insight,
-- but for those that were known. Raises HM001, HM003, HM004.
CREATE OR REPLACE FUNCTION hindsight.reflect(bank text, most integer DEFAULT 200)
  RETURNS SETOF hindsight.insight
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, hindsight, public, pg_temp
  SET enable_seqscan = off
  SET hnsw.iterative_scan = strict_order
AS $$
DECLARE
  opened hindsight.bank := _open_bank(bank, 'writer');
  until timestamptz;
  reviewed record;
  pattern record;
  patterns jsonb := '[]';
  looked_into integer := 0;
  rows_read constant integer := 2000;
  rows_seen integer := 0;
  is_done boolean := true;
  reached timestamptz;
  one hindsight.insight;
BEGIN
  PERFORM _check_most(most), pg_advisory_xact_lock(hashtextextended('hindsight.reflect', opened.bank_id));
  SELECT b.* INTO opened FROM bank AS b WHERE b.bank_id = opened.bank_id; -- somebody may have reflected meanwhile
  until := clock_timestamp() + interval '2 seconds';
  FOR reviewed IN SELECT r.* FROM _to_review(opened.bank_id, coalesce(opened.reflected_to, '-infinity'), rows_read) AS r LOOP
    -- Rows of one transaction may have the same time: they are reviewed together.
    IF (looked_into >= most OR clock_timestamp() > until) AND reviewed.place > reached THEN
      is_done := false;
      EXIT;
    END IF;
    reached := reviewed.place;
    rows_seen := rows_seen + 1;
    CONTINUE WHEN NOT EXISTS (SELECT FROM _pattern_in(reviewed.m)) OR NOT _is_evidence(reviewed.m, clock_timestamp())
      OR patterns @> jsonb_build_array(jsonb_build_object('evidence', jsonb_build_array((reviewed.m).memory_id)));
    looked_into := looked_into + 1;
    patterns := patterns || coalesce((SELECT jsonb_agg(to_jsonb(p)) FROM _repeated(opened, reviewed.m, clock_timestamp()) AS p), '[]');
  END LOOP;
  is_done := is_done AND rows_seen < rows_read;
  IF is_done THEN
    reached := least(reached, clock_timestamp() - interval '1 minute'); -- what is being stored just now may have an earlier time
  END IF;
  IF patterns <> '[]' THEN
    PERFORM _take_turns(opened.bank_id); -- before the bank's row is locked: maintain locks it too, and those who take turns wait for maintain
  END IF;
  UPDATE bank AS b SET reflected_to = reached WHERE b.bank_id = opened.bank_id AND reached > coalesce(b.reflected_to, '-infinity');
  FOR pattern IN SELECT p.* FROM jsonb_to_recordset(patterns) AS p(kind text, said text, evidence uuid[], needed integer, labels text[]) LOOP
    one := NULL;
    SELECT k.memory_id, k.outcome, k.reasons INTO one.memory_id, one.outcome, one.reasons
      FROM _keep_insight(opened, pattern.kind, pattern.said, pattern.evidence, pattern.needed, NULL, pattern.labels) AS k;
    CONTINUE WHEN one.outcome IS NULL;
    one.content := CASE WHEN one.outcome = 'grown' THEN (SELECT m.content FROM memory AS m WHERE m.bank_id = opened.bank_id AND m.memory_id = one.memory_id)
                        ELSE pattern.said END;
    one.derived_from := pattern.evidence;
    one.reasons := coalesce(one.reasons, '{}');
    RETURN NEXT one;
  END LOOP;
  IF NOT is_done THEN
    one := NULL;
    one.outcome := 'more';
    one.derived_from := '{}';
    one.reasons := '{"there is more to review: call it again"}';
    RETURN NEXT one;
  END IF;
END
$$;
COMMENT ON FUNCTION hindsight.reflect(text, integer) IS
  'Reviews what was said in a bank since the last time, and keeps repeated preferences and solutions as hypotheses that cite it.';
