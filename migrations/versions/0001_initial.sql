-- Tables, indexes and types of the first revision.

CREATE TABLE hindsight.embedding_model (
  model_id integer GENERATED ALWAYS AS IDENTITY,
  name text NOT NULL,
  dimensions integer NOT NULL,
  floor double precision NOT NULL,
  recall_threshold double precision NOT NULL,
  merge_threshold double precision NOT NULL,
  hnsw_m integer DEFAULT 24 NOT NULL,
  hnsw_ef_construction integer DEFAULT 128 NOT NULL,
  hnsw_ef_search integer DEFAULT 80 NOT NULL,
  created_at timestamptz DEFAULT now() NOT NULL,
  PRIMARY KEY (model_id),
  CONSTRAINT embedding_model_dimensions_check CHECK (dimensions BETWEEN 1 AND 4000),
  CONSTRAINT embedding_model_thresholds_check CHECK (floor >= -1 AND floor < recall_threshold AND recall_threshold < merge_threshold AND merge_threshold <= 1),
  CONSTRAINT embedding_model_hnsw_check CHECK (hnsw_m BETWEEN 2 AND 100 AND hnsw_ef_construction BETWEEN 4 AND 1000 AND hnsw_ef_construction >= 2 * hnsw_m AND hnsw_ef_search BETWEEN 1 AND 1000)
);
CREATE UNIQUE INDEX embedding_model_name_key ON hindsight.embedding_model (name);
COMMENT ON TABLE hindsight.embedding_model IS 'The registry of embedding models, with the cosines that make their scores comparable.';
COMMENT ON COLUMN hindsight.embedding_model.name IS 'As the provider calls it.';
COMMENT ON COLUMN hindsight.embedding_model.dimensions IS 'Length of the model''s vectors.';
COMMENT ON COLUMN hindsight.embedding_model.floor IS 'The model''s cosine for unrelated texts.';
COMMENT ON COLUMN hindsight.embedding_model.recall_threshold IS 'Cosine from which a memory counts as relevant.';
COMMENT ON COLUMN hindsight.embedding_model.merge_threshold IS 'Cosine from which two memories may say the same.';
COMMENT ON COLUMN hindsight.embedding_model.hnsw_m IS 'Links of each vector in the model''s HNSW index.';
COMMENT ON COLUMN hindsight.embedding_model.hnsw_ef_construction IS 'Candidates looked at to place a vector in it.';
COMMENT ON COLUMN hindsight.embedding_model.hnsw_ef_search IS 'Candidates that a search of it keeps.';

CREATE TABLE hindsight.memory_type (
  type text NOT NULL,
  decay_rate double precision,
  weight double precision DEFAULT 1 NOT NULL,
  ttl interval DEFAULT '0' NOT NULL,
  on_conflict text DEFAULT 'confident' NOT NULL,
  description text NOT NULL,
  PRIMARY KEY (type),
  CONSTRAINT memory_type_ttl_check CHECK (ttl >= '0'),
  CONSTRAINT memory_type_on_conflict_check CHECK (on_conflict IN ('overwrite', 'history', 'confident')),
  CONSTRAINT memory_type_decay_rate_check CHECK (decay_rate >= 0),
  CONSTRAINT memory_type_weight_check CHECK (weight BETWEEN 0 AND 1)
);
COMMENT ON TABLE hindsight.memory_type IS 'The types of memory.';
COMMENT ON COLUMN hindsight.memory_type.decay_rate IS 'λ per day; NULL: the bank''s.';
COMMENT ON COLUMN hindsight.memory_type.weight IS 'Type weight of the score.';
COMMENT ON COLUMN hindsight.memory_type.ttl IS 'How long such a memory lives when it is not told; 0: for good.';
COMMENT ON COLUMN hindsight.memory_type.on_conflict IS 'What a new value of a slot does: overwrite, history or confident.';

