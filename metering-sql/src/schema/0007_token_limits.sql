-- Version 25 on SQLite, 23 on PostgreSQL: limits on tokens per minute.

-- 0 means no limit.
ALTER TABLE meter ADD COLUMN tokens_per_minute {integer} NOT NULL DEFAULT 0;
ALTER TABLE api_key ADD COLUMN tokens_per_minute {integer} NOT NULL DEFAULT 0;

-- The tokens that count for a hold, the minute, and who had a limit on them; NULL if nobody had.
ALTER TABLE hold ADD COLUMN tokens TEXT;

-- The tokens of the newest minute, of an account (key -1) or of a key that has, or had, a limit. The commit that opens or
-- settles a hold writes its row; PostgreSQL under the lock of the account's meter. A program of an earlier version ignores
-- these limits.
CREATE TABLE token_window (
  account {integer} NOT NULL,
  key {integer} NOT NULL,
  -- Minutes since the Unix epoch.
  minute {integer} NOT NULL,
  tokens {integer} NOT NULL CHECK (tokens BETWEEN 0 AND 4294967295),
  PRIMARY KEY (account, key)
){keyed};
