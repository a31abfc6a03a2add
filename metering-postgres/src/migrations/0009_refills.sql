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
  -- The last account that had its turn in this period; NULL when all had.
  after BIGINT CHECK (after IS NULL OR period IS NOT NULL)
);

-- The day of the account's last turn to be refilled. NULL if it had none. Nodes of version 8 ignore it and keep working:
-- they charge refilled accounts as others, because a refill changes a meter as any entry does. They only cannot list
-- entries of the new kind, which there are once a rule is set.
ALTER TABLE account ADD COLUMN refilled_on BIGINT;
