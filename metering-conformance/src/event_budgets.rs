//! Contracts for alerts of budgets: one event of each level in a period, for the key and for each of its parent keys.

use std::sync::Arc;

use metering_core::Refusal;
use metering_core::access::{AccountId, BudgetReset, KeyTerms};
use metering_core::charging::HoldAction;
use metering_core::events::Event;
use metering_core::events::EventKind::{BalanceLow, BudgetExhausted, KeyCreated};
use metering_core::store::{EventStore, Store, TermsChange};

use super::event_scene::{events, newest};
use super::hold_scene::{act, capture, hold, open};
use super::key_scene::{Issued, budget, caller, change, change_at, first, issue, manager, spent, status};
use super::races::all_at_once;
use super::scene::{
    BASE, Customer, DAY, NOON, Verified, accepted, account, atoms, balance, charge, commit, commit_refund, customer,
    refused,
};

const PLENTY: i64 = 1_000_000 * BASE;

fn terms(limit: i64, reset: Option<BudgetReset>, alert_below: Option<i64>) -> KeyTerms {
    KeyTerms { budget: budget(limit, reset), alert_below: alert_below.map(atoms), ..caller() }
}

fn alert_below(threshold: Option<i64>) -> TermsChange {
    TermsChange { alert_below: Some(threshold.map(atoms)), ..TermsChange::default() }
}

/// The alerts of an account: all events that are not of keys.
async fn alerts(store: &dyn EventStore, account: &AccountId) -> Vec<Event> {
    events(store, account).await.into_iter().filter(|event| event.kind != KeyCreated).collect()
}

/// The names of the keys in the alerts of an account, and `low` or `exhausted` for each.
async fn reported(store: &dyn EventStore, account: &AccountId) -> Vec<(String, &'static str)> {
    let alerts = alerts(store, account).await.into_iter().map(|event| {
        let level = match event.kind {
            BalanceLow => "low",
            BudgetExhausted => "exhausted",
            other => panic!("{other} is not an event of a budget"),
        };
        let data: serde_json::Value = serde_json::from_str(&event.data).unwrap();
        (data["key_name"].as_str().expect("it names a key").to_owned(), level)
    });
    alerts.collect()
}

/// The number of events for low budgets, and for exhausted ones.
async fn count(store: &dyn EventStore, account: &AccountId) -> (usize, usize) {
    let reported = reported(store, account).await;
    let of = |wanted| reported.iter().filter(|(_, level)| *level == wanted).count();
    (of("low"), of("exhausted"))
}

async fn charged(store: &dyn Store, key: &Issued, price: i64) {
    accepted(store, charge(key.secret, price), NOON).await;
}

/// The threshold is stored when a key is created or changed, is read with the key, and is removed with the budget.
pub async fn a_budgets_threshold_is_stored_with_its_key(store: Arc<dyn EventStore>) {
    let customer = customer(&*store, 10).await;
    let key = issue(&*store, &customer.id, None, terms(100, None, Some(i64::MAX))).await;
    let read = async || status(&*store, &customer.id, &key.id, NOON).await.key.terms.alert_below;
    assert_eq!(read().await, Some(atoms(i64::MAX)));
    for threshold in [Some(3), None, Some(0), Some(50)] {
        let after = change(&*store, &customer.id, &key.id, alert_below(threshold)).await;
        assert_eq!(after.terms.alert_below, threshold.map(atoms));
        assert_eq!(read().await, threshold.map(atoms));
    }
    change(&*store, &customer.id, &key.id, TermsChange { limit: Some(None), ..TermsChange::default() }).await;
    assert_eq!(read().await, None, "without a budget, nothing remains of it");
    let first = first(&*store, &customer).await;
    assert_eq!(status(&*store, &customer.id, &first.id, NOON).await.key.terms.alert_below, None);
    assert_eq!(reported(&*store, &customer.id).await, []);
}

