-- Version 22 on SQLite, 20 on PostgreSQL: what payments were worth when they were credited, for receipts.

-- A code of ISO 4217. NULL if the operator did not want to know.
ALTER TABLE payment ADD COLUMN value_currency TEXT;
-- Decimals, as they are shown. All of these are NULL if no rate was known then.
ALTER TABLE payment ADD COLUMN value_amount TEXT CHECK (value_amount IS NULL OR value_currency IS NOT NULL);
ALTER TABLE payment ADD COLUMN value_rate TEXT CHECK ((value_rate IS NULL) = (value_amount IS NULL));
-- Whose rate it was, and its time in milliseconds.
ALTER TABLE payment ADD COLUMN value_source TEXT CHECK ((value_source IS NULL) = (value_amount IS NULL));
ALTER TABLE payment ADD COLUMN value_as_of {integer} CHECK ((value_as_of IS NULL) = (value_amount IS NULL));
