//! Imports webhooks, events and deliveries. Events and deliveries keep their numbers.

use metering_core::events::{Event, Webhook};
use metering_core::transfer::{DeliveryRecord, Record};

use super::books::of_kind;
use super::sales::insert;
use crate::connection::session::GenericClient;
use crate::error::Result;
use crate::rows::execute;
use crate::script::Statements;
use crate::transactions::serialized::SerializedWrite;

/// Marks the heads of all lines.
const HEADS: &str = "UPDATE delivery SET is_head = TRUE WHERE id IN ( \
     SELECT DISTINCT ON (d.webhook, d.account) d.id FROM delivery d JOIN webhook w ON w.id = d.webhook \
     WHERE d.state = 'pending' AND (w.state = 'active' OR w.id = 0) ORDER BY d.webhook, d.account, d.event, d.id)";

/// The next numbers are above those of all events and deliveries.
const NUMBERS: &str = "SELECT setval('event_number', coalesce((SELECT max(number) FROM event), 0) + 1, FALSE), \
     setval('delivery_number', coalesce((SELECT max(id) FROM delivery), 0) + 1, FALSE)";

/// Webhooks arrive in the order of creation.
pub(super) async fn webhooks(write: &SerializedWrite<'_>, records: &[Record]) -> Result<u64> {
    let records: Vec<Webhook> = of_kind!(records, Webhook).into_iter().map(|webhook| (**webhook).clone()).collect();
    Ok(metering_sql::webhooks::insert(&mut Statements(write.client()), &records).await?)
}

pub(super) async fn events(write: &SerializedWrite<'_>, records: &[Record]) -> Result<u64> {
    let records: Vec<Event> = of_kind!(records, Event).into_iter().map(|event| (**event).clone()).collect();
    insert(write, &records).await
}

pub(super) async fn deliveries(write: &SerializedWrite<'_>, records: &[Record]) -> Result<u64> {
    let records: Vec<DeliveryRecord> = of_kind!(records, Delivery).into_iter().cloned().collect();
    Ok(metering_sql::deliveries::insert(&mut Statements(write.client()), &records).await?)
}

/// Numbers the events and deliveries to come above the imported ones, and marks those deliveries that may be sent.
pub(super) async fn finish<C: GenericClient>(client: &C) -> Result<()> {
    execute(client, HEADS, &[]).await?;
    execute(client, NUMBERS, &[]).await.map(drop)
}
