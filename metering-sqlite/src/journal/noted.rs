//! The changes of one account, packed. Millions of changes wait to be folded, and each would take 64 bytes unpacked;
//! packed, a typical one takes 6 after the account's first, and about 9 with spare capacity.

use std::borrow::Cow;

use metering_core::access::Totals;
use metering_core::charging::{MeterState, RateWindows};
use metering_core::{RateLimits, Timestamp};

use crate::error::Result;
use crate::journal::Change;
use crate::journal::change::AGAIN;
use crate::journal::sum::{Requests, Sum};

/// A change that is not folded yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Noted {
    /// Its number in the sequence that activity, ledger and journal share.
    pub(crate) id: i64,
    /// When it was committed.
    pub(crate) at: Timestamp,
    pub(crate) change: Change,
}

/// The maximum size of a change without its own path: the first change of an account then needs one allocation.
const TYPICAL_BYTES: usize = 24;

/// An account with more changes than these has their sum in memory, which takes about 150 bytes. These are unpacked in a
/// few microseconds.
const WITHOUT_SUM: usize = if cfg!(debug_assertions) { 4 } else { 64 };

/// Most changes are packed without an allocation.
const SHORT: usize = 48;

/// Changes of one account, oldest first. Each is stored with its distance from the one before it, in number and time, and
/// a change that repeats the last one that is stored in full as [`AGAIN`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NotedChanges {
    packed: Vec<u8>,
    count: u32,
    /// Where the last change is that is stored in full.
    full: u32,
    /// Those of the newest change.
    id: i64,
    at_millis: i64,
    /// Once there are many.
    sum: Option<Box<Sum>>,
}

const _: () = assert!(size_of::<NotedChanges>() <= 56, "there may be one for each account, twice");

impl Default for NotedChanges {
    fn default() -> Self {
        Self { packed: Vec::with_capacity(TYPICAL_BYTES), count: 0, full: 0, id: 0, at_millis: 0, sum: None }
    }
}

impl NotedChanges {
    /// Adds a change that is newer than all others.
    pub(crate) fn push(&mut self, Noted { id, at, change }: &Noted) {
        let at_millis = at.unix_millis();
        let distance = (id.wrapping_sub(self.id), at_millis.wrapping_sub(self.at_millis));
        let mut short = [0; SHORT];
        let long;
        let packed: &[u8] = match postcard::to_slice(change, &mut short) {
            Ok(packed) => packed,
            Err(_) => {
                long = postcard::to_allocvec(change).expect("every change can be packed");
                &long
            }
        };
        let last = usize::try_from(self.full).ok().filter(|_| self.count > 0).map(|full| &self.packed[full..]);
        // The end of a packed change is in itself.
        let is_again = last.is_some_and(|last| last.starts_with(packed));
        let extended = postcard::to_extend(&distance, std::mem::take(&mut self.packed));
        self.packed = extended.expect("two numbers can be packed");
        if is_again {
            self.packed.push(AGAIN);
        } else {
            self.full = u32::try_from(self.packed.len()).expect("one account's changes take less than four gigabytes");
            self.packed.extend_from_slice(packed);
        }
        self.count = self.count.saturating_add(1);
        (self.id, self.at_millis) = (*id, at_millis);
        if let Some(sum) = &mut self.sum {
            sum.add(*at, change);
        } else if self.len() > WITHOUT_SUM {
            self.sum = Some(Box::new(self.add_up()));
        }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        usize::try_from(self.count).unwrap_or(usize::MAX)
    }

    /// The end of what is packed, where the next change will be.
    pub(crate) fn end(&self) -> u8 {
        self.packed.last().copied().unwrap_or_default()
    }

    /// Unpacks them, oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Noted> {
        let (mut rest, mut id, mut at_millis) = (self.packed.as_slice(), 0_i64, 0_i64);
        let mut full = None;
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let (distance, after) = postcard::take_from_bytes::<(i64, i64)>(rest).expect("`push` packed it");
            rest = if let [AGAIN, after @ ..] = after {
                after
            } else {
                let (change, after) = postcard::take_from_bytes::<Change>(after).expect("`push` packed it");
                full = Some(change);
                after
            };
            let change = full.clone().expect("the first change is stored in full");
            (id, at_millis) = (id.wrapping_add(distance.0), at_millis.wrapping_add(distance.1));
            Some(Noted { id, at: Timestamp::from_unix_millis(at_millis), change })
        })
    }

    /// The account's totals after these changes.
    pub(crate) fn totals(&self, before: Totals) -> Result<Totals> {
        self.sum().totals(before)
    }

    /// The account's rate-limit windows after these changes.
    pub(crate) fn windows(&self, before: RateWindows) -> RateWindows {
        self.sum().windows(before).unwrap_or_else(|| self.count(before))
    }

    /// The account's state for the charge rule after these changes.
    pub(crate) fn state(&self, before: MeterState) -> Result<MeterState> {
        let (sum, windows) = (self.sum(), RateWindows { minute: before.minute, day: before.day });
        let RateWindows { minute, day } = sum.windows(windows).unwrap_or_else(|| self.count(windows));
        Ok(MeterState { totals: sum.totals(before.totals)?, minute, day, ..before })
    }

    fn sum(&self) -> Cow<'_, Sum> {
        self.sum.as_deref().map_or_else(|| Cow::Owned(self.add_up()), Cow::Borrowed)
    }

    fn add_up(&self) -> Sum {
        let mut sum = Sum::default();
        self.iter().for_each(|noted| sum.add(noted.at, &noted.change));
        sum
    }

    /// Counts the requests against the rate limits one change after the other, as the charge rule did.
    fn count(&self, before: RateWindows) -> RateWindows {
        let (totals, alert) = Default::default();
        let limits = RateLimits::NONE;
        let mut state = MeterState { totals, limits, alert, minute: before.minute, day: before.day };
        let mut requests = Requests::default();
        for noted in self.iter() {
            let accepted = requests.accepted(&noted.change);
            if accepted > 0 {
                state.count_accepted(accepted, noted.at);
            }
        }
        RateWindows { minute: state.minute, day: state.day }
    }
}

