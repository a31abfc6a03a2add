//! Child accounts: created, filled, emptied and closed by their parent.
//!
//! Moved credits are granted to one account and taken from the other. Purchases, and their reversals, stay with the
//! account that bought. A parent takes back at most the credits that it gave. Otherwise it could take credits that the
//! child bought, and only the child would owe them when their payment is reversed.

use super::entry::EntryChanges;
use super::{Decided, active};
use crate::access::account::Account;
use crate::clock::Timestamp;
use crate::money::credits::Credits;
use crate::money::ledger::{LedgerKind, NewLedgerEntry};
use crate::store::{ChildClosed, ChildCreated, CreditMove, CreditsMoved};

/// The rows read before a child is created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewChildFacts {
    /// The parent, revoked or not.
    pub parent: Option<Account>,
    /// Whether it is a child itself.
    pub is_child: bool,
    /// Whether any account has or had the child's key.
    pub key_in_use: bool,
    /// How many children it has that are not closed.
    pub children: u64,
}

/// Decides whether [`ChildAccountStore::create_child`](crate::store::ChildAccountStore::create_child) creates an account,
/// as [`create_account`](super::create_account) then does.
///
/// Refused, in this order: [`ChildCreated::NoSuchParent`], [`ChildCreated::IsChild`], [`ChildCreated::KeyUsed`],
/// [`ChildCreated::TooMany`].
pub fn create_child(facts: &NewChildFacts, most: u32) -> Decided<(), ChildCreated> {
    if facts.parent.as_ref().is_none_or(|parent| parent.revoked_at.is_some()) {
        return Decided::Refused(ChildCreated::NoSuchParent);
    }
    if facts.is_child {
        return Decided::Refused(ChildCreated::IsChild);
    }
    if facts.key_in_use {
        return Decided::Refused(ChildCreated::KeyUsed);
    }
    if facts.children >= u64::from(most) {
        return Decided::Refused(ChildCreated::TooMany);
    }
    Decided::Accepted(())
}

/// The rows read before credits are moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MoveFacts<K> {
    /// The parent, revoked or not, and its row.
    pub parent: Option<(K, Account)>,
    /// The account that should be its child, revoked or not, and its row. `None` if it is not a child of the parent.
    pub child: Option<(K, Account)>,
    /// The credits that the parent gave to the child, minus those it took back. 0 if it is not a child of the parent.
    pub given: Credits,
    /// The credits that the same request of the parent moved before.
    pub before: Option<CreditMove>,
}

/// The entries to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MoveChanges<K> {
    /// The parent's entry.
    pub parent: EntryChanges<K>,
    /// The child's entry.
    pub child: EntryChanges<K>,
}

impl<K: Clone> MoveChanges<K> {
    /// The outcome, once the entries are written.
    #[must_use]
    pub fn outcome(&self) -> CreditsMoved {
        let (parent, child) = (Box::new(self.parent.account.clone()), Box::new(self.child.account.clone()));
        CreditsMoved::Moved { parent, child }
    }
}

/// Decides [`ChildAccountStore::move_credits`](crate::store::ChildAccountStore::move_credits).
///
/// Refused, in this order: [`CreditsMoved::NoSuchChild`]; [`CreditsMoved::OtherRequest`]; [`CreditsMoved::Moved`] when the
/// same request moved them before; [`CreditsMoved::NotEnough`]; [`CreditsMoved::NotGiven`]; [`CreditsMoved::OutOfRange`].
pub fn move_credits<K>(facts: MoveFacts<K>, wanted: &CreditMove) -> Decided<MoveChanges<K>, CreditsMoved> {
    let (Some(parent), Some(child)) = (active(facts.parent), active(facts.child)) else {
        return Decided::Refused(CreditsMoved::NoSuchChild);
    };
    if let Some(before) = facts.before {
        let is_same = (&before.child, before.amount) == (&wanted.child, wanted.amount);
        return Decided::Refused(if is_same {
            CreditsMoved::Moved { parent: Box::new(parent.1), child: Box::new(child.1) }
        } else {
            CreditsMoved::OtherRequest
        });
    }
    let Some(given) = Credits::ZERO.checked_sub(wanted.amount) else {
        return Decided::Refused(CreditsMoved::OutOfRange);
    };
    let (giver, amount) = if wanted.amount.is_negative() { (&child.1, given) } else { (&parent.1, wanted.amount) };
    if giver.totals.balance < amount {
        return Decided::Refused(CreditsMoved::NotEnough(giver.totals.balance));
    }
    let takeable = facts.given.max(Credits::ZERO);
    if wanted.amount.is_negative() && takeable < amount {
        return Decided::Refused(CreditsMoved::NotGiven(takeable));
    }
    match moved(parent, child, wanted.amount, wanted.at) {
        Some(changes) => Decided::Accepted(changes),
        None => Decided::Refused(CreditsMoved::OutOfRange),
    }
}

