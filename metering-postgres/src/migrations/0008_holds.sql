-- Version 8: holds, credits of requests whose cost is known only after their response.

-- Opened and changed only under the lock of the account's `meter`. No foreign keys, like the other tables that charges
-- write: `verify` checks them. What the open holds of an account add up to is not stored in its meter, because it
-- follows from what is: purchased + granted - used - balance.
CREATE TABLE hold (
  -- Random.
  id BYTEA PRIMARY KEY,
  account BIGINT NOT NULL,
  key BIGINT NOT NULL,
  line BIGINT NOT NULL,
  -- In atoms, like what is captured if nobody says what the request cost.
  amount BIGINT NOT NULL CHECK (amount >= 0),
  fallback BIGINT NOT NULL CHECK (fallback BETWEEN 0 AND amount),
  -- NULL if it is the template of the route.
  request_path TEXT,
  created_at BIGINT NOT NULL,
  -- When the lease ends.
  expires_at BIGINT NOT NULL,
  -- How it was settled; all are NULL while it is open.
  captured BIGINT,
  reason TEXT CHECK (reason IN ('report', 'no_report', 'release', 'expiry')),
  settled_at BIGINT,
  CHECK ((captured IS NULL) = (settled_at IS NULL)),
  CHECK ((reason IS NULL) = (settled_at IS NULL))
);

CREATE INDEX hold_open ON hold (account, created_at, id) WHERE settled_at IS NULL;

CREATE INDEX hold_lease ON hold (expires_at, id) WHERE settled_at IS NULL;

CREATE INDEX hold_settled ON hold (settled_at) WHERE settled_at IS NOT NULL;

-- The hold that a request with an id opened. NULL if it was charged.
ALTER TABLE request_id ADD COLUMN hold BYTEA;

-- Nodes of version 7 must stop: they would take a held request for a charged one and refund it, and cannot read the new
-- kinds of usage. All their writes name this column.
ALTER TABLE outcome RENAME COLUMN at TO marked_at;
