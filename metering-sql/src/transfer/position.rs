//! A position in a section, as the parts of a record's key.

use metering_core::store::{Cursor, StoreError};
use serde::{Deserialize, Serialize};

/// A part of a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Part {
    /// A number.
    Number(i64),
    /// A text, compared by its bytes.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
}

/// The key of the last record of a page. Backends put it into their cursors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position(pub Vec<Part>);

impl Position {
    /// Parses a cursor made by [`Position::cursor`].
    ///
    /// # Errors
    /// When the number of parts is wrong, or it is not a cursor of a section.
    pub fn of(cursor: &Cursor, parts: usize) -> Result<Self, StoreError> {
        let position = serde_json::from_str(cursor.as_str()).ok().filter(|position: &Self| position.0.len() == parts);
        let foreign = || StoreError::UnknownCursor;
        position.ok_or_else(foreign)
    }

    /// The cursor for this position.
    #[must_use]
    pub fn cursor(&self) -> Cursor {
        Cursor::new(serde_json::to_string(self).expect("numbers, strings and bytes can be written as JSON"))
    }
}
