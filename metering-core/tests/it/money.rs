//! The money code through its public API: edge cases of batches, receipts, windows, tags and plans.

use std::sync::Arc;

use metering_core::access::{KeyNumber, KeyTerms, Totals};
use metering_core::chains::{Address, TokenUnits};
use metering_core::charging::{KeyMeter, KeyState, LimitWindow, MeterState, RateStatus, Tally, UsageKind, Window};
use metering_core::events::EventKind;
use metering_core::money::{AlertLevel, BalanceAlert};
use metering_core::payments::{PaymentKind, PaymentUse, Plan, PlanKey, TagKind, TokenAmount, draw_amount};
use metering_core::{
    AccountId, ApiKey, Charge, ClientSource, Credits, Decision, RateLimits, Receipt, Refusal, RequestId,
    SystemRandomness, Timestamp, UsageLine,
};

/// Noon of a day.
const NOON: Timestamp = Timestamp::from_unix_millis(1_795_262_400_000);

/// The key of every charge: an account's first.
const KEY: KeyNumber = KeyNumber::FIRST;

fn line(route: &str) -> UsageLine {
    UsageLine { route_template: route.into(), http_method: "GET".into(), source: ClientSource::Direct }
}

fn charge(price: i64, path: &str, request_id: Option<&str>) -> Charge {
    Charge {
        key: ApiKey::generate(&SystemRandomness).hash(),
        price: Credits::from_atoms(price),
        line: line("/a"),
        request_path: Arc::from(path),
        request_id: request_id.map(|id| RequestId::parse(id).unwrap()),
        delivery: None,
        address: None,
        in_flight: None,
        hold: None,
        by_volume: None,
        price_version: None,
    }
}

fn state(balance: i64) -> MeterState {
    let balance = Credits::from_atoms(balance);
    MeterState {
        totals: Totals { balance, granted: balance, ..Totals::default() },
        limits: RateLimits { requests_per_minute: 0, requests_per_day: 0 },
        alert: BalanceAlert::default(),
        minute: Window::default(),
        day: Window::default(),
    }
}

/// Loads an account and its first key.
fn load(tally: &mut Tally<u32, u32>, account: u32, balance: i64) {
    tally.load(account, AccountId::generate(&SystemRandomness), state(balance));
    let (id, terms) = ("key_0123456789abcdef0123".parse().unwrap(), Arc::new(KeyTerms::first()));
    tally.load_key(account, KEY, KeyState { id, parent: None, is_live: true, terms, meter: KeyMeter::default() });
}

fn tally(accounts: &[(u32, i64)]) -> Tally<u32, u32> {
    let mut tally = Tally::new(NOON);
    for (account, balance) in accounts {
        load(&mut tally, *account, *balance);
    }
    tally
}

#[track_caller]
fn accepted(decision: Decision) -> Receipt {
    match decision {
        Decision::Accepted(receipt) => receipt,
        refused @ Decision::Refused(_) => panic!("{refused:?}"),
    }
}

#[test]
fn a_receipt_refunds_what_was_charged_once() {
    let mut tally = tally(&[(1, 100)]);
    let first = accepted(tally.charge(1, KEY, 7, charge(10, "/a", Some("id")), None));
    assert_eq!((first.charged.atoms(), first.balance.atoms(), first.repeated), (10, 90, false));
    assert_eq!((first.rate.minute.count, first.rate.day.count), (1, 1), "the receipt counts its own request");
    let again = accepted(tally.charge(1, KEY, 7, charge(10, "/a", Some("id")), None));
    assert_eq!((again.charged.atoms(), again.balance.atoms(), again.repeated), (10, 90, true));
    assert_eq!(again.into_refund(), None, "a repeated request was not charged");
    let free = accepted(tally.charge(1, KEY, 7, charge(0, "/a", None), None));
    assert_eq!(free.into_refund(), None, "there is nothing to refund");
    let refund = first.into_refund().unwrap();
    assert_eq!((refund.amount.atoms(), refund.day, &*refund.request_path), (10, NOON.day(), "/a"));
    assert_eq!(tally.refund(1, 7, &refund, None), Some(Credits::from_atoms(100)));
}

