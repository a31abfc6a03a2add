//! The first charge, on a SQLite file.
//!
//! ```text
//! cargo run -p metering-sqlite --example first_charge_sqlite
//! ```

use std::sync::Arc;

use metering_core::{Charge, Service};
use metering_sqlite::SqliteStore;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let service = Service::with_defaults(Arc::new(SqliteStore::open("metering.db".as_ref())?));
    let (account, key) = service.open_account("my-agent", "2".parse()?).await?;
    let receipt = service.charge(Charge::new(&key, "0.25".parse()?, "GET", "/quotes/{number}")).await?;
    println!("{} paid {} credits", account.id, receipt.charged);
    println!("balance: {} credits", service.usage().balance(Some(&key)).await?.credit_balance);
    service.meter().drain().await;
    Ok(())
}
