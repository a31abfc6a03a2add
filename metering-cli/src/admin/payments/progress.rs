//! Shows the progress of a long scan on a terminal.

use std::io::{self, IsTerminal, Write};

/// One line on stderr that is rewritten, and removed at the end. Does nothing if stderr is not a terminal.
#[derive(Debug)]
pub(in crate::admin) struct Progress {
    terminal: bool,
}

impl Progress {
    /// Moves the cursor to the start of the line and clears the line (ECMA-48).
    const CLEAR: &'static str = "\r\u{1b}[K";

    pub(in crate::admin) fn new() -> Self {
        Self { terminal: io::stderr().is_terminal() }
    }

    /// Replaces the line with `text`.
    pub(in crate::admin) fn show(&self, text: &str) {
        if self.terminal {
            let mut screen = io::stderr();
            // Failing to show progress is not an error.
            let _ = write!(screen, "{}{text}", Self::CLEAR).and_then(|()| screen.flush());
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.show("");
    }
}