#[test]
fn a_remembered_charge_is_not_taken_again() {
    let mut tally = tally(&[(1, 100)]);
    let (charged, balance) = (Credits::from_atoms(3), Credits::from_atoms(42));
    let result = metering_core::charging::StoredResult { charged, balance, delivery: None, hold: None };
    let expires_at = NOON.saturating_add(RequestId::RETENTION);
    let remembered = metering_core::charging::Remembered { result, expires_at };
    let receipt = accepted(tally.charge(1, KEY, 7, charge(10, "/a", Some("id")), Some(remembered)));
    assert_eq!((receipt.charged.atoms(), receipt.balance.atoms(), receipt.repeated), (3, 42, true));
    let changes = tally.finish();
    assert!(changes.accounts.is_empty() && changes.usage.is_empty() && changes.results.is_empty());
}

#[test]
fn batch_writes_only_changed_rows_in_order() {
    let mut tally = tally(&[(3, 100), (1, 100), (2, 0), (4, 100)]);
    assert!(tally.is_loaded(4) && !tally.is_loaded(5));
    for account in [3, 1, 3] {
        let _ = accepted(tally.charge(account, KEY, 7, charge(10, "/a", None), None));
    }
    let refused = tally.charge(2, KEY, 7, charge(10, "/a", Some("id")), None);
    assert!(matches!(refused, Decision::Refused(Refusal::InsufficientCredits { .. })), "{refused:?}");
    // Loading an account again keeps its changes.
    tally.load(3, AccountId::generate(&SystemRandomness), state(1_000));
    let changes = tally.finish();
    let balances: Vec<_> =
        changes.accounts.iter().map(|(account, state)| (*account, state.totals.balance.atoms())).collect();
    assert_eq!(balances, [(1, 90), (2, 0), (3, 80)]);
    let events: Vec<_> = changes.events.iter().map(|(account, event)| (*account, event.data.kind())).collect();
    assert_eq!(events, [(2, EventKind::BalanceExhausted)], "its owner is notified");
    assert_eq!(changes.alerts, [(2, AlertLevel::Exhausted)]);
    assert!(changes.results.is_empty(), "refusals are not remembered");
    let usage: Vec<_> = changes.usage.iter().map(|usage| (usage.account, usage.calls, usage.amount.atoms())).collect();
    assert_eq!(usage, [(1, 1, 10), (3, 2, 20)]);
}

#[test]
fn results_are_stored_by_account_and_request() {
    let mut tally = tally(&[(1, 100), (2, 100)]);
    for account in [2, 1] {
        let receipt = accepted(tally.charge(account, KEY, 7, charge(10, "/a", Some("same")), None));
        assert!(!receipt.repeated, "the same id in another account is another request");
    }
    let results = tally.finish().results;
    let results: Vec<_> =
        results.iter().map(|(account, id, known)| (*account, id.as_str(), known.result.balance.atoms())).collect();
    assert_eq!(results, [(1, "same", 90), (2, "same", 90)]);
}

#[test]
fn usage_and_refunds_are_kept_apart_per_line() {
    let mut tally = tally(&[(1, 1_000), (2, 1_000)]);
    let refund = accepted(tally.charge(1, KEY, 7, charge(10, "/a", None), None)).into_refund().unwrap();
    let _ = accepted(tally.charge(1, KEY, 7, charge(30, "/a", None), None));
    let _ = accepted(tally.charge(1, KEY, 8, charge(5, "/a", None), None));
    let _ = accepted(tally.charge(2, KEY, 7, charge(7, "/a", None), None));
    let _ = tally.refund(1, 7, &refund, None).unwrap();
    let changes = tally.finish();
    let kinds: Vec<_> =
        changes.usage.iter().map(|usage| (usage.kind, usage.added_calls(), usage.added_credits().atoms())).collect();
    let (taken, back) = (UsageKind::Charged, UsageKind::Refunded);
    assert_eq!(kinds, [(taken, 2, 40), (back, 0, -10), (taken, 1, 5), (taken, 1, 7)]);
}

