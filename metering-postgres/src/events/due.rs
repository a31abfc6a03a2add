//! Claims the deliveries that are due. Nearly always none is, and looking for them takes no lock; what was found is checked
//! again under the lock.

use std::time::Duration;

use metering_core::events::{Delivery, DeliveryShares, DueDelivery, Progress, WebhookOwner};
use metering_core::{StoreError, Timestamp};
use tokio_postgres::Row;

use crate::connection::session::GenericClient;
use crate::error::Result;
use crate::events::deliveries::{TABLES, WIDTH, columns, delivery};
use crate::events::webhooks;
use crate::rows::{Values, all, execute};
use crate::transactions::serialized::SerializedWrite;

/// How long a delivery that cannot be read is put off.
const UNREADABLE: Duration = Duration::from_secs(60 * 60);

/// The statement for the deliveries that may be sent at `$1`, at most `limit`: with `$2` those to the operator's webhook,
/// otherwise those to customers. It reads as many entries of the index `delivery_due` as it returns, and none while the
/// operator's webhook is switched off. The limit is a literal: with an unknown limit the database would plan for a large
/// one, and sort all that is due.
fn statement(limit: u32) -> String {
    format!(
        "SELECT d.id FROM delivery d WHERE d.is_head AND (d.webhook = 0) = $2 AND d.next_at <= $1 \
         AND (NOT $2 OR EXISTS (SELECT FROM webhook w WHERE w.id = 0 AND w.state = 'active')) \
         ORDER BY d.next_at, d.id LIMIT {limit}"
    )
}

/// Which of the deliveries that were found may still be sent.
const STILL_DUE: &str = "d.id = ANY ($1) AND d.is_head AND d.next_at <= $2 AND w.state = 'active'";

/// The deliveries that are due, at most `limit`, the oldest first.
pub(crate) async fn find<C: GenericClient>(
    client: &C,
    now: Timestamp,
    limit: u32,
    owner: WebhookOwner,
) -> Result<Vec<i64>> {
    let is_operator = owner == WebhookOwner::Operator;
    // Rounded up, so that a connection prepares few statements.
    let sql = statement(limit.checked_next_power_of_two().unwrap_or(limit));
    let rows = all(client, &sql, &[&now.unix_millis(), &is_operator]).await?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    rows.iter().take(limit).map(|row| Ok(row.try_get(0)?)).collect()
}

/// How many candidates are read at a time, and how many pages of them at most.
const PAGE: usize = 500;
const MAX_PAGES: usize = 40;

/// The next page of the deliveries to customers' webhooks that may be sent at `$1`, with their accounts and URLs, after
/// the one with the time `$2` and the number `$3`. `$4` is false, so that it reads the index `delivery_due`.
fn candidates() -> String {
    format!(
        "SELECT d.id, d.next_at, a.org_id, w.url FROM (SELECT d.id, d.next_at, d.webhook FROM delivery d \
           WHERE d.is_head AND (d.webhook = 0) = $4 AND d.next_at <= $1 AND (d.next_at, d.id) > ($2, $3) \
           ORDER BY d.next_at, d.id LIMIT {PAGE}) d \
         JOIN webhook w ON w.id = d.webhook JOIN account a ON a.id = w.account ORDER BY d.next_at, d.id"
    )
}

