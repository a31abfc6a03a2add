//! Shows the progress of a run on a terminal, and nothing elsewhere.

use std::io::{self, IsTerminal};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::client::charging::catch_up::block::BlockNumber;
use crate::output::notice;

/// A progress bar on stderr; hidden if stderr is not a terminal. Clones share the same bar.
#[derive(Debug, Clone)]
pub(super) struct Progress(ProgressBar);

impl Progress {
    /// Shows a bar if stderr is a terminal, unless blocks go to a terminal too.
    pub(super) fn new(to_file: bool) -> Self {
        let seen = io::stderr().is_terminal() && (to_file || !io::stdout().is_terminal());
        if !seen {
            return Self::none();
        }
        let style = ProgressStyle::with_template("{bar:30} {pos}/{len} blocks {msg} {eta}")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        Self(ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()).with_style(style))
    }

    /// No bar.
    pub(super) fn none() -> Self {
        Self(ProgressBar::hidden())
    }

    /// Sets how many blocks remain.
    pub(super) fn begin(&self, blocks: u64) {
        self.0.set_length(blocks);
    }

    /// Counts a block as done.
    pub(super) fn step(&self, number: BlockNumber) {
        self.0.set_message(number.to_string());
        self.0.inc(1);
    }

    /// Prints a notice without disturbing the bar.
    pub(super) fn message(&self, text: &str) {
        self.0.suspend(|| notice(text));
    }

    /// Removes the bar; the summary is printed next.
    pub(super) fn end(&self) {
        self.0.finish_and_clear();
    }
}
