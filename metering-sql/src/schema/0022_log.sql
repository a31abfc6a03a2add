-- The log of every posting.

-- An epoch is a log with an origin of its own. At most the last one is open.
CREATE TABLE log_epoch (
  number {integer} NOT NULL PRIMARY KEY CHECK (number BETWEEN 1 AND 4294967295),
  origin TEXT NOT NULL UNIQUE,
  secret {blob} NOT NULL CHECK (length(secret) = 32),
  reason TEXT NOT NULL,
  began_at {integer} NOT NULL,
  ended_at {integer},
  size {integer} NOT NULL CHECK (size >= 0),
  root {blob} NOT NULL CHECK (length(root) = 32),
  -- The first bundle that was not pruned.
  minimum {integer} NOT NULL CHECK (minimum >= 0),
  -- How many accounts have a number.
  accounts {integer} NOT NULL CHECK (accounts >= 0),
  -- What is in it: the last row of SQLite's charge journal, the last ledger entry, the last price version, and the last
  -- account whose opening funds are, which is below zero before the first entry.
  journal {integer} NOT NULL,
  ledger {integer} NOT NULL,
  prices {integer} NOT NULL,
  openings {integer} NOT NULL,
  swept_from {integer} NOT NULL CHECK (swept_from BETWEEN 0 AND size),
  checkpoint_size {integer} CHECK (checkpoint_size <= size),
  checkpoint TEXT CHECK ((checkpoint IS NULL) = (checkpoint_size IS NULL)),
  node TEXT,
  lease_until {integer} CHECK ((lease_until IS NULL) = (node IS NULL))
){keyed};

-- The number of the open epoch. Every commit looks here, and not into log_epoch: that row changes every second, and while a
-- long read such as a dump keeps its old versions alive, commits would have to step over all of them.
CREATE TABLE log_open (
  number {integer} NOT NULL PRIMARY KEY
){keyed};

-- 256 leaves each. The hash comes before them, so that it is read without them.
CREATE TABLE log_bundle (
  epoch {integer} NOT NULL REFERENCES log_epoch (number),
  number {integer} NOT NULL CHECK (number >= 0),
  until {integer} NOT NULL,
  hash {blob} CHECK (hash IS NULL OR length(hash) = 32),
  leaves {blob} NOT NULL,
  PRIMARY KEY (epoch, number)
){keyed};

CREATE INDEX log_bundle_until ON log_bundle (epoch, until, number);

CREATE TABLE log_tile (
  epoch {integer} NOT NULL REFERENCES log_epoch (number),
  level {integer} NOT NULL CHECK (level BETWEEN 1 AND 63),
  number {integer} NOT NULL CHECK (number >= 0),
  hashes {blob} NOT NULL,
  PRIMARY KEY (epoch, level, number)
){keyed};

-- Accounts that had funds when the epoch began, and those that have leaves. Without a number, the funds are the opening
-- ones and not in the log yet. Without a foreign key: charges wait while the rows of all accounts are written.
CREATE TABLE log_account (
  epoch {integer} NOT NULL,
  number {integer},
  account {integer} NOT NULL,
  leaves {integer} NOT NULL CHECK (leaves >= 0),
  funds {integer} NOT NULL,
  PRIMARY KEY (epoch, account),
  UNIQUE (epoch, number)
){keyed};

-- The log's own numbers of usage lines.
CREATE TABLE log_line (
  number {integer} NOT NULL PRIMARY KEY CHECK (number BETWEEN 0 AND 4294967295),
  route_template TEXT NOT NULL,
  http_method TEXT NOT NULL,
  source TEXT NOT NULL
){keyed};

-- Commits that are not in the log yet, of databases without a charge journal, and usage of imported accounts.
CREATE TABLE log_batch (
  id {serial},
  at {integer} NOT NULL,
  changes {blob} NOT NULL
);
