//! Reading usage: reports, daily totals and recent activity. Each merges the tables with the tail of the meter row.

pub(crate) mod activity;
pub(crate) mod daily_totals;
pub(crate) mod key_usage;
pub(crate) mod parts;
