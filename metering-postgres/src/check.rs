//! Whether the database can be written to.

use deadpool_postgres::GenericClient;

use crate::error::Result;
use crate::rows::execute;

/// Writes something.
pub(crate) async fn check<C: GenericClient>(client: &C) -> Result<()> {
    execute(client, "UPDATE probe SET writes = writes + 1 WHERE id = 1", &[]).await.map(drop)
}
