//! The sum of one account's changes, so that an account with many is read without unpacking them.

use metering_core::access::Totals;
use metering_core::backend::credits;
use metering_core::charging::{RateWindows, Window};
use metering_core::{Credits, Timestamp};

use crate::error::Result;
use crate::journal::Change;

/// The sum of an account's changes, added oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Sum {
    /// The amount added to each of the totals, in atoms.
    balance: i128,
    purchased: i128,
    granted: i128,
    used: i128,
    held: i128,
    requests: Requests,
    counted: Option<Counted>,
}

/// Tells which requests count for the rate limits.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Requests {
    /// Settled holds among the row's calls, which counted when they were opened.
    settled: u64,
}

/// The requests that count for the rate limits.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Counted {
    /// The minute and the day of the first.
    first: (i64, i64),
    /// Those in the minute and in the day of the last.
    minute: Window,
    day: Window,
    /// Whether none is of an earlier minute than the one before it.
    is_forward: bool,
}

impl Sum {
    /// Adds a change that is newer than all others.
    pub(crate) fn add(&mut self, at: Timestamp, change: &Change) {
        match change {
            Change::Usage(usage) => {
                let atoms = i128::from(usage.added_atoms());
                (self.balance, self.used) = (self.balance - atoms, self.used + atoms);
            }
            Change::Holds(holds) => {
                let atoms = i128::from(holds.atoms);
                (self.balance, self.held) = (self.balance - atoms, self.held + atoms);
            }
            Change::Entry(added) => {
                self.balance += i128::from(added.balance);
                self.purchased += i128::from(added.purchased);
                self.granted += i128::from(added.granted);
            }
            Change::Settings => {}
        }
        let accepted = self.requests.accepted(change);
        if accepted > 0 {
            match &mut self.counted {
                Some(counted) => counted.add(accepted, at),
                None => self.counted = Some(Counted::new(accepted, at)),
            }
        }
    }

    /// The totals of an account after these changes.
    ///
    /// They are in range after every commit, but not after every change: a batch may refund before it charges, and its
    /// changes are sorted.
    pub(crate) fn totals(&self, before: Totals) -> Result<Totals> {
        let after = |before: Credits, added: i128| credits(i128::from(before.atoms()) + added);
        Ok(Totals {
            balance: after(before.balance, self.balance)?,
            purchased: after(before.purchased, self.purchased)?,
            granted: after(before.granted, self.granted)?,
            used: after(before.used, self.used)?,
            held: after(before.held, self.held)?,
        })
    }

    /// The rate-limit windows after these changes. `None` if a clock was set back: then it depends on each of them.
    pub(crate) fn windows(&self, before: RateWindows) -> Option<RateWindows> {
        self.counted.as_ref().map_or(Some(before), |counted| counted.after(before))
    }
}

impl Requests {
    /// How many requests of this change count, which must be newer than all before.
    pub(crate) fn accepted(&mut self, change: &Change) -> u64 {
        match change {
            Change::Holds(holds) => {
                self.settled = u64::from(holds.settled);
                holds.opened.into()
            }
            Change::Usage(usage) => {
                let calls = usage.added_calls();
                let counted = calls.saturating_sub(self.settled);
                self.settled = self.settled.saturating_sub(calls);
                counted
            }
            Change::Entry(_) | Change::Settings => 0,
        }
    }
}

impl Counted {
    fn new(accepted: u64, at: Timestamp) -> Self {
        let (minute, day) = (at.minute(), at.day().unix_days());
        let window = |index| Window { index, count: saturated(accepted) };
        Self { first: (minute, day), minute: window(minute), day: window(day), is_forward: true }
    }

    fn add(&mut self, accepted: u64, at: Timestamp) {
        let own = Self::new(accepted, at);
        self.is_forward &= own.minute.index >= self.minute.index;
        (self.minute, self.day) = (joined(self.minute, own.minute), joined(self.day, own.day));
    }

    fn after(&self, before: RateWindows) -> Option<RateWindows> {
        let (minute, day) = self.first;
        let is_later = before.minute.index <= minute && before.day.index <= day;
        (self.is_forward && is_later)
            .then(|| RateWindows { minute: joined(before.minute, self.minute), day: joined(before.day, self.day) })
    }
}

/// A window after another that is not newer.
fn joined(before: Window, after: Window) -> Window {
    let earlier = if before.index == after.index { before.count } else { 0 };
    Window { index: after.index, count: earlier.saturating_add(after.count) }
}

fn saturated(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
