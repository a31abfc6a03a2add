//! Imports what accounts have numbers for here, and what is packed: ledger entries, recent usage and holds.

use std::collections::HashMap;

use metering_core::AccountId;
use metering_core::charging::{Hold, HoldChange};
use metering_core::money::LedgerEntry;
use metering_sql::transfer::{AccountRecord, ActivityRecord, LedgerRecord, Record};
use metering_sql::{Executor, Record as _, values};

use crate::charging::entry::{Entry, Path};
use crate::charging::holds::{HOLDS, HoldRows};
use crate::charging::tail::Folds;
use crate::error::Result;
use crate::rows::{all, execute, parsed};
use crate::statements::Statements;
use crate::transactions::serialized::SerializedWrite;
use crate::usage::activity::{BLOCKS, BlockRows};

/// The number of a ledger entry within its account, whose public id is `?2`. Recent entries, which have `?10` newer ones,
/// are numbered backwards from the account's newest number, like its usage entries; older ones are numbered from the
/// start, without gaps.
const ENTRY: &str = "(SELECT CASE WHEN ?10::BIGINT IS NULL \
       THEN coalesce((SELECT max(l.entry) FROM ledger l WHERE l.account = a.id), 0) + 1 ELSE m.entries - ?10 END \
     FROM account a JOIN meter m ON m.account = a.id WHERE a.org_id = ?2)";

/// Converts a count for its column. No count comes close to the limit.
fn number(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Sets how many entries accounts have, whose rows are written.
pub(super) async fn entry_counts(write: &SerializedWrite<'_>, records: &[Record]) -> Result<()> {
    let sql = "UPDATE meter SET entries = ?2 WHERE account = (SELECT a.id FROM account a WHERE a.org_id = ?1)";
    let counts = records.iter().filter_map(|record| match record {
        Record::Account(record) => {
            let AccountRecord { account, entries, .. } = &**record;
            Some(values![account.id, number(*entries)])
        }
        _ => None,
    });
    Ok(Statements(write.client()).execute(sql, &counts.collect::<Vec<_>>()).await.map(drop)?)
}

pub(super) async fn ledger(write: &SerializedWrite<'_>, records: &[Record]) -> Result<u64> {
    let rows = records.iter().filter_map(|record| match record {
        Record::Ledger(LedgerRecord { entry, newer }) => Some((entry, newer)),
        _ => None,
    });
    let rows = rows.map(|(entry, newer)| Ok([entry.values()?, values![newer]].concat()));
    let sql = LedgerEntry::TABLE.insert_with("entry", ENTRY);
    Ok(Statements(write.client()).execute(&sql, &rows.collect::<Result<Vec<_>>>()?).await?)
}

/// The row numbers of the accounts of records, and how many entries each has.
async fn accounts_of(
    write: &SerializedWrite<'_>,
    ids: impl Iterator<Item = &AccountId>,
) -> Result<HashMap<AccountId, (i64, i64)>> {
    let ids: Vec<&str> = ids.map(AccountId::as_str).collect();
    let sql = "SELECT a.org_id, a.id, m.entries FROM account a JOIN meter m ON m.account = a.id \
               WHERE a.org_id = ANY($1)";
    let rows = all(write.client(), sql, &[&ids]).await?;
    rows.iter().map(|row| Ok((parsed(row, 0)?, (row.try_get(1)?, row.try_get(2)?)))).collect()
}

/// Entries arrive by account, oldest first, and are numbered backwards from the account's newest number.
pub(super) async fn activity(write: &SerializedWrite<'_>, records: &[Record], lines: &[i64]) -> Result<u64> {
    let records: Vec<&ActivityRecord> = records
        .iter()
        .filter_map(|record| match record {
            Record::Activity(record) => Some(record),
            _ => None,
        })
        .collect();
    let accounts = accounts_of(write, records.iter().map(|record| &record.account)).await?;
    let (mut folds, mut written) = (Folds::default(), 0);
    for (record, line) in records.into_iter().zip(lines) {
        let Some((account, entries)) = accounts.get(&record.account) else { continue };
        let entry = Entry {
            number: entries - i64::from(record.newer),
            line: *line,
            amount: record.amount.atoms(),
            kind: record.kind,
            calls: number(record.calls),
            created_at: record.created_at.unix_millis(),
            path: Path::of(record.request_path.as_deref(), &record.line.route_template),
            key: record.key,
        };
        folds.add(*account, entry.block(), entry.pack(Vec::new())?);
        written += 1;
    }
    execute(write.client(), BLOCKS, &BlockRows::new(&folds).values()).await?;
    Ok(written)
}

pub(super) async fn holds(write: &SerializedWrite<'_>, records: &[Record], lines: &[i64]) -> Result<u64> {
    let holds: Vec<&Hold> = records
        .iter()
        .filter_map(|record| match record {
            Record::Hold(hold) => Some(&**hold),
            _ => None,
        })
        .collect();
    let accounts = accounts_of(write, holds.iter().map(|hold| &hold.account)).await?;
    let changes = holds.into_iter().zip(lines).filter_map(|(hold, line)| {
        let (account, _) = accounts.get(&hold.account)?;
        Some(HoldChange { account: *account, line: *line, is_new: true, hold: hold.clone() })
    });
    let changes: Vec<_> = changes.collect();
    execute(write.client(), HOLDS, &HoldRows::new(&changes).values()).await
}
