//! Contracts for child accounts: whose they are, credits that move, and what all of them used.

use std::sync::Arc;

use metering_core::access::AccountId;
use metering_core::money::LedgerKind;
use metering_core::store::{
    AuthorizationOpened, ChildClosed, ChildCreated, CreditMove, CreditsMoved, Cursor, NewAccount, TopUpEnd,
};
use metering_core::{Account, FullStore};
use tokio::task::JoinSet;

use super::authorization_scene;
use super::auto_top_ups::{begin, turn_on};
use super::event_scene::LEASE;
use super::scene::{
    ALWAYS, BASE, Customer, NOON, Verified, atoms, charge, commit, customer, entry, new_account, new_id, post, racing,
};

const TASKS: u8 = 16;
const MOST: u32 = 100;

/// Creates a child and expects success.
async fn child(store: &dyn FullStore, parent: &Customer) -> Customer {
    let new = new_account();
    let child = Customer { id: new.id.clone(), key: new.key };
    let created = store.create_child(&parent.id, new, MOST).await.unwrap();
    assert!(matches!(created, ChildCreated::Account(_)), "{created:?}");
    child
}

fn wanted(parent: &Customer, child: &Customer, request: u8, amount: i64) -> CreditMove {
    let (parent, child) = (parent.id.clone(), child.id.clone());
    CreditMove { parent, request: [request; 32], child, amount: atoms(amount), at: NOON }
}

fn balances(moved: &CreditsMoved) -> Option<[i64; 2]> {
    match moved {
        CreditsMoved::Moved { parent, child } => Some([parent, child].map(|account| account.totals.balance.atoms())),
        _ => None,
    }
}

async fn balance(store: &dyn FullStore, id: &AccountId) -> i64 {
    store.account(id).await.unwrap().unwrap().totals.balance.atoms()
}

/// In the order of creation, without those of other accounts. A child has no children, and a parent no more than it may
/// have.
pub async fn children_are_those_of_their_parent(store: Arc<dyn FullStore>) {
    let (parent, other) = (customer(&*store, 10).await, customer(&*store, 10).await);
    let (one, two) = (child(&*store, &parent).await, child(&*store, &parent).await);
    let ids = |accounts: &[Account]| accounts.iter().map(|account| account.id.clone()).collect::<Vec<_>>();
    let page = store.child_accounts(&parent.id, None, 1).await.unwrap();
    assert_eq!(ids(&page.items), std::slice::from_ref(&one.id));
    let rest = store.child_accounts(&parent.id, page.next.as_ref(), 1).await.unwrap();
    assert_eq!((ids(&rest.items), rest.next), (vec![two.id.clone()], None::<Cursor>));
    assert!(store.child_accounts(&other.id, None, 10).await.unwrap().items.is_empty());
    assert_eq!(store.child_account(&parent.id, &one.id).await.unwrap().map(|account| account.id), Some(one.id.clone()));
    assert_eq!(store.child_account(&other.id, &one.id).await.unwrap(), None);
    assert_eq!(store.child_account(&parent.id, &other.id).await.unwrap(), None);
    assert_eq!(store.parent_account(&one.id).await.unwrap(), store.account(&parent.id).await.unwrap());
    assert_eq!(store.parent_account(&parent.id).await.unwrap(), None);
    let create = async |parent: &AccountId, most| store.create_child(parent, new_account(), most).await.unwrap();
    assert_eq!(create(&one.id, MOST).await, ChildCreated::IsChild);
    assert_eq!(create(&new_id(), MOST).await, ChildCreated::NoSuchParent);
    assert_eq!(create(&parent.id, 2).await, ChildCreated::TooMany);
    assert_eq!(store.close_child(&parent.id, &one.id, NOON).await.unwrap(), ChildClosed::Closed(atoms(0)));
    assert!(matches!(create(&parent.id, 2).await, ChildCreated::Account(_)), "a closed one does not count");
}

/// An idempotency key creates one child, no matter how often it is sent, even if the child is the last that the parent
/// may have, or is closed.
pub async fn a_key_makes_one_child(store: Arc<dyn FullStore>) {
    let parent = customer(&*store, 1).await;
    let key = new_account().key;
    let results = racing(&store, 0..TASKS, |store, _| {
        let parent = parent.id.clone();
        async move { store.create_child(&parent, NewAccount { key, ..new_account() }, 1).await.unwrap() }
    })
    .await;
    let (made, repeated): (Vec<_>, Vec<_>) =
        results.into_iter().partition(|created| matches!(created, ChildCreated::Account(_)));
    assert_eq!((made.len(), repeated), (1, vec![ChildCreated::KeyUsed; usize::from(TASKS) - 1]));
    let ChildCreated::Account(made) = &made[0] else { unreachable!("it was counted as one") };
    assert_eq!(store.account_by_key(&key).await.unwrap().as_ref(), Some(made));
    assert_eq!(store.close_child(&parent.id, &made.id, NOON).await.unwrap(), ChildClosed::Closed(atoms(0)));
    let again = store.create_child(&parent.id, NewAccount { key, ..new_account() }, 1).await.unwrap();
    assert_eq!(again, ChildCreated::KeyUsed);
}

