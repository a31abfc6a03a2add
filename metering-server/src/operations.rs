//! What operators see and what runs in the background: logs, metrics, readiness, the check of the clock, and periodic
//! work.

pub(crate) mod clock_watch;
pub(crate) mod logging;
pub(crate) mod maintenance;
pub(crate) mod metrics;
pub(crate) mod readiness;
pub(crate) mod refills;