/// The entries that give `amount` to the child.
fn moved<K>(parent: (K, Account), child: (K, Account), amount: Credits, at: Timestamp) -> Option<MoveChanges<K>> {
    let given = Credits::ZERO.checked_sub(amount)?;
    let (here, there) = if amount.is_negative() {
        (format!("From account {}", child.1.id), "Back to the parent account")
    } else {
        (format!("To account {}", child.1.id), "From the parent account")
    };
    let entry = |amount: Credits, words: String| {
        let kind = if amount.is_negative() { LedgerKind::TransferOut } else { LedgerKind::TransferIn };
        NewLedgerEntry::new(kind, amount, words)
    };
    let parent = EntryChanges::of(parent, entry(given, here), at)?;
    let child = EntryChanges::of(child, entry(amount, there.to_owned()), at)?;
    Some(MoveChanges { parent, child })
}

/// Decides [`ChildAccountStore::close_child`](crate::store::ChildAccountStore::close_child), and returns the entries to
/// write, if the child has credits. It is then revoked. `is_paying` says whether a payment of the child is in progress:
/// after the close, it could not be credited, or not be spent.
///
/// Refused, in this order: [`ChildClosed::NoSuchChild`]; [`ChildClosed::InProgress`]; [`ChildClosed::Paying`];
/// [`ChildClosed::Owes`]; [`ChildClosed::HasOwn`]; [`ChildClosed::OutOfRange`].
pub fn close_child<K>(
    facts: MoveFacts<K>,
    is_paying: bool,
    now: Timestamp,
) -> Decided<Option<MoveChanges<K>>, ChildClosed> {
    let (Some(parent), Some(child)) = (active(facts.parent), active(facts.child)) else {
        return Decided::Refused(ChildClosed::NoSuchChild);
    };
    let totals = child.1.totals;
    if totals.held.is_positive() {
        return Decided::Refused(ChildClosed::InProgress(totals.held));
    }
    if is_paying {
        return Decided::Refused(ChildClosed::Paying);
    }
    if totals.balance.is_negative() {
        return Decided::Refused(ChildClosed::Owes(totals.balance));
    }
    let own = totals.balance.checked_sub(facts.given.max(Credits::ZERO)).unwrap_or(Credits::ZERO);
    if own.is_positive() {
        return Decided::Refused(ChildClosed::HasOwn(own));
    }
    if totals.balance == Credits::ZERO {
        return Decided::Accepted(None);
    }
    let changes = Credits::ZERO.checked_sub(totals.balance).and_then(|given| moved(parent, child, given, now));
    changes.map_or(Decided::Refused(ChildClosed::OutOfRange), |changes| Decided::Accepted(Some(changes)))
}

#[cfg(test)]
mod tests {
    use super::super::scene::{NOW, account, revoked};
    use super::*;
    use crate::access::account::{AccountId, Totals};

    const fn atoms(atoms: i64) -> Credits {
        Credits::from_atoms(atoms)
    }

    fn child_id() -> AccountId {
        "org_yyyyyyyyyyyyyyyyyyyy".parse().unwrap()
    }

    /// A child with this balance, all of it given by its parent.
    fn child(balance: i64) -> Account {
        let totals = Totals { balance: atoms(balance), granted: atoms(balance), ..Totals::default() };
        Account { id: child_id(), totals, ..account() }
    }

    fn wanted(amount: i64) -> CreditMove {
        let (parent, child, amount) = (account().id, child_id(), atoms(amount));
        CreditMove { parent, request: [1; 32], child, amount, at: NOW }
    }

    /// The parent has a balance of two atoms.
    fn facts(child: Account, before: Option<CreditMove>) -> MoveFacts<i64> {
        let given = child.totals.granted;
        MoveFacts { parent: Some((1, account())), child: Some((2, child)), given, before }
    }

    /// A child with a balance of five atoms, of which its parent gave this many net.
    fn given(given: i64) -> MoveFacts<i64> {
        MoveFacts { given: atoms(given), ..facts(child(5), None) }
    }