CREATE TABLE hindsight.bank (
  bank_id bigint GENERATED ALWAYS AS IDENTITY,
  name text NOT NULL,
  description text,
  language text DEFAULT 'english' NOT NULL,
  decay_rate double precision DEFAULT 0.01 NOT NULL,
  model_id integer,
  reembedding text,
  other_model_id integer,
  switched_at timestamptz,
  documents integer,
  average_length double precision,
  allowed_tags text[],
  distil_mode text DEFAULT 'auto' NOT NULL,
  distil_turns integer DEFAULT 4 NOT NULL,
  distil_idle interval DEFAULT '10 minutes' NOT NULL,
  working_turns integer DEFAULT 20 NOT NULL,
  maintained_at timestamptz,
  linked_to timestamptz,
  link_round uuid,
  audited_at timestamptz,
  reflected_at timestamptz,
  reflected_to timestamptz,
  model_reflected_to timestamptz,
  findings integer,
  redaction text DEFAULT 'mask' NOT NULL,
  redaction_kinds text[],
  redaction_patterns jsonb,
  screening boolean DEFAULT true NOT NULL,
  created_at timestamptz DEFAULT now() NOT NULL,
  PRIMARY KEY (bank_id),
  CONSTRAINT bank_redaction_check CHECK (redaction IN ('off', 'mask', 'refuse')),
  CONSTRAINT bank_decay_rate_check CHECK (decay_rate BETWEEN 0 AND 1),
  CONSTRAINT bank_distil_mode_check CHECK (distil_mode IN ('auto', 'model', 'rules', 'verbatim', 'off')),
  CONSTRAINT bank_distil_turns_check CHECK (distil_turns BETWEEN 1 AND 100),
  CONSTRAINT bank_working_turns_check CHECK (working_turns BETWEEN 1 AND 1000),
  CONSTRAINT bank_reembedding_check CHECK (reembedding IN ('embedding', 'switched', 'settling')),
  CONSTRAINT bank_other_model_check CHECK ((reembedding IS NULL) = (other_model_id IS NULL) AND (switched_at IS NULL) = (coalesce(reembedding, 'embedding') = 'embedding')),
  CONSTRAINT bank_model_id_fkey FOREIGN KEY (model_id) REFERENCES hindsight.embedding_model (model_id),
  CONSTRAINT bank_other_model_id_fkey FOREIGN KEY (other_model_id) REFERENCES hindsight.embedding_model (model_id)
);
CREATE UNIQUE INDEX bank_name_key ON hindsight.bank (name);
COMMENT ON TABLE hindsight.bank IS 'A store of memories with its own access list: the unit of isolation and of distribution.';
COMMENT ON COLUMN hindsight.bank.language IS 'Text-search configuration of new memories.';
COMMENT ON COLUMN hindsight.bank.decay_rate IS 'λ per day.';
COMMENT ON COLUMN hindsight.bank.model_id IS 'The embedding model of this bank; NULL until the first embedding.';
COMMENT ON COLUMN hindsight.bank.reembedding IS 'Where a change of the model is: embedding, switched or settling; NULL: none is going on.';
COMMENT ON COLUMN hindsight.bank.other_model_id IS 'The model that is coming (embedding), or going (switched, settling).';
COMMENT ON COLUMN hindsight.bank.switched_at IS 'When model_id became what it is; NULL when no change is going on.';
COMMENT ON COLUMN hindsight.bank.documents IS 'Live memories when its words were last counted; NULL: small, counted at each recall.';
COMMENT ON COLUMN hindsight.bank.average_length IS 'Mean lexemes of those memories.';
COMMENT ON COLUMN hindsight.bank.allowed_tags IS 'The tags that its memories may have; NULL: any.';
COMMENT ON COLUMN hindsight.bank.distil_mode IS 'How its sessions are distilled: auto (a model where the worker has one, else rules), model, rules, verbatim, off.';
COMMENT ON COLUMN hindsight.bank.distil_turns IS 'A session is distilled when so many turns wait.';
COMMENT ON COLUMN hindsight.bank.distil_idle IS 'Or when it has been idle for so long.';
COMMENT ON COLUMN hindsight.bank.working_turns IS 'How many of a session''s last turns working_get returns.';
COMMENT ON COLUMN hindsight.bank.maintained_at IS 'When a worker last began to maintain it.';
COMMENT ON COLUMN hindsight.bank.linked_to IS 'Memories that changed until then have their automatic links.';
COMMENT ON COLUMN hindsight.bank.link_round IS 'The memory up to which all links were looked over, in the round that is on; NULL: none is.';
COMMENT ON COLUMN hindsight.bank.audited_at IS 'When a worker last began to audit it.';
COMMENT ON COLUMN hindsight.bank.reflected_at IS 'When a worker last began to reflect on it.';
COMMENT ON COLUMN hindsight.bank.reflected_to IS 'Up to which change of a memory it has been reviewed by rules.';
COMMENT ON COLUMN hindsight.bank.model_reflected_to IS 'Up to which change of a memory it has been reviewed by a language model.';
COMMENT ON COLUMN hindsight.bank.findings IS 'How many findings that audit had.';
COMMENT ON COLUMN hindsight.bank.redaction IS 'What becomes of personal data and secrets that are to be stored: off, mask or refuse.';
COMMENT ON COLUMN hindsight.bank.redaction_kinds IS 'Of which kinds; NULL: of those that are redacted by default.';
COMMENT ON COLUMN hindsight.bank.redaction_patterns IS 'Kinds of the operator''s own, each with an expression.';
COMMENT ON COLUMN hindsight.bank.screening IS 'Whether what is stored is screened for what looks planted.';

CREATE TABLE hindsight.bank_type (
  bank_id bigint NOT NULL,
  type text NOT NULL,
  decay_rate double precision,
  weight double precision,
  ttl interval,
  on_conflict text,
  PRIMARY KEY (bank_id, type),
  CONSTRAINT bank_type_ttl_check CHECK (ttl >= '0'),
  CONSTRAINT bank_type_on_conflict_check CHECK (on_conflict IN ('overwrite', 'history', 'confident')),
  CONSTRAINT bank_type_decay_rate_check CHECK (decay_rate >= 0),
  CONSTRAINT bank_type_weight_check CHECK (weight BETWEEN 0 AND 1),
  CONSTRAINT bank_type_bank_id_fkey FOREIGN KEY (bank_id) REFERENCES hindsight.bank (bank_id),
  CONSTRAINT bank_type_type_fkey FOREIGN KEY (type) REFERENCES hindsight.memory_type (type)
);
COMMENT ON TABLE hindsight.bank_type IS 'Where a bank departs from the defaults of memory_type.';
COMMENT ON COLUMN hindsight.bank_type.decay_rate IS 'λ per day; NULL: the type''s or the bank''s.';
COMMENT ON COLUMN hindsight.bank_type.weight IS 'Type weight of the score; NULL: the type''s.';
COMMENT ON COLUMN hindsight.bank_type.ttl IS 'How long such a memory lives when it is not told; 0: for good; NULL: as the type says.';
COMMENT ON COLUMN hindsight.bank_type.on_conflict IS 'What a new value of a slot does; NULL: as the type says.';

CREATE TABLE hindsight.tag_alias (
  bank_id bigint NOT NULL,
  alias text NOT NULL,
  tag text NOT NULL,
  PRIMARY KEY (bank_id, alias),
  CONSTRAINT tag_alias_check CHECK (alias <> tag),
  CONSTRAINT tag_alias_bank_id_fkey FOREIGN KEY (bank_id) REFERENCES hindsight.bank (bank_id)
);
COMMENT ON TABLE hindsight.tag_alias IS 'Other spellings of a bank''s tags.';
COMMENT ON COLUMN hindsight.tag_alias.alias IS 'As it may be written.';
COMMENT ON COLUMN hindsight.tag_alias.tag IS 'As it is kept.';

CREATE TABLE hindsight.access (
  bank_id bigint NOT NULL,
  principal text NOT NULL,
  rights text NOT NULL,
  types text[],
  granted_at timestamptz DEFAULT now() NOT NULL,
  PRIMARY KEY (bank_id, principal),
  CONSTRAINT access_rights_check CHECK (rights IN ('reader', 'adder', 'writer', 'owner')),
  CONSTRAINT access_types_check CHECK (types IS NULL OR rights IN ('adder', 'writer')),
  CONSTRAINT access_bank_id_fkey FOREIGN KEY (bank_id) REFERENCES hindsight.bank (bank_id)
);
COMMENT ON TABLE hindsight.access IS 'Who may use which bank.';
COMMENT ON COLUMN hindsight.access.principal IS 'A database role, or a name it acts for.';
COMMENT ON COLUMN hindsight.access.rights IS 'reader, adder, writer or owner.';
COMMENT ON COLUMN hindsight.access.types IS 'The only types of memory that it may write; NULL: all.';

