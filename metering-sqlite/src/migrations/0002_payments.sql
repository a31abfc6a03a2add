-- Money that arrives by chain: quotes, the payments that were used, linked wallets, challenges, and how far each chain
-- was scanned.
--
-- Addresses and hashes are their bytes. Amounts of tokens are 16 bytes, big-endian: 128 bits do not fit an INTEGER, and
-- these compare as the numbers do. Ids of chains and numbers of blocks have 64 bits without a sign and are kept as the
-- INTEGER of the same bits.

-- A payer is a wallet and the chain that it paid on. Version 1 had a column for the wallet, which nothing wrote; an
-- address without its chain would be half a payer, so none is kept.
UPDATE account SET payer_address = NULL WHERE payer_address IS NOT NULL;

ALTER TABLE account ADD COLUMN payer_chain_id INTEGER
  CHECK ((payer_chain_id IS NULL) = (payer_address IS NULL));

-- One account per wallet, whichever chain: the wallet's signature is what gives its owner a new key.
CREATE UNIQUE INDEX account_live_payer ON account (payer_address)
  WHERE payer_address IS NOT NULL AND revoked_at IS NULL;

-- The payment behind an entry. No foreign key: an entry may be written by hand. That each purchase has its record is
-- verified instead.
ALTER TABLE ledger ADD COLUMN tx_chain_id INTEGER;
ALTER TABLE ledger ADD COLUMN tx_hash BLOB CHECK ((tx_hash IS NULL) = (tx_chain_id IS NULL));
ALTER TABLE ledger ADD COLUMN plan_id TEXT;

-- For the verification, which looks for each payment's entry. Most entries have none.
CREATE INDEX ledger_payment ON ledger (tx_hash, tx_chain_id) WHERE tx_hash IS NOT NULL;

-- Append-only, for ever: this is what makes a transaction count once. The ids are the order of writing.
CREATE TABLE payment (
  id INTEGER PRIMARY KEY,
  chain_id INTEGER NOT NULL,
  tx_hash BLOB NOT NULL,
  payer BLOB NOT NULL,
  recipient BLOB NOT NULL,
  token BLOB NOT NULL,
  amount BLOB NOT NULL,
  block_number INTEGER NOT NULL,
  mined_at INTEGER NOT NULL,
  account INTEGER NOT NULL REFERENCES account (id),
  used_as TEXT NOT NULL,
  plan_id TEXT,
  recorded_at INTEGER NOT NULL,
  UNIQUE (chain_id, tx_hash)
) STRICT;

CREATE TABLE quote (
  -- Of the nonce that claims it, the hash: who reads the file can claim nothing.
  nonce BLOB PRIMARY KEY,
  agent_name TEXT NOT NULL,
  email TEXT,
  payer BLOB NOT NULL,
  chain_id INTEGER NOT NULL,
  token BLOB NOT NULL,
  recipient BLOB NOT NULL,
  amount BLOB NOT NULL,
  plan_id TEXT NOT NULL,
  credits INTEGER NOT NULL,
  bonus_credits INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  -- What the grace makes of `expires_at`; kept so that it can be searched for.
  honoured_until INTEGER NOT NULL,
  -- `open`, then perhaps `paid` (the account is made, and nobody has its key), then `claimed`.
  state TEXT NOT NULL,
  account INTEGER REFERENCES account (id),
  tx_chain_id INTEGER,
  tx_hash BLOB,
  FOREIGN KEY (tx_chain_id, tx_hash) REFERENCES payment (chain_id, tx_hash),
  CHECK (state IN ('open', 'paid', 'claimed')),
  CHECK ((state = 'open') = (account IS NULL)),
  CHECK ((state = 'open') = (tx_chain_id IS NULL)),
  CHECK ((state = 'open') = (tx_hash IS NULL))
) STRICT, WITHOUT ROWID;

-- Whether an amount is in use at a target, by whomever; and with the payer, which quote a payment pays.
CREATE INDEX quote_amount ON quote (chain_id, token, recipient, amount, payer);

-- The accounts whose key is still to be given out. Few at a time.
CREATE INDEX quote_awaited ON quote (account) WHERE state = 'paid';

-- Those that are awaited do not expire.
CREATE INDEX quote_expiry ON quote (honoured_until) WHERE state <> 'paid';

-- Wallets that proved once that they pay for an account. The ids are the order of linking.
CREATE TABLE wallet_link (
  id INTEGER PRIMARY KEY,
  wallet BLOB NOT NULL,
  account INTEGER NOT NULL REFERENCES account (id),
  UNIQUE (wallet, account)
) STRICT;

-- Texts to sign for a new key. The account is named as its owner knows it: whether there is one is asked when the
-- challenge is answered.
CREATE TABLE challenge (
  nonce TEXT PRIMARY KEY,
  address BLOB NOT NULL,
  org_id TEXT NOT NULL,
  message TEXT NOT NULL,
  expires_at INTEGER NOT NULL,
  failures INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX challenge_expiry ON challenge (expires_at);

-- The last block of each chain that was scanned for payments.
CREATE TABLE scan_mark (
  chain_id INTEGER PRIMARY KEY,
  block INTEGER NOT NULL
) STRICT;
