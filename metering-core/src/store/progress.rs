//! The progress of a long run, such as a backup. The caller chooses who receives it.

use std::fmt;

/// Receives the progress of a run. Called often and from any thread, so it must return soon.
///
/// ```
/// use std::sync::atomic::{AtomicU64, Ordering};
///
/// use metering_core::store::Progress;
///
/// #[derive(Debug, Default)]
/// struct Percent {
///     total: AtomicU64,
///     done: AtomicU64,
/// }
///
/// impl Progress for Percent {
///     fn total(&self, units: u64) {
///         self.total.store(units, Ordering::Relaxed);
///     }
///
///     fn advance(&self, units: u64) {
///         self.done.fetch_add(units, Ordering::Relaxed);
///     }
/// }
///
/// let percent = Percent::default();
/// let run: &dyn Progress = &percent;
/// run.total(8);
/// run.advance(2);
/// assert_eq!(percent.done.into_inner() * 100 / percent.total.into_inner(), 25);
/// ```
pub trait Progress: Send + Sync + fmt::Debug {
    /// The total amount of work, in units that depend on the run.
    fn total(&self, units: u64);

    /// Adds to the work that is done.
    fn advance(&self, units: u64);
}

/// Reports to nobody.
impl Progress for () {
    fn total(&self, _units: u64) {}

    fn advance(&self, _units: u64) {}
}
