//! Claims the deliveries that are due. Nearly always none is, so finding them takes no lock; what was found is checked
//! again by the write that claims it.

use std::time::Duration;

use metering_core::events::{Delivery, DeliveryBacklog, DeliveryShares, DueDelivery, Webhook, WebhookOwner};
use metering_core::{StoreError, Timestamp};

use crate::deliveries::{COLUMN_COUNT, TABLES, columns, delivery};
use crate::executor::Executor;
use crate::fault::{Fault, Result};
use crate::record::{Record, set};
use crate::row::{Row, only};
use crate::transfer::DeliveryRecord;
use crate::values;

/// For how long a delivery that cannot be read is put off. It must not hold up the others.
const UNREADABLE: Duration = Duration::from_secs(60 * 60);

/// How many candidates are read at a time, and how many pages of them at most.
const PAGE: usize = 500;
const MAX_PAGES: usize = 40;

/// The query for the deliveries that may be sent at `?1`, at most `limit`: with `?2` those to the operator's webhook,
/// otherwise those to customers. It reads as many entries of the index `delivery_due` as it returns, and none while the
/// operator's webhook is switched off. The limit is a literal: with an unknown limit PostgreSQL would plan for a large
/// one, and sort all that is due.
#[must_use]
pub fn heads(limit: u32) -> String {
    format!(
        "SELECT d.id FROM delivery d WHERE d.is_head AND (d.webhook = 0) = ?2 AND d.next_at <= ?1 \
         AND (NOT ?2 OR EXISTS (SELECT 1 FROM webhook w WHERE w.id = 0 AND w.state = 'active')) \
         ORDER BY d.next_at, d.id LIMIT {limit}"
    )
}

/// The query for the next page of the deliveries to customers' webhooks that may be sent at `?1`, with their accounts and
/// URLs, after the one with the time `?2` and the number `?3`. `?4` is false, so that it reads the index `delivery_due`.
#[must_use]
pub fn candidates() -> String {
    format!(
        "SELECT d.id, d.next_at, a.org_id, w.url FROM (SELECT d.id, d.next_at, d.webhook FROM delivery d \
           WHERE d.is_head AND (d.webhook = 0) = ?4 AND d.next_at <= ?1 AND (d.next_at, d.id) > (?2, ?3) \
           ORDER BY d.next_at, d.id LIMIT {PAGE}) d \
         {{join}} webhook w ON w.id = d.webhook {{join}} account a ON a.id = w.account"
    )
}

/// The deliveries that are due, oldest first, at most `limit`. Those to customers must have room in `shares`.
pub async fn find(
    db: &mut dyn Executor,
    now: Timestamp,
    limit: u32,
    owner: WebhookOwner,
    shares: &DeliveryShares,
) -> Result<Vec<i64>> {
    if owner == WebhookOwner::Customers && !shares.is_unlimited() {
        return within(db, now, limit, shares.clone()).await;
    }
    oldest(db, now, limit, owner).await
}

async fn oldest(db: &mut dyn Executor, now: Timestamp, limit: u32, owner: WebhookOwner) -> Result<Vec<i64>> {
    // Rounded up, so that a connection prepares few statements.
    let sql = heads(limit.checked_next_power_of_two().unwrap_or(limit));
    let rows = db.query(&sql, &values![now, owner == WebhookOwner::Operator]).await?;
    rows.iter().take(limit.try_into().unwrap_or(usize::MAX)).map(|row| row.get(0)).collect()
}

async fn within(db: &mut dyn Executor, now: Timestamp, limit: u32, mut shares: DeliveryShares) -> Result<Vec<i64>> {
    let (sql, limit) = (candidates(), usize::try_from(limit).unwrap_or(usize::MAX));
    let (mut found, mut after) = (Vec::new(), (i64::MIN, 0_i64));
    for _ in 0..MAX_PAGES {
        let rows = db.query(&sql, &values![now, after.0, after.1, false]).await?;
        let candidate = |row: &Row| Ok(((row.get(1)?, row.get(0)?), row.get::<String>(2)?, row.get::<String>(3)?));
        let mut page = rows.iter().map(candidate).collect::<Result<Vec<_>>>()?;
        page.sort_unstable();
        for (position, account, url) in &page {
            after = *position;
            if shares.take(account, url) {
                found.push(after.1);
                if found.len() >= limit {
                    return Ok(found);
                }
            }
        }
        if page.len() < PAGE {
            break;
        }
    }
    Ok(found)
}

/// The query for those of the deliveries `?1` that may still be sent at `?2`, with their webhooks.
#[must_use]
pub fn still_due() -> String {
    format!(
        "SELECT {}, {} FROM {TABLES} {{join}} webhook ON webhook.id = delivery.webhook \
         WHERE delivery.id {{in ?1}} AND delivery.is_head AND delivery.next_at <= ?2 AND webhook.state = 'active'",
        columns(),
        Webhook::TABLE.column_list()
    )
}

/// Claims those of the deliveries found that are still due, oldest first. Those that cannot be read are put off.
pub async fn claim(db: &mut dyn Executor, found: &[i64], now: Timestamp, lease: Duration) -> Result<Vec<DueDelivery>> {
    let (mut due, mut unreadable) = (Vec::new(), Vec::new());
    for row in db.query(&still_due(), &values![found, now]).await? {
        match delivery(&row).and_then(|(delivery, _)| Ok((delivery, Webhook::of_row_at(&row, COLUMN_COUNT)?))) {
            Err(Fault::Store(StoreError::Corrupt(problem))) => {
                let id: i64 = row.get(0)?;
                tracing::error!(delivery = id, problem, "a delivery cannot be read; it is put off for an hour");
                unreadable.push(id);
            }
            read => due.push(read?),
        }
    }
    let put_off: Vec<_> = unreadable.iter().map(|id| values![id, now.saturating_add(UNREADABLE)]).collect();
    set::<DeliveryRecord>(db, &["next_at"], &put_off).await?;
    due.sort_by_key(|(delivery, _)| (delivery.progress.next_at, delivery.id));
    let claimed = due.into_iter().map(|(delivery, webhook)| {
        let progress = delivery.progress.claimed(now, lease);
        DueDelivery { delivery: Delivery { progress, ..delivery }, webhook }
    });
    let claimed: Vec<_> = claimed.collect();
    let row = |DueDelivery { delivery: Delivery { id, progress, .. }, .. }: &DueDelivery| {
        values![id, progress.attempts, progress.next_at]
    };
    let rows: Vec<_> = claimed.iter().map(row).collect();
    set::<DeliveryRecord>(db, &["attempts", "next_at"], &rows).await?;
    Ok(claimed)
}

/// The query for the [`backlog`]. Counts the entries of indexes, and looks up which of the deliveries `?1` has been due
/// longest.
pub const BACKLOG: &str = "SELECT (SELECT count(*) FROM delivery WHERE state = 'pending'), \
     (SELECT count(*) FROM delivery WHERE state = 'parked'), (SELECT min(next_at) FROM delivery WHERE id {in ?1})";

/// How many deliveries wait, and since when the oldest one has been due that could be sent at `now`.
pub async fn backlog(db: &mut dyn Executor, now: Timestamp) -> Result<DeliveryBacklog> {
    let mut found = oldest(db, now, 1, WebhookOwner::Customers).await?;
    found.extend(oldest(db, now, 1, WebhookOwner::Operator).await?);
    let rows = db.query(BACKLOG, &values![found]).await?;
    let row = only(&rows)?;
    Ok(DeliveryBacklog { pending: row.get(0)?, parked: row.get(1)?, oldest_due: row.get(2)? })
}
