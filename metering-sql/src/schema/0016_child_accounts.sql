-- Version 33 on SQLite, 31 on PostgreSQL: child accounts.

-- Whose child an account is. A parent is no child.
CREATE TABLE child_account (
  account {integer} NOT NULL PRIMARY KEY REFERENCES account (id),
  parent {integer} NOT NULL REFERENCES account (id)
){keyed};

CREATE INDEX child_account_parent ON child_account (parent, account);

-- Credits that a parent gave to a child, or, below zero, got back; by the hash of the request's idempotency key.
CREATE TABLE credit_move (
  parent {integer} NOT NULL REFERENCES account (id),
  request {blob} NOT NULL,
  child {integer} NOT NULL REFERENCES account (id),
  amount {integer} NOT NULL,
  at {integer} NOT NULL,
  PRIMARY KEY (parent, request)
){keyed};
