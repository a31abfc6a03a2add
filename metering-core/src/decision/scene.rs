//! An account and its payments, for the tests of the decisions.

use crate::access::account::{Account, Payer, Totals};
use crate::access::issued_key::Key;
use crate::access::key::KeyHash;
use crate::chains::address::Address;
use crate::chains::transaction::{TxHash, TxRef};
use crate::chains::units::TokenUnits;
use crate::clock::Timestamp;
use crate::money::credits::Credits;
use crate::money::ledger::{LedgerKind, NewLedgerEntry, PaymentRef};
use crate::payments::payment::{Payment, PaymentRecord, PaymentTarget, PaymentUse, SoldPlan};
use crate::payments::quote::{NonceHash, Quote, QuoteState};
use crate::payments::value::PaymentValue;
use crate::store::NewAccount;

pub(super) const NOW: Timestamp = Timestamp::from_unix_millis(1_000_000);
pub(super) const PAYER: Address = Address::from_bytes([0xaa; 20]);
pub(super) const KEY: KeyHash = KeyHash::from_bytes([1; 32]);
const TARGET: PaymentTarget =
    PaymentTarget { chain_id: 1, token: Address::from_bytes([0x70; 20]), recipient: Address::from_bytes([0x11; 20]) };

pub(super) fn new_account() -> NewAccount {
    let (id, name) = ("org_xxxxxxxxxxxxxxxxxxxx".parse().unwrap(), "agent".parse().unwrap());
    NewAccount::new(id, name, KEY, NOW)
}

/// An account with two atoms, one of them bought.
pub(super) fn account() -> Account {
    let [one, two] = [1, 2].map(Credits::from_atoms);
    let NewAccount { id, agent_name, created_at, .. } = new_account();
    Account {
        payer: Some(Payer { address: PAYER, chain_id: 1 }),
        totals: Totals { balance: two, purchased: one, granted: one, used: Credits::ZERO, held: Credits::ZERO },
        ..Account::new(id, agent_name, created_at)
    }
}

/// The account's first key.
pub(super) fn first_key() -> Key {
    Key::first(account().id, &KEY, NOW)
}

pub(super) fn revoked() -> Account {
    Account { revoked_at: Some(NOW), ..account() }
}

/// A grant.
pub(super) fn entry(atoms: i64) -> NewLedgerEntry {
    NewLedgerEntry::new(LedgerKind::Adjustment, Credits::from_atoms(atoms), "")
}

/// The purchase of a plan with the first transaction.
pub(super) fn purchase(atoms: i64) -> NewLedgerEntry {
    let payment = Some(PaymentRef { tx: tx(1), plan_id: Some("starter".to_owned()) });
    NewLedgerEntry { payment, ..NewLedgerEntry::new(LedgerKind::PurchaseTopup, Credits::from_atoms(atoms), "") }
}

/// The plan of that purchase.
pub(super) fn sold() -> SoldPlan {
    let (label, token_symbol) = ("Starter".to_owned(), "USDC".to_owned());
    SoldPlan { label, bonus_credits: Some(Credits::from_atoms(1)), token_symbol, token_decimals: 6 }
}

/// The value of that purchase.
pub(super) fn value() -> PaymentValue {
    PaymentValue { currency: "EUR".parse().unwrap(), converted: None }
}

pub(super) fn tx(number: u8) -> TxRef {
    TxRef { chain_id: 1, hash: TxHash::from_bytes([number; 32]) }
}

pub(super) fn payment(tx: TxRef) -> Payment {
    Payment {
        tx,
        payer: PAYER,
        recipient: TARGET.recipient,
        token: TARGET.token,
        amount: TokenUnits::new(5_003_817),
        block_number: 90,
        block_hash: Some([7; 32]),
        mined_at: NOW,
    }
}

/// The record of the first transaction.
pub(super) fn record(used_as: PaymentUse) -> PaymentRecord {
    PaymentRecord {
        plan_id: Some("starter".to_owned()),
        sold: Some(sold()),
        value: Some(value()),
        ..PaymentRecord::of(payment(tx(1)), account().id, used_as, NOW)
    }
}

pub(super) fn quote() -> Quote {
    Quote {
        nonce: NonceHash::from_bytes([2; 32]),
        agent_name: new_account().agent_name,
        email: None,
        payer: PAYER,
        top_up: None,
        target: TARGET,
        amount: TokenUnits::new(5_003_817),
        plan_id: "starter".to_owned(),
        credits: Credits::from_atoms(5),
        bonus_credits: Credits::ZERO,
        created_at: NOW,
        expires_at: NOW,
        state: QuoteState::Open,
    }
}
