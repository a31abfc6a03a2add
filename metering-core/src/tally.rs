//! The pure half of a commit: applies a batch of postings to loaded accounts and gathers what must be written.
//!
//! Every backend commits through a [`Tally`], so that all decide alike and each writes once per *distinct* row,
//! however many postings a batch holds for it. A backend resolves keys to its own row keys `K` and lines to its own
//! line keys `L`, loads what is touched for the first time, and writes the [`Changes`] in one transaction.

use std::collections::BTreeMap;
use std::hash::Hash;
use std::sync::Arc;

// Keys are a backend's own row numbers, not a client's to choose; hashing them is a good part of a large batch.
use foldhash::{HashMap, HashMapExt};

use crate::account::AccountId;
use crate::charge::{self, Charge, Decision, MeterState, Receipt, Refund, Refusal, RequestId, Settlement, Try};
use crate::clock::{Day, Timestamp};
use crate::credits::Credits;
use crate::delivery::{Delivery, DeliveryTerms};

/// One item of a batch.
#[derive(Debug)]
pub enum Posting {
    /// Charge a request.
    Charge(Charge),
    /// Pay a charge back.
    Refund(Refund),
    /// Record that a response was passed on.
    Settle(Settlement),
}

/// The answer to one posting.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The answer to a charge.
    Decided(Decision),
    /// The balance after a refund; `None` when its account does not exist or could not hold the amount.
    Refunded(Option<Credits>),
    /// The answer to a settlement, whether or not its key was still remembered.
    Settled,
    /// The store cannot hold this posting, for the reason given. Nothing of it happened; the rest of its batch is not
    /// affected.
    Failed(String),
}

/// The remembered answer to a charge with a request id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// What was charged.
    pub charged: Credits,
    /// The balance after it.
    pub balance: Credits,
    /// How far its delivery has come, for an idempotency key.
    pub delivery: Option<Delivery>,
}

/// A remembered answer, and until when it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remembered {
    /// The answer.
    pub answer: Answer,
    /// [`RequestId::REMEMBERED`] after its charge.
    pub expires_at: Timestamp,
}

/// A batch being applied.
#[derive(Debug)]
pub struct Tally<K, L> {
    now: Timestamp,
    accounts: HashMap<K, Touched>,
    usage: HashMap<(K, Day, L, UsageKind), UsageDelta>,
    answers: BTreeMap<(K, RequestId), Remembered>,
}

#[derive(Debug)]
struct Touched {
    id: AccountId,
    state: MeterState,
    changed: bool,
}

#[derive(Debug)]
struct UsageDelta {
    calls: u64,
    amount: Credits,
    request_path: Option<Arc<str>>,
}

/// Whether usage was made or paid back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UsageKind {
    /// Accepted requests.
    Charged,
    /// Requests paid back.
    Refunded,
}

/// All that a batch changes, ordered by row key so that any two commits lock rows in the same order.
#[derive(Debug)]
pub struct Changes<K, L> {
    /// New states of the accounts that changed.
    pub accounts: Vec<(K, MeterState)>,
    /// Usage made and paid back; each is an entry of recent activity.
    pub usage: Vec<UsageChange<K, L>>,
    /// Answers to remember. One that has expired already is forgotten thereby.
    pub answers: Vec<(K, RequestId, Remembered)>,
}

/// A change of one daily total, usage and refunds netted: added to the stored total in one step, so that no step in
/// between can overflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DailyChange<K, L> {
    /// Whose.
    pub account: K,
    /// The UTC day.
    pub day: Day,
    /// Route, method and source.
    pub line: L,
    /// By how much its calls rise: refunded calls stay counted.
    pub calls: u64,
    /// By how much its credits rise: below zero when refunds prevail.
    pub credits: Credits,
}

impl<K, L> Changes<K, L> {
    /// Whether nothing is to be written: the batch was nothing but refusals.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.accounts.is_empty() && self.usage.is_empty() && self.answers.is_empty()
    }
}

impl<K: Copy + Eq, L: Clone + Eq> Changes<K, L> {
    /// The changes of daily totals, ordered by day, account and line.
    #[must_use]
    pub fn daily(&self) -> Vec<DailyChange<K, L>> {
        let mut daily: Vec<DailyChange<K, L>> = Vec::with_capacity(self.usage.len());
        for change in &self.usage {
            let UsageChange { account, day, line, .. } = change;
            let (calls, credits) = (change.added_calls(), change.added_credits());
            match daily.last_mut() {
                // Usage is sorted, so what belongs to one total is side by side; a sum of a positive and a negative
                // amount cannot overflow.
                Some(last) if (last.account, last.day, &last.line) == (*account, *day, line) => {
                    last.calls += calls;
                    last.credits = Credits::from_atoms(last.credits.atoms() + credits.atoms());
                }
                _ => daily.push(DailyChange { account: *account, day: *day, line: line.clone(), calls, credits }),
            }
        }
        daily
    }
}

