-- Version 6: charges go to a journal first, and recent activity is packed. `packing.rs` moves the entries of `activity`
-- to `recent_activity` before `0006_packed.sql` drops the old table.

-- One row per commit; its id is that of its last change, in the sequence of ids that activity and ledger share. Its
-- changes are in no table until they are folded.
CREATE TABLE charge_journal (
  id INTEGER PRIMARY KEY,
  entries BLOB NOT NULL
) STRICT;

-- How far the journal is folded: what the tables have are all changes up to `floor`, and those up to `upto` of the
-- accounts up to `account`. `paid` was the newest row when the last slice was folded.
CREATE TABLE fold (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  floor INTEGER NOT NULL,
  upto INTEGER NOT NULL,
  account INTEGER NOT NULL,
  paid INTEGER NOT NULL
) STRICT;

INSERT INTO fold (id, floor, upto, account, paid)
  SELECT 1, newest, newest, 0, newest FROM (SELECT coalesce(max(id), 0) AS newest FROM activity);

-- A ring of blocks of packed entries for each account. The account's entries are counted; sixteen of them are a block.
CREATE TABLE recent_activity (
  account INTEGER NOT NULL,
  slot INTEGER NOT NULL,
  block INTEGER NOT NULL,
  entries BLOB NOT NULL,
  PRIMARY KEY (account, slot)
) STRICT, WITHOUT ROWID;

ALTER TABLE meter ADD COLUMN activity_count INTEGER NOT NULL DEFAULT 0;
