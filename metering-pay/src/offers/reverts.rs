//! Limits on payments whose transactions revert, a pure rule: the executor pays the gas of a revert and earns nothing.
//!
//! A simulation proves little: the payer's tokens may be gone when the transaction is mined, and a contract wallet may
//! accept only in simulations. So the number of reverts is limited, and every payment in flight counts as a possible
//! revert: the limits hold no matter how many payments are sent concurrently.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::time::Duration;

use metering_core::chains::Address;
use metering_core::clock::Timestamp;

/// For how long a revert counts.
const WINDOW: Duration = Duration::from_secs(60 * 60);

/// The keccak-256 of a contract's code.
pub type CodeHash = [u8; 32];

/// How many reverts within an hour pause payments, and how many payments are executed at a time. 0 counts as 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RevertLimits {
    /// Per payer. 1 by default: one payment at a time, and none for an hour after a revert.
    pub per_payer: u32,
    /// For all wallets with the same code on a chain. 3 by default.
    pub per_code: u32,
    /// For all payers on a chain. 20 by default.
    pub per_chain: u32,
}

impl Default for RevertLimits {
    fn default() -> Self {
        Self { per_payer: 1, per_code: 3, per_chain: 20 }
    }
}

/// The payer or code whose payments may revert.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exposure {
    /// The chain's id (EIP-155).
    pub chain_id: u64,
    /// The payer's wallet.
    pub payer: Address,
    /// The hash of its code, if it has any.
    pub code: Option<CodeHash>,
}

/// The subject that reverts are counted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RevertSubject {
    /// One payer on a chain.
    Payer(u64, Address),
    /// All wallets with this code on a chain.
    Code(u64, CodeHash),
    /// All payers on a chain.
    Chain(u64),
}

impl fmt::Display for RevertSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Payer(..) => "this wallet",
            Self::Code(..) => "wallets with the same code as this one",
            Self::Chain(_) => "this chain",
        })
    }
}

/// Payments are not executed for a while, because too many reverted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RevertPause {
    /// Whose.
    pub subject: RevertSubject,
    /// Until when they are not executed.
    pub until: Timestamp,
}

/// Whether a payment may be executed now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RevertTurn {
    /// It counts as in flight, until [`RevertBook::end`].
    Now,
    /// Others in flight could reach the limit. It may be executed when one of them ends.
    Later,
    /// The limit is reached.
    Paused(RevertPause),
}

/// The reverts of the last hour, and the payments in flight.
///
/// ```
/// use metering_core::Timestamp;
/// use metering_core::chains::Address;
/// use metering_pay::offers::{Exposure, RevertBook, RevertLimits, RevertTurn};
///
/// let mut book = RevertBook::new(RevertLimits::default());
/// let (now, payer) = (Timestamp::from_unix_millis(0), Address::from_bytes([7; 20]));
/// let exposure = Exposure { chain_id: 8453, payer, code: None };
/// assert_eq!(book.begin(&exposure, now), RevertTurn::Now);
/// assert_eq!(book.begin(&exposure, now), RevertTurn::Later, "one at a time");
/// book.record(&exposure, now);
/// book.end(&exposure);
/// assert!(matches!(book.begin(&exposure, now), RevertTurn::Paused(_)));
/// ```
#[derive(Debug)]
pub struct RevertBook {
    limits: RevertLimits,
    /// Oldest first.
    reverts: VecDeque<(Timestamp, Exposure)>,
    in_flight: BTreeMap<RevertSubject, usize>,
}

impl RevertBook {
    /// An empty book.
    #[must_use]
    pub const fn new(limits: RevertLimits) -> Self {
        Self { limits, reverts: VecDeque::new(), in_flight: BTreeMap::new() }
    }

    /// Why payments like this one are not executed now, if they are not. The reason that ends last.
    #[must_use]
    pub fn pause(&self, exposure: &Exposure, now: Timestamp) -> Option<RevertPause> {
        let pauses = exposure.subjects().filter_map(|subject| self.pause_of(subject, now));
        pauses.max_by_key(|pause| pause.until)
    }

