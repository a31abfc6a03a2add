-- Version 8: operators and the audit log.

CREATE TABLE operator (
  -- Never used twice, so that the audit log stays unambiguous.
  name TEXT PRIMARY KEY,
  role TEXT NOT NULL CHECK (role IN ('viewer', 'manager')),
  -- The hash of the token.
  token BLOB NOT NULL UNIQUE,
  created_at INTEGER NOT NULL,
  revoked_at INTEGER
) STRICT, WITHOUT ROWID;

-- What operators did, written before each action. Append-only. The ids are the order of writing.
CREATE TABLE audit_entry (
  id INTEGER PRIMARY KEY,
  at INTEGER NOT NULL,
  -- `operator:NAME` or `command_line:USER`.
  actor TEXT NOT NULL,
  action TEXT NOT NULL,
  subject TEXT NOT NULL,
  reason TEXT NOT NULL,
  -- What was asked for, as JSON. Never a secret.
  request TEXT NOT NULL,
  -- What the subject was, as JSON.
  before TEXT
) STRICT;

CREATE INDEX audit_entry_subject ON audit_entry (subject, id);

-- How an action ended. Append-only. No row if the program stopped in between: the action may or may not have been taken.
CREATE TABLE audit_outcome (
  entry INTEGER PRIMARY KEY REFERENCES audit_entry (id),
  at INTEGER NOT NULL,
  result TEXT NOT NULL CHECK (result IN ('done', 'refused', 'unknown')),
  detail TEXT NOT NULL,
  -- What the subject was afterwards, as JSON.
  after TEXT
) STRICT;

CREATE TRIGGER audit_entry_update BEFORE UPDATE ON audit_entry
  BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
CREATE TRIGGER audit_entry_delete BEFORE DELETE ON audit_entry
  BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
CREATE TRIGGER audit_outcome_update BEFORE UPDATE ON audit_outcome
  BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
CREATE TRIGGER audit_outcome_delete BEFORE DELETE ON audit_outcome
  BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;

-- `INSERT OR REPLACE` deletes rows without their triggers.
CREATE TRIGGER audit_entry_replace BEFORE INSERT ON audit_entry
  WHEN EXISTS (SELECT 1 FROM audit_entry WHERE id = NEW.id)
  BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
CREATE TRIGGER audit_outcome_replace BEFORE INSERT ON audit_outcome
  WHEN EXISTS (SELECT 1 FROM audit_outcome WHERE entry = NEW.entry)
  BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
