-- Hot and cold apart: a charge touches `meter`, `usage_daily` and the tail of `activity`, and nothing else. Their rows
-- are narrow and ordered so that a batch over many accounts lands on few pages, since pages are what a commit costs.

CREATE TABLE account (
  id INTEGER PRIMARY KEY,
  org_id TEXT NOT NULL UNIQUE,
  agent_name TEXT NOT NULL,
  email TEXT,
  email_folded TEXT,
  payer_address BLOB,
  created_at INTEGER NOT NULL,
  revoked_at INTEGER
) STRICT;

CREATE UNIQUE INDEX account_live_email ON account (email_folded)
  WHERE email_folded IS NOT NULL AND revoked_at IS NULL;

CREATE TABLE api_key (
  hash BLOB PRIMARY KEY,
  account INTEGER NOT NULL REFERENCES account (id),
  created_at INTEGER NOT NULL,
  revoked_at INTEGER
) STRICT, WITHOUT ROWID;

-- At most one live key per account.
CREATE UNIQUE INDEX api_key_live ON api_key (account) WHERE revoked_at IS NULL;

-- What the charge rule reads and writes. Amounts in atoms; windows in minutes and days since the Unix epoch.
CREATE TABLE meter (
  account INTEGER PRIMARY KEY REFERENCES account (id),
  balance INTEGER NOT NULL,
  purchased INTEGER NOT NULL,
  granted INTEGER NOT NULL,
  used INTEGER NOT NULL,
  requests_per_minute INTEGER NOT NULL,
  requests_per_day INTEGER NOT NULL,
  minute INTEGER NOT NULL DEFAULT 0,
  minute_count INTEGER NOT NULL DEFAULT 0,
  day INTEGER NOT NULL DEFAULT 0,
  day_count INTEGER NOT NULL DEFAULT 0,
  -- The account's chain of recent activity: its newest entry, the entry at and before which all may be forgotten
  -- next, how many entries came since that one, and the entry at and before which all are forgotten already.
  activity_head INTEGER,
  activity_mark INTEGER,
  activity_since_mark INTEGER NOT NULL DEFAULT 0,
  activity_floor INTEGER
) STRICT;

-- Append-only. Ids are drawn from one sequence with `activity`, so that both sort into one history.
CREATE TABLE ledger (
  id INTEGER PRIMARY KEY,
  account INTEGER NOT NULL REFERENCES account (id),
  kind TEXT NOT NULL,
  amount INTEGER NOT NULL,
  description TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;

CREATE INDEX ledger_account ON ledger (account, id);

-- Route, method and source, interned.
CREATE TABLE usage_line (
  id INTEGER PRIMARY KEY,
  route_template TEXT NOT NULL,
  http_method TEXT NOT NULL,
  source TEXT NOT NULL,
  UNIQUE (route_template, http_method, source)
) STRICT;

-- Day first: today's rows of all accounts lie side by side, and a report seeks once per day of its window.
CREATE TABLE usage_daily (
  day INTEGER NOT NULL,
  account INTEGER NOT NULL,
  line INTEGER NOT NULL,
  calls INTEGER NOT NULL,
  amount INTEGER NOT NULL,
  PRIMARY KEY (day, account, line)
) STRICT, WITHOUT ROWID;

-- Appended at the end whichever account it is for; each entry names the account's entry before it. A link to an entry
-- at or below the account's floor, or that is no longer there, ends the chain.
CREATE TABLE activity (
  id INTEGER PRIMARY KEY,
  account INTEGER NOT NULL,
  previous INTEGER,
  line INTEGER NOT NULL,
  -- The change of the balance: negative for usage, positive for refunds.
  amount INTEGER NOT NULL,
  refund INTEGER NOT NULL,
  calls INTEGER NOT NULL,
  request_path TEXT,
  created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE request_id (
  account INTEGER NOT NULL,
  request_id TEXT NOT NULL,
  charged INTEGER NOT NULL,
  balance INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  PRIMARY KEY (account, request_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX request_id_expiry ON request_id (expires_at);

CREATE TABLE plan (
  id TEXT NOT NULL,
  chain_id INTEGER NOT NULL,
  sort_order INTEGER NOT NULL,
  active INTEGER NOT NULL,
  -- The rest of the plan, as JSON: nothing searches in it.
  definition TEXT NOT NULL,
  PRIMARY KEY (id, chain_id)
) STRICT, WITHOUT ROWID;

-- Written to find out whether the disk can be.
CREATE TABLE probe (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  writes INTEGER NOT NULL
) STRICT;

INSERT INTO probe (id, writes) VALUES (1, 0);
