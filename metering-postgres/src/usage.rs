//! Reading usage: recent activity, and the tails of the meter rows that tables are merged with.

pub(crate) mod activity;
pub(crate) mod tails;
