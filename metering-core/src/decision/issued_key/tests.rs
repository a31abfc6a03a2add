//! Tables of refusals, and of the rows that a change writes.

mod revocations;

use std::time::Duration;

use super::super::scene::{KEY, NOW, account, first_key, revoked};
use super::*;
use crate::access::account::RateLimits;
use crate::access::budget::BudgetReset;
use crate::access::key_terms::WiderTerms;
use crate::access::scope::Scopes;

const SECRET: KeyHash = KeyHash::from_bytes([9; 32]);

fn atoms(atoms: i64) -> Credits {
    Credits::from_atoms(atoms)
}

fn budget(limit: i64, reset: Option<BudgetReset>) -> Option<Budget> {
    Some(Budget { limit: atoms(limit), reset })
}

/// A key with all scopes, numbered like its distance from the first key.
fn key(number: u32) -> Key {
    let name = format!("key {number}").parse().unwrap();
    let secret = KeyHash::from_bytes([u8::try_from(number).unwrap(); 32]);
    Key {
        id: KeyId::of_first(&secret),
        number: KeyNumber::new(number),
        parent: number.checked_sub(1).map(KeyNumber::new),
        terms: KeyTerms::new(name, Scopes::ALL),
        ..first_key()
    }
}

/// The keys from this one up to the first.
fn chain(number: u32) -> Vec<Key> {
    (0..=number).rev().map(key).collect()
}

fn new_key() -> NewKey {
    let terms = KeyTerms::new("new".parse().unwrap(), Scopes::default());
    NewKey { account: account().id, parent: Some(key(1).id), secret: SECRET, terms, max_keys: 9, created_at: NOW }
}

fn new_facts() -> NewKeyFacts<u8> {
    NewKeyFacts {
        account: Some((1, account())),
        parents: chain(1),
        owner_of_secret: None,
        count: 8,
        next: KeyNumber::new(12),
    }
}

fn change_facts(chain: Vec<Key>) -> KeyChangeFacts<u8> {
    let account = Some((1, account()));
    KeyChangeFacts { account, chain, meter: None, spent: Credits::ZERO, keys: Vec::new(), secret_in_use: false }
}

fn changed(
    facts: KeyChangeFacts<u8>,
    actor: Option<&KeyId>,
    change: TermsChange,
) -> Decided<KeyChangeWrites<u8>, KeyChanged> {
    change_key(facts, actor, KeyChange::Terms(Box::new(change)), NOW)
}

/// The write of a change that nothing refuses, and the numbers of the keys that are revoked with it.
fn written(decided: Decided<KeyChangeWrites<u8>, KeyChanged>) -> (KeyWrite<u8>, Vec<u32>) {
    let Decided::Accepted(KeyChangeWrites { key, below }) = decided else { panic!("refused: {decided:?}") };
    for write in &below {
        assert_eq!((write.key.revoked_at, write.old_secrets), (Some(NOW), OldSecrets::Revoke));
        assert_eq!((write.secret, write.meter, write.written_at), (None, MeterWrite::Keep, NOW));
    }
    (key, below.iter().map(|write| write.key.number.get()).collect())
}

fn with(mut keys: Vec<Key>, index: usize, change: impl FnOnce(&mut Key)) -> Vec<Key> {
    change(&mut keys[index]);
    keys
}

#[test]
fn a_new_key_is_refused_in_order() {
    let wide = KeyTerms { expires_at: Some(NOW.saturating_add(Duration::from_secs(1))), ..new_key().terms };
    let narrow = |keys| with(keys, 0, |key| key.terms.expires_at = Some(NOW.saturating_add(Duration::from_millis(1))));
    let all_wrong = NewKey { max_keys: 8, terms: wide, ..new_key() };
    let deep = || narrow(chain(7));
    // account, parents, request, refusal
    let table = [
        (None, Vec::new(), all_wrong.clone(), KeyCreated::NoSuchAccount),
        (Some((1, revoked())), deep(), all_wrong.clone(), KeyCreated::NoSuchAccount),
        (Some((1, account())), Vec::new(), all_wrong.clone(), KeyCreated::NoSuchParent),
        (
            Some((1, account())),
            with(deep(), 3, |key| key.terms.disabled = true),
            all_wrong.clone(),
            KeyCreated::NoSuchParent,
        ),
        (Some((1, account())), deep(), all_wrong.clone(), KeyCreated::TooDeep),
        (Some((1, account())), narrow(chain(6)), all_wrong.clone(), KeyCreated::TooMany),
        (
            Some((1, account())),
            narrow(chain(6)),
            NewKey { max_keys: 9, ..all_wrong },
            KeyCreated::Wider(WiderTerms::ExpiresAt),
        ),
    ];
    for (account, parents, new, expected) in table {
        let facts = NewKeyFacts { account, parents, ..new_facts() };
        assert_eq!(create_key(new, facts), Decided::Refused(expected));
    }
}

