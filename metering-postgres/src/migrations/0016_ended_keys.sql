-- Version 16: ended keys and secrets are deleted when an account has many of them.

-- For the foreign key: whether a key is the parent of another.
CREATE INDEX api_key_parent ON api_key (account, parent);

-- Whether a hold names a key.
CREATE INDEX hold_key ON hold (account, key);

-- The accounts that may have more ended keys than are kept: numbers are given out in order. Nearly empty.
CREATE INDEX api_key_many ON api_key (account) WHERE number >= 1000;
