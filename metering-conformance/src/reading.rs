//! Compares everything that can be read from a store with the [`Model`].

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use metering_core::access::{Account, KeyHash, KeyNumber};
use metering_core::clock::{Day, Timestamp};
use metering_core::money::LedgerEntry;
use metering_core::store::FullStore;
use metering_core::usage::{
    ActivityKind, DayRange, DayUsage, EndpointUsage, KeyLabel, KeyTotal, UsageLine, UsageReport,
};

use super::model::{Entry, Event, Model, Owner, credits};
use super::scene::{ALWAYS, all_daily_totals};

mod authorizations;
mod holds;
mod payments;
mod signups;

pub(super) use authorizations::authorizations_agree;
pub(super) use payments::payments_agree;
pub(super) use signups::signups_agree;

/// Compares every account with the model, including the exact text of its email, and expects that all totals add up.
pub(super) async fn accounts_agree(store: &dyn FullStore, model: &Model) {
    let page = store.accounts(None, u32::MAX).await.unwrap();
    assert_eq!(page.next, None, "there is no next page");
    let expected: Vec<Account> = model.owners.iter().map(Owner::account).collect();
    assert_eq!(page.items, expected, "the accounts");
    let emails = |accounts: &[Account]| -> Vec<Option<String>> {
        accounts.iter().map(|account| account.email.as_ref().map(|email| email.as_str().to_owned())).collect()
    };
    assert_eq!(emails(&page.items), emails(&expected), "emails are stored as given");
    let verification = store.verify().await.unwrap();
    assert_eq!(verification.discrepancies, [], "all totals add up");
    assert_eq!(verification.restarted_budgets, model.restarted_budgets(), "and all budgets, but after steps back");
    assert_eq!(verification.accounts, u64::try_from(model.owners.len()).unwrap());
}

/// Compares keys, ledger, daily totals, and each account's reports and activity.
pub(super) async fn everything_agrees(store: &dyn FullStore, model: &Model, keys: &[KeyHash], now: Timestamp) {
    let is_live = |key: &KeyHash| model.owners.iter().any(|owner| owner.is_live_key(*key, now));
    let live: Vec<bool> = keys.iter().map(is_live).collect();
    assert_eq!(store.live_keys(keys, now).await.unwrap(), live, "which keys are live");
    for key in keys {
        let expected = model.owner_of(*key).map(Owner::account);
        assert_eq!(store.account_by_key(key).await.unwrap(), expected, "the account of a key");
    }
    ledger_agrees(store, model).await;
    daily_totals_agree(store, model).await;
    for owner in &model.owners {
        assert_eq!(store.account(&owner.made.id).await.unwrap(), Some(owner.account()));
        for range in [ALWAYS, DayRange::last_days(now, 1), DayRange::last_days(now, 3)] {
            report_agrees(store, owner, range).await;
        }
        activity_agrees(store, owner).await;
        keys_agree(store, owner, now).await;
        let volumes: Vec<_> = owner.volumes.iter().map(|(route, counted)| (route.clone(), counted.volume())).collect();
        assert_eq!(store.volumes(&owner.made.id).await.unwrap(), volumes, "the counts of routes with volume tiers");
    }
    holds::holds_agree(store, model, now).await;
    events_agree(store, model).await;
}

/// Compares which events every account got, and when.
async fn events_agree(store: &dyn FullStore, model: &Model) {
    for owner in &model.owners {
        let page = store.events(&owner.made.id, None, u32::MAX).await.unwrap();
        assert_eq!(page.next, None, "there is no next page");
        let reported: Vec<_> = page.items.iter().rev().map(|event| (event.kind, event.created_at)).collect();
        assert_eq!(reported, owner.reported, "the events of an account");
    }
}

async fn keys_agree(store: &dyn FullStore, owner: &Owner, now: Timestamp) {
    let statuses: Vec<_> = owner.issued.iter().map(|issued| owner.status(issued, now.day())).collect();
    for status in &statuses {
        let found = store.key(&owner.made.id, &status.key.id, now.day()).await.unwrap();
        assert_eq!(found.as_ref(), Some(status), "a key");
    }
    let listed = store.keys(&owner.made.id, None, u32::MAX, now.day()).await.unwrap();
    let expected: Vec<_> = statuses.iter().filter(|status| status.key.revoked_at.is_none()).cloned().collect();
    assert_eq!((listed.items, listed.next), (expected, None), "the keys that are not revoked");
    let labels: Vec<_> = statuses.iter().map(|status| KeyLabel::of(&status.key)).collect();
    assert_eq!(store.key_labels(&owner.made.id).await.unwrap(), labels, "the names of all keys");
}

async fn ledger_agrees(store: &dyn FullStore, model: &Model) {
    let written = store.ledger(None, u32::MAX).await.unwrap().items;
    assert!(written.windows(2).all(|pair| pair[0].id < pair[1].id), "ledger numbers increase");
    let found = written.into_iter().map(|entry| {
        let LedgerEntry { id: _, account, kind, amount, description, payment, created_at } = entry;
        (account, Entry { kind, atoms: i128::from(amount.atoms()), description, payment, at: created_at })
    });
    let expected = model.ledger.iter().map(|(owner, entry)| (model.id(*owner), entry.clone()));
    assert_eq!(found.collect::<Vec<_>>(), expected.collect::<Vec<_>>(), "the ledger");
    let written = store.ledger(None, u32::MAX).await.unwrap().items;
    for owner in &model.owners {
        let own = store.account_ledger(&owner.made.id, None, u32::MAX).await.unwrap().items;
        assert!(own.iter().eq(written.iter().filter(|entry| entry.account == owner.made.id)), "an account's ledger");
    }
}

