//! Contracts for chains of keys: a key may do no more than each of its parent keys, and all of them count its requests.

use metering_core::access::{KeyRefusal, KeyTerms, RateLimits, Scope, Scopes};
use metering_core::charging::{InFlight, LimitWindow};
use metering_core::store::{Store, TermsChange};
use metering_core::{Charge, Decision, Refusal};

use super::key_scene::{Issued, budget, caller, change, changed, issue, manager, revoke, spent, status};
use super::races::{accepted_count, all_at_once};
use super::scene::{BASE, Customer, DAY, MINUTE, NOON, Verified, accepted, balance, charge, commit, customer, refused};

const PLENTY: i64 = 1_000_000 * BASE;

/// A key, and a child of it.
async fn pair(store: &dyn Store, customer: &Customer, parent: KeyTerms, child: KeyTerms) -> (Issued, Issued) {
    let parent = issue(store, &customer.id, None, parent).await;
    let child = issue(store, &customer.id, Some(&parent), child).await;
    (parent, child)
}

fn in_progress(key: &Issued, in_flight: &InFlight) -> Charge {
    charge(key.secret, BASE).with_in_flight(in_flight.clone())
}

/// A key stops working while a parent key is disabled, and permanently when that is revoked or leaks.
pub async fn key_stops_with_each_key_above_it(store: Verified<dyn Store>) {
    let customer = customer(&*store, PLENTY).await;
    for what in ["disabled", "revoked", "leaked"] {
        let top = issue(&*store, &customer.id, None, manager()).await;
        let (middle, below) = (
            issue(&*store, &customer.id, Some(&top), manager()).await,
            issue(&*store, &customer.id, Some(&top), caller()).await,
        );
        let child = issue(&*store, &customer.id, Some(&middle), caller()).await;
        accepted(&*store, charge(child.secret, BASE), NOON).await;
        let disabled = |disabled| TermsChange { disabled: Some(disabled), ..TermsChange::default() };
        match what {
            "disabled" => drop(change(&*store, &customer.id, &top.id, disabled(true)).await),
            "revoked" => drop(revoke(&*store, &customer.id, &top.id).await),
            _ => drop(store.report_leaked(&top.secret, NOON).await.unwrap().expect("the secret works")),
        }
        for key in [&top, &middle, &below, &child] {
            assert_eq!(refused(&*store, charge(key.secret, BASE), NOON).await, Refusal::UnknownKey, "{what}");
        }
        let secrets = [top.secret, middle.secret, below.secret, child.secret];
        assert_eq!(store.live_keys(&secrets, NOON).await.unwrap(), [false; 4], "{what}");
        let found = status(&*store, &customer.id, &child.id, NOON).await;
        assert_eq!((found.key.is_live(), found.parents_are_live), (what != "revoked", false), "{what}");
        accepted(&*store, charge(customer.key, BASE), NOON).await;
        if what == "disabled" {
            change(&*store, &customer.id, &top.id, disabled(false)).await;
            accepted(&*store, charge(child.secret, BASE), NOON).await;
            assert!(status(&*store, &customer.id, &child.id, NOON).await.parents_are_live);
        }
    }
}

/// A child of a key that is not live is reported as unknown, even if its terms forbid the request too: a caller without
/// a live key gets no other information.
pub async fn dead_parent_is_refused_before_the_terms(store: Verified<dyn Store>) {
    let customer = customer(&*store, PLENTY).await;
    let later = NOON.saturating_add(DAY);
    let faults = [
        (KeyTerms { networks: "10.0.0.0/8".parse().unwrap(), ..caller() }, KeyRefusal::Network { address: None }),
        (KeyTerms { expires_at: Some(later), ..caller() }, KeyRefusal::Expired { at: later }),
        (KeyTerms { routes: "/other".parse().unwrap(), ..caller() }, KeyRefusal::Route),
        (KeyTerms { scopes: Scopes::of([Scope::Read]).unwrap(), ..caller() }, KeyRefusal::Scope { scope: Scope::Call }),
    ];
    for (terms, expected) in faults {
        let (parent, child) = pair(&*store, &customer, manager(), terms).await;
        assert_eq!(refused(&*store, charge(child.secret, BASE), later).await, Refusal::Key(expected));
        let disabled = TermsChange { disabled: Some(true), ..TermsChange::default() };
        change(&*store, &customer.id, &parent.id, disabled).await;
        assert_eq!(refused(&*store, charge(child.secret, BASE), later).await, Refusal::UnknownKey, "{expected:?}");
    }
}

