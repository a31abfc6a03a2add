//! The report of a move: every section of both stores, side by side.

use std::fmt::Display;
use std::io::Write;

use metering_core::store::PreviousLog;
use metering_sql::transfer::{Comparison, Sums};
use serde::Serialize;

use crate::failure::Failure;
use crate::output::write_json;
use crate::table::{Column, Table};

/// How the move ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Ending {
    /// It was moved.
    Moved,
    /// It was moved before.
    AlreadyMoved,
    /// The copy is not equal.
    NotEqual,
    /// It would be moved.
    WouldMove,
    /// It would be moved, replacing an unfinished move.
    WouldStartOver,
    /// It was moved before, and would be compared.
    WouldCompare,
}

/// The result of a move or a dry run.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) from: String,
    pub(super) to: String,
    pub(super) ending: Ending,
    /// The versions before and after the upgrade of the target's schema.
    pub(super) upgrade: Option<(i64, i64)>,
    pub(super) comparison: Comparison,
    /// How the log of the old store ended, if it has a log.
    pub(super) log: Option<PreviousLog>,
}

#[derive(Serialize)]
struct Document<'a> {
    from: &'a str,
    to: &'a str,
    ending: Ending,
    #[serde(skip_serializing_if = "Option::is_none")]
    schema_upgrade: Option<Upgrade>,
    #[serde(skip_serializing_if = "Option::is_none")]
    previous_log: Option<String>,
    sections: Vec<SectionDocument<'a>>,
    differing: u64,
    differences: Vec<String>,
}

#[derive(Serialize)]
struct Upgrade {
    from: i64,
    to: i64,
}

#[derive(Serialize)]
struct SectionDocument<'a> {
    section: &'static str,
    from: &'a Sums,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<&'a Sums>,
}

/// How many records differ, for messages.
pub(super) fn differing(comparison: &Comparison) -> String {
    match comparison.differing() {
        1 => "1 record differs".to_owned(),
        n => format!("{n} records differ"),
    }
}

impl Report {
    /// Whether both stores were read.
    fn has_both(&self) -> bool {
        !matches!(self.ending, Ending::WouldMove | Ending::WouldStartOver | Ending::WouldCompare)
    }

    pub(super) fn write(&self, out: &mut dyn Write, json: bool) -> Result<(), Failure> {
        if json {
            return self.write_json(out);
        }
        if self.has_both() {
            self.write_both(out)?
        } else {
            self.write_one(out)?
        }
        for difference in self.comparison.differences() {
            writeln!(out, "{difference}")?;
        }
        let records: u64 = self.comparison.sections.iter().map(|section| section.from.records).sum();
        let Self { from, to, .. } = self;
        if let Some((old, new)) = self.upgrade {
            writeln!(out, "The schema of {to} has version {old} and would first be upgraded to version {new}.")?;
        }
        match self.ending {
            Ending::Moved => writeln!(
                out,
                "Moved to {to}: {records} records, all equal on both sides. {from} is marked as moved and can no \
                longer be opened."
            ),
            Ending::AlreadyMoved => {
                writeln!(out, "Already moved to {to}: {records} records, all equal.")
            }
            Ending::WouldMove => writeln!(out, "Would move {records} records to {to}. Nothing was changed."),
            Ending::WouldStartOver => writeln!(
                out,
                "Would move {records} records to {to}, replacing an unfinished move. Nothing was changed."
            ),
            Ending::WouldCompare => writeln!(out, "Already moved to {to}. Nothing was changed."),
            Ending::NotEqual => Ok(()),
        }?;
        match &self.log {
            Some(log) if self.ending != Ending::NotEqual => Ok(writeln!(
                out,
                "The log is not moved. Begin its next epoch in {to}, before servers start there: `metering admin log \
                 new-epoch KEY_FILE --because moved --previous {log}`."
            )?),
            _ => Ok(()),
        }
    }

    fn write_both(&self, out: &mut dyn Write) -> Result<(), Failure> {
        const COLUMNS: &[Column] = &[Column::word("SECTION"), Column::number("FROM"), Column::number("TO")];
        let mut table = Table::new(COLUMNS);
        for section in &self.comparison.sections {
            table.row([&section.section, &section.from.records, &section.to.records]);
            for (name, sum) in &section.from.amounts {
                let other = section.to.amounts.get(name).copied().unwrap_or_default();
                table.row([&format!("  {name}"), sum, &other]);
            }
        }
        table.write(out)
    }

    fn write_one(&self, out: &mut dyn Write) -> Result<(), Failure> {
        const COLUMNS: &[Column] = &[Column::word("SECTION"), Column::number("FROM")];
        let mut table = Table::new(COLUMNS);
        for section in &self.comparison.sections {
            table.row([&section.section as &dyn Display, &section.from.records]);
            for (name, sum) in &section.from.amounts {
                table.row([&format!("  {name}") as &dyn Display, sum]);
            }
        }
        table.write(out)
    }

    fn write_json(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let both = self.has_both();
        let section = |section: &'_ metering_sql::transfer::SectionComparison| section.section.as_str();
        let sections = self.comparison.sections.iter();
        let sections = sections.map(|found| SectionDocument {
            section: section(found),
            from: &found.from,
            to: both.then_some(&found.to),
        });
        let document = Document {
            from: &self.from,
            to: &self.to,
            ending: self.ending,
            schema_upgrade: self.upgrade.map(|(from, to)| Upgrade { from, to }),
            previous_log: self.log.as_ref().map(ToString::to_string),
            sections: sections.collect(),
            differing: self.comparison.differing(),
            differences: self.comparison.differences().map(ToString::to_string).collect(),
        };
        write_json(out, &document)
    }

    /// A failure if the copy is not equal.
    pub(super) fn outcome(&self) -> Result<(), Failure> {
        if self.ending != Ending::NotEqual {
            return Ok(());
        }
        Err(Failure::Discrepancies(format!(
            "the copy is not equal: {}; {} is unchanged and still the store to use",
            differing(&self.comparison),
            self.from
        )))
    }
}
