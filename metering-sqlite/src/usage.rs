//! Reading usage: reports, daily totals and recent activity.

pub(crate) mod activity;
pub(crate) mod daily_totals;
pub(crate) mod kind;
pub(crate) mod lines;
pub(crate) mod parts;
