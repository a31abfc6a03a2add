//! The effects of leaks and revocations on a key, its secrets and its child keys.

use super::*;

/// Keys 1 and 2 are children of the first, 3 and 4 of 1, 5 of 3, 6 of 2.
fn tree() -> Vec<Key> {
    let numbered = [(1, 0), (2, 0), (3, 1), (4, 1), (5, 3), (6, 2)];
    let below = numbered.map(|(number, parent)| Key { parent: Some(KeyNumber::new(parent)), ..key(number) });
    std::iter::once(key(0)).chain(below).collect()
}

#[test]
fn a_revoked_key_revokes_the_keys_below_it() {
    for (number, expected) in [(1, vec![3, 4, 5]), (2, vec![6]), (3, vec![5]), (5, vec![])] {
        let key = tree().swap_remove(number);
        let chain = vec![key.clone(), super::key(0)];
        assert!(revokes_below(&key, &KeyChange::Revoke));
        let facts = KeyChangeFacts { keys: tree(), ..change_facts(chain) };
        let (write, below) = written(change_key(facts, None, KeyChange::Revoke, NOW));
        assert_eq!((write.key.revoked_at, write.old_secrets), (Some(NOW), OldSecrets::Revoke));
        assert_eq!(below, expected, "{number}");
    }
}

#[test]
fn a_rotation_revokes_the_keys_below_only_after_a_leak() {
    let rotate = || KeyChange::Rotate { secret: SECRET, old_until: None };
    for (leaked_at, expected) in [(None, vec![]), (Some(NOW), vec![3, 4, 5])] {
        let chain = with(chain(1), 0, |key| key.leaked_at = leaked_at);
        assert_eq!(revokes_below(&chain[0], &rotate()), leaked_at.is_some());
        let facts = KeyChangeFacts { keys: tree(), ..change_facts(chain) };
        let (write, below) = written(change_key(facts, None, rotate(), NOW));
        assert_eq!((write.key.leaked_at, write.key.revoked_at, below), (None, None, expected));
    }
    assert!(!revokes_below(&key(1), &KeyChange::Terms(Box::default())));
}

#[test]
fn a_leak_is_dated_once() {
    let write = report_leaked(1, key(1), false, NOW);
    assert_eq!((write.key.leaked_at, write.old_secrets, write.secret), (Some(NOW), OldSecrets::Revoke, None));
    let earlier = NOW.saturating_sub(Duration::from_secs(9));
    let again = report_leaked(1, Key { leaked_at: Some(earlier), ..key(1) }, false, NOW);
    assert_eq!(again.key.leaked_at, Some(earlier));
}

#[test]
fn a_leak_of_a_replaced_secret_ends_that_secret_only() {
    let write = report_leaked(1, key(1), true, NOW);
    assert_eq!((write.key, write.old_secrets), (key(1), OldSecrets::EndGrace));
    assert_eq!((write.secret, write.meter), (None, MeterWrite::Keep));
}

fn event(what: impl FnOnce(KeyEvent) -> EventData, number: u32) -> Option<NewEvent> {
    Some(NewEvent { account: Some(account().id), data: what((&key(number)).into()), created_at: NOW })
}

#[test]
fn each_revoked_key_has_its_event() {
    let facts = KeyChangeFacts { keys: tree(), ..change_facts(chain(1)) };
    let Decided::Accepted(writes) = change_key(facts, None, KeyChange::Revoke, NOW) else { panic!("it is accepted") };
    assert_eq!(writes.key.event, event(EventData::KeyRevoked, 1));
    for write in &writes.below {
        assert_eq!(write.event, event(EventData::KeyRevoked, write.key.number.get()));
    }
    let rotate = KeyChange::Rotate { secret: SECRET, old_until: None };
    let (write, _) = written(change_key(change_facts(chain(1)), None, rotate, NOW));
    assert_eq!(write.event, None);
    let (write, _) = written(changed(change_facts(chain(1)), None, TermsChange::default()));
    assert_eq!(write.event, None);
}

#[test]
fn a_new_leak_and_a_new_key_have_their_events() {
    assert_eq!(report_leaked(1, key(1), false, NOW).event, event(EventData::KeyLeaked, 1));
    assert_eq!(report_leaked(1, key(1), true, NOW).event, None, "only an old secret leaked");
    let known = Key { leaked_at: Some(NOW.saturating_sub(Duration::from_secs(1))), ..key(1) };
    assert_eq!(report_leaked(1, known, false, NOW).event, None);
    let Decided::Accepted(write) = create_key(new_key(), new_facts()) else { panic!("it is accepted") };
    let data = EventData::KeyCreated((&write.key).into());
    assert_eq!(write.event, Some(NewEvent { account: Some(account().id), data, created_at: NOW }));
}

#[test]
fn a_higher_limit_or_lower_threshold_lowers_the_alert() {
    use AlertLevel::{Exhausted, Low, None as Enough};
    let spent = Spent { since: Day::from_unix_days(0), amount: atoms(95) };
    let limit = |limit| TermsChange { limit: Some(Some(atoms(limit))), ..TermsChange::default() };
    let below = |below: Option<i64>| TermsChange { alert_below: Some(below.map(atoms)), ..TermsChange::default() };
    // raised before, change, raised after; of a budget of 100 with a threshold of 20
    let table = [
        (Exhausted, limit(95), Exhausted),
        (Exhausted, limit(96), Low),
        (Exhausted, limit(115), Enough),
        (Low, limit(114), Low),
        (Low, below(Some(5)), Enough),
        (Low, below(Some(6)), Low),
        (Low, below(None), Enough),
        (Enough, below(Some(99)), Enough),
    ];
    for (raised, change, after) in table {
        let meter = KeyMeter { spent, raised, ..KeyMeter::default() };
        let keys =
            with(chain(1), 0, |key| (key.terms.budget, key.terms.alert_below) = (budget(100, None), Some(atoms(20))));
        let facts = KeyChangeFacts { meter: Some(meter), ..change_facts(keys) };
        let (write, _) = written(changed(facts, None, change.clone()));
        let expected =
            if after == raised { MeterWrite::Keep } else { MeterWrite::Set(KeyMeter { raised: after, ..meter }) };
        assert_eq!(write.meter, expected, "{raised:?} {change:?}");
    }
}