/// Terms of a key that are narrowed apply to its child keys, from the next commit on.
pub async fn narrowed_terms_apply_to_the_keys_below(store: Verified<dyn Store>) {
    let customer = customer(&*store, PLENTY).await;
    let reads = Scopes::of([Scope::Read, Scope::Manage]).unwrap();
    let expiry = NOON.saturating_add(MINUTE);
    let none = TermsChange::default;
    let table = [
        (TermsChange { scopes: Some(reads), ..none() }, KeyRefusal::Scope { scope: Scope::Call }),
        (TermsChange { routes: "/other".parse().ok(), ..none() }, KeyRefusal::Route),
        (TermsChange { networks: "10.0.0.0/8".parse().ok(), ..none() }, KeyRefusal::Network { address: None }),
        (TermsChange { expires_at: Some(Some(expiry)), ..none() }, KeyRefusal::Expired { at: expiry }),
    ];
    for (narrower, expected) in table {
        let (parent, child) = pair(&*store, &customer, manager(), caller()).await;
        accepted(&*store, charge(child.secret, BASE), NOON).await;
        change(&*store, &customer.id, &parent.id, narrower).await;
        let refusal = refused(&*store, charge(child.secret, BASE), expiry).await;
        assert_eq!(refusal, Refusal::Key(expected));
        // The child key can still be changed.
        let disabled = TermsChange { disabled: Some(true), ..none() };
        assert!(change(&*store, &customer.id, &child.id, disabled).await.terms.disabled);
    }
}

/// A key's rate limits count the requests of its child keys, exactly, in one batch and over batches.
pub async fn rate_limits_count_the_keys_below(store: Verified<dyn Store>) {
    let customer = customer(&*store, PLENTY).await;
    let minute = RateLimits::per_minute(3);
    let day = RateLimits::per_day(3);
    let next = [NOON.saturating_add(MINUTE), NOON.saturating_add(DAY)];
    for (limits, window, next) in [(minute, LimitWindow::Minute, next[0]), (day, LimitWindow::Day, next[1])] {
        for sizes in [vec![6], vec![1, 5], vec![2, 2, 2], vec![1; 6]] {
            let (parent, child) = pair(&*store, &customer, KeyTerms { limits, ..manager() }, caller()).await;
            let mut count = 0;
            for size in sizes {
                let keys = [parent.secret, child.secret].into_iter().cycle().take(size);
                let decisions = commit(&*store, keys.map(|key| charge(key, BASE)).collect(), NOON).await;
                count += accepted_count(&decisions);
            }
            assert_eq!(count, 3, "{window:?}");
            for key in [&parent, &child] {
                let refusal = refused(&*store, charge(key.secret, BASE), NOON).await;
                let Refusal::RateLimited { window: full, rate } = refusal else { panic!("{refusal:?}") };
                assert_eq!((full, rate.limits, rate.remaining(window)), (window, limits, Some(0)));
            }
            accepted(&*store, charge(customer.key, BASE), NOON).await;
            let receipt = accepted(&*store, charge(parent.secret, BASE), next).await;
            assert_eq!((receipt.rate.limits, receipt.rate.remaining(window)), (limits, Some(2)));
        }
    }
}

/// The account's limits are checked before the key's, and a request that either refuses counts for none.
pub async fn request_counts_for_all_limits_or_none(store: Verified<dyn Store>) {
    let customer = customer(&*store, PLENTY).await;
    let limits = RateLimits::per_day(2);
    let parent = KeyTerms { limits, budget: budget(10 * BASE, None), ..manager() };
    let child = KeyTerms { budget: budget(BASE, None), ..caller() };
    let (parent, child) = pair(&*store, &customer, parent, child).await;
    accepted(&*store, charge(child.secret, BASE), NOON).await;
    let refusal = refused(&*store, charge(child.secret, BASE), NOON).await;
    assert!(matches!(refusal, Refusal::KeyBudget { .. }), "{refusal:?}");
    assert_eq!(spent(&*store, &customer.id, &parent.id).await, BASE);
    let receipt = accepted(&*store, charge(parent.secret, BASE), NOON).await;
    assert_eq!(receipt.rate.remaining(LimitWindow::Day), Some(0), "the refused request did not count");
    let refusal = refused(&*store, charge(parent.secret, BASE), NOON).await;
    assert!(matches!(refusal, Refusal::RateLimited { .. }), "{refusal:?}");
    assert_eq!(spent(&*store, &customer.id, &parent.id).await, 2 * BASE);
    store.set_limits(&customer.id, RateLimits::per_day(1)).await.unwrap();
    let Refusal::RateLimited { rate, .. } = refused(&*store, charge(child.secret, BASE), NOON).await else {
        panic!("the account's limit is reached");
    };
    assert_eq!(rate.limits.requests_per_day, 1, "the account's limits are checked first");
    assert_eq!(balance(&*store, &customer.id).await, PLENTY - 2 * BASE);
}

