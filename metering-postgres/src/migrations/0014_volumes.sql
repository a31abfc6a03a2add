-- Version 14: requests of the month to routes with volume tiers.

-- The newest month that had any, for each account and route. Read and written only under the lock of the account's
-- `meter`, so its rows need no locks of their own. No foreign keys, like the other tables that charges write. Texts and not
-- a `usage_line`, which also has the kind of client: that makes no difference here. Room on each page, so that an update
-- stays on its page.
CREATE TABLE route_volume (
  account BIGINT NOT NULL,
  route_template TEXT NOT NULL,
  http_method TEXT NOT NULL,
  -- In months since January 1970.
  month BIGINT NOT NULL,
  requests BIGINT NOT NULL CHECK (requests BETWEEN 0 AND 4294967295),
  PRIMARY KEY (account, route_template, http_method)
) WITH (fillfactor = 50);

-- Nodes of version 13 ignore this table and keep charging. They cannot read a catalogue with volume tiers.
