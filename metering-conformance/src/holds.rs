//! Contracts for holds: credits that are held are not in the balance, and a hold is settled once.

use std::sync::Arc;
use std::time::Duration;

use metering_core::charging::{Hold, HoldAction, HoldId, HoldTerms, HoldUpdate, HoldUpdated, Posting, SettleReason};
use metering_core::clock::Timestamp;
use metering_core::money::Credits;
use metering_core::random::SystemRandomness;
use metering_core::store::Store;
use metering_core::{Receipt, Refusal};

use super::hold_scene::{
    FALLBACK, LEASE, act, amounts, capture, capture_in_full, held, hold, later, open, read, settled, terms, try_update,
    update,
};
use super::scene::{
    NOON, Verified, accepted, account, all_daily_totals, assert_verified, atoms, balance, charge, customer, line,
    refused, report,
};

/// A hold lowers the balance, is not used yet, and is stored as requested.
pub async fn an_open_hold_lowers_the_balance(store: Verified<dyn Store>) {
    let customer = customer(&*store, 100).await;
    let terms = HoldTerms { lease: Duration::from_millis(12_345), ..terms() };
    let request = charge(customer.key, 60).with_line(line("/chat/{model}")).with_path("/chat/large").with_hold(terms);
    let receipt = accepted(&*store, request, NOON).await;
    let held = held(&receipt);
    assert_eq!((held.id, held.amount, held.lease), (terms.id, atoms(60), terms.lease));
    assert_eq!((receipt.charged, receipt.balance, receipt.repeated), (Credits::ZERO, atoms(40), false));
    assert_eq!((receipt.line.clone(), receipt.day), (line("/chat/{model}"), NOON.day()));
    assert_eq!(amounts(&*store, &customer.id).await, (40, 60, 0));
    let Receipt { account, key, .. } = receipt;
    let expected = Hold {
        id: terms.id,
        account,
        key,
        amount: atoms(60),
        fallback: atoms(FALLBACK),
        line: line("/chat/{model}"),
        request_path: "/chat/large".into(),
        created_at: NOON,
        expires_at: NOON.saturating_add(terms.lease),
        settled: None,
        tokens: None,
        upstream: None,
    };
    assert_eq!(read(&*store, terms.id).await, expected);
    assert_eq!(store.open_holds(&customer.id, 10).await.unwrap(), [expected]);
}

/// The balance must cover a hold in full, unlike a charge. A refused hold changes nothing.
pub async fn a_hold_must_be_covered(store: Verified<dyn Store>) {
    let customer = customer(&*store, 100).await;
    let before = account(&*store, &customer.id).await;
    for amount in [101, 1_000, i64::MAX] {
        let request = hold(customer.key, amount);
        let id = request.hold.expect("it is a hold").id;
        let refusal = refused(&*store, request, NOON).await;
        let Refusal::InsufficientCredits { balance, required, .. } = refusal else { panic!("{refusal:?}") };
        assert_eq!((balance, required), (atoms(100), atoms(amount)));
        assert_eq!(store.hold(&id).await.unwrap(), None);
    }
    let after = account(&*store, &customer.id).await;
    let mut unraised = after;
    unraised.alert = before.alert;
    assert_eq!(unraised, before, "only the alert was raised");
    assert_eq!(store.open_holds(&customer.id, 10).await.unwrap(), []);
    // To the last atom, and then not even nothing.
    let all = open(&*store, customer.key, 100).await;
    assert_eq!(amounts(&*store, &customer.id).await, (0, 100, 0));
    for request in [hold(customer.key, 0), hold(customer.key, 1), charge(customer.key, 1)] {
        let required = request.price;
        let refusal = refused(&*store, request, NOON).await;
        let Refusal::InsufficientCredits { balance, required: needed, .. } = refusal else { panic!("{refusal:?}") };
        assert_eq!((balance, needed), (Credits::ZERO, required));
    }
    act(&*store, &customer.id, all, capture(99), NOON).await;
    open(&*store, customer.key, 1).await;
    assert_eq!(amounts(&*store, &customer.id).await, (0, 1, 99));
}

