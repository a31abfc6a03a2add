//! Reads the accounts of an agenthub database, one at a time.

use std::collections::VecDeque;
use std::path::Path;

use metering_core::Timestamp;
use metering_core::payments::Quote;
use metering_import::{
    AgentHubFile, AgentHubKey, AgentHubPlanner, ImportFinding, ImportFindingKind, PlannedAccount, UsageSign, plan_quote,
};

use crate::failure::Failure;

/// How many keys are read at a time.
const PAGE: u32 = 500;

/// The keys of a database.
pub(super) struct Keys {
    /// The path of the file.
    name: String,
    file: AgentHubFile,
    sign: UsageSign,
    now: Timestamp,
    page: VecDeque<AgentHubKey>,
    last: Option<i64>,
}

impl Keys {
    pub(super) fn open(path: &Path, now: Timestamp) -> Result<Self, Failure> {
        let cannot = |error| Failure::Failed(format!("cannot read {}: {error}", path.display()));
        let file = AgentHubFile::open(path).map_err(cannot)?;
        let sign = file.usage_sign().map_err(cannot)?;
        let name = path.display().to_string();
        Ok(Self { name, file, sign, now, page: VecDeque::new(), last: None })
    }

    /// The next account, or why it cannot be imported.
    pub(super) fn next(&mut self) -> Result<Option<Result<PlannedAccount, ImportFinding>>, Failure> {
        let Some(key) = self.next_key()? else { return Ok(None) };
        let id = key.id.clone();
        let mut planner = match AgentHubPlanner::new(key, self.sign, self.now) {
            Ok(planner) => planner,
            Err(refused) => return Ok(Some(Err(refused))),
        };
        self.file.each_transaction(&id, |row| planner.add(row))?;
        Ok(Some(planner.finish()))
    }

    /// The next key, without its account.
    pub(super) fn next_key(&mut self) -> Result<Option<AgentHubKey>, Failure> {
        if self.page.is_empty() {
            let keys = self.file.keys(self.last, PAGE)?;
            self.last = keys.last().map(|(row, _)| *row).or(self.last);
            self.page.extend(keys.into_iter().map(|(_, key)| key));
        }
        Ok(self.page.pop_front())
    }

    /// Quotes whose payments may be on the way, newest first.
    pub(super) fn quotes(&self) -> Result<Vec<Result<Quote, ImportFinding>>, Failure> {
        let rows = self.file.quotes()?;
        Ok(rows.iter().filter_map(|row| plan_quote(row, self.now).transpose()).collect())
    }

    /// Transactions of keys that do not exist, and what may be missing.
    pub(super) fn oddities(&self) -> Result<Vec<ImportFinding>, Failure> {
        let mut oddities = self.file.orphans()?;
        if self.file.lacks_wal() {
            let detail = "is in WAL mode and has no -wal file beside it. If the service was stopped properly, there is \
                          none. If the file was copied from a running or killed service, its newest changes are in that \
                          file: copy it too, and import again";
            oddities.push(ImportFinding::new(&self.name, ImportFindingKind::WithoutWal, detail));
        }
        Ok(oddities)
    }
}
