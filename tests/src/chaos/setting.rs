use std::time::{Duration, Instant};

use super::rng::Rng;

/// The settings of one run of a campaign.
pub(super) struct Setting {
    pub(super) duration: Duration,
    pub(super) rng: Rng,
    pub(super) plant: bool,
    pub(super) created: Instant,
    /// When the first fault was due; servers and databases have started by then.
    pub(super) started: Option<Instant>,
}

impl Setting {
    pub(super) fn new(duration: Duration, seed: u64, plant: bool) -> Self {
        Self { duration, rng: Rng::new(seed), plant, created: Instant::now(), started: None }
    }

    /// Whether there is time for another round. The time starts with the first call.
    pub(super) fn has_time_left(&mut self) -> bool {
        self.started.get_or_insert_with(Instant::now).elapsed() < self.duration
    }

    /// Whether this is a very short run, as with `--smoke`.
    pub(super) fn is_short(&self) -> bool {
        self.duration < Duration::from_secs(5)
    }
}