    /// Begins to execute a payment, if that keeps the limits.
    pub fn begin(&mut self, exposure: &Exposure, now: Timestamp) -> RevertTurn {
        if let Some(pause) = self.pause(exposure, now) {
            return RevertTurn::Paused(pause);
        }
        let is_full = |subject: RevertSubject| {
            let open = self.in_flight.get(&subject).copied().unwrap_or_default();
            self.times(subject, now).count() + open >= self.limit(subject)
        };
        if exposure.subjects().any(is_full) {
            return RevertTurn::Later;
        }
        self.begin_anyway(exposure);
        RevertTurn::Now
    }

    /// Counts a payment as in flight whose transaction may have been sent already.
    pub fn begin_anyway(&mut self, exposure: &Exposure) {
        for subject in exposure.subjects() {
            *self.in_flight.entry(subject).or_default() += 1;
        }
    }

    /// A payment is no longer in flight. Call it once for each that began.
    pub fn end(&mut self, exposure: &Exposure) {
        for subject in exposure.subjects() {
            let Some(open) = self.in_flight.get_mut(&subject) else { continue };
            *open = open.saturating_sub(1);
            if *open == 0 {
                self.in_flight.remove(&subject);
            }
        }
    }

    /// Counts a revert. Returns the subjects that it pauses, and that were not paused before.
    pub fn record(&mut self, exposure: &Exposure, now: Timestamp) -> Vec<RevertPause> {
        self.reverts.retain(|(at, _)| counts(*at, now));
        let paused_before: Vec<_> =
            exposure.subjects().filter(|subject| self.pause_of(*subject, now).is_some()).collect();
        self.reverts.push_back((now, *exposure));
        let fresh = exposure.subjects().filter(|subject| !paused_before.contains(subject));
        fresh.filter_map(|subject| self.pause_of(subject, now)).collect()
    }

    /// How many reverts of the last hour there are on a chain, and until when all payments on it are paused, if they
    /// are.
    #[must_use]
    pub fn on_chain(&self, chain_id: u64, now: Timestamp) -> (usize, Option<Timestamp>) {
        let chain = RevertSubject::Chain(chain_id);
        (self.times(chain, now).count(), self.pause_of(chain, now).map(|pause| pause.until))
    }

    /// It lasts until fewer reverts than the limit are left in the window.
    fn pause_of(&self, subject: RevertSubject, now: Timestamp) -> Option<RevertPause> {
        let times: Vec<_> = self.times(subject, now).collect();
        let last_to_pass = times.len().checked_sub(self.limit(subject))?;
        let until = times.get(last_to_pass)?.saturating_add(WINDOW);
        Some(RevertPause { subject, until })
    }

    fn times(&self, subject: RevertSubject, now: Timestamp) -> impl Iterator<Item = Timestamp> {
        let of_it = move |exposure: &Exposure| exposure.subjects().any(|other| other == subject);
        self.reverts.iter().filter(move |(at, exposure)| counts(*at, now) && of_it(exposure)).map(|(at, _)| *at)
    }

    fn limit(&self, subject: RevertSubject) -> usize {
        let limit = match subject {
            RevertSubject::Payer(..) => self.limits.per_payer,
            RevertSubject::Code(..) => self.limits.per_code,
            RevertSubject::Chain(_) => self.limits.per_chain,
        };
        usize::try_from(limit.max(1)).unwrap_or(usize::MAX)
    }
}

impl Exposure {
    fn subjects(&self) -> impl Iterator<Item = RevertSubject> + use<> {
        let Self { chain_id, payer, code } = *self;
        let code = code.map(|code| RevertSubject::Code(chain_id, code));
        [RevertSubject::Payer(chain_id, payer), RevertSubject::Chain(chain_id)].into_iter().chain(code)
    }
}

