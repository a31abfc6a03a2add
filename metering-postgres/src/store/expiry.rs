//! Deletes old outcomes of transactions.

use metering_core::StoreError;
use metering_sql::Backend;
use metering_sql::expiry::Expiring;

use crate::connection::wait::REPORT_TIMEOUT;
use crate::statements::Statements;
use crate::store::{PostgresStore, check};
use crate::transactions::outcome;

const OUTCOMES: Expiring = Expiring { table: "outcome", key: "id", ends_at: "written_at", condition: "TRUE" };

impl PostgresStore {
    /// Deletes outcomes that no request waits for any more, in several transactions.
    pub(crate) async fn forget_outcomes(&self) -> Result<(), StoreError> {
        let limit = self.deleted_at_once();
        loop {
            let portion = self.write_within(REPORT_TIMEOUT, move |write| {
                Box::pin(async move {
                    // Compare with the database's clock, which also set `written_at`: a node with a wrong clock must not
                    // delete what another node still needs.
                    let until = check::clock(write.client()).await?.saturating_sub(outcome::KEPT);
                    Ok(OUTCOMES.delete(&mut Statements(write.client()), until, limit).await?)
                })
            });
            if portion.await? < limit {
                return Ok(());
            }
        }
    }
}
