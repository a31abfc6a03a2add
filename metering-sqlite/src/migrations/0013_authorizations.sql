-- Version 13: signed authorizations that came with requests, and the transactions that execute them.
--
-- A payment that executed one is recorded with the use `authorization`, which programs of earlier versions cannot read.
-- They do not open a file of this version.

-- One row for ever for each that was accepted, so that it credits one account once.
CREATE TABLE payment_authorization (
  id INTEGER PRIMARY KEY,
  chain_id INTEGER NOT NULL,
  token BLOB NOT NULL CHECK (length(token) = 20),
  payer BLOB NOT NULL CHECK (length(payer) = 20),
  nonce BLOB NOT NULL CHECK (length(nonce) = 32),
  recipient BLOB NOT NULL CHECK (length(recipient) = 20),
  amount BLOB NOT NULL CHECK (length(amount) = 16),
  -- In seconds since 1970. 64 bits without a sign, kept as the INTEGER of the same bits.
  valid_after INTEGER NOT NULL,
  valid_before INTEGER NOT NULL,
  signature BLOB NOT NULL,
  account INTEGER NOT NULL REFERENCES account (id),
  credits INTEGER NOT NULL,
  -- The fingerprint of the request that it came with, if that had no key.
  request BLOB CHECK (length(request) = 16),
  -- The hash of the id that its client gave it.
  identifier BLOB CHECK (length(identifier) = 32),
  received_at INTEGER NOT NULL,
  -- Until when a process goes on with it.
  claimed_until INTEGER NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('pending', 'credited', 'failed')),
  failure TEXT CHECK (failure IN ('expired', 'cancelled', 'refused')),
  failed_at INTEGER,
  -- The transaction whose payment was credited for it. If that was reversed, the authorization is not credited.
  tx_chain_id INTEGER,
  tx_hash BLOB,
  -- Its place among the transactions of a wallet that pays gas. The nonce is kept as `valid_before` is.
  gas_wallet BLOB CHECK (length(gas_wallet) = 20),
  gas_nonce INTEGER,
  UNIQUE (chain_id, token, payer, nonce),
  FOREIGN KEY (tx_chain_id, tx_hash) REFERENCES payment (chain_id, tx_hash),
  CHECK ((state = 'failed') = (failure IS NOT NULL) AND (state = 'failed') = (failed_at IS NOT NULL)),
  CHECK ((tx_chain_id IS NULL) = (tx_hash IS NULL) AND (state <> 'credited' OR tx_hash IS NOT NULL)),
  CHECK ((gas_wallet IS NULL) = (gas_nonce IS NULL))
) STRICT;

-- Those to go on with, in the order in which their claims end. Few are pending at a time.
CREATE INDEX payment_authorization_claim ON payment_authorization (claimed_until) WHERE state = 'pending';
-- A payment is that of one authorization.
CREATE UNIQUE INDEX payment_authorization_tx ON payment_authorization (tx_hash, tx_chain_id) WHERE tx_hash IS NOT NULL;
-- An id is that of one authorization of its payer.
CREATE UNIQUE INDEX payment_authorization_identifier ON payment_authorization (payer, identifier)
  WHERE identifier IS NOT NULL;
-- Two transactions of a wallet never have the same place.
CREATE UNIQUE INDEX payment_authorization_gas ON payment_authorization (gas_wallet, gas_nonce, chain_id)
  WHERE gas_wallet IS NOT NULL;

-- The transactions that were signed to execute an authorization, oldest first.
CREATE TABLE authorization_submission (
  payment_authorization INTEGER NOT NULL REFERENCES payment_authorization (id),
  number INTEGER NOT NULL,
  hash BLOB NOT NULL CHECK (length(hash) = 32),
  raw BLOB NOT NULL,
  signed_at INTEGER NOT NULL,
  PRIMARY KEY (payment_authorization, number),
  UNIQUE (payment_authorization, hash)
) STRICT, WITHOUT ROWID;

-- The first place of each wallet that no authorization ever had.
CREATE TABLE gas_place (
  chain_id INTEGER NOT NULL,
  wallet BLOB NOT NULL CHECK (length(wallet) = 20),
  next INTEGER NOT NULL,
  PRIMARY KEY (chain_id, wallet)
) STRICT, WITHOUT ROWID;

-- The places below that which were given back and not assigned again. The nonce is 8 bytes, big-endian: these compare as
-- the numbers do.
CREATE TABLE free_gas_place (
  chain_id INTEGER NOT NULL,
  wallet BLOB NOT NULL,
  nonce BLOB NOT NULL CHECK (length(nonce) = 8),
  PRIMARY KEY (chain_id, wallet, nonce),
  FOREIGN KEY (chain_id, wallet) REFERENCES gas_place (chain_id, wallet)
) STRICT, WITHOUT ROWID;
