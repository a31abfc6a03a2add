-- What receipts say besides their payment, and their consecutive numbers.

-- The terms of receipts. The last ones hold for payments from then on.
CREATE TABLE receipt_terms (
  id {integer} NOT NULL PRIMARY KEY CHECK (id BETWEEN 1 AND 4294967295),
  since {integer} NOT NULL,
  seller_name TEXT NOT NULL,
  -- Separated by line breaks.
  seller_address TEXT NOT NULL,
  seller_tax_id TEXT,
  seller_contact TEXT,
  tax_name TEXT,
  -- A decimal, such as 0.19.
  tax_rate TEXT CHECK ((tax_rate IS NULL) = (tax_name IS NULL)),
  -- Whether buyers may owe the tax themselves.
  reverse_charge {integer} NOT NULL CHECK (reverse_charge IN (0, 1)),
  -- What consecutive numbers begin with; NULL if there are none.
  number_prefix TEXT
){keyed};

-- Receipts and credit notes, written with their payment or reversal.
CREATE TABLE issued_receipt (
  chain_id {integer} NOT NULL,
  tx_hash {blob} NOT NULL,
  -- 0 for the receipt, else which credit note it is.
  part {integer} NOT NULL CHECK (part BETWEEN 0 AND 4294967295),
  account {integer} NOT NULL REFERENCES account (id),
  terms {integer} NOT NULL REFERENCES receipt_terms (id),
  -- Whether the buyer owes the tax.
  reverse_charge {integer} NOT NULL CHECK (reverse_charge IN (0, 1)),
  -- The consecutive number, if there is one: the prefix with its year, and the place in that series.
  series TEXT,
  sequence {integer} CHECK ((sequence IS NULL) = (series IS NULL) AND sequence BETWEEN 1 AND 4294967295),
  PRIMARY KEY (chain_id, tx_hash, part),
  UNIQUE (series, sequence)
){keyed};

CREATE INDEX issued_receipt_account ON issued_receipt (account);
