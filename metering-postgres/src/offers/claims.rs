//! Claims pending authorizations. Looking for them takes no lock; what was found is checked again under the lock.

use std::time::Duration;

use metering_core::Timestamp;
use metering_core::offers::{AuthorizationId, AuthorizationRecord};

use super::rows::{BY_ID, record, select};
use crate::connection::session::GenericClient;
use crate::error::Result;
use crate::rows::{all, execute};
use crate::transactions::serialized::SerializedWrite;

/// The statement for the authorizations that can be claimed at `$1`, at most `limit`. It reads as many entries of the
/// index `payment_authorization_claim` as it returns. The limit is a literal: with an unknown limit the database would
/// plan for a large one, and sort all that are pending.
fn statement(limit: u32) -> String {
    format!(
        "SELECT id FROM payment_authorization WHERE state = 'pending' AND claimed_until <= $1 \
         ORDER BY claimed_until, id LIMIT {limit}"
    )
}

/// Which of the authorizations that were found can still be claimed.
const STILL_FREE: &str =
    "x.id = ANY ($1) AND x.state = 'pending' AND x.claimed_until <= $2 ORDER BY x.claimed_until, x.id";

/// The authorizations that can be claimed, at most `limit`, those whose claims ended longest ago first.
pub(crate) async fn find<C: GenericClient>(client: &C, now: Timestamp, limit: u32) -> Result<Vec<i64>> {
    // Rounded up, so that a connection prepares few statements.
    let sql = statement(limit.checked_next_power_of_two().unwrap_or(limit));
    let rows = all(client, &sql, &[&now.unix_millis()]).await?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    rows.iter().take(limit).map(|row| Ok(row.try_get(0)?)).collect()
}

/// Claims those of the authorizations found that are still free.
pub(crate) async fn claim(
    write: &SerializedWrite<'_>,
    found: &[i64],
    now: Timestamp,
    lease: Duration,
) -> Result<Vec<AuthorizationRecord>> {
    let client = write.client();
    let rows = all(client, &select(STILL_FREE), &[&found, &now.unix_millis()]).await?;
    let claimed = rows.iter().map(record).collect::<Result<Vec<_>>>()?;
    let (rows, records): (Vec<i64>, Vec<_>) = claimed.into_iter().unzip();
    let sql = "UPDATE payment_authorization SET claimed_until = $2 WHERE id = ANY ($1)";
    execute(client, sql, &[&rows, &now.saturating_add(lease).unix_millis()]).await?;
    Ok(records)
}

/// Claims an authorization until `until` if it is pending, even if another process has claimed it.
pub(crate) async fn extend(write: &SerializedWrite<'_>, id: &AuthorizationId, until: Timestamp) -> Result<()> {
    let sql = format!("UPDATE payment_authorization x SET claimed_until = $5 WHERE {BY_ID} AND x.state = 'pending'");
    let (chain_id, nonce) = (id.chain_id.cast_signed(), id.nonce.as_bytes().as_slice());
    let (token, payer) = (id.token.as_bytes().as_slice(), id.payer.as_bytes().as_slice());
    execute(write.client(), &sql, &[&chain_id, &token, &payer, &nonce, &until.unix_millis()]).await.map(drop)
}

#[cfg(test)]
mod tests {
    use metering_tests::postgres::{Cluster, is_skipped, schema_of};

    use super::{BY_ID, STILL_FREE, select, statement};
    use crate::PostgresStore;

    /// 60,000 authorizations that are settled, and as many that are pending: those of two are free at 50. All but the
    /// failed ones have a transaction.
    const MANY: &str = "INSERT INTO account (id, org_id, agent_name, created_at) VALUES (7, 'org_7', 'agent', 0); \
         INSERT INTO payment (id, chain_id, tx_hash, payer, recipient, token, amount, block_number, mined_at, account, \
             used_as, recorded_at) \
           SELECT n, 1, sha256(n::TEXT::BYTEA), '', '', '', '', 1, 0, 7, 'authorization', 0 \
           FROM generate_series(1, 30000) n; \
         INSERT INTO payment_authorization (id, chain_id, token, payer, nonce, recipient, amount, valid_after, \
             valid_before, signature, account, credits, received_at, claimed_until, state, failure, failed_at, \
             tx_chain_id, tx_hash) \
           SELECT n, 1, '', '', sha256(n::TEXT::BYTEA), '', '', 0, 0, '', 7, 1, 0, \
             CASE WHEN n IN (60011, 60022) THEN 60100 - n WHEN n <= 60000 THEN 0 ELSE 100 END, \
             CASE WHEN n <= 30000 THEN 'credited' WHEN n <= 60000 THEN 'failed' ELSE 'pending' END, \
             CASE WHEN n BETWEEN 30001 AND 60000 THEN 'expired' END, CASE WHEN n BETWEEN 30001 AND 60000 THEN 0 END, \
             CASE WHEN n <= 30000 THEN 1 END, CASE WHEN n <= 30000 THEN sha256(n::TEXT::BYTEA) END \
           FROM generate_series(1, 120000) n; \
         INSERT INTO authorization_submission SELECT n, 1, sha256(n::TEXT::BYTEA), '', 0 \
           FROM generate_series(1, 120000) n; \
         ANALYZE account, payment, payment_authorization, authorization_submission";

    /// The statements that run for each request with a payment, and those that run again and again, read only what they
    /// return. Prepared statements keep one plan for all values after a few executions; so do these.
    #[tokio::test(flavor = "multi_thread")]
    async fn looks_do_not_scan_authorizations() {
        if is_skipped() {
            return;
        }
        let url = Cluster::shared().fresh_schema();
        PostgresStore::connect(&url.parse().unwrap()).await.unwrap();
        let schema = schema_of(&url);
        let run = |sql: &str| Cluster::shared().run(&format!("SET search_path = {schema}; {sql}"));
        run(MANY);
        let id = |number: i64| format!("(1, '', '', sha256('{number}'))");
        let by_tx = select("x.tx_hash = $1 AND x.tx_chain_id = $2");
        // the statement, its values, the row numbers that it finds
        let table = [
            (statement(4), "(100)".to_owned(), "60022 60011 60001 60002"),
            (statement(1), "(100)".to_owned(), "60022"),
            (statement(4), "(99)".to_owned(), "60022 60011"),
            (statement(4), "(77)".to_owned(), ""),
            (select(STILL_FREE), "('{60022, 60011, 60001, 7}', 99)".to_owned(), "60022 60011"),
            (select(BY_ID), id(17), "17"),
            (select(BY_ID), id(90_000), "90000"),
            (select(BY_ID), id(120_001), ""),
            (by_tx, "(sha256('29'), 1)".to_owned(), "29"),
        ];
        for (sql, values, found) in table {
            let execute = format!("EXECUTE look {values}");
            let prepared = format!("SET plan_cache_mode = force_generic_plan; PREPARE look AS {sql}");
            let shown = run(&format!("{prepared}; {execute}"));
            let rows: Vec<&str> = shown.lines().filter_map(|line| line.split('|').next()).collect();
            assert_eq!(rows.join(" "), found, "{execute}");
            let plan = run(&format!("{prepared}; EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF) {execute}"));
            // The first line with pages is the whole statement's.
            let pages = plan.lines().find_map(|line| line.split_once("Buffers: shared hit="));
            let pages: u64 = pages.map_or("0", |line| line.1).split(' ').next().unwrap().parse().unwrap();
            assert!(
                pages < 40 && !plan.contains("Seq Scan on payment") && !plan.contains("Seq Scan on auth"),
                "{plan}"
            );
        }
    }
}
