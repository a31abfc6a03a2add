//! Fixtures of the tests on disk: files, accounts, charges and payments.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::time::Duration;

use metering_core::access::{KeyHash, Payer};
use metering_core::chains::{Address, TokenUnits, TxHash, TxRef};
use metering_core::charging::{Outcome, Posting};
use metering_core::money::{LedgerKind, NewLedgerEntry, PaymentRef};
use metering_core::payments::{Challenge, NonceHash, Payment, PaymentTarget, PaymentUse, Quote, QuoteState};
use metering_core::store::{Claim, KeyDelivery, PaymentCredit, QuotePrecedence};
use metering_core::{
    AccountId, ApiKey, Charge, ClientSource, Credits, Decision, NewAccount, RateLimits, Receipt, Refusal, Store,
    StoreError, SystemRandomness, Timestamp, UsageLine,
};
use metering_sql::transfer::{Export, Record, Section};
use metering_sqlite::SqliteStore;
use tempfile::TempDir;

pub(crate) const NOON: Timestamp = Timestamp::from_unix_millis(1_795_262_400_000);
const CHAIN: u64 = 8453;

pub(crate) fn database_path() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("data").join("metering.db");
    (folder, file)
}

/// A store in a new file, which exists as long as its folder.
pub(crate) fn created() -> (TempDir, PathBuf, SqliteStore) {
    let (folder, file) = database_path();
    let store = SqliteStore::create(&file).unwrap();
    (folder, file, store)
}

/// Copies the files of a database in use, as a power cut would leave them.
pub(crate) fn crash(file: &Path, folder: &Path, number: impl Display) -> PathBuf {
    let copy = folder.join(format!("crash-{number}.db"));
    for suffix in ["", "-wal"] {
        let of = |path: &Path| PathBuf::from(format!("{}{suffix}", path.display()));
        std::fs::copy(of(file), of(&copy)).unwrap();
    }
    copy
}

/// All records of a section, in pages of at most `limit`.
pub(crate) async fn records(store: &SqliteStore, section: Section, limit: u32) -> Vec<Record> {
    let (mut records, mut after) = (Vec::new(), None);
    loop {
        let page = store.export(section, after.as_ref(), limit).await.unwrap();
        records.extend(page.items);
        after = page.next;
        if after.is_none() {
            return records;
        }
    }
}

/// Fails unless verification finds the database corrupt, with `expected` in its message.
pub(crate) async fn assert_corrupt(store: &SqliteStore, expected: &str, damage: &str) {
    match store.verify().await {
        Err(StoreError::Corrupt(problem)) => assert!(problem.contains(expected), "{damage}: {problem}"),
        other => panic!("{damage}: {other:?}"),
    }
}

/// Runs SQL on the file directly, bypassing the store.
pub(crate) fn execute(file: &Path, sql: &str) {
    rusqlite::Connection::open(file).unwrap().execute_batch(sql).unwrap();
}

pub(crate) fn count(file: &Path, table: &str) -> i64 {
    let connection = rusqlite::Connection::open(file).unwrap();
    connection.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
}

pub(crate) async fn account(store: &SqliteStore, base_calls: i64) -> (AccountId, KeyHash) {
    let mut new = new_account();
    new.entries = vec![grant(base_calls)];
    let made = (new.id.clone(), new.key);
    store.create_account(new).await.unwrap();
    made
}

pub(crate) fn new_account() -> NewAccount {
    let id = AccountId::generate(&SystemRandomness);
    let mut new = NewAccount::new(id, "agent".parse().unwrap(), new_key(), NOON);
    new.limits = RateLimits::NONE;
    new
}

pub(crate) fn new_key() -> KeyHash {
    ApiKey::generate(&SystemRandomness).hash()
}

fn base_calls(count: i64) -> Credits {
    Credits::from_atoms(count * Credits::BASE_CALL.atoms())
}

pub(crate) fn grant(count: i64) -> NewLedgerEntry {
    NewLedgerEntry::new(LedgerKind::Adjustment, base_calls(count), "Granted")
}

/// A charge for `GET /x`.
pub(crate) fn charge_of(key: KeyHash, price: Credits) -> Charge {
    let line = UsageLine { route_template: "/x".into(), http_method: "GET".into(), source: ClientSource::Direct };
    Charge::of(key, price, line)
}

