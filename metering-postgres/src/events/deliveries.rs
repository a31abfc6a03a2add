//! Deliveries of events to webhooks. They are inserted with their events, by the `outbox`; all else is serialized.

use metering_core::backend::{one_more_than, page_of_rows};
use metering_core::events::{
    AttemptOutcome, Delivery, DeliveryFilter, DeliveryId, DeliveryState, EventData, NewEvent, WebhookId, WebhookState,
};
use metering_core::store::{Cursor, Page};
use metering_core::{AccountId, Timestamp};
use tokio_postgres::Row;

use crate::connection::session::GenericClient;
use crate::connection::value::Value;
use crate::error::Result;
use crate::events::heads::{self, Line};
use crate::events::outbox::{self, before};
use crate::events::progress::{self, PROGRESS};
use crate::events::webhooks;
use crate::rows::{Values, all, bytes, execute, first, one};
use crate::transactions::serialized::{SerializedWrite, lock_meter};

/// The tables of a delivery, its event and its webhook.
pub(crate) const TABLES: &str = "delivery d JOIN webhook w ON w.id = d.webhook JOIN event e ON e.number = d.event \
     LEFT JOIN account o ON o.id = e.account";

/// The columns that [`delivery`] reads from [`TABLES`].
pub(crate) fn columns() -> String {
    format!("d.id, w.public_id, {PROGRESS}, {}", outbox::COLUMNS)
}

/// How many columns [`columns`] returns.
pub(crate) const WIDTH: usize = 2 + progress::WIDTH + 5;

/// The deliveries to the webhooks of an account, or to all, newest first, at most `limit` after a cursor.
pub(crate) async fn list<C: GenericClient>(
    client: &C,
    account: Option<&AccountId>,
    filter: DeliveryFilter,
    after: Option<&Cursor>,
    limit: u32,
) -> Result<Page<Delivery>> {
    let states: Vec<&str> = DeliveryState::ALL.map(DeliveryState::as_str).into();
    let states = filter.state.map_or(states, |state| vec![state.as_str()]);
    let (before, limit_and_one) = (before(after)?, one_more_than(limit));
    let account = account.map(AccountId::as_str);
    let webhook = filter.webhook.as_ref().map(|webhook| webhook.as_bytes().as_slice());
    let mut values: Vec<&dyn Value> = vec![&before, &states, &limit_and_one];
    if let Some(account) = &account {
        values.push(account);
    }
    if let Some(webhook) = &webhook {
        values.push(webhook);
    }
    let rows = all(client, &listed(account.is_some(), webhook.is_some()), &values).await?;
    let deliveries = rows.iter().map(|row| delivery(row).map(|delivery| (delivery.id.get(), delivery)));
    Ok(page_of_rows(deliveries.collect::<Result<_>>()?, limit))
}

/// The statement that lists deliveries below `$1` in the states `$2`, at most `$3`: those of an account, those to a
/// webhook, both (`$4` and `$5`), or all. Each has only the conditions that apply, and so a plan of its own that does not
/// depend on the values: a seek in an index per webhook and state, each for at most as many rows as the page has.
fn listed(of_account: bool, to_webhook: bool) -> String {
    let hooks = match (of_account, to_webhook) {
        (false, false) => "",
        (true, false) => "JOIN webhook h ON h.account = (SELECT id FROM account WHERE org_id = $4)",
        (false, true) => "JOIN webhook h ON h.public_id = $4",
        (true, true) => "JOIN webhook h ON h.account = (SELECT id FROM account WHERE org_id = $4) AND h.public_id = $5",
    };
    // Each order is that of one index only: `delivery_state` or `delivery_webhook`. With the primary key's order, the
    // database might look for the page among all deliveries.
    let page = if hooks.is_empty() {
        "p.state >= s.state AND (p.state, p.id) < (s.state, $1) ORDER BY p.state DESC, p.id DESC"
    } else {
        "p.webhook = h.id AND p.state = s.state AND p.id < $1 ORDER BY p.id DESC NULLS LAST"
    };
    format!(
        "SELECT {} FROM {TABLES} WHERE d.id = ANY (ARRAY ( \
           SELECT page.id FROM unnest($2::TEXT[]) AS s (state) {hooks} CROSS JOIN LATERAL ( \
             SELECT p.id FROM delivery p WHERE {page} LIMIT $3) page \
           ORDER BY page.id DESC LIMIT $3)) ORDER BY d.id DESC",
        columns()
    )
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
    heads::mark(client, &[Line { webhook: rows.webhook, account }]).await?;
    Ok(by_id(client, DeliveryId::new(row.try_get(0)?)).await?.map(|(delivery, _)| delivery))
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
    let Some((delivery, line)) = by_id(client, id).await? else { return Ok(None) };
    let Some(progress) = delivery.progress.clone().finished(attempt, outcome, now) else { return Ok(None) };
    if progress.state == DeliveryState::Pending {
        progress::set(client, id.get(), &progress).await?;
        return Ok(Some(Delivery { progress, ..delivery }));
    }
    heads::lock(client, &[line]).await?;
    progress::set(client, id.get(), &progress).await?;
    if *outcome == AttemptOutcome::Gone {
        // If an older one was resent meanwhile, that is the head.
        heads::unmark(client, line).await?;
        let sql = "UPDATE webhook SET state = $2 WHERE public_id = $1 AND account IS NOT NULL";
        execute(client, sql, &[&delivery.webhook.as_bytes().as_slice(), &WebhookState::Gone.as_str()]).await?;
    }
    heads::mark(client, &[line]).await?;
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
    let Some((delivery, line)) = by_id(client, id).await? else { return Ok(None) };
    if account.is_some() && webhooks::find(client, account, &delivery.webhook).await?.is_none() {
        return Ok(None);
    }
    let was_pending = delivery.progress.state == DeliveryState::Pending;
    let progress = delivery.progress.resent(now);
    if was_pending {
        progress::set(client, id.get(), &progress).await?;
    } else {
        heads::lock(client, &[line]).await?;
        heads::unmark(client, line).await?;
        progress::set(client, id.get(), &progress).await?;
        heads::mark(client, &[line]).await?;
    }
    Ok(Some(Delivery { progress, ..delivery }))
}

