/// Implements [`EventStore`](metering_core::store::EventStore).
#[macro_export]
macro_rules! event_store {
    ($store:ty { $($own:tt)* }) => {
        $crate::scripted! {
            use metering_core::{
                Account, AccountId, Credits, Timestamp,
                events::*,
                store::{Cursor, EventStore, Page, WebhookCreated},
            };
            use core::{time::Duration};
            impl EventStore for $store {
                async fn set_operator_webhook(&self, terms: Option<WebhookTerms>, now: Timestamp) -> Result<()> {
                    let Some(terms) = terms else {
                        return $crate::webhook_deletion::run(self, None, WebhookId::OPERATOR).await.map(drop);
                    };
                    $crate::write(self, (terms, now), |db, (terms, now)| {
                        $crate::shared($crate::webhooks::set_operators(db, terms, *now))
                    })
                    .await
                }

                async fn disable_operator_webhook(&self) -> Result<bool> {
                    let begun = $crate::write(self, (), |db, ()| {
                        $crate::shared($crate::webhook_deletion::begin(db, None, &WebhookId::OPERATOR))
                    });
                    Ok(begun.await?.is_some())
                }

                async fn delete_webhook(&self, account: &AccountId, id: &WebhookId) -> Result<bool> {
                    $crate::webhook_deletion::run(self, Some(account.clone()), *id).await
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
                    let found = $crate::read(self, args, |db, (now, limit, owner, shares)| {
                        $crate::shared($crate::due::find(db, *now, *limit, *owner, shares))
                    })
                    .await?;
                    if found.is_empty() {
                        return Ok(Vec::new());
                    }
                    $crate::write(self, (found, now, lease), |db, (found, now, lease)| {
                        $crate::shared($crate::due::claim(db, found, *now, *lease))
                    })
                    .await
                }

                $($own)*
            }
            write set_balance_alert(id: &AccountId, threshold: Option<Credits>)
                -> Option<Account> = accounts::set_alert;
            write create_webhook(new: NewWebhook) -> WebhookCreated = webhooks::create;
            read webhooks(account: ?AccountId) -> Vec<Webhook> = webhooks::list;
            write change_webhook(account: &AccountId, id: &WebhookId, change: WebhookChange, now: Timestamp)
                -> Option<Webhook> = webhooks::change;
            write test_webhook(account: ?AccountId, id: &WebhookId, now: Timestamp)
                -> Option<Delivery> = deliveries::test;
            read events(account: &AccountId, after: ?Cursor, limit: u32) -> Page<Event> = events::list;
            read webhook_health(id: &WebhookId) -> WebhookHealth = webhook_health::health;
            read delivery_counts(id: &WebhookId, since: Timestamp) -> DeliveryCounts = webhook_health::counts;
            read delivery_backlog(now: Timestamp) -> DeliveryBacklog = due::backlog;
            write finish_delivery(id: DeliveryId, attempt: u32, outcome: AttemptOutcome, now: Timestamp)
                -> Option<Delivery> = deliveries::finish;
            write resend(account: ?AccountId, id: DeliveryId, now: Timestamp) -> Option<Delivery> = deliveries::resend;
        }
    };
}
