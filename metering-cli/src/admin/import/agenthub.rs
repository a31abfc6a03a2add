//! Reads the accounts of an agenthub database, one at a time.

use std::collections::VecDeque;
use std::path::Path;

use metering_core::Timestamp;
use metering_core::imports::{AgentHubKey, AgentHubPlanner, Oddity, PlannedAccount, UsageSign};
use metering_sqlite::AgentHubFile;

use crate::failure::Failure;

/// How many keys are read at a time.
const PAGE: u32 = 500;

/// The keys of a database.
pub(super) struct Keys {
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
        Ok(Self { file, sign, now, page: VecDeque::new(), last: None })
    }

    /// The next account, or why it cannot be imported.
    pub(super) fn next(&mut self) -> Result<Option<Result<PlannedAccount, Oddity>>, Failure> {
        if self.page.is_empty() {
            let keys = self.file.keys(self.last, PAGE)?;
            self.last = keys.last().map(|(row, _)| *row).or(self.last);
            self.page.extend(keys.into_iter().map(|(_, key)| key));
        }
        let Some(key) = self.page.pop_front() else { return Ok(None) };
        let id = key.id.clone();
        let mut planner = match AgentHubPlanner::new(key, self.sign, self.now) {
            Ok(planner) => planner,
            Err(refused) => return Ok(Some(Err(refused))),
        };
        self.file.each_transaction(&id, |row| planner.add(row))?;
        Ok(Some(planner.finish()))
    }

    /// Transactions of keys that do not exist.
    pub(super) fn orphans(&self) -> Result<Vec<Oddity>, Failure> {
        Ok(self.file.orphans()?)
    }
}