/// The request's cost becomes usage, at most the held amount, and the rest returns to the balance.
pub async fn a_capture_returns_the_rest(store: Arc<dyn Store>) {
    // cost, captured, excess
    for (cost, captured, excess) in
        [(0, 0, 0), (1, 1, 0), (59, 59, 0), (60, 60, 0), (61, 60, 1), (i64::MAX, 60, i64::MAX - 60), (-5, 0, 0)]
    {
        let customer = customer(&*store, 100).await;
        let id = open(&*store, customer.key, 60).await;
        let before = read(&*store, id).await;
        let updated = act(&*store, &customer.id, id, capture(cost), later(2)).await;
        let after = Hold { settled: settled(captured, SettleReason::Report, later(2)), ..before };
        let expected =
            HoldUpdated { hold: after.clone(), balance: atoms(100 - captured), changed: true, excess: atoms(excess) };
        assert_eq!(updated, expected, "cost {cost}");
        assert_eq!(read(&*store, id).await, after);
        assert_eq!(amounts(&*store, &customer.id).await, (100 - captured, 0, captured));
        assert_eq!(store.open_holds(&customer.id, 10).await.unwrap(), []);
        assert_verified(&*store).await;
    }
}

/// The update that settles a hold names the upstream that served the request. Later updates do not change that.
pub async fn a_settled_hold_says_which_upstream_served_it(store: Verified<dyn Store>) {
    let customer = customer(&*store, 100).await;
    for (number, action) in [capture(2), HoldAction::CaptureFallback, HoldAction::Release].into_iter().enumerate() {
        let id = open(&*store, customer.key, 10).await;
        let served_by = |name: &str, action| {
            let update = HoldUpdate::new(customer.id.clone(), id, action);
            Posting::Hold(HoldUpdate { upstream: Some(name.into()), ..update })
        };
        let renewal = HoldAction::Renew { until: later(100) };
        let renewed = try_update(&*store, served_by("eu-1", renewal), later(1)).await.expect("it exists");
        assert!(renewed.changed && renewed.hold.upstream.is_none(), "it is not settled");
        let name = format!("eu-{number}");
        let updated = try_update(&*store, served_by(&name, action), later(2)).await.expect("it exists");
        assert_eq!(updated.hold.upstream.as_deref(), Some(&*name));
        let late = try_update(&*store, served_by("late", action), later(3)).await.expect("it exists");
        assert!(!late.changed);
        assert_eq!(read(&*store, id).await, updated.hold);
        let without = open(&*store, customer.key, 10).await;
        act(&*store, &customer.id, without, action, later(2)).await;
        assert_eq!(read(&*store, without).await.upstream, None);
    }
}

/// A full capture takes the request's cost, also from a balance that does not cover it.
pub async fn a_capture_in_full_may_make_a_debt(store: Arc<dyn Store>) {
    for (cost, excess) in [(10, 0), (60, 0), (90, 30), (500, 440)] {
        let customer = customer(&*store, 100).await;
        let id = open(&*store, customer.key, 60).await;
        let updated = act(&*store, &customer.id, id, capture_in_full(cost), later(2)).await;
        assert_eq!(updated.hold.settled, settled(cost, SettleReason::Report, later(2)));
        assert_eq!((updated.balance, updated.excess), (atoms(100 - cost), atoms(excess)));
        assert_eq!(amounts(&*store, &customer.id).await, (100 - cost, 0, cost));
        assert_verified(&*store).await;
    }
}

/// Without a reported cost, the fallback is captured, at most what is held.
pub async fn a_fallback_is_at_most_what_is_held(store: Verified<dyn Store>) {
    for (fallback, captured) in [(0, 0), (7, 7), (60, 60), (61, 60), (i64::MAX, 60), (-1, 0)] {
        let customer = customer(&*store, 100).await;
        let request = |amount| {
            let terms = HoldTerms::new(&SystemRandomness, LEASE, atoms(fallback));
            charge(customer.key, amount).with_hold(terms)
        };
        let id = held(&accepted(&*store, request(60), NOON).await).id;
        assert_eq!(read(&*store, id).await.fallback, atoms(captured));
        let updated = act(&*store, &customer.id, id, HoldAction::CaptureFallback, later(1)).await;
        assert_eq!(updated.hold.settled, settled(captured, SettleReason::NoReport, later(1)));
        assert_eq!((updated.changed, updated.excess), (true, Credits::ZERO));
        assert_eq!(amounts(&*store, &customer.id).await, (100 - captured, 0, captured));
    }
}