/// The deliveries to customers' webhooks that are due and have room in `shares`, at most `limit`, the oldest first.
pub(crate) async fn find_within<C: GenericClient>(
    client: &C,
    now: Timestamp,
    limit: u32,
    mut shares: DeliveryShares,
) -> Result<Vec<i64>> {
    let (sql, limit) = (candidates(), usize::try_from(limit).unwrap_or(usize::MAX));
    let (mut found, mut after) = (Vec::new(), (i64::MIN, 0_i64));
    for _ in 0..MAX_PAGES {
        let page = all(client, &sql, &[&now.unix_millis(), &after.0, &after.1, &false]).await?;
        for row in &page {
            let (id, next_at): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
            after = (next_at, id);
            if shares.take(row.try_get(2)?, row.try_get(3)?) {
                found.push(id);
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

/// Claims those of the deliveries found that are still due. Those that cannot be read are put off.
pub(crate) async fn claim(
    write: &SerializedWrite<'_>,
    found: &[i64],
    now: Timestamp,
    lease: Duration,
) -> Result<Vec<DueDelivery>> {
    let client = write.client();
    let sql = format!(
        "SELECT {}, {} FROM {TABLES} LEFT JOIN account a ON a.id = w.account WHERE {STILL_DUE} ORDER BY d.next_at, d.id",
        columns(),
        webhooks::COLUMNS
    );
    let (mut claimed, mut unreadable) = (Vec::new(), Vec::new());
    for row in all(client, &sql, &[&found, &now.unix_millis()]).await? {
        match due(&row, now, lease) {
            Ok(due) => claimed.push(due),
            Err(failure) => {
                let (id, error): (i64, _) = (row.try_get(0)?, StoreError::from(failure));
                tracing::error!(delivery = id, %error, "cannot read a webhook's delivery; trying again in an hour");
                unreadable.push(id);
            }
        }
    }
    if !unreadable.is_empty() {
        let next_at = now.saturating_add(UNREADABLE).unix_millis();
        execute(client, "UPDATE delivery SET next_at = $2 WHERE id = ANY ($1)", &[&unreadable, &next_at]).await?;
    }
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

/// Reads a delivery and its webhook, and claims it.
fn due(row: &Row, now: Timestamp, lease: Duration) -> Result<DueDelivery> {
    let Delivery { id, webhook, event, progress } = delivery(row)?;
    let delivery = Delivery { id, webhook, event, progress: progress.claimed(now, lease) };
    Ok(DueDelivery { delivery, webhook: webhooks::webhook(row, WIDTH)? })
}

#[cfg(test)]
mod tests {
    use super::statement;
    use crate::schema::Schema;

    /// However many lines wait for a later time, and however many deliveries wait behind their heads. Prepared statements
    /// keep one plan for all values after a few executions; so do these.
    #[tokio::test(flavor = "multi_thread")]
    async fn a_look_reads_only_what_is_due() {
        let Some(schema) = Schema::new().await else { return };
        let run = |sql: &str| schema.run(sql);
        // 30,000 lines of the operator and as many of customers, with two deliveries each. The heads of three are due.
        run("INSERT INTO account (id, org_id, agent_name, created_at) VALUES (7, 'org_7', 'agent', 0); \
             INSERT INTO webhook (id, public_id, account, url, kinds, state, created_at) \
               SELECT n, decode(lpad(to_hex(n), 32, '0'), 'hex'), CASE WHEN n > 0 THEN 7 END, \
                 'https://hooks.example.com/', '', 'active', 0 FROM generate_series(0, 30000) n; \
             INSERT INTO event SELECT n, n, 'key.created', '{}', 0 FROM generate_series(1, 60000) n; \
             INSERT INTO delivery (id, webhook, event, account, state, attempts, since, next_at, is_head) \
               SELECT h * 100000 + n, n % 30001 * h, n, n % 30001, 'pending', 0, 0, \
                 CASE WHEN n IN (11, 22, 33) THEN 60 - n WHEN n <= 30000 THEN 100 ELSE 0 END, n <= 30000 \
               FROM generate_series(1, 60000) n, generate_series(0, 1) h WHERE n <> 30001; \
             ANALYZE delivery, event, webhook");
        // operator, now, limit, state of the operator's webhook, found
        let table = [
            (true, 60, 4, "active", "33 22 11"),
            (true, 60, 2, "active", "33 22"),
            (true, 20, 4, "active", ""),
            (true, 100, 4, "active", "33 22 11 1"),
            (true, 100, 4, "disabled", ""),
            (false, 60, 4, "disabled", "100033 100022 100011"),
            (false, 20, 4, "active", ""),
            (false, 100, 4, "active", "100033 100022 100011 100001"),
        ];
        for (is_operator, now, limit, state, found) in table {
            run(&format!("UPDATE webhook SET state = '{state}' WHERE id = 0"));
            let execute = format!("EXECUTE due ({now}, {is_operator})");
            let prepared = format!("SET plan_cache_mode = force_generic_plan; PREPARE due AS {}", statement(limit));
            assert_eq!(
                run(&format!("{prepared}; {execute}")).lines().collect::<Vec<_>>().join(" "),
                found,
                "{execute}"
            );
            let plan = run(&format!("{prepared}; EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF) {execute}"));
            // The first line with pages is the whole statement's.
            let pages =
                plan.lines().find_map(|line| line.split_once("Buffers: shared hit=")).map_or("0", |line| line.1);
            let pages: u64 = pages.split(' ').next().unwrap().parse().unwrap();
            assert!(pages < 12 && !plan.contains("Sort"), "{execute}: {plan}");
        }
    }
}
