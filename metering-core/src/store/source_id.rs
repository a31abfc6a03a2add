//! The identity of a store.

use crate::raw_bytes::raw_bytes;

/// A store's id: random, set when the store is created, and the same in every copy of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceId([u8; 16]);

raw_bytes!(SourceId, 16);
