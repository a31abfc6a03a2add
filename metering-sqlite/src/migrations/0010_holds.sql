-- Version 10: holds. They are credits of requests whose cost is known only after their response. The commit that opens
-- or settles a hold writes its row. What that changes in the account's totals and rate-limit windows goes through the
-- journal, as it does for charges.

-- The sum of the account's open holds, in atoms. It is not part of the balance.
ALTER TABLE meter ADD COLUMN held INTEGER NOT NULL DEFAULT 0;

-- The hold that the request opened, if it was not a charge; `charged` is then what is held.
ALTER TABLE request_id ADD COLUMN hold BLOB;

-- A table with row numbers: ids are random, but most holds are settled soon after they are opened, and their rows then
-- share a few pages at the end.
CREATE TABLE hold (
  id BLOB NOT NULL UNIQUE,
  account INTEGER NOT NULL,
  key INTEGER NOT NULL,
  -- In atoms: what it holds, and what is captured when nobody says what the request cost.
  amount INTEGER NOT NULL,
  fallback INTEGER NOT NULL,
  line INTEGER NOT NULL REFERENCES usage_line (id),
  request_path TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  -- What was captured, why and when. All are NULL while the hold is open.
  captured INTEGER,
  reason TEXT CHECK (reason IN ('report', 'no_report', 'release', 'expiry')),
  settled_at INTEGER,
  FOREIGN KEY (account, key) REFERENCES api_key (account, number),
  CHECK ((captured IS NULL) = (settled_at IS NULL) AND (reason IS NULL) = (settled_at IS NULL))
) STRICT;

-- Few holds are open at a time.
CREATE INDEX hold_open ON hold (account, created_at, id) WHERE settled_at IS NULL;
CREATE INDEX hold_lease ON hold (expires_at, id) WHERE settled_at IS NULL;
CREATE INDEX hold_settled ON hold (settled_at) WHERE settled_at IS NOT NULL;
