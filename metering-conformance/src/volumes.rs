//! Contracts for volume tiers: each request of an account to a route has its own number in the month, and its price.

use std::sync::Arc;
use std::time::Duration;

use metering_core::access::KeyHash;
use metering_core::catalogue::VolumeTiers;
use metering_core::charging::{CountedRoute, HoldAction, Outcome, Posting, Refund, Volume, VolumeTerms};
use metering_core::clock::Timestamp;
use metering_core::money::Credits;
use metering_core::store::Store;
use metering_core::usage::ClientSource;
use metering_core::{Charge, Decision, Receipt, Refusal};

use super::hold_scene::{act, amounts, capture, held, open, terms};
use super::idempotency_keys::keyed;
use super::races::all_at_once;
use super::scene::{
    ALWAYS, MINUTE, NOON, Verified, accepted, account, atoms, balance, charge, charge_named, commit, commit_refund,
    customer, line, new_id, refused, report,
};

/// Two requests for nothing, two for 5 atoms, and all others for 3.
fn tiers() -> Arc<VolumeTiers> {
    Arc::new(VolumeTiers::new(vec![(2, atoms(0)), (4, atoms(5))], atoms(3)).expect("they rise"))
}

fn by_volume(charge: Charge) -> Charge {
    let tiers = tiers();
    charge.with_price(tiers.max()).with_by_volume(VolumeTerms { tiers, max_cost: None })
}

fn request(key: KeyHash) -> Charge {
    by_volume(charge(key, 0))
}

fn route() -> CountedRoute {
    CountedRoute::of(&line("/mpp/ethPrice"))
}

fn volume(requests: u32, at: Timestamp) -> Volume {
    Volume { month: at.day().month(), requests, ..Volume::default() }
}

/// The same with places that refunds gave back, as `atoms:places`.
fn with_returned(requests: u32, returned: &str) -> Volume {
    Volume { returned: returned.parse().expect("it is in order"), ..volume(requests, NOON) }
}

/// The charges of accepted requests, in atoms.
fn prices(decisions: &[Decision]) -> Vec<i64> {
    let price = |decision: &Decision| match decision {
        Decision::Accepted(receipt) => receipt.charged.atoms(),
        Decision::Refused(refusal) => panic!("the charge was refused: {refusal:?}"),
    };
    decisions.iter().map(price).collect()
}

async fn charged(store: &dyn Store, request: Charge, now: Timestamp) -> i64 {
    accepted(store, request, now).await.charged.atoms()
}

fn refund_of(receipt: Receipt) -> Refund {
    receipt.into_refund().expect("there is something to give back")
}

/// Requests of one batch and of several are numbered one after the other.
pub async fn a_request_has_the_price_of_its_tier(store: Verified<dyn Store>) {
    let customer = customer(&*store, 100).await;
    let decisions = commit(&*store, vec![request(customer.key); 3], NOON).await;
    assert_eq!(prices(&decisions), [0, 0, 5]);
    let receipt = accepted(&*store, request(customer.key), NOON).await;
    assert_eq!((receipt.charged, receipt.balance), (atoms(5), atoms(90)));
    assert_eq!(receipt.volume, Some(volume(4, NOON)));
    let decisions = commit(&*store, vec![request(customer.key); 2], NOON).await;
    assert_eq!(prices(&decisions), [3, 3]);
    assert_eq!(amounts(&*store, &customer.id).await, (84, 0, 16));
    assert_eq!(store.volumes(&customer.id).await.unwrap(), [(route(), volume(6, NOON))]);
    let report = report(&*store, &customer.id, ALWAYS).await;
    assert_eq!((report.by_day[0].usage_events, report.by_day[0].credits_used), (6, atoms(16)));
}

