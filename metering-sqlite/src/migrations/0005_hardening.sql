-- Version 5: columns and tables for reorganisations, hostile input and clock jumps.

-- Idempotency keys of metered routes, stored with the request ids of deductions: which request the key is for, how
-- often it was tried, and until when the last try may be in progress (NULL once a response was passed on). All are NULL
-- for a deduction.
ALTER TABLE request_id ADD COLUMN fingerprint BLOB;
ALTER TABLE request_id ADD COLUMN tries INTEGER CHECK ((tries IS NULL) = (fingerprint IS NULL));
ALTER TABLE request_id ADD COLUMN open_until INTEGER CHECK (open_until IS NULL OR fingerprint IS NOT NULL);
-- Payments are credited before their block is final, and reversed if a reorganisation removes the block.
--
-- Earlier versions credited payments only once they were settled, and did not store the hash of their block.
ALTER TABLE payment ADD COLUMN block_hash BLOB;
-- `unsettled`, `final` or `reversed`.
ALTER TABLE payment ADD COLUMN settlement TEXT NOT NULL DEFAULT 'final'
  CHECK (settlement IN ('unsettled', 'final', 'reversed'));
ALTER TABLE payment ADD COLUMN reversed_at INTEGER CHECK ((reversed_at IS NULL) = (settlement <> 'reversed'));

-- The payments that the watcher checks. There are never many.
CREATE INDEX payment_unsettled ON payment (chain_id, id) WHERE settlement <> 'final';
-- Unpaid quotes are deleted long before claimed ones.
DROP INDEX quote_expiry;
CREATE INDEX quote_expiry ON quote (state, honoured_until);

-- The addresses that receive payments: since when each has been in use, and by which store. Older payments to an
-- address were meant for its previous owner or for an earlier installation, and may have been credited there.
CREATE TABLE recipient (
  chain_id INTEGER NOT NULL,
  -- The zero address stands for the recipient that is configured first.
  recipient BLOB NOT NULL,
  since INTEGER NOT NULL,
  store BLOB NOT NULL,
  configured_at INTEGER NOT NULL,
  PRIMARY KEY (chain_id, recipient)
) STRICT, WITHOUT ROWID;

-- Chains that are already in use: no payment on its way to this store is older than the store's first account, quote or
-- payment.
INSERT INTO recipient (chain_id, recipient, since, store, configured_at)
  SELECT used.chain_id, zeroblob(20), first.at, i.name, first.at
  FROM (SELECT chain_id FROM plan UNION SELECT chain_id FROM quote UNION SELECT chain_id FROM payment
        UNION SELECT chain_id FROM scan_mark) used
  CROSS JOIN (SELECT min(at) AS at FROM (
    SELECT min(created_at) AS at FROM account
    UNION ALL SELECT min(created_at) FROM quote
    UNION ALL SELECT min(mined_at) FROM payment
    UNION ALL SELECT CAST(strftime('%s', 'now') AS INTEGER) * 1000)) first
  CROSS JOIN identity i;
-- Arrivals that could not be read. They are recorded here so that the watcher can continue. `tx_hash` is empty if a
-- whole block could not be searched; `next_attempt_at` is NULL once the watcher has given up.
CREATE TABLE unreadable_arrival (
  chain_id INTEGER NOT NULL,
  block INTEGER NOT NULL,
  tx_hash BLOB NOT NULL,
  reason TEXT NOT NULL,
  attempts INTEGER NOT NULL,
  found_at INTEGER NOT NULL,
  next_attempt_at INTEGER,
  PRIMARY KEY (chain_id, block, tx_hash)
) STRICT, WITHOUT ROWID;

CREATE INDEX unreadable_arrival_due ON unreadable_arrival (chain_id, next_attempt_at) WHERE next_attempt_at IS NOT NULL;
