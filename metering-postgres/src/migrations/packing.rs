//! Version 3: recent activity, of which each entry had a row, is packed into blocks.

use std::time::{Duration, Instant};

use metering_core::ACTIVITY_KEPT;

use crate::activity::{BLOCKS, BlockRows};
use crate::entry::{Entry, Path};
use crate::error::Result;
use crate::rows::{all, execute, one};
use crate::session::GenericClient;
use crate::tail::Folds;
use crate::wait::{REPORT_WAIT, within};

/// How many accounts are packed together. Each has a thousand entries at most.
const ACCOUNTS: i64 = 64;

/// How often it is told how far packing has come.
const TOLD_EVERY: Duration = Duration::from_secs(5);

/// Packs `activity_entry` into `activity`, and drops it.
pub(super) async fn pack_activity<C: GenericClient>(client: &C) -> Result<()> {
    let count = within(REPORT_WAIT, one(client, "SELECT count(*) FROM meter", &[])).await?;
    let (count, mut packed): (i64, usize) = (count.try_get(0)?, 0);
    let (accounts, mut after) = ("SELECT account FROM meter WHERE account > $1 ORDER BY account LIMIT $2", i64::MIN);
    let mut told = Instant::now();
    loop {
        let rows = within(REPORT_WAIT, all(client, accounts, &[&after, &ACCOUNTS])).await?;
        let (Some(first), Some(last)) = (rows.first(), rows.last()) else { break };
        after = last.try_get(0)?;
        within(REPORT_WAIT, pack(client, first.try_get(0)?, after)).await?;
        packed += rows.len();
        if told.elapsed() >= TOLD_EVERY {
            tracing::info!("packing activity: {packed} of {count} accounts");
            told = Instant::now();
        }
    }
    within(REPORT_WAIT, async { Ok(client.batch_execute("DROP TABLE activity_entry").await?) }).await
}

/// Packs the accounts from one to another. Both tables are told the range, rather than a list of accounts: a database
/// without statistics, such as one that was restored a moment ago, would read all of them for each list.
async fn pack<C: GenericClient>(client: &C, from: i64, to: i64) -> Result<()> {
    // Older entries have gaps between them, and their blocks' places are those of newer ones.
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
            refund: row.try_get(4)?,
            calls: row.try_get(5)?,
            created_at: row.try_get(6)?,
            path: Path::of(row.try_get(7)?, row.try_get(8)?),
        };
        folds.add(row.try_get(0)?, entry.block(), entry.pack(Vec::new())?);
    }
    execute(client, BLOCKS, &BlockRows::new(&folds).values()).await.map(drop)
}
