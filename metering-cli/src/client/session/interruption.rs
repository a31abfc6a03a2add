//! Signals to stop: Ctrl-C, and SIGTERM on Unix.

use std::future::ready;

use crate::failure::Failure;

/// Notices signals to stop from the moment it is created: a signal that arrives while nothing waits is not lost.
#[derive(Debug)]
pub(crate) struct Interruption {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
}

impl Interruption {
    /// Starts watching.
    pub(crate) fn watch() -> Result<Self, Failure> {
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};
            let failed = |error| Failure::Failed(format!("cannot watch for Ctrl-C: {error}"));
            Ok(Self {
                interrupt: signal(SignalKind::interrupt()).map_err(failed)?,
                terminate: signal(SignalKind::terminate()).map_err(failed)?,
            })
        }
        #[cfg(not(unix))]
        Ok(Self {})
    }

    /// Waits for the next signal.
    pub(crate) async fn next(&mut self) {
        #[cfg(unix)]
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
        #[cfg(not(unix))]
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Whether a signal has arrived that nothing waited for.
    pub(crate) async fn has_come(&mut self) -> bool {
        tokio::select! {
            biased;
            () = self.next() => true,
            () = ready(()) => false,
        }
    }
}