#[test]
fn a_parent_must_be_live_and_manage_all_the_way_up() {
    type Fault = fn(&mut Key);
    let faults: [Fault; 5] = [
        |key| key.terms.disabled = true,
        |key| key.leaked_at = Some(NOW),
        |key| key.revoked_at = Some(NOW),
        |key| key.terms.expires_at = Some(NOW),
        |key| key.terms.scopes = Scopes::default(),
    ];
    for fault in faults {
        for place in 0..3 {
            let facts = NewKeyFacts { parents: with(chain(2), place, fault), ..new_facts() };
            let refused = Decided::Refused(KeyCreated::NoSuchParent);
            assert_eq!(create_key(new_key(), facts), refused, "{place}");
        }
    }
    let leaked = NewKeyFacts { parents: with(chain(0), 0, |key| key.leaked_at = Some(NOW)), ..new_facts() };
    let by_operator = create_key(NewKey { parent: None, ..new_key() }, leaked);
    assert!(matches!(by_operator, Decided::Accepted(_)), "an operator needs no live key");
}

#[test]
fn a_repeated_creation_finds_its_key_and_another_secret_in_use_is_refused() {
    let decide = |owner| {
        create_key(NewKey { max_keys: 0, ..new_key() }, NewKeyFacts { owner_of_secret: Some(owner), ..new_facts() })
    };
    let made = Key { number: KeyNumber::new(3), ..key(2) };
    assert_eq!(decide(made.clone()), Decided::Refused(KeyCreated::Key(made.clone())));
    let others = [
        Key { parent: Some(KeyNumber::FIRST), ..made.clone() },
        Key { revoked_at: Some(NOW), ..made.clone() },
        Key { account: "org_yyyyyyyyyyyyyyyyyyyy".parse().unwrap(), ..made },
    ];
    for other in others {
        assert_eq!(decide(other), Decided::Refused(KeyCreated::SecretUsed));
    }
}

#[test]
fn a_new_key_is_counted_if_its_terms_need_it() {
    let day = NOW.day();
    let limits = RateLimits::per_minute(1);
    let spent = Spent { since: day, amount: Credits::ZERO };
    let table = [
        (None, RateLimits::NONE, MeterWrite::Keep),
        (None, limits, MeterWrite::Set(KeyMeter::default())),
        (budget(5, Some(BudgetReset::Daily)), limits, MeterWrite::Set(KeyMeter { spent, ..KeyMeter::default() })),
        (budget(5, None), RateLimits::NONE, MeterWrite::Set(KeyMeter::default())),
    ];
    for (budget, limits, expected) in table {
        let terms = KeyTerms { budget, limits, ..new_key().terms };
        let Decided::Accepted(write) = create_key(NewKey { terms, ..new_key() }, new_facts()) else {
            panic!("nothing refuses it")
        };
        assert_eq!((write.meter, write.secret, write.old_secrets), (expected, Some(SECRET), OldSecrets::Keep));
        assert_eq!(
            (write.key.number.get(), write.key.parent, write.key.id),
            (12, Some(KeyNumber::new(1)), KeyId::of_first(&SECRET),)
        );
    }
}

#[test]
fn a_change_is_refused_in_order() {
    let none = TermsChange::default;
    let all_wrong = TermsChange {
        scopes: Some(Scopes::default()),
        disabled: Some(false),
        limit_reset: Some(Some(BudgetReset::Daily)),
        max_in_flight: Some(9),
        ..none()
    };
    let leaked = |number| with(chain(number), 0, |key| key.leaked_at = Some(NOW));
    let limited = |keys| with(keys, 1, |key| key.terms.max_in_flight = 3);
    let table = [
        (Vec::new(), all_wrong.clone(), KeyChanged::NoSuchKey),
        (with(chain(2), 0, |key| key.revoked_at = Some(NOW)), all_wrong.clone(), KeyChanged::NoSuchKey),
        (leaked(0), all_wrong.clone(), KeyChanged::FirstKey),
        (limited(leaked(2)), all_wrong.clone(), KeyChanged::Leaked),
        (limited(chain(2)), all_wrong.clone(), KeyChanged::NoLimit),
        (
            limited(chain(2)),
            TermsChange { limit_reset: None, ..all_wrong.clone() },
            KeyChanged::Wider(WiderTerms::MaxInFlight),
        ),
    ];
    for (keys, change, expected) in table {
        assert_eq!(changed(change_facts(keys), None, change), Decided::Refused(expected));
    }
    let facts = KeyChangeFacts { account: Some((1, revoked())), ..change_facts(chain(2)) };
    assert_eq!(changed(facts, None, none()), Decided::Refused(KeyChanged::NoSuchKey));
    let facts = KeyChangeFacts { account: None, ..change_facts(chain(2)) };
    assert_eq!(changed(facts, None, none()), Decided::Refused(KeyChanged::NoSuchKey));
    let revoke = change_key(change_facts(chain(0)), None, KeyChange::Revoke, NOW);
    assert_eq!(revoke, Decided::Refused(KeyChanged::FirstKey));
}