    #[test]
    fn the_first_reason_refuses() {
        let nobody = MoveFacts { child: None, ..facts(child(0), None) };
        let closed = facts(Account { revoked_at: Some(NOW), ..child(0) }, None);
        let gone = MoveFacts { parent: Some((1, revoked())), ..facts(child(0), None) };
        // facts, amount, refusal
        let table = [
            (nobody, 1, CreditsMoved::NoSuchChild),
            (closed, 1, CreditsMoved::NoSuchChild),
            (gone, 1, CreditsMoved::NoSuchChild),
            (facts(child(0), Some(wanted(2))), 1, CreditsMoved::OtherRequest),
            (facts(child(0), None), 3, CreditsMoved::NotEnough(atoms(2))),
            (facts(child(5), None), -6, CreditsMoved::NotEnough(atoms(5))),
            (facts(child(-1), None), -1, CreditsMoved::NotEnough(atoms(-1))),
            (given(3), -6, CreditsMoved::NotEnough(atoms(5))),
            (given(3), -4, CreditsMoved::NotGiven(atoms(3))),
            (given(-3), -1, CreditsMoved::NotGiven(atoms(0))),
            (facts(child(i64::MAX), None), 1, CreditsMoved::OutOfRange),
        ];
        for (facts, amount, refusal) in table {
            assert_eq!(move_credits(facts, &wanted(amount)), Decided::Refused(refusal), "{amount}");
        }
        assert!(matches!(move_credits(given(3), &wanted(-3)), Decided::Accepted(_)), "given credits can be taken back");
        assert!(matches!(move_credits(given(0), &wanted(1)), Decided::Accepted(_)), "a child can always be given more");
        let again = move_credits(facts(child(0), Some(wanted(2))), &wanted(2));
        let (parent, child) = (Box::new(account()), Box::new(child(0)));
        assert_eq!(again, Decided::Refused(CreditsMoved::Moved { parent, child }), "whatever the balances are by now");
    }

    #[test]
    fn what_one_gives_the_other_gets() {
        for amount in [2, 1, -1, -5] {
            let Decided::Accepted(changes) = move_credits(facts(child(5), None), &wanted(amount)) else {
                panic!("{amount}")
            };
            let [parent, child] = [&changes.parent, &changes.child];
            assert_eq!((parent.entry.amount, child.entry.amount), (atoms(-amount), atoms(amount)));
            assert_eq!(parent.account.totals.balance, atoms(2 - amount));
            assert_eq!(child.account.totals.balance, atoms(5 + amount));
            assert_eq!(parent.account.totals.purchased, account().totals.purchased, "its purchases do not change");
            assert_eq!(child.account.totals.purchased, Credits::ZERO);
            let kinds = [LedgerKind::TransferOut, LedgerKind::TransferIn];
            let shown =
                if amount > 0 { [parent.entry.kind, child.entry.kind] } else { [child.entry.kind, parent.entry.kind] };
            assert_eq!(shown, kinds);
            assert!(!child.entry.description.contains("org_"), "a child does not learn whose it is");
        }
    }

    #[test]
    fn a_child_is_closed_when_nothing_is_open() {
        let held = |balance| {
            let account = child(balance);
            Account { totals: Totals { held: atoms(1), ..account.totals }, ..account }
        };
        // facts, whether the child is paying, refusal, or the move
        let table = [
            (facts(held(5), None), true, Err(ChildClosed::InProgress(atoms(1)))),
            (facts(child(5), None), true, Err(ChildClosed::Paying)),
            (facts(child(-1), None), false, Err(ChildClosed::Owes(atoms(-1)))),
            (given(3), false, Err(ChildClosed::HasOwn(atoms(2)))),
            (given(-3), false, Err(ChildClosed::HasOwn(atoms(5)))),
            (facts(child(0), None), false, Ok(0)),
            (given(7), false, Ok(-5)),
            (facts(child(5), None), false, Ok(-5)),
        ];
        for (facts, is_paying, expected) in table {
            match (close_child(facts, is_paying, NOW), expected) {
                (Decided::Refused(refusal), Err(expected)) => assert_eq!(refusal, expected),
                (Decided::Accepted(changes), Ok(amount)) => {
                    assert_eq!(changes.map_or(atoms(0), |changes| changes.child.entry.amount), atoms(amount));
                }
                (decided, expected) => panic!("{decided:?} {expected:?}"),
            }
        }
    }

    #[test]
    fn a_child_has_no_children_and_a_parent_not_too_many() {
        let facts = |parent, is_child, key_in_use, children| NewChildFacts { parent, is_child, key_in_use, children };
        let table = [
            (facts(None, true, true, 9), Some(ChildCreated::NoSuchParent)),
            (facts(Some(revoked()), true, true, 9), Some(ChildCreated::NoSuchParent)),
            (facts(Some(account()), true, true, 9), Some(ChildCreated::IsChild)),
            (facts(Some(account()), false, true, 9), Some(ChildCreated::KeyUsed)),
            (facts(Some(account()), false, false, 3), Some(ChildCreated::TooMany)),
            (facts(Some(account()), false, false, 2), None),
        ];
        for (facts, refusal) in table {
            assert_eq!(create_child(&facts, 3), refusal.map_or(Decided::Accepted(()), Decided::Refused));
        }
    }
}
