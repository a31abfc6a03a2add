-- Version 31 on SQLite, 29 on PostgreSQL: clients and grants of OAuth.

-- Clients that registered.
CREATE TABLE oauth_client (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  -- One in each line.
  redirect_uris TEXT NOT NULL,
  expires_at {integer} NOT NULL
){keyed};

CREATE INDEX oauth_client_expiry ON oauth_client (expires_at);

-- What owners consented to. The client's key may have been deleted since.
CREATE TABLE oauth_grant (
  id {blob} PRIMARY KEY,
  account {integer} NOT NULL REFERENCES account (id),
  parent TEXT NOT NULL,
  client TEXT NOT NULL,
  redirect_uri TEXT NOT NULL,
  resource TEXT NOT NULL,
  challenge TEXT NOT NULL,
  terms TEXT NOT NULL,
  -- The hash of the code, or of the refresh token that is valid now.
  token {blob} NOT NULL,
  -- The client's key, and the hash of its last access token.
  key TEXT,
  secret {blob} UNIQUE CHECK ((secret IS NULL) = (key IS NULL)),
  expires_at {integer} NOT NULL
){keyed};

CREATE INDEX oauth_grant_expiry ON oauth_grant (expires_at);
