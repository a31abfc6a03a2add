//! Recent activity of an account: its ring of blocks of usage entries, its tail of newer ones, and its ledger entries.

use std::sync::Arc;

use metering_core::usage::{ACTIVITY_KEPT, Activity};
use metering_core::{AccountId, Credits, Timestamp, UsageLine};
use metering_sql::{accounts, ledger};

use crate::charging::entry::{Entry, unpack};
use crate::charging::known::Known;
use crate::charging::tail::Folds;
use crate::connection::session::GenericClient;
use crate::connection::value::Value;
use crate::error::Result;
use crate::rows::{all, one};
use crate::statements::Statements;

/// How many of the newest entry numbers are shown. Older entries may still be stored, but with gaps between them.
const SHOWN: i64 = ACTIVITY_KEPT as i64;

/// Writes folded blocks. If a block was already folded before it was full, its newer entries are prepended.
pub(crate) const BLOCKS: &str = "INSERT INTO activity AS old (account, slot, block, entries) \
     SELECT * FROM unnest($1::BIGINT[], $2::BIGINT[], $3::BIGINT[], $4::BYTEA[]) \
     ON CONFLICT (account, slot) DO UPDATE SET block = excluded.block, \
     entries = CASE WHEN old.block = excluded.block THEN excluded.entries || old.entries ELSE excluded.entries END";

/// The columns of [`BLOCKS`].
#[derive(Default)]
pub(crate) struct BlockRows<'f> {
    accounts: Vec<i64>,
    slots: Vec<i64>,
    blocks: Vec<i64>,
    entries: Vec<&'f [u8]>,
}

impl<'f> BlockRows<'f> {
    pub(crate) fn new(folds: &'f Folds) -> Self {
        let mut rows = Self::default();
        for ((account, slot), (block, entries)) in &folds.blocks {
            rows.accounts.push(*account);
            rows.slots.push(*slot);
            rows.blocks.push(*block);
            rows.entries.push(entries);
        }
        rows
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.accounts.is_empty()
    }

    pub(crate) fn values(&self) -> [&dyn Value; 4] {
        [&self.accounts, &self.slots, &self.blocks, &self.entries]
    }
}

/// An account's latest entries, usage and ledger together, newest first.
pub(crate) async fn newest<C: GenericClient>(
    client: &C,
    known: &Known,
    id: &AccountId,
    limit: u32,
) -> Result<Vec<Activity>> {
    let mut statements = Statements(client);
    let Some((account, _)) = accounts::by_id(&mut statements, id).await? else { return Ok(Vec::new()) };
    let mut entries = usage_entries(client, known, account, limit).await?;
    entries.extend(ledger::newest(&mut statements, account, limit).await?);
    entries.sort_unstable_by_key(|(entry, _)| std::cmp::Reverse(*entry));
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    Ok(entries.into_iter().take(limit).map(|(_, activity)| activity).collect())
}

async fn usage_entries<C: GenericClient>(
    client: &C,
    known: &Known,
    account: i64,
    limit: u32,
) -> Result<Vec<(i64, Activity)>> {
    let meter = one(client, "SELECT entries, tail FROM meter WHERE account = $1", &[&account]).await?;
    let oldest = meter.try_get::<_, i64>(0)? - SHOWN;
    // Every block has at least one entry, so `limit` blocks are enough.
    let sql = "SELECT entries FROM activity WHERE account = $1 ORDER BY block DESC LIMIT $2";
    let blocks = all(client, sql, &[&account, &i64::from(limit)]).await?;
    let packed = [Ok(meter.try_get(1)?)].into_iter().chain(blocks.iter().map(|row| row.try_get(0)));
    let (mut entries, most) = (Vec::new(), usize::try_from(limit).unwrap_or(usize::MAX));
    for packed in packed {
        for entry in unpack(packed?)? {
            if entry.number <= oldest || entries.len() == most {
                return Ok(entries);
            }
            entries.push((entry.number, usage_entry(&entry, known.line(client, entry.line).await?)));
        }
    }
    Ok(entries)
}

fn usage_entry(entry: &Entry<'_>, line: UsageLine) -> Activity {
    Activity {
        id: format!("act_{}", entry.number),
        kind: entry.kind.into(),
        amount: Credits::from_atoms(entry.amount),
        description: None,
        request_path: entry.path.get(Arc::clone(&line.route_template)),
        line: Some(line),
        calls: entry.calls.unsigned_abs(),
        payment: None,
        key: Some(entry.key),
        created_at: Timestamp::from_unix_millis(entry.created_at),
    }
}
