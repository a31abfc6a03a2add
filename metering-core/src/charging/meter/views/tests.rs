//! When a request may be started before its charge is decided.

use super::*;
use crate::access::account::RateLimits;
use crate::access::key_id::KeyNumber;
use crate::charging::in_flight::InFlight;
use crate::charging::rate::Window;
use crate::charging::refusal::Refusal;
use crate::{ApiKey, ClientSource, SystemRandomness};

/// Stands still.
#[derive(Debug)]
struct StoppedClock(Timestamp);

impl Clock for StoppedClock {
    fn now(&self) -> Timestamp {
        self.0
    }
}

const NOW: Timestamp = Timestamp::from_unix_millis(1_795_262_400_000);
const PRICE: Credits = Credits::BASE_CALL;

fn views() -> Arc<Views> {
    Arc::new(Views::new(Arc::new(StoppedClock(NOW)), Arc::default()))
}

fn new_key() -> KeyHash {
    ApiKey::generate(&SystemRandomness).hash()
}

fn charge(key: KeyHash) -> Charge {
    let line = UsageLine { route_template: "/x".into(), http_method: "GET".into(), source: ClientSource::Direct };
    Charge::of(key, PRICE, line)
}

fn before_now(millis: i64) -> Timestamp {
    Timestamp::from_unix_millis(NOW.unix_millis() - millis)
}

/// The receipt of a charge that left this balance, with one request counted.
fn receipt(charge: &Charge, balance: Credits, limits: RateLimits) -> Receipt {
    let window = |index| Window { index, count: 1 };
    let rate = RateStatus::of(limits, window(NOW.minute()), window(NOW.day().unix_days()), NOW);
    Receipt {
        account: "org_xxxxxxxxxxxxxxxxxxxx".parse().unwrap(),
        charged: charge.price,
        hold: None,
        balance,
        line: charge.line.clone(),
        day: NOW.day(),
        request_path: Arc::clone(&charge.request_path),
        key: KeyNumber::FIRST,
        rate,
        repeated: false,
        delivery: None,
        slot: None,
        price_version: None,
        volume: None,
    }
}

fn rich(charge: &Charge) -> Receipt {
    receipt(charge, Credits::from_whole(1).unwrap(), RateLimits::NONE)
}

fn note(views: &Views, charge: &Charge, decision: Decision, at: Timestamp) {
    let used = Used::by(&[Posting::Charge(charge.clone())]);
    views.note(&used, &[Outcome::Decided(decision)], at);
}

/// Views after this charge was accepted.
fn seen(charge: &Charge, receipt: Receipt, at: Timestamp) -> Arc<Views> {
    let views = views();
    note(&views, charge, Decision::Accepted(receipt), at);
    views
}

#[test]
fn request_starts_only_while_the_last_view_of_its_key_is_fresh() {
    let charge = charge(new_key());
    assert!(views().start(&charge).is_none(), "nothing is known");
    // milliseconds since the view, whether it starts
    for (age, starts) in [(0, true), (1_000, true), (1_001, false), (-1, false)] {
        let views = seen(&charge, rich(&charge), before_now(age));
        assert_eq!(views.start(&charge).is_some(), starts, "{age}");
    }
}

#[test]
fn balance_must_cover_the_price_many_times_over_what_was_started() {
    let price = PRICE.atoms();
    let charge = charge(new_key());
    // balance, how many requests start
    for (balance, count) in [(100 * price - 1, 0), (100 * price, 1), (102 * price - 1, 2), (102 * price, 3)] {
        let views = seen(&charge, receipt(&charge, Credits::from_atoms(balance), RateLimits::NONE), NOW);
        let started: Vec<_> = std::iter::from_fn(|| views.start(&charge)).take(10).collect();
        assert_eq!(started.len(), count, "{balance}");
        drop(started);
        assert_eq!(views.start(&charge).is_some(), count > 0, "nothing is in flight any more");
    }
    let free = charge.with_price(Credits::ZERO);
    for (balance, starts) in [(0, false), (-1, false), (1, true)] {
        let views = seen(&free, receipt(&free, Credits::from_atoms(balance), RateLimits::NONE), NOW);
        assert_eq!(views.start(&free).is_some(), starts, "{balance}");
    }
}

