//! Fixtures for the contracts about payments: wallets, quotes, matching payments and claims, and challenges.

use std::time::Duration;

use metering_core::access::{Account, AccountId, Payer};
use metering_core::chains::{Address, TokenUnits, TxHash, TxRef};
use metering_core::clock::Timestamp;
use metering_core::money::{LedgerEntry, LedgerKind, NewLedgerEntry, PaymentRef};
use metering_core::payments::{
    Challenge, ConvertedAmount, NonceHash, Payment, PaymentRecord, PaymentTarget, PaymentUse, PaymentValue, Quote,
    QuoteState, SoldPlan,
};
use metering_core::store::{
    Claim, Claimed, KeyDelivery, NewAccount, PaymentCredit, PaymentCredited, PaymentStore, QuoteOpened, QuotePrecedence,
};

use super::scene::{BASE, MINUTE, NOON, atoms, entry, new_account};

pub(super) const TARGET: PaymentTarget = PaymentTarget {
    chain_id: 8453,
    token: Address::from_bytes([0xC0; 20]),
    recipient: Address::from_bytes([0xD0; 20]),
};
pub(super) const PLAN: &str = "starter";
/// The credits that the plan sells, and the free credits of a new account, in atoms.
pub(super) const SOLD: i64 = 100 * BASE;
pub(super) const BONUS: i64 = 2 * BASE;
/// The smallest step of time.
pub(super) const MOMENT: Duration = Duration::from_millis(1);

/// Never the zero address, which belongs to no wallet.
pub(super) const fn wallet(number: u8) -> Address {
    let mut bytes = [number; 20];
    bytes[0] = 0xAA;
    Address::from_bytes(bytes)
}

/// A transaction on the chain of [`TARGET`].
pub(super) const fn tx(number: u8) -> TxRef {
    tx_on(TARGET.chain_id, number)
}

pub(super) const fn tx_on(chain_id: u64, number: u8) -> TxRef {
    TxRef { chain_id, hash: TxHash::from_bytes([number; 32]) }
}

pub(super) fn after(duration: Duration) -> Timestamp {
    NOON.saturating_add(duration)
}

/// An open quote with its own nonce, payer and amount.
pub(super) fn quote(number: u8) -> Quote {
    Quote {
        nonce: NonceHash::from_bytes([number; 32]),
        agent_name: "agent".parse().unwrap(),
        email: None,
        payer: wallet(number),
        top_up: None,
        target: TARGET,
        amount: TokenUnits::new(5_000_000 + u128::from(number)),
        plan_id: PLAN.to_owned(),
        credits: atoms(SOLD),
        bonus_credits: atoms(0),
        created_at: NOON,
        expires_at: after(MINUTE * 30),
        state: QuoteState::Open,
    }
}

/// The payment that pays a quote, mined when the quote was made.
pub(super) fn payment_of(quote: &Quote, tx: TxRef) -> Payment {
    let PaymentTarget { token, recipient, .. } = quote.target;
    let (payer, amount) = (quote.payer, quote.amount);
    let (block_number, block_hash) = (17, Some([17; 32]));
    Payment { tx, payer, recipient, token, amount, block_number, block_hash, mined_at: quote.created_at }
}

/// A payment by wallet `number`, of the amount of quote `number`.
pub(super) fn payment_by(number: u8, tx: TxRef) -> Payment {
    payment_of(&quote(number), tx)
}

/// A ledger entry for a plan bought by transaction `tx`.
pub(super) fn purchase(kind: LedgerKind, amount: i64, tx: TxRef) -> NewLedgerEntry {
    let payment = Some(PaymentRef { tx, plan_id: Some(PLAN.to_owned()) });
    NewLedgerEntry { payment, ..entry(kind, amount) }
}

/// The plan that they buy.
pub(super) fn sold() -> SoldPlan {
    let (label, token_symbol) = ("Größer — “x”".to_owned(), "USD₮0".to_owned());
    SoldPlan { label, bonus_credits: Some(atoms(1)), token_symbol, token_decimals: 6 }
}

