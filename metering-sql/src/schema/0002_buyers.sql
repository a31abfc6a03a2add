-- Version 20 on SQLite, 18 on PostgreSQL: who buys, for receipts.

-- The details that the purchases of an account have from `since` until `until`, in milliseconds.
-- NULL for until they are changed. Those of one account never overlap.
CREATE TABLE buyer (
  account {integer} NOT NULL REFERENCES account (id),
  since {integer} NOT NULL,
  until {integer} CHECK (until > since),
  name TEXT NOT NULL,
  -- Separated by line breaks.
  address TEXT NOT NULL,
  tax_id TEXT,
  PRIMARY KEY (account, since)
){keyed};