/// Each account and each route has its own count; the kind of client and charges at a fixed price make no difference.
pub async fn counts_are_separate_per_account_and_route(store: Verified<dyn Store>) {
    let (one, other) = (customer(&*store, 100).await, customer(&*store, 100).await);
    let on = |key: KeyHash, template: &str, method: &str, source: ClientSource| {
        let mut line = line(template);
        (line.http_method, line.source) = (method.into(), source);
        request(key).with_line(line)
    };
    let batch = vec![
        on(one.key, "/a", "GET", ClientSource::Direct),
        on(one.key, "/a", "GET", ClientSource::Mcp),
        on(one.key, "/b", "GET", ClientSource::Direct),
        on(one.key, "/a", "POST", ClientSource::Direct),
        on(other.key, "/a", "GET", ClientSource::Direct),
        charge(one.key, 9).with_line(line("/a")),
        on(one.key, "/a", "GET", ClientSource::Cli),
    ];
    assert_eq!(prices(&commit(&*store, batch, NOON).await), [0, 0, 0, 0, 0, 9, 5]);
    let counts = store.volumes(&one.id).await.unwrap();
    let counts: Vec<_> =
        counts.iter().map(|(route, of)| (&*route.route_template, &*route.http_method, of.requests)).collect();
    assert_eq!(counts, [("/a", "GET", 3), ("/a", "POST", 1), ("/b", "GET", 1)]);
    assert_eq!(store.volumes(&new_id()).await.unwrap(), []);
}

/// 64 requests race: each tier is filled exactly once.
pub async fn tiers_are_filled_once(store: Verified<dyn Store>) {
    let customer = customer(&*store, 10_000).await;
    let mut prices = prices(&all_at_once(&store, vec![request(customer.key); 64]).await);
    prices.sort_unstable();
    let expected: Vec<i64> = [0, 0].into_iter().chain([3; 60]).chain([5, 5]).collect();
    assert_eq!(prices, expected);
    assert_eq!(balance(&*store, &customer.id).await, 10_000 - 190);
    assert_eq!(store.volumes(&customer.id).await.unwrap(), [(route(), volume(64, NOON))]);
}

/// A free allowance needs no balance, unlike a price of zero. Later requests do.
pub async fn a_free_allowance_needs_no_balance(store: Verified<dyn Store>) {
    let customer = customer(&*store, 0).await;
    refused(&*store, charge(customer.key, 0), NOON).await;
    let decisions = commit(&*store, vec![request(customer.key); 2], NOON).await;
    assert_eq!(prices(&decisions), [0, 0]);
    let refusal = refused(&*store, request(customer.key), NOON).await;
    let Refusal::InsufficientCredits { balance, required, .. } = refusal else { panic!("{refusal:?}") };
    assert_eq!((balance, required), (Credits::ZERO, atoms(5)));
    assert_eq!(store.volumes(&customer.id).await.unwrap(), [(route(), volume(2, NOON))], "refusals are not counted");
}

/// A new month starts with the first tier. A clock that lags a little counts in the newest month, and one that was
/// ahead by months does not use up theirs.
pub async fn a_new_month_begins_with_the_first_tier(store: Verified<dyn Store>) {
    let customer = customer(&*store, 100).await;
    let december: Timestamp = "2026-12-01T00:00:00Z".parse().unwrap();
    let before = december.saturating_sub(Duration::from_millis(1));
    assert_eq!(prices(&commit(&*store, vec![request(customer.key); 3], before).await), [0, 0, 5]);
    let late = accepted(&*store, request(customer.key), before).await;
    assert_eq!(charged(&*store, request(customer.key), december).await, 0);
    assert_eq!(charged(&*store, request(customer.key), before).await, 0, "a lagging clock counts in December");
    assert_eq!(charged(&*store, request(customer.key), december).await, 5);
    assert_eq!(store.volumes(&customer.id).await.unwrap(), [(route(), volume(3, december))]);
    // A refund of the old month gives back its price, and no place in the new month.
    commit_refund(&*store, refund_of(late), december).await;
    assert_eq!(store.volumes(&customer.id).await.unwrap(), [(route(), volume(3, december))]);
    let years_ahead: Timestamp = "2031-07-15T12:00:00Z".parse().unwrap();
    assert_eq!(charged(&*store, request(customer.key), years_ahead).await, 0);
    assert_eq!(charged(&*store, request(customer.key), december).await, 0, "the clock was wrong, not the customer");
}

