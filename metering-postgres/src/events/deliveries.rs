//! Deliveries of events to webhooks. They are inserted with their events, by the `outbox`; all else is serialized.

use std::time::Duration;

use metering_core::backend::{one_more_than, page_of_rows};
use metering_core::events::{
    AttemptOutcome, AttemptResult, Delivery, DeliveryFilter, DeliveryId, DeliveryState, DueDelivery, EventData,
    NewEvent, Progress, WebhookId, WebhookState,
};
use metering_core::store::{Cursor, Page};
use metering_core::{AccountId, Timestamp};
use tokio_postgres::Row;

use crate::connection::session::GenericClient;
use crate::error::{Result, corrupt};
use crate::events::outbox;
use crate::events::webhooks::{self, before};
use crate::rows::{Values, all, bytes, execute, exists, first, one, optional_timestamp, timestamp, unsigned};
use crate::transactions::serialized::{SerializedWrite, lock_meter};

/// The columns that [`progress`] reads.
pub(crate) const PROGRESS: &str = "d.state, d.attempts, d.since, d.next_at, d.last_at, d.last_status, d.last_error";

/// How many columns [`PROGRESS`] has.
const PROGRESS_WIDTH: usize = 7;

/// The tables of a delivery, its event and its webhook.
const TABLES: &str = "delivery d JOIN webhook w ON w.id = d.webhook JOIN event e ON e.number = d.event \
     LEFT JOIN account o ON o.id = e.account";

/// The deliveries that may be sent at `$1`, at most `$3`; with `$2`, those to the operator's webhook too. One seek in the
/// index `delivery_pending` per line (the events of an account on their way to a webhook), and one for its first
/// delivery, no matter how many wait behind that.
const DUE: &str = "WITH RECURSIVE line (webhook, account) AS ( \
       (SELECT d.webhook, d.account FROM delivery d WHERE d.state = 'pending' ORDER BY d.webhook, d.account LIMIT 1) \
       UNION ALL \
       SELECT next.webhook, next.account FROM line CROSS JOIN LATERAL ( \
         SELECT d.webhook, d.account FROM delivery d \
           WHERE d.state = 'pending' AND (d.webhook, d.account) > (line.webhook, line.account) \
           ORDER BY d.webhook, d.account LIMIT 1) next) \
     SELECT d.id, d.next_at FROM line CROSS JOIN LATERAL ( \
       SELECT p.id, p.next_at FROM delivery p \
         WHERE p.state = 'pending' AND p.webhook = line.webhook AND p.account = line.account \
         ORDER BY p.webhook, p.account, p.event, p.id LIMIT 1) d \
     JOIN webhook w ON w.id = line.webhook \
     WHERE d.next_at <= $1 AND w.state = 'active' AND (w.account IS NOT NULL OR $2) \
     ORDER BY d.next_at, d.id LIMIT $3";

fn columns() -> String {
    format!("d.id, w.public_id, {PROGRESS}, {}", outbox::COLUMNS)
}

/// How many columns [`columns`] returns.
const WIDTH: usize = 2 + PROGRESS_WIDTH + 5;

/// The deliveries to the webhooks of an account, or to all, newest first, at most `limit` after a cursor.
pub(crate) async fn list<C: GenericClient>(
    client: &C,
    account: Option<&AccountId>,
    filter: DeliveryFilter,
    after: Option<&Cursor>,
    limit: u32,
) -> Result<Page<Delivery>> {
    let sql = format!(
        "SELECT {} FROM {TABLES} WHERE d.id < $1 \
         AND ($2::TEXT IS NULL OR w.account = (SELECT id FROM account WHERE org_id = $2::TEXT)) \
         AND ($3::BYTEA IS NULL OR d.webhook = (SELECT id FROM webhook WHERE public_id = $3::BYTEA)) \
         AND ($4::TEXT IS NULL OR d.state = $4::TEXT) ORDER BY d.id DESC LIMIT $5",
        columns()
    );
    let webhook = filter.webhook.as_ref().map(|webhook| webhook.as_bytes().as_slice());
    let (account, state) = (account.map(AccountId::as_str), filter.state.map(DeliveryState::as_str));
    let rows = all(client, &sql, &[&before(after)?, &account, &webhook, &state, &one_more_than(limit)]).await?;
    let deliveries = rows.iter().map(|row| delivery(row).map(|delivery| (delivery.id.get(), delivery)));
    Ok(page_of_rows(deliveries.collect::<Result<_>>()?, limit))
}

