//! The committed postings that are not in the log yet, in the order in which to log them.

use std::collections::{HashMap, VecDeque};

use metering_core::chains::TxRef;
use metering_core::charging::UsageChange;
use metering_core::prices::PriceVersion;
use metering_core::store::{AccountRow, LogEpoch, Logged, Unlogged, UnloggedPosting};
use metering_core::{Credits, Timestamp, UsageLine};

use super::batch::Batch;
use crate::executor::Executor;
use crate::fault::{Result, corrupt};
use crate::record::list;
use crate::row::Row;
use crate::{usage_lines, values};

/// How many rows of `log_batch` are read at a time.
const PAGE: usize = 256;

/// [`Taken::openings`](metering_core::store::Taken::openings) once all are in the log: accounts that are new since get a row
/// with their first leaf.
const ALL: i64 = i64::MAX;

/// At most `limit` postings, and whole commits.
pub async fn unlogged(db: &mut dyn Executor, epoch: &LogEpoch, limit: u32) -> Result<Unlogged> {
    let mut found = Found {
        unlogged: Unlogged { taken: epoch.taken, ..Unlogged::default() },
        left: usize::try_from(limit).unwrap_or(usize::MAX),
    };
    found.public_entries(db, epoch).await?;
    if found.left > 0 {
        found.openings(db, epoch).await?;
    }
    if found.left > 0 {
        found.changes(db).await?;
    }
    Ok(found.unlogged)
}

struct Found {
    unlogged: Unlogged,
    /// How many more postings may come.
    left: usize,
}

impl Found {
    fn push(&mut self, account: Option<i64>, at: Timestamp, what: Logged) {
        self.unlogged.postings.push(UnloggedPosting { account: account.map(AccountRow), at, what });
        self.left = self.left.saturating_sub(1);
    }

    async fn public_entries(&mut self, db: &mut dyn Executor, epoch: &LogEpoch) -> Result<()> {
        if self.unlogged.taken.openings < 0 {
            if let Some(previous) = &epoch.previous {
                self.push(None, epoch.began_at, Logged::epoch(previous, epoch.reason));
            }
            self.unlogged.taken.openings = 0;
        }
        let rest = "WHERE number > ?1 ORDER BY number LIMIT ?2";
        let versions: Vec<PriceVersion> =
            list(db, rest, &values![self.unlogged.taken.prices, count(self.left)]).await?;
        for version in versions {
            self.push(None, version.recorded_at, Logged::prices(&version));
            self.unlogged.taken.prices = version.number.0;
        }
        Ok(())
    }

    async fn openings(&mut self, db: &mut dyn Executor, epoch: &LogEpoch) -> Result<()> {
        let taken = self.unlogged.taken.openings;
        if taken == ALL {
            return Ok(());
        }
        let most = self.left;
        let sql = "SELECT account, funds FROM log_account WHERE epoch = ?1 AND account > ?2 AND number IS NULL \
                   ORDER BY account LIMIT ?3";
        let rows = db.query(sql, &values![epoch.number, taken, count(most)]).await?;
        for row in &rows {
            let account = row.get(0)?;
            self.push(Some(account), epoch.began_at, Logged::Opening(row.get(1)?));
            self.unlogged.taken.openings = account;
        }
        if rows.len() < most {
            self.unlogged.taken.openings = ALL;
        }
        Ok(())
    }

    /// Ledger entries and commits, by time. Each list keeps its order.
    async fn changes(&mut self, db: &mut dyn Executor) -> Result<()> {
        let mut ledger = entries(db, self.unlogged.taken.ledger, self.left).await?;
        let mut batches = batches(db, self.left).await?;
        let mut journal = journal(db, self.unlogged.taken.journal, self.left).await?;
        let usage = batches.iter().chain(&journal).filter_map(Change::usage).flatten();
        let numbers: Vec<i64> = usage.map(|usage| usage.line).collect();
        let lines = usage_lines::numbered(db, numbers).await?;
        let mut is_first = true;
        loop {
            // Of the same millisecond, the first of these.
            let next = [ledger.front(), batches.front(), journal.front()];
            let heads = next.iter().enumerate().filter_map(|(place, change)| Some((change.as_ref()?.at, place)));
            let Some((_, place)) = heads.min() else { return Ok(()) };
            let change = match place {
                0 => ledger.pop_front(),
                1 => batches.pop_front(),
                _ => journal.pop_front(),
            };
            let Some(change) = change else { return Ok(()) };
            if change.size() > self.left && !is_first {
                return Ok(());
            }
            is_first &= change.size() == 0;
            self.take(change, &lines)?;
        }
    }

