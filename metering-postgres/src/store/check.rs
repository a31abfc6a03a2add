use metering_core::Timestamp;

use crate::connection::session::GenericClient;
use crate::error::Result;
use crate::rows::{one, timestamp};
use crate::statements::Statements;

/// Fails unless the database can be written to.
pub(crate) async fn check<C: GenericClient>(client: &C) -> Result<()> {
    Ok(metering_sql::probe::touch(&mut Statements(client)).await?)
}

/// The time of the database's clock.
pub(crate) async fn clock<C: GenericClient>(client: &C) -> Result<Timestamp> {
    let sql = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::BIGINT";
    timestamp(&one(client, sql, &[]).await?, 0)
}
