//! Metering inside a Rust program: no server, no HTTP, one SQLite file.
//!
//! Creates an account, charges it from many tasks at once, refunds one charge, prints a usage report, and shuts down
//! cleanly.
//!
//! ```text
//! cargo run -p metering-sqlite --example embed [FOLDER]
//! ```
//!
//! Without a folder, the store is temporary.

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;

use metering_core::{
    AccountId, ApiKey, Charge, ClientSource, Clock, Created, Credits, DayRange, Decision, KeyHash, LedgerKind, Meter,
    MeterConfig, MeterEnd, NewAccount, NewLedgerEntry, Receipt, Store, SystemClock, SystemRandomness, UsageLine,
};
use metering_sqlite::SqliteStore;
use tokio::task::JoinSet;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// How many requests are charged at once.
const REQUESTS: u32 = 200;

#[tokio::main]
async fn main() -> Outcome<()> {
    let temporary = tempfile::tempdir()?;
    let folder = std::env::args_os().nth(1).map_or_else(|| temporary.path().to_owned(), PathBuf::from);
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(&folder.join("metering.db"))?);
    let meter = Arc::new(Meter::start(Arc::clone(&store), Arc::new(SystemClock), MeterConfig::default()));

    let (account, key) = open_account(&*store).await?;
    println!("account {account}, key {}", key.expose());

    let mut receipts = charge_concurrently(&meter, key.hash()).await?;
    println!("{REQUESTS} requests in {} commits", meter.stats().commits.load(std::sync::atomic::Ordering::Relaxed));

    // Suppose one of them could not be delivered. A refund consumes its receipt, so no charge is refunded twice.
    let undelivered = receipts.pop().ok_or("nothing was charged")?;
    let balance = meter.refund(undelivered).await?.ok_or("the request was free")?;
    println!("balance after a refund: {balance} credits");

    // The meter accepts no more charges. When `drain` returns, all accepted ones are on disk.
    if meter.drain().await != MeterEnd::Drained {
        return Err("the store broke; reopen it before you continue".into());
    }
    report(&*store, &account).await
}

/// Creates an account with two credits. The store keeps only a hash of the key.
async fn open_account(store: &dyn Store) -> Outcome<(AccountId, ApiKey)> {
    let key = ApiKey::generate(&SystemRandomness);
    let id = AccountId::generate(&SystemRandomness);
    let mut account = NewAccount::new(id, "example".parse()?, key.hash(), SystemClock.now());
    account.entries = vec![NewLedgerEntry::new(LedgerKind::SignupBonus, "2".parse()?, "Free credits of a new account")];
    match store.create_account(account).await? {
        Created::Account(account) => Ok((account.id, key)),
        refusal => Err(format!("could not create the account: {refusal:?}").into()),
    }
}

/// Charges from many tasks at once, as the handlers of a service would. The charges share a few durable commits.
async fn charge_concurrently(meter: &Arc<Meter>, key: KeyHash) -> Outcome<Vec<Receipt>> {
    let mut requests = JoinSet::new();
    for number in 0..REQUESTS {
        let meter = Arc::clone(meter);
        requests.spawn(async move { meter.charge(quote(key, number)).await });
    }
    let mut receipts = Vec::new();
    while let Some(decision) = requests.join_next().await {
        match decision?? {
            Decision::Accepted(receipt) => receipts.push(receipt),
            Decision::Refused(refusal) => return Err(format!("a request was refused: {refusal:?}").into()),
        }
    }
    Ok(receipts)
}

/// The charge for one request: who pays, how much, and under which usage line it is recorded.
fn quote(key: KeyHash, number: u32) -> Charge {
    Charge {
        key,
        price: Credits::BASE_CALL,
        line: UsageLine {
            route_template: "/quotes/{number}".into(),
            http_method: "GET".into(),
            source: ClientSource::Direct,
        },
        request_path: format!("/quotes/{number}").into(),
        request_id: None,
        delivery: None,
    }
}

/// Prints the account's usage and verifies that the books balance.
async fn report(store: &dyn Store, account: &AccountId) -> Outcome<()> {
    let week = DayRange::last_days(SystemClock.now(), 7);
    let report = store.usage_report(account, week).await?.ok_or("there is no such account")?;
    println!("balance {}, used {}", report.account.totals.balance, report.account.totals.used);
    for day in report.by_day {
        println!("{}  {} calls  {} credits", day.day, day.usage_events, day.credits_used);
    }
    for route in report.by_endpoint {
        println!("{} {}  {} calls", route.http_method, route.route_template, route.call_count);
    }
    let verification = store.verify().await?;
    if !verification.discrepancies.is_empty() {
        return Err(format!("the books do not balance: {:?}", verification.discrepancies).into());
    }
    println!("verified {} account(s): every balance adds up", verification.accounts);
    Ok(())
}