CREATE TABLE hindsight.access_token (
  name text NOT NULL,
  digest bytea NOT NULL,
  principal text NOT NULL,
  banks text[],
  rights text,
  created_at timestamptz DEFAULT now() NOT NULL,
  expires_at timestamptz,
  last_used_at timestamptz,
  revoked_at timestamptz,
  PRIMARY KEY (name),
  CONSTRAINT access_token_rights_check CHECK (rights IN ('reader', 'adder', 'writer', 'owner'))
);
CREATE UNIQUE INDEX access_token_digest_key ON hindsight.access_token (digest);
COMMENT ON TABLE hindsight.access_token IS 'Tokens of the servers. Only operators and servers read it, through functions.';
COMMENT ON COLUMN hindsight.access_token.name IS 'What people call it; no secret.';
COMMENT ON COLUMN hindsight.access_token.digest IS 'SHA-256 of the token, which is kept nowhere.';
COMMENT ON COLUMN hindsight.access_token.principal IS 'Whom it acts for.';
COMMENT ON COLUMN hindsight.access_token.banks IS 'The only banks that it reaches; NULL: all of its principal.';
COMMENT ON COLUMN hindsight.access_token.rights IS 'The most that it may do; NULL: what its principal may.';
COMMENT ON COLUMN hindsight.access_token.expires_at IS 'It does not hold from then on.';
COMMENT ON COLUMN hindsight.access_token.last_used_at IS 'When a server last saw it, to the minute.';
COMMENT ON COLUMN hindsight.access_token.revoked_at IS 'When it was taken back.';

