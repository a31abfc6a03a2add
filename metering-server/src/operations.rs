//! Observability and background work: logs, traces, metrics, readiness, the check of the clock, periodic work, and the
//! service manager.

pub(crate) mod clock_watch;
pub(crate) mod forwarding;
pub(crate) mod logging;
pub(crate) mod maintenance;
pub(crate) mod metric;
pub(crate) mod metrics;
pub(crate) mod rare_warning;
pub(crate) mod readiness;
pub(crate) mod refills;
pub(crate) mod retention;
pub(crate) mod service_manager;
pub(crate) mod spans;
pub(crate) mod traces;
