-- Version 27 on SQLite, 25 on PostgreSQL: authorizations for what one request uses (the scheme `upto` of x402).

-- The hold that it backs; NULL for an authorization of a fixed amount. A program of an earlier version would execute it as
-- one; do not run one beside this version.
ALTER TABLE payment_authorization ADD COLUMN usage_hold {blob} CHECK (length(usage_hold) = 16);
-- What its hold captured, at most `credits`; NULL until the hold is settled, 0 if nothing is to be paid.
ALTER TABLE payment_authorization ADD COLUMN used_credits {integer} CHECK (used_credits BETWEEN 0 AND credits);

-- Of a payer, those that may still be executed, and those that were used and not paid.
CREATE INDEX payment_authorization_open_usage ON payment_authorization (payer)
  WHERE usage_hold IS NOT NULL AND state = 'pending';
CREATE INDEX payment_authorization_unpaid ON payment_authorization (payer)
  WHERE used_credits > 0 AND state = 'failed';
