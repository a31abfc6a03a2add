-- Version 10: events, and the webhooks that they are sent to.

-- When the owner of an account is told about its balance: below this many atoms, if any; and the level raised since
-- credits were last added: 1 is low, 2 short of a request, 3 both, 4 exhausted. Read and written with the balance, under the same lock.
-- Not numbers of a fixed size, because these would be aligned, and the end of the row, which holds the tail, would move
-- and be logged again with each charge.
ALTER TABLE meter ADD COLUMN alert_below NUMERIC(19);
ALTER TABLE meter ADD COLUMN alert_raised NUMERIC(1) NOT NULL DEFAULT 0 CHECK (alert_raised BETWEEN 0 AND 4);

-- The same for the budgets of keys.
ALTER TABLE api_key ADD COLUMN alert_below BIGINT;
ALTER TABLE api_key ADD CHECK (alert_below IS NULL OR budget IS NOT NULL);
ALTER TABLE key_meter ADD COLUMN raised BIGINT NOT NULL DEFAULT 0 CHECK (raised BETWEEN 0 AND 4);

CREATE TABLE webhook (
  -- In the order of creation; 0 for the operator's own one.
  id BIGINT PRIMARY KEY CHECK ((id = 0) = (account IS NULL)),
  public_id BYTEA NOT NULL UNIQUE CHECK (octet_length(public_id) = 16),
  -- NULL for the operator's own one.
  account BIGINT REFERENCES account (id),
  url TEXT NOT NULL,
  -- Separated by spaces; empty for all.
  kinds TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('active', 'disabled', 'gone')),
  -- What requests are signed with, in plain text, because signing needs it. The operator's secrets are in the
  -- configuration.
  secret TEXT,
  secret_expires_at BIGINT CHECK (secret_expires_at IS NULL OR secret IS NOT NULL),
  -- The secret that was replaced.
  old_secret TEXT CHECK (old_secret IS NULL OR secret IS NOT NULL),
  old_secret_expires_at BIGINT CHECK (old_secret_expires_at IS NULL OR old_secret IS NOT NULL),
  created_at BIGINT NOT NULL
);

CREATE INDEX webhook_account ON webhook (account, id);

-- A number is drawn while the account's `meter` is locked, so an account's events are numbered in the order of their
-- commits.
CREATE SEQUENCE event_number;

-- No foreign keys, like the other tables that charges write.
CREATE TABLE event (
  number BIGINT PRIMARY KEY DEFAULT nextval('event_number'),
  -- 0 for a test of the operator's webhook.
  account BIGINT NOT NULL,
  kind TEXT NOT NULL,
  -- JSON. As text, because what is sent and signed is these bytes.
  data TEXT NOT NULL,
  created_at BIGINT NOT NULL
);

CREATE INDEX event_account ON event (account, number);

CREATE INDEX event_created ON event (created_at);

CREATE SEQUENCE delivery_number;

-- Inserted with its event, and changed only by serialized writes.
CREATE TABLE delivery (
  id BIGINT PRIMARY KEY DEFAULT nextval('delivery_number'),
  webhook BIGINT NOT NULL REFERENCES webhook (id) ON DELETE CASCADE,
  event BIGINT NOT NULL REFERENCES event (number) ON DELETE CASCADE,
  -- The account of the event: a webhook gets the events of an account in order.
  account BIGINT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('pending', 'delivered', 'parked')),
  attempts BIGINT NOT NULL,
  since BIGINT NOT NULL,
  next_at BIGINT NOT NULL,
  -- The last attempt; all are NULL before the first one has ended.
  last_at BIGINT,
  last_status BIGINT CHECK (last_status IS NULL OR last_at IS NOT NULL),
  last_error TEXT CHECK (last_error IS NULL OR last_at IS NOT NULL),
  -- Whether it is the first pending one of its line: the events of one account on their way to one webhook. None is while
  -- a customer's webhook is switched off. Changed only while the account's `meter` is locked.
  is_head BOOLEAN NOT NULL DEFAULT FALSE CHECK (NOT is_head OR state = 'pending')
);

-- What is due for the operator, and what is due for customers.
CREATE INDEX delivery_due ON delivery ((webhook = 0), next_at, id) WHERE is_head;

CREATE INDEX delivery_pending ON delivery (webhook, account, event, id) WHERE state = 'pending';

-- For lists, newest first. `NULLS LAST` makes this order differ from those of the other indexes, which would be read in
-- full for a webhook with few deliveries.
CREATE INDEX delivery_webhook ON delivery (webhook, state, id DESC NULLS LAST);

CREATE INDEX delivery_state ON delivery (state, id);

CREATE INDEX delivery_event ON delivery (event);

-- Nodes of version 9 must stop: they would change accounts without writing the events of that. All their writes name
-- this column.
ALTER TABLE outcome RENAME COLUMN marked_at TO noted_at;