#[test]
fn path_is_stored_if_all_requests_share_it() {
    // paths of the requests of one line, the path kept
    let table: [(&[&str], Option<&str>); 4] =
        [(&["/a"], Some("/a")), (&["/a", "/a"], Some("/a")), (&["/a", "/b"], None), (&["/a", "/b", "/a"], None)];
    for (paths, kept) in table {
        let mut tally = tally(&[(1, 100)]);
        for path in paths {
            let _ = accepted(tally.charge(1, KEY, 7, charge(1, path, None), None));
        }
        assert_eq!(tally.finish().usage[0].request_path.as_deref(), kept, "{paths:?}");
    }
}

#[test]
fn a_refund_that_no_account_can_hold_changes_nothing() {
    let mut tally = tally(&[(1, 100)]);
    let refund = accepted(tally.charge(1, KEY, 7, charge(10, "/a", None), None)).into_refund().unwrap();
    let mut full = Tally::new(NOON);
    load(&mut full, 1, i64::MAX);
    assert_eq!(full.refund(1, 7, &refund, None), None);
    assert!(full.finish().accounts.is_empty());
}

#[test]
fn rate_status_shows_remaining_and_reset() {
    let limits = RateLimits { requests_per_minute: 5, requests_per_day: 100 };
    let at = NOON.saturating_add(std::time::Duration::from_millis(20_001));
    let rate = RateStatus {
        limits,
        minute: Window { index: NOON.minute(), count: 3 },
        day: Window { index: NOON.day().unix_days(), count: 101 },
        at,
    };
    assert_eq!((rate.remaining(LimitWindow::Minute), rate.remaining(LimitWindow::Day)), (Some(2), Some(0)));
    assert_eq!(rate.reset_seconds(LimitWindow::Minute), 40);
    assert_eq!(rate.reset_seconds(LimitWindow::Day), 43_200 - 20);
    let late = RateStatus { at: NOON.saturating_add(std::time::Duration::from_secs(90_000)), ..rate };
    assert_eq!((late.reset_seconds(LimitWindow::Minute), late.reset_seconds(LimitWindow::Day)), (1, 1));
    let open = RateStatus { limits: RateLimits { requests_per_minute: 0, requests_per_day: 0 }, ..rate };
    assert_eq!((open.remaining(LimitWindow::Minute), open.remaining(LimitWindow::Day)), (None, None));
    assert_eq!((LimitWindow::Minute.as_str(), LimitWindow::Day.as_str()), ("minute", "day"));
}

#[test]
fn request_ids_are_visible_ascii_of_bounded_length() {
    for good in ["a", "~!", &"x".repeat(128)] {
        assert_eq!(RequestId::parse(good).unwrap().as_str(), good);
    }
    for bad in ["", " ", "a b", "\u{e9}", "\n", &"x".repeat(129)] {
        assert!(RequestId::parse(bad).is_err(), "{bad:?}");
    }
    assert_eq!(RequestId::RETENTION.as_secs(), 86_400);
}

#[test]
fn the_tag_of_a_large_price_stays_under_a_hundredth_of_a_token() {
    // A thousandth of this price is a whole token.
    let price = 1_000 * 10_u128.pow(18);
    for _ in 0..200 {
        let tag = draw_amount(&SystemRandomness, TokenUnits::new(price), 18, TagKind::Signup).unwrap().get() - price;
        assert!(tag < 10_u128.pow(16) && tag.is_multiple_of(1_000_000), "{tag}");
    }
    assert_eq!(
        draw_amount(&SystemRandomness, TokenUnits::new(price), 2, TagKind::Signup),
        None,
        "there is no room for a tag"
    );
    assert_eq!(draw_amount(&SystemRandomness, TokenUnits::MAX, 6, TagKind::Signup), None);
}

#[test]
fn stored_and_wire_names_are_stable() {
    let uses: Vec<_> = PaymentUse::ALL.iter().map(|used| used.as_str()).collect();
    assert_eq!(uses[..3], ["pay_signup", "topup", "assigned"]);
    for used in PaymentUse::ALL {
        assert_eq!(PaymentUse::from_name(used.as_str()), Some(used));
    }
    assert_eq!(PaymentUse::from_name(""), None);
    assert_eq!((PaymentKind::Erc20.as_str(), PaymentKind::NativeValue.as_str()), ("erc20", "native_value"));
    assert_eq!(PlanKey { id: "starter".into(), chain_id: 8453 }.to_string(), "starter on chain 8453");
}

