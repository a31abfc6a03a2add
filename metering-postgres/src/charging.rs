//! The charge path: commits a batch in at most two round trips, and packs the newest usage into the account's meter row.

pub(crate) mod access;
pub(crate) mod commit;
pub(crate) mod entry;
pub(crate) mod holds;
pub(crate) mod known;
pub(crate) mod recent_meters;
pub(crate) mod tail;
pub(crate) mod volumes;
