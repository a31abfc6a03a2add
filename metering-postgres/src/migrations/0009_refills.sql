-- Version 9: recurring credits.

-- The rule, if there is one.
CREATE TABLE refill (
  id BIGINT PRIMARY KEY CHECK (id = 1),
  -- In atoms.
  credits BIGINT NOT NULL CHECK (credits > 0),
  every TEXT NOT NULL CHECK (every IN ('daily', 'weekly', 'monthly')),
  cap BIGINT NOT NULL CHECK (cap > 0),
  -- The first day of the period that accounts are or were refilled in, in days since the Unix epoch; NULL if the rule
  -- is new.
  period BIGINT,
  -- The last account processed in this period; NULL when all were.
  after BIGINT CHECK (after IS NULL OR period IS NOT NULL)
);

-- The day the account was last processed for a refill; NULL for never. Nodes of version 8 ignore it and keep charging,
-- because a refill changes a meter like any other entry. They cannot list entries of the new kind, which exist once a
-- rule is set.
ALTER TABLE account ADD COLUMN refilled_on BIGINT;
