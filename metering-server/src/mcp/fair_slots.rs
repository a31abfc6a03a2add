//! FairSlots sessions and calls fairly between accounts, so that a few accounts cannot lock out the others.
//!
//! Sessions are long-lived, so at the limit a new session takes one from the account with the most. Calls have been
//! charged and end soon, so none is cut; instead, the more calls are in progress, the fewer an account may have.

use std::collections::HashMap;
use std::sync::Arc;

/// One in this many call slots is reserved for accounts without a call in progress. Otherwise accounts that each take
/// half of the remaining slots would soon leave none.
const NEW_ACCOUNT_RESERVE: usize = 4;

/// An account's id.
pub(super) type AccountKey = Arc<str>;

/// The limits of sessions, or of calls.
#[derive(Debug, Clone, Copy)]
pub(super) struct FairSlots {
    pub(super) max: usize,
    pub(super) max_per_account: usize,
    pub(super) max_without_credit: usize,
}

/// How many sessions or calls an account has, and whether it has credit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Holding {
    pub(super) count: usize,
    pub(super) has_credit: bool,
}

/// Why an account is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// The account is at its limit.
    Account,
    /// The server is at its limit, or only has slots for other accounts.
    Server,
}

impl FairSlots {
    /// Whether an account with this holding may open one more session. `Some` names the account that must give one up
    /// for it.
    pub(super) fn session(
        &self,
        own: Holding,
        total: usize,
        holdings: &HashMap<AccountKey, Holding>,
    ) -> Result<Option<AccountKey>, Refused> {
        if own.count >= self.limit(own) {
            return Err(Refused::Account);
        }
        if total < self.max {
            return Ok(None);
        }
        let heaviest = holdings.iter().max_by_key(|(account, holding)| (weight(**holding), Arc::clone(account)));
        match heaviest {
            Some((account, holding)) if weight(*holding) > weight(Holding { count: own.count + 1, ..own }) => {
                Ok(Some(Arc::clone(account)))
            }
            _ => Err(Refused::Server),
        }
    }

    /// Whether an account with this holding may start one more call.
    pub(super) fn call(&self, own: Holding, total: usize) -> Result<(), Refused> {
        if own.count >= self.limit(own) {
            return Err(Refused::Account);
        }
        let free = self.max.saturating_sub(total);
        let reserved = if own.count == 0 { 0 } else { self.max / NEW_ACCOUNT_RESERVE };
        if own.count >= free || free <= reserved {
            return Err(Refused::Server);
        }
        Ok(())
    }

    fn limit(&self, own: Holding) -> usize {
        if own.has_credit { self.max_per_account } else { self.max_without_credit.min(self.max_per_account) }
    }
}

/// Accounts without credit give up sessions first, then those with the most.
fn weight(holding: Holding) -> (bool, usize) {
    (!holding.has_credit, holding.count)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHARES: FairSlots = FairSlots { max: 12, max_per_account: 5, max_without_credit: 2 };

    fn with(count: usize) -> Holding {
        Holding { count, has_credit: true }
    }

    fn without(count: usize) -> Holding {
        Holding { count, has_credit: false }
    }

    fn holdings(list: &[(&str, Holding)]) -> HashMap<AccountKey, Holding> {
        list.iter().map(|(account, holding)| (Arc::from(*account), *holding)).collect()
    }

    #[test]
    fn session_is_taken_from_accounts_without_credit_then_the_heaviest() {
        let others = holdings(&[("a", with(5)), ("b", with(4)), ("c", without(2)), ("d", without(1))]);
        let rich = holdings(&[("a", with(5)), ("b", with(4)), ("c", with(3))]);
        let even = holdings(&[("a", with(4)), ("b", with(4)), ("c", with(4))]);
        // own, total, others, verdict
        let table = [
            (with(0), 11, &others, Ok(None)),
            (with(5), 0, &others, Err(Refused::Account)),
            (without(2), 0, &others, Err(Refused::Account)),
            (with(0), 12, &others, Ok(Some("c"))),
            (with(4), 12, &others, Ok(Some("c"))),
            (without(0), 12, &others, Ok(Some("c"))),
            (without(1), 12, &others, Err(Refused::Server)),
            (with(0), 12, &rich, Ok(Some("a"))),
            (with(3), 12, &rich, Ok(Some("a"))),
            (with(4), 12, &rich, Err(Refused::Server)),
            (without(0), 12, &rich, Err(Refused::Server)),
            (with(2), 12, &even, Ok(Some("c"))),
            (with(3), 12, &even, Err(Refused::Server)),
        ];
        for (own, total, others, expected) in table {
            let verdict = SHARES.session(own, total, others);
            let verdict = verdict.as_ref().map(Option::as_deref).map_err(|refused| *refused);
            assert_eq!(verdict, expected, "{own:?} {total}");
        }
    }

    #[test]
    fn a_few_accounts_never_take_all_calls() {
        let shares = FairSlots { max: 1_000, max_per_account: 1_000, max_without_credit: 4 };
        for accounts in [1, 2, 32, 100] {
            let mut counts = vec![0; accounts];
            let mut total = 0;
            while let Some(count) = counts.iter_mut().find(|count| shares.call(with(**count), total).is_ok()) {
                *count += 1;
                total += 1;
            }
            assert!(shares.call(with(0), total).is_ok(), "{accounts} accounts took all {total}");
        }
        assert_eq!(shares.call(without(4), 0), Err(Refused::Account));
        assert_eq!(shares.call(with(0), 1_000), Err(Refused::Server));
    }
}
