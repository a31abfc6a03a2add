//! What leaks and revocations do to a key, its secrets and the keys below it.

use super::*;

/// Keys 1 and 2 are below the first, 3 and 4 below 1, 5 below 3, 6 below 2.
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