/// A delivery and its line.
async fn by_id<C: GenericClient>(client: &C, id: DeliveryId) -> Result<Option<(Delivery, Line)>> {
    let sql = format!("SELECT {}, d.webhook, d.account FROM {TABLES} WHERE d.id = $1", columns());
    let row = first(client, &sql, &[&id.get()]).await?;
    row.as_ref().map(|row| Ok((delivery(row)?, Line::read(row, WIDTH)?))).transpose()
}

/// Reads a delivery from [`columns`].
pub(crate) fn delivery(row: &Row) -> Result<Delivery> {
    Ok(Delivery {
        id: DeliveryId::new(row.try_get(0)?),
        webhook: WebhookId::from_bytes(bytes(row, 1)?),
        event: outbox::event(row, 2 + progress::WIDTH)?,
        progress: progress::progress(row, 2)?,
    })
}

#[cfg(test)]
mod tests {
    use super::listed;
    use crate::schema::Schema;

    /// Prepared statements keep one plan for all values after a few executions; so do these.
    #[tokio::test(flavor = "multi_thread")]
    async fn lists_read_no_more_than_a_page_of_each_webhook_and_state() {
        let Some(schema) = Schema::new().await else { return };
        let run = |sql: &str| schema.run(sql);
        // Of 30,000 deliveries to 3 webhooks, account 7 has the 3 oldest ones. One in 5,000 is parked.
        run("INSERT INTO account (id, org_id, agent_name, created_at) \
               SELECT n, 'org_' || n, 'agent', 0 FROM generate_series(7, 8) n; \
             INSERT INTO webhook (id, public_id, account, url, kinds, state, created_at) \
               SELECT n, decode(repeat('0' || n, 16), 'hex'), CASE n WHEN 1 THEN 7 WHEN 2 THEN 8 END, \
                 'https://hooks.example.com/', '', 'active', 0 FROM generate_series(0, 2) n; \
             INSERT INTO event SELECT n, 8, 'key.created', '{}', 0 FROM generate_series(1, 30000) n; \
             INSERT INTO delivery (webhook, event, account, state, attempts, since, next_at) \
               SELECT CASE WHEN n < 4 THEN 1 ELSE (n + 1) % 2 * 2 END, n, 8, \
                 CASE n % 5000 WHEN 1 THEN 'parked' ELSE 'delivered' END, 0, 0, 0 FROM generate_series(1, 30000) n; \
             ANALYZE account, webhook, event, delivery");
        let hook = |n: u8| format!("'\\x{}'", format!("{n:02}").repeat(16));
        let (every, parked) = ("'{pending,delivered,parked}'", "'{parked}'");
        let (first, second) = (hook(1), hook(2));
        // of an account, to a webhook, states, the values of both, rows
        let table = [
            (false, false, every, String::new(), 5),
            (false, false, parked, String::new(), 5),
            (true, false, every, ", 'org_7'".to_owned(), 3),
            (true, false, parked, ", 'org_7'".to_owned(), 1),
            (true, false, every, ", 'org_8'".to_owned(), 5),
            (false, true, every, format!(", {second}"), 5),
            (false, true, parked, format!(", {second}"), 0),
            (true, true, every, format!(", 'org_7', {first}"), 3),
            (true, true, every, format!(", 'org_7', {second}"), 0),
        ];
        for (of_account, to_webhook, states, values, count) in table {
            let statement = listed(of_account, to_webhook);
            let execute = format!("EXECUTE listed (1000000, {states}, 5{values})");
            let prepared = format!("SET plan_cache_mode = force_generic_plan; PREPARE listed AS {statement}");
            let listed = run(&format!("{prepared}; {execute}"));
            assert_eq!(listed.lines().count(), count, "{execute}: {listed}");
            let plan = run(&format!("{prepared}; EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF) {execute}"));
            let scans: Vec<&str> =
                plan.lines().filter(|line| line.contains(" on delivery") || line.contains(" on event")).collect();
            let is_seek = |scan: &&str| scan.contains("Index") && !scan.contains("Seq Scan");
            assert!(scans.len() >= 3 && scans.iter().all(is_seek), "{execute}: {plan}");
            let filtered = plan.lines().filter_map(|line| line.split_once("Rows Removed by Filter: "));
            let filtered: u64 = filtered.map(|(_, rows)| rows.parse::<u64>().unwrap()).sum();
            assert!(filtered < 10, "{execute}: {plan}");
            // The first line with pages is the whole statement's.
            let pages = plan.lines().find_map(|line| line.split_once("Buffers: shared hit="));
            let pages: u64 = pages.unwrap().1.split(' ').next().unwrap().parse().unwrap();
            assert!(pages < 100, "{execute}: {plan}");
        }
    }
}
