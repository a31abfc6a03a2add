-- Version 5: what payments, usage and access need to survive reorganisations, hostile input and clock jumps.

-- Idempotency keys of metered routes, kept with the request ids of deductions: which request the key is for, how often it
-- was tried, and until when the last try may be under way (none once a response was passed on). Of a deduction all are
-- empty.
ALTER TABLE request_id ADD COLUMN fingerprint BLOB;
ALTER TABLE request_id ADD COLUMN tries INTEGER CHECK ((tries IS NULL) = (fingerprint IS NULL));
ALTER TABLE request_id ADD COLUMN open_until INTEGER CHECK (open_until IS NULL OR fingerprint IS NOT NULL);
