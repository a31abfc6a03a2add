//! The identity of a store.

/// A store's id: random, set when the store is created, and the same in every copy of it.
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
