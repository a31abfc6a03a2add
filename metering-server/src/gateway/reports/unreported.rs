//! Requests whose responses did not report their cost, by route.
//!
//! An upstream that stops reporting usage does so for every request, and each may then cost its client the maximum. So
//! each is counted, and the log names the route, but at most once a minute.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::{Arc, Mutex, PoisonError};

use metering_core::{Clock, Credits, SystemClock, Timestamp};
use tokio::time::Instant;

use crate::operations::metric::counter;
use crate::operations::rare_warning::RareWarning;

/// The routes that had such requests since the server started.
#[derive(Debug, Default)]
pub(crate) struct Unreported(Mutex<BTreeMap<Arc<str>, Counted>>);

/// A route that had such requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnreportedRoute {
    /// The template of its path.
    pub(crate) route: Arc<str>,
    /// How many such requests it had.
    pub(crate) requests: u64,
    /// How many of them cost all that was held.
    pub(crate) in_full: u64,
    /// When the last one was settled.
    pub(crate) last: Timestamp,
}

#[derive(Debug)]
struct Counted {
    requests: u64,
    in_full: u64,
    last: Timestamp,
    warning: RareWarning,
}

impl Unreported {
    /// Counts a request whose response reported no readable cost, with the held and the captured amount and the reason.
    /// Its log line is rate-limited.
    pub(super) fn count(&self, route: &Arc<str>, held: Credits, captured: Credits, why: impl Display) {
        let outcome = outcome(held, captured);
        counter!(
            "metering_holds_without_report_total",
            "Requests whose responses reported no readable cost, by route and captured share of the hold",
            "route" => route.to_string(),
            "outcome" => outcome
        )
        .increment(1);
        let warning = {
            let mut routes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let now = SystemClock.now();
            let counted = routes.entry(Arc::clone(route)).or_insert_with(|| Counted::new(now));
            counted.count(outcome, now, Instant::now())
        };
        let Some(others) = warning else { return };
        tracing::warn!(
            %route, %held, %captured, others, %why,
            "a response did not report its cost; the request was charged by the price's `missing`"
        );
    }

    /// The routes, those with the most requests first.
    pub(crate) fn routes(&self) -> Vec<UnreportedRoute> {
        let routes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let row = |(route, counted): (&Arc<str>, &Counted)| {
            let Counted { requests, in_full, last, .. } = *counted;
            UnreportedRoute { route: Arc::clone(route), requests, in_full, last }
        };
        let mut rows: Vec<_> = routes.iter().map(row).collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.requests));
        rows
    }
}

impl Counted {
    fn new(now: Timestamp) -> Self {
        Self { requests: 0, in_full: 0, last: now, warning: RareWarning::default() }
    }

    /// Counts one. Returns the number of those that were not warned about, if it is time for a warning.
    fn count(&mut self, outcome: &str, time: Timestamp, now: Instant) -> Option<u64> {
        self.requests += 1;
        self.in_full += u64::from(outcome == HOLD);
        self.last = time;
        self.warning.due(now)
    }
}

const HOLD: &str = "hold";

/// The captured share of the hold, as a label.
fn outcome(held: Credits, captured: Credits) -> &'static str {
    match captured {
        Credits::ZERO => "nothing",
        some if some < held => "part",
        _ => HOLD,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcome_says_how_much_of_the_hold_is_charged() {
        let [half, one, two] = [1, 2, 4].map(Credits::from_atoms);
        for (held, captured, label) in
            [(one, one, "hold"), (one, two, "hold"), (one, half, "part"), (one, Credits::ZERO, "nothing")]
        {
            assert_eq!(outcome(held, captured), label, "{held} {captured}");
        }
    }

    #[test]
    fn routes_are_listed_with_the_most_requests_first() {
        let (unreported, held) = (Unreported::default(), Credits::from_atoms(9));
        let [rare, often] = ["/a", "/b/{id}"].map(Arc::<str>::from);
        unreported.count(&rare, held, held, "no report");
        for captured in [held, Credits::ZERO] {
            unreported.count(&often, held, captured, "no report");
        }
        let rows: Vec<_> = unreported.routes().into_iter().map(|row| (row.route, row.requests, row.in_full)).collect();
        assert_eq!(rows, [(often, 2, 1), (rare, 1, 1)]);
    }
}
