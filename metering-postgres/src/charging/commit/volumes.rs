//! Counts of routes with volume tiers: reads those that a batch depends on, and writes those that it changed.
//!
//! They are read after the meters of their accounts are locked, by later statements of the same round trip, and written
//! before the locks are released. So the rows of `route_volume` need no separate locks, and two requests of an account
//! never have the same number, even if different nodes decide them. Batches without such routes need no statement.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::join;
use metering_core::charging::{Changes, CountedRoute, HoldAction, Posting, Volume};
use tokio_postgres::Row;

use super::batch::Item;
use crate::charging::holds::ASKED_HOLD;
use crate::charging::volumes::{VOLUME_COLUMNS, VOLUMES, VolumeRows, volume};
use crate::connection::session::{Client, GenericClient, Prepared};
use crate::connection::value::Value;
use crate::error::Result;
use crate::rows::all;

/// Counts by account and route. One that is missing is zero.
pub(super) type Volumes = BTreeMap<(i64, CountedRoute), Volume>;

/// The count of a route of `asked`, for a join. `OFFSET 0` keeps the database from reading the whole table instead, which
/// it would plan while the table is small.
const ASKED_VOLUME: &str = "CROSS JOIN LATERAL (SELECT * FROM route_volume r WHERE r.account = asked.account \
     AND r.route_template = asked.route_template AND r.http_method = asked.http_method OFFSET 0) v";

/// Routes of charges and refunds.
const OF_ROUTES: &str = "unnest($1::BIGINT[], $2::TEXT[], $3::TEXT[]) AS asked (account, route_template, http_method)";

/// The counts that a batch reads.
#[derive(Default)]
pub(super) struct VolumeReads<'i> {
    routes: BTreeSet<(i64, CountedRoute)>,
    /// Releases of holds. Their routes are read with the same statement as their counts. A hold that is opened in the same
    /// batch has no row, but then its charge names the route, if that is counted.
    releasing: Vec<i64>,
    released: Vec<&'i [u8]>,
}

impl<'i> VolumeReads<'i> {
    /// Prepares the statements, so that they can be pipelined with the locks.
    pub(super) async fn prepare(client: &Client, items: &'i [Item<'_>]) -> Result<Self> {
        let mut reads = Self::default();
        for item in items {
            let Some(account) = item.account else { continue };
            reads.routes.extend(item.counted_route().map(|route| (account, route)));
            match item.posting {
                Posting::Hold(update) if matches!(update.action, HoldAction::Release) => {
                    reads.releasing.push(account);
                    reads.released.push(update.id.as_bytes());
                }
                Posting::Hold(_) | Posting::Charge(_) | Posting::Refund(_) | Posting::Settle(_) => {}
            }
        }
        if !reads.routes.is_empty() {
            client.prepare(&select(OF_ROUTES)).await?;
        }
        if !reads.released.is_empty() {
            client.prepare(&select(&of_holds())).await?;
        }
        Ok(reads)
    }

    /// Reads the counts. The meters must be locked by an earlier statement.
    pub(super) async fn run(&self, client: &Client) -> Result<Volumes> {
        let accounts: Vec<i64> = self.routes.iter().map(|(account, _)| *account).collect();
        let templates: Vec<&str> = self.routes.iter().map(|(_, route)| &*route.route_template).collect();
        let methods: Vec<&str> = self.routes.iter().map(|(_, route)| &*route.http_method).collect();
        let routes: [&dyn Value; 3] = [&accounts, &templates, &methods];
        let released: [&dyn Value; 2] = [&self.releasing, &self.released];
        let of_holds = of_holds();
        let (of_routes, of_released) = join(
            async { if accounts.is_empty() { Ok(Vec::new()) } else { all(client, &select(OF_ROUTES), &routes).await } },
            async {
                if self.released.is_empty() { Ok(Vec::new()) } else { all(client, &select(&of_holds), &released).await }
            },
        )
        .await;
        let counted = |row: &Row| {
            let (route, volume) = volume(row, 1)?;
            Ok(((row.try_get(0)?, route), volume))
        };
        of_routes?.iter().chain(&of_released?).map(counted).collect()
    }
}

fn select(asked: &str) -> String {
    format!("SELECT v.account, {VOLUME_COLUMNS} FROM {asked} {ASKED_VOLUME}")
}

/// Routes of holds.
fn of_holds() -> String {
    format!(
        "(SELECT h.account, n.route_template, n.http_method \
         FROM unnest($1::BIGINT[], $2::BYTEA[]) AS asked (account, id) {ASKED_HOLD} \
         JOIN usage_line n ON n.id = h.line WHERE h.account = asked.account) AS asked"
    )
}

