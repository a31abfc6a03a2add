//! Contracts for the lists of operators, newest first, and for the accounts that run out.

use std::sync::Arc;

use metering_core::SystemRandomness;
use metering_core::access::{AccountId, KeyHash, KeyId, KeyNumber};
use metering_core::charging::HoldId;
use metering_core::clock::Timestamp;
use metering_core::operators::{AccountFilter, AccountState, Period};
use metering_core::store::{Cursor, NewAccount, OperatorStore, Store, StoreError};
use metering_core::usage::DayRange;

use super::scene::{
    BASE, DAY, MINUTE, NOON, accepted, account, adjustment, atoms, charge, create, customer, new_account, new_id,
    new_key, paged, post,
};

/// All accounts that match, in pages of `limit`.
async fn listed(store: &dyn OperatorStore, filter: &AccountFilter, limit: u32) -> Vec<AccountId> {
    let found = paged(limit, async |after, limit| store.newest_accounts(filter, after, limit).await).await;
    found.into_iter().map(|account| account.id).collect()
}

async fn named(store: &dyn Store, name: &str, created_at: Timestamp) -> AccountId {
    create(store, NewAccount { agent_name: name.parse().unwrap(), created_at, ..new_account() }).await.id
}

/// Accounts are listed in the reverse order of creation, regardless of their times, with any page size.
pub async fn newest_accounts_are_first(store: Arc<dyn OperatorStore>) {
    assert_eq!(listed(&*store, &AccountFilter::default(), 5).await, []);
    let mut ids = Vec::new();
    for number in 0..7_u32 {
        ids.push(named(&*store, "agent", NOON.saturating_sub(MINUTE * number)).await);
    }
    ids.reverse();
    for limit in [1, 2, 6, 7, 8] {
        assert_eq!(listed(&*store, &AccountFilter::default(), limit).await, ids, "pages of {limit}");
    }
    let unknown = store.newest_accounts(&AccountFilter::default(), Some(&Cursor::new("x")), 5).await;
    assert!(matches!(unknown, Err(StoreError::UnknownCursor)), "{unknown:?}");
}

/// A filter leaves out accounts by the beginning of their name in any case, by their day and by their state.
pub async fn newest_accounts_are_filtered(store: Arc<dyn OperatorStore>) {
    let yesterday = NOON.saturating_sub(DAY);
    let first = named(&*store, "Bot_one", yesterday).await;
    let second = named(&*store, "bot-two", NOON).await;
    let third = named(&*store, "robot", NOON).await;
    store.revoke_account(&second, NOON).await.unwrap();
    let prefix = |text: &str| AccountFilter { name_prefix: Some(text.to_owned()), ..AccountFilter::default() };
    let created = |from, until| AccountFilter { created: Period { from, until }, ..AccountFilter::default() };
    let state = |state| AccountFilter { state: Some(state), ..AccountFilter::default() };
    let (one, two, three) = (&first, &second, &third);
    let table = [
        (prefix("BOT"), vec![two, one]),
        (prefix("bot_"), vec![one]),
        (prefix("bo%"), vec![]),
        (prefix(""), vec![three, two, one]),
        (created(Some(NOON), None), vec![three, two]),
        (created(None, Some(NOON)), vec![one]),
        (created(Some(yesterday), Some(NOON)), vec![one]),
        (state(AccountState::Active), vec![three, one]),
        (state(AccountState::Revoked), vec![two]),
        (AccountFilter { state: Some(AccountState::Active), ..prefix("bot") }, vec![one]),
    ];
    for (filter, expected) in table {
        let expected: Vec<AccountId> = expected.into_iter().cloned().collect();
        for limit in [1, 5] {
            assert_eq!(listed(&*store, &filter, limit).await, expected, "{filter:?}");
        }
    }
}

