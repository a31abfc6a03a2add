//! Deliveries of events to webhooks. They are written with their events by [`Executor::write_events`].

use metering_core::backend::{one_more_than, page_of_rows};
use metering_core::events::{
    AttemptOutcome, Delivery, DeliveryId, DeliveryState, Event, EventData, NewEvent, Progress, Webhook, WebhookId,
    WebhookState,
};
use metering_core::store::{Cursor, Page};
use metering_core::{AccountId, Timestamp};

use crate::executor::Executor;
use crate::fault::Result;
use crate::lines::{self, Line, OPERATOR};
use crate::record::{Record, table};
use crate::row::{Reader, Row, only};
use crate::table::Table;
use crate::transfer::DeliveryRecord;
use crate::value::Value;
use crate::{events, numbered, progress, values, webhooks};

impl Record for DeliveryRecord {
    const TABLE: Table = table!("delivery" by ["id"] {
        Own(id), Webhook(webhook), Own(event), Own(state), Own(attempts), Own(since), Own(next_at), Own(last_at),
        Own(last_status), Own(last_error), Own(last_response)
    });

    fn values(&self) -> Result<Vec<Value>> {
        let mut values = values![self.id, self.webhook, self.event];
        values.extend(progress::values(&self.progress));
        Ok(values)
    }

    fn read(row: &mut Reader<'_>) -> Result<Self> {
        Ok(Self { id: row.next()?, webhook: row.next()?, event: row.next()?, progress: progress::read(row)? })
    }
}

/// Deliveries with their events.
pub(crate) const TABLES: &str = "delivery {join} event ON event.number = delivery.event";

/// How many columns [`columns`] has.
pub(crate) const COLUMN_COUNT: usize = DeliveryRecord::TABLE.columns.len() + Event::TABLE.columns.len() + 2;

/// The columns that [`delivery`] reads from [`TABLES`].
pub(crate) fn columns() -> String {
    let (delivery, event) = (DeliveryRecord::TABLE.column_list(), Event::TABLE.column_list());
    format!("{delivery}, {event}, delivery.webhook, delivery.account")
}

/// The query for the deliveries that match.
#[must_use]
pub fn select(condition: &str) -> String {
    format!("SELECT {} FROM {TABLES} WHERE {condition}", columns())
}

/// Reads a delivery and its line from [`columns`].
pub(crate) fn delivery(row: &Row) -> Result<(Delivery, Line)> {
    let first = DeliveryRecord::TABLE.columns.len();
    let DeliveryRecord { id, webhook, event: _, progress } = DeliveryRecord::of_row(row)?;
    let event = Event::of_row_at(row, first)?;
    Ok((Delivery { id, webhook, event, progress }, Line::read(row, COLUMN_COUNT - 2)?))
}

async fn by_id(db: &mut dyn Executor, id: DeliveryId) -> Result<Option<(Delivery, Line)>> {
    let rows = db.query(&select("delivery.id = ?1"), &values![id]).await?;
    rows.first().map(delivery).transpose()
}

/// A page of the deliveries that match, which must be newest first.
pub async fn page(db: &mut dyn Executor, condition: &str, values: &[Value], limit: u32) -> Result<Page<Delivery>> {
    let rows = db.query(&select(condition), values).await?;
    let found = rows.iter().map(|row| delivery(row).map(|(delivery, _)| (delivery.id.get(), delivery)));
    Ok(page_of_rows(found.collect::<Result<_>>()?, limit))
}

/// A page of all deliveries, newest first.
pub async fn newest(db: &mut dyn Executor, after: Option<&Cursor>, limit: u32) -> Result<Page<Delivery>> {
    let values = values![events::before(after)?, one_more_than(limit)];
    page(db, "delivery.id < ?1 ORDER BY delivery.id DESC LIMIT ?2", &values, limit).await
}

/// Inserts deliveries of events that were inserted, and returns how many.
pub async fn insert(db: &mut dyn Executor, records: &[DeliveryRecord]) -> Result<u64> {
    let sql = DeliveryRecord::TABLE.insert_with("account", "(SELECT e.account FROM event e WHERE e.number = ?3)");
    db.execute(&sql, &records.iter().map(Record::values).collect::<Result<Vec<_>>>()?).await
}

/// Writes a delivery of an event in a line, and returns its id. It is not the head of the line, even if it is the first.
pub(crate) async fn append(db: &mut dyn Executor, line: Line, event: i64, now: Timestamp) -> Result<DeliveryId> {
    let Progress { state, attempts, since, next_at, last: _ } = Progress::new(now);
    let sql = "INSERT INTO delivery (webhook, event, account, state, attempts, since, next_at) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) RETURNING id";
    let values = values![line.webhook, event, line.account, state, attempts, since, next_at];
    only(&db.query(sql, &values).await?)?.get(0)
}

/// Writes a test event that goes to one webhook only.
pub async fn test(
    db: &mut dyn Executor,
    account: Option<&AccountId>,
    id: &WebhookId,
    now: Timestamp,
) -> Result<Option<Delivery>> {
    let Some((line, webhook)) = webhooks::find(db, account, id).await? else { return Ok(None) };
    // Events are numbered under this lock.
    lines::lock(db, &[line]).await?;
    let event = NewEvent { account: webhook.account, data: EventData::TEST, created_at: now };
    let number = events::append(db, line.account, &event).await?;
    let id = append(db, line, number, now).await?;
    lines::mark(db, &[line]).await?;
    Ok(by_id(db, id).await?.map(|(delivery, _)| delivery))
}

/// Records how an attempt ended.
pub async fn finish(
    db: &mut dyn Executor,
    id: DeliveryId,
    attempt: u32,
    outcome: &AttemptOutcome,
    now: Timestamp,
) -> Result<Option<Delivery>> {
    let Some((delivery, line)) = by_id(db, id).await? else { return Ok(None) };
    let Some(progress) = delivery.progress.clone().finished(attempt, outcome, now) else { return Ok(None) };
    if progress.state == DeliveryState::Pending {
        progress::write(db, id, &progress).await?;
        return Ok(Some(Delivery { progress, ..delivery }));
    }
    lines::lock(db, &[line]).await?;
    progress::write(db, id, &progress).await?;
    if *outcome == AttemptOutcome::Gone {
        // If an older one was resent meanwhile, that is the head.
        lines::unmark(db, line).await?;
        // The operator's own webhook does not change.
        if line.webhook != OPERATOR {
            numbered::set::<Webhook>(db, &["state"], &[values![line.webhook, WebhookState::Gone]]).await?;
        }
    }
    lines::mark(db, &[line]).await?;
    Ok(Some(Delivery { progress, ..delivery }))
}

/// Sends a delivery to an account's webhooks again, or with `None` any delivery.
pub async fn resend(
    db: &mut dyn Executor,
    account: Option<&AccountId>,
    id: DeliveryId,
    now: Timestamp,
) -> Result<Option<Delivery>> {
    let Some((delivery, line)) = by_id(db, id).await? else { return Ok(None) };
    if account.is_some() && webhooks::find(db, account, &delivery.webhook).await?.is_none() {
        return Ok(None);
    }
    let was_pending = delivery.progress.state == DeliveryState::Pending;
    let progress = delivery.progress.resent(now);
    if was_pending {
        progress::write(db, id, &progress).await?;
    } else {
        lines::lock(db, &[line]).await?;
        lines::unmark(db, line).await?;
        progress::write(db, id, &progress).await?;
        lines::mark(db, &[line]).await?;
    }
    Ok(Some(Delivery { progress, ..delivery }))
}