/// A refund gives back what the request was charged, and its place in the count, also when it was free.
pub async fn a_refund_gives_back_its_place(store: Verified<dyn Store>) {
    let customer = customer(&*store, 100).await;
    let free = accepted(&*store, request(customer.key), NOON).await;
    commit_refund(&*store, refund_of(free), NOON).await;
    assert_eq!(prices(&commit(&*store, vec![request(customer.key); 3], NOON).await), [0, 0, 5]);
    let paid = accepted(&*store, request(customer.key), NOON).await;
    assert_eq!(commit_refund(&*store, refund_of(paid), NOON).await, Some(atoms(95)));
    // In one batch with others.
    let paid = accepted(&*store, request(customer.key), NOON).await;
    assert_eq!(paid.charged, atoms(5));
    let batch = vec![
        Posting::Charge(request(customer.key)),
        Posting::Refund(refund_of(paid)),
        Posting::Charge(request(customer.key)),
    ];
    let outcomes = store.commit(batch, NOON).await.unwrap();
    let prices: Vec<_> = outcomes
        .iter()
        .filter_map(|outcome| match outcome {
            Outcome::Decided(Decision::Accepted(receipt)) => Some(receipt.charged.atoms()),
            _ => None,
        })
        .collect();
    assert_eq!(prices, [3, 5], "the fifth, and the fourth again");
    assert_eq!(store.volumes(&customer.id).await.unwrap(), [(route(), volume(5, NOON))]);
    assert_eq!(amounts(&*store, &customer.id).await, (87, 0, 13));
}

/// Refunds of requests in flight use up no free requests and move no account into another tier: the next requests take
/// their places, at their prices.
pub async fn refunded_places_are_taken_again(store: Verified<dyn Store>) {
    let customer = customer(&*store, 100).await;
    let mut in_flight = Vec::new();
    for _ in 0..4 {
        in_flight.push(accepted(&*store, request(customer.key), NOON).await);
    }
    let charges: Vec<i64> = in_flight.iter().map(|receipt| receipt.charged.atoms()).collect();
    assert_eq!(charges, [0, 0, 5, 5]);
    assert_eq!(charged(&*store, request(customer.key), NOON).await, 3);
    let refunds = in_flight.into_iter().map(|receipt| Posting::Refund(refund_of(receipt)));
    store.commit(refunds.collect(), NOON).await.unwrap();
    assert_eq!(store.volumes(&customer.id).await.unwrap(), [(route(), with_returned(1, "0:2,5:2"))]);
    // Free ones first, each in its own batch or in the same one.
    assert_eq!(charged(&*store, request(customer.key), NOON).await, 0);
    assert_eq!(store.volumes(&customer.id).await.unwrap(), [(route(), with_returned(2, "0:1,5:2"))]);
    let again = accepted(&*store, request(customer.key), NOON).await;
    assert_eq!((again.charged, again.volume.clone()), (atoms(0), Some(with_returned(3, "5:2"))));
    commit_refund(&*store, refund_of(again), NOON).await;
    let decisions = commit(&*store, vec![request(customer.key); 4], NOON).await;
    assert_eq!(prices(&decisions), [0, 5, 5, 3]);
    assert_eq!(store.volumes(&customer.id).await.unwrap(), [(route(), volume(6, NOON))]);
    let total: i64 = (1..=6).map(|number| tiers().price(number).atoms()).sum();
    assert_eq!((amounts(&*store, &customer.id).await, total), ((84, 0, 16), 16));
}

/// The same for holds that are released by a process that has only their ids.
pub async fn released_places_are_taken_again(store: Verified<dyn Store>) {
    let customer = customer(&*store, 100).await;
    let holding = || request(customer.key).with_hold(terms());
    let mut open = Vec::new();
    for _ in 0..3 {
        open.push(held(&accepted(&*store, holding(), NOON).await));
    }
    assert_eq!(open.iter().map(|held| held.amount.atoms()).collect::<Vec<_>>(), [0, 0, 5]);
    for held in [open[0], open[1], open[1]] {
        act(&*store, &customer.id, held.id, HoldAction::Release, NOON).await;
    }
    assert_eq!(store.volumes(&customer.id).await.unwrap(), [(route(), with_returned(1, "0:2"))]);
    // The captured amount of a kept hold does not change its place.
    act(&*store, &customer.id, open[2].id, capture(1), NOON).await;
    let mut again = Vec::new();
    for _ in 0..3 {
        again.push(held(&accepted(&*store, holding(), NOON).await).amount.atoms());
    }
    assert_eq!(again, [0, 0, 5]);
    assert_eq!(store.volumes(&customer.id).await.unwrap(), [(route(), volume(4, NOON))]);
}

