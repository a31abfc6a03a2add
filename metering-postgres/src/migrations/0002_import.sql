-- Moving a store into this database. While a move is not finished, `turn` belongs to whoever moves: no other fact is
-- written, and nobody opens the store.
ALTER TABLE turn ADD COLUMN import_owner BYTEA;

-- What was moved here: the name that the other store has for itself. No row where nothing was.
CREATE TABLE import (
  id SMALLINT PRIMARY KEY CHECK (id = 1),
  source BYTEA NOT NULL,
  began_at BIGINT NOT NULL,
  finished_at BIGINT
);

-- Locked for as long as somebody moves.
CREATE TABLE import_lock (
  id SMALLINT PRIMARY KEY CHECK (id = 1)
);

INSERT INTO import_lock (id) VALUES (1);
