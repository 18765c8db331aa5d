-- The score, in small public functions: each is the formula that recall uses, and nothing else.

-- decay: exp(−decay_rate · days), the part of its weight that a memory keeps days after it was last confirmed.
-- The exponent stays between 1e-9 and 200, since double precision raises on underflow.
CREATE OR REPLACE FUNCTION hindsight.decay(days double precision, decay_rate double precision)
  RETURNS double precision
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN decay_rate < 1e-9 OR days < 1e-9 THEN 1
            ELSE pg_catalog.exp(-least(least(decay_rate, 1e6) * least(days, 1e9), 200)) END;
COMMENT ON FUNCTION hindsight.decay(double precision, double precision) IS
  'exp(−decay_rate · days): what a memory weighs days after it was last confirmed.';

-- _product: the four parts multiplied. A part under 1e-60 counts as none: double precision raises on underflow.
CREATE OR REPLACE FUNCTION hindsight._product(
  similarity double precision, confidence double precision, decay double precision, weight double precision)
  RETURNS double precision
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN least(similarity, confidence, weight) < 1e-60 THEN 0
            ELSE least(similarity, 1) * least(confidence, 1) * least(decay, 1) * least(weight, 1) END;

-- score: similarity × confidence × exp(−decay_rate · days) × weight, in [0, 1] for parts in [0, 1].
CREATE OR REPLACE FUNCTION hindsight.score(
  similarity double precision, confidence double precision, days double precision, decay_rate double precision,
  weight double precision DEFAULT 1)
  RETURNS double precision
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN hindsight._product(similarity, confidence, hindsight.decay(days, decay_rate), weight);
COMMENT ON FUNCTION hindsight.score(double precision, double precision, double precision, double precision, double precision) IS
  'similarity × confidence × exp(−decay_rate · days) × weight.';

-- semantic: the model's cosine, calibrated: 0 at the cosine of unrelated texts (floor), 1 at 1.
CREATE OR REPLACE FUNCTION hindsight.semantic(cosine double precision, floor double precision)
  RETURNS double precision
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN least(greatest((least(greatest(cosine, -1), 1) - floor) / nullif(1 - floor, 0), 0), 1);
COMMENT ON FUNCTION hindsight.semantic(double precision, double precision) IS
  'A cosine, calibrated by the model''s floor: clamp((cosine − floor) / (1 − floor), 0, 1).';

-- lexical: BM25, saturated into [0, 1): k = 10, about three words of middling rarity, counts half.
CREATE OR REPLACE FUNCTION hindsight.lexical(bm25 double precision)
  RETURNS double precision
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN greatest(bm25, 0) / (greatest(bm25, 0) + 10);
COMMENT ON FUNCTION hindsight.lexical(double precision) IS 'BM25, saturated into [0, 1): bm25 / (bm25 + 10).';

-- similarity: noisy-OR of the parts: either is evidence enough, and a silent one takes nothing away. activation is what
-- comes from memories that this one is linked with.
CREATE OR REPLACE FUNCTION hindsight.similarity(
  semantic double precision, lexical double precision, activation double precision DEFAULT 0)
  RETURNS double precision
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN 1 - (1 - least(greatest(coalesce(semantic, 0), 0), 1))
  * (1 - least(greatest(coalesce(lexical, 0), 0), 1))
  * (1 - least(greatest(coalesce(activation, 0), 0), 1));
COMMENT ON FUNCTION hindsight.similarity(double precision, double precision, double precision) IS
  'Noisy-OR: 1 − (1 − semantic) × (1 − lexical) × (1 − activation); an unknown part counts as none.';

-- _idf: inverse document frequency as in Okapi BM25 (Robertson and Zaragoza 2009), ln(1 + (N − n + ½) / (n + ½)),
-- with fifty memories presumed that do not hold the word: in a bank of three memories too, a name is rare.
CREATE OR REPLACE FUNCTION hindsight._idf(documents double precision, holding double precision)
  RETURNS double precision
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN pg_catalog.ln(1 + (greatest(documents, holding) + 50 - holding + 0.5) / (holding + 0.5));

-- _frequency: how often a document says a lexeme, by its labels: A content counts 1, B tags, entities and slot 0.8, C context 0.6.
CREATE OR REPLACE FUNCTION hindsight._frequency(labels text[])
  RETURNS double precision
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN pg_catalog.cardinality(pg_catalog.array_positions(labels, 'A'))
  + 0.8 * pg_catalog.cardinality(pg_catalog.array_positions(labels, 'B'))
  + 0.6 * pg_catalog.cardinality(pg_catalog.array_positions(labels, 'C'));

-- _match: what a document holds of a query's words: its BM25 (k1 = 0.9, b = 0.4, which suit short texts) and the share of their IDF.
-- finder is the words' disjunction; words and idf run in parallel; prefixes are those words of one CJK character, which stand for every bigram they begin.
CREATE OR REPLACE FUNCTION hindsight._match(
  document tsvector, finder tsquery, words text[], idf double precision[], prefixes text[], average_length double precision)
  RETURNS TABLE (bm25 double precision, coverage double precision)
  LANGUAGE sql IMMUTABLE PARALLEL SAFE ROWS 1
AS $$
  SELECT coalesce(pg_catalog.sum(w.rarity * w.frequency * 1.9
           / (w.frequency + 0.9 * (0.6 + 0.4 * pg_catalog.length(document) / greatest(average_length, 1)))), 0),
         least(coalesce(pg_catalog.sum(w.rarity) / nullif((SELECT pg_catalog.sum(i) FROM pg_catalog.unnest(idf) AS i), 0), 0), 1)
  FROM (
    SELECT idf[pg_catalog.array_position(words, CASE WHEN prefixes = '{}' OR d.lexeme = ANY (words) THEN d.lexeme
                                                     ELSE pg_catalog."left"(d.lexeme, 1) END)] AS rarity,
           CASE WHEN d.weights = '{A}' THEN 1 ELSE hindsight._frequency(d.weights) END AS frequency
    FROM pg_catalog.unnest(document) AS d
    WHERE document @@ finder -- most candidates hold none of the words, and are not unnested
      AND d.weights IS NOT NULL
      AND (d.lexeme = ANY (words) OR (prefixes <> '{}' AND pg_catalog."left"(d.lexeme, 1) = ANY (prefixes)))
    OFFSET 0 -- each is computed once
  ) AS w
$$;

-- _alike: how much two results say the same: by their calibrated cosine, else by the share of lexemes in common (Jaccard).
CREATE OR REPLACE FUNCTION hindsight._alike(
  cosine double precision, floor double precision, a_document tsvector, other_document tsvector)
  RETURNS double precision
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
  WHEN cosine IS NOT NULL THEN hindsight.semantic(cosine, floor)
  ELSE (SELECT count(*) FILTER (WHERE w.times = 2)::double precision / greatest(count(*), 1)
        FROM (SELECT count(*) AS times
              FROM pg_catalog.unnest(pg_catalog.tsvector_to_array(a_document) || pg_catalog.tsvector_to_array(other_document)) AS word
              GROUP BY word) AS w)
END;