/// A released hold returns in full.
pub async fn a_release_returns_everything(store: Verified<dyn Store>) {
    let customer = customer(&*store, 100).await;
    for amount in [100, 60, 0] {
        let id = open(&*store, customer.key, amount).await;
        let updated = act(&*store, &customer.id, id, HoldAction::Release, later(1)).await;
        assert_eq!(updated.hold.settled, settled(0, SettleReason::Release, later(1)));
        assert_eq!((updated.balance, updated.changed, updated.excess), (atoms(100), true, Credits::ZERO));
        assert_eq!(amounts(&*store, &customer.id).await, (100, 0, 0));
    }
}

/// A hold expires at the end of its lease and not before. Then its fallback is captured.
pub async fn a_hold_expires_with_its_lease(store: Verified<dyn Store>) {
    let customer = customer(&*store, 100).await;
    let id = open(&*store, customer.key, 60).await;
    let end = NOON.saturating_add(LEASE);
    for early in [NOON, end.saturating_sub(Duration::from_millis(1))] {
        let updated = act(&*store, &customer.id, id, HoldAction::Expire, early).await;
        assert_eq!((updated.changed, updated.hold.settled), (false, None));
        assert_eq!(amounts(&*store, &customer.id).await, (40, 60, 0));
    }
    let updated = act(&*store, &customer.id, id, HoldAction::Expire, end).await;
    assert_eq!((updated.changed, updated.balance), (true, atoms(100 - FALLBACK)));
    assert_eq!(updated.hold.settled, settled(FALLBACK, SettleReason::Expiry, end));
    assert_eq!(amounts(&*store, &customer.id).await, (100 - FALLBACK, 0, FALLBACK));
}

/// A hold whose lease has ended is open until it is expired: a late report still counts.
pub async fn a_late_capture_counts(store: Arc<dyn Store>) {
    let customer = customer(&*store, 100).await;
    let id = open(&*store, customer.key, 60).await;
    let updated = act(&*store, &customer.id, id, capture(50), later(10_000)).await;
    assert_eq!((updated.changed, updated.balance), (true, atoms(50)));
    let updated = act(&*store, &customer.id, id, HoldAction::Expire, later(10_001)).await;
    assert_eq!((updated.changed, updated.hold.settled), (false, settled(50, SettleReason::Report, later(10_000))));
    assert_eq!(amounts(&*store, &customer.id).await, (50, 0, 50));
}

/// A renewed hold expires at its new end. A lease is never shortened, and may be renewed after it has ended.
pub async fn a_renewed_hold_expires_later(store: Verified<dyn Store>) {
    let customer = customer(&*store, 100).await;
    let id = open(&*store, customer.key, 60).await;
    let renew = |seconds| HoldAction::Renew { until: later(seconds) };
    let expires_at = |updated: HoldUpdated| (updated.changed, updated.hold.expires_at);
    let first = later(LEASE.as_secs());
    for early in [0, 29, 30] {
        let updated = act(&*store, &customer.id, id, renew(early), later(1)).await;
        assert_eq!(expires_at(updated), (false, first), "until {early}");
    }
    let updated = act(&*store, &customer.id, id, renew(60), later(20)).await;
    assert_eq!((updated.balance, updated.excess), (atoms(40), Credits::ZERO));
    assert_eq!(expires_at(updated), (true, later(60)));
    assert_eq!(read(&*store, id).await.expires_at, later(60));
    let expired = act(&*store, &customer.id, id, HoldAction::Expire, later(59)).await;
    assert_eq!((expired.changed, expired.hold.settled), (false, None));
    assert_eq!(expires_at(act(&*store, &customer.id, id, renew(90), later(70)).await), (true, later(90)));
    assert_eq!(amounts(&*store, &customer.id).await, (40, 60, 0));
    assert!(act(&*store, &customer.id, id, HoldAction::Expire, later(90)).await.changed);
    assert_eq!(expires_at(act(&*store, &customer.id, id, renew(200), later(91)).await), (false, later(90)));
    assert_eq!(amounts(&*store, &customer.id).await, (100 - FALLBACK, 0, FALLBACK));
}

