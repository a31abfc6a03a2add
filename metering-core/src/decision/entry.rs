//! Writes ledger entries of existing accounts.

use super::{Decided, active};
use crate::access::account::{Account, Totals};
use crate::clock::Timestamp;
use crate::events::event::NewEvent;
use crate::events::event_data::EventData;
use crate::money::alert::{AlertLevel, BalanceAlert};
use crate::money::ledger::NewLedgerEntry;
use crate::store::Posted;

/// A ledger entry to write, and the account's new totals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryChanges<K> {
    /// The account's row.
    pub row: K,
    /// The account after the entry. Only its totals and its alert level change.
    pub account: Account,
    /// The entry.
    pub entry: NewLedgerEntry,
    /// The time of the entry.
    pub written_at: Timestamp,
    /// The events to write.
    pub events: Vec<NewEvent>,
}

impl<K> EntryChanges<K> {
    /// `None` when the balance or a total could not hold the amount.
    pub(super) fn of((row, account): (K, Account), entry: NewLedgerEntry, now: Timestamp) -> Option<Self> {
        let totals = entry.applied_to(account.totals)?;
        let (alert, reported) = alert_after(account.alert, &entry, totals);
        let data = EventData::of_entry(&entry, totals.balance).into_iter().chain(reported);
        let id = &account.id;
        let events = data.map(|data| NewEvent { account: Some(id.clone()), data, created_at: now }).collect();
        Some(Self { row, account: Account { totals, alert, ..account }, entry, written_at: now, events })
    }
}

/// The alert after an entry, and the events to write. Added credits lower its level; taken ones can raise it.
fn alert_after(alert: BalanceAlert, entry: &NewLedgerEntry, totals: Totals) -> (BalanceAlert, Vec<EventData>) {
    let BalanceAlert { threshold, mut raised } = alert;
    let unspent = totals.unspent();
    let reported = if entry.amount.is_negative() {
        raised.raise(AlertLevel::of(unspent, threshold), threshold)
    } else {
        raised.lower(unspent, threshold);
        Vec::new()
    };
    let event = |level| EventData::of_balance(level, totals.balance, threshold, None);
    (BalanceAlert { threshold, raised }, reported.into_iter().filter_map(event).collect())
}

/// Decides [`Store::post_entry`](crate::Store::post_entry).
///
/// Refused, in this order: [`Posted::NoSuchAccount`], also for a revoked one; [`Posted::OutOfRange`].
pub fn post_entry<K>(
    account: Option<(K, Account)>,
    entry: NewLedgerEntry,
    now: Timestamp,
) -> Decided<EntryChanges<K>, Posted> {
    let Some(found) = active(account) else { return Decided::Refused(Posted::NoSuchAccount) };
    EntryChanges::of(found, entry, now).map_or(Decided::Refused(Posted::OutOfRange), Decided::Accepted)
}

#[cfg(test)]
mod tests {
    use super::super::scene::{NOW, account, entry, purchase, revoked};
    use super::*;
    use crate::events::event_data::EventKind;
    use crate::money::credits::Credits;
    use crate::money::ledger::LedgerKind;

    #[test]
    fn the_first_reason_refuses() {
        // account, amount of the entry, refusal
        let table = [
            (None, i64::MAX, Posted::NoSuchAccount),
            (Some((1, revoked())), i64::MAX, Posted::NoSuchAccount),
            (Some((1, revoked())), 1, Posted::NoSuchAccount),
            (Some((1, account())), i64::MAX, Posted::OutOfRange),
        ];
        for (account, amount, refusal) in table {
            assert_eq!(post_entry(account, entry(amount), NOW), Decided::Refused(refusal));
        }
    }

    #[test]
    fn added_credits_lower_an_alert_and_taken_ones_raise_it() {
        use AlertLevel::{Exhausted, Low, None as Enough};
        let balance = account().totals.balance.atoms();
        // threshold above the balance before, raised before, amount, raised after, kinds reported
        let table: [(i64, AlertLevel, i64, AlertLevel, &[EventKind]); 7] = [
            (5, Low, 4, Low, &[]),
            (5, Low, 5, Enough, &[]),
            (5, Exhausted, 4, Low, &[]),
            (5, Enough, 4, Enough, &[]),
            (5, Enough, -1, Low, &[EventKind::BalanceLow]),
            (5, Low, -1, Low, &[]),
            (0, Enough, -balance, Exhausted, &[EventKind::BalanceLow, EventKind::BalanceExhausted]),
        ];
        for (above, raised, amount, after, reported) in table {
            let threshold = Some(Credits::from_atoms(balance + above));
            let before = Account { alert: BalanceAlert { threshold, raised }, ..account() };
            let Decided::Accepted(changes) = post_entry(Some((1, before)), entry(amount), NOW) else {
                panic!("{amount}")
            };
            assert_eq!(changes.account.alert, BalanceAlert { threshold, raised: after }, "{above} {amount}");
            let kinds: Vec<_> = changes.events.iter().map(|event| event.data.kind()).collect();
            assert_eq!(kinds, reported, "{above} {amount}");
        }
    }

    #[test]
    fn a_payment_is_told_and_so_is_its_reversal() {
        let of = |kind, amount| NewLedgerEntry { kind, ..purchase(amount) };
        // entry, kind reported
        let table = [
            (purchase(5), Some(EventKind::PaymentCredited)),
            (of(LedgerKind::Adjustment, 5), Some(EventKind::PaymentCredited)),
            (of(LedgerKind::PaymentRestored, 5), Some(EventKind::PaymentCredited)),
            (of(LedgerKind::PaymentReversed, -5), Some(EventKind::PaymentReversed)),
            (entry(5), None),
            (entry(-1), None),
        ];
        for (entry, reported) in table {
            let Decided::Accepted(changes) = post_entry(Some((1, account())), entry.clone(), NOW) else {
                panic!("{entry:?}")
            };
            assert_eq!(changes.events.first().map(|event| event.data.kind()), reported, "{entry:?}");
            let amount = format!("\"credits\":{},", Credits::from_atoms(5));
            let mut of_payment = changes.events.iter().filter(|event| Some(event.data.kind()) == reported);
            assert!(of_payment.all(|event| event.json().contains(&amount)), "{entry:?}");
        }
    }

    #[test]
    fn an_entry_changes_only_the_totals() {
        let before = account();
        let Decided::Accepted(changes) = post_entry(Some((7, before.clone())), entry(5), NOW) else {
            panic!("nothing refuses it")
        };
        assert_eq!(changes.account.totals, entry(5).applied_to(before.totals).unwrap());
        assert_eq!(Account { totals: before.totals, ..changes.account }, before);
        assert_eq!((changes.row, changes.entry, changes.written_at), (7, entry(5), NOW));
    }
}