/// To the child and back, never below zero, and once for each request.
pub async fn credits_move_exactly_and_once(store: Verified<dyn FullStore>) {
    let parent = customer(&*store, 10).await;
    let (first, second) = (child(&*store, &parent).await, child(&*store, &parent).await);
    let moved =
        async |child, request, amount| store.move_credits(wanted(&parent, child, request, amount)).await.unwrap();
    assert_eq!(balances(&moved(&first, 1, 7).await), Some([3, 7]));
    assert_eq!(balances(&moved(&first, 1, 7).await), Some([3, 7]), "the same request");
    assert_eq!(moved(&first, 1, 6).await, CreditsMoved::OtherRequest);
    assert_eq!(moved(&second, 1, 7).await, CreditsMoved::OtherRequest);
    assert_eq!(moved(&second, 2, 4).await, CreditsMoved::NotEnough(atoms(3)));
    assert_eq!(moved(&first, 3, -8).await, CreditsMoved::NotEnough(atoms(7)));
    assert_eq!(balances(&moved(&first, 4, -5).await), Some([8, 2]));
    assert_eq!(balances(&moved(&second, 2, 4).await), Some([4, 4]), "a refused request moved nothing");
    let other = customer(&*store, 10).await;
    let elsewhere = store.move_credits(wanted(&other, &first, 9, -1)).await.unwrap();
    assert_eq!(elsewhere, CreditsMoved::NoSuchChild);
    assert_eq!(balance(&*store, &first.id).await, 2);
}

/// The same request from many tasks at once, and several requests that compete for credits.
pub async fn concurrent_moves_add_up(store: Verified<dyn FullStore>) {
    let parent = customer(&*store, 10).await;
    let own = child(&*store, &parent).await;
    let results = racing(&store, 0..TASKS, |store, number| {
        let same = wanted(&parent, &own, 100, 2);
        let another = wanted(&parent, &own, number, 1);
        async move {
            store.move_credits(same).await.unwrap();
            store.move_credits(another).await.unwrap()
        }
    })
    .await;
    let moved = results.iter().filter(|moved| balances(moved).is_some()).count();
    assert_eq!(moved, 8);
    assert_eq!([balance(&*store, &parent.id).await, balance(&*store, &own.id).await], [0, 10]);
}

/// What the child bought does not return to the parent, no matter which of its credits were used.
pub async fn a_parent_takes_back_at_most_what_it_gave(store: Verified<dyn FullStore>) {
    let parent = customer(&*store, 10).await;
    let own = child(&*store, &parent).await;
    let moved = async |request, amount| store.move_credits(wanted(&parent, &own, request, amount)).await.unwrap();
    post(&*store, &own.id, entry(LedgerKind::PurchaseImported, 5), NOON).await;
    assert_eq!(moved(1, -1).await, CreditsMoved::NotGiven(atoms(0)));
    assert_eq!(balances(&moved(2, 4).await), Some([6, 9]));
    assert_eq!(moved(3, -5).await, CreditsMoved::NotGiven(atoms(4)));
    assert_eq!(balances(&moved(3, -3).await), Some([9, 6]), "a refused request moved nothing");
    assert_eq!(moved(4, -2).await, CreditsMoved::NotGiven(atoms(1)));
    let close = async || store.close_child(&parent.id, &own.id, NOON).await.unwrap();
    assert_eq!(close().await, ChildClosed::HasOwn(atoms(5)));
    commit(&*store, vec![charge(own.key, 5)], NOON).await;
    assert_eq!(close().await, ChildClosed::Closed(atoms(1)));
    assert_eq!(balance(&*store, &parent.id).await, 10);
}

