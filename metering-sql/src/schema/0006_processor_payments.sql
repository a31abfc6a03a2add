-- Version 24 on SQLite, 22 on PostgreSQL: payments that processors took.

-- The processor, and its id of the payment. Its chain is 0, and its hash that of both.
ALTER TABLE payment ADD COLUMN processor TEXT;
ALTER TABLE payment ADD COLUMN processor_id TEXT CHECK ((processor_id IS NULL) = (processor IS NULL));

-- Refunds and disputes.
CREATE TABLE payment_reversal (
  processor TEXT NOT NULL,
  reversal_id TEXT NOT NULL,
  tx_hash {blob} NOT NULL,
  amount {blob} NOT NULL,
  reason TEXT NOT NULL,
  reversed_at {integer} NOT NULL,
  -- When it ended. It never stands again.
  restored_at {integer},
  PRIMARY KEY (processor, reversal_id)
){keyed};

CREATE INDEX payment_reversal_payment ON payment_reversal (tx_hash);