/// A budget below its threshold raises one event, and another one when nothing remains of it.
pub async fn a_budget_is_told_low_and_exhausted_once(store: Verified<dyn EventStore>) {
    let customer = customer(&*store, PLENTY).await;
    let key = issue(&*store, &customer.id, None, terms(100, Some(BudgetReset::Monthly), Some(50))).await;
    charged(&*store, &key, 50).await;
    assert_eq!(alerts(&*store, &customer.id).await, [], "what remains is at the threshold, not below");
    charged(&*store, &key, 1).await;
    let said = |remaining: i64, more: &str| {
        format!(
            r#"{{"org_id":"{}","key_id":"{}","key_name":"caller","limit":{},"limit_remaining":{},"limit_reset":"monthly","limit_resets_at":"2026-12-01T00:00:00.000Z"{more}}}"#,
            customer.id,
            key.id,
            atoms(100),
            atoms(remaining),
        )
    };
    let threshold = format!(r#","threshold":{}"#, atoms(50));
    assert_eq!(newest(&*store, &customer.id).await, said(49, &threshold));
    assert_eq!(count(&*store, &customer.id).await, (1, 0));
    let receipt = accepted(&*store, charge(key.secret, 40), NOON).await;
    commit_refund(&*store, receipt.into_refund().unwrap(), NOON).await;
    commit(&*store, vec![charge(key.secret, 20), charge(key.secret, 29), charge(key.secret, 0)], NOON).await;
    assert_eq!(newest(&*store, &customer.id).await, said(0, ""));
    for price in [1, 0, 5] {
        commit(&*store, vec![charge(key.secret, price)], NOON).await;
    }
    assert_eq!(count(&*store, &customer.id).await, (1, 1));
}

/// Requests that a budget refuses raise one event in a period. They cost nothing, and cheaper ones are still accepted.
pub async fn a_refusal_by_a_budget_is_told_once(store: Verified<dyn EventStore>) {
    let customer = customer(&*store, PLENTY).await;
    let key = issue(&*store, &customer.id, None, terms(100, Some(BudgetReset::Daily), Some(20))).await;
    charged(&*store, &key, 60).await;
    let before = account(&*store, &customer.id).await;
    let activity = store.activity(&customer.id, 100).await.unwrap();
    let refusal = refused(&*store, charge(key.secret, 41), NOON).await;
    assert!(matches!(refusal, Refusal::KeyBudget { .. }), "{refusal:?}");
    assert_eq!(reported(&*store, &customer.id).await, [("caller".to_owned(), "exhausted")], "40 is not below 20");
    let remaining = format!(r#""limit_remaining":{}"#, atoms(40));
    assert!(newest(&*store, &customer.id).await.contains(&remaining));
    for _ in 0..3 {
        refused(&*store, charge(key.secret, 41), NOON).await;
        refused(&*store, hold(key.secret, 100), NOON).await;
    }
    commit(&*store, vec![charge(key.secret, 50), charge(key.secret, 41)], NOON).await;
    assert_eq!(count(&*store, &customer.id).await, (0, 1));
    assert_eq!(account(&*store, &customer.id).await, before);
    assert_eq!(store.activity(&customer.id, 100).await.unwrap(), activity);
    assert_eq!(spent(&*store, &customer.id, &key.id).await, 60);
    charged(&*store, &key, 40).await;
    assert_eq!(count(&*store, &customer.id).await, (1, 2), "now nothing remains");
}

/// A new period arms the alerts again, for charges and for refusals.
pub async fn a_new_period_tells_a_budget_again(store: Verified<dyn EventStore>) {
    let customer = customer(&*store, PLENTY).await;
    let key = issue(&*store, &customer.id, None, terms(100, Some(BudgetReset::Daily), Some(50))).await;
    for day in 0..3 {
        let now = NOON.saturating_add(DAY * day);
        accepted(&*store, charge(key.secret, 60), now).await;
        refused(&*store, charge(key.secret, 60), now).await;
        refused(&*store, charge(key.secret, 60), now).await;
        let days = usize::try_from(day).unwrap() + 1;
        assert_eq!(count(&*store, &customer.id).await, (days, days), "on day {day}");
    }
    let dear = |day: u32| refused(&*store, charge(key.secret, 101), NOON.saturating_add(DAY * day));
    dear(3).await;
    dear(3).await;
    assert_eq!(count(&*store, &customer.id).await, (3, 4), "the first request of a day");
    let spent = status(&*store, &customer.id, &key.id, NOON.saturating_add(DAY * 3)).await.spent.unwrap();
    assert_eq!(spent.amount, atoms(0));
    dear(0).await;
    assert_eq!(count(&*store, &customer.id).await, (3, 4), "a clock that is days behind tells nothing");
    accepted(&*store, charge(key.secret, 100), NOON.saturating_add(DAY * 3)).await;
    assert_eq!(count(&*store, &customer.id).await, (4, 5), "now nothing remains");
}

/// A request counts towards its key and the parent keys, and each has the alerts of its own budget.
pub async fn keys_above_are_told_too(store: Verified<dyn EventStore>) {
    let customer = customer(&*store, PLENTY).await;
    let above = KeyTerms { budget: budget(100, None), alert_below: Some(atoms(70)), ..manager() };
    let above = issue(&*store, &customer.id, None, above).await;
    let [one, two] = [
        issue(&*store, &customer.id, Some(&above), terms(40, None, Some(30))).await,
        issue(&*store, &customer.id, Some(&above), terms(90, None, None)).await,
    ];
    let pairs = |reported: &[(&str, &'static str)]| {
        reported.iter().map(|(name, level)| ((*name).to_owned(), *level)).collect::<Vec<_>>()
    };
    charged(&*store, &one, 40).await;
    let both = [("caller", "low"), ("caller", "exhausted"), ("manager", "low")];
    assert_eq!(reported(&*store, &customer.id).await, pairs(&both), "the key comes before its parents");
    refused(&*store, charge(two.secret, 61), NOON).await;
    let refused_above = [&both[..], &[("manager", "exhausted")]].concat();
    assert_eq!(reported(&*store, &customer.id).await, pairs(&refused_above), "the parent key refused");
    assert_eq!(spent(&*store, &customer.id, &two.id).await, 0);
    refused(&*store, charge(two.secret, 91), NOON).await;
    let all = [&refused_above[..], &[("caller", "exhausted")]].concat();
    assert_eq!(reported(&*store, &customer.id).await, pairs(&all), "the key itself refused");
}

/// A higher limit, or a lower threshold, arms the alert again. Removing a threshold raises nothing.
pub async fn a_raised_limit_arms_the_alert_again(store: Arc<dyn EventStore>) {
    let customer = customer(&*store, PLENTY).await;
    let key = issue(&*store, &customer.id, None, terms(100, None, Some(50))).await;
    charged(&*store, &key, 100).await;
    assert_eq!(count(&*store, &customer.id).await, (1, 1));
    let limit = |limit: i64| TermsChange { limit: Some(Some(atoms(limit))), ..TermsChange::default() };
    change(&*store, &customer.id, &key.id, limit(120)).await;
    charged(&*store, &key, 0).await;
    assert_eq!(count(&*store, &customer.id).await, (1, 1), "20 is still below the threshold");
    charged(&*store, &key, 20).await;
    assert_eq!(count(&*store, &customer.id).await, (1, 2));
    change(&*store, &customer.id, &key.id, limit(200)).await;
    charged(&*store, &key, 31).await;
    assert_eq!(count(&*store, &customer.id).await, (2, 2));
    change(&*store, &customer.id, &key.id, alert_below(Some(40))).await;
    charged(&*store, &key, 10).await;
    assert_eq!(count(&*store, &customer.id).await, (3, 2));
    change(&*store, &customer.id, &key.id, alert_below(None)).await;
    charged(&*store, &key, 38).await;
    assert_eq!(count(&*store, &customer.id).await, (3, 2));
    charged(&*store, &key, 1).await;
    assert_eq!(count(&*store, &customer.id).await, (3, 3));
}

/// A threshold that is set while a hold is open raises one event when the hold is settled.
pub async fn a_settled_hold_tells_its_keys_new_threshold_once(store: Verified<dyn EventStore>) {
    let customer = customer(&*store, PLENTY).await;
    let key = issue(&*store, &customer.id, None, terms(100, None, None)).await;
    let ids = [open(&*store, key.secret, 60).await, open(&*store, key.secret, 10).await];
    change(&*store, &customer.id, &key.id, alert_below(Some(50))).await;
    act(&*store, &customer.id, ids[0], capture(60), NOON).await;
    assert_eq!(count(&*store, &customer.id).await, (1, 0), "the whole hold was captured");
    act(&*store, &customer.id, ids[1], capture(10), NOON).await;
    charged(&*store, &key, 1).await;
    assert_eq!(count(&*store, &customer.id).await, (1, 0));
    let id = open(&*store, key.secret, 29).await;
    assert_eq!(count(&*store, &customer.id).await, (1, 0), "most of what is held may return");
    act(&*store, &customer.id, id, HoldAction::Release, NOON).await;
    charged(&*store, &key, 29).await;
    assert_eq!(count(&*store, &customer.id).await, (1, 1));
}

/// Refunds and settlements that arrive after a new period has begun raise no alerts for the old one.
pub async fn an_ended_period_tells_nothing(store: Verified<dyn EventStore>) {
    let customer = customer(&*store, PLENTY).await;
    let key = issue(&*store, &customer.id, None, terms(100, Some(BudgetReset::Daily), None)).await;
    let receipt = accepted(&*store, charge(key.secret, 10), NOON).await;
    let id = open(&*store, key.secret, 80).await;
    let tomorrow = NOON.saturating_add(DAY);
    change_at(&*store, &customer.id, &key.id, alert_below(Some(50)), tomorrow).await;
    commit_refund(&*store, receipt.into_refund().unwrap(), tomorrow).await;
    act(&*store, &customer.id, id, capture(80), tomorrow).await;
    assert_eq!(reported(&*store, &customer.id).await, []);
    accepted(&*store, charge(key.secret, 51), tomorrow).await;
    assert_eq!(count(&*store, &customer.id).await, (1, 0));
}

/// Of requests that race for a budget, one makes it low and one exhausts it.
pub async fn racing_requests_tell_a_budget_once(store: Verified<dyn EventStore>) {
    let customer = customer(&*store, PLENTY).await;
    let key = issue(&*store, &customer.id, None, terms(30, None, Some(20))).await;
    let charges: Arc<dyn Store> = Arc::clone(&store) as _;
    all_at_once(&charges, vec![charge(key.secret, 1); 64]).await;
    assert_eq!(balance(&*store, &customer.id).await, PLENTY - 30);
    let reported = reported(&*store, &customer.id).await;
    assert_eq!(reported, [("caller".to_owned(), "low"), ("caller".to_owned(), "exhausted")]);
}

/// The first key of an account has a budget only if it is given one, and then has events like any other.
pub async fn a_first_keys_budget_is_told(store: Arc<dyn EventStore>) {
    let customer: Customer = customer(&*store, PLENTY).await;
    let first = first(&*store, &customer).await;
    charged(&*store, &first, 30).await;
    let terms = TermsChange { limit: Some(Some(atoms(100))), ..alert_below(Some(75)) };
    change(&*store, &customer.id, &first.id, terms).await;
    assert_eq!(count(&*store, &customer.id).await, (0, 0), "a change alone tells nothing");
    charged(&*store, &first, 0).await;
    assert_eq!(count(&*store, &customer.id).await, (1, 0), "what was spent before counts");
}