/// Racing requests with several child keys of one fill its limit exactly.
pub async fn racing_keys_fill_a_limit_once(store: Verified<dyn Store>) {
    let customer = customer(&*store, PLENTY).await;
    let limits = RateLimits::per_minute(20);
    let parent = issue(&*store, &customer.id, None, KeyTerms { limits, ..manager() }).await;
    let mut charges = Vec::new();
    for _ in 0..4 {
        let child = issue(&*store, &customer.id, Some(&parent), caller()).await;
        charges.extend(vec![charge(child.secret, BASE); 16]);
    }
    assert_eq!(accepted_count(&all_at_once(&store, charges).await), 20);
    assert_eq!(balance(&*store, &customer.id).await, PLENTY - 20 * BASE);
}

/// A request that is in flight counts for its key and the parent keys, until its receipt is dropped.
pub async fn requests_in_progress_are_limited(store: Verified<dyn Store>) {
    let customer = customer(&*store, PLENTY).await;
    let parent = KeyTerms { max_in_flight: 3, ..manager() };
    let (parent, child) = pair(&*store, &customer, parent, KeyTerms { max_in_flight: 2, ..caller() }).await;
    let in_flight = InFlight::default();
    let counts = || [&parent, &child].map(|key| in_flight.count(&customer.id, key.number));
    let one = accepted(&*store, in_progress(&child, &in_flight), NOON).await;
    let two = accepted(&*store, in_progress(&child, &in_flight), NOON).await;
    assert_eq!(counts(), [2, 2]);
    assert_eq!(refused(&*store, in_progress(&child, &in_flight), NOON).await, Refusal::TooManyInFlight);
    let three = accepted(&*store, in_progress(&parent, &in_flight), NOON).await;
    assert_eq!(refused(&*store, in_progress(&parent, &in_flight), NOON).await, Refusal::TooManyInFlight);
    assert_eq!(counts(), [3, 2], "what is refused is not in flight");
    drop(one);
    assert_eq!(counts(), [2, 1]);
    let batch =
        vec![in_progress(&child, &in_flight), in_progress(&child, &in_flight), in_progress(&parent, &in_flight)];
    let decisions = commit(&*store, batch, NOON).await;
    assert!(matches!(
        decisions[1..],
        [Decision::Refused(Refusal::TooManyInFlight), Decision::Refused(Refusal::TooManyInFlight),]
    ));
    drop((two, three, decisions));
    assert_eq!(counts(), [0, 0]);
    accepted(&*store, charge(child.secret, BASE), NOON).await;
    let unlimited = accepted(&*store, charge(customer.key, BASE).with_in_flight(in_flight.clone()), NOON);
    assert_eq!(unlimited.await.slot, None, "its key has no limit");
}

/// A charge that is refused for another reason takes no slot.
pub async fn refused_requests_are_not_in_progress(store: Verified<dyn Store>) {
    let customer = customer(&*store, BASE).await;
    let terms = KeyTerms { max_in_flight: 2, budget: budget(3 * BASE, None), ..caller() };
    let key = issue(&*store, &customer.id, None, terms).await;
    let in_flight = InFlight::default();
    let price = |price| in_progress(&key, &in_flight).with_price(super::scene::atoms(price));
    let refusal = refused(&*store, price(4 * BASE), NOON).await;
    assert!(matches!(refusal, Refusal::KeyBudget { .. }), "{refusal:?}");
    assert_eq!(in_flight.count(&customer.id, key.number), 0);
    drop(accepted(&*store, price(BASE), NOON).await);
    let refusal = refused(&*store, price(BASE), NOON).await;
    assert!(matches!(refusal, Refusal::InsufficientCredits { .. }), "{refusal:?}");
    let disabled = TermsChange { disabled: Some(true), ..TermsChange::default() };
    let disabled = metering_core::store::KeyChange::Terms(Box::new(disabled));
    changed(store.change_key(&customer.id, &key.id, None, disabled, NOON).await.unwrap());
    assert_eq!(refused(&*store, price(BASE), NOON).await, Refusal::UnknownKey);
    assert_eq!(in_flight.count(&customer.id, key.number), 0);
}
