-- Version 19 on SQLite, 17 on PostgreSQL: sessions of browsers, and links that sign in.

-- By the hash of their token. A session stands for the secret of a key, and is not live without it; the secret may have
-- been deleted since.
CREATE TABLE browser_session (
  token {blob} PRIMARY KEY,
  id {blob} NOT NULL UNIQUE,
  account {integer} NOT NULL REFERENCES account (id),
  secret {blob} NOT NULL,
  device TEXT NOT NULL,
  created_at {integer} NOT NULL,
  used_at {integer} NOT NULL,
  expires_at {integer} NOT NULL
){keyed};

CREATE INDEX browser_session_account ON browser_session (account);
CREATE INDEX browser_session_expiry ON browser_session (expires_at);

-- A link may be for signing in, too: made anew, since SQLite cannot change the condition of a column.
CREATE TABLE email_link_made_anew (
  token {blob} PRIMARY KEY,
  account {integer} NOT NULL REFERENCES account (id),
  purpose TEXT NOT NULL CHECK (purpose IN ('verify_address', 'recover_key', 'sign_in')),
  expires_at {integer} NOT NULL,
  UNIQUE (account, purpose)
){keyed};

INSERT INTO email_link_made_anew (token, account, purpose, expires_at)
  SELECT token, account, purpose, expires_at FROM email_link;

DROP TABLE email_link;
ALTER TABLE email_link_made_anew RENAME TO email_link;
CREATE INDEX email_link_expiry ON email_link (expires_at);
