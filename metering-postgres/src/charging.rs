//! The charge path: commits a batch in two round trips, and packs the newest usage into the account's meter row.

pub(crate) mod commit;
pub(crate) mod entry;
pub(crate) mod known;
pub(crate) mod tail;