/// Its credits go back, and its key stops working.
pub async fn a_closed_child_gives_its_credits_back(store: Verified<dyn FullStore>) {
    let parent = customer(&*store, 3 * BASE).await;
    let own = child(&*store, &parent).await;
    store.move_credits(wanted(&parent, &own, 1, 2 * BASE)).await.unwrap();
    commit(&*store, vec![charge(own.key, BASE)], NOON).await;
    let other = customer(&*store, 1).await;
    assert_eq!(store.close_child(&other.id, &own.id, NOON).await.unwrap(), ChildClosed::NoSuchChild);
    assert_eq!(store.close_child(&parent.id, &own.id, NOON).await.unwrap(), ChildClosed::Closed(atoms(BASE)));
    assert_eq!([balance(&*store, &parent.id).await, balance(&*store, &own.id).await], [2 * BASE, 0]);
    assert_eq!(store.live_keys(&[own.key], NOON).await.unwrap(), [false]);
    assert_eq!(store.close_child(&parent.id, &own.id, NOON).await.unwrap(), ChildClosed::NoSuchChild);
    let late = store.move_credits(wanted(&parent, &own, 2, 1)).await.unwrap();
    assert_eq!(late, CreditsMoved::NoSuchChild);
    assert!(store.child_account(&parent.id, &own.id).await.unwrap().unwrap().revoked_at.is_some());
}

/// A child is not closed while its card is charged: nobody could spend the credits.
pub async fn a_child_that_is_paying_is_not_closed(store: Arc<dyn FullStore>) {
    let parent = customer(&*store, 1).await;
    let own = child(&*store, &parent).await;
    turn_on(&*store, &own.id).await;
    let charge = begin(&*store, &own.id, NOON).await.expect("it has no credits");
    assert_eq!(store.close_child(&parent.id, &own.id, NOON).await.unwrap(), ChildClosed::Paying);
    assert!(store.end_top_up(charge.id, TopUpEnd::NeverMade, NOON).await.unwrap());
    assert_eq!(store.close_child(&parent.id, &own.id, NOON).await.unwrap(), ChildClosed::Closed(atoms(0)));
}

/// A payment that is accepted while a child is closed is either refused, or keeps the child open.
pub async fn a_payment_reaches_no_child_that_was_closed_meanwhile(store: Arc<dyn FullStore>) {
    let parent = customer(&*store, 1).await;
    for number in 0..TASKS {
        let own = child(&*store, &parent).await;
        let mut paying = JoinSet::new();
        for part in 0..4 {
            let (store, new) = (Arc::clone(&store), authorization_scene::new(&own.id, 4 * number + part));
            paying.spawn(async move { store.open_authorization(new, LEASE).await.unwrap() });
        }
        let closing = tokio::spawn({
            let (store, parent, own) = (Arc::clone(&store), parent.id.clone(), own.id.clone());
            async move { store.close_child(&parent, &own, NOON).await.unwrap() }
        });
        let closed = closing.await.unwrap();
        let opened = paying.join_all().await.iter().any(|paid| matches!(paid, AuthorizationOpened::Opened(_)));
        assert_eq!(closed, if opened { ChildClosed::Paying } else { ChildClosed::Closed(atoms(0)) });
    }
}

/// All children together, including recent charges, without those of their parent.
pub async fn the_usage_of_all_children_is_read_at_once(store: Arc<dyn FullStore>) {
    let parent = customer(&*store, 9 * BASE).await;
    let (one, two) = (child(&*store, &parent).await, child(&*store, &parent).await);
    for (request, own) in [(1, &one), (2, &two)] {
        store.move_credits(wanted(&parent, own, request, 3 * BASE)).await.unwrap();
    }
    assert_eq!(store.child_usage(&parent.id, ALWAYS).await.unwrap(), []);
    commit(&*store, vec![charge(one.key, BASE), charge(one.key, BASE), charge(two.key, BASE)], NOON).await;
    commit(&*store, vec![charge(parent.key, BASE)], NOON).await;
    let used = store.child_usage(&parent.id, ALWAYS).await.unwrap();
    let shown: Vec<_> = used
        .iter()
        .map(|used| (used.account.clone(), used.day, used.usage_events, used.credits_used.atoms()))
        .collect();
    assert_eq!(shown, [(one.id, NOON.day(), 2, 2 * BASE), (two.id, NOON.day(), 1, BASE)]);
    assert_eq!(store.child_usage(&new_id(), ALWAYS).await.unwrap(), []);
}

/// A child has the limit on tokens of its parent, and no limits that it was not given.
pub async fn a_child_has_the_token_limit_of_its_parent(store: Arc<dyn FullStore>) {
    let parent = customer(&*store, 1).await;
    store.set_token_limit(&parent.id, 500).await.unwrap();
    let new = NewAccount { limits: metering_core::RateLimits::per_minute(7), ..new_account() };
    let created = store.create_child(&parent.id, new, MOST).await.unwrap();
    let ChildCreated::Account(account) = created else { panic!("{created:?}") };
    assert_eq!((account.tokens_per_minute, account.limits), (500, metering_core::RateLimits::per_minute(7)));
    assert_eq!(store.account(&account.id).await.unwrap(), Some(account));
}