/// After the first settlement of a hold, nothing changes it, and each later update returns the first settlement.
pub async fn a_hold_is_settled_once(store: Verified<dyn Store>) {
    let actions = [
        capture(50),
        capture_in_full(500),
        HoldAction::CaptureFallback,
        HoldAction::Release,
        HoldAction::Expire,
        HoldAction::Renew { until: later(1_000_000) },
    ];
    for first in
        [capture(20), capture_in_full(90), HoldAction::CaptureFallback, HoldAction::Release, HoldAction::Expire]
    {
        let customer = customer(&*store, 100).await;
        let id = open(&*store, customer.key, 60).await;
        let settled = act(&*store, &customer.id, id, first, later(31)).await;
        let (before, days) = (account(&*store, &customer.id).await, all_daily_totals(&*store).await);
        let activity = store.activity(&customer.id, 10).await.unwrap();
        assert!(settled.changed && settled.hold.settled.is_some(), "{first:?}");
        for second in actions {
            let expected = HoldUpdated { changed: false, excess: Credits::ZERO, ..settled.clone() };
            assert_eq!(act(&*store, &customer.id, id, second, later(500)).await, expected, "{first:?}, {second:?}");
        }
        assert_eq!(account(&*store, &customer.id).await, before);
        assert_eq!(all_daily_totals(&*store).await, days);
        assert_eq!(store.activity(&customer.id, 10).await.unwrap(), activity);
    }
}

/// An update of an unknown hold, or of another account's, finds none and changes nothing, also within a batch.
pub async fn an_unknown_hold_is_none(store: Verified<dyn Store>) {
    let (owner, other) = (customer(&*store, 100).await, customer(&*store, 100).await);
    let id = open(&*store, owner.key, 60).await;
    let unknown = HoldId::generate(&SystemRandomness);
    assert_eq!(store.hold(&unknown).await.unwrap(), None);
    for action in [capture(1), HoldAction::Release, HoldAction::Renew { until: later(1_000) }] {
        assert_eq!(try_update(&*store, update(&owner.id, unknown, action), NOON).await, None);
        assert_eq!(try_update(&*store, update(&other.id, id, action), NOON).await, None);
        assert_eq!(try_update(&*store, update(&super::scene::new_id(), id, action), NOON).await, None);
        let batch = vec![update(&owner.id, id, HoldAction::Expire), update(&other.id, id, action)];
        let outcomes = store.commit(batch, NOON).await.unwrap();
        let found: Vec<_> = outcomes.into_iter().map(|outcome| super::hold_scene::updated(outcome).is_some()).collect();
        assert_eq!(found, [true, false]);
    }
    assert_eq!(amounts(&*store, &owner.id).await, (40, 60, 0));
    assert_eq!(balance(&*store, &other.id).await, 100);
}

/// Every account that the store returns has the held amount.
pub async fn held_credits_are_part_of_every_account(store: Verified<dyn Store>) {
    let customer = customer(&*store, 100).await;
    open(&*store, customer.key, 60).await;
    open(&*store, customer.key, 5).await;
    let all = super::scene::ALWAYS;
    let holder = store.key_holder(&customer.key).await.unwrap().expect("the secret works").account;
    let listed = store.accounts(None, 10).await.unwrap().items.remove(0);
    let limited =
        store.set_limits(&customer.id, metering_core::RateLimits::NONE).await.unwrap().expect("the account exists");
    let posted = super::scene::post(&*store, &customer.id, super::scene::adjustment(10), NOON).await;
    assert_eq!((posted.totals.balance, posted.totals.held), (atoms(45), atoms(65)));
    let (read, reported) = (account(&*store, &customer.id).await, report(&*store, &customer.id, all).await.account);
    assert_eq!([&read, &reported], [&posted, &posted]);
    assert!([holder, listed, limited].iter().all(|account| account.totals.held == atoms(65)));
    let revoked = store.revoke_account(&customer.id, later(1)).await.unwrap().expect("the account exists");
    assert_eq!((revoked.totals.balance, revoked.totals.held), (atoms(45), atoms(65)));
}

/// Start and end of a lease are stored to the millisecond.
pub async fn leases_are_stored_to_the_millisecond(store: Arc<dyn Store>) {
    let customer = customer(&*store, 100).await;
    for (millis, at) in
        [(0, NOON), (1, NOON), (999, Timestamp::from_unix_millis(NOON.unix_millis() + 1)), (86_400_001, NOON)]
    {
        let lease = Duration::from_millis(millis);
        let request = charge(customer.key, 1).with_hold(HoldTerms { lease, ..terms() });
        let id = held(&accepted(&*store, request, at).await).id;
        let found = read(&*store, id).await;
        assert_eq!((found.created_at, found.expires_at), (at, at.saturating_add(lease)));
    }
}
