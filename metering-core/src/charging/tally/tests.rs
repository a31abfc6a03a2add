//! What a batch changes.

use super::*;

const TODAY: Day = Day::from_unix_days(20_000);

fn change(account: u8, line: &'static str, kind: UsageKind, calls: u64, atoms: i64) -> UsageChange<u8, &'static str> {
    let amount = Credits::from_atoms(atoms);
    UsageChange { account, day: TODAY, line, key: KeyNumber::FIRST, kind, calls, amount, request_path: None }
}

#[test]
fn refunds_take_credits_back_and_keep_the_calls() {
    let net = |kind| {
        let change = change(1, "/a", kind, 3, 30);
        (change.added_calls(), change.added_credits().atoms())
    };
    assert_eq!((net(UsageKind::Charged), net(UsageKind::Refunded)), ((3, 30), (0, -30)));
}

#[test]
fn batch_is_empty_only_if_nothing_is_to_be_written() {
    let nothing =
        || Changes::<u8, &str> { accounts: Vec::new(), keys: Vec::new(), usage: Vec::new(), results: Vec::new() };
    assert!(nothing().is_empty());
    let usage = vec![change(1, "/a", UsageKind::Charged, 1, 1)];
    assert!(!Changes { usage, ..nothing() }.is_empty());
    let result = StoredResult { charged: Credits::ZERO, balance: Credits::ZERO, delivery: None };
    let remembered = Remembered { result, expires_at: Timestamp::from_unix_millis(0) };
    let results = vec![(1, RequestId::parse("a").unwrap(), remembered)];
    assert!(!Changes { results, ..nothing() }.is_empty());
}