/// Calls and atoms of some events.
fn sums<'a, K: Ord>(events: impl Iterator<Item = &'a Event>, key: impl Fn(&Event) -> K) -> BTreeMap<K, (u64, i128)> {
    let mut sums = BTreeMap::new();
    for event in events {
        let sum: &mut (u64, i128) = sums.entry(key(event)).or_default();
        sum.0 += u64::from(event.kind != ActivityKind::UsageRefund);
        sum.1 += event.used;
    }
    sums
}

async fn daily_totals_agree(store: &dyn FullStore, model: &Model) {
    let totals = all_daily_totals(store).await;
    assert!(totals.windows(2).all(|pair| pair[0].day <= pair[1].day), "days in ascending order");
    let mut expected = BTreeMap::new();
    for owner in &model.owners {
        for ((day, line, key), sum) in
            sums(owner.usage.iter(), |event| (event.booked_on, event.line.clone(), event.key))
        {
            expected.insert((owner.made.id.clone(), day, line, key), sum);
        }
    }
    let count = totals.len();
    let found: BTreeMap<_, _> = totals
        .into_iter()
        .map(|total| {
            ((total.account, total.day, total.line, total.key), (total.calls, i128::from(total.credits_used.atoms())))
        })
        .collect();
    assert_eq!(found.len(), count, "each row is listed once");
    assert_eq!(found, expected, "the daily totals");
    for owner in &model.owners {
        let listed = store.account_daily_totals(&owner.made.id, ALWAYS).await.unwrap();
        let found = listed.into_iter().map(|total| {
            ((total.account, total.day, total.line, total.key), (total.calls, i128::from(total.credits_used.atoms())))
        });
        let own = expected.iter().filter(|((account, ..), _)| *account == owner.made.id);
        assert!(found.eq(own.map(|(key, sum)| (key.clone(), *sum))), "an account's daily totals");
    }
}

async fn report_agrees(store: &dyn FullStore, owner: &Owner, range: DayRange) {
    let entries = owner.entries.iter().filter(|entry| range.contains(entry.at.day()));
    let added: i128 = entries.map(|entry| entry.atoms).sum();
    let result = store.usage_report(&owner.made.id, range).await;
    if i64::try_from(added).is_err() {
        assert!(result.is_err(), "{added} atoms are out of range");
        return;
    }
    let events = || owner.usage.iter().filter(|event| range.contains(event.booked_on));
    let days: BTreeMap<Day, (u64, i128)> = sums(events(), |event| event.booked_on);
    let by_day = days.into_iter().rev().map(|(day, (usage_events, used))| DayUsage {
        day,
        usage_events,
        credits_used: credits(used),
    });
    let routes: BTreeMap<(Arc<str>, Arc<str>), (u64, i128)> =
        sums(events(), |event| (event.line.route_template.clone(), event.line.http_method.clone()));
    let mut routes: Vec<_> = routes.into_iter().collect();
    routes.sort_by_key(|(route, (calls, used))| (Reverse(*used), Reverse(*calls), route.clone()));
    let by_endpoint = routes.into_iter().map(|((route_template, http_method), (call_count, used))| EndpointUsage {
        route_template,
        http_method,
        call_count,
        credits_used: credits(used),
    });
    let mut by_key: Vec<KeyTotal> = sums(events(), |event| event.key)
        .into_iter()
        .map(|(key, (call_count, used))| KeyTotal { key, call_count, credits_used: credits(used) })
        .collect();
    by_key.sort_by_key(|total| (Reverse(total.credits_used), total.key));
    let expected = UsageReport {
        account: owner.account(),
        by_day: by_day.collect(),
        by_endpoint: by_endpoint.collect(),
        by_key,
        credits_added: credits(added),
    };
    assert_eq!(result.unwrap(), Some(expected), "the report of {range:?}");
}

/// The part of activity that does not depend on how requests share entries: calls and atoms by time, kind and line.
type Shares = BTreeMap<(Timestamp, &'static str, Option<UsageLine>, Option<KeyNumber>), (u64, i128)>;

async fn activity_agrees(store: &dyn FullStore, owner: &Owner) {
    // Sequences are too short for a store to delete any of their activity.
    let entries = store.activity(&owner.made.id, u32::MAX).await.unwrap();
    let ids: HashSet<&str> = entries.iter().map(|entry| entry.id.as_str()).collect();
    assert_eq!(ids.len(), entries.len(), "ids are unique");
    let mut found = Shares::new();
    for entry in &entries {
        let share = found.entry((entry.created_at, entry.kind.as_str(), entry.line.clone(), entry.key)).or_default();
        share.0 += entry.calls;
        share.1 += i128::from(entry.amount.atoms());
    }
    let mut expected = Shares::new();
    for event in &owner.usage {
        let share =
            expected.entry((event.at, event.kind.as_str(), Some(event.line.clone()), Some(event.key))).or_default();
        share.0 += 1;
        share.1 -= event.used;
    }
    for entry in &owner.entries {
        let share = expected.entry((entry.at, entry.kind.as_str(), None, None)).or_default();
        share.1 += entry.atoms;
    }
    assert_eq!(found, expected, "the activity");
    let ledger = entries.iter().rev().filter(|entry| entry.line.is_none());
    let payments: Vec<_> = ledger.map(|entry| entry.payment.as_ref()).collect();
    let expected: Vec<_> = owner.entries.iter().map(|entry| entry.payment.as_ref()).collect();
    assert_eq!(payments, expected, "each ledger entry has its own activity entry, with its payment");
}
