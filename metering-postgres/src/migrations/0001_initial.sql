-- What the SQLite backend calls versions 1 to 3, for a database with several nodes. Times are milliseconds since the
-- Unix epoch; amounts of credits are atoms; addresses and hashes are their bytes; amounts of tokens are 16 bytes,
-- big-endian. Ids of chains and numbers of blocks have 64 bits without a sign and are kept as the bigint of the same
-- bits. No sequences: what needs a number gets it from `turn`, or from its account's row.

-- Whoever writes anything but charges updates this one row first: those facts take turns, over all nodes.
CREATE TABLE turn (
  id SMALLINT PRIMARY KEY CHECK (id = 1),
  last_id BIGINT NOT NULL
);

INSERT INTO turn (id, last_id) VALUES (1, 0);

-- A row per committed transaction, for a quarter of an hour: the answer to whether it was.
CREATE TABLE outcome (
  id BYTEA PRIMARY KEY,
  at BIGINT NOT NULL
);

CREATE INDEX outcome_at ON outcome (at);

CREATE TABLE account (
  id BIGINT PRIMARY KEY,
  org_id TEXT NOT NULL UNIQUE,
  agent_name TEXT NOT NULL,
  email TEXT,
  email_folded TEXT,
  payer_address BYTEA,
  payer_chain_id BIGINT,
  created_at BIGINT NOT NULL,
  revoked_at BIGINT,
  CHECK ((payer_chain_id IS NULL) = (payer_address IS NULL))
);

CREATE UNIQUE INDEX account_live_email ON account (email_folded) WHERE email_folded IS NOT NULL AND revoked_at IS NULL;

CREATE UNIQUE INDEX account_live_payer ON account (payer_address)
  WHERE payer_address IS NOT NULL AND revoked_at IS NULL;

-- A key never changes its account, and never comes back to life.
CREATE TABLE api_key (
  hash BYTEA PRIMARY KEY,
  account BIGINT NOT NULL REFERENCES account (id),
  created_at BIGINT NOT NULL,
  revoked_at BIGINT
);

CREATE UNIQUE INDEX api_key_live ON api_key (account) WHERE revoked_at IS NULL;

