-- Version 16: how many requests each account has made to routes with volume tiers, in the newest month that had any. The
-- commit that charges a request writes its row.

CREATE TABLE route_volume (
  account INTEGER NOT NULL REFERENCES account (id),
  route_template TEXT NOT NULL,
  http_method TEXT NOT NULL,
  -- Months since January 1970.
  month INTEGER NOT NULL,
  requests INTEGER NOT NULL CHECK (requests BETWEEN 0 AND 4294967295),
  PRIMARY KEY (account, route_template, http_method)
) STRICT, WITHOUT ROWID;
