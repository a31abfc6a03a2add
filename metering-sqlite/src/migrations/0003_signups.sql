-- Signing up without paying.

CREATE TABLE signup (
  token BLOB PRIMARY KEY,
  user_code TEXT NOT NULL UNIQUE,
  email TEXT NOT NULL,
  agent_name TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  approved_at INTEGER
) STRICT, WITHOUT ROWID;

CREATE INDEX signup_expiry ON signup (expires_at);

-- Solutions of bot challenges that were used, until the challenge is over.
CREATE TABLE used_solution (
  solution BLOB PRIMARY KEY,
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX used_solution_expiry ON used_solution (expires_at);
