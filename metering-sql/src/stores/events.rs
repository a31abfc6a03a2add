/// Implements [`EventStore`](metering_core::store::EventStore).
#[macro_export]
macro_rules! event_store {
    ($store:ty { $($own:tt)* }) => {
        const _: () = {
            use ::core::time::Duration;

            use $crate::private::metering_core::events::*;
            use $crate::private::metering_core::store::{Cursor, Page, WebhookCreated};
            use $crate::private::metering_core::{Account, AccountId, Credits, StoreError, Timestamp};
            use $crate::{read, shared, webhook_deletion, write};

            type Result<T, E = StoreError> = ::core::result::Result<T, E>;

            #[$crate::private::async_trait]
            impl $crate::private::metering_core::store::EventStore for $store {
                async fn set_balance_alert(&self, id: &AccountId, threshold: Option<Credits>) -> Result<Option<Account>> {
                    let args = (id.clone(), threshold);
                    write(self, args, |db, (id, below)| shared($crate::accounts::set_alert(db, id, *below))).await
                }

                async fn create_webhook(&self, new: NewWebhook) -> Result<WebhookCreated> {
                    write(self, new, |db, new| shared($crate::webhooks::create(db, new))).await
                }

                async fn set_operator_webhook(&self, terms: Option<WebhookTerms>, now: Timestamp) -> Result<()> {
                    let Some(terms) = terms else {
                        return webhook_deletion::run(self, None, WebhookId::OPERATOR).await.map(drop);
                    };
                    write(self, (terms, now), |db, (terms, now)| {
                        shared($crate::webhooks::set_operators(db, terms, *now))
                    })
                    .await
                }

                async fn disable_operator_webhook(&self) -> Result<bool> {
                    let begun = write(self, (), |db, ()| {
                        shared(webhook_deletion::begin(db, None, &WebhookId::OPERATOR))
                    });
                    Ok(begun.await?.is_some())
                }

                async fn webhooks(&self, account: Option<&AccountId>) -> Result<Vec<Webhook>> {
                    read(self, account.cloned(), |db, account| shared($crate::webhooks::list(db, account.as_ref())))
                        .await
                }

                async fn change_webhook(
                    &self,
                    account: &AccountId,
                    id: &WebhookId,
                    change: WebhookChange,
                    now: Timestamp,
                ) -> Result<Option<Webhook>> {
                    let args = (account.clone(), *id, change, now);
                    write(self, args, |db, (account, id, change, now)| {
                        shared($crate::webhooks::change(db, account, id, change, *now))
                    })
                    .await
                }

                async fn delete_webhook(&self, account: &AccountId, id: &WebhookId) -> Result<bool> {
                    webhook_deletion::run(self, Some(account.clone()), *id).await
                }

                async fn test_webhook(
                    &self,
                    account: Option<&AccountId>,
                    id: &WebhookId,
                    now: Timestamp,
                ) -> Result<Option<Delivery>> {
                    let args = (account.cloned(), *id, now);
                    write(self, args, |db, (account, id, now)| {
                        shared($crate::deliveries::test(db, account.as_ref(), id, *now))
                    })
                    .await
                }

                async fn events(&self, account: &AccountId, after: Option<&Cursor>, limit: u32) -> Result<Page<Event>> {
                    let args = (account.clone(), after.cloned(), limit);
                    read(self, args, |db, (account, after, limit)| {
                        shared($crate::events::list(db, account, after.as_ref(), *limit))
                    })
                    .await
                }

                async fn webhook_health(&self, id: &WebhookId) -> Result<WebhookHealth> {
                    read(self, *id, |db, id| shared($crate::deliveries::health(db, id))).await
                }

                async fn delivery_counts(&self, id: &WebhookId, since: Timestamp) -> Result<DeliveryCounts> {
                    read(self, (*id, since), |db, (id, since)| shared($crate::deliveries::counts(db, id, *since))).await
                }

                async fn delivery_backlog(&self, now: Timestamp) -> Result<DeliveryBacklog> {
                    read(self, now, |db, now| shared($crate::due::backlog(db, *now))).await
                }

                async fn claim_shared(
                    &self,
                    now: Timestamp,
                    lease: Duration,
                    limit: u32,
                    owner: WebhookOwner,
                    shares: DeliveryShares,
                ) -> Result<Vec<DueDelivery>> {
                    let args = (now, limit, owner, shares);
                    let found = read(self, args, |db, (now, limit, owner, shares)| {
                        shared($crate::due::find(db, *now, *limit, *owner, shares))
                    })
                    .await?;
                    if found.is_empty() {
                        return Ok(Vec::new());
                    }
                    write(self, (found, now, lease), |db, (found, now, lease)| {
                        shared($crate::due::claim(db, found, *now, *lease))
                    })
                    .await
                }

                async fn finish_delivery(
                    &self,
                    id: DeliveryId,
                    attempt: u32,
                    outcome: AttemptOutcome,
                    now: Timestamp,
                ) -> Result<Option<Delivery>> {
                    let args = (id, attempt, outcome, now);
                    write(self, args, |db, (id, attempt, outcome, now)| {
                        shared($crate::deliveries::finish(db, *id, *attempt, outcome, *now))
                    })
                    .await
                }

                async fn resend(&self, account: Option<&AccountId>, id: DeliveryId, now: Timestamp) -> Result<Option<Delivery>> {
                    let args = (account.cloned(), id, now);
                    write(self, args, |db, (account, id, now)| {
                        shared($crate::deliveries::resend(db, account.as_ref(), *id, *now))
                    })
                    .await
                }

                $($own)*
            }
        };
    };
}
