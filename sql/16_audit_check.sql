-- The checks of an audit that look at one memory at a time, or at a bank's tags. Each walks over the bank's rows once, at most.

-- _day: a date as a finding shows it.
CREATE OR REPLACE FUNCTION hindsight._day(at timestamptz)
  RETURNS text
  LANGUAGE sql STABLE PARALLEL SAFE
RETURN pg_catalog.to_char(at, 'YYYY-MM-DD');

-- _audit_stale: facts and decisions that weigh less than a tenth of what they did and were never confirmed again; pending memories
-- that are put away within a week; todos of more than a week that end within one, or that are a month old and have no end.
CREATE OR REPLACE FUNCTION hindsight._audit_stale(opened hindsight.bank, at timestamptz, most integer)
  RETURNS TABLE (finding text, memory_id uuid, other_id uuid, detail text, remedy text)
  LANGUAGE plpgsql STABLE
AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
    SELECT 'stale', s.memory_id, NULL::uuid,
           hindsight._in_quotes(s.content) || CASE s.kind
             WHEN 'faded' THEN pg_catalog.format(
               ' was last confirmed on %s, and weighs less than a tenth of what it did', hindsight._day(s.since))
             WHEN 'pending' THEN pg_catalog.format(
               ' is pending (%s), and is put away on %s', s.why, hindsight._day(s.since + interval '30 days'))
             ELSE pg_catalog.format(
               ' is to be done since %s%s', hindsight._day(s.since), ', and is forgotten on ' || hindsight._day(s.ends)) END,
           'review'
    FROM (
      SELECT 'faded' AS kind, m.memory_id, m.content, m.confirmed_at AS since, NULL::timestamptz AS ends, NULL AS why
      FROM hindsight.memory_type AS t
      LEFT JOIN hindsight.bank_type AS b ON b.bank_id = opened.bank_id AND b.type = t.type
      CROSS JOIN LATERAL (SELECT coalesce(b.decay_rate, t.decay_rate, opened.decay_rate)) AS r(rate)
      JOIN hindsight.live_memory AS m ON m.bank_id = opened.bank_id AND m.type = t.type
      WHERE t.type IN ('fact', 'decision') AND r.rate > 0.00001 AND m.confirmations = 0
        AND m.confirmed_at < at - pg_catalog.make_interval(secs => 86400 * pg_catalog.ln(10) / r.rate)
        AND (m.expires_at IS NULL OR m.expires_at > at)
      UNION ALL
      SELECT 'pending', m.memory_id, m.content, m.changed_at, NULL, m.pending_reason
      FROM hindsight.current_memory AS m
      WHERE m.bank_id = opened.bank_id AND m.pending_reason IS NOT NULL AND m.changed_at <= at - interval '23 days'
        AND (m.expires_at IS NULL OR m.expires_at > at)
      UNION ALL
      SELECT 'todo', m.memory_id, m.content, m.confirmed_at, m.expires_at, NULL
      FROM hindsight.live_memory AS m
      WHERE m.bank_id = opened.bank_id AND m.type = 'todo' AND m.completed_at IS NULL
        AND ((m.expires_at > at AND m.expires_at <= at + interval '7 days' AND m.confirmed_at <= at - interval '7 days')
             OR (m.expires_at IS NULL AND m.confirmed_at <= at - interval '30 days'))
      ORDER BY since, memory_id
      LIMIT most
    ) AS s
    ORDER BY s.since, s.memory_id;
END
$$;

-- _audit_orphans: memories that were made of others (derived_from) and believed since those were forgotten, without anybody having
-- confirmed them; made of what has all been put away; superseded by what is gone, so that nothing of them is live; summaries of
-- sessions whose memories are all forgotten.
CREATE OR REPLACE FUNCTION hindsight._audit_orphans(opened hindsight.bank, at timestamptz, most integer)
  RETURNS TABLE (finding text, memory_id uuid, other_id uuid, detail text, remedy text)
  LANGUAGE plpgsql STABLE
AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
    SELECT 'orphans', o.memory_id, o.other_id, pg_catalog.format(o.detail, hindsight._in_quotes(o.content), o.about), o.remedy
    FROM (
      SELECT DISTINCT ON (m.memory_id) m.memory_id, e.memory_id AS other_id, m.content, hindsight._day(e.deleted_at) AS about,
             '%s was made of a memory that was forgotten on %s' AS detail, 'withdraw' AS remedy
      FROM hindsight.link AS l
      JOIN hindsight.memory AS e ON e.bank_id = l.bank_id AND e.memory_id = l.to_id AND e.deleted_at IS NOT NULL
      JOIN hindsight.live_memory AS m ON m.bank_id = l.bank_id AND m.memory_id = l.from_id AND m.confirmed_at <= e.deleted_at
      WHERE l.bank_id = opened.bank_id AND l.relation = 'derived_from' AND l.removed_at IS NULL
        AND (m.expires_at IS NULL OR m.expires_at > at)
      UNION ALL
      SELECT m.memory_id, NULL, m.content, NULL, 'all that %s was made of has been put away', 'review'
      FROM (SELECT l.from_id
            FROM hindsight.link AS l JOIN hindsight.memory AS e ON e.bank_id = l.bank_id AND e.memory_id = l.to_id
            WHERE l.bank_id = opened.bank_id AND l.relation = 'derived_from' AND l.removed_at IS NULL
            GROUP BY l.from_id
            HAVING bool_and(e.archived_at IS NOT NULL AND e.deleted_at IS NULL)) AS made
      JOIN hindsight.live_memory AS m ON m.bank_id = opened.bank_id AND m.memory_id = made.from_id
      WHERE m.confirmations = 0 AND (m.expires_at IS NULL OR m.expires_at > at)
      UNION ALL
      SELECT m.memory_id, s.memory_id, m.content, hindsight._state(s, at),
             '%s was superseded by a memory that is %s: neither is live', 'review'
      FROM hindsight.memory AS m
      JOIN hindsight.memory AS s ON s.bank_id = m.bank_id AND s.memory_id = m.superseded_by
      WHERE m.bank_id = opened.bank_id AND m.superseded_by IS NOT NULL AND m.deleted_at IS NULL AND m.archived_at IS NULL
        AND (s.deleted_at IS NOT NULL OR (s.superseded_by IS NULL AND (s.archived_at IS NOT NULL OR s.expires_at <= at)))
        AND NOT EXISTS (SELECT FROM hindsight.current_memory AS c WHERE c.bank_id = m.bank_id AND c.digest = m.digest)
        AND NOT EXISTS (SELECT FROM hindsight.live_memory AS c WHERE c.bank_id = m.bank_id AND c.slot = m.slot)
      UNION ALL
      SELECT m.memory_id, NULL, m.content, m.session_id, '%s sums up session %s, whose memories are all forgotten', 'review'
      FROM (SELECT k.session_id FROM hindsight.memory AS k
            WHERE k.bank_id = opened.bank_id AND k.session_id IS NOT NULL AND k.type <> 'summary'
            GROUP BY k.session_id
            HAVING bool_and(k.deleted_at IS NOT NULL)) AS forgotten
      JOIN hindsight.live_memory AS m ON m.bank_id = opened.bank_id AND m.session_id = forgotten.session_id AND m.type = 'summary'
      WHERE m.expires_at IS NULL OR m.expires_at > at
      ORDER BY remedy DESC, memory_id
      LIMIT most
    ) AS o
    ORDER BY o.remedy DESC, o.memory_id;
END
$$;

-- _audit_hypotheses: what was inferred a month ago or more, and nobody has confirmed since.
CREATE OR REPLACE FUNCTION hindsight._audit_hypotheses(opened hindsight.bank, at timestamptz, most integer)
  RETURNS TABLE (finding text, memory_id uuid, other_id uuid, detail text, remedy text)
  LANGUAGE plpgsql STABLE
AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
    SELECT 'hypotheses', m.memory_id, NULL::uuid,
           pg_catalog.format('%s was inferred on %s, and never confirmed', hindsight._in_quotes(m.content), hindsight._day(m.created_at)),
           'review'
    FROM hindsight.live_memory AS m
    WHERE m.bank_id = opened.bank_id AND m.type = 'hypothesis' AND m.confirmations = 0 AND m.created_at <= at - interval '30 days'
      AND (m.expires_at IS NULL OR m.expires_at > at)
    ORDER BY m.created_at, m.memory_id
    LIMIT most;
END
$$;

-- _audit_sources: two patterns of memories that nobody has vouched for (from a tool, inferred, or from an unknown source).
-- A burst: fifty or more in one session within ten minutes, ten times what the bank's sessions have of such (the median): in a bank
-- that was filled by an import all are large, and none stands out.
-- Repetition: five repetitions or more have raised the confidence, and nobody has confirmed it.
CREATE OR REPLACE FUNCTION hindsight._audit_sources(opened hindsight.bank, at timestamptz, most integer)
  RETURNS TABLE (finding text, memory_id uuid, other_id uuid, detail text, remedy text)
  LANGUAGE plpgsql STABLE
AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
    WITH unvouched AS MATERIALIZED (
      SELECT m.memory_id, m.content, m.session_id, coalesce(m.source, 'unknown') AS source, m.created_at, m.confirmations, m.confidence
      FROM hindsight.live_memory AS m
      WHERE m.bank_id = opened.bank_id AND (m.source IS NULL OR m.source IN ('tool', 'inferred'))
        AND (m.expires_at IS NULL OR m.expires_at > at)
    ),
    burst AS MATERIALIZED (
      SELECT u.session_id, u.source, count(*) AS size, min(u.created_at) AS began,
             (pg_catalog.array_agg(u.memory_id ORDER BY u.created_at, u.memory_id))[1] AS first_id
      FROM unvouched AS u
      GROUP BY u.session_id, u.source, pg_catalog.date_bin('10 minutes', u.created_at, '2000-01-01 00:00:00+00')
    )
    SELECT 'sources', s.memory_id, NULL::uuid, s.detail, 'review'
    FROM (
      SELECT b.first_id AS memory_id, b.began AS since,
             pg_catalog.format('%s memories came within ten minutes, from %s, source %s, this one first', b.size,
                               coalesce('session ' || b.session_id, 'no session'), b.source) AS detail
      FROM burst AS b
      WHERE b.size >= 50 AND b.size >= 10 * (SELECT pg_catalog.percentile_cont(0.5) WITHIN GROUP (ORDER BY o.size) FROM burst AS o)
      UNION ALL
      SELECT u.memory_id, u.created_at,
             pg_catalog.format('%s was raised from a confidence of %s to %s by %s repetitions, source %s',
                               hindsight._in_quotes(u.content), pg_catalog.round(v.confidence::numeric, 2),
                               pg_catalog.round(u.confidence::numeric, 2), u.confirmations, u.source)
      FROM unvouched AS u
      JOIN hindsight.memory_version AS v ON v.version = 1 AND v.bank_id = opened.bank_id AND v.memory_id = u.memory_id
      WHERE u.confirmations >= 5 AND u.confidence - v.confidence >= 0.05
        AND NOT EXISTS (SELECT FROM hindsight.event AS e
                        WHERE e.bank_id = opened.bank_id AND e.memory_id = u.memory_id AND e.action = 'confirmed')
    ) AS s
    ORDER BY s.since DESC, s.memory_id
    LIMIT most;
END
$$;

