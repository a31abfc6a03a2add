//! The filters of operators for the long lists: the newest first, of some days, in some state.

use crate::access::account::{Account, AccountId, AgentName};
use crate::clock::{Day, Timestamp};
use crate::money::credits::Credits;
use crate::named_enum::named_enum;

named_enum! {
    /// The order of a list.
    pub enum ListOrder {
        /// In the order written.
        Oldest = "oldest",
        /// The newest first.
        Newest = "newest",
    }
}

named_enum! {
    /// Whether an account can be used.
    pub enum AccountState {
        /// It can.
        Active = "active",
        /// It was revoked.
        Revoked = "revoked",
    }
}

named_enum! {
    /// Whether a credited payment can still be undone by its chain:
    /// [`PaymentSettlement`](crate::payments::PaymentSettlement) without the time.
    pub enum PaymentState {
        /// It can be undone.
        Unsettled = "unsettled",
        /// It can no longer be undone.
        Final = "final",
        /// It was undone.
        Reversed = "reversed",
    }
}

/// A span of time, open at the ends that are `None`.
///
/// ```
/// use metering_core::operators::Period;
///
/// let day = "2026-11-25".parse()?;
/// let period = Period::of_days(Some(day), Some(day));
/// assert_eq!(period.from.map(|from| from.to_string()).as_deref(), Some("2026-11-25T00:00:00.000Z"));
/// assert_eq!(period.until.map(|until| until.to_string()).as_deref(), Some("2026-11-26T00:00:00.000Z"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Period {
    /// From this time on.
    pub from: Option<Timestamp>,
    /// Before this time.
    pub until: Option<Timestamp>,
}

impl Period {
    /// The UTC days from one to another, both included.
    #[must_use]
    pub fn of_days(first: Option<Day>, last: Option<Day>) -> Self {
        let after = |day: Day| Day::from_unix_days(day.unix_days().saturating_add(1)).start();
        Self { from: first.map(Day::start), until: last.map(after) }
    }

    /// Whether it has neither a start nor an end.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.from.is_none() && self.until.is_none()
    }
}

/// Which accounts to list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AccountFilter {
    /// Names that begin with this, in any case.
    pub name_prefix: Option<String>,
    /// Created in this period.
    pub created: Period,
    /// In this state.
    pub state: Option<AccountState>,
}

impl AccountFilter {
    /// Whether it matches every account.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.name_prefix.is_none() && self.created.is_open() && self.state.is_none()
    }
}

/// Which credited payments to list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PaymentFilter {
    /// Recorded in this period.
    pub recorded: Period,
    /// In this state.
    pub state: Option<PaymentState>,
    /// Of this account.
    pub account: Option<AccountId>,
    /// On the chain with this id (EIP-155). 0 for those that a processor took.
    pub chain_id: Option<u64>,
}

/// An account, its remaining credits, and its usage in some days.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountRunway {
    /// The account.
    pub account: AccountId,
    /// Its name.
    pub agent_name: AgentName,
    /// Its remaining credits.
    pub balance: Credits,
    /// Its usage in those days, minus refunds.
    pub used: Credits,
}

impl AccountRunway {
    /// The runway of an account that used `used` in some days. `None` unless its balance is used up, at this pace,
    /// within as many days again; also `None` if nothing is left, or the account is revoked.
    #[must_use]
    pub fn of(account: &Account, used: Credits) -> Option<Self> {
        let balance = account.totals.balance;
        let runs_out = account.revoked_at.is_none() && balance.is_positive() && balance <= used;
        let (id, agent_name) = (account.id.clone(), account.agent_name.clone());
        runs_out.then_some(Self { account: id, agent_name, balance, used })
    }

    /// How many whole days the balance lasts. `days` is how many days `used` covers.
    #[must_use]
    pub fn days_left(&self, days: u32) -> u32 {
        let (balance, used) = (i128::from(self.balance.atoms()), i128::from(self.used.atoms()));
        balance.saturating_mul(days.into()).checked_div(used).and_then(|left| left.try_into().ok()).unwrap_or(0)
    }

    /// Orders by how soon it runs out.
    #[must_use]
    pub fn soonest_first(&self, other: &Self) -> std::cmp::Ordering {
        let share = |one: &Self, by: &Self| i128::from(one.balance.atoms()) * i128::from(by.used.atoms());
        share(self, other).cmp(&share(other, self))
    }

    /// Orders by how soon it runs out; those that do at the same time, by their ids.
    #[must_use]
    pub fn cmp_by_end(&self, other: &Self) -> std::cmp::Ordering {
        self.soonest_first(other).then_with(|| self.account.cmp(&other.account))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn account_runs_out_if_it_has_no_more_than_it_used() {
        let credits = Credits::from_atoms;
        let account = |balance, revoked_at| {
            let id = "org_x0000000000000000001".parse().unwrap();
            let mut account = Account::new(id, "agent".parse().unwrap(), Timestamp::from_unix_millis(0));
            account.totals.balance = credits(balance);
            account.revoked_at = revoked_at;
            account
        };
        let now = Some(Timestamp::from_unix_millis(1));
        // balance, used in 7 days, revoked, days left
        let table = [
            (70, 70, None, Some(7)),
            (71, 70, None, None),
            (9, 70, None, Some(0)),
            (10, 70, None, Some(1)),
            (0, 70, None, None),
            (-1, 70, None, None),
            (1, 0, None, None),
            (10, 70, now, None),
        ];
        for (balance, used, revoked_at, expected) in table {
            let runway = AccountRunway::of(&account(balance, revoked_at), credits(used));
            assert_eq!(runway.map(|runway| runway.days_left(7)), expected, "{balance} {used}");
        }
        let [soon, late] = [(1, 10), (2, 10)]
            .map(|(balance, used)| AccountRunway::of(&account(balance, None), credits(used)).expect("it runs out"));
        assert_eq!(soon.soonest_first(&late), std::cmp::Ordering::Less);
    }
}
