use metering_core::Timestamp;

use crate::connection::session::GenericClient;
use crate::error::Result;
use crate::rows::{execute, one, timestamp};

/// Fails unless the database can be written to.
pub(crate) async fn check<C: GenericClient>(client: &C) -> Result<()> {
    execute(client, "UPDATE probe SET writes = writes + 1 WHERE id = 1", &[]).await.map(drop)
}

/// The time of the database's clock.
pub(crate) async fn clock<C: GenericClient>(client: &C) -> Result<Timestamp> {
    let sql = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::BIGINT";
    timestamp(&one(client, sql, &[]).await?, 0)
}