CREATE TABLE hindsight.session (
  bank_id bigint NOT NULL,
  session_id text NOT NULL,
  principal text,
  last_sequence integer DEFAULT 0 NOT NULL,
  started_at timestamptz DEFAULT now() NOT NULL,
  closed_at timestamptz,
  summarised_at timestamptz,
  waiting integer DEFAULT 0 NOT NULL,
  due_at timestamptz,
  claim uuid,
  attempts integer DEFAULT 0 NOT NULL,
  last_error text,
  PRIMARY KEY (bank_id, session_id),
  CONSTRAINT session_bank_id_fkey FOREIGN KEY (bank_id) REFERENCES hindsight.bank (bank_id)
);
CREATE INDEX session_due_idx ON hindsight.session (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX session_waiting_idx ON hindsight.session (bank_id) WHERE waiting > 0 OR due_at IS NOT NULL;
COMMENT ON TABLE hindsight.session IS 'One conversation.';
COMMENT ON COLUMN hindsight.session.session_id IS 'As the application calls it.';
COMMENT ON COLUMN hindsight.session.principal IS 'Who logged its first turn: its memories are stored in that name.';
COMMENT ON COLUMN hindsight.session.last_sequence IS 'Of its newest turn.';
COMMENT ON COLUMN hindsight.session.closed_at IS 'When it was said to be over; NULL again when a turn follows.';
COMMENT ON COLUMN hindsight.session.summarised_at IS 'When its summary was made.';
COMMENT ON COLUMN hindsight.session.waiting IS 'Turns that are not distilled yet.';
COMMENT ON COLUMN hindsight.session.due_at IS 'When it is to be distilled; while it is claimed, when the claim ends; NULL: nothing is to be done.';
COMMENT ON COLUMN hindsight.session.claim IS 'Of the worker that is at it.';
COMMENT ON COLUMN hindsight.session.attempts IS 'Claims since it was last distilled.';
COMMENT ON COLUMN hindsight.session.last_error IS 'Why the last attempt failed.';

-- No foreign key to the session: attaching a month would lock the sessions against every writer.
CREATE TABLE hindsight.turn (
  bank_id bigint NOT NULL,
  session_id text NOT NULL,
  sequence integer NOT NULL,
  turn_id text,
  role text NOT NULL,
  content text NOT NULL,
  tool_calls jsonb,
  metadata jsonb DEFAULT '{}' NOT NULL,
  occurred_at timestamptz NOT NULL,
  logged_at timestamptz NOT NULL,
  distilled_at timestamptz,
  PRIMARY KEY (bank_id, session_id, sequence, logged_at)
) PARTITION BY RANGE (logged_at);
CREATE INDEX turn_client_idx ON hindsight.turn (bank_id, session_id, turn_id) WHERE turn_id IS NOT NULL;
CREATE INDEX turn_undistilled_idx ON hindsight.turn (bank_id, session_id, sequence) WHERE distilled_at IS NULL;
COMMENT ON TABLE hindsight.turn IS 'One message of a session, as it was said. The raw layer: audit and source, never recalled. A partition a month.';
COMMENT ON COLUMN hindsight.turn.sequence IS 'Place in the session, from 1.';
COMMENT ON COLUMN hindsight.turn.turn_id IS 'As the application calls it.';
COMMENT ON COLUMN hindsight.turn.role IS 'user, assistant, system, tool, …';
COMMENT ON COLUMN hindsight.turn.tool_calls IS 'Tool calls and their results, as they came.';
COMMENT ON COLUMN hindsight.turn.occurred_at IS 'When it was said.';
COMMENT ON COLUMN hindsight.turn.logged_at IS 'When it was kept: its month (UTC) is its partition.';
COMMENT ON COLUMN hindsight.turn.distilled_at IS 'When its memories were stored, in the same transaction.';

CREATE TABLE hindsight.turn_archive (
  bank_id bigint NOT NULL,
  month date NOT NULL,
  location text NOT NULL,
  turns bigint NOT NULL,
  digest bytea NOT NULL,
  archived_at timestamptz DEFAULT now() NOT NULL,
  PRIMARY KEY (bank_id, month, location),
  CONSTRAINT turn_archive_bank_id_fkey FOREIGN KEY (bank_id) REFERENCES hindsight.bank (bank_id)
);
COMMENT ON TABLE hindsight.turn_archive IS 'Months of turns that were put into files.';
COMMENT ON COLUMN hindsight.turn_archive.month IS 'Its first day.';
COMMENT ON COLUMN hindsight.turn_archive.location IS 'Where the file was put, as whoever archived it said.';
COMMENT ON COLUMN hindsight.turn_archive.digest IS 'SHA-256 of the file.';

CREATE TABLE hindsight.session_archive (
  bank_id bigint NOT NULL,
  session_id text NOT NULL,
  month date NOT NULL,
  sequences integer[] NOT NULL,
  turn_keys bigint[] NOT NULL,
  PRIMARY KEY (bank_id, session_id, month),
  CONSTRAINT session_archive_session_fkey FOREIGN KEY (bank_id, session_id) REFERENCES hindsight.session (bank_id, session_id)
);
COMMENT ON TABLE hindsight.session_archive IS 'Which turns of a session were put into files: one that is logged again is no new one.';
COMMENT ON COLUMN hindsight.session_archive.sequences IS 'Their places in the session, in order.';
COMMENT ON COLUMN hindsight.session_archive.turn_keys IS 'A hash of the turn_id of each, NULL where it had none, in the order of the sequences.';

CREATE TABLE hindsight.working_value (
  bank_id bigint NOT NULL,
  session_id text NOT NULL,
  key text NOT NULL,
  value jsonb NOT NULL,
  expires_at timestamptz NOT NULL,
  PRIMARY KEY (bank_id, session_id, key),
  CONSTRAINT working_value_session_fkey FOREIGN KEY (bank_id, session_id) REFERENCES hindsight.session (bank_id, session_id)
);
CREATE INDEX working_value_expiry_idx ON hindsight.working_value (bank_id, expires_at);
COMMENT ON TABLE hindsight.working_value IS 'A session''s desk: keys and values that expire, and are never recalled.';
COMMENT ON COLUMN hindsight.working_value.expires_at IS 'Not seen from then on.';

CREATE TABLE hindsight.memory (
  bank_id bigint NOT NULL,
  memory_id uuid NOT NULL,
  version integer NOT NULL,
  content text NOT NULL,
  type text NOT NULL,
  tags text[] NOT NULL,
  entities text[] NOT NULL,
  slot text,
  context text,
  session_id text,
  source text,
  confidence double precision NOT NULL,
  importance double precision NOT NULL,
  metadata jsonb NOT NULL,
  language text NOT NULL,
  occurred_at timestamptz,
  created_at timestamptz NOT NULL,
  confirmed_at timestamptz NOT NULL,
  confirmations integer NOT NULL,
  changed_at timestamptz NOT NULL,
  expires_at timestamptz,
  completed_at timestamptz,
  deleted_at timestamptz,
  superseded_by uuid,
  valid_to timestamptz,
  archived_at timestamptz,
  pending_reason text,
  model_id integer,
  embedding halfvec,
  digest bytea GENERATED ALWAYS AS (hindsight.content_digest_v1(content)) STORED NOT NULL,
  document tsvector GENERATED ALWAYS AS (hindsight.document_tsv_v1(language, content, tags, entities, slot, context)) STORED NOT NULL,
  PRIMARY KEY (bank_id, memory_id),
  CONSTRAINT memory_bank_id_fkey FOREIGN KEY (bank_id) REFERENCES hindsight.bank (bank_id),
  CONSTRAINT memory_type_fkey FOREIGN KEY (type) REFERENCES hindsight.memory_type (type),
  CONSTRAINT memory_model_id_fkey FOREIGN KEY (model_id) REFERENCES hindsight.embedding_model (model_id),
  CONSTRAINT memory_session_fkey FOREIGN KEY (bank_id, session_id) REFERENCES hindsight.session (bank_id, session_id),
  CONSTRAINT memory_confidence_check CHECK (confidence BETWEEN 0 AND 1),
  CONSTRAINT memory_importance_check CHECK (importance BETWEEN 0 AND 1),
  CONSTRAINT memory_embedding_check CHECK ((embedding IS NULL) = (model_id IS NULL)),
  CONSTRAINT memory_superseded_by_check CHECK (superseded_by <> memory_id)
);
-- A row stays whole: a search reads its document and its vector, which TOAST would keep elsewhere or compressed.
ALTER TABLE hindsight.memory SET (toast_tuple_target = 8160);
CREATE INDEX memory_words_idx ON hindsight.memory USING gin (bank_id, document) WITH (fastupdate = off) WHERE deleted_at IS NULL AND superseded_by IS NULL AND archived_at IS NULL AND pending_reason IS NULL;
CREATE INDEX memory_said_idx ON hindsight.memory USING gin (bank_id, document) WITH (fastupdate = off) WHERE deleted_at IS NULL AND superseded_by IS NULL AND archived_at IS NULL AND pending_reason IS NULL AND source = 'user';
CREATE INDEX memory_names_idx ON hindsight.memory USING gin (hindsight._names_v1(bank_id, tags, entities, slot)) WITH (fastupdate = off) WHERE deleted_at IS NULL AND superseded_by IS NULL AND archived_at IS NULL AND pending_reason IS NULL AND (slot IS NOT NULL OR tags <> '{}' OR entities <> '{}');
CREATE UNIQUE INDEX memory_slot_key ON hindsight.memory (bank_id, slot) WHERE deleted_at IS NULL AND superseded_by IS NULL AND archived_at IS NULL AND pending_reason IS NULL AND slot IS NOT NULL;
CREATE INDEX memory_session_idx ON hindsight.memory (bank_id, session_id, COALESCE(occurred_at, created_at)) WHERE deleted_at IS NULL AND superseded_by IS NULL AND archived_at IS NULL AND pending_reason IS NULL;
CREATE UNIQUE INDEX memory_content_key ON hindsight.memory (bank_id, digest) WHERE deleted_at IS NULL AND superseded_by IS NULL AND archived_at IS NULL;
CREATE INDEX memory_pending_idx ON hindsight.memory (bank_id, changed_at) WHERE deleted_at IS NULL AND superseded_by IS NULL AND archived_at IS NULL AND pending_reason IS NOT NULL;
CREATE INDEX memory_expiry_idx ON hindsight.memory (bank_id, expires_at) WHERE deleted_at IS NULL AND superseded_by IS NULL AND archived_at IS NULL AND expires_at IS NOT NULL;
CREATE INDEX memory_unembedded_idx ON hindsight.memory (bank_id, created_at) WHERE deleted_at IS NULL AND superseded_by IS NULL AND archived_at IS NULL AND embedding IS NULL;
CREATE INDEX memory_recency_idx ON hindsight.memory (bank_id, confirmed_at) WHERE deleted_at IS NULL AND superseded_by IS NULL AND archived_at IS NULL AND pending_reason IS NULL;
CREATE INDEX memory_gone_content_idx ON hindsight.memory (bank_id, digest) WHERE deleted_at IS NOT NULL OR superseded_by IS NOT NULL;
CREATE INDEX memory_gone_idx ON hindsight.memory (bank_id, changed_at) WHERE deleted_at IS NOT NULL OR superseded_by IS NOT NULL;
CREATE INDEX memory_gone_slot_idx ON hindsight.memory (bank_id, slot) WHERE deleted_at IS NOT NULL AND slot IS NOT NULL;
CREATE INDEX memory_valid_idx ON hindsight.memory (bank_id, slot) WHERE deleted_at IS NULL AND archived_at IS NULL AND valid_to IS NOT NULL;
CREATE INDEX memory_trivial_idx ON hindsight.memory (bank_id, confirmed_at) WHERE deleted_at IS NULL AND superseded_by IS NULL AND archived_at IS NULL AND pending_reason IS NULL AND importance < 0.3;
CREATE INDEX memory_unused_idx ON hindsight.memory (bank_id, confirmed_at) WHERE deleted_at IS NULL AND superseded_by IS NULL AND archived_at IS NULL AND pending_reason IS NULL AND importance >= 0.3 AND importance < 0.5 AND confirmations = 0;
CREATE INDEX memory_changed_idx ON hindsight.memory (bank_id, changed_at);
CREATE INDEX memory_rejected_idx ON hindsight.memory USING gin (bank_id, document) WITH (fastupdate = off) WHERE deleted_at IS NOT NULL AND pending_reason IS NOT NULL;
CREATE INDEX memory_document_idx ON hindsight.memory (bank_id, (metadata ->> 'document')) WHERE metadata ? 'document';
COMMENT ON TABLE hindsight.memory IS 'One distilled sentence that is worth keeping. The layer that recall searches.';
COMMENT ON COLUMN hindsight.memory.version IS '1 when stored, one more at each change.';
COMMENT ON COLUMN hindsight.memory.slot IS 'Key of a thing that has one value at a time.';
COMMENT ON COLUMN hindsight.memory.context IS 'What was said around it; found by, not shown.';
COMMENT ON COLUMN hindsight.memory.source IS 'user, document, tool, inferred; NULL: unknown.';
COMMENT ON COLUMN hindsight.memory.confidence IS 'Belief in it, 0 to 1.';
COMMENT ON COLUMN hindsight.memory.importance IS 'Worth of keeping it, 0 to 1.';
COMMENT ON COLUMN hindsight.memory.metadata IS 'The application''s own data.';
COMMENT ON COLUMN hindsight.memory.language IS 'Text-search configuration, by name: pg_upgrade refuses a regconfig.';
COMMENT ON COLUMN hindsight.memory.occurred_at IS 'When it was said or happened.';
COMMENT ON COLUMN hindsight.memory.created_at IS 'When it was first stored.';
COMMENT ON COLUMN hindsight.memory.confirmed_at IS 'When last confirmed: decay counts from here.';
COMMENT ON COLUMN hindsight.memory.confirmations IS 'How often it was confirmed after it was stored.';
COMMENT ON COLUMN hindsight.memory.changed_at IS 'When this version began.';
COMMENT ON COLUMN hindsight.memory.expires_at IS 'Not live from then on.';
COMMENT ON COLUMN hindsight.memory.completed_at IS 'When a todo was done.';
COMMENT ON COLUMN hindsight.memory.deleted_at IS 'When it was forgotten.';
COMMENT ON COLUMN hindsight.memory.superseded_by IS 'The memory that took its place.';
COMMENT ON COLUMN hindsight.memory.valid_to IS 'Until when it was true, of a value that another has followed: it remains answerable by date.';
COMMENT ON COLUMN hindsight.memory.archived_at IS 'When it was put away, as expired.';
COMMENT ON COLUMN hindsight.memory.pending_reason IS 'Why it is not believed yet.';
COMMENT ON COLUMN hindsight.memory.model_id IS 'Embedding model of the embedding.';
COMMENT ON COLUMN hindsight.memory.embedding IS 'Of the content, normalised; NULL: not yet made.';
COMMENT ON COLUMN hindsight.memory.digest IS 'Same content, same digest.';
COMMENT ON COLUMN hindsight.memory.document IS 'The lexemes it is found by.';

CREATE TABLE hindsight.memory_version (
  bank_id bigint NOT NULL,
  memory_id uuid NOT NULL,
  version integer NOT NULL,
  content text NOT NULL,
  type text NOT NULL,
  tags text[] NOT NULL,
  entities text[] NOT NULL,
  slot text,
  context text,
  session_id text,
  source text,
  confidence double precision NOT NULL,
  importance double precision NOT NULL,
  metadata jsonb NOT NULL,
  language text NOT NULL,
  occurred_at timestamptz,
  created_at timestamptz NOT NULL,
  confirmed_at timestamptz NOT NULL,
  confirmations integer NOT NULL,
  changed_at timestamptz NOT NULL,
  expires_at timestamptz,
  completed_at timestamptz,
  deleted_at timestamptz,
  superseded_by uuid,
  valid_to timestamptz,
  archived_at timestamptz,
  pending_reason text,
  model_id integer,
  embedding halfvec,
  digest bytea NOT NULL,
  document tsvector NOT NULL,
  believed_until timestamptz NOT NULL,
  PRIMARY KEY (bank_id, memory_id, version),
  CONSTRAINT memory_version_memory_fkey FOREIGN KEY (bank_id, memory_id) REFERENCES hindsight.memory (bank_id, memory_id)
);
CREATE INDEX memory_version_changed_idx ON hindsight.memory_version (bank_id, changed_at);
CREATE INDEX memory_version_content_idx ON hindsight.memory_version (bank_id, digest);
CREATE INDEX memory_version_expiry_idx ON hindsight.memory_version (bank_id, expires_at) WHERE deleted_at IS NULL AND superseded_by IS NULL AND archived_at IS NULL AND expires_at IS NOT NULL;
COMMENT ON TABLE hindsight.memory_version IS 'What memories were before they changed: the past that recall(as_of) answers from.';
COMMENT ON COLUMN hindsight.memory_version.slot IS 'Key of a thing that has one value at a time.';
COMMENT ON COLUMN hindsight.memory_version.context IS 'What was said around it; found by, not shown.';
COMMENT ON COLUMN hindsight.memory_version.source IS 'user, document, tool, inferred; NULL: unknown.';
COMMENT ON COLUMN hindsight.memory_version.confidence IS 'Belief in it, 0 to 1.';
COMMENT ON COLUMN hindsight.memory_version.importance IS 'Worth of keeping it, 0 to 1.';
COMMENT ON COLUMN hindsight.memory_version.metadata IS 'The application''s own data.';
COMMENT ON COLUMN hindsight.memory_version.language IS 'Text-search configuration, by name: pg_upgrade refuses a regconfig.';
COMMENT ON COLUMN hindsight.memory_version.occurred_at IS 'When it was said or happened.';
COMMENT ON COLUMN hindsight.memory_version.created_at IS 'When it was first stored.';
COMMENT ON COLUMN hindsight.memory_version.confirmed_at IS 'When last confirmed: decay counts from here.';
COMMENT ON COLUMN hindsight.memory_version.confirmations IS 'How often it was confirmed after it was stored.';
COMMENT ON COLUMN hindsight.memory_version.changed_at IS 'When this version began.';
COMMENT ON COLUMN hindsight.memory_version.expires_at IS 'Not live from then on.';
COMMENT ON COLUMN hindsight.memory_version.completed_at IS 'When a todo was done.';
COMMENT ON COLUMN hindsight.memory_version.deleted_at IS 'When it was forgotten.';
COMMENT ON COLUMN hindsight.memory_version.superseded_by IS 'The memory that took its place.';
COMMENT ON COLUMN hindsight.memory_version.valid_to IS 'Until when it was true, of a value that another has followed.';
COMMENT ON COLUMN hindsight.memory_version.archived_at IS 'When it was put away, as expired.';
COMMENT ON COLUMN hindsight.memory_version.pending_reason IS 'Why it is not believed yet.';
COMMENT ON COLUMN hindsight.memory_version.model_id IS 'Embedding model of the embedding.';
COMMENT ON COLUMN hindsight.memory_version.embedding IS 'Of the content, normalised; NULL: not yet made.';
COMMENT ON COLUMN hindsight.memory_version.believed_until IS 'When the next version began.';

CREATE TABLE hindsight.next_embedding ( -- no foreign keys: their locks would be written into every memory of a bank that changes its model
  bank_id bigint NOT NULL,
  memory_id uuid NOT NULL,
  model_id integer NOT NULL,
  digest bytea NOT NULL,
  embedding halfvec,
  attempts integer DEFAULT 0 NOT NULL,
  not_before timestamptz DEFAULT now() NOT NULL,
  is_claimed boolean DEFAULT false NOT NULL,
  last_error text,
  PRIMARY KEY (bank_id, memory_id, model_id)
);
-- A row stays whole, as in memory.
ALTER TABLE hindsight.next_embedding SET (toast_tuple_target = 8160);
CREATE INDEX next_embedding_waiting_idx ON hindsight.next_embedding (bank_id, model_id, not_before) WHERE embedding IS NULL;
COMMENT ON TABLE hindsight.next_embedding IS 'Embeddings on their way: claimed, refused, and, while a bank changes its model, those that are made already.';
COMMENT ON COLUMN hindsight.next_embedding.model_id IS 'Whose embedding it is.';
COMMENT ON COLUMN hindsight.next_embedding.digest IS 'Of the content that it is of: once the memory has another, it counts no more.';
COMMENT ON COLUMN hindsight.next_embedding.embedding IS 'Of the content, normalised; NULL: not yet made.';
COMMENT ON COLUMN hindsight.next_embedding.attempts IS 'How often it failed.';
COMMENT ON COLUMN hindsight.next_embedding.not_before IS 'Nobody takes it until then: somebody has claimed it, or it failed.';
COMMENT ON COLUMN hindsight.next_embedding.is_claimed IS 'Somebody is at it.';
COMMENT ON COLUMN hindsight.next_embedding.last_error IS 'Why it failed.';

CREATE TABLE hindsight.link (
  bank_id bigint NOT NULL,
  link_id bigint GENERATED ALWAYS AS IDENTITY,
  from_id uuid NOT NULL,
  to_id uuid NOT NULL,
  relation text NOT NULL,
  weight double precision NOT NULL,
  is_automatic boolean DEFAULT false NOT NULL,
  created_at timestamptz DEFAULT clock_timestamp() NOT NULL,
  removed_at timestamptz,
  PRIMARY KEY (bank_id, link_id),
  CONSTRAINT link_from_fkey FOREIGN KEY (bank_id, from_id) REFERENCES hindsight.memory (bank_id, memory_id),
  CONSTRAINT link_to_fkey FOREIGN KEY (bank_id, to_id) REFERENCES hindsight.memory (bank_id, memory_id),
  CONSTRAINT link_weight_check CHECK (weight BETWEEN 0 AND 1)
);
CREATE UNIQUE INDEX link_key ON hindsight.link (bank_id, from_id, to_id, relation) WHERE removed_at IS NULL;
CREATE INDEX link_from_idx ON hindsight.link (bank_id, from_id, weight);
CREATE INDEX link_to_idx ON hindsight.link (bank_id, to_id, weight);
COMMENT ON TABLE hindsight.link IS 'Typed, weighted, directed edges between memories: the association layer.';
COMMENT ON COLUMN hindsight.link.relation IS 'related, causes, solves, part_of, contradicts, evolved_into, derived_from, or a user''s own; same_entity and similar of automatic ones.';
COMMENT ON COLUMN hindsight.link.weight IS 'Strength, 0 to 1.';
COMMENT ON COLUMN hindsight.link.is_automatic IS 'Made by maintain, which takes it away when there are better ones; what somebody linked stays.';
COMMENT ON COLUMN hindsight.link.removed_at IS 'When it was taken away; NULL: it holds.';

CREATE TABLE hindsight.entity (
  bank_id bigint NOT NULL,
  key text NOT NULL,
  name text NOT NULL,
  kind text NOT NULL,
  memories integer NOT NULL,
  PRIMARY KEY (bank_id, key),
  CONSTRAINT entity_bank_id_fkey FOREIGN KEY (bank_id) REFERENCES hindsight.bank (bank_id)
);
CREATE INDEX entity_memories_idx ON hindsight.entity (bank_id, memories);
COMMENT ON TABLE hindsight.entity IS 'What the live memories of a bank name, as maintain counted it last.';
COMMENT ON COLUMN hindsight.entity.key IS 'The name, whatever its case and width.';
COMMENT ON COLUMN hindsight.entity.name IS 'As most memories spell it.';
COMMENT ON COLUMN hindsight.entity.kind IS 'name, identifier, quantity or term.';
COMMENT ON COLUMN hindsight.entity.memories IS 'How many live memories name it so; those that name it by an alias count there.';

CREATE TABLE hindsight.entity_alias (
  bank_id bigint NOT NULL,
  memory_id uuid NOT NULL,
  key text NOT NULL,
  other_key text NOT NULL,
  other_name text NOT NULL,
  PRIMARY KEY (bank_id, memory_id, key, other_key),
  CONSTRAINT entity_alias_memory_fkey FOREIGN KEY (bank_id, memory_id) REFERENCES hindsight.memory (bank_id, memory_id)
);
CREATE INDEX entity_alias_key_idx ON hindsight.entity_alias (bank_id, key);
COMMENT ON TABLE hindsight.entity_alias IS 'Names that memories say are of one thing, either way; they count as long as the memory is live.';
COMMENT ON COLUMN hindsight.entity_alias.memory_id IS 'The memory that says so.';
COMMENT ON COLUMN hindsight.entity_alias.key IS 'A name, whatever its case and width.';
COMMENT ON COLUMN hindsight.entity_alias.other_key IS 'The other name, whatever its case and width.';
COMMENT ON COLUMN hindsight.entity_alias.other_name IS 'The other name, as the memory spells it.';

CREATE TABLE hindsight.event (
  bank_id bigint NOT NULL,
  event_id bigint GENERATED ALWAYS AS IDENTITY,
  at timestamptz DEFAULT clock_timestamp() NOT NULL,
  principal text NOT NULL,
  action text NOT NULL,
  memory_id uuid,
  reason text,
  before jsonb,
  after jsonb,
  request_id text,
  salt bytea,
  digest bytea NOT NULL,
  PRIMARY KEY (bank_id, event_id),
  CONSTRAINT event_bank_id_fkey FOREIGN KEY (bank_id) REFERENCES hindsight.bank (bank_id)
);
CREATE INDEX event_memory_idx ON hindsight.event (bank_id, memory_id, event_id);
CREATE INDEX event_held_idx ON hindsight.event (bank_id, memory_id) WHERE after ? 'pending_reason';
CREATE INDEX event_redacted_idx ON hindsight.event (bank_id, at) WHERE action = 'redacted';
COMMENT ON TABLE hindsight.event IS 'The append-only audit trail: who did what to which memory, when, why, before and after.';
COMMENT ON COLUMN hindsight.event.principal IS 'Who did it.';
COMMENT ON COLUMN hindsight.event.action IS 'The function, or what it came to: stored, merged, …';
COMMENT ON COLUMN hindsight.event.before IS 'The values that changed, as they were.';
COMMENT ON COLUMN hindsight.event.after IS 'The values that changed, as they became.';
COMMENT ON COLUMN hindsight.event.request_id IS 'Of the request that a service did it for.';
COMMENT ON COLUMN hindsight.event.salt IS 'Random; goes with the content when that is erased, so that nobody can guess it from the digest.';
COMMENT ON COLUMN hindsight.event.digest IS 'Of salt, reason, before and after: what remains of them when they are erased.';

CREATE TABLE hindsight.event_seal (
  bank_id bigint NOT NULL,
  seal_id integer NOT NULL,
  last_event bigint NOT NULL,
  events integer,
  digest bytea,
  settles_at xid8 NOT NULL,
  sealed_at timestamptz,
  PRIMARY KEY (bank_id, seal_id),
  CONSTRAINT event_seal_check CHECK ((digest IS NULL) = (sealed_at IS NULL) AND (digest IS NULL) = (events IS NULL)),
  CONSTRAINT event_seal_bank_id_fkey FOREIGN KEY (bank_id) REFERENCES hindsight.bank (bank_id)
);
COMMENT ON TABLE hindsight.event_seal IS 'Seals of the event trail: each holds the digest of its events and of the seal before.';
COMMENT ON COLUMN hindsight.event_seal.seal_id IS 'From 1, without gaps, in each bank.';
COMMENT ON COLUMN hindsight.event_seal.last_event IS 'It seals the events after those of the seal before, up to this one.';
COMMENT ON COLUMN hindsight.event_seal.events IS 'How many events it seals; NULL until it is closed.';
COMMENT ON COLUMN hindsight.event_seal.digest IS 'NULL until it is closed.';
COMMENT ON COLUMN hindsight.event_seal.settles_at IS 'When every transaction before this one has ended, no event up to last_event can come any more.';

CREATE TABLE hindsight.memory_use (
  bank_id bigint NOT NULL,
  memory_id uuid NOT NULL,
  recalls integer DEFAULT 1 NOT NULL,
  first_at timestamptz DEFAULT now() NOT NULL,
  last_at timestamptz DEFAULT now() NOT NULL,
  PRIMARY KEY (bank_id, memory_id),
  CONSTRAINT memory_use_memory_fkey FOREIGN KEY (bank_id, memory_id) REFERENCES hindsight.memory (bank_id, memory_id)
);
CREATE INDEX memory_use_first_idx ON hindsight.memory_use (bank_id, first_at);
COMMENT ON TABLE hindsight.memory_use IS 'How often memories were recalled, as far as whoever recalled them said so (note_recall).';

CREATE TABLE hindsight.memory_turn (
  bank_id bigint NOT NULL,
  memory_id uuid NOT NULL,
  session_id text NOT NULL,
  sequence integer NOT NULL,
  PRIMARY KEY (bank_id, memory_id, session_id, sequence),
  CONSTRAINT memory_turn_memory_fkey FOREIGN KEY (bank_id, memory_id) REFERENCES hindsight.memory (bank_id, memory_id)
);
COMMENT ON TABLE hindsight.memory_turn IS 'The turns that memories were distilled from. A turn may be archived.';

CREATE TABLE hindsight.word_statistics (
  bank_id bigint NOT NULL,
  word text COLLATE "C" NOT NULL,
  documents integer NOT NULL,
  PRIMARY KEY (bank_id, word),
  CONSTRAINT word_statistics_bank_id_fkey FOREIGN KEY (bank_id) REFERENCES hindsight.bank (bank_id)
);
COMMENT ON TABLE hindsight.word_statistics IS 'Document frequencies of a large bank''s words, refreshed by maintain; small banks are counted.';
COMMENT ON COLUMN hindsight.word_statistics.documents IS 'Live memories that hold the word.';

CREATE TABLE hindsight.model_usage (
  bank_id bigint NOT NULL,
  day date NOT NULL,
  purpose text NOT NULL,
  model text NOT NULL,
  calls bigint NOT NULL,
  prompt_tokens bigint NOT NULL,
  completion_tokens bigint NOT NULL,
  failures bigint NOT NULL,
  PRIMARY KEY (bank_id, day, purpose, model),
  CONSTRAINT model_usage_bank_id_fkey FOREIGN KEY (bank_id) REFERENCES hindsight.bank (bank_id)
);
COMMENT ON TABLE hindsight.model_usage IS 'What language models have used for a bank, by day, purpose and model.';
COMMENT ON COLUMN hindsight.model_usage.day IS 'In UTC.';
COMMENT ON COLUMN hindsight.model_usage.purpose IS 'distil, judge, or a user''s own.';
COMMENT ON COLUMN hindsight.model_usage.failures IS 'How many of the calls failed.';

CREATE UNLOGGED TABLE hindsight.query_embedding (
  principal text NOT NULL,
  model_id integer NOT NULL, -- no foreign key: its lock on the model's row would be logged, and waited for, at each commit
  digest bytea NOT NULL,
  embedding vector NOT NULL,
  expires_at timestamptz NOT NULL,
  PRIMARY KEY (principal, model_id, digest)
);
CREATE INDEX query_embedding_expiry_idx ON hindsight.query_embedding (expires_at);
COMMENT ON TABLE hindsight.query_embedding IS 'Embeddings of queries that were asked a moment ago: a cache, which may be lost at any time.';
COMMENT ON COLUMN hindsight.query_embedding.principal IS 'Who asked, and is alone answered by it.';
COMMENT ON COLUMN hindsight.query_embedding.digest IS 'SHA-256 of the query, whose text is not kept.';
COMMENT ON COLUMN hindsight.query_embedding.expires_at IS 'Not used from then on.';

-- What the functions of the same subject return: rows with names, so that a column may be called as a parameter is.
CREATE TYPE hindsight.recalled AS (
  memory_id uuid, content text, type text, score double precision, similarity double precision,
  semantic double precision, lexical double precision, activation double precision, confidence double precision, decay double precision,
  weight double precision, channels text[], tags text[], entities text[], slot text, session_id text, source text,
  metadata jsonb, occurred_at timestamptz, created_at timestamptz, confirmed_at timestamptz, completed_at timestamptz,
  valid_to timestamptz, pending_reason text, linked_from uuid, relation text, path uuid[], disputed_by uuid[], bank text
);
COMMENT ON TYPE hindsight.recalled IS 'A memory that recall found, with the parts and channels that made its score.';
CREATE TYPE hindsight._filter AS (
  types text[], tags text[], all_tags text[], no_tags text[], since timestamptz, until timestamptz, session_id text,
  source text, entities text[], min_confidence double precision, metadata jsonb, predicate jsonpath
);
COMMENT ON TYPE hindsight._filter IS 'The filters of recall; NULL lets everything pass.';
CREATE TYPE hindsight._moment AS (
  at timestamptz, as_of timestamptz, valid_at timestamptz, include_pending boolean
);
COMMENT ON TYPE hindsight._moment IS 'From where a bank is looked at: expiry and age count at the moment at; as_of: what was believed then; valid_at: what was true then.';
CREATE TYPE hindsight._edge AS (
  parent_id uuid, child_id uuid, weight double precision, relation text
);
COMMENT ON TYPE hindsight._edge IS 'What recall follows from one memory to another; relation is same_session for neighbours in a session.';
CREATE TYPE hindsight._against AS (
  reason text, other_id uuid, repeated uuid[]
);
COMMENT ON TYPE hindsight._against IS 'Why a new memory is not believed: the reason, what of the bank is against it, and what is held with it.';
CREATE TYPE hindsight.neighbour AS (
  memory_id uuid, direction text, relation text, weight double precision, content text, type text, linked_at timestamptz,
  is_automatic boolean
);
COMMENT ON TYPE hindsight.neighbour IS 'A memory that another is linked with; direction is to (the link goes to it), or from.';
CREATE TYPE hindsight.memory_record AS (
  memory_id uuid, content text, type text, state text, tags text[], entities text[], slot text, context text,
  session_id text, source text, confidence double precision, importance double precision, metadata jsonb,
  occurred_at timestamptz, created_at timestamptz, confirmed_at timestamptz, confirmations integer,
  changed_at timestamptz, expires_at timestamptz, completed_at timestamptz, superseded_by uuid, valid_to timestamptz,
  pending_reason text, version integer, embedded boolean
);
COMMENT ON TYPE hindsight.memory_record IS 'A memory as get and state show it; state is live, pending, expired, archived, superseded or (state) deleted.';
CREATE TYPE hindsight.forgotten AS (
  memory_id uuid, outcome text
);
COMMENT ON TYPE hindsight.forgotten IS 'What forget did: outcome is forgotten, or already forgotten.';
CREATE TYPE hindsight.insight AS (
  memory_id uuid, outcome text, content text, derived_from uuid[], reasons text[]
);
COMMENT ON TYPE hindsight.insight IS 'What became of an insight, and the memories that it stands on.';
CREATE TYPE hindsight.matched AS (
  memory_id uuid, outcome text, type text, content text, tags text[], session_id text, source text, occurred_at timestamptz,
  created_at timestamptz
);
COMMENT ON TYPE hindsight.matched IS 'A memory that forget_matching found: outcome is forgotten, or would be forgotten.';
CREATE TYPE hindsight.extracted AS (
  content text, type text, confidence double precision, importance double precision, slot text, source text, is_correction boolean
);
COMMENT ON TYPE hindsight.extracted IS 'What extract found worth keeping in a turn: a memory that is not stored yet; is_correction: it puts right what was said before.';

INSERT INTO hindsight.memory_type (type, decay_rate, weight, ttl, on_conflict, description) VALUES
  ('fact', NULL, 1, '0', 'confident', 'What was stated: an environment, a result, a property of something.'),
  ('preference', NULL, 1, '0', 'overwrite', 'What somebody likes to have done, and how.'),
  ('decision', NULL, 1, '0', 'history', 'What was decided, and holds until it is decided anew.'),
  ('todo', 0.099, 1, '30 days', 'overwrite', 'What is still to be done: weighs half after a week, and is gone after a month.'),
  ('temporary', NULL, 1, '7 days', 'overwrite', 'What holds for the time being: a passing state.'),
  ('hypothesis', NULL, 0.5, '0', 'confident', 'What was inferred, not said.'),
  ('summary', NULL, 1, '0', 'overwrite', 'What a session came to.'),
  ('knowledge', 0, 1, '0', 'history', 'Stable knowledge of a domain: does not fade.'),
  ('lesson', 0, 1, '0', 'confident', 'What a bad memory taught: does not fade.');
