//! What a batch changes, and its net change of each daily total.

use super::*;

const TODAY: Day = Day::from_unix_days(20_000);

fn change(account: u8, line: &'static str, kind: UsageKind, calls: u64, atoms: i64) -> UsageChange<u8, &'static str> {
    let amount = Credits::from_atoms(atoms);
    UsageChange { account, day: TODAY, line, kind, calls, amount, request_path: None }
}

#[test]
fn refunds_take_credits_back_and_keep_the_calls() {
    let usage = vec![
        change(1, "/a", UsageKind::Charged, 3, 30),
        change(1, "/a", UsageKind::Refunded, 1, 10),
        change(1, "/b", UsageKind::Refunded, 2, 20),
        change(2, "/b", UsageKind::Charged, 1, 7),
        change(3, "/c", UsageKind::Refunded, 1, 10),
        change(3, "/c", UsageKind::Charged, 2, 25),
    ];
    let changes = Changes { accounts: Vec::new(), usage, results: Vec::new() };
    let net = |account, line, calls, atoms| DailyChange {
        account,
        day: TODAY,
        line,
        calls,
        credits: Credits::from_atoms(atoms),
    };
    let expected = [net(1, "/a", 3, 20), net(1, "/b", 0, -20), net(2, "/b", 1, 7), net(3, "/c", 2, 15)];
    assert_eq!(changes.daily(), expected);
}

#[test]
fn batch_is_empty_only_if_nothing_is_to_be_written() {
    let nothing = || Changes::<u8, &str> { accounts: Vec::new(), usage: Vec::new(), results: Vec::new() };
    assert!(nothing().is_empty());
    let usage = vec![change(1, "/a", UsageKind::Charged, 1, 1)];
    assert!(!Changes { usage, ..nothing() }.is_empty());
    let result = StoredResult { charged: Credits::ZERO, balance: Credits::ZERO, delivery: None };
    let remembered = Remembered { result, expires_at: Timestamp::from_unix_millis(0) };
    let results = vec![(1, RequestId::parse("a").unwrap(), remembered)];
    assert!(!Changes { results, ..nothing() }.is_empty());
}
