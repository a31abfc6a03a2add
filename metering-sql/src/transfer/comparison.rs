//! Proves that two stores hold the same data, by comparing every record.

use std::collections::VecDeque;
use std::fmt;

use metering_core::store::{Cursor, StoreError};

use crate::transfer::section::{Record, Section};
use crate::transfer::sums::Sums;
use crate::transfer::traits::Export;
use crate::transfer::{PAGE, Progress};

/// How many differences of a section to keep for display; all are counted.
const SHOWN: usize = 10;

/// The comparison of two stores.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Comparison {
    /// Every section.
    pub sections: Vec<SectionComparison>,
}

/// The comparison of one section of two stores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SectionComparison {
    /// The section.
    pub section: Section,
    /// Its sums in the source.
    pub from: Sums,
    /// Its sums in the target.
    pub to: Sums,
    /// The number of positions at which the records differ.
    pub differing: u64,
    /// The first differences.
    pub first: Vec<Difference>,
}

/// A position at which the two stores hold different records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The record in the source.
    pub from: Option<Record>,
    /// The record in the target.
    pub to: Option<Record>,
}

impl Comparison {
    /// Whether every record is the same on both sides.
    #[must_use]
    pub fn is_equal(&self) -> bool {
        self.sections.len() == Section::ALL.len()
            && self.sections.iter().all(|section| section.differing == 0 && section.from == section.to)
    }

    /// The number of positions that differ.
    #[must_use]
    pub fn differing(&self) -> u64 {
        self.sections.iter().map(|section| section.differing).sum()
    }

    /// The first differences of each section.
    pub fn differences(&self) -> impl Iterator<Item = &Difference> {
        self.sections.iter().flat_map(|section| &section.first)
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.from, &self.to) {
            (Some(from), None) => write!(f, "{} was not moved", from.subject()),
            (None, Some(to)) => write!(f, "{} is new", to.subject()),
            (Some(from), Some(to)) if from.subject() == to.subject() => {
                write!(f, "{} differs", from.subject())?;
                let amounts = from.amounts().into_iter().zip(to.amounts());
                for ((name, was), (_, is)) in amounts.filter(|((_, was), (_, is))| was != is) {
                    write!(f, "; its {name} was {was} and is now {is}")?;
                }
                Ok(())
            }
            (Some(from), Some(to)) => write!(f, "expected {}, found {}", from.subject(), to.subject()),
            (None, None) => f.write_str("nothing"),
        }
    }
}

/// Compares every record of two stores, in order.
///
/// # Errors
/// When one of the stores cannot be read.
pub async fn compare(from: &dyn Export, to: &dyn Export, progress: Progress<'_>) -> Result<Comparison, StoreError> {
    let mut comparison = Comparison::default();
    for section in Section::ALL {
        comparison.sections.push(compare_section(from, to, section, progress).await?);
    }
    Ok(comparison)
}

async fn compare_section(
    from: &dyn Export,
    to: &dyn Export,
    section: Section,
    progress: Progress<'_>,
) -> Result<SectionComparison, StoreError> {
    let (mut old, mut new) = (Reader::new(from, section), Reader::new(to, section));
    let (sums, first) = (Sums::default, Vec::new());
    let mut found = SectionComparison { section, from: sums(), to: sums(), differing: 0, first };
    loop {
        let (old_filled, new_filled) = tokio::join!(old.fill(), new.fill());
        old_filled?;
        new_filled?;
        if old.records.is_empty() && new.records.is_empty() {
            return Ok(found);
        }
        loop {
            // One side has no records left but has not ended: read its next page first.
            if old.is_waiting() || new.is_waiting() {
                break;
            }
            match (old.records.pop_front(), new.records.pop_front()) {
                (None, None) => break,
                (old, new) => found.add(old, new),
            }
        }
        progress(section, found.from.records);
    }
}

impl SectionComparison {
    fn add(&mut self, from: Option<Record>, to: Option<Record>) {
        from.iter().for_each(|record| self.from.add(record));
        to.iter().for_each(|record| self.to.add(record));
        let same = matches!((&from, &to), (Some(from), Some(to)) if from.is_exactly(to));
        if same {
            return;
        }
        self.differing += 1;
        if self.first.len() < SHOWN {
            self.first.push(Difference { from, to });
        }
    }
}

/// The records of a section, page by page.
struct Reader<'s> {
    store: &'s dyn Export,
    section: Section,
    records: VecDeque<Record>,
    after: Option<Cursor>,
    ended: bool,
}

impl<'s> Reader<'s> {
    fn new(store: &'s dyn Export, section: Section) -> Self {
        Self { store, section, records: VecDeque::new(), after: None, ended: false }
    }

    fn is_waiting(&self) -> bool {
        self.records.is_empty() && !self.ended
    }

    async fn fill(&mut self) -> Result<(), StoreError> {
        while self.is_waiting() {
            let page = self.store.export(self.section, self.after.as_ref(), PAGE).await?;
            self.records.extend(page.items);
            self.ended = page.next.is_none();
            self.after = page.next;
        }
        Ok(())
    }
}
