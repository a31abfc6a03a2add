//! A place in the order of a section, as the parts of its key.

use serde::{Deserialize, Serialize};

use crate::store::{Cursor, StoreError};

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

/// The key of the last record of a page: what a backend's cursor holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place(pub Vec<Part>);

impl Place {
    /// The place that [`Place::cursor`] made a cursor of.
    ///
    /// # Errors
    /// When it has another number of parts, or is no cursor of a section at all.
    pub fn of(cursor: &Cursor, parts: usize) -> Result<Self, StoreError> {
        let place = serde_json::from_str(cursor.as_str()).ok().filter(|place: &Self| place.0.len() == parts);
        let foreign = || StoreError::Corrupt("a cursor that is not of this section was handed in".to_owned());
        place.ok_or_else(foreign)
    }

    /// The cursor of this place.
    #[must_use]
    pub fn cursor(&self) -> Cursor {
        Cursor::new(serde_json::to_string(self).expect("numbers, texts and bytes have a form as JSON"))
    }
}
