-- Version 11: recurring credits.

-- The day of the account's last turn to be refilled, in days since the Unix epoch. NULL if it had none.
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
  -- The last account that had its turn in this period; NULL when all had.
  after INTEGER CHECK (after IS NULL OR period IS NOT NULL)
) STRICT;
