-- Version 5: receipts, links by email, top-up quotes.

-- The plan of a payment as it was sold. All columns are NULL for a payment without a plan.

ALTER TABLE payment ADD COLUMN plan_label TEXT;
ALTER TABLE payment ADD COLUMN token_symbol TEXT CHECK ((token_symbol IS NULL) = (plan_label IS NULL));
ALTER TABLE payment ADD COLUMN token_decimals BIGINT CHECK ((token_decimals IS NULL) = (plan_label IS NULL));
-- In atoms. NULL as well for payments from before this version: the plan may have changed since they were made.
ALTER TABLE payment ADD COLUMN bonus_credits BIGINT CHECK (bonus_credits IS NULL OR plan_label IS NOT NULL);

UPDATE payment SET plan_label = plan.definition::JSON ->> 'label', token_symbol = plan.definition::JSON ->> 'token_symbol',
  token_decimals = (plan.definition::JSON ->> 'token_decimals')::BIGINT
  FROM plan WHERE plan.id = payment.plan_id AND plan.chain_id = payment.chain_id;

-- Verification of email addresses. `email_credits` is set while an address waits for it: the free credits that come with
-- the verification. Its account does not hold the address then, so `email_folded` is NULL.
ALTER TABLE account ADD COLUMN email_credits BIGINT
  CHECK (email_credits IS NULL OR (email_credits >= 0 AND email IS NOT NULL));
ALTER TABLE account ADD COLUMN email_verified_at BIGINT
  CHECK (email_verified_at IS NULL OR (email_credits IS NULL AND email IS NOT NULL));

-- The links that were sent by email, by the hash of their token.
CREATE TABLE email_link (
  token BYTEA PRIMARY KEY,
  account BIGINT NOT NULL REFERENCES account (id),
  -- `verify_address` or `recover_key`.
  purpose TEXT NOT NULL CHECK (purpose IN ('verify_address', 'recover_key')),
  expires_at BIGINT NOT NULL,
  UNIQUE (account, purpose)
);

CREATE INDEX email_link_expiry ON email_link (expires_at);

-- Top-up quotes: the account to credit, whichever wallet pays. NULL for a quote that creates an account, whose payer is
-- known.
ALTER TABLE quote ADD COLUMN top_up BIGINT REFERENCES account (id)
  CHECK ((top_up IS NULL) = (payer <> decode(repeat('00', 20), 'hex'))
    AND (top_up IS NULL OR account IS NULL OR account = top_up));

CREATE INDEX quote_top_up ON quote (top_up) WHERE top_up IS NOT NULL;