-- What the charge rule reads and writes, and the row that whoever changes anything of an account locks first. No index
-- on what charges change, and room on each page, so that an update stays on its page.
CREATE TABLE meter (
  account BIGINT PRIMARY KEY REFERENCES account (id),
  -- The live key of `api_key`, under the lock of this row; none when the account is revoked.
  key BYTEA,
  balance BIGINT NOT NULL,
  purchased BIGINT NOT NULL,
  granted BIGINT NOT NULL,
  used BIGINT NOT NULL,
  requests_per_minute BIGINT NOT NULL,
  requests_per_day BIGINT NOT NULL,
  minute BIGINT NOT NULL DEFAULT 0,
  minute_count BIGINT NOT NULL DEFAULT 0,
  day BIGINT NOT NULL DEFAULT 0,
  day_count BIGINT NOT NULL DEFAULT 0,
  -- How many entries of activity the account ever had, of usage and of the ledger.
  entries BIGINT NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

-- Append-only. `id` is the order of writing of all, `entry` that of the account's activity.
CREATE TABLE ledger (
  id BIGINT PRIMARY KEY,
  account BIGINT NOT NULL REFERENCES account (id),
  entry BIGINT NOT NULL,
  kind TEXT NOT NULL,
  amount BIGINT NOT NULL,
  description TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  tx_chain_id BIGINT,
  tx_hash BYTEA,
  plan_id TEXT,
  CHECK ((tx_hash IS NULL) = (tx_chain_id IS NULL))
);

CREATE UNIQUE INDEX ledger_account ON ledger (account, entry);

CREATE INDEX ledger_payment ON ledger (tx_hash, tx_chain_id) WHERE tx_hash IS NOT NULL;

-- Route, method and source, interned under the start of their hash, which every node computes alike.
CREATE TABLE usage_line (
  id BIGINT PRIMARY KEY,
  route_template TEXT NOT NULL,
  http_method TEXT NOT NULL,
  source TEXT NOT NULL
);

CREATE TABLE usage_daily (
  account BIGINT NOT NULL,
  day BIGINT NOT NULL,
  line BIGINT NOT NULL,
  calls BIGINT NOT NULL,
  amount BIGINT NOT NULL,
  PRIMARY KEY (account, day, line)
) WITH (fillfactor = 50);

-- For the list of all totals, by day.
CREATE INDEX usage_daily_day ON usage_daily (day, account, line);

-- A ring for each account: an entry takes the place of the one that came a thousand before it, so that nothing has to
-- be deleted.
CREATE TABLE activity (
  account BIGINT NOT NULL,
  slot BIGINT NOT NULL,
  entry BIGINT NOT NULL,
  line BIGINT NOT NULL,
  amount BIGINT NOT NULL,
  refund BOOLEAN NOT NULL,
  calls BIGINT NOT NULL,
  request_path TEXT,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (account, slot)
) WITH (fillfactor = 50);

CREATE TABLE request_id (
  account BIGINT NOT NULL,
  request_id TEXT NOT NULL,
  charged BIGINT NOT NULL,
  balance BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  PRIMARY KEY (account, request_id)
);

CREATE INDEX request_id_expiry ON request_id (expires_at);

CREATE TABLE plan (
  id TEXT NOT NULL,
  chain_id BIGINT NOT NULL,
  sort_order BIGINT NOT NULL,
  active BOOLEAN NOT NULL,
  -- The rest of the plan, as JSON: nothing searches in it.
  definition TEXT NOT NULL,
  PRIMARY KEY (id, chain_id)
);

-- Append-only, for ever: this is what makes a transaction count once. The ids are the order of writing.
CREATE TABLE payment (
  id BIGINT PRIMARY KEY,
  chain_id BIGINT NOT NULL,
  tx_hash BYTEA NOT NULL,
  payer BYTEA NOT NULL,
  recipient BYTEA NOT NULL,
  token BYTEA NOT NULL,
  amount BYTEA NOT NULL,
  block_number BIGINT NOT NULL,
  mined_at BIGINT NOT NULL,
  account BIGINT NOT NULL REFERENCES account (id),
  used_as TEXT NOT NULL,
  plan_id TEXT,
  recorded_at BIGINT NOT NULL,
  UNIQUE (chain_id, tx_hash)
);

CREATE TABLE quote (
  -- Of the nonce that claims it, the hash: who reads the table can claim nothing.
  nonce BYTEA PRIMARY KEY,
  agent_name TEXT NOT NULL,
  email TEXT,
  payer BYTEA NOT NULL,
  chain_id BIGINT NOT NULL,
  token BYTEA NOT NULL,
  recipient BYTEA NOT NULL,
  amount BYTEA NOT NULL,
  plan_id TEXT NOT NULL,
  credits BIGINT NOT NULL,
  bonus_credits BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  -- What the grace makes of `expires_at`; kept so that it can be searched for.
  honoured_until BIGINT NOT NULL,
  -- `open`, then perhaps `paid` (the account is made, and nobody has its key), then `claimed`.
  state TEXT NOT NULL,
  account BIGINT REFERENCES account (id),
  tx_chain_id BIGINT,
  tx_hash BYTEA,
  FOREIGN KEY (tx_chain_id, tx_hash) REFERENCES payment (chain_id, tx_hash),
  CHECK (state IN ('open', 'paid', 'claimed')),
  CHECK ((state = 'open') = (account IS NULL)),
  CHECK ((state = 'open') = (tx_chain_id IS NULL)),
  CHECK ((state = 'open') = (tx_hash IS NULL))
);

CREATE INDEX quote_amount ON quote (chain_id, token, recipient, amount, payer);

CREATE INDEX quote_awaited ON quote (account) WHERE state = 'paid';

CREATE INDEX quote_expiry ON quote (honoured_until) WHERE state <> 'paid';

-- Wallets that proved once that they pay for an account. The ids are the order of linking.
CREATE TABLE wallet_link (
  id BIGINT PRIMARY KEY,
  wallet BYTEA NOT NULL,
  account BIGINT NOT NULL REFERENCES account (id),
  UNIQUE (wallet, account)
);

CREATE TABLE challenge (
  nonce TEXT PRIMARY KEY,
  address BYTEA NOT NULL,
  org_id TEXT NOT NULL,
  message TEXT NOT NULL,
  expires_at BIGINT NOT NULL,
  failures BIGINT NOT NULL
);

CREATE INDEX challenge_expiry ON challenge (expires_at);

CREATE TABLE scan_mark (
  chain_id BIGINT PRIMARY KEY,
  block BIGINT NOT NULL
);

CREATE TABLE signup (
  token BYTEA PRIMARY KEY,
  user_code TEXT NOT NULL UNIQUE,
  email TEXT NOT NULL,
  agent_name TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  approved_at BIGINT
);

CREATE INDEX signup_expiry ON signup (expires_at);

CREATE TABLE used_solution (
  solution BYTEA PRIMARY KEY,
  expires_at BIGINT NOT NULL
);

CREATE INDEX used_solution_expiry ON used_solution (expires_at);

-- Written to find out whether the database can be.
CREATE TABLE probe (
  id SMALLINT PRIMARY KEY CHECK (id = 1),
  writes BIGINT NOT NULL
);

INSERT INTO probe (id, writes) VALUES (1, 0);
