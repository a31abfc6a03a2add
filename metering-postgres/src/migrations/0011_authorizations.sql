-- Version 11: authorizations, signed payments that come with requests, and what executes them.

-- One row for ever, which is what makes an authorization credit one account once. `authorization` is a reserved word.
CREATE TABLE payment_authorization (
  -- In the order of acceptance.
  id BIGINT PRIMARY KEY,
  chain_id BIGINT NOT NULL,
  token BYTEA NOT NULL,
  payer BYTEA NOT NULL,
  nonce BYTEA NOT NULL,
  recipient BYTEA NOT NULL,
  amount BYTEA NOT NULL,
  -- Seconds since the Unix epoch. Unsigned, so the largest ones are stored as negative numbers, as chain ids are.
  valid_after BIGINT NOT NULL,
  valid_before BIGINT NOT NULL,
  signature BYTEA NOT NULL,
  account BIGINT NOT NULL REFERENCES account (id),
  -- In atoms.
  credits BIGINT NOT NULL,
  -- The fingerprint of the request that it came with; NULL if that had a key.
  request BYTEA,
  -- The hash of the id that its client gave it.
  identifier BYTEA CHECK (octet_length(identifier) = 32),
  received_at BIGINT NOT NULL,
  -- Until when a process works on it. Kept when it is credited or fails, because it may become pending again.
  claimed_until BIGINT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('pending', 'credited', 'failed')),
  failure TEXT CHECK ((failure IS NULL) = (state <> 'failed')),
  failed_at BIGINT CHECK ((failed_at IS NULL) = (state <> 'failed')),
  -- The payment that was credited for it.
  tx_chain_id BIGINT CHECK (tx_chain_id IS NOT NULL OR state <> 'credited'),
  tx_hash BYTEA CHECK ((tx_hash IS NULL) = (tx_chain_id IS NULL)),
  -- The wallet that pays the gas, and the place of the transaction among those of this wallet, as in `gas_place`.
  gas_wallet BYTEA,
  gas_nonce BYTEA CHECK ((gas_nonce IS NULL) = (gas_wallet IS NULL)),
  UNIQUE (chain_id, token, payer, nonce),
  -- An id is that of one authorization of its payer.
  UNIQUE (payer, identifier),
  -- A payment is credited for one authorization.
  UNIQUE (tx_hash, tx_chain_id),
  -- Of two transactions at one place, only one can be executed.
  UNIQUE (chain_id, gas_wallet, gas_nonce),
  FOREIGN KEY (tx_chain_id, tx_hash) REFERENCES payment (chain_id, tx_hash)
);

-- Those that wait for a process.
CREATE INDEX payment_authorization_claim ON payment_authorization (claimed_until, id) WHERE state = 'pending';

-- The transactions that were signed to execute authorizations.
CREATE TABLE authorization_submission (
  payment_authorization BIGINT NOT NULL REFERENCES payment_authorization (id),
  -- 1 for its first one.
  number BIGINT NOT NULL,
  hash BYTEA NOT NULL,
  raw BYTEA NOT NULL,
  signed_at BIGINT NOT NULL,
  PRIMARY KEY (payment_authorization, number),
  UNIQUE (payment_authorization, hash)
);

-- The wallets that pay gas.
CREATE TABLE gas_place (
  chain_id BIGINT NOT NULL,
  wallet BYTEA NOT NULL,
  -- The first place that no authorization ever had: eight bytes, big-endian, so that they compare like the number.
  next BYTEA NOT NULL CHECK (octet_length(next) = 8),
  PRIMARY KEY (chain_id, wallet)
);

-- The places that were given back and not assigned again.
CREATE TABLE free_gas_place (
  chain_id BIGINT NOT NULL,
  wallet BYTEA NOT NULL,
  nonce BYTEA NOT NULL CHECK (octet_length(nonce) = 8),
  PRIMARY KEY (chain_id, wallet, nonce),
  FOREIGN KEY (chain_id, wallet) REFERENCES gas_place (chain_id, wallet)
);

-- Nodes of version 10 ignore these tables and keep charging. They cannot read payments with the new use `authorization`,
-- which exist once payments are accepted with requests: they list no payments then, and leave the settlement of such
-- chains to nodes of this version. So they cannot reverse one of these payments and leave its authorization credited.
