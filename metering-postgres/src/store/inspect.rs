//! What can be said of a database without changing it.

use metering_core::StoreError;
use metering_core::store::Inspection;

use crate::connection::connect::PostgresConfig;
use crate::connection::session::Client;
use crate::error::Result;
use crate::migrations;
use crate::rows::all;
use crate::store::PostgresStore;

/// Settings that must be on. `synchronous_commit` is not among them: the program sets it for its own transactions.
const SAFE: &str =
    "SELECT name, setting FROM pg_settings WHERE name IN ('fsync', 'full_page_writes') AND setting <> 'on'";

impl PostgresStore {
    /// Reads a database's schema version and settings. Neither makes nor migrates a schema.
    ///
    /// # Errors
    /// When the database cannot be reached or read.
    pub async fn inspect(config: &PostgresConfig) -> std::result::Result<Inspection, StoreError> {
        let store = Self::new(config.pool().await?, config, None);
        store.read(|client| Box::pin(inspect(client))).await
    }
}

async fn inspect(client: &Client) -> Result<Inspection> {
    let mut unsafe_settings = Vec::new();
    for row in all(client, SAFE, &[]).await? {
        let (name, value): (&str, &str) = (row.try_get(0)?, row.try_get(1)?);
        unsafe_settings.push(format!("{name} = {value}"));
    }
    Ok(Inspection { schema: migrations::version(client).await?, supported: migrations::supported(), unsafe_settings })
}
