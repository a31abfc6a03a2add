-- Version 13: the catalogues that were, are or will be in force.

CREATE TABLE price_version (
  number       BIGINT PRIMARY KEY CHECK (number BETWEEN 1 AND 4294967295),
  hash         BYTEA NOT NULL CHECK (octet_length(hash) = 32),
  since        BIGINT NOT NULL,
  recorded_at  BIGINT NOT NULL,
  -- Who applied it; NULL if a server took it from the file that its configuration names.
  applied_by   TEXT,
  cancelled_at BIGINT,
  -- The text of the catalogue.
  catalogue    TEXT NOT NULL
);
