-- Version 11: recurring credits.

-- The day the account was last processed for a refill, in days since the Unix epoch; NULL for never.
ALTER TABLE account ADD COLUMN refilled_on INTEGER;

-- The rule, if there is one.
CREATE TABLE refill (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  -- In atoms.
  credits INTEGER NOT NULL CHECK (credits > 0),
  every TEXT NOT NULL CHECK (every IN ('daily', 'weekly', 'monthly')),
  cap INTEGER NOT NULL CHECK (cap > 0),
  -- The first day of the period that accounts are or were refilled in; NULL if the rule is new.
  period INTEGER,
  -- The last account processed in this period; NULL when all were.
  after INTEGER CHECK (after IS NULL OR period IS NOT NULL)
) STRICT;