/// Their value.
pub(super) fn value() -> PaymentValue {
    let (amount, rate, source) = ("4.30".parse().unwrap(), "0.8612".parse().unwrap(), "Größe, “x”".to_owned());
    let converted = Some(ConvertedAmount { amount, rate, source, as_of: NOON });
    PaymentValue { currency: "EUR".parse().unwrap(), converted }
}

/// A claim of a quote by its owner, who gets the key.
pub(super) fn claim(quote: &Quote, tx: TxRef) -> Claim {
    let account = NewAccount {
        email: quote.email.clone(),
        payer: Some(Payer { address: quote.payer, chain_id: tx.chain_id }),
        entries: vec![purchase(LedgerKind::PurchasePaySignup, SOLD, tx), entry(LedgerKind::SignupBonus, BONUS)],
        ..new_account()
    };
    Claim {
        nonce: quote.nonce,
        payment: payment_of(quote, tx),
        account,
        sold: Some(sold()),
        value: Some(value()),
        delivery: KeyDelivery::Now,
        now: NOON,
    }
}

/// A claim of a quote by the watcher, which gives the key to no one.
pub(super) fn late_claim(quote: &Quote, tx: TxRef) -> Claim {
    Claim { delivery: KeyDelivery::Later, ..claim(quote, tx) }
}

/// A top-up that gives way to quotes and links no wallet.
pub(super) fn credit(account: &AccountId, payment: Payment) -> PaymentCredit {
    PaymentCredit {
        account: account.clone(),
        used_as: PaymentUse::Topup,
        entry: purchase(LedgerKind::PurchaseTopup, SOLD, payment.tx),
        payment,
        sold: Some(sold()),
        value: Some(value()),
        link_payer: false,
        quotes: QuotePrecedence::Quote,
        now: NOON,
    }
}

/// A challenge for a wallet, valid for ten minutes.
pub(super) fn challenge(account: &AccountId, address: Address, nonce: &str) -> Challenge {
    let expires_at = after(MINUTE * 10);
    let message = Challenge::message("Metering", address, nonce, expires_at, "http://localhost/terms");
    Challenge { nonce: nonce.to_owned(), address, account: account.clone(), message, expires_at, failures: 0 }
}

/// Opens a quote and expects success.
pub(super) async fn open(store: &dyn PaymentStore, quote: Quote) -> Quote {
    assert_eq!(store.open_quote(quote.clone()).await.unwrap(), QuoteOpened::Opened, "{quote:?}");
    quote
}

/// Claims a quote and expects the account.
pub(super) async fn claimed(store: &dyn PaymentStore, claim: Claim) -> Account {
    match store.claim_quote(claim).await.unwrap() {
        Claimed::Account(account) => account,
        refusal => panic!("the quote was not claimed: {refusal:?}"),
    }
}

/// An account created by paying quote `number` with transaction `number`.
pub(super) async fn buyer(store: &dyn PaymentStore, number: u8) -> Account {
    let quote = open(store, quote(number)).await;
    claimed(store, claim(&quote, tx(number))).await
}

/// Credits a payment and expects success.
pub(super) async fn credited(store: &dyn PaymentStore, credit: PaymentCredit) -> Account {
    match store.credit_payment(credit).await.unwrap() {
        PaymentCredited::Account(account) => account,
        refusal => panic!("the payment was not credited: {refusal:?}"),
    }
}

/// The state of a quote that must be stored.
pub(super) async fn state_of(store: &dyn PaymentStore, quote: &Quote) -> QuoteState {
    store.quote(&quote.nonce).await.unwrap().expect("the quote is stored").state
}

/// All accounts, entries and records, none of which a refusal may change.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Books {
    pub(super) accounts: Vec<Account>,
    pub(super) ledger: Vec<LedgerEntry>,
    pub(super) payments: Vec<PaymentRecord>,
}

impl Books {
    pub(super) async fn read(store: &dyn PaymentStore) -> Self {
        Self {
            accounts: store.accounts(None, u32::MAX).await.unwrap().items,
            ledger: store.ledger(None, u32::MAX).await.unwrap().items,
            payments: store.payments(None, u32::MAX).await.unwrap().items,
        }
    }

    /// The numbers of accounts, entries and records.
    pub(super) fn counts(&self) -> (usize, usize, usize) {
        (self.accounts.len(), self.ledger.len(), self.payments.len())
    }
}
