-- Version 32 on SQLite, 30 on PostgreSQL: what webhooks responded.

-- The beginning of the body of the last attempt's response, if it failed.
ALTER TABLE delivery ADD COLUMN last_response TEXT CHECK (last_response IS NULL OR last_error IS NOT NULL);
