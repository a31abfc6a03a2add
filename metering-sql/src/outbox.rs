//! Writes events with their deliveries, one statement at a time: for a database that is not behind a network.
//!
//! Nearly no transaction has an event, so webhooks are looked up only when there is one.

use metering_core::events::NewEvent;

use crate::executor::Executor;
use crate::fault::Result;
use crate::lines::{self, Line};
use crate::{deliveries, events, values};

/// The active webhooks of an account, and the operator's.
pub const RECEIVERS: &str =
    "SELECT id, kinds FROM webhook WHERE coalesce(account, 0) IN (0, ?1) AND state = 'active' ORDER BY id";

/// Writes events of the account with this row number, and a delivery of each for every webhook that receives it.
pub async fn write(db: &mut dyn Executor, account: Option<i64>, events: &[NewEvent]) -> Result<()> {
    for event in events {
        let number = events::append(db, account, event).await?;
        let kind = event.data.kind().as_str();
        for row in db.query(RECEIVERS, &values![account]).await? {
            // By name: a kind that this version does not know must not fail the cause of the event.
            let kinds: String = row.get(1)?;
            if kinds.is_empty() || kinds.split(' ').any(|name| name == kind) {
                let line = Line { webhook: row.get(0)?, account };
                deliveries::append(db, line, number, event.created_at).await?;
                lines::mark(db, &[line]).await?;
            }
        }
    }
    Ok(())
}
