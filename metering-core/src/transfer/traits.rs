//! What a backend does that a store can be moved from, or to.

use std::fmt;

use async_trait::async_trait;

use crate::store::{Cursor, Page, StoreError};

use super::record::Record;
use super::section::Section;

/// A store that tells all that it holds.
#[async_trait]
pub trait Export: Send + Sync + fmt::Debug {
    /// Records of a section in its order, at most `limit` after `after`. As long as nobody writes, following the cursors
    /// gives each once.
    async fn export(&self, section: Section, after: Option<&Cursor>, limit: u32) -> Result<Page<Record>, StoreError>;
}

/// A store that another can be moved to.
#[async_trait]
pub trait Import: Export {
    /// What stands here, as seen by somebody who would move `source` here.
    async fn standing(&self, source: &SourceId) -> Result<Standing, StoreError>;

    /// Makes this the one move to this store, and whatever an unfinished one left is taken away. That happens if it is
    /// [`Standing::Empty`] or [`Standing::Unfinished`]; otherwise nothing does. From then on, until [`Import::finish`],
    /// nobody else can open the store or write to it.
    async fn begin(&self, source: &SourceId) -> Result<Standing, StoreError>;

    /// Writes records of one section, which come in the order of [`Section::ALL`] and in the section's own. An error when
    /// another move has begun meanwhile.
    async fn import(&self, records: Vec<Record>) -> Result<(), StoreError>;

    /// All is written: what is left to be done before it can be read fast.
    async fn settle(&self) -> Result<(), StoreError>;

    /// Opens the store to everybody.
    async fn finish(&self) -> Result<(), StoreError>;
}

/// What a store calls itself: drawn when it is made, and the same in every copy of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceId([u8; 16]);

impl SourceId {
    /// An id read from a store.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

/// What stands where a store is to be moved to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// Nothing.
    Empty,
    /// A move that was not finished, of this store or another.
    Unfinished,
    /// This store: it was moved here before.
    Finished,
    /// Something else: what of it was seen first.
    Occupied(String),
    /// A move that is under way at this moment.
    UnderWay,
}