/// Whether a revert still counts.
fn counts(at: Timestamp, now: Timestamp) -> bool {
    now < at.saturating_add(WINDOW)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: RevertLimits = RevertLimits { per_payer: 1, per_code: 2, per_chain: 4 };
    const MALICIOUS: Option<CodeHash> = Some([9; 32]);

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_unix_millis(seconds * 1_000)
    }

    fn of(payer: u8, code: Option<CodeHash>) -> Exposure {
        Exposure { chain_id: 1, payer: Address::from_bytes([payer; 20]), code }
    }

    #[test]
    fn a_subject_is_paused_at_its_limit_until_its_reverts_are_an_hour_old() {
        let mut book = RevertBook::new(LIMITS);
        let payer = |exposure: Exposure| RevertSubject::Payer(1, exposure.payer);
        let (code, chain) = (RevertSubject::Code(1, [9; 32]), RevertSubject::Chain(1));
        // payer, its code, seconds of the revert, the paused subjects
        let table = [
            (of(1, MALICIOUS), 0, vec![(payer(of(1, None)), 3_600)]),
            (of(2, MALICIOUS), 10, vec![(payer(of(2, None)), 3_610), (code, 3_600)]),
            (of(3, None), 20, vec![(payer(of(3, None)), 3_620)]),
            (of(3, None), 25, vec![]),
        ];
        for (exposure, seconds, paused) in table {
            let found = book.record(&exposure, at(seconds));
            let found: Vec<_> = found.iter().map(|pause| (pause.subject, pause.until)).collect();
            let expected =
                |(subject, until): &(RevertSubject, i64)| found.contains(&(*subject, at(*until))) || *subject == chain;
            assert!(paused.iter().all(expected), "{seconds}: {found:?}");
            let fresh = found.iter().filter(|(subject, _)| *subject != chain).count();
            assert_eq!(fresh, paused.len(), "{seconds}: {found:?}");
        }
        assert_eq!(book.on_chain(1, at(30)), (4, Some(at(3_600))));
        assert_eq!(book.on_chain(2, at(30)), (0, None), "another chain has limits of its own");
        let paused = |exposure, seconds| book.pause(&exposure, at(seconds)).map(|pause| pause.subject);
        assert_eq!(paused(of(8, None), 30), Some(chain));
        assert_eq!(paused(of(8, None), 3_600), None, "fewer than the limit are left");
        assert_eq!(paused(of(8, MALICIOUS), 3_600), None);
        assert_eq!(paused(of(2, None), 3_609), Some(payer(of(2, None))));
        assert_eq!(paused(of(2, None), 3_610), None);
        let other = Exposure { chain_id: 2, ..of(1, MALICIOUS) };
        assert_eq!(book.pause(&other, at(30)), None);
    }

    #[test]
    fn payments_in_flight_count_as_reverts_that_may_come() {
        let mut book = RevertBook::new(LIMITS);
        let now = at(0);
        let begun = |book: &mut RevertBook, payer, code| book.begin(&of(payer, code), now);
        assert_eq!(begun(&mut book, 1, MALICIOUS), RevertTurn::Now);
        assert_eq!(begun(&mut book, 1, MALICIOUS), RevertTurn::Later, "one at a time per payer");
        assert_eq!(begun(&mut book, 2, MALICIOUS), RevertTurn::Now);
        assert_eq!(begun(&mut book, 3, MALICIOUS), RevertTurn::Later, "two of a code");
        assert_eq!(begun(&mut book, 3, None), RevertTurn::Now);
        // A payment that was sent before counts, and is not held back.
        book.begin_anyway(&of(3, None));
        assert_eq!(begun(&mut book, 4, None), RevertTurn::Later, "four on the chain");
        book.end(&of(3, None));
        assert_eq!(begun(&mut book, 3, None), RevertTurn::Later, "its other one is in flight");
        assert_eq!(begun(&mut book, 4, None), RevertTurn::Now);
        // One payment of a code reverted and another is in flight: no third one.
        let _ = book.record(&of(1, MALICIOUS), now);
        book.end(&of(1, MALICIOUS));
        assert_eq!(begun(&mut book, 5, MALICIOUS), RevertTurn::Later);
        book.end(&of(2, MALICIOUS));
        assert_eq!(begun(&mut book, 5, MALICIOUS), RevertTurn::Now);
        assert!(matches!(begun(&mut book, 1, None), RevertTurn::Paused(_)));
    }
}
