-- Moving to another backend: what the store calls itself, the same in every copy of it, and where it went.

CREATE TABLE identity (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  name BLOB NOT NULL
) STRICT;

INSERT INTO identity (id, name) VALUES (1, randomblob(16));

-- While there is a row, nobody opens the store.
CREATE TABLE moved (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  destination TEXT NOT NULL,
  at INTEGER NOT NULL
) STRICT;
