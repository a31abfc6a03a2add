-- Version 15: the catalogues that were, are or will be in force.

CREATE TABLE price_version (
  number       INTEGER PRIMARY KEY CHECK (number BETWEEN 1 AND 4294967295),
  hash         BLOB NOT NULL CHECK (length(hash) = 32),
  since        INTEGER NOT NULL,
  recorded_at  INTEGER NOT NULL,
  -- Who applied it; NULL if a server took it from the file that its configuration names.
  applied_by   TEXT,
  cancelled_at INTEGER,
  -- The text of the catalogue. Last, so that reading the other columns skips it.
  catalogue    TEXT NOT NULL
) STRICT;
