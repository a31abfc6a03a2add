//! How the deliveries to a webhook are doing.
//!
//! Each query seeks in an index: its cost depends on the deliveries that it counts, not on how many are kept.

use metering_core::Timestamp;
use metering_core::events::{DeliveryCounts, DeliveryState, WebhookHealth, WebhookId};

use crate::deliveries;
use crate::executor::Executor;
use crate::fault::Result;
use crate::row::only;
use crate::values;

/// The condition for the deliveries to the webhook `?1`.
const OF_WEBHOOK: &str = "delivery.webhook = (SELECT w.id FROM webhook w WHERE w.public_id = ?1)";

/// The same for those in a state.
fn in_state(state: DeliveryState) -> String {
    format!("{OF_WEBHOOK} AND delivery.state = '{}'", state.as_str())
}

/// The query for how many deliveries are pending.
#[must_use]
pub fn waiting() -> String {
    format!("SELECT count(*) FROM delivery WHERE {}", in_state(DeliveryState::Pending))
}

/// The query for the first pending delivery.
#[must_use]
pub fn first() -> String {
    let pending = in_state(DeliveryState::Pending);
    deliveries::select(&format!("{pending} ORDER BY delivery.account, delivery.event LIMIT 1"))
}

/// The query for when a delivery arrived last.
#[must_use]
pub fn last_delivered() -> String {
    let delivered = in_state(DeliveryState::Delivered);
    format!(
        "SELECT delivery.last_at FROM delivery WHERE {delivered} AND delivery.last_at IS NOT NULL \
         ORDER BY delivery.last_at DESC LIMIT 1"
    )
}

/// The query for how many deliveries arrived at `?2` or later, and how many of them at the first attempt.
#[must_use]
pub fn delivered_since() -> String {
    let delivered = in_state(DeliveryState::Delivered);
    format!(
        "SELECT count(*), count(CASE WHEN delivery.attempts = 1 THEN 1 END) FROM delivery \
         WHERE {delivered} AND delivery.last_at >= ?2"
    )
}

/// The query for how many deliveries failed at `?2` or later, and have not arrived since.
#[must_use]
pub fn failed_since() -> String {
    let states = [DeliveryState::Pending, DeliveryState::Parked].map(DeliveryState::as_str).join("', '");
    format!(
        "SELECT count(*) FROM delivery WHERE {OF_WEBHOOK} AND delivery.state IN ('{states}') \
         AND delivery.last_at >= ?2 AND delivery.last_error IS NOT NULL"
    )
}

/// How the deliveries to a webhook are doing.
pub async fn health(db: &mut dyn Executor, webhook: &WebhookId) -> Result<WebhookHealth> {
    let waiting = only(&db.query(&waiting(), &values![webhook]).await?)?.get(0)?;
    let first = db.query(&first(), &values![webhook]).await?;
    let first = first.first().map(deliveries::delivery).transpose()?.map(|(delivery, _)| delivery);
    let last = db.query(&last_delivered(), &values![webhook]).await?;
    let last_delivered_at = last.first().map(|row| row.get(0)).transpose()?;
    Ok(WebhookHealth { waiting, first, last_delivered_at })
}

/// How the deliveries to a webhook ended whose last attempt was at `since` or later.
pub async fn counts(db: &mut dyn Executor, webhook: &WebhookId, since: Timestamp) -> Result<DeliveryCounts> {
    let values = values![webhook, since];
    let (arrived, failed) = (db.query(&delivered_since(), &values).await?, db.query(&failed_since(), &values).await?);
    let arrived = only(&arrived)?;
    Ok(DeliveryCounts { delivered: arrived.get(0)?, at_first_attempt: arrived.get(1)?, failed: only(&failed)?.get(0)? })
}
