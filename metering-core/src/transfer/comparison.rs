//! The proof that two stores hold the same: every record of both, one beside the other.

use std::collections::VecDeque;
use std::fmt;

use crate::store::{Cursor, StoreError};

use super::record::Record;
use super::section::Section;
use super::sums::Sums;
use super::traits::Export;
use super::{PAGE, Progress};

/// Differences of a section that are kept to be shown; all are counted.
const SHOWN: usize = 10;

/// Two stores, side by side.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Comparison {
    /// Every section.
    pub sections: Vec<SectionComparison>,
}

/// A section of two stores, side by side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SectionComparison {
    /// Which.
    pub section: Section,
    /// What it adds up to where it came from.
    pub from: Sums,
    /// What it adds up to where it went.
    pub to: Sums,
    /// How many places hold other records in one than in the other.
    pub differing: u64,
    /// The first of them.
    pub first: Vec<Difference>,
}

/// A place that holds other records in one store than in the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// What stands there where it came from.
    pub from: Option<Record>,
    /// What stands there where it went.
    pub to: Option<Record>,
}

impl Comparison {
    /// Whether every record is the same on both sides.
    #[must_use]
    pub fn is_equal(&self) -> bool {
        self.sections.len() == Section::ALL.len()
            && self.sections.iter().all(|section| section.differing == 0 && section.from == section.to)
    }

    /// How many places differ.
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
                write!(f, "{} is not the same", from.subject())?;
                let amounts = from.amounts().into_iter().zip(to.amounts());
                for ((name, was), (_, is)) in amounts.filter(|((_, was), (_, is))| was != is) {
                    write!(f, "; its {name} was {was}, and is {is}")?;
                }
                Ok(())
            }
            (Some(from), Some(to)) => write!(f, "where {} was there is {}", from.subject(), to.subject()),
            (None, None) => f.write_str("nothing"),
        }
    }
}

/// Compares every record of two stores, in their order.
///
/// # Errors
/// When one of them cannot be read.
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
            // A side that has more to come is not to be taken for one that has ended.
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