/// Writes a test of a webhook of an account, or of the operator's.
pub(crate) async fn test(
    write: &SerializedWrite<'_>,
    account: Option<&AccountId>,
    webhook: &WebhookId,
    now: Timestamp,
) -> Result<Option<Delivery>> {
    let client = write.client();
    let Some((rows, _)) = webhooks::find(client, account, webhook).await? else { return Ok(None) };
    if let Some(account) = rows.account {
        // Events are numbered under this lock.
        lock_meter(client, account).await?;
    }
    let event = NewEvent { account: account.cloned(), data: EventData::TEST, created_at: now };
    let account = rows.account.unwrap_or(outbox::NO_ACCOUNT);
    let sql = "INSERT INTO event (account, kind, data, created_at) VALUES ($1, $2, $3, $4) RETURNING number";
    let values: Values<'_> = &[&account, &event.data.kind().as_str(), &event.json(), &now.unix_millis()];
    let number: i64 = one(client, sql, values).await?.try_get(0)?;
    let sql = "INSERT INTO delivery (webhook, event, account, state, attempts, since, next_at) \
               VALUES ($1, $2, $3, 'pending', 0, $4, $4) RETURNING id";
    let row = one(client, sql, &[&rows.webhook, &number, &account, &now.unix_millis()]).await?;
    by_id(client, DeliveryId::new(row.try_get(0)?)).await
}

/// Whether a delivery is due. The usual answer is no, and needs no lock.
pub(crate) async fn is_any_due<C: GenericClient>(client: &C, now: Timestamp, for_operator: bool) -> Result<bool> {
    exists(client, DUE, &[&now.unix_millis(), &for_operator, &1_i64]).await
}

/// Claims the deliveries that are due, at most `limit`.
pub(crate) async fn claim(
    write: &SerializedWrite<'_>,
    now: Timestamp,
    lease: Duration,
    limit: u32,
    for_operator: bool,
) -> Result<Vec<DueDelivery>> {
    let client = write.client();
    let rows = all(client, DUE, &[&now.unix_millis(), &for_operator, &i64::from(limit)]).await?;
    let ids = rows.iter().map(|row| Ok(row.try_get(0)?)).collect::<Result<Vec<i64>>>()?;
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let sql = format!(
        "SELECT {}, {} FROM {TABLES} LEFT JOIN account a ON a.id = w.account \
         WHERE d.id = ANY($1) ORDER BY d.next_at, d.id",
        columns(),
        webhooks::COLUMNS
    );
    let read = |row: &Row| {
        let Delivery { id, webhook, event, progress } = delivery(row)?;
        let delivery = Delivery { id, webhook, event, progress: progress.claimed(now, lease) };
        Ok(DueDelivery { delivery, webhook: webhooks::webhook(row, WIDTH)? })
    };
    let claimed = all(client, &sql, &[&ids]).await?.iter().map(read).collect::<Result<Vec<_>>>()?;
    let progress = |of: fn(&Progress) -> i64| claimed.iter().map(|due| of(&due.delivery.progress)).collect::<Vec<_>>();
    let values: Values<'_> = &[
        &claimed.iter().map(|due| due.delivery.id.get()).collect::<Vec<i64>>(),
        &progress(|progress| progress.attempts.into()),
        &progress(|progress| progress.next_at.unix_millis()),
    ];
    let sql = "UPDATE delivery d SET attempts = new.attempts, next_at = new.next_at \
               FROM unnest($1::BIGINT[], $2::BIGINT[], $3::BIGINT[]) AS new (id, attempts, next_at) WHERE d.id = new.id";
    execute(client, sql, values).await?;
    Ok(claimed)
}

/// Records how an attempt ended.
pub(crate) async fn finish(
    write: &SerializedWrite<'_>,
    id: DeliveryId,
    attempt: u32,
    outcome: &AttemptOutcome,
    now: Timestamp,
) -> Result<Option<Delivery>> {
    let client = write.client();
    let Some(delivery) = by_id(client, id).await? else { return Ok(None) };
    let Some(progress) = delivery.progress.finished(attempt, outcome, now) else { return Ok(None) };
    set_progress(client, id, &progress).await?;
    if *outcome == AttemptOutcome::Gone {
        let sql = "UPDATE webhook SET state = $2 WHERE public_id = $1 AND account IS NOT NULL";
        execute(client, sql, &[&delivery.webhook.as_bytes().as_slice(), &WebhookState::Gone.as_str()]).await?;
    }
    Ok(Some(Delivery { progress, ..delivery }))
}

/// Sends a delivery again.
pub(crate) async fn resend(
    write: &SerializedWrite<'_>,
    account: Option<&AccountId>,
    id: DeliveryId,
    now: Timestamp,
) -> Result<Option<Delivery>> {
    let client = write.client();
    let Some(delivery) = by_id(client, id).await? else { return Ok(None) };
    if account.is_some() && webhooks::find(client, account, &delivery.webhook).await?.is_none() {
        return Ok(None);
    }
    let progress = delivery.progress.resent(now);
    set_progress(client, id, &progress).await?;
    Ok(Some(Delivery { progress, ..delivery }))
}

