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

use metering_core::charging::MeterEnd;
use metering_core::usage::DayRange;
use metering_core::{AccountId, ApiKey, Charge, Clock, Credits, Receipt, Service, Store, SystemClock};
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
    let service = Arc::new(Service::with_defaults(Arc::clone(&store)));

    let (account, key) = service.open_account("example", "2".parse()?).await?;
    println!("account {}, key {}", account.id, key.expose());

    let mut receipts = charge_concurrently(&service, &key).await?;
    let meter = service.meter();
    println!("{REQUESTS} requests in {} commits", meter.stats().commits.load(std::sync::atomic::Ordering::Relaxed));

    // Suppose one of them could not be delivered. A refund consumes its receipt, so no charge is refunded twice.
    let undelivered = receipts.pop().ok_or("nothing was charged")?;
    let balance = meter.refund(undelivered).await?.ok_or("the request was free")?;
    println!("balance after a refund: {balance} credits");

    // The meter accepts no more charges. When `drain` returns, all accepted ones are on disk.
    if meter.drain().await != MeterEnd::Drained {
        return Err("the store broke; reopen it before you continue".into());
    }
    report(&*store, &account.id).await
}

/// Charges from many tasks at once, as the handlers of a service would. The charges share a few durable commits.
async fn charge_concurrently(service: &Arc<Service>, key: &ApiKey) -> Outcome<Vec<Receipt>> {
    let mut requests = JoinSet::new();
    for number in 0..REQUESTS {
        let charge = Charge::new(key, Credits::BASE_CALL, "GET", "/quotes/{number}");
        let charge = charge.with_path(format!("/quotes/{number}"));
        let service = Arc::clone(service);
        requests.spawn(async move { service.charge(charge).await });
    }
    let mut receipts = Vec::new();
    while let Some(receipt) = requests.join_next().await {
        receipts.push(receipt??);
    }
    Ok(receipts)
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
