//! Inspects a database without changing it.

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

/// Migrations create tables in the current schema, and alter existing ones, which requires their owner.
const MISSING_RIGHTS: &str = "SELECT format('may not create tables in schema %I', current_schema)
       WHERE NOT has_schema_privilege(current_schema, 'CREATE')
     UNION ALL
     SELECT format('may not alter table %I.%I, which belongs to %I',
                   current_schema, min(relname), pg_get_userbyid(relowner))
         || CASE count(*) WHEN 1 THEN '' ELSE format(' (%s tables do)', count(*)) END
       FROM pg_class
       WHERE relnamespace = current_schema::regnamespace AND relkind IN ('r', 'p')
         AND NOT pg_has_role(relowner, 'USAGE')
       GROUP BY relowner";

impl PostgresStore {
    /// Reads a database's schema version, settings, and the user's rights. Does not create or migrate a schema.
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
    let mut missing_rights = Vec::new();
    for row in all(client, MISSING_RIGHTS, &[]).await? {
        missing_rights.push(row.try_get(0)?);
    }
    let (schema, supported) = (migrations::version(client).await?, migrations::supported());
    Ok(Inspection { schema, supported, unsafe_settings, missing_rights })
}
