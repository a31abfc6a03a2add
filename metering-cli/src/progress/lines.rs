//! A line at regular times, as long as the run lasts.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::progress::part::Part;

/// Prints the progress of the current part. Clones share it; dropping the last one ends it.
#[derive(Debug, Clone)]
pub(super) struct Lines {
    part: Arc<Mutex<Option<Part>>>,
    /// Closed when its last owner drops it.
    _running: Sender<()>,
}

impl Lines {
    pub(super) fn start(every: Duration, mut say: impl FnMut(String) + Send + 'static) -> Self {
        let part = Arc::new(Mutex::new(None));
        let (running, ended) = mpsc::channel();
        let shared = Arc::clone(&part);
        // A separate thread, because the run may keep the others busy.
        thread::spawn(move || {
            while ended.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                // Locked while printing, so that nothing is printed after the end.
                if let Some(part) = lock(&shared).as_mut() {
                    say(part.line());
                }
            }
        });
        Self { part, _running: running }
    }

    /// Begins another part, or ends the run.
    pub(super) fn set(&self, part: Option<Part>) {
        *lock(&self.part) = part;
    }

    pub(super) fn change(&self, change: impl FnOnce(&mut Part)) {
        if let Some(part) = lock(&self.part).as_mut() {
            change(part);
        }
    }
}

fn lock(part: &Mutex<Option<Part>>) -> MutexGuard<'_, Option<Part>> {
    part.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::part::Unit;

    #[test]
    fn a_run_without_a_terminal_says_how_far_it_is_until_it_ends() {
        let (say, said) = mpsc::channel();
        let lines = Lines::start(Duration::from_millis(1), move |line| {
            let _ = say.send(line);
        });
        lines.set(Some(Part::new("Writing", Unit::Things("rows"), Some(8))));
        lines.change(|part| part.done += 2);
        let first = said.iter().find(|line| line.contains("2 of 8 rows (25%)"));
        assert!(first.is_some_and(|line| line.starts_with("Writing: ")));
        lines.set(None);
        drop(lines);
        // The channel closes once the thread has ended.
        assert!(said.iter().all(|line| line.starts_with("Writing: ")));
    }
}
