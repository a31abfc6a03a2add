-- Version 6: operators and the audit log.

CREATE TABLE operator (
  -- Never used twice, so that the audit log stays unambiguous.
  name TEXT PRIMARY KEY,
  role TEXT NOT NULL CHECK (role IN ('viewer', 'manager')),
  -- The hash of the token.
  token BYTEA NOT NULL UNIQUE,
  created_at BIGINT NOT NULL,
  revoked_at BIGINT
);

-- What operators did, written before each action. Append-only. The ids come from `turn`, so they are the order of
-- writing on all nodes.
CREATE TABLE audit_entry (
  id BIGINT PRIMARY KEY,
  at BIGINT NOT NULL,
  -- `operator:NAME` or `command_line:USER`.
  actor TEXT NOT NULL,
  action TEXT NOT NULL,
  subject TEXT NOT NULL,
  reason TEXT NOT NULL,
  -- What was asked for, as JSON. Never a secret.
  request TEXT NOT NULL,
  -- What the subject was, as JSON.
  before TEXT
);

CREATE INDEX audit_entry_subject ON audit_entry (subject, id);

-- How an action ended. Append-only. No row if the program stopped in between: the action may or may not have been taken.
CREATE TABLE audit_outcome (
  entry BIGINT PRIMARY KEY REFERENCES audit_entry (id),
  at BIGINT NOT NULL,
  result TEXT NOT NULL CHECK (result IN ('done', 'refused', 'unknown')),
  detail TEXT NOT NULL,
  -- What the subject was afterwards, as JSON.
  after TEXT
);

-- TRUNCATE stays possible: a move of a store that was interrupted clears the tables before it begins again.
CREATE FUNCTION refuse_audit_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'the audit log is append-only';
END $$;

CREATE TRIGGER audit_entry_append_only BEFORE UPDATE OR DELETE ON audit_entry
  FOR EACH ROW EXECUTE FUNCTION refuse_audit_change();
CREATE TRIGGER audit_outcome_append_only BEFORE UPDATE OR DELETE ON audit_outcome
  FOR EACH ROW EXECUTE FUNCTION refuse_audit_change();
