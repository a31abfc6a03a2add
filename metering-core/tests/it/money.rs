//! The money code through its public API: edge cases of receipts, windows, tags and plans.

use metering_core::chains::{Address, TokenUnits};
use metering_core::charging::{LimitWindow, RateStatus, TokenStatus, Window};
use metering_core::payments::{PaymentKind, Plan, PlanKey, TagKind, TokenAmount, draw_amount};
use metering_core::{Credits, RateLimits, RequestId, SystemRandomness, Timestamp};

/// Noon of a day.
const NOON: Timestamp = Timestamp::from_unix_millis(1_795_262_400_000);

#[test]
fn rate_status_shows_remaining_and_reset() {
    let limits = RateLimits::per_minute(5).and_per_day(100);
    let at = NOON.saturating_add(std::time::Duration::from_millis(20_001));
    let rate = RateStatus {
        limits,
        minute: Window { index: NOON.minute(), count: 3 },
        day: Window { index: NOON.day().unix_days(), count: 101 },
        at,
        tokens: TokenStatus::default(),
    };
    assert_eq!((rate.remaining(LimitWindow::Minute), rate.remaining(LimitWindow::Day)), (Some(2), Some(0)));
    assert_eq!(rate.reset_seconds(LimitWindow::Minute), 40);
    assert_eq!(rate.reset_seconds(LimitWindow::Day), 43_200 - 20);
    let late = RateStatus { at: NOON.saturating_add(std::time::Duration::from_secs(90_000)), ..rate };
    assert_eq!((late.reset_seconds(LimitWindow::Minute), late.reset_seconds(LimitWindow::Day)), (1, 1));
    let open = RateStatus { limits: RateLimits::NONE, ..rate };
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