/// Refunded places are gone with their month, and with their price.
pub async fn refunded_places_end_with_their_month_and_price(store: Verified<dyn Store>) {
    let customer = customer(&*store, 100).await;
    let free = accepted(&*store, request(customer.key), NOON).await;
    let other = accepted(&*store, request(customer.key), NOON).await;
    assert_eq!(charged(&*store, request(customer.key), NOON).await, 5);
    commit_refund(&*store, refund_of(free), NOON).await;
    commit_refund(&*store, refund_of(other), NOON).await;
    // The catalogue changes: nothing is free, and 7 is a new price.
    let dearer = Arc::new(VolumeTiers::new(vec![(1, atoms(5))], atoms(7)).expect("they rise"));
    let by_volume = VolumeTerms { tiers: dearer, max_cost: Some("0.0000000007".parse().unwrap()) };
    let request_now = request(customer.key).with_by_volume(by_volume);
    let refusal = refused(&*store, request_now.clone(), NOON).await;
    assert!(matches!(refusal, Refusal::MaxCostExceeded { price, .. } if price == atoms(7)), "{refusal:?}");
    assert_eq!(store.volumes(&customer.id).await.unwrap(), [(route(), with_returned(1, "0:2"))]);
    // The client's bound is compared with the price of the place that is taken.
    let free_only = request(customer.key).by_volume.map(|terms| VolumeTerms { max_cost: "0".parse().ok(), ..terms });
    let bounded = || request(customer.key).with_by_volume(free_only.clone());
    assert_eq!(charged(&*store, bounded(), NOON).await, 0);
    // The next month.
    let next = NOON.day().month().next().start();
    assert_eq!(prices(&commit(&*store, vec![request(customer.key); 3], next).await), [0, 0, 5]);
    assert_eq!(store.volumes(&customer.id).await.unwrap(), [(route(), volume(3, next))]);
}

/// A clock that lags at a month's beginning counts in the new month; its refund, and the release of its hold, give that
/// place back.
pub async fn a_refund_at_the_months_border_gives_back_its_place(store: Arc<dyn Store>) {
    let customer = customer(&*store, 100).await;
    let begins = NOON.day().month().next().start();
    let lagging = begins.saturating_sub(MINUTE);
    accepted(&*store, request(customer.key), begins).await;
    let free = accepted(&*store, request(customer.key), lagging).await;
    assert_eq!(free.charged, atoms(0));
    commit_refund(&*store, refund_of(free), begins).await;
    let one_returned = Volume { month: begins.day().month(), ..with_returned(1, "0:1") };
    assert_eq!(store.volumes(&customer.id).await.unwrap(), [(route(), one_returned.clone())]);
    let held = accepted(&*store, request(customer.key).with_hold(terms()), lagging).await;
    assert_eq!(store.volumes(&customer.id).await.unwrap(), [(route(), volume(2, begins))]);
    let release = held.hold_update(HoldAction::Release).expect("it is a hold");
    store.commit(vec![Posting::Hold(release)], begins).await.unwrap();
    assert_eq!(store.volumes(&customer.id).await.unwrap(), [(route(), one_returned)]);
}

/// A request is refused when its tier costs more than its client allows; it is not counted.
pub async fn a_tier_above_the_bound_is_refused(store: Verified<dyn Store>) {
    let customer = customer(&*store, 100).await;
    let bounded = |most: &str| {
        let charge = request(customer.key);
        let by_volume =
            charge.by_volume.clone().map(|terms| VolumeTerms { max_cost: Some(most.parse().unwrap()), ..terms });
        charge.with_by_volume(by_volume)
    };
    for _ in 0..2 {
        assert_eq!(charged(&*store, bounded("0"), NOON).await, 0);
    }
    let refusal = refused(&*store, bounded("0"), NOON).await;
    assert_eq!(refusal, Refusal::MaxCostExceeded { price: atoms(5), max_cost: "0".parse().unwrap() });
    assert_eq!(charged(&*store, bounded("0.0000000007"), NOON).await, 5, "rounded up to an atom, 5.04");
    assert_eq!(store.volumes(&customer.id).await.unwrap(), [(route(), volume(3, NOON))]);
}