#[test]
fn rate_limits_must_leave_room_for_other_nodes() {
    let charge = charge(new_key());
    let (per_minute, per_day) = (RateLimits::per_minute, RateLimits::per_day);
    // limit, how many requests start after the first one
    for (limit, count) in [(1, 0), (3, 0), (4, 1), (5, 1), (6, 2)] {
        for limits in [per_minute(limit), per_day(limit)] {
            let views = seen(&charge, receipt(&charge, Credits::from_whole(1).unwrap(), limits), NOW);
            let started: Vec<_> = std::iter::from_fn(|| views.start(&charge)).take(10).collect();
            assert_eq!(started.len(), count, "{limits:?}");
        }
    }
    // requests of 100 a minute that were accepted, whether one more starts
    for (used, starts) in [(89, true), (90, false)] {
        let mut receipt = receipt(&charge, Credits::from_whole(1).unwrap(), per_minute(100));
        receipt.rate.minute.count = used;
        assert_eq!(seen(&charge, receipt, NOW).start(&charge).is_some(), starts, "{used}");
    }
}

#[test]
fn key_may_start_only_what_it_was_accepted_for() {
    let known = charge(new_key()).with_address("203.0.113.7".parse::<IpAddr>().unwrap());
    let views = seen(&known, rich(&known), NOW);
    assert!(views.start(&known).is_some());
    let other_line = UsageLine { route_template: "/y".into(), ..known.line.clone() };
    let other_method = UsageLine { http_method: "POST".into(), ..known.line.clone() };
    let others = [
        known.clone().with_line(other_line.clone()),
        known.clone().with_line(other_method),
        known.clone().with_address("203.0.113.8".parse::<IpAddr>().unwrap()),
        known.clone().with_address(None::<IpAddr>),
        known.clone().with_request_id(crate::RequestId::parse("order-17").unwrap()),
        Charge { key: new_key(), ..known.clone() },
    ];
    for other in others {
        assert!(views.start(&other).is_none(), "{other:?}");
    }
    // The charges that it was accepted for are kept next to later ones, as long as they are fresh.
    let other = known.clone().with_line(other_line);
    note(&views, &other, Decision::Accepted(rich(&other)), NOW);
    assert!(views.start(&known).is_some() && views.start(&other).is_some());
    let views = seen(&known, rich(&known), before_now(1_001));
    note(&views, &other, Decision::Accepted(rich(&other)), NOW);
    assert!(views.start(&known).is_none() && views.start(&other).is_some());
}

#[test]
fn view_is_dropped_by_a_refusal_and_by_a_failure_of_the_store() {
    let charge = charge(new_key());
    let views = seen(&charge, rich(&charge), NOW);
    note(&views, &charge, Decision::Refused(Refusal::UnknownKey), NOW);
    assert!(views.start(&charge).is_none());
    let views = seen(&charge, rich(&charge), NOW);
    views.clear();
    assert!(views.start(&charge).is_none());
}

#[test]
fn keys_with_a_limit_on_requests_in_flight_wait_for_the_decision() {
    let charge = charge(new_key());
    let views = seen(&charge, rich(&charge), NOW);
    let mut counted = rich(&charge);
    counted.slot = InFlight::default().enter(&counted.account, &[(KeyNumber::FIRST, 5)]);
    note(&views, &charge, Decision::Accepted(counted), NOW);
    assert!(views.start(&charge).is_none());
}

#[test]
fn requests_that_started_in_vain_are_counted() {
    let charge = charge(new_key());
    let views = seen(&charge, rich(&charge), NOW);
    let start = || views.start(&charge).unwrap();
    start().ended(&Ok(Outcome::Decided(Decision::Accepted(rich(&charge)))));
    start().ended(&Ok(Outcome::Decided(Decision::Refused(Refusal::UnknownKey))));
    start().ended(&Err(MeterError::Closed));
    drop(start());
    let counts = [&views.stats.refused_early, &views.stats.failed_early].map(|count| count.load(Ordering::Relaxed));
    assert_eq!(counts, [1, 1]);
    assert!(views.state().started.is_empty());
}

#[test]
fn memory_is_bounded() {
    let views = views();
    let first = charge(new_key());
    note(&views, &first, Decision::Accepted(rich(&first)), NOW);
    for path in 0..2 * MAX_USES {
        let other = UsageLine { route_template: path.to_string().into(), ..first.line.clone() };
        let other = first.clone().with_line(other);
        note(&views, &other, Decision::Accepted(rich(&other)), NOW);
    }
    assert_eq!(views.state().young[&first.key].uses.len(), MAX_USES);
    for number in 0..2 * GENERATION as u64 {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&number.to_be_bytes());
        let charge = Charge { key: KeyHash::from_bytes(bytes), ..first.clone() };
        note(&views, &charge, Decision::Accepted(rich(&charge)), NOW);
    }
    let state = views.state();
    assert!(state.young.len() <= GENERATION && state.old.len() <= GENERATION);
    assert!(!state.young.contains_key(&first.key) && !state.old.contains_key(&first.key));
}
