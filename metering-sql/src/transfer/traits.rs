use std::fmt;

use async_trait::async_trait;
use metering_core::store::{Cursor, Page, SourceId, StoreError};

use crate::transfer::section::{Record, Section};

/// A store that can be moved to another backend.
#[async_trait]
pub trait Export: Send + Sync + fmt::Debug {
    /// Records of a section in its order, at most `limit` after `after`. Without concurrent writes, following the
    /// cursors returns each record once.
    async fn export(&self, section: Section, after: Option<&Cursor>, limit: u32) -> Result<Page<Record>, StoreError>;

    /// How many records a section has, to show progress; `None` if that is unknown. Charges that were not added to
    /// daily totals yet are left out.
    async fn count(&self, _section: Section) -> Result<Option<u64>, StoreError> {
        Ok(None)
    }
}

/// A store that another can be moved to.
#[async_trait]
pub trait Import: Export {
    /// The status of this store as a target for moving `source`.
    async fn target_state(&self, source: &SourceId) -> Result<TargetState, StoreError>;

    /// Begins a move to this store, and deletes what an unfinished move left. Does so only if the status is
    /// [`TargetState::Empty`] or [`TargetState::Unfinished`]; otherwise nothing happens. From then until
    /// [`Import::finish`], no other process can open the store or write to it.
    async fn begin(&self, source: &SourceId) -> Result<TargetState, StoreError>;

    /// Writes records of one section. Sections arrive in the order of [`Section::ALL`], and records in their section's
    /// order. An error when another move has begun since.
    async fn import(&self, records: Vec<Record>) -> Result<(), StoreError>;

    /// Called when all records are written, for work that makes reads fast, such as updating statistics.
    async fn settle(&self) -> Result<(), StoreError>;

    /// Opens the store for use.
    async fn finish(&self) -> Result<(), StoreError>;
}

/// The status of a target store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetState {
    /// It is empty.
    Empty,
    /// It holds an unfinished move, of this source or another.
    Unfinished,
    /// This source was moved here before.
    Finished,
    /// It contains other data; the text names what was found first.
    Occupied(String),
    /// A move is in progress.
    InProgress,
}
