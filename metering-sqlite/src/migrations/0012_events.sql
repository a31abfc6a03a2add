-- Version 12: events, webhooks and deliveries.

-- The balance below which the account's owner is told, in atoms; NULL for never. And the level raised since
-- credits were last added: 1 is low, 2 short of a request, 3 both, 4 exhausted. Both are current: the journal has no part in them.
ALTER TABLE meter ADD COLUMN alert_below INTEGER;
ALTER TABLE meter ADD COLUMN alert_raised INTEGER NOT NULL DEFAULT 0 CHECK (alert_raised BETWEEN 0 AND 4);

-- The same for what remains of a key's budget, in the budget's period.
ALTER TABLE api_key ADD COLUMN alert_below INTEGER CHECK (alert_below IS NULL OR budget_limit IS NOT NULL);
ALTER TABLE key_meter ADD COLUMN raised INTEGER NOT NULL DEFAULT 0 CHECK (raised BETWEEN 0 AND 4);

CREATE TABLE webhook (
  -- In the order of creation; 0 is the operator's own one.
  id INTEGER PRIMARY KEY,
  public_id BLOB NOT NULL UNIQUE CHECK (length(public_id) = 16),
  -- Whose events it receives; NULL for the operator's own one, which receives those of all accounts.
  account INTEGER REFERENCES account (id),
  url TEXT NOT NULL,
  -- Separated by spaces. None means all.
  kinds TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('active', 'disabled', 'gone')),
  -- What requests are signed with, in plain text: whoever signs needs it. The operator's are in the configuration.
  secret TEXT CHECK ((secret IS NULL) = (account IS NULL)),
  -- The secret that it replaced, and until when requests are signed with that one too.
  old_secret TEXT CHECK (old_secret IS NULL OR secret IS NOT NULL),
  old_secret_until INTEGER CHECK ((old_secret_until IS NULL) = (old_secret IS NULL)),
  created_at INTEGER NOT NULL,
  CHECK ((id = 0) = (account IS NULL))
) STRICT;

-- By owner, and in the order of creation. 0 stands for the operator, since NULL cannot be compared.
CREATE INDEX webhook_owner ON webhook (coalesce(account, 0), id);

CREATE TABLE event (
  -- Never used twice, so that the id of an event, which follows from it, is not either.
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  -- NULL for a test of the operator's webhook.
  account INTEGER REFERENCES account (id),
  kind TEXT NOT NULL,
  -- A JSON object, as webhooks receive it.
  data TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;

CREATE INDEX event_account ON event (account, number);
CREATE INDEX event_age ON event (created_at);

-- The deliveries of one account's events to one webhook are a line. They are sent one at a time, in the order of events.
CREATE TABLE delivery (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  webhook INTEGER NOT NULL REFERENCES webhook (id),
  event INTEGER NOT NULL REFERENCES event (number),
  -- That of the event.
  account INTEGER,
  state TEXT NOT NULL CHECK (state IN ('pending', 'delivered', 'parked')),
  attempts INTEGER NOT NULL,
  -- Since when it is to be sent, and when it may be sent next or the claim of who sends it now runs out.
  since INTEGER NOT NULL,
  next_at INTEGER NOT NULL,
  -- What came of the last attempt; all are NULL before the first one has ended.
  last_at INTEGER,
  last_status INTEGER CHECK (last_status IS NULL OR last_at IS NOT NULL),
  last_error TEXT CHECK (last_error IS NULL OR last_at IS NOT NULL),
  -- Whether it is the first pending delivery of its line. No delivery to a webhook that is not active has this flag,
  -- except while the operator's webhook is being removed.
  is_head INTEGER NOT NULL DEFAULT 0 CHECK (is_head IN (0, 1) AND (is_head = 0 OR state = 'pending')),
  UNIQUE (event, webhook)
) STRICT;

-- What is due, oldest first, for the operator and for customers.
CREATE INDEX delivery_due ON delivery ((webhook = 0), next_at) WHERE is_head;
-- The pending deliveries of each line.
CREATE INDEX delivery_line ON delivery (webhook, account, event) WHERE state = 'pending';
-- For lists, newest first.
CREATE INDEX delivery_webhook ON delivery (webhook, id);
CREATE INDEX delivery_account ON delivery (account, id);
CREATE INDEX delivery_state ON delivery (state, id);
