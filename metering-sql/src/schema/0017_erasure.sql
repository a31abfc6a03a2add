-- Accounts of which everything about their owners is erased.
ALTER TABLE account ADD COLUMN erased_at {integer} CHECK (erased_at IS NULL OR revoked_at IS NOT NULL);

-- An account's wallets are listed, and erased.
CREATE INDEX wallet_link_account ON wallet_link (account);

-- Has a row only inside a transaction that erases or deletes entries of the audit log. Without one, triggers refuse that.
CREATE TABLE audit_exception (
  id {integer} NOT NULL PRIMARY KEY CHECK (id = 1)
){keyed};

{audit_guard}
