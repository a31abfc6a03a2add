//! Implements the parts of the storage contract for operators, price versions and recurring credits.

use crate::operators;
use crate::store::SqliteStore;

metering_sql::operator_store! {
    SqliteStore {
        async fn operations_report(&self, days: DayRange) -> Result<OperationsReport> {
            self.read(move |snapshot| operators::report(snapshot, days)).await
        }
    }
}

metering_sql::price_store!(SqliteStore);
metering_sql::refill_store!(SqliteStore);
