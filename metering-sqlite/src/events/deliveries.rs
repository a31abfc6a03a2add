//! The rows of deliveries: lists, and what becomes of an attempt.

use metering_core::backend::{one_more_than, page_of_rows};
use metering_core::events::{
    AttemptOutcome, Delivery, DeliveryFilter, DeliveryId, DeliveryState, EventData, NewEvent, WebhookId,
};
use metering_core::store::{Cursor, Page};
use metering_core::{AccountId, Timestamp};
use rusqlite::types::Value;
use rusqlite::{Connection, Row};

use crate::error::{Result, store_error};
use crate::events::line::Line;
use crate::events::{event, progress, webhooks};
use crate::rows::{all, first};

/// `CROSS JOIN` makes SQLite join in the order written.
pub(super) const TABLES: &str = "delivery d CROSS JOIN webhook w ON w.id = d.webhook \
     CROSS JOIN event e ON e.number = d.event LEFT JOIN account a ON a.id = e.account";

/// A delivery, and what belongs to it.
pub(super) struct Stored {
    pub(super) delivery: Delivery,
    line: Line,
    /// The row number of the account that its webhook belongs to; `None` for the operator.
    owner: Option<i64>,
}

/// How many columns [`stored`] reads.
pub(super) const COLUMN_COUNT: usize = 5 + progress::COLUMN_COUNT + 5;

/// The columns that [`stored`] reads from [`TABLES`].
pub(super) fn columns() -> String {
    format!("d.id, d.webhook, d.account, w.account, w.public_id, {}, {}", progress::COLUMNS, event::COLUMNS)
}

fn select(condition: &str) -> String {
    format!("SELECT {} FROM {TABLES} WHERE {condition}", columns())
}

/// Writes a test event that goes to one webhook only.
pub(crate) fn test(
    connection: &Connection,
    account: Option<&AccountId>,
    id: &WebhookId,
    now: Timestamp,
) -> Result<Option<Delivery>> {
    let Some((row, webhook)) = webhooks::by_id(connection, account, id)? else { return Ok(None) };
    let of_event = webhooks::owner(connection, account)?.filter(|owner| *owner != webhooks::OPERATOR);
    let test = NewEvent { account: webhook.account, data: EventData::TEST, created_at: now };
    let number = event::append(connection, of_event, &test)?;
    let delivery = Line { webhook: row, account: of_event }.insert(connection, number, now)?;
    Ok(by_id(connection, delivery)?.map(|stored| stored.delivery))
}

/// The delivery with this id.
pub(super) fn by_id(connection: &Connection, id: DeliveryId) -> Result<Option<Stored>> {
    let mut statement = connection.prepare_cached(&select("d.id = ?1")).map_err(store_error)?;
    first(&mut statement, [id.get()], stored)
}

/// Which deliveries to list: of one webhook, of an account, in a state, or all.
fn listed(of_webhook: bool, of_account: bool, state: Option<DeliveryState>) -> String {
    // A `+` keeps SQLite from using an index: each list has the one that gives its order.
    let mut condition = "d.id < ?1".to_owned();
    if of_webhook {
        condition.push_str(" AND d.webhook = (SELECT id FROM webhook WHERE public_id = ?3)");
    }
    if of_account {
        // The operator's webhook has deliveries of the account's events too.
        let plus = if of_webhook { "+" } else { "" };
        condition.push_str(&format!(" AND {plus}d.account = ?4 AND w.account IS NOT NULL"));
    }
    if let Some(state) = state {
        let plus = if of_webhook || of_account { "+" } else { "" };
        condition.push_str(&format!(" AND {plus}d.state = '{}'", state.as_str()));
    }
    format!("{condition} ORDER BY d.id DESC LIMIT ?2")
}

