//! Claims the deliveries that are due. Nearly always none is, and looking for them takes no lock; what was found is checked
//! again under the lock.

use std::time::Duration;

use metering_core::events::{Delivery, DueDelivery, Progress, WebhookOwner};
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

/// The deliveries that may be sent at `$1`, at most `$3`: with `$2` those to the operator's webhook, otherwise those to
/// customers. One seek in the index `delivery_pending` per webhook, one per line of the active ones (the events of an
/// account on their way to a webhook), and one for the first delivery of each, no matter how many wait behind that.
const DUE: &str = "WITH RECURSIVE hook (id) AS ( \
       (SELECT d.webhook FROM delivery d WHERE d.state = 'pending' ORDER BY d.webhook LIMIT 1) \
       UNION ALL \
       SELECT next.webhook FROM hook CROSS JOIN LATERAL ( \
         SELECT d.webhook FROM delivery d WHERE d.state = 'pending' AND d.webhook > hook.id \
           ORDER BY d.webhook LIMIT 1) next), \
     line (webhook, account) AS ( \
       SELECT w.id, d.account FROM hook JOIN webhook w ON w.id = hook.id CROSS JOIN LATERAL ( \
         SELECT p.account FROM delivery p WHERE p.state = 'pending' AND p.webhook = w.id \
           ORDER BY p.webhook, p.account LIMIT 1) d \
         WHERE w.state = 'active' AND (w.account IS NULL) = $2 \
       UNION ALL \
       SELECT line.webhook, next.account FROM line CROSS JOIN LATERAL ( \
         SELECT d.account FROM delivery d \
           WHERE d.state = 'pending' AND d.webhook = line.webhook AND d.account > line.account \
           ORDER BY d.webhook, d.account LIMIT 1) next) \
     SELECT d.id FROM line CROSS JOIN LATERAL ( \
       SELECT p.id, p.next_at FROM delivery p \
         WHERE p.state = 'pending' AND p.webhook = line.webhook AND p.account = line.account \
         ORDER BY p.webhook, p.account, p.event, p.id LIMIT 1) d \
     WHERE d.next_at <= $1 ORDER BY d.next_at, d.id LIMIT $3";

/// Which of the deliveries that were found may still be sent.
const STILL_DUE: &str = "d.id = ANY ($1) AND d.state = 'pending' AND d.next_at <= $2 AND w.state = 'active' \
     AND NOT EXISTS (SELECT FROM delivery p WHERE p.state = 'pending' AND p.webhook = d.webhook \
       AND p.account = d.account AND (p.event, p.id) < (d.event, d.id))";

/// The deliveries that are due, at most `limit`, the oldest first.
pub(crate) async fn find<C: GenericClient>(
    client: &C,
    now: Timestamp,
    limit: u32,
    owner: WebhookOwner,
) -> Result<Vec<i64>> {
    let is_operator = owner == WebhookOwner::Operator;
    let rows = all(client, DUE, &[&now.unix_millis(), &is_operator, &i64::from(limit)]).await?;
    rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
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
        // Eight lines. On those of the first webhook, the first delivery is not due yet; the second webhook is disabled,
        // and the fourth one is a customer's.
        run("INSERT INTO account (id, org_id, agent_name, created_at) VALUES (7, 'org_7', 'agent', 0); \
             INSERT INTO webhook (id, public_id, account, url, kinds, state, created_at) \
               SELECT n, decode(repeat('0' || n, 16), 'hex'), CASE n WHEN 4 THEN 7 END, 'https://hooks.example.com/', \
                 '', CASE n WHEN 2 THEN 'disabled' ELSE 'active' END, 0 FROM generate_series(1, 4) n; \
             INSERT INTO event SELECT n, 1 + n % 2, 'key.created', '{}', 0 FROM generate_series(1, 20000) n; \
             INSERT INTO delivery (webhook, event, account, state, attempts, since, next_at) \
               SELECT w, n, 1 + n % 2, 'pending', 0, 0, CASE WHEN w = 1 AND n < 3 THEN 60 ELSE 0 END \
               FROM generate_series(1, 20000) n, generate_series(1, 4) w; \
             ANALYZE delivery, event, webhook");
        for (is_operator, found) in [("TRUE", "5\n6"), ("FALSE", "7\n8")] {
            let due = DUE.replace("$1", "30").replace("$2", is_operator).replace("$3", "100");
            let webhooks =
                format!("SELECT d.webhook * 2 - d.event % 2 FROM delivery d JOIN ({due}) f USING (id) ORDER BY 1");
            assert_eq!(run(&webhooks), found);
            let plan = run(&format!("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) {due}"));
            let scans: Vec<&str> = plan.lines().filter(|line| line.contains(" on delivery")).collect();
            // The first webhook, one seek for each later one and a last that finds none; the same for the lines of each
            // that is asked for; and the first delivery of each line.
            let few = |scan: &&str| {
                let rows = scan.split_once("(actual rows=").and_then(|(_, rest)| rest.split([' ', '.']).next());
                let is_seek = scan.contains("Index") && rows.is_some_and(|rows| rows == "1" || rows == "0");
                is_seek && (1..=8).any(|loops| scan.ends_with(&format!("loops={loops})")))
            };
            assert!(scans.len() == 5 && scans.iter().all(few), "{plan}");
        }
    }
}