-- _tag_key: what the spellings of a tag have in common: without spaces, hyphens and underscores, and in the singular.
CREATE OR REPLACE FUNCTION hindsight._tag_key(tag text)
  RETURNS text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN pg_catalog.regexp_replace(
  pg_catalog.regexp_replace(hindsight._plain_tag(tag), '[\s_‐-]', '', 'g'), '^([a-z0-9]{2,}[a-rt-z0-9])s$', '\1');

-- _tag_spellings: the tags of a bank's live memories that should be spelled otherwise: aliases as their tag; of several spellings the
-- one that is allowed, or has aliases, or is the most frequent.
CREATE OR REPLACE FUNCTION hindsight._tag_spellings(opened hindsight.bank, at timestamptz)
  RETURNS TABLE (tag text, better text)
  LANGUAGE plpgsql STABLE
AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
    WITH held AS MATERIALIZED (
      SELECT t.tag, count(*) AS memories, (hindsight._bank_tags(opened.bank_id, ARRAY[t.tag]))[1] AS own
      FROM hindsight.live_memory AS m CROSS JOIN pg_catalog.unnest(m.tags) AS t(tag)
      WHERE m.bank_id = opened.bank_id AND (m.expires_at IS NULL OR m.expires_at > at)
      GROUP BY t.tag
    ),
    ranked AS (
      SELECT h.tag, pg_catalog.first_value(h.own) OVER spelling AS better
      FROM held AS h
      WINDOW spelling AS (PARTITION BY hindsight._tag_key(h.own)
        ORDER BY h.own = ANY (opened.allowed_tags) DESC NULLS LAST,
                 EXISTS (SELECT FROM hindsight.tag_alias AS a WHERE a.bank_id = opened.bank_id AND a.tag = h.own) DESC,
                 h.memories DESC, h.own)
    )
    SELECT r.tag, r.better FROM ranked AS r WHERE r.better <> r.tag;
END
$$;

-- _audit_tags: memories with a tag that should be spelled otherwise (_tag_spellings), and with tags that the bank does not allow.
CREATE OR REPLACE FUNCTION hindsight._audit_tags(opened hindsight.bank, at timestamptz, most integer)
  RETURNS TABLE (finding text, memory_id uuid, other_id uuid, detail text, remedy text)
  LANGUAGE plpgsql STABLE
AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
    WITH spelling AS MATERIALIZED (SELECT s.tag, s.better FROM hindsight._tag_spellings(opened, at) AS s)
    SELECT 'tags', w.memory_id, NULL::uuid, pg_catalog.format(w.detail, hindsight._in_quotes(w.content), w.tags), w.remedy
    FROM (
      SELECT m.memory_id, m.content, '%s has a tag spelled in another way: %s' AS detail, 'retag' AS remedy,
             pg_catalog.string_agg(pg_catalog.format('%s for %s', t.tag, s.better), ', ' ORDER BY t.tag) AS tags
      FROM hindsight.live_memory AS m CROSS JOIN pg_catalog.unnest(m.tags) AS t(tag) JOIN spelling AS s ON s.tag = t.tag
      WHERE m.bank_id = opened.bank_id AND (m.expires_at IS NULL OR m.expires_at > at)
      GROUP BY m.memory_id, m.content
      UNION ALL
      SELECT m.memory_id, m.content, '%s has tags that the bank does not allow: %s', 'review',
             pg_catalog.string_agg(t.tag, ', ' ORDER BY t.tag)
      FROM hindsight.live_memory AS m CROSS JOIN pg_catalog.unnest(m.tags) AS t(tag)
      WHERE m.bank_id = opened.bank_id AND (m.expires_at IS NULL OR m.expires_at > at)
        AND t.tag <> ALL (opened.allowed_tags) AND NOT EXISTS (SELECT FROM spelling AS s WHERE s.tag = t.tag)
      GROUP BY m.memory_id, m.content
      ORDER BY remedy, memory_id
      LIMIT most
    ) AS w
    ORDER BY w.remedy, w.memory_id;
END
$$;
