//! Shows the progress of a move on a terminal, and nothing elsewhere.

use std::io::{self, IsTerminal};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use metering_sql::transfer::Section;

/// A progress line on stderr; hidden if stderr is not a terminal.
#[derive(Debug)]
pub(super) struct Progress(ProgressBar);

impl Progress {
    pub(super) fn new() -> Self {
        if !io::stderr().is_terminal() {
            return Self(ProgressBar::hidden());
        }
        let style = ProgressStyle::with_template("{spinner} {prefix} {msg} {human_pos} ({elapsed})")
            .unwrap_or_else(|_| ProgressStyle::default_spinner());
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()).with_style(style);
        bar.enable_steady_tick(Duration::from_millis(200));
        Self(bar)
    }

    /// Starts the next step.
    pub(super) fn begin(&self, what: &'static str) {
        self.0.set_prefix(what);
        self.0.set_message("");
        self.0.set_position(0);
    }

    /// Shows how many records of a section are done.
    pub(super) fn step(&self, section: Section, records: u64) {
        self.0.set_message(section.as_str());
        self.0.set_position(records);
    }

    /// Removes the line; the report is printed next.
    pub(super) fn end(&self) {
        self.0.finish_and_clear();
    }
}
