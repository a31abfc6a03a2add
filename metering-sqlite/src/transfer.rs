//! Moving a store: its records, exclusive access while they are copied, and the "moved" marker afterwards.

pub(crate) mod export;
pub(crate) mod moved;
pub(crate) mod moving;