async fn by_id<C: GenericClient>(client: &C, id: DeliveryId) -> Result<Option<Delivery>> {
    let sql = format!("SELECT {} FROM {TABLES} WHERE d.id = $1", columns());
    first(client, &sql, &[&id.get()]).await?.as_ref().map(delivery).transpose()
}

async fn set_progress<C: GenericClient>(client: &C, id: DeliveryId, progress: &Progress) -> Result<()> {
    let sql = "UPDATE delivery SET state = $2, attempts = $3, since = $4, next_at = $5, last_at = $6, \
               last_status = $7, last_error = $8 WHERE id = $1";
    let last = progress.last.as_ref();
    let values: Values<'_> = &[
        &id.get(),
        &progress.state.as_str(),
        &i64::from(progress.attempts),
        &progress.since.unix_millis(),
        &progress.next_at.unix_millis(),
        &last.map(|last| last.at.unix_millis()),
        &last.and_then(|last| last.status).map(i64::from),
        &last.and_then(|last| last.error.as_deref()),
    ];
    execute(client, sql, values).await.map(drop)
}

/// Reads a delivery from [`columns`].
fn delivery(row: &Row) -> Result<Delivery> {
    Ok(Delivery {
        id: DeliveryId::new(row.try_get(0)?),
        webhook: WebhookId::from_bytes(bytes(row, 1)?),
        event: outbox::event(row, 2 + PROGRESS_WIDTH)?,
        progress: progress(row, 2)?,
    })
}

/// Reads how far a delivery is from [`PROGRESS`], which starts at `first`.
pub(crate) fn progress(row: &Row, first: usize) -> Result<Progress> {
    let state: &str = row.try_get(first)?;
    let state = DeliveryState::from_name(state);
    let last = match optional_timestamp(row, first + 4)? {
        None => None,
        Some(at) => {
            let status = row.try_get::<_, Option<i64>>(first + 5)?.map(|_| unsigned(row, first + 5)).transpose()?;
            Some(AttemptResult { at, status, error: row.try_get(first + 6)? })
        }
    };
    Ok(Progress {
        state: state.ok_or_else(|| corrupt("a delivery is in an unknown state"))?,
        attempts: unsigned(row, first + 1)?,
        since: timestamp(row, first + 2)?,
        next_at: timestamp(row, first + 3)?,
        last,
    })
}

#[cfg(test)]
mod tests {
    use metering_tests::postgres::{Cluster, is_skipped, schema_of};

    use super::DUE;
    use crate::PostgresStore;

    #[tokio::test(flavor = "multi_thread")]
    async fn deliveries_that_wait_behind_others_are_not_read() {
        if is_skipped() {
            return;
        }
        let url = Cluster::shared().fresh_schema();
        PostgresStore::connect(&url.parse().unwrap()).await.unwrap();
        let schema = schema_of(&url);
        let run = |sql: &str| Cluster::shared().run(&format!("SET search_path = {schema}; {sql}"));
        // Six lines. On those of the first webhook, the first delivery is not due yet; the second one is disabled.
        run("INSERT INTO webhook (id, public_id, url, kinds, state, created_at) \
               SELECT n, decode(repeat('0' || n, 16), 'hex'), 'https://hooks.example.com/', '', \
                 CASE n WHEN 2 THEN 'disabled' ELSE 'active' END, 0 FROM generate_series(1, 3) n; \
             INSERT INTO event SELECT n, 1 + n % 2, 'key.created', '{}', 0 FROM generate_series(1, 20000) n; \
             INSERT INTO delivery (webhook, event, account, state, attempts, since, next_at) \
               SELECT w, n, 1 + n % 2, 'pending', 0, 0, CASE WHEN w = 1 AND n < 3 THEN 60 ELSE 0 END \
               FROM generate_series(1, 20000) n, generate_series(1, 3) w; \
             ANALYZE delivery, event, webhook");
        let due = DUE.replace("$1", "30").replace("$2", "TRUE").replace("$3", "100");
        assert_eq!(run(&format!("SELECT count(*) FROM ({due}) d")), "2");
        let plan = run(&format!("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) {due}"));
        let scans: Vec<&str> = plan.lines().filter(|line| line.contains(" on delivery")).collect();
        // The first line, one seek for each later one and a last that finds none, and the first delivery of each.
        let few = |scan: &&str| {
            let is_seek = scan.contains("Index") && (scan.contains("rows=1 ") || scan.contains("rows=0.83 "));
            is_seek && (1..=6).any(|loops| scan.ends_with(&format!("loops={loops})")))
        };
        assert!(scans.len() == 3 && scans.iter().all(few), "{plan}");
    }
}
