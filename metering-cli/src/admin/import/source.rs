//! A file of accounts to import, of any format.

use std::path::Path;

use metering_core::Timestamp;
use metering_core::imports::{Oddity, OddityKind, PlannedAccount, plan_record};

use super::FileFormat;
use super::fields::Records;
use crate::failure::Failure;

/// An account of the file.
#[derive(Debug)]
pub(super) enum Item {
    /// One that can be imported.
    Account(Box<PlannedAccount>),
    /// One that cannot be imported, and why.
    Refused(Oddity),
}

/// Reads accounts one at a time.
pub(super) struct Source {
    records: Records,
    now: Timestamp,
}

impl Source {
    pub(super) fn open(path: &Path, format: FileFormat, now: Timestamp) -> Result<Self, Failure> {
        match format {
            FileFormat::Accounts => Ok(Self { records: Records::open(path)?, now }),
        }
    }

    pub(super) fn next(&mut self) -> Result<Option<Item>, Failure> {
        let Some((place, fields)) = self.records.next()? else { return Ok(None) };
        let planned = fields.and_then(|fields| plan_record(&fields, self.now).map_err(|error| error.to_string()));
        Ok(Some(match planned {
            Ok(planned) => Item::Account(Box::new(planned)),
            Err(problem) => {
                Item::Refused(Oddity::new(place, OddityKind::Refused, format!("{problem}; it was not imported")))
            }
        }))
    }

    /// What is odd about the file, apart from its accounts.
    pub(super) fn take_oddities(&mut self) -> Vec<Oddity> {
        Vec::new()
    }
}
