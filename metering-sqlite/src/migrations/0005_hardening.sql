-- Version 5: what payments, usage and access need to survive reorganisations, hostile input and clock jumps.

-- Idempotency keys of metered routes, kept with the request ids of deductions: which request the key is for, how often it
-- was tried, and until when the last try may be under way (none once a response was passed on). Of a deduction all are
-- empty.
ALTER TABLE request_id ADD COLUMN fingerprint BLOB;
ALTER TABLE request_id ADD COLUMN tries INTEGER CHECK ((tries IS NULL) = (fingerprint IS NULL));
ALTER TABLE request_id ADD COLUMN open_until INTEGER CHECK (open_until IS NULL OR fingerprint IS NOT NULL);
-- Payments are credited before their block is final, and reversed if a reorganisation removes it.
--
-- Those of earlier versions were credited when they counted as settled; the hash of their block was not kept.
ALTER TABLE payment ADD COLUMN block_hash BLOB;
-- `unsettled`, `final` or `reversed`.
ALTER TABLE payment ADD COLUMN settlement TEXT NOT NULL DEFAULT 'final'
  CHECK (settlement IN ('unsettled', 'final', 'reversed'));
ALTER TABLE payment ADD COLUMN reversed_at INTEGER CHECK ((reversed_at IS NULL) = (settlement <> 'reversed'));

-- What the watcher looks at. Few at a time.
CREATE INDEX payment_unsettled ON payment (chain_id, id) WHERE settlement <> 'final';
-- Unpaid quotes are forgotten long before claimed ones.
DROP INDEX quote_expiry;
CREATE INDEX quote_expiry ON quote (state, honoured_until);
