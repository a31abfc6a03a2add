-- The newest usage of an account stands in its meter's row, and recent activity in blocks (ADR 23). The entries that are
-- there are packed by the program, which then drops `activity_entry`.

-- The newest entries of usage, packed, and the day that they are booked on. They are in neither `usage_daily` nor
-- `activity` yet. At the end of the row, since it grows.
ALTER TABLE meter ADD COLUMN tail_day BIGINT;
ALTER TABLE meter ADD COLUMN tail BYTEA NOT NULL DEFAULT '';

-- For the list of all totals, by day. It changes once a day, so that all other updates of a row stay on its page.
CREATE INDEX meter_tail ON meter (tail_day, account);

ALTER TABLE activity RENAME TO activity_entry;
ALTER INDEX activity_pkey RENAME TO activity_entry_pkey;

-- A ring for each account: a block of sixteen entries, packed, takes the place of the one that came sixty-four before it,
-- so that nothing has to be deleted.
CREATE TABLE activity (
  account BIGINT NOT NULL,
  slot BIGINT NOT NULL,
  block BIGINT NOT NULL,
  -- The newest first.
  entries BYTEA NOT NULL,
  PRIMARY KEY (account, slot)
) WITH (fillfactor = 80);