/// Commits one charge.
pub(crate) async fn post(store: &SqliteStore, charge: Charge) -> Result<Receipt, Refusal> {
    match store.commit(vec![Posting::Charge(charge)], NOON).await.unwrap().remove(0) {
        Outcome::Decided(Decision::Accepted(receipt)) => Ok(receipt),
        Outcome::Decided(Decision::Refused(refusal)) => Err(refusal),
        other => panic!("a charge returned an unexpected outcome: {other:?}"),
    }
}

/// Charges one base call. Returns how many the balance still covers, or why the charge was refused.
pub(crate) async fn charge(store: &SqliteStore, key: KeyHash) -> Result<i64, Refusal> {
    let receipt = post(store, charge_of(key, Credits::BASE_CALL)).await?;
    Ok(receipt.balance.atoms() / Credits::BASE_CALL.atoms())
}

pub(crate) fn wallet(number: u8) -> Address {
    Address::from_bytes([number; 20])
}

pub(crate) fn tx(number: u8) -> TxRef {
    TxRef { chain_id: CHAIN, hash: TxHash::from_bytes([number; 32]) }
}

/// An open quote whose payer is the wallet with this number.
pub(crate) fn quote(number: u8) -> Quote {
    Quote {
        nonce: NonceHash::from_bytes([number; 32]),
        agent_name: "agent".parse().unwrap(),
        email: None,
        payer: wallet(number),
        top_up: None,
        target: PaymentTarget { chain_id: CHAIN, token: wallet(0xee), recipient: wallet(0xdd) },
        // Larger than 64 bits, as amounts in a coin's smallest unit may be.
        amount: TokenUnits::new(u128::from(u64::MAX) + u128::from(number)),
        plan_id: "starter".to_owned(),
        credits: base_calls(10),
        bonus_credits: Credits::ZERO,
        created_at: NOON,
        expires_at: NOON.saturating_add(Duration::from_secs(1_800)),
        state: QuoteState::Open,
    }
}

fn payment_of(quote: &Quote, tx: TxRef) -> Payment {
    let PaymentTarget { token, recipient, .. } = quote.target;
    let (payer, amount) = (quote.payer, quote.amount);
    Payment { tx, payer, recipient, token, amount, block_number: 17, block_hash: Some([17; 32]), mined_at: NOON }
}

/// A purchase of ten base calls with a payment.
pub(crate) fn purchase(kind: LedgerKind, tx: TxRef) -> NewLedgerEntry {
    let payment = Some(PaymentRef { tx, plan_id: Some("starter".to_owned()) });
    NewLedgerEntry { payment, ..NewLedgerEntry::new(kind, base_calls(10), "Plan starter") }
}

/// A claim of a quote by its payer for a new account, and the key of that account.
pub(crate) fn claim(quote: &Quote, tx: TxRef, delivery: KeyDelivery) -> (Claim, KeyHash) {
    let mut account = new_account();
    account.payer = Some(Payer { address: quote.payer, chain_id: tx.chain_id });
    account.email = quote.email.clone();
    account.entries = vec![purchase(LedgerKind::PurchasePaySignup, tx)];
    let key = account.key;
    let (payment, sold, value) = (payment_of(quote, tx), None, None);
    (Claim { nonce: quote.nonce, payment, account, sold, value, delivery, now: NOON }, key)
}

/// A payment by the wallet with this number. It also links the wallet.
pub(crate) fn credit(account: &AccountId, number: u8, tx: TxRef) -> PaymentCredit {
    PaymentCredit {
        account: account.clone(),
        payment: payment_of(&quote(number), tx),
        used_as: PaymentUse::Topup,
        entry: purchase(LedgerKind::PurchaseTopup, tx),
        sold: None,
        value: None,
        link_payer: true,
        quotes: QuotePrecedence::Quote,
        now: NOON,
    }
}

pub(crate) fn challenge(account: &AccountId, address: Address, nonce: &str) -> Challenge {
    let expires_at = NOON.saturating_add(Duration::from_secs(300));
    let message = Challenge::message("test", address, nonce, expires_at, "http://localhost/terms");
    Challenge { nonce: nonce.to_owned(), address, account: account.clone(), message, expires_at, failures: 0 }
}
