-- Version 18: ended keys and secrets are deleted when an account has many of them.

-- With `key_secret_live`, finds all secrets of a key.
CREATE INDEX key_secret_ended ON key_secret (account, key, revoked_at) WHERE revoked_at IS NOT NULL;

-- For the foreign keys: whether a key is the parent of another, and whether a hold names it.
CREATE INDEX api_key_parent ON api_key (account, parent);
CREATE INDEX hold_key ON hold (account, key);

-- The accounts that may have more ended keys than are kept: numbers are given out in order. Nearly empty.
CREATE INDEX api_key_many ON api_key (account) WHERE number >= 1000;
