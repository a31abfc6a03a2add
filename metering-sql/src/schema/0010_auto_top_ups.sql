-- Automatic top-ups with saved cards.

-- The saved card of an account, and the rule by which it is charged; NULL for none. Of the card, only the processor's ids, its
-- brand and the last four digits are stored.
CREATE TABLE auto_top_up (
  account {integer} PRIMARY KEY REFERENCES account (id),
  customer TEXT,
  method TEXT CHECK ((method IS NULL) = (customer IS NULL)),
  brand TEXT CHECK ((brand IS NULL) = (customer IS NULL)),
  last4 TEXT CHECK ((last4 IS NULL) = (customer IS NULL)),
  plan_id TEXT,
  credits {integer} CHECK ((credits IS NULL) = (plan_id IS NULL)),
  -- In the currency's smallest unit.
  amount {integer} CHECK ((amount IS NULL) = (plan_id IS NULL)),
  currency TEXT CHECK ((currency IS NULL) = (plan_id IS NULL)),
  threshold {integer} CHECK ((threshold IS NULL) = (plan_id IS NULL)),
  monthly_limit {integer} CHECK ((monthly_limit IS NULL) = (plan_id IS NULL)),
  -- Why the card is not charged, although there is a rule.
  stopped TEXT
){keyed};

-- Charges of saved cards. Each is written before it is made.
CREATE TABLE top_up_charge (
  id {blob} PRIMARY KEY,
  account {integer} NOT NULL REFERENCES account (id),
  customer TEXT NOT NULL,
  method TEXT NOT NULL,
  brand TEXT NOT NULL,
  last4 TEXT NOT NULL,
  plan_id TEXT NOT NULL,
  credits {integer} NOT NULL,
  amount {integer} NOT NULL,
  currency TEXT NOT NULL,
  started_at {integer} NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('open', 'paid', 'failed')),
  -- The hash that stands for the processor's payment.
  payment {blob} CHECK ((payment IS NULL) = (state <> 'paid'))
){keyed};

-- An account has one open charge at most.
CREATE UNIQUE INDEX top_up_charge_open ON top_up_charge (account) WHERE state = 'open';
CREATE INDEX top_up_charge_account ON top_up_charge (account, started_at);
CREATE INDEX top_up_charge_payment ON top_up_charge (payment);