impl Item<'_> {
    /// The route in whose count the posting takes a place or gives one back. That of a release depends on its hold.
    pub(super) fn counted_route(&self) -> Option<CountedRoute> {
        match self.posting {
            Posting::Charge(charge) => charge.counted_route(),
            Posting::Refund(refund) => refund.counted_route(),
            Posting::Settle(_) | Posting::Hold(_) => None,
        }
    }
}

/// The statement that writes counts.
pub(super) struct VolumeWrite<'c> {
    statement: Option<Prepared<'c>>,
    rows: VolumeRows<'c>,
}

impl<'c> VolumeWrite<'c> {
    /// Prepares it, if there is anything to write.
    pub(super) async fn prepare(client: &'c Client, changes: &'c Changes<i64, i64>) -> Result<Self> {
        let statement = if changes.volumes.is_empty() { None } else { Some(client.prepare(VOLUMES).await?) };
        Ok(Self { statement, rows: VolumeRows::new(&changes.volumes) })
    }

    pub(super) async fn run(&self, client: &Client) -> std::result::Result<u64, tokio_postgres::Error> {
        client.execute_if_any(self.statement.as_ref(), &self.rows.values()).await
    }
}

#[cfg(test)]
mod tests {
    use super::{OF_ROUTES, of_holds, select};
    use crate::charging::volumes::VOLUMES;
    use crate::schema::Schema;

    /// Also with the plan for all values that prepared statements keep, and that was made while the tables were empty.
    #[tokio::test(flavor = "multi_thread")]
    async fn counts_are_found_by_key() {
        let Some(schema) = Schema::new().await else { return };
        let fill = "INSERT INTO route_volume SELECT n % 20, '/route/' || n, 'GET', 682, n FROM generate_series(1, 20000) n; \
             INSERT INTO usage_line (id, digest, route_template, http_method, source) \
               SELECT n, sha256(n::TEXT::BYTEA), '/route/' || n, 'GET', 'direct' FROM generate_series(1, 20000) n; \
             INSERT INTO hold (id, account, key, line, amount, fallback, created_at, expires_at) \
               SELECT sha256(n::TEXT::BYTEA), n % 20, 0, n, 0, 0, 0, 0 FROM generate_series(1, 20000) n";
        let (routes, holds) = (select(OF_ROUTES), select(&of_holds()));
        // the statement, its values, and the requests that it finds
        let table = [
            (&*routes, "('{7,8,7,7}', '{/route/27,/route/28,/route/28,/none}', '{GET,GET,GET,GET}')", "27 28"),
            // One of another account, and one that does not exist.
            (&*holds, "('{7,8,7,7}', ARRAY[sha256('27'), sha256('28'), sha256('28'), sha256('x')])", "27 28"),
        ];
        for is_analyzed in [false, true] {
            for (sql, values, found) in table {
                let settings = "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off";
                let analyze = if is_analyzed { "ANALYZE route_volume, usage_line, hold" } else { "SELECT" };
                let prepared = format!("{settings}; PREPARE look AS {sql}; EXECUTE look {values}");
                let run = |last: &str| {
                    let all = format!("BEGIN; {prepared}; {fill}; {analyze}; {last}; ROLLBACK");
                    schema.run(&all)
                };
                let rows = run(&format!("EXECUTE look {values}"));
                let rows: Vec<&str> = rows.lines().filter_map(|line| line.rsplit('|').nth(1)).collect();
                assert_eq!(rows.iter().filter(|row| !row.is_empty()).copied().collect::<Vec<_>>().join(" "), found);
                let plan = run(&format!("EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF) EXECUTE look {values}"));
                // The first line with pages is the whole statement's.
                let pages = plan.lines().find_map(|line| line.split_once("Buffers: shared hit="));
                let pages: u64 = pages.map_or("0", |line| line.1).split(' ').next().unwrap().parse().unwrap();
                assert!((1..80).contains(&pages), "{plan}");
            }
        }
        let prepared = format!("PREPARE written AS {VOLUMES}");
        let execute =
            "EXECUTE written ('{7,7}', '{/a,/b}', '{GET,GET}', '{682,682}', '{1,4294967295}', '{NULL,682;0:3}')";
        schema.run(&format!("{prepared}; {execute}; {execute}"));
        assert_eq!(
            schema.run("SELECT string_agg(concat(requests, '/', returned), ' ' ORDER BY requests) FROM route_volume"),
            "1/ 4294967295/682;0:3"
        );
    }
}
