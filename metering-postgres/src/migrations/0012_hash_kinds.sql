-- Version 12: which function made the hash of a secret. Keys that were imported from another service keep theirs until
-- they are rotated.

ALTER TABLE key_secret ADD COLUMN hash_kind TEXT NOT NULL DEFAULT 'sha3-256' CHECK (hash_kind IN ('sha3-256', 'sha256'));
