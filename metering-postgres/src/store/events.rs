//! Implements the part of the storage contract for events and webhooks.

use crate::events::lists;
use crate::store::PostgresStore;

metering_sql::event_store! {
    PostgresStore {
        async fn deliveries(
            &self,
            account: Option<&AccountId>,
            filter: DeliveryFilter,
            after: Option<&Cursor>,
            limit: u32,
        ) -> Result<Page<Delivery>> {
            let (condition, values) = lists::deliveries(account, filter, after, limit)?;
            metering_sql::read(self, (condition, values, limit), |db, (condition, values, limit)| {
                metering_sql::shared(metering_sql::deliveries::page(db, condition, values, *limit))
            })
            .await
        }
    }
}
