-- Version 32 on SQLite, 30 on PostgreSQL: members of accounts, and the accounts' own logs.

CREATE TABLE account_member (
  id {blob} PRIMARY KEY,
  account {integer} NOT NULL REFERENCES account (id),
  role TEXT NOT NULL,
  -- An email address as it was given, or a wallet.
  identity TEXT NOT NULL,
  -- The same in lower case.
  identity_key TEXT NOT NULL,
  joined_at {integer} NOT NULL,
  UNIQUE (account, identity_key)
){keyed};

CREATE INDEX account_member_identity ON account_member (identity_key);

CREATE TABLE invitation (
  id {blob} PRIMARY KEY,
  -- The hash of its link's token.
  token {blob} NOT NULL UNIQUE,
  account {integer} NOT NULL REFERENCES account (id),
  role TEXT NOT NULL,
  -- NULL for a link to pass on.
  email TEXT,
  created_at {integer} NOT NULL,
  expires_at {integer} NOT NULL
){keyed};

CREATE INDEX invitation_account ON invitation (account);
CREATE INDEX invitation_expiry ON invitation (expires_at);

-- Sign-ins by email or with a wallet that were begun.
CREATE TABLE sign_in_proof (
  token {blob} PRIMARY KEY,
  identity TEXT NOT NULL,
  -- The hash of the token of the invitation that it accepts.
  invitation {blob},
  expires_at {integer} NOT NULL
){keyed};

CREATE INDEX sign_in_proof_expiry ON sign_in_proof (expires_at);

-- The newest entries of each account.
CREATE TABLE account_log (
  account {integer} NOT NULL REFERENCES account (id),
  number {integer} NOT NULL,
  at {integer} NOT NULL,
  actor TEXT NOT NULL,
  actor_name TEXT NOT NULL,
  action TEXT NOT NULL,
  subject TEXT NOT NULL,
  status {integer},
  PRIMARY KEY (account, number)
){keyed};

-- The member whose session it is; NULL for that of a key.
ALTER TABLE browser_session ADD COLUMN member {blob};
CREATE INDEX browser_session_member ON browser_session (member);
