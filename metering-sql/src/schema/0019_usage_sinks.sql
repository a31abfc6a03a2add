-- Sinks for usage.

-- The state of the attempts of a sink. The columns are those of a delivery.
CREATE TABLE usage_sink (
  name TEXT NOT NULL PRIMARY KEY,
  state TEXT NOT NULL CHECK (state = 'pending'),
  attempts {integer} NOT NULL CHECK (attempts BETWEEN 0 AND 4294967295),
  since {integer} NOT NULL,
  next_at {integer} NOT NULL,
  last_at {integer},
  last_status {integer},
  last_error TEXT,
  last_response TEXT CHECK (last_response IS NULL OR last_error IS NOT NULL)
){keyed};

-- What a sink was sent of a daily total.
CREATE TABLE usage_sent (
  sink TEXT NOT NULL,
  account {integer} NOT NULL REFERENCES account (id),
  day {integer} NOT NULL,
  route_template TEXT NOT NULL,
  http_method TEXT NOT NULL,
  source TEXT NOT NULL,
  key {integer} NOT NULL,
  -- As text: it outlives its key.
  key_id TEXT NOT NULL,
  -- How many of its events were delivered, and their sum.
  sequence {integer} NOT NULL CHECK (sequence BETWEEN 0 AND 4294967295),
  calls {integer} NOT NULL,
  amount {integer} NOT NULL,
  -- The total that is on its way, and when it was read.
  staged_calls {integer},
  staged_amount {integer} CHECK ((staged_amount IS NULL) = (staged_calls IS NULL)),
  staged_at {integer} CHECK ((staged_at IS NULL) = (staged_calls IS NULL)),
  expires_at {integer} NOT NULL,
  PRIMARY KEY (sink, day, account, route_template, http_method, source, key)
){keyed};

CREATE INDEX usage_sent_staged ON usage_sent (sink, day) WHERE staged_at IS NOT NULL;

CREATE INDEX usage_sent_expires ON usage_sent (expires_at);
