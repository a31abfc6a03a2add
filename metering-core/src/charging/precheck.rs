//! Which requests would be refused whatever their body: the part of the charge rule that needs no commit.
//!
//! It reads the rows that the charge reads, changes nothing, and never refuses a charge that would be accepted.
//! Budgets, requests in flight and idempotency keys are left to the charge.

use crate::access::issued_key::KeyHolder;
use crate::access::key_use::{KeyRefusal, KeyUse};
use crate::charging::charge::MeterState;
use crate::charging::rate::{RateStatus, RateWindows};
use crate::charging::refusal::Refusal;
use crate::charging::rule::{self, Debit};

/// Checks a request of this key. `taking` is the amount it takes from the balance; `None` if it may take nothing,
/// because it may be a repetition or be refused for another reason: then only the key is checked.
///
/// # Errors
/// Why the charge would be refused.
pub(crate) fn check(holder: &KeyHolder, used_for: &KeyUse<'_>, taking: Option<Debit>) -> Result<(), Refusal> {
    holder.check_use(used_for).map_err(|refusal| match refusal {
        KeyRefusal::NotLive => Refusal::UnknownKey,
        refusal => Refusal::Key(refusal),
    })?;
    let Some(taking) = taking else { return Ok(()) };
    let (account, RateWindows { minute, day }) = (&holder.account, holder.windows);
    let (totals, limits, alert) = (account.totals, account.limits, account.alert);
    let mut state = MeterState { totals, limits, alert, minute, day };
    match rule::apply(&mut state, taking, used_for.at) {
        // Only a charge sends an alert's event, so the charge must refuse.
        Err(Refusal::InsufficientCredits { required, .. }) if alert.is_raised_by(totals.unspent(), required) => {
            return Ok(());
        }
        applied => drop(applied?),
    }
    for (key, RateWindows { minute, day }) in holder.chain.iter().zip(&holder.key_windows) {
        let rate = RateStatus::of(key.terms.limits, *minute, *day, used_for.at);
        if let Some(window) = rate.reached() {
            return Err(Refusal::RateLimited { window, rate });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RateLimits;
    use crate::access::account::{Account, AccountId, Totals};
    use crate::access::issued_key::Key;
    use crate::access::key::KeyHash;
    use crate::access::scope::Scope;
    use crate::charging::rate::Window;
    use crate::clock::Timestamp;
    use crate::money::alert::{AlertLevel, BalanceAlert};
    use crate::money::credits::Credits;

    const NOW: Timestamp = Timestamp::from_unix_millis(1_795_262_400_000);

    /// An account with this balance whose alert was raised, with this many requests in this minute, of two allowed.
    fn holder(balance: i64, raised: AlertLevel, requests: u32, key_requests: u32) -> KeyHolder {
        let id: AccountId = "org_0123456789abcdef0123".parse().unwrap();
        let limits = RateLimits::per_minute(2);
        let account = Account {
            limits,
            totals: Totals { balance: Credits::from_atoms(balance), ..Totals::default() },
            alert: BalanceAlert { threshold: None, raised },
            ..Account::new(id.clone(), "agent".parse().unwrap(), NOW)
        };
        let mut key = Key::first(id, &KeyHash::from_bytes([1; 32]), NOW);
        key.terms.limits = limits;
        key.terms.routes = "GET /a".parse().unwrap();
        let windows = |count| {
            let day = Window { index: NOW.day().unix_days(), count };
            RateWindows { minute: Window { index: NOW.minute(), count }, day }
        };
        let (windows, key_windows) = (windows(requests), vec![windows(key_requests)]);
        KeyHolder { account, chain: vec![key], secret_expires_at: None, windows, key_windows }
    }

    #[test]
    fn what_the_charge_would_refuse_is_refused_and_nothing_else() {
        let atoms = Credits::from_atoms;
        let (charge, hold) = (Some(Debit::Charge(atoms(5))), Some(Debit::Hold(atoms(5))));
        let (quiet, raised) = (AlertLevel::None, AlertLevel::Exhausted);
        // holder, route, amount, refusal
        let table = [
            (holder(1, quiet, 0, 0), "/a", charge, None),
            (holder(1, quiet, 0, 0), "/b", charge, Some("key")),
            (holder(0, raised, 2, 0), "/b", charge, Some("key")),
            (holder(0, raised, 2, 0), "/a", charge, Some("rate")),
            (holder(0, raised, 1, 2), "/a", charge, Some("credits")),
            (holder(0, quiet, 0, 0), "/a", charge, None),
            (holder(0, raised, 2, 2), "/a", None, None),
            (holder(0, raised, 0, 0), "/a", Some(Debit::Nothing), None),
            (holder(4, raised, 0, 0), "/a", hold, Some("credits")),
            (holder(5, raised, 0, 0), "/a", hold, None),
            (holder(1, quiet, 0, 2), "/a", charge, Some("rate")),
        ];
        for (number, (holder, template, taking, refused)) in table.into_iter().enumerate() {
            let (scope, route) = (Some(Scope::Call), Some(("GET", template)));
            let used_for = KeyUse { scope, route, address: None, at: NOW };
            let why = match check(&holder, &used_for, taking) {
                Ok(()) => None,
                Err(Refusal::Key(KeyRefusal::Route)) => Some("key"),
                Err(Refusal::RateLimited { .. }) => Some("rate"),
                Err(Refusal::InsufficientCredits { .. }) => Some("credits"),
                Err(other) => panic!("{other:?}"),
            };
            assert_eq!(why, refused, "row {number}");
        }
    }
}
