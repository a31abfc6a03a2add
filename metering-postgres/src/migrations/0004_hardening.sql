-- Version 4: what payments, usage and access need to survive reorganisations, hostile input and clock jumps.

-- Idempotency keys of metered routes, kept with the request ids of deductions: which request the key is for, how often it
-- was tried, and until when the last try may be under way (none once a response was passed on). Of a deduction all are
-- empty.
ALTER TABLE request_id ADD COLUMN fingerprint BYTEA;
ALTER TABLE request_id ADD COLUMN tries BIGINT CHECK ((tries IS NULL) = (fingerprint IS NULL));
ALTER TABLE request_id ADD COLUMN open_until BIGINT CHECK (open_until IS NULL OR fingerprint IS NOT NULL);
-- Payments are credited before their block is final, and reversed if a reorganisation removes it.
--
-- Those of earlier versions were credited when they counted as settled; the hash of their block was not kept.
ALTER TABLE payment ADD COLUMN block_hash BYTEA;
-- `unsettled`, `final` or `reversed`.
ALTER TABLE payment ADD COLUMN settlement TEXT NOT NULL DEFAULT 'final'
  CHECK (settlement IN ('unsettled', 'final', 'reversed'));
ALTER TABLE payment ADD COLUMN reversed_at BIGINT CHECK ((reversed_at IS NULL) = (settlement <> 'reversed'));

-- What the watcher looks at. Few at a time.
CREATE INDEX payment_unsettled ON payment (chain_id, id) WHERE settlement <> 'final';
-- Unpaid quotes are forgotten long before claimed ones.
DROP INDEX quote_expiry;
CREATE INDEX quote_expiry ON quote (state, honoured_until);

-- What the store calls itself.
CREATE TABLE identity (
  id SMALLINT PRIMARY KEY CHECK (id = 1),
  name BYTEA NOT NULL
);

INSERT INTO identity (id, name) VALUES (1, decode(replace(gen_random_uuid()::TEXT, '-', ''), 'hex'));

-- Which recipients payments are received at, since when, and by which store. Payments that are older were made to
-- somebody else, or to an earlier installation, and may have been credited there.
CREATE TABLE recipient (
  chain_id BIGINT NOT NULL,
  -- The zero address stands for whichever is configured first.
  recipient BYTEA NOT NULL,
  since BIGINT NOT NULL,
  store BYTEA NOT NULL,
  configured_at BIGINT NOT NULL,
  PRIMARY KEY (chain_id, recipient)
);

-- A chain that is in use already: nothing that is on its way to this store is older than the store's first account,
-- quote or payment.
INSERT INTO recipient (chain_id, recipient, since, store, configured_at)
  SELECT used.chain_id, decode(repeat('00', 20), 'hex'), first.at, i.name, first.at
  FROM (SELECT chain_id FROM plan UNION SELECT chain_id FROM quote UNION SELECT chain_id FROM payment
        UNION SELECT chain_id FROM scan_mark) used
  CROSS JOIN (SELECT least(
    (SELECT min(created_at) FROM account), (SELECT min(created_at) FROM quote), (SELECT min(mined_at) FROM payment),
    (extract(epoch FROM now()) * 1000)::BIGINT) AS at) first
  CROSS JOIN identity i;

-- Usage lines are told apart by the SHA-256 of their texts, and numbered at random: texts that clients choose can be made
-- to collide in 63 bits. The program fills the column in, and makes its index.
ALTER TABLE usage_line ADD COLUMN digest BYTEA;

-- When an outcome was written by the database's clock: by that, and no node's, it is forgotten.
ALTER TABLE outcome ADD COLUMN written_at BIGINT NOT NULL DEFAULT (extract(epoch FROM clock_timestamp()) * 1000)::BIGINT;
DROP INDEX outcome_at;
CREATE INDEX outcome_written_at ON outcome (written_at);
-- Arrivals that could not be read, so that the watcher could go on. `tx_hash` is empty where a whole block could not be
-- searched; `next_attempt_at` is NULL once it was given up.
CREATE TABLE unreadable_arrival (
  chain_id BIGINT NOT NULL,
  block BIGINT NOT NULL,
  tx_hash BYTEA NOT NULL,
  reason TEXT NOT NULL,
  attempts BIGINT NOT NULL,
  found_at BIGINT NOT NULL,
  next_attempt_at BIGINT,
  PRIMARY KEY (chain_id, block, tx_hash)
);

CREATE INDEX unreadable_arrival_due ON unreadable_arrival (chain_id, next_attempt_at) WHERE next_attempt_at IS NOT NULL;
