// A service that sells one plan on the chain in memory.
//
// Not a `//!` header, because the doc tests of the crate include this file.

use std::collections::BTreeMap;
use std::sync::Arc;

use metering_core::chains::ChainReader;
use metering_core::payments::Plan;
use metering_core::service::PaymentSettings;
use metering_core::{Catalogue, PaymentStore, Service, ServiceConfig};
use metering_sqlite::SqliteStore;

use super::in_memory::{CHAIN_ID, MemoryChain};

/// Opens the shop.
pub(crate) async fn open(chain: &Arc<MemoryChain>) -> Result<Service, Box<dyn std::error::Error>> {
    let starter: Plan = serde_json::from_str(
        r#"{"id": "starter", "chain_id": 8453, "token_symbol": "USDC", "payment_kind": "erc20", "credits": 10,
            "token_amount": "5", "token_contract": "0xc0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0",
            "token_decimals": 6, "label": "Starter"}"#,
    )?;
    starter.validate()?;
    let store = Arc::new(SqliteStore::in_memory()?);
    store.put_plans(vec![starter]).await?;

    let config = ServiceConfig {
        public_url: "https://api.example.com".to_owned(),
        chains: vec![chain.listed()],
        ..ServiceConfig::default()
    };
    let readers = BTreeMap::from([(CHAIN_ID, Arc::clone(chain) as Arc<dyn ChainReader>)]);
    let shop = Service::start(store.clone(), Catalogue::default(), config);
    let shop = shop.with_payments(store, readers, PaymentSettings::default());
    shop.payments().register_recipients().await?;
    Ok(shop)
}