/// The deliveries to the webhooks of an account, or to all webhooks, before an id, newest first, at most `limit`.
pub(crate) fn list(
    connection: &Connection,
    account: Option<&AccountId>,
    filter: DeliveryFilter,
    after: Option<&Cursor>,
    limit: u32,
) -> Result<Page<Delivery>> {
    let before = event::before(after)?;
    let Some(owner) = webhooks::owner(connection, account)? else { return Ok(page_of_rows(Vec::new(), limit)) };
    let sql = select(&listed(filter.webhook.is_some(), account.is_some(), filter.state));
    let mut values = vec![Value::Integer(before), Value::Integer(one_more_than(limit))];
    // SQLite numbers parameters up to the highest one that a statement has.
    if filter.webhook.is_some() || account.is_some() {
        values.push(filter.webhook.map_or(Value::Null, |webhook| Value::Blob(webhook.as_bytes().to_vec())));
    }
    values.extend(account.map(|_| Value::Integer(owner)));
    let mut statement = connection.prepare_cached(&sql).map_err(store_error)?;
    let rows = all(&mut statement, rusqlite::params_from_iter(values), stored)?;
    Ok(page_of_rows(rows.into_iter().map(|row| (row.delivery.id.get(), row.delivery)).collect(), limit))
}

/// Records how an attempt ended.
pub(crate) fn finish(
    connection: &Connection,
    id: DeliveryId,
    attempt: u32,
    outcome: &AttemptOutcome,
    now: Timestamp,
) -> Result<Option<Delivery>> {
    let Some(Stored { delivery, line, .. }) = by_id(connection, id)? else { return Ok(None) };
    let Some(progress) = delivery.progress.finished(attempt, outcome, now) else { return Ok(None) };
    progress::write(connection, id, &progress)?;
    if *outcome == AttemptOutcome::Gone {
        webhooks::mark_gone(connection, line)?;
    }
    if progress.state != DeliveryState::Pending {
        line.promote(connection)?;
    }
    Ok(Some(Delivery { progress, ..delivery }))
}

/// Sends a delivery of an account's webhooks again, or with `None` any delivery.
pub(crate) fn resend(
    connection: &Connection,
    account: Option<&AccountId>,
    id: DeliveryId,
    now: Timestamp,
) -> Result<Option<Delivery>> {
    let Some(of) = webhooks::owner(connection, account)? else { return Ok(None) };
    let is_theirs = |stored: &Stored| account.is_none() || stored.owner == Some(of);
    let Some(Stored { delivery, line, .. }) = by_id(connection, id)?.filter(is_theirs) else { return Ok(None) };
    let progress = delivery.progress.resent(now);
    progress::write(connection, id, &progress)?;
    line.requeued(connection, delivery.event.number)?;
    Ok(Some(Delivery { progress, ..delivery }))
}

/// Reads a delivery from the [`columns`].
pub(super) fn stored(row: &Row<'_>) -> rusqlite::Result<Result<Stored>> {
    let (id, line) = (DeliveryId::new(row.get(0)?), Line { webhook: row.get(1)?, account: row.get(2)? });
    let (owner, public_id): (_, Vec<u8>) = (row.get(3)?, row.get(4)?);
    let (progress, event) = (progress::read(row, 5)?, event::event(row, 5 + progress::COLUMN_COUNT)?);
    let read = || {
        let delivery = Delivery { id, webhook: webhooks::public_id(&public_id)?, event: event?, progress: progress? };
        Ok(Stored { delivery, line, owner })
    };
    Ok(read())
}

/// The queries whose plans are tested, with a step of each plan.
#[cfg(test)]
pub(super) fn queries() -> Vec<(String, &'static str)> {
    let parked = Some(DeliveryState::Parked);
    let (of_webhook, of_account) = (
        "SEARCH d USING INDEX delivery_webhook (webhook=? AND id<?)",
        "SEARCH d USING INDEX delivery_account (account=? AND id<?)",
    );
    [
        (listed(true, false, None), of_webhook),
        (listed(true, false, parked), of_webhook),
        (listed(true, true, parked), of_webhook),
        (listed(false, true, None), of_account),
        (listed(false, true, parked), of_account),
        (listed(false, false, parked), "SEARCH d USING INDEX delivery_state (state=? AND id<?)"),
        (listed(false, false, None), "SEARCH d USING INTEGER PRIMARY KEY (rowid<?)"),
    ]
    .map(|(condition, step)| (select(&condition), step))
    .into()
}