/// The ledger of an account is listed newest first, without that of others, and by the time of writing.
pub async fn newest_entries_are_first(store: Arc<dyn OperatorStore>) {
    let (one, other) = (customer(&*store, 1).await, customer(&*store, 1).await);
    for number in 1..=4_u32 {
        let now = NOON.saturating_add(DAY * number);
        post(&*store, &one.id, adjustment(number.into()), now).await;
        post(&*store, &other.id, adjustment(100), now).await;
    }
    let mut newest = store.account_ledger(&one.id, None, 100).await.unwrap().items;
    newest.reverse();
    assert_eq!(newest.len(), 5);
    for limit in [1, 2, 5, 6] {
        let (mut entries, mut after) = (Vec::new(), None::<Cursor>);
        loop {
            let page = store.newest_entries(&one.id, Period::default(), after.as_ref(), limit).await.unwrap();
            assert_eq!(page.next.as_ref().map(Cursor::as_str).is_some(), entries.len() + page.items.len() < 5);
            entries.extend(page.items);
            match entries.last().filter(|_| page.next.is_some()) {
                Some(last) => after = Some(Cursor::new(last.id.to_string())),
                None => break,
            }
        }
        assert_eq!(entries, newest, "pages of {limit}");
    }
    let second_day = NOON.saturating_add(DAY * 2).day();
    let written = Period::of_days(Some(second_day), Some(second_day));
    let page = store.newest_entries(&one.id, written, None, 10).await.unwrap();
    assert_eq!(page.items.iter().map(|entry| entry.amount).collect::<Vec<_>>(), [atoms(2)]);
    assert_eq!(store.newest_entries(&new_id(), Period::default(), None, 10).await.unwrap().items, []);
}

/// A key of any account is found by its id alone, even after it is revoked.
pub async fn a_key_is_found_by_its_id(store: Arc<dyn OperatorStore>) {
    let (one, other) = (customer(&*store, 1).await, customer(&*store, 1).await);
    for customer in [&one, &other] {
        let first = store.keys(&customer.id, None, 1, NOON.day()).await.unwrap().items.remove(0).key;
        let found = store.key_of_any_account(&first.id).await.unwrap().expect("the key exists");
        assert_eq!((&found.account, &found), (&customer.id, &first));
    }
    let unknown = KeyId::of_first(&new_key());
    assert_eq!(store.key_of_any_account(&unknown).await.unwrap(), None);
}

/// The id of a charged request has the beginning of its key's hash, and its time is that of the commit, which recent
/// activity has too. The key is found also once its secret is revoked.
pub async fn a_request_id_names_the_key_that_paid(store: Arc<dyn OperatorStore>) {
    let (one, other) = (customer(&*store, 100).await, customer(&*store, 100).await);
    let request = HoldId::at(NOON, &SystemRandomness);
    let id = |key: &KeyHash| request.of_charge(key, "/price", NOON, true);
    for customer in [&one, &other] {
        let found = store.keys_of_request(&id(&customer.key)).await.unwrap();
        assert_eq!(found, [(customer.id.clone(), KeyNumber::FIRST)]);
    }
    for unknown in [request, id(&new_key())] {
        assert_eq!(store.keys_of_request(&unknown).await.unwrap(), []);
    }
    let charged = charge(one.key, 7);
    let route = charged.line.route_template.clone();
    let at = accepted(&*store, charged, NOON.saturating_add(MINUTE)).await.rate.at;
    let named = request.of_charge(&one.key, &route, at, true);
    let entry = store.activity(&one.id, 1).await.unwrap().remove(0);
    assert!(named.may_be_of(&route, entry.created_at), "{at} {}", entry.created_at);
    store.replace_key(&one.id, new_key(), NOON.saturating_add(DAY)).await.unwrap();
    assert_eq!(store.keys_of_request(&id(&one.key)).await.unwrap(), [(one.id, KeyNumber::FIRST)]);
}

/// Accounts run out that used at least what they have left, in those days; the first to run out is first.
pub async fn accounts_that_run_out_are_listed(store: Arc<dyn OperatorStore>) {
    let week = DayRange::last_days(NOON, 7);
    assert_eq!(store.accounts_running_out(week, 20).await.unwrap(), []);
    // granted, used, when
    let long_ago = NOON.saturating_sub(DAY * 7);
    let table = [(10, 5, NOON), (10, 9, NOON), (10, 4, NOON), (10, 10, NOON), (10, 9, long_ago), (10, 0, NOON)];
    let mut ids = Vec::new();
    for (granted, used, now) in table {
        let customer = customer(&*store, granted * BASE).await;
        if used > 0 {
            accepted(&*store, charge(customer.key, used * BASE), now).await;
        }
        ids.push(customer.id);
    }
    let runways = store.accounts_running_out(week, 20).await.unwrap();
    let found: Vec<&AccountId> = runways.iter().map(|runway| &runway.account).collect();
    assert_eq!(found, [&ids[1], &ids[0]], "the others last longer, or have nothing left");
    assert_eq!((runways[0].balance, runways[0].used), (atoms(BASE), atoms(9 * BASE)));
    assert_eq!(store.accounts_running_out(week, 1).await.unwrap(), runways[..1]);
    store.revoke_account(&ids[1], NOON).await.unwrap();
    assert!(account(&*store, &ids[1]).await.revoked_at.is_some());
    assert_eq!(store.accounts_running_out(week, 20).await.unwrap(), runways[1..]);
}