#[test]
fn only_a_key_above_that_manages_keys_is_an_actor() {
    let may = |keys: Vec<Key>, actor: u32| {
        !matches!(changed(change_facts(keys), Some(&key(actor).id), TermsChange::default()), Decided::Refused(_))
    };
    assert_eq!([0, 1, 2, 3].map(|actor| may(chain(2), actor)), [true, true, true, false]);
    let disabled = || with(chain(2), 1, |key| key.terms.disabled = true);
    assert_eq!([0, 1, 2].map(|actor| may(disabled(), actor)), [true, false, false]);
    let callers = || with(chain(2), 1, |key| key.terms.scopes = Scopes::default());
    assert_eq!([0, 1, 2].map(|actor| may(callers(), actor)), [true, false, false]);
}

#[test]
fn a_key_may_only_narrow_itself() {
    let none = TermsChange::default;
    let facts = || {
        change_facts(with(chain(1), 0, |key| {
            key.terms.budget = budget(10, Some(BudgetReset::Daily));
            key.terms.limits = RateLimits::per_minute(2).and_per_day(20);
            key.terms.max_in_flight = 3;
        }))
    };
    let table = [
        (TermsChange { limit: Some(None), ..none() }, WiderTerms::Limit),
        (TermsChange { limit: Some(Some(atoms(11))), ..none() }, WiderTerms::Limit),
        (TermsChange { limit_reset: Some(None), ..none() }, WiderTerms::LimitReset),
        (TermsChange { limit_reset: Some(Some(BudgetReset::Weekly)), ..none() }, WiderTerms::LimitReset),
        (TermsChange { requests_per_minute: Some(0), ..none() }, WiderTerms::RequestsPerMinute),
        (TermsChange { requests_per_day: Some(0), ..none() }, WiderTerms::RequestsPerDay),
        (TermsChange { max_in_flight: Some(0), ..none() }, WiderTerms::MaxInFlight),
    ];
    for (change, wider) in table {
        let by_itself = changed(facts(), Some(&key(1).id), change.clone());
        assert_eq!(by_itself, Decided::Refused(KeyChanged::Wider(wider)), "{change:?}");
        let from_above = changed(facts(), Some(&key(0).id), change.clone());
        assert!(matches!(from_above, Decided::Accepted(_)), "{change:?}");
    }
    let narrower = TermsChange { limit: Some(Some(atoms(9))), requests_per_day: Some(1), ..none() };
    assert!(matches!(changed(facts(), Some(&key(1).id), narrower), Decided::Accepted(_)));
    let first = change_facts(with(chain(0), 0, |key| key.terms.budget = budget(10, None)));
    let removed = TermsChange { limit: Some(None), ..none() };
    assert!(matches!(changed(first, Some(&key(0).id), removed), Decided::Accepted(_)), "the first key has no parent");
}

#[test]
fn a_meter_follows_its_terms() {
    let limits = RateLimits::per_minute(1);
    let daily = Some(BudgetReset::Daily);
    let meter = KeyMeter { spent: Spent { since: NOW.day().minus_days(1), amount: atoms(4) }, ..KeyMeter::default() };
    let restarted = |since| MeterWrite::Set(KeyMeter { spent: Spent { since, amount: atoms(7) }, ..meter });
    let set = |limit: Option<i64>, reset| TermsChange {
        limit: Some(limit.map(atoms)),
        limit_reset: Some(reset),
        ..TermsChange::default()
    };
    let (epoch, today) = (Day::from_unix_days(0), NOW.day());
    // budget before, limits, meter, change, meter after
    let table = [
        (None, RateLimits::NONE, None, TermsChange::default(), MeterWrite::Keep),
        (None, RateLimits::NONE, None, set(Some(9), None), restarted(epoch)),
        (None, limits, Some(meter), set(Some(9), daily), restarted(today)),
        (budget(5, daily), limits, Some(meter), set(Some(9), daily), MeterWrite::Keep),
        (budget(5, daily), limits, Some(meter), set(Some(9), None), restarted(epoch)),
        (budget(5, daily), RateLimits::NONE, Some(meter), set(None, None), MeterWrite::Remove),
        (
            budget(5, daily),
            limits,
            Some(meter),
            set(None, None),
            MeterWrite::Set(KeyMeter { spent: Spent::default(), ..meter }),
        ),
    ];
    for (budget, limits, meter, change, expected) in table {
        let keys = with(chain(1), 0, |key| (key.terms.budget, key.terms.limits) = (budget, limits));
        let facts = KeyChangeFacts { meter, spent: atoms(7), ..change_facts(keys) };
        let (write, _) = written(changed(facts, None, change.clone()));
        assert_eq!(write.meter, expected, "{budget:?} {change:?}");
    }
}