#[cfg(test)]
mod tests {
    use metering_core::Credits;
    use metering_core::access::KeyNumber;
    use metering_core::charging::{UsageChange, UsageKind};

    use super::*;
    use crate::journal::change::Added;
    use crate::journal::{Holds, Usage};

    const NOON: i64 = 1_795_262_400_000;

    fn usage(path: &str) -> Change {
        let change = UsageChange {
            account: 7,
            key: KeyNumber::FIRST,
            line: 3,
            day: Timestamp::from_unix_millis(NOON).day(),
            kind: UsageKind::Charged,
            calls: 1,
            amount: Credits::BASE_CALL,
            request_path: Some(path.into()),
        };
        Change::Usage(Usage::of(&change, "/template", Timestamp::from_unix_millis(NOON)).unwrap())
    }

    fn noted(id: i64, at_millis: i64, change: Change) -> Noted {
        Noted { id, at: Timestamp::from_unix_millis(at_millis), change }
    }

    #[test]
    fn changes_come_back_in_order() {
        let expected = [
            noted(1, NOON, usage("/template")),
            noted(2, NOON - 5, Change::Settings),
            noted(900, i64::MIN, Change::Holds(Holds { opened: 1, settled: 2, atoms: -3 })),
            noted(901, 3, usage("/a/%C3%84")),
            noted(902, 4, usage("/a/%C3%84")),
            noted(903, 4, usage(&"/long".repeat(SHORT))),
            noted(904, 5, usage(&"/long".repeat(SHORT))),
            noted(905, 6, usage("/a/%C3%84")),
            noted(906, 6, Change::Settings),
            noted(i64::MAX, i64::MAX, Change::Settings),
        ];
        let mut changes = NotedChanges::default();
        assert_eq!((changes.len(), changes.iter().count()), (0, 0));
        expected.iter().for_each(|noted| changes.push(noted));
        assert_eq!(changes.iter().collect::<Vec<_>>(), expected);
        assert_eq!(changes.len(), expected.len());
    }

    #[test]
    fn sums_agree_with_one_change_after_the_other() {
        const MINUTE: i64 = 60_000;
        const HOUR: i64 = 60 * MINUTE;
        let holds = |opened, settled, atoms| Change::Holds(Holds { opened, settled, atoms });
        let entry = Change::Entry(Added { balance: 500, purchased: 300, granted: 200 });
        // Clocks that stop, that run, that sometimes lag a little, and that are set back.
        let clocks: [fn(i64) -> i64; 5] = [
            |_| 0,
            |number| number * MINUTE / 2,
            |number| number * 7 * HOUR,
            |number| number % 2 * MINUTE,
            |number| -number * HOUR,
        ];
        for (clock, time) in clocks.into_iter().enumerate() {
            let mut changes = NotedChanges::default();
            let mut expected = RateWindows::default();
            for number in (1..).take(WITHOUT_SUM + 30) {
                let change = match number % 5 {
                    0 => holds(2, 1, 7),
                    1 => entry.clone(),
                    _ => usage("/template"),
                };
                changes.push(&noted(number, NOON + time(number), change));
                expected = changes.count(RateWindows::default());
                assert_eq!(changes.windows(RateWindows::default()), expected, "clock {clock}, {number} changes");
                let totals = changes.totals(Totals::default()).unwrap();
                assert_eq!(totals, changes.add_up().totals(Totals::default()).unwrap());
                let sum = [totals.purchased, totals.granted].map(Credits::atoms).iter().sum::<i64>();
                assert_eq!(totals.balance.atoms(), sum - totals.used.atoms() - totals.held.atoms());
            }
            assert!(changes.sum.is_some() && expected.day.count > 0);
            assert_eq!(changes.windows(expected), changes.count(expected), "clock {clock}, after themselves");
        }
    }

    #[test]
    fn a_typical_change_takes_few_bytes() {
        let mut changes = NotedChanges::default();
        changes.push(&noted(2_000_000_000, NOON, usage("/template")));
        assert!(changes.packed.len() <= TYPICAL_BYTES, "{} bytes", changes.packed.len());
        let first = changes.packed.len();
        changes.push(&noted(2_000_100_000, NOON + 600_000, usage("/template")));
        assert!(changes.packed.len() - first <= 8, "{} bytes", changes.packed.len() - first);
    }
}
