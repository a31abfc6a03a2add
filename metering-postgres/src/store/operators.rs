//! Implements the parts of the storage contract for operators, price versions and recurring credits.

use crate::charging::known::SharedKnown;
use crate::operators;
use crate::store::PostgresStore;

metering_sql::operator_store! {
    PostgresStore {
        async fn operations_report(&self, days: DayRange) -> Result<OperationsReport> {
            self.read_at_once(|transaction| {
                let known = SharedKnown::clone(&self.known);
                Box::pin(async move { operators::report(transaction, &known, days).await })
            })
            .await
        }
    }
}

metering_sql::price_store!(PostgresStore);
metering_sql::refill_store!(PostgresStore);
