//! How many deliveries wait, for metrics. Takes no locks.

use metering_core::Timestamp;
use metering_core::events::{DeliveryBacklog, DeliveryState, WebhookOwner};

use crate::connection::session::GenericClient;
use crate::error::Result;
use crate::events::due;
use crate::rows::{one, optional_timestamp, unsigned};

/// Counts the entries of indexes, and looks up which of the deliveries `$3` has been due longest.
const BACKLOG: &str = "SELECT (SELECT count(*) FROM delivery WHERE state = $1), \
     (SELECT count(*) FROM delivery WHERE state = $2), (SELECT min(next_at) FROM delivery WHERE id = ANY ($3))";

/// How many deliveries wait, and since when the oldest one has been due that could be sent at `now`.
pub(crate) async fn backlog<C: GenericClient>(client: &C, now: Timestamp) -> Result<DeliveryBacklog> {
    let mut oldest = due::find(client, now, 1, WebhookOwner::Customers).await?;
    oldest.extend(due::find(client, now, 1, WebhookOwner::Operator).await?);
    let (pending, parked) = (DeliveryState::Pending.as_str(), DeliveryState::Parked.as_str());
    let row = one(client, BACKLOG, &[&pending, &parked, &oldest]).await?;
    Ok(DeliveryBacklog {
        pending: unsigned(&row, 0)?,
        parked: unsigned(&row, 1)?,
        oldest_due: optional_timestamp(&row, 2)?,
    })
}