#[test]
fn an_amount_of_a_token_is_exact_in_units_or_nothing() {
    let units = |text: &str, decimals| TokenAmount::parse(text).unwrap().to_units(decimals).map(TokenUnits::get);
    assert_eq!(units("5.00", 6), Some(5_000_000));
    assert_eq!(units("0.000001", 6), Some(1));
    assert_eq!(units("0.0000001", 6), None);
    assert_eq!(units("1", 0), Some(1));
    assert_eq!(units("1000", 36), None);
    assert_eq!(TokenAmount::parse("1.500").unwrap().decimal_places(), 1);
    assert_eq!(TokenAmount::parse("1.500").unwrap().value().to_string(), "1.5");
    assert!(serde_json::from_str::<TokenAmount>("\"0\"").is_err());
    let amount: TokenAmount = serde_json::from_str("\"2.50\"").unwrap();
    assert_eq!(serde_json::to_string(&amount).unwrap(), "\"2.5\"");
}

fn plan() -> Plan {
    serde_json::from_str(
        r#"{"id":"starter","chain_id":1,"token_symbol":"ETH","payment_kind":"native_value","credits":10,
            "bonus_credits":0.5,"token_amount":"0.5","token_decimals":18,"label":"Starter"}"#,
    )
    .unwrap()
}

#[test]
fn a_plan_without_a_token_is_paid_in_the_native_coin_and_on_sale() {
    let plan = plan();
    assert!(plan.active && plan.token_contract == Address::ZERO);
    assert_eq!(plan.validate(), Ok(()));
    assert_eq!(plan.credits_in_all().unwrap().to_string(), "10.5");
    assert_eq!(plan.price().unwrap().get(), 5 * 10_u128.pow(17));
    assert_eq!(plan.key(), PlanKey { id: "starter".into(), chain_id: 1 });
}

#[test]
fn the_limits_of_a_plan_are_inclusive() {
    type Change = fn(&mut Plan);
    // the change, the field that is rejected after it
    let table: [(Change, Option<&str>); 22] = [
        (|p| p.id = "a".repeat(64), None),
        (|p| p.id = "a".repeat(65), Some("id")),
        (|p| p.id = "a_b-c.d".into(), None),
        (|p| p.chain_id = i64::MAX.unsigned_abs(), None),
        (|p| p.chain_id = u64::MAX, Some("chain_id")),
        (|p| p.token_symbol = "T".repeat(32), None),
        (|p| p.token_symbol = "T".repeat(33), Some("token_symbol")),
        (|p| p.token_symbol = String::new(), Some("token_symbol")),
        (|p| p.bonus_credits = Credits::from_atoms(-72), Some("bonus_credits")),
        (|p| p.token_decimals = 3, None),
        (|p| p.token_decimals = 36, None),
        (|p| p.token_amount = TokenAmount::parse("0.000000000000000001").unwrap(), None),
        (|p| p.label = String::new(), Some("label")),
        (|p| p.label = "l".repeat(128), None),
        (|p| p.label = "l".repeat(129), Some("label")),
        (|p| p.description = "d".repeat(1024), None),
        (|p| p.description = "d".repeat(1025), Some("description")),
        (|p| p.discount_percent = Some(99), None),
        (|p| p.discount_percent = Some(100), Some("discount_percent")),
        (|p| p.recipient = Some(Address::ZERO), Some("recipient")),
        (|p| p.recipient = Some(Address::from_bytes([1; 20])), None),
        (|p| (p.token_decimals, p.token_amount) = (36, TokenAmount::parse("171").unwrap()), Some("token_amount")),
    ];
    for (row, (change, refused)) in table.into_iter().enumerate() {
        let mut plan = plan();
        change(&mut plan);
        assert_eq!(plan.validate().err().map(|error| error.field), refused, "row {row}");
    }
}

#[test]
fn an_error_in_an_amount_shows_the_start_of_what_was_sent() {
    let hostile = format!("\"{}\"", "9".repeat(100));
    let error = serde_json::from_str::<Credits>(&hostile).unwrap_err().to_string();
    assert!(error.contains(&"9".repeat(39)) && !error.contains(&"9".repeat(41)), "{error}");
}
