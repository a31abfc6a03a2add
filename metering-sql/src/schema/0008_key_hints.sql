-- What is shown of the secrets of keys.

-- As in sk_live_…ab12. NULL until the key gets a new secret.
ALTER TABLE api_key ADD COLUMN hint TEXT;
