-- Version 6: charges go to a journal first, and recent activity is packed. `packing.rs` moves the entries of `activity`
-- to `recent_activity` before `0006_packed.sql` drops the old table.

-- One row per commit; its id is that of its last change, in the sequence of ids that activity and ledger share. Its
-- changes are in no table until they are folded.
CREATE TABLE charge_journal (
  id INTEGER PRIMARY KEY,
  entries BLOB NOT NULL
) STRICT;

-- How far the journal is folded: all changes up to `upto` of the accounts up to `account` are in the tables.
CREATE TABLE fold (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  upto INTEGER NOT NULL,
  account INTEGER NOT NULL
) STRICT;

INSERT INTO fold (id, upto, account) VALUES (1, coalesce((SELECT max(id) FROM activity), 0), 9223372036854775807);

-- A ring of blocks of packed entries for each account. The account's entries are counted; sixteen of them are a block.
CREATE TABLE recent_activity (
  account INTEGER NOT NULL,
  slot INTEGER NOT NULL,
  block INTEGER NOT NULL,
  entries BLOB NOT NULL,
  PRIMARY KEY (account, slot)
) STRICT, WITHOUT ROWID;

ALTER TABLE meter ADD COLUMN activity_count INTEGER NOT NULL DEFAULT 0;
