//! Copies all records from one store to another.

use metering_core::store::{Page, StoreError};

use crate::transfer::section::Section;
use crate::transfer::sums::Sums;
use crate::transfer::traits::{Export, Import};
use crate::transfer::{PAGE, Progress};

/// Copies every section, reading the next page while it writes the last. The caller must have called
/// [`Import::begin`] on the target; this calls [`Import::settle`] at the end.
///
/// # Errors
/// When either store fails. Records already written stay, and the next attempt removes them.
pub async fn copy(from: &dyn Export, to: &dyn Import, progress: Progress<'_>) -> Result<(), StoreError> {
    for section in Section::ALL {
        let mut done = 0;
        progress(section, done);
        let mut page = from.export(section, None, PAGE).await?;
        loop {
            let Page { items, next } = page;
            done += count(items.len());
            let write = async { if items.is_empty() { Ok(()) } else { to.import(items).await } };
            let Some(after) = next else {
                write.await?;
                progress(section, done);
                break;
            };
            let (written, read) = tokio::join!(write, from.export(section, Some(&after), PAGE));
            written?;
            page = read?;
            progress(section, done);
        }
    }
    to.settle().await
}

/// The sums of each section of a store.
///
/// # Errors
/// When the store cannot be read.
pub async fn survey(store: &dyn Export, progress: Progress<'_>) -> Result<Vec<(Section, Sums)>, StoreError> {
    let mut found = Vec::with_capacity(Section::ALL.len());
    for section in Section::ALL {
        let (mut sums, mut after) = (Sums::default(), None);
        loop {
            let page = store.export(section, after.as_ref(), PAGE).await?;
            page.items.iter().for_each(|record| sums.add(record));
            progress(section, sums.records);
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        found.push((section, sums));
    }
    Ok(found)
}

fn count(records: usize) -> u64 {
    u64::try_from(records).unwrap_or(u64::MAX)
}