/// A repeated request has the price that it had, and is counted once.
pub async fn a_repeated_request_is_counted_once(store: Verified<dyn Store>) {
    let customer = customer(&*store, 100).await;
    let named = |name: &str| by_volume(charge_named(customer.key, 0, name));
    assert_eq!(charged(&*store, named("r1"), NOON).await, 0);
    assert_eq!(charged(&*store, named("r2"), NOON).await, 0);
    for _ in 0..3 {
        let again = accepted(&*store, named("r2"), NOON).await;
        assert_eq!((again.charged, again.repeated), (Credits::ZERO, true));
        assert_eq!(again.into_refund(), None);
    }
    assert_eq!(charged(&*store, named("r3"), NOON).await, 5);
    assert_eq!(charged(&*store, named("r3"), NOON).await, 5);
    // With an idempotency key, the refund of a later attempt gives back the first one's place.
    let keyed = || by_volume(keyed(customer.key, 0, "order", 1));
    let first = accepted(&*store, keyed(), NOON).await;
    assert_eq!((first.charged, first.volume.clone()), (atoms(5), Some(volume(4, NOON))));
    let after_lease = NOON.saturating_add(Duration::from_secs(3_600));
    let second = accepted(&*store, keyed(), after_lease).await;
    assert_eq!((second.charged, second.repeated), (atoms(5), true));
    commit_refund(&*store, refund_of(second), after_lease).await;
    let one_returned = [(route(), with_returned(3, "5:1"))];
    assert_eq!(store.volumes(&customer.id).await.unwrap(), one_returned);
    commit_refund(&*store, refund_of(first), after_lease).await;
    assert_eq!(store.volumes(&customer.id).await.unwrap(), one_returned, "the second took it over");
}

/// A hold has the price of its tier, also a free one. A release gives its place back; anything else does not.
pub async fn a_hold_is_counted_until_it_is_released(store: Verified<dyn Store>) {
    let customer = customer(&*store, 100).await;
    let holding = || request(customer.key).with_hold(terms());
    let free = accepted(&*store, holding(), NOON).await;
    assert_eq!((held(&free).amount, free.volume.clone()), (Credits::ZERO, Some(volume(1, NOON))));
    act(&*store, &customer.id, held(&free).id, HoldAction::Release, NOON).await;
    assert_eq!(store.volumes(&customer.id).await.unwrap(), [(route(), with_returned(0, "0:1"))]);
    assert_eq!(prices(&commit(&*store, vec![request(customer.key); 2], NOON).await), [0, 0]);
    let kept = accepted(&*store, holding(), NOON).await;
    assert_eq!(held(&kept).amount, atoms(5));
    act(&*store, &customer.id, held(&kept).id, capture(2), NOON).await;
    let released = accepted(&*store, holding(), NOON).await;
    assert_eq!(held(&released).amount, atoms(5));
    for _ in 0..2 {
        act(&*store, &customer.id, held(&released).id, HoldAction::Release, NOON).await;
    }
    assert_eq!(store.volumes(&customer.id).await.unwrap(), [(route(), with_returned(3, "5:1"))], "released once");
    assert_eq!(amounts(&*store, &customer.id).await, (98, 0, 2));
    // A release of a hold on a route without volume tiers counts nothing.
    let other = super::scene::customer(&*store, 100).await;
    let id = open(&*store, other.key, 10).await;
    act(&*store, &other.id, id, HoldAction::Release, NOON).await;
    assert_eq!(store.volumes(&other.id).await.unwrap(), []);
}

/// A refused charge does not change the count, for any refusal.
pub async fn a_refused_request_is_not_counted(store: Verified<dyn Store>) {
    let limits = metering_core::access::RateLimits::per_minute(3);
    let customer = super::scene::customer_with(&*store, 1, limits).await;
    assert_eq!(prices(&commit(&*store, vec![request(customer.key); 3], NOON).await), [0, 0, 5]);
    let refusal = refused(&*store, request(customer.key), NOON).await;
    assert!(matches!(refusal, Refusal::RateLimited { .. }), "{refusal:?}");
    let next_minute = NOON.saturating_add(Duration::from_secs(60));
    let refusal = refused(&*store, request(customer.key), next_minute).await;
    assert!(matches!(refusal, Refusal::InsufficientCredits { .. }), "{refusal:?}");
    store.revoke_account(&customer.id, next_minute).await.unwrap();
    assert_eq!(refused(&*store, request(customer.key), next_minute).await, Refusal::UnknownKey);
    assert_eq!(store.volumes(&customer.id).await.unwrap(), [(route(), volume(3, NOON))]);
    assert_eq!(account(&*store, &customer.id).await.totals.balance, atoms(-4));
}