/// Usage of one line that a batch made, or paid back.
#[derive(Debug, PartialEq, Eq)]
pub struct UsageChange<K, L> {
    /// Whose.
    pub account: K,
    /// The UTC day.
    pub day: Day,
    /// Route, method and source.
    pub line: L,
    /// Whether usage was made or paid back.
    pub kind: UsageKind,
    /// How many requests, zero or more.
    pub calls: u64,
    /// Their price, zero or more.
    pub amount: Credits,
    /// The path of the requests, when it was the same for all.
    pub request_path: Option<Arc<str>>,
}

impl<K, L> UsageChange<K, L> {
    /// By how much the day's count of calls rises: refunded calls stay counted.
    #[must_use]
    pub const fn added_calls(&self) -> u64 {
        match self.kind {
            UsageKind::Charged => self.calls,
            UsageKind::Refunded => 0,
        }
    }

    /// By how much the day's credits rise: negative for refunds.
    #[must_use]
    pub const fn added_credits(&self) -> Credits {
        match self.kind {
            UsageKind::Charged => self.amount,
            // Amounts are not negative, so negation cannot overflow.
            UsageKind::Refunded => Credits::from_atoms(-self.amount.atoms()),
        }
    }
}

impl<K, L> Tally<K, L>
where
    K: Copy + Ord + Hash,
    L: Clone + Ord + Hash,
{
    /// An empty batch, decided at `now`.
    #[must_use]
    pub fn new(now: Timestamp) -> Self {
        Self { now, accounts: HashMap::new(), usage: HashMap::new(), answers: BTreeMap::new() }
    }

    /// Whether the account was loaded already.
    #[must_use]
    pub fn is_loaded(&self, account: K) -> bool {
        self.accounts.contains_key(&account)
    }

    /// Takes in the stored state of an account, once per batch.
    pub fn load(&mut self, account: K, id: AccountId, state: MeterState) {
        self.accounts.entry(account).or_insert(Touched { id, state, changed: false });
    }

    /// Decides one charge of a loaded account whose key is live. `remembered` is the stored answer to its request id.
    ///
    /// # Panics
    /// When the account was not loaded.
    pub fn charge(&mut self, account: K, line: L, charge: Charge, remembered: Option<Remembered>) -> Decision {
        let earlier = charge.request_id.as_ref().and_then(|request| self.known(account, request, remembered));
        let touched = self.accounts.get_mut(&account).expect("accounts are loaded before they are charged");
        let Charge { price, line: of, request_path, request_id, delivery, .. } = charge;
        let mut receipt = Receipt {
            account: touched.id.clone(),
            charged: price,
            balance: touched.state.totals.balance,
            line: of,
            day: self.now.day(),
            request_path,
            rate: touched.state.rate_status(self.now),
            repeated: earlier.is_some(),
            delivery: None,
        };
        if let Some(Remembered { answer, expires_at }) = earlier {
            receipt.charged = answer.charged;
            let Some((request, terms)) = request_id.zip(delivery) else {
                receipt.balance = answer.balance;
                return Decision::Accepted(receipt);
            };
            // What is paid back for it is booked where the charge was.
            receipt.day = expires_at.saturating_sub(RequestId::REMEMBERED).day();
            return self.try_again(account, request, terms, Remembered { answer, expires_at }, receipt);
        }
        match charge::apply(&mut touched.state, price, self.now) {
            Ok(rate) => receipt.rate = rate,
            Err(refusal) => return Decision::Refused(refusal),
        }
        touched.changed = true;
        receipt.balance = touched.state.totals.balance;
        if let Some(request) = request_id {
            let delivery = delivery.map(|terms| Delivery::begun(terms, self.now));
            receipt.delivery = delivery.map(|begun| Try { request: request.clone(), number: begun.tries });
            let answer = Answer { charged: receipt.charged, balance: receipt.balance, delivery };
            let expires_at = self.now.saturating_add(RequestId::REMEMBERED);
            self.answers.insert((account, request), Remembered { answer, expires_at });
        }
        self.book((account, receipt.day, line, UsageKind::Charged), receipt.charged, &receipt.request_path);
        Decision::Accepted(receipt)
    }

    /// Lets a request with a known idempotency key be forwarded again, uncharged, if that is due.
    fn try_again(
        &mut self,
        account: K,
        request: RequestId,
        terms: DeliveryTerms,
        Remembered { answer, expires_at }: Remembered,
        mut receipt: Receipt,
    ) -> Decision {
        let Some(delivery) = answer.delivery else { return Decision::Accepted(receipt) };
        match delivery.again(terms, self.now) {
            Ok(next) => {
                receipt.delivery = Some(Try { request: request.clone(), number: next.tries });
                let answer = Answer { delivery: Some(next), ..answer };
                self.answers.insert((account, request), Remembered { answer, expires_at });
                Decision::Accepted(receipt)
            }
            Err(repetition) => Decision::Refused(Refusal::Repeated(repetition)),
        }
    }

    /// The answer to a request as this batch leaves it; before it, it was `stored`.
    fn known(&self, account: K, request: &RequestId, stored: Option<Remembered>) -> Option<Remembered> {
        let known = self.answers.get(&(account, request.clone())).copied().or(stored);
        known.filter(|known| self.now < known.expires_at)
    }

    /// Pays one charge of a loaded account back, and returns the balance after it. `remembered` is the stored answer to
    /// its idempotency key.
    ///
    /// # Panics
    /// When the account was not loaded.
    pub fn refund(&mut self, account: K, line: L, refund: &Refund, remembered: Option<Remembered>) -> Option<Credits> {
        let delivery = refund.delivery.as_ref();
        let known = delivery.and_then(|failed| self.known(account, &failed.request, remembered));
        let touched = self.accounts.get_mut(&account).expect("accounts are loaded before they are paid back");
        if let (Some(failed), Some(Remembered { answer: Answer { delivery: Some(last), .. }, .. })) = (delivery, known)
            && last.tries != failed.number
        {
            // A later try has taken the charge over, and it is that one's to pay back.
            return Some(touched.state.totals.balance);
        }
        if !charge::apply_refund(&mut touched.state, refund.amount) {
            return None;
        }
        touched.changed = true;
        let balance = touched.state.totals.balance;
        if let (Some(failed), Some(known)) = (delivery, known) {
            // A time that has passed for every clock.
            let forgotten = Remembered { expires_at: Timestamp::from_unix_millis(0), ..known };
            self.answers.insert((account, failed.request.clone()), forgotten);
        }
        if refund.amount.is_positive() {
            self.book((account, refund.day, line, UsageKind::Refunded), refund.amount, &refund.request_path);
        }
        Some(balance)
    }

    /// Uses an idempotency key up. `remembered` is the stored answer to it.
    pub fn settle(&mut self, account: K, settlement: &Settlement, remembered: Option<Remembered>) {
        let Some(Remembered { answer, expires_at }) = self.known(account, &settlement.request, remembered) else {
            return;
        };
        let answer = Answer { delivery: answer.delivery.map(Delivery::delivered), ..answer };
        self.answers.insert((account, settlement.request.clone()), Remembered { answer, expires_at });
    }

    fn book(&mut self, row: (K, Day, L, UsageKind), amount: Credits, request_path: &Arc<str>) {
        let delta = self.usage.entry(row).or_insert_with(|| UsageDelta {
            calls: 0,
            amount: Credits::ZERO,
            request_path: Some(Arc::clone(request_path)),
        });
        delta.calls += 1;
        delta.amount = delta.amount.checked_add(amount).expect("an account's total holds the sum, so a part does");
        if delta.request_path.as_ref().is_some_and(|path| path != request_path) {
            delta.request_path = None;
        }
    }

    /// What the batch changes.
    #[must_use]
    pub fn finish(self) -> Changes<K, L> {
        let changed = self.accounts.into_iter().filter(|(_, touched)| touched.changed);
        let mut accounts: Vec<_> = changed.map(|(account, touched)| (account, touched.state)).collect();
        accounts.sort_unstable_by_key(|(account, _)| *account);
        let change = |((account, day, line, kind), delta): (_, UsageDelta)| UsageChange {
            account,
            day,
            line,
            kind,
            calls: delta.calls,
            amount: delta.amount,
            request_path: delta.request_path,
        };
        let mut usage: Vec<UsageChange<K, L>> = self.usage.into_iter().map(change).collect();
        usage.sort_unstable_by(|a, b| (a.day, a.account, &a.line, a.kind).cmp(&(b.day, b.account, &b.line, b.kind)));
        let answers = self.answers.into_iter().map(|((account, id), answer)| (account, id, answer)).collect();
        Changes { accounts, usage, answers }
    }
}
