//! The first charge, on a store in memory.
//!
//! ```text
//! cargo run -p metering-core --example first_charge
//! ```

use std::sync::Arc;

use metering_core::{Charge, MemoryStore, Service};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let service = Service::with_defaults(Arc::new(MemoryStore::new()));
    let (account, key) = service.open_account("my-agent", "2".parse()?).await?;
    let receipt = service.charge(Charge::new(&key, "0.25".parse()?, "GET", "/quotes/{number}")).await?;
    println!("{} paid {} credits", account.id, receipt.charged);
    println!("balance: {} credits", service.usage().balance(Some(&key)).await?.credit_balance);
    service.meter().drain().await;
    Ok(())
}
