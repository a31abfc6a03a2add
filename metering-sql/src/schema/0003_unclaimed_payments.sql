-- Version 21 on SQLite, 19 on PostgreSQL: payments that nobody claimed, and an index of the names of agents.

-- The watcher writes them. They are deleted once an account has them, and when a reorganisation removes them.
CREATE TABLE unclaimed_payment (
  chain_id {integer} NOT NULL,
  tx_hash {blob} NOT NULL,
  token {blob} NOT NULL,
  recipient {blob} NOT NULL,
  block {integer} NOT NULL,
  block_hash {blob} NOT NULL,
  mined_at {integer} NOT NULL,
  -- NULL if it is unclear what was paid: there are several transfers, or one of the native coin has call data.
  payer {blob},
  amount {blob} CHECK ((amount IS NULL) = (payer IS NULL)),
  -- How many, if there are several.
  transfers {integer} CHECK (transfers IS NULL OR payer IS NULL),
  seen_at {integer} NOT NULL,
  PRIMARY KEY (chain_id, tx_hash, token, recipient, block)
){keyed};

CREATE INDEX unclaimed_payment_block ON unclaimed_payment (chain_id, block);

CREATE INDEX account_name ON account (lower(agent_name {bytes}));
