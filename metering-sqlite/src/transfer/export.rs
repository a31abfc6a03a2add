mod activity;
mod recent;

use async_trait::async_trait;
use metering_core::store::{Cursor, Page};
use metering_sql::now;
use metering_sql::transfer::{Export, Record, Section, Source, count, page};
use rusqlite::Connection;

use crate::error::Result;
use crate::journal::{Snapshot, Unfolded};
use crate::script::Statements;
use crate::store::SqliteStore;

#[async_trait]
impl Export for SqliteStore {
    async fn export(&self, section: Section, after: Option<&Cursor>, limit: u32) -> Result<Page<Record>> {
        let after = after.cloned();
        self.writer.fold_and_read(move |connection| records(connection, section, after.as_ref(), limit)).await
    }

    async fn count(&self, section: Section) -> Result<Option<u64>> {
        let Some(source) = Source::of(section) else { return Ok(None) };
        self.read(move |snapshot| now(count(&mut Statements::new(snapshot), &source))).await.map(Some)
    }
}

fn records(connection: &Connection, section: Section, after: Option<&Cursor>, limit: u32) -> Result<Page<Record>> {
    recent::refresh(connection, section)?;
    let source = match section {
        Section::Activity => Some(activity::source()),
        section => Source::of(section),
    };
    let Some(source) = source else { return Ok(Page { items: Vec::new(), next: None }) };
    let mut unfolded = Unfolded::default();
    let snapshot = Snapshot::new(connection, &mut unfolded);
    now(page(&mut Statements::new(&snapshot), &source, after, limit))
}
