//! How far a long scan has come, for whoever watches the terminal.

use std::io::{self, IsTerminal, Write};

/// One line on stderr that is rewritten, and gone at the end. Nothing where stderr is no terminal.
#[derive(Debug)]
pub(super) struct Progress {
    terminal: bool,
}

impl Progress {
    /// To the beginning of the line, and nothing on it (ECMA-48, EL).
    const CLEAR: &'static str = "\r\u{1b}[K";

    pub(super) fn new() -> Self {
        Self { terminal: io::stderr().is_terminal() }
    }

    /// Puts `text` in the place of what is shown.
    pub(super) fn show(&self, text: &str) {
        if self.terminal {
            let mut screen = io::stderr();
            // Progress that cannot be shown is no failure.
            let _ = write!(screen, "{}{text}", Self::CLEAR).and_then(|()| screen.flush());
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.show("");
    }
}
