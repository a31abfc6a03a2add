//! Shows the progress of a long run on stderr: a bar with rate and time left on a terminal, and a line every ten
//! seconds elsewhere. Runs that end sooner print nothing there.

mod lines;
mod pace;
mod part;

use std::fmt;
use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use indicatif::style::ProgressTracker;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use crate::output::notice;
use lines::Lines;
use pace::Pace;
use part::{Part, figures};
pub(crate) use part::{Unit, size};

/// How often a run without a terminal prints its progress.
const EVERY: Duration = Duration::from_secs(10);
/// How often a bar is redrawn while nothing is counted.
const TICK: Duration = Duration::from_millis(200);

/// The name of a part of a run that has several, such as `Comparing (2 of 3)`.
pub(crate) fn numbered(what: &str, number: usize, of: usize) -> String {
    format!("{what} ({number} of {of})")
}

/// The progress of a run. Clones share one display.
#[derive(Debug, Clone)]
pub(crate) struct Progress(Shown);

#[derive(Debug, Clone)]
enum Shown {
    Bar(ProgressBar),
    Lines(Lines),
    Nothing,
}

impl Progress {
    /// Shows a run whose output appears when it ends.
    pub(crate) fn new() -> Self {
        Self(if io::stderr().is_terminal() {
            Shown::Bar(ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()))
        } else {
            Shown::Lines(Lines::start(EVERY, |line| notice(&line)))
        })
    }

    /// Shows a run that writes to standard output meanwhile: nothing, if that is a terminal too.
    pub(crate) fn beside_stdout() -> Self {
        if io::stdout().is_terminal() { Self::none() } else { Self::new() }
    }

    /// Shows nothing.
    pub(crate) const fn none() -> Self {
        Self(Shown::Nothing)
    }

    /// Starts a part of the run, of `total` units if that is known.
    pub(crate) fn begin(&self, what: &str, unit: Unit, total: Option<u64>) {
        match &self.0 {
            Shown::Bar(bar) => {
                bar.set_style(style(unit, total.is_some()));
                bar.set_message(what.to_owned());
                match total {
                    Some(total) => bar.set_length(total),
                    None => bar.unset_length(),
                }
                bar.reset();
                bar.enable_steady_tick(TICK);
            }
            Shown::Lines(lines) => lines.set(Some(Part::new(what, unit, total))),
            Shown::Nothing => {}
        }
    }

    /// Counts more units of the current part as done.
    pub(crate) fn add(&self, units: u64) {
        match &self.0 {
            Shown::Bar(bar) => bar.inc(units),
            Shown::Lines(lines) => lines.change(|part| part.done = part.done.saturating_add(units)),
            Shown::Nothing => {}
        }
    }

    /// Prints a notice without disturbing the bar.
    pub(crate) fn message(&self, text: &str) {
        match &self.0 {
            Shown::Bar(bar) => bar.suspend(|| notice(text)),
            Shown::Lines(_) | Shown::Nothing => notice(text),
        }
    }

    /// Removes the bar. The result is printed next.
    pub(crate) fn end(&self) {
        match &self.0 {
            Shown::Bar(bar) => bar.finish_and_clear(),
            Shown::Lines(lines) => lines.set(None),
            Shown::Nothing => {}
        }
    }
}

/// For the library's runs, which know their total only after they have begun: `begin` them with a total of 0.
impl metering_core::store::Progress for Progress {
    fn total(&self, units: u64) {
        match &self.0 {
            Shown::Bar(bar) => bar.set_length(units),
            Shown::Lines(lines) => lines.change(|part| part.total = Some(units)),
            Shown::Nothing => {}
        }
    }

    fn advance(&self, units: u64) {
        self.add(units);
    }
}

fn style(unit: Unit, has_total: bool) -> ProgressStyle {
    let template = if has_total { "{msg}: [{bar:16}] {figures}" } else { "{spinner} {msg}: {figures}" };
    let template = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner());
    template.with_key("figures", Figures { unit, pace: Pace::default() })
}

/// The words of a bar.
#[derive(Debug, Clone, Copy)]
struct Figures {
    unit: Unit,
    pace: Pace,
}

impl ProgressTracker for Figures {
    fn clone_box(&self) -> Box<dyn ProgressTracker> {
        Box::new(*self)
    }

    fn tick(&mut self, state: &ProgressState, _: Instant) {
        self.pace.read(state.pos(), state.elapsed());
    }

    /// The part begins: ticks so far were with the state of the previous one.
    fn reset(&mut self, _: &ProgressState, _: Instant) {
        self.pace = Pace::default();
    }

    fn write(&self, state: &ProgressState, bar: &mut dyn fmt::Write) {
        // Errors of drawing the bar cannot be reported anywhere.
        let _ = bar.write_str(&figures(self.unit, state.pos(), state.len(), state.elapsed(), self.pace));
    }
}
