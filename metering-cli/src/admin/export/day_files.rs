//! Writes usage as one file for each whole day, so that the same command can be repeated.
//!
//! A refund and a settled hold are booked on the day of their request, so the usage of a past day can still change. Files
//! of the last days are therefore compared again, and replaced if they differ.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::Path;

use metering_core::events::SentUsage;
use metering_core::{Day, FullStore};

use super::arguments::{ExportArgs, ExportFormat};
use super::days::Days;
use crate::failure::Failure;
use crate::progress::{Progress, Unit};

/// Writes the days before `today` that have usage to files of a directory.
///
/// # Errors
/// When a file cannot be written or the store fails. Finished files stay.
pub(super) async fn write(
    export: &ExportArgs,
    store: &dyn FullStore,
    directory: &Path,
    today: Day,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    if !directory.is_dir() {
        let problem = format!("{} is not a directory; create it first", directory.display());
        return Err(Failure::Usage(problem));
    }
    let yesterday = today.minus_days(1);
    let last = export.days.to.map_or(yesterday, |to| to.min(yesterday));
    // Older files are not read again.
    let compared = today.minus_days(SentUsage::DAYS - 1);
    let progress = Progress::new();
    progress.begin("Writing", Unit::Things("rows"), None);
    let (mut new, mut replaced, mut unchanged) = (0_u64, 0_u64, 0_u64);
    let mut from = export.days.from;
    loop {
        let next = Days { from, to: Some(last) }.page(store, None, 1).await?;
        let Some(day) = next.items.first().map(|total| total.day) else { break };
        from = Some(Day::from_unix_days(day.unix_days().saturating_add(1)));
        let target = directory.join(export.file_name(day));
        let exists = target.exists();
        if exists && day < compared {
            unchanged += 1;
            continue;
        }
        let (file, _) = export.write_file(store, &target, true, &progress, Days::of(day)).await?;
        if exists && is_same(file.partial(), &target).map_err(|error| file.cannot_write(&error))? {
            unchanged += 1;
            continue;
        }
        file.finish()?;
        *(if exists { &mut replaced } else { &mut new }) += 1;
    }
    progress.end();
    let directory = directory.display();
    Ok(writeln!(out, "Days in {directory}: {new} new, {replaced} replaced, {unchanged} unchanged.")?)
}

impl ExportArgs {
    fn file_name(&self, day: Day) -> String {
        let format = match self.format {
            ExportFormat::Csv => "csv",
            ExportFormat::Jsonl => "jsonl",
        };
        format!("usage-{day}.{format}{}", if self.gzip { ".gz" } else { "" })
    }
}

/// Whether two files have the same content.
fn is_same(one: &Path, other: &Path) -> io::Result<bool> {
    let (one, other) = (File::open(one)?, File::open(other)?);
    if one.metadata()?.len() != other.metadata()?.len() {
        return Ok(false);
    }
    let (mut one, mut other) = (BufReader::new(one).bytes(), BufReader::new(other).bytes());
    loop {
        match (one.next().transpose()?, other.next().transpose()?) {
            (None, None) => return Ok(true),
            (one, other) if one == other => {}
            _ => return Ok(false),
        }
    }
}
