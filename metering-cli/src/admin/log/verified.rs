//! The log of a store, hashed again.

use std::io::Write;

use metering_core::{FullStore, StoreError};
use metering_proof::verify_log;

use crate::failure::Failure;

/// What was found. There may be no log.
#[derive(Debug)]
pub(in crate::admin) struct VerifiedLog {
    entries: u64,
    pub(in crate::admin) faults: Vec<String>,
}

impl VerifiedLog {
    /// Verifies the log; `None` if there is none.
    pub(in crate::admin) async fn of(store: &dyn FullStore) -> Result<Option<Self>, StoreError> {
        let epochs = store.log_epochs().await?;
        if epochs.is_empty() {
            return Ok(None);
        }
        let faults = verify_log(store).await?.iter().map(ToString::to_string).collect();
        Ok(Some(Self { entries: epochs.iter().map(|epoch| epoch.size).sum(), faults }))
    }

    pub(in crate::admin) fn write(&self, out: &mut dyn Write) -> Result<(), Failure> {
        if self.faults.is_empty() {
            return Ok(writeln!(
                out,
                "Log entries verified: {}. All hash to the roots of their epochs.",
                self.entries
            )?);
        }
        for fault in &self.faults {
            writeln!(out, "{fault}")?;
        }
        Ok(())
    }

    /// A failure if there are faults.
    pub(in crate::admin) fn outcome(&self) -> Result<(), Failure> {
        match self.faults.len() {
            0 => Ok(()),
            1 => Err(Failure::Discrepancies("the log has 1 fault".to_owned())),
            n => Err(Failure::Discrepancies(format!("the log has {n} faults"))),
        }
    }

    pub(in crate::admin) fn entries(&self) -> u64 {
        self.entries
    }
}
