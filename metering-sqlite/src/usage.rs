//! Reading usage: reports, daily totals and recent activity.

pub(crate) mod activity;
pub(crate) mod erasure;
pub(crate) mod history;
pub(crate) mod kind;
pub(crate) mod newest;
