-- Version 4: columns and tables for reorganisations, hostile input and clock jumps.

-- Idempotency keys of metered routes, stored with the request ids of deductions: which request the key is for, how
-- often it was tried, and until when the last try may be in progress (NULL once a response was passed on). All are NULL
-- for a deduction.
ALTER TABLE request_id ADD COLUMN fingerprint BYTEA;
ALTER TABLE request_id ADD COLUMN tries BIGINT CHECK ((tries IS NULL) = (fingerprint IS NULL));
ALTER TABLE request_id ADD COLUMN open_until BIGINT CHECK (open_until IS NULL OR fingerprint IS NOT NULL);
-- Payments are credited before their block is final, and reversed if a reorganisation removes the block.
--
-- Earlier versions credited payments only once they were settled, and did not store the hash of their block.
ALTER TABLE payment ADD COLUMN block_hash BYTEA;
-- `unsettled`, `final` or `reversed`.
ALTER TABLE payment ADD COLUMN settlement TEXT NOT NULL DEFAULT 'final'
  CHECK (settlement IN ('unsettled', 'final', 'reversed'));
ALTER TABLE payment ADD COLUMN reversed_at BIGINT CHECK ((reversed_at IS NULL) = (settlement <> 'reversed'));

-- The payments that the watcher checks. There are never many.
CREATE INDEX payment_unsettled ON payment (chain_id, id) WHERE settlement <> 'final';
-- Unpaid quotes are deleted long before claimed ones.
DROP INDEX quote_expiry;
CREATE INDEX quote_expiry ON quote (state, honoured_until);

-- The store's own id.
CREATE TABLE identity (
  id SMALLINT PRIMARY KEY CHECK (id = 1),
  name BYTEA NOT NULL
);

INSERT INTO identity (id, name) VALUES (1, decode(replace(gen_random_uuid()::TEXT, '-', ''), 'hex'));

-- The addresses that receive payments: since when each has been in use, and by which store. Older payments to an
-- address were meant for its previous owner or for an earlier installation, and may have been credited there.
CREATE TABLE recipient (
  chain_id BIGINT NOT NULL,
  -- The zero address stands for the recipient that is configured first.
  recipient BYTEA NOT NULL,
  since BIGINT NOT NULL,
  store BYTEA NOT NULL,
  configured_at BIGINT NOT NULL,
  PRIMARY KEY (chain_id, recipient)
);

-- Chains that are already in use: no payment on its way to this store is older than the store's first account, quote or
-- payment.
INSERT INTO recipient (chain_id, recipient, since, store, configured_at)
  SELECT used.chain_id, decode(repeat('00', 20), 'hex'), first.at, i.name, first.at
  FROM (SELECT chain_id FROM plan UNION SELECT chain_id FROM quote UNION SELECT chain_id FROM payment
        UNION SELECT chain_id FROM scan_mark) used
  CROSS JOIN (SELECT least(
    (SELECT min(created_at) FROM account), (SELECT min(created_at) FROM quote), (SELECT min(mined_at) FROM payment),
    (extract(epoch FROM now()) * 1000)::BIGINT) AS at) first
  CROSS JOIN identity i;

-- Usage lines are identified by the SHA-256 of their text and have random ids: a client that chooses the texts could
-- make 63-bit hashes collide. The program fills the column and creates its index.
ALTER TABLE usage_line ADD COLUMN digest BYTEA;

-- When an outcome was written, by the database's clock. Deletion goes by this column and not by any node's clock.
ALTER TABLE outcome ADD COLUMN written_at BIGINT NOT NULL DEFAULT (extract(epoch FROM clock_timestamp()) * 1000)::BIGINT;
DROP INDEX outcome_at;
CREATE INDEX outcome_written_at ON outcome (written_at);
-- Arrivals that could not be read. They are recorded here so that the watcher can continue. `tx_hash` is empty if a
-- whole block could not be searched; `next_attempt_at` is NULL once the watcher has given up.
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
