//! Migration to version 3: packs recent activity, which had one row per entry, into blocks.

use std::time::{Duration, Instant};

use metering_core::access::KeyNumber;
use metering_core::charging::UsageKind;
use metering_core::usage::ACTIVITY_KEPT;

use crate::charging::entry::{Entry, Path};
use crate::charging::tail::Folds;
use crate::connection::session::GenericClient;
use crate::connection::wait::{REPORT_TIMEOUT, within};
use crate::error::Result;
use crate::rows::{all, execute, one};
use crate::usage::activity::{BLOCKS, BlockRows};

/// Accounts per step. Each has at most a thousand entries.
const ACCOUNTS: i64 = 64;

/// How often to log the progress.
const REPORT_INTERVAL: Duration = Duration::from_secs(5);

/// Packs `activity_entry` into `activity`, and drops it.
pub(super) async fn pack_activity<C: GenericClient>(client: &C) -> Result<()> {
    let count = within(REPORT_TIMEOUT, one(client, "SELECT count(*) FROM meter", &[])).await?;
    let (count, mut packed): (i64, usize) = (count.try_get(0)?, 0);
    let (accounts, mut after) = ("SELECT account FROM meter WHERE account > $1 ORDER BY account LIMIT $2", i64::MIN);
    let mut last_report = Instant::now();
    loop {
        let rows = within(REPORT_TIMEOUT, all(client, accounts, &[&after, &ACCOUNTS])).await?;
        let (Some(first), Some(last)) = (rows.first(), rows.last()) else { break };
        after = last.try_get(0)?;
        within(REPORT_TIMEOUT, pack(client, first.try_get(0)?, after)).await?;
        packed += rows.len();
        if last_report.elapsed() >= REPORT_INTERVAL {
            tracing::info!("packing activity: {packed} of {count} accounts");
            last_report = Instant::now();
        }
    }
    within(REPORT_TIMEOUT, async { Ok(client.batch_execute("DROP TABLE activity_entry").await?) }).await
}

/// Packs a range of accounts. The query names the range for both tables instead of a list of accounts: without
/// statistics, for example just after a restore, the database would read both tables completely for each list.
async fn pack<C: GenericClient>(client: &C, from: i64, to: i64) -> Result<()> {
    // Skip older entries: they have gaps between them, and newer blocks use their slots.
    let sql = "SELECT e.account, e.entry, e.line, e.amount, e.refund, e.calls, e.created_at, e.request_path, \
               n.route_template \
               FROM activity_entry e JOIN meter m ON m.account = e.account JOIN usage_line n ON n.id = e.line \
               WHERE e.account BETWEEN $1 AND $2 AND m.account BETWEEN $1 AND $2 AND e.entry > m.entries - $3 \
               ORDER BY e.account, e.entry";
    let mut folds = Folds::default();
    for row in all(client, sql, &[&from, &to, &i64::from(ACTIVITY_KEPT)]).await? {
        let entry = Entry {
            number: row.try_get(1)?,
            line: row.try_get(2)?,
            amount: row.try_get(3)?,
            kind: if row.try_get(4)? { UsageKind::Refunded } else { UsageKind::Charged },
            calls: row.try_get(5)?,
            created_at: row.try_get(6)?,
            path: Path::of(row.try_get(7)?, row.try_get(8)?),
            key: KeyNumber::FIRST,
        };
        folds.add(row.try_get(0)?, entry.block(), entry.pack(Vec::new())?);
    }
    execute(client, BLOCKS, &BlockRows::new(&folds).values()).await.map(drop)
}