    fn take(&mut self, Change { id, at, what }: Change, lines: &HashMap<i64, UsageLine>) -> Result<()> {
        match what {
            What::Entry(account, logged) => {
                self.unlogged.taken.ledger = id;
                self.push(Some(account), at, logged);
            }
            What::Import(account, used) => {
                self.unlogged.batches.push(id);
                self.push(Some(account), at, Logged::Imported(used));
            }
            What::Batch(usage) => {
                self.unlogged.batches.push(id);
                self.usage(at, usage, lines)?;
            }
            What::Journal(usage) => {
                self.unlogged.taken.journal = id;
                self.usage(at, usage, lines)?;
            }
        }
        Ok(())
    }

    fn usage(
        &mut self,
        at: Timestamp,
        usage: Vec<UsageChange<i64, i64>>,
        lines: &HashMap<i64, UsageLine>,
    ) -> Result<()> {
        for UsageChange { account, day, line, key, kind, calls, amount, request_path: _ } in usage {
            let line = lines.get(&line).cloned();
            let line = line.ok_or_else(|| corrupt("the usage line of a commit is missing"))?;
            self.push(Some(account), at, Logged::Usage { line, day, key, kind, calls, amount });
        }
        Ok(())
    }
}

/// A ledger entry or a commit.
struct Change {
    id: i64,
    at: Timestamp,
    what: What,
}

enum What {
    Entry(i64, Logged),
    Import(i64, Credits),
    Batch(Vec<UsageChange<i64, i64>>),
    Journal(Vec<UsageChange<i64, i64>>),
}

impl Change {
    /// How many postings it has.
    fn size(&self) -> usize {
        self.usage().map_or(1, <[_]>::len)
    }

    fn usage(&self) -> Option<&[UsageChange<i64, i64>]> {
        match &self.what {
            What::Batch(usage) | What::Journal(usage) => Some(usage),
            What::Entry(..) | What::Import(..) => None,
        }
    }
}

async fn entries(db: &mut dyn Executor, after: i64, most: usize) -> Result<VecDeque<Change>> {
    let sql = "SELECT id, account, kind, amount, created_at, tx_chain_id, tx_hash FROM ledger \
               WHERE id > ?1 ORDER BY id LIMIT ?2";
    let entry = |row: &Row| {
        let id = row.get(0)?;
        // The schema ensures that both are set or neither is.
        let tx = Option::zip(row.get(5)?, row.get(6)?).map(|(chain_id, hash)| TxRef { chain_id, hash });
        let logged = Logged::Ledger { id, kind: row.get(2)?, amount: row.get(3)?, tx };
        Ok(Change { id, at: row.get(4)?, what: What::Entry(row.get(1)?, logged) })
    };
    db.query(sql, &values![after, count(most)]).await?.iter().map(entry).collect()
}

/// Rows of `log_batch` in order, until they have `most` postings. On PostgreSQL, one may become visible after others
/// with higher ids, but never after later ones of the same account: ids are assigned under the locks of the meters.
async fn batches(db: &mut dyn Executor, most: usize) -> Result<VecDeque<Change>> {
    let sql = "SELECT id, at, changes FROM log_batch WHERE id > ?1 ORDER BY id LIMIT ?2";
    let (mut changes, mut last, mut size) = (VecDeque::new(), i64::MIN, 0);
    while size < most {
        let rows = db.query(sql, &values![last, count(PAGE)]).await?;
        for row in &rows {
            let (id, at) = (row.get(0)?, row.get(1)?);
            let what = match Batch::unpack(&row.get::<Vec<u8>>(2)?)? {
                Batch::Commit(usage) => What::Batch(usage.iter().map(|usage| usage.change(at)).collect::<Result<_>>()?),
                Batch::Import { account, atoms } => What::Import(account, Credits::from_atoms(atoms)),
            };
            let change = Change { id, at, what };
            (last, size) = (id, size + change.size());
            changes.push_back(change);
        }
        if rows.len() < PAGE {
            break;
        }
    }
    Ok(changes)
}

async fn journal(db: &mut dyn Executor, after: i64, most: usize) -> Result<VecDeque<Change>> {
    let commits = db.journal(after, most).await?;
    Ok(commits.into_iter().map(|row| Change { id: row.id, at: row.at, what: What::Journal(row.usage) }).collect())
}

fn count(most: usize) -> i64 {
    i64::try_from(most).unwrap_or(i64::MAX)
}
