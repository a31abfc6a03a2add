//! Runs the export of the arguments, page by page, to a file or to standard output.

use std::fmt;
use std::io::{BufWriter, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use indicatif::HumanCount;
use metering_core::store::{Cursor, Page};
use metering_core::{FullStore, StoreError};

use super::arguments::{ExportArgs, ExportFormat, ExportKind};
use super::columns::Exported;
use super::counted::Counted;
use super::days::Days;
use super::sink::Sink;
use super::{hashed, keyed};
use crate::failure::Failure;
use crate::new_file::NewFile;
use crate::progress::{Progress, size};

/// How many items are read per page.
const PAGE: u32 = 1_000;

/// The result of an export.
#[derive(Debug, Clone, Copy)]
pub(super) struct Written {
    rows: u64,
    bytes: u64,
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let noun = if self.rows == 1 { "row" } else { "rows" };
        write!(f, "{} {noun}, {}", HumanCount(self.rows), size(self.bytes))
    }
}

impl ExportArgs {
    /// Writes a file, which appears only when it is complete.
    pub(super) async fn write_file(
        &self,
        store: &dyn FullStore,
        target: &Path,
        replace: bool,
        progress: &Progress,
        days: Days,
    ) -> Result<(NewFile, Written), Failure> {
        let mut file = NewFile::next_to(target, replace)?;
        let mut writer = BufWriter::new(&mut file);
        let written = match self.write(store, &mut writer, progress, days).await {
            Ok(written) => writer.flush().map(|()| written).map_err(Failure::Output),
            failed => failed,
        };
        drop(writer);
        let written = written.map_err(|failure| match failure {
            Failure::Output(error) => file.cannot_write(&error),
            other => other,
        })?;
        Ok((file, written))
    }

    pub(super) async fn write(
        &self,
        store: &dyn FullStore,
        out: &mut dyn Write,
        progress: &Progress,
        days: Days,
    ) -> Result<Written, Failure> {
        let mut out = Counted::new(out);
        let rows = if self.gzip {
            let mut gzip = GzEncoder::new(&mut out, Compression::default());
            let rows = self.write_rows(store, &mut gzip, progress, days).await?;
            gzip.finish()?;
            rows
        } else {
            self.write_rows(store, &mut out, progress, days).await?
        };
        Ok(Written { rows, bytes: out.bytes })
    }

    async fn write_rows(
        &self,
        store: &dyn FullStore,
        out: &mut dyn Write,
        progress: &Progress,
        days: Days,
    ) -> Result<u64, Failure> {
        match self.what {
            ExportKind::Accounts if self.with_hashes => {
                let page = async |after: Option<&Cursor>| hashed::page(store, store.accounts(after, PAGE).await?).await;
                self.pages(out, progress, page).await
            }
            ExportKind::Accounts => self.pages(out, progress, async |after| store.accounts(after, PAGE).await).await,
            ExportKind::Ledger => self.pages(out, progress, async |after| store.ledger(after, PAGE).await).await,
            ExportKind::Payments => self.pages(out, progress, async |after| store.payments(after, PAGE).await).await,
            ExportKind::Usage => {
                let page =
                    async |after: Option<&Cursor>| keyed::page(store, days.page(store, after, PAGE).await?).await;
                self.pages(out, progress, page).await
            }
        }
    }

    /// Writes all pages, and returns how many rows there are.
    async fn pages<T: Exported>(
        &self,
        out: &mut dyn Write,
        progress: &Progress,
        page_after: impl AsyncFn(Option<&Cursor>) -> Result<Page<T>, StoreError>,
    ) -> Result<u64, Failure> {
        let mut sink = match self.format {
            ExportFormat::Csv => Sink::csv(out, T::COLUMNS)?,
            ExportFormat::Jsonl => Sink::json_lines(out),
        };
        let (mut rows, mut after): (u64, Option<Cursor>) = (0, None);
        loop {
            let page = page_after(after.as_ref()).await?;
            for item in &page.items {
                sink.write(item)?;
            }
            let count = u64::try_from(page.items.len()).unwrap_or(u64::MAX);
            rows = rows.saturating_add(count);
            progress.add(count);
            if page.next.is_none() {
                sink.finish()?;
                return Ok(rows);
            }
            after = page.next;
        }
    }
}
