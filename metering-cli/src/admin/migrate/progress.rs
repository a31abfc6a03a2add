//! How far a move has come, for a person at a terminal; programs are told nothing.

use std::io::{self, IsTerminal};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use metering_core::transfer::Section;

/// A line on stderr, if anybody sees it.
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

    /// Something else is done now.
    pub(super) fn begin(&self, what: &'static str) {
        self.0.set_prefix(what);
        self.0.set_message("");
        self.0.set_position(0);
    }

    /// So many records of a section are done.
    pub(super) fn step(&self, section: Section, records: u64) {
        self.0.set_message(section.as_str());
        self.0.set_position(records);
    }

    /// Takes the line away; the report takes its place.
    pub(super) fn end(&self) {
        self.0.finish_and_clear();
    }
}
