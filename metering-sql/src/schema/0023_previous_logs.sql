-- The log that an epoch follows, as it ended: the epoch before, or of a moved store the last one in the other database.
ALTER TABLE log_epoch ADD COLUMN previous_origin TEXT;
ALTER TABLE log_epoch ADD COLUMN previous_size {integer} CHECK ((previous_size IS NULL) = (previous_origin IS NULL));
ALTER TABLE log_epoch ADD COLUMN previous_root {blob}
  CHECK ((previous_root IS NULL) = (previous_origin IS NULL) AND (previous_root IS NULL OR length(previous_root) = 32));

UPDATE log_epoch SET previous_origin = b.origin, previous_size = b.size, previous_root = b.root
FROM log_epoch b WHERE b.number = log_epoch.number - 1;
