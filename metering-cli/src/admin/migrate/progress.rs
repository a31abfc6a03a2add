//! The progress of a step over the sections of a store.

use metering_core::StoreError;
use metering_sql::transfer::{Export, Section};

use crate::progress::{Progress, Unit, numbered};

/// How many records each section has, where known.
pub(super) async fn counts(store: &dyn Export) -> Result<Vec<(Section, Option<u64>)>, StoreError> {
    let mut counts = Vec::with_capacity(Section::ALL.len());
    for section in Section::ALL {
        counts.push((section, store.count(section).await?));
    }
    Ok(counts)
}

/// A step.
#[derive(Debug)]
pub(super) struct Sections<'p> {
    progress: &'p Progress,
    what: &'static str,
    counts: &'p [(Section, Option<u64>)],
    current: Option<(Section, u64)>,
}

impl<'p> Sections<'p> {
    pub(super) const fn new(progress: &'p Progress, what: &'static str, counts: &'p [(Section, Option<u64>)]) -> Self {
        Self { progress, what, counts, current: None }
    }

    /// Reports how many records of a section are done.
    pub(super) fn step(&mut self, section: Section, records: u64) {
        let before = match self.current {
            Some((current, before)) if current == section => before,
            _ => {
                let total = self.counts.iter().find(|(counted, _)| *counted == section).and_then(|(_, count)| *count);
                let number = Section::ALL.iter().position(|other| *other == section).unwrap_or(0) + 1;
                let what = numbered(&format!("{} {}", self.what, section.as_str()), number, Section::ALL.len());
                self.progress.begin(&what, Unit::Things("records"), total);
                0
            }
        };
        self.progress.add(records.saturating_sub(before));
        self.current = Some((section, records));
    }
}
