//! A file of accounts to import, of any format.

use std::path::Path;

use clap::ValueEnum;
use metering_core::Timestamp;
use metering_core::payments::Quote;
use metering_import::{ImportFinding, ImportFindingKind, PlannedAccount, plan_record};

use super::agenthub::Keys;
use super::fields::Records;
use crate::failure::Failure;

/// The format of a file to import.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FileFormat {
    /// Accounts with key hashes, as CSV or JSON.
    Accounts,
    /// The SQLite database of a service with this wire protocol.
    Agenthub,
}

/// An account of the file.
#[derive(Debug)]
pub(super) enum Item {
    /// One that can be imported.
    Account(Box<PlannedAccount>),
    /// One that cannot be imported, and why.
    Refused(ImportFinding),
}

/// Reads accounts one at a time.
pub(super) enum Source {
    Accounts(Records, Timestamp),
    AgentHub(Box<Keys>),
}

impl Source {
    /// `now` replaces times that the file does not have.
    pub(super) fn open(path: &Path, format: FileFormat, now: Timestamp) -> Result<Self, Failure> {
        match format {
            FileFormat::Accounts => Ok(Self::Accounts(Records::open(path)?, now)),
            FileFormat::Agenthub => Ok(Self::AgentHub(Box::new(Keys::open(path, now)?))),
        }
    }

    /// How many accounts a file has, to show progress; `None` if it cannot be read to its end, which the import will
    /// report.
    pub(super) fn count(path: &Path, format: FileFormat, now: Timestamp) -> Option<u64> {
        let mut source = Self::open(path, format, now).ok()?;
        let mut count = 0;
        loop {
            let is_there = match &mut source {
                Self::Accounts(records, _) => records.next().ok()?.is_some(),
                Self::AgentHub(keys) => keys.next_key().ok()?.is_some(),
            };
            if !is_there {
                return Some(count);
            }
            count += 1;
        }
    }

    pub(super) fn next(&mut self) -> Result<Option<Item>, Failure> {
        let planned = match self {
            Self::Accounts(records, now) => {
                let Some((place, fields)) = records.next()? else { return Ok(None) };
                let planned = fields.and_then(|fields| plan_record(&fields, *now).map_err(|error| error.to_string()));
                planned.map_err(|problem| {
                    ImportFinding::new(place, ImportFindingKind::Refused, format!("{problem}; it was not imported"))
                })
            }
            Self::AgentHub(keys) => {
                let Some(planned) = keys.next()? else { return Ok(None) };
                planned
            }
        };
        Ok(Some(match planned {
            Ok(planned) => Item::Account(Box::new(planned)),
            Err(refused) => Item::Refused(refused),
        }))
    }

    /// Findings about the file, apart from its accounts.
    pub(super) fn oddities(&self) -> Result<Vec<ImportFinding>, Failure> {
        match self {
            Self::Accounts(..) => Ok(Vec::new()),
            Self::AgentHub(keys) => keys.oddities(),
        }
    }

    /// Open quotes, whose payments may be on the way.
    pub(super) fn quotes(&self) -> Result<Vec<Result<Quote, ImportFinding>>, Failure> {
        match self {
            Self::Accounts(..) => Ok(Vec::new()),
            Self::AgentHub(keys) => keys.quotes(),
        }
    }
}
