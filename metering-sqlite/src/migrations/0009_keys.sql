-- Version 9: many keys per account. A key is a row of `api_key`; its secrets, of which a rotation makes a new one, are
-- rows of `key_secret`.

DROP INDEX api_key_live;
ALTER TABLE api_key RENAME TO key_secret;
-- The number of the key within the account. All secrets so far belong to the account's first key.
ALTER TABLE key_secret ADD COLUMN key INTEGER NOT NULL DEFAULT 0;
-- When it stops working, if it was replaced with a grace period.
ALTER TABLE key_secret ADD COLUMN expires_at INTEGER;

CREATE INDEX key_secret_live ON key_secret (account, key) WHERE revoked_at IS NULL;

CREATE TABLE api_key (
  account INTEGER NOT NULL REFERENCES account (id),
  -- 0 for the key that the account was created with. Never used twice.
  number INTEGER NOT NULL,
  public_id TEXT NOT NULL UNIQUE,
  -- The number of the key that made it.
  parent INTEGER,
  name TEXT NOT NULL,
  -- Separated by spaces, and so are networks; routes are a line each. No routes or networks means all.
  scopes TEXT NOT NULL,
  routes TEXT NOT NULL,
  networks TEXT NOT NULL,
  expires_at INTEGER,
  disabled INTEGER NOT NULL CHECK (disabled IN (0, 1)),
  requests_per_minute INTEGER NOT NULL,
  requests_per_day INTEGER NOT NULL,
  max_in_flight INTEGER NOT NULL,
  -- In atoms.
  budget_limit INTEGER,
  budget_reset TEXT CHECK (budget_reset IS NULL OR budget_limit IS NOT NULL),
  created_at INTEGER NOT NULL,
  leaked_at INTEGER,
  revoked_at INTEGER,
  PRIMARY KEY (account, number),
  FOREIGN KEY (account, parent) REFERENCES api_key (account, number),
  CHECK ((parent IS NULL) = (number = 0))
) STRICT, WITHOUT ROWID;

INSERT INTO api_key (account, number, public_id, name, scopes, routes, networks, disabled, requests_per_minute,
    requests_per_day, max_in_flight, created_at)
  SELECT id, 0, 'key_' || lower(hex(randomblob(10))), 'First key', 'call read manage topup', '', '', 0, 0, 0, 0,
    created_at
  FROM account ORDER BY id;

-- What counts against the terms of a key: only for keys with a budget or rate limits. Written by the commit that charges,
-- not through the journal.
CREATE TABLE key_meter (
  account INTEGER NOT NULL,
  key INTEGER NOT NULL,
  -- The first day of the budget's period, and the atoms spent in it.
  spent_since INTEGER NOT NULL,
  spent INTEGER NOT NULL,
  minute INTEGER NOT NULL,
  minute_count INTEGER NOT NULL,
  day INTEGER NOT NULL,
  day_count INTEGER NOT NULL,
  PRIMARY KEY (account, key),
  FOREIGN KEY (account, key) REFERENCES api_key (account, number)
) STRICT, WITHOUT ROWID;

-- Daily totals by key. All usage so far is of first keys. The rows are copied in the order of both tables, so each is
-- appended.
CREATE TABLE usage_by_key (
  day INTEGER NOT NULL,
  account INTEGER NOT NULL,
  line INTEGER NOT NULL,
  key INTEGER NOT NULL,
  calls INTEGER NOT NULL,
  amount INTEGER NOT NULL,
  PRIMARY KEY (day, account, line, key)
) STRICT, WITHOUT ROWID;

INSERT INTO usage_by_key (day, account, line, key, calls, amount)
  SELECT day, account, line, 0, calls, amount FROM usage_daily ORDER BY day, account, line;

DROP TABLE usage_daily;
ALTER TABLE usage_by_key RENAME TO usage_daily;
