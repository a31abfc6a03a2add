//! Version 3: recent activity, of which each entry had a row, is packed into blocks.

use deadpool_postgres::GenericClient;
use metering_core::ACTIVITY_KEPT;

use crate::activity::{BLOCKS, BlockRows};
use crate::entry::{Entry, Path};
use crate::error::Result;
use crate::rows::{all, execute};
use crate::tail::Folds;
use crate::wait::{REPORT_WAIT, within};

/// How many accounts are packed together. Each has a thousand entries at most.
const ACCOUNTS: i64 = 64;

/// Packs `activity_entry` into `activity`, and drops it.
pub(super) async fn pack_activity<C: GenericClient>(client: &C) -> Result<()> {
    let (accounts, mut after) = ("SELECT account FROM meter WHERE account > $1 ORDER BY account LIMIT $2", i64::MIN);
    loop {
        let rows = within(REPORT_WAIT, all(client, accounts, &[&after, &ACCOUNTS])).await?;
        let accounts = rows.iter().map(|row| row.try_get(0)).collect::<Result<Vec<i64>, _>>()?;
        let Some(last) = accounts.last() else { break };
        after = *last;
        within(REPORT_WAIT, pack(client, &accounts)).await?;
    }
    within(REPORT_WAIT, async { Ok(client.batch_execute("DROP TABLE activity_entry").await?) }).await
}

async fn pack<C: GenericClient>(client: &C, accounts: &[i64]) -> Result<()> {
    // Older entries have gaps between them, and their blocks' places are those of newer ones.
    let sql = "SELECT e.account, e.entry, e.line, e.amount, e.refund, e.calls, e.created_at, e.request_path, \
               n.route_template \
               FROM activity_entry e JOIN meter m ON m.account = e.account JOIN usage_line n ON n.id = e.line \
               WHERE e.account = ANY($1) AND e.entry > m.entries - $2 ORDER BY e.account, e.entry";
    let mut folds = Folds::default();
    for row in all(client, sql, &[&accounts, &i64::from(ACTIVITY_KEPT)]).await? {
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
