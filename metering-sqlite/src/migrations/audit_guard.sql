-- The audit log changes only while `audit_exception` has a row.
DROP TRIGGER audit_entry_update;
DROP TRIGGER audit_entry_delete;
DROP TRIGGER audit_outcome_update;
DROP TRIGGER audit_outcome_delete;
CREATE TRIGGER audit_entry_update BEFORE UPDATE ON audit_entry WHEN NOT EXISTS (SELECT 1 FROM audit_exception)
  BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
CREATE TRIGGER audit_entry_delete BEFORE DELETE ON audit_entry WHEN NOT EXISTS (SELECT 1 FROM audit_exception)
  BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
CREATE TRIGGER audit_outcome_update BEFORE UPDATE ON audit_outcome WHEN NOT EXISTS (SELECT 1 FROM audit_exception)
  BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
CREATE TRIGGER audit_outcome_delete BEFORE DELETE ON audit_outcome WHEN NOT EXISTS (SELECT 1 FROM audit_exception)
  BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
