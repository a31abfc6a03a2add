//! How far a run has come, for a person at a terminal; programs are told nothing.

use std::io::{self, IsTerminal};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::client::catch_up::block::BlockNumber;
use crate::output::notice;

/// A progress bar on stderr, if anybody sees it. Clones are the same one.
#[derive(Debug, Clone)]
pub(super) struct Progress(ProgressBar);

impl Progress {
    /// A bar when stderr is a terminal, unless blocks go to a terminal too.
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

    /// So many blocks are to come.
    pub(super) fn begin(&self, blocks: u64) {
        self.0.set_length(blocks);
    }

    /// A block is done.
    pub(super) fn step(&self, number: BlockNumber) {
        self.0.set_message(number.to_string());
        self.0.inc(1);
    }

    /// Says something without getting in the bar's way.
    pub(super) fn say(&self, text: &str) {
        self.0.suspend(|| notice(text));
    }

    /// Takes the bar away; the summary takes its place.
    pub(super) fn end(&self) {
        self.0.finish_and_clear();
    }
}
