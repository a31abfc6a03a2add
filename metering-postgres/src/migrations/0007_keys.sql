-- Version 7: many keys per account, each with its own terms. A key is not its secret: the secret is what callers send.

-- Secrets, as hashes. A secret never changes its key, and is never used again.
ALTER TABLE api_key RENAME TO key_secret;
ALTER INDEX api_key_pkey RENAME TO key_secret_pkey;
DROP INDEX api_key_live;
ALTER TABLE key_secret ADD COLUMN key BIGINT NOT NULL DEFAULT 0;
ALTER TABLE key_secret ALTER COLUMN key DROP DEFAULT;
-- When a secret that was replaced stops working.
ALTER TABLE key_secret ADD COLUMN expires_at BIGINT;

CREATE TABLE api_key (
  account BIGINT NOT NULL REFERENCES account (id),
  -- Within the account; never reused. 0 is the account's first key.
  number BIGINT NOT NULL CHECK (number >= 0),
  id TEXT NOT NULL UNIQUE,
  -- The key that made it. It never changes.
  parent BIGINT CHECK (parent < number),
  name TEXT NOT NULL,
  -- Separated by spaces.
  scopes TEXT NOT NULL,
  -- A line each.
  routes TEXT NOT NULL,
  -- Separated by spaces.
  networks TEXT NOT NULL,
  expires_at BIGINT,
  disabled BOOLEAN NOT NULL,
  requests_per_minute BIGINT NOT NULL,
  requests_per_day BIGINT NOT NULL,
  max_in_flight BIGINT NOT NULL,
  -- In atoms.
  budget BIGINT,
  budget_reset TEXT CHECK (budget_reset IS NULL OR budget IS NOT NULL),
  created_at BIGINT NOT NULL,
  leaked_at BIGINT,
  revoked_at BIGINT,
  PRIMARY KEY (account, number),
  FOREIGN KEY (account, parent) REFERENCES api_key (account, number),
  CHECK ((parent IS NULL) = (number = 0))
);

-- The first key of every account. Twenty random digits: those of a UUID, without the ones that are fixed.
INSERT INTO api_key (account, number, id, name, scopes, routes, networks, disabled, requests_per_minute,
    requests_per_day, max_in_flight, created_at)
  SELECT id, 0, 'key_' || substr(digits, 1, 12) || substr(digits, 18, 8), 'First key', 'call read manage topup', '', '',
    FALSE, 0, 0, 0, created_at
  FROM (SELECT id, created_at, replace(gen_random_uuid()::TEXT, '-', '') AS digits FROM account) a;

ALTER TABLE key_secret ADD FOREIGN KEY (account, key) REFERENCES api_key (account, number);
CREATE INDEX key_secret_key ON key_secret (account, key);

-- What was requested and spent with a key that has rate limits or a budget, and with the keys below it. Written only
-- under the lock of the account's `meter`. Room on each page, so that an update stays on its page.
CREATE TABLE key_meter (
  account BIGINT NOT NULL,
  key BIGINT NOT NULL,
  -- The first day of the budget's period, in days since the Unix epoch.
  spent_since BIGINT NOT NULL,
  spent BIGINT NOT NULL,
  minute BIGINT NOT NULL,
  minute_count BIGINT NOT NULL,
  day BIGINT NOT NULL,
  day_count BIGINT NOT NULL,
  PRIMARY KEY (account, key),
  FOREIGN KEY (account, key) REFERENCES api_key (account, number)
) WITH (fillfactor = 50);

-- Random, and drawn anew by every write that changes the account's keys, their terms or their secrets, or revokes it:
-- what a node read of them holds as long as this is the same. It takes the place of the live key. Not a counter, because
-- a failover that loses commits could give out the same value again. Bytes and not a number, because a number would be
-- aligned, and the end of the row, which holds the tail, would move and be logged again with each charge.
ALTER TABLE meter DROP COLUMN key;
ALTER TABLE meter ADD COLUMN access BYTEA NOT NULL DEFAULT decode('00000000000000000000000000000000', 'hex');
ALTER TABLE meter ALTER COLUMN access SET DEFAULT decode(replace(gen_random_uuid()::TEXT, '-', ''), 'hex');

-- Usage is counted by key. All usage so far is that of the first key.
ALTER TABLE usage_daily ADD COLUMN key BIGINT NOT NULL DEFAULT 0;
ALTER TABLE usage_daily ALTER COLUMN key DROP DEFAULT;
ALTER TABLE usage_daily DROP CONSTRAINT usage_daily_pkey;
ALTER TABLE usage_daily ADD PRIMARY KEY (account, day, line, key);