#[test]
fn a_rotation_revokes_old_secrets_or_lets_them_expire() {
    let later = NOW.saturating_add(Duration::from_secs(60));
    let table = [
        (None, OldSecrets::Revoke),
        (Some(NOW), OldSecrets::Revoke),
        (Some(NOW.saturating_sub(Duration::from_secs(1))), OldSecrets::Revoke),
        (Some(later), OldSecrets::ExpireAt(later)),
    ];
    for (old_until, expected) in table {
        let leaked = change_facts(with(chain(1), 0, |key| key.leaked_at = Some(NOW)));
        let rotate = KeyChange::Rotate { secret: SECRET, old_until };
        let (write, _) = written(change_key(leaked, None, rotate, NOW));
        assert_eq!((write.old_secrets, write.secret, write.key.leaked_at), (expected, Some(SECRET), None));
    }
    let rotate = || KeyChange::Rotate { secret: KEY, old_until: None };
    let in_use = KeyChangeFacts { secret_in_use: true, ..change_facts(chain(1)) };
    assert_eq!(change_key(in_use.clone(), None, rotate(), NOW), Decided::Refused(KeyChanged::SecretUsed));
    let nobody = KeyChangeFacts { account: None, ..in_use };
    let rotated = change_key(nobody, None, rotate(), NOW);
    assert_eq!(rotated, Decided::Refused(KeyChanged::NoSuchKey), "a key that does not exist comes first");
}

#[test]
fn only_what_a_change_sets_is_completed_from_above() {
    let later = NOW.saturating_add(Duration::from_secs(60));
    let facts = || {
        change_facts(with(chain(2), 1, |key| {
            key.terms.expires_at = Some(later);
            key.terms.routes = "/a".parse().unwrap();
            key.terms.networks = "10.0.0.0/8".parse().unwrap();
        }))
    };
    let open = key(2).terms;
    let outer = facts().chain[1].terms.clone();
    let none = TermsChange::default;
    let table = [
        (TermsChange { max_in_flight: Some(0), ..none() }, open.clone()),
        (TermsChange { expires_at: Some(None), ..none() }, KeyTerms { expires_at: Some(later), ..open.clone() }),
        (
            TermsChange { routes: Some("".parse().unwrap()), ..none() },
            KeyTerms { routes: outer.routes.clone(), ..open.clone() },
        ),
        (TermsChange { networks: "".parse().ok(), ..none() }, KeyTerms { networks: outer.networks, ..open }),
    ];
    for (change, expected) in table {
        let (write, _) = written(changed(facts(), None, change.clone()));
        assert_eq!(write.key.terms, expected, "{change:?}");
    }
}

#[test]
fn only_a_new_budget_or_period_needs_a_sum() {
    let (daily, monthly) = (Some(BudgetReset::Daily), Some(BudgetReset::Monthly));
    let none = TermsChange::default;
    let limit = |limit: Option<i64>| TermsChange { limit: Some(limit.map(atoms)), ..none() };
    let reset = |reset| TermsChange { limit_reset: Some(reset), ..none() };
    let today = NOW.day();
    // budget before, change, first day
    let table = [
        (None, none(), None),
        (None, limit(Some(5)), Some(Day::from_unix_days(0))),
        (None, TermsChange { limit_reset: Some(daily), ..limit(Some(5)) }, Some(today)),
        (budget(5, daily), none(), None),
        (budget(5, daily), TermsChange { name: "x".parse().ok(), ..none() }, None),
        (budget(5, daily), limit(Some(9)), None),
        (budget(5, daily), reset(daily), None),
        (budget(5, daily), reset(monthly), Some(BudgetReset::Monthly.first_day(today))),
        (budget(5, daily), reset(None), Some(Day::from_unix_days(0))),
        (budget(5, daily), limit(None), None),
    ];
    for (budget, change, expected) in table {
        let before = KeyTerms { budget, ..key(1).terms };
        let change = KeyChange::Terms(Box::new(change));
        assert_eq!(budget_period(&before, &change, NOW), expected, "{budget:?} {change:?}");
    }
    let terms = KeyTerms { budget: budget(5, daily), ..key(1).terms };
    assert_eq!(budget_period(&terms, &KeyChange::Revoke, NOW), None);
}
