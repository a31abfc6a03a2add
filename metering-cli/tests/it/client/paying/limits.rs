//! What is not paid.

use serde_json::json;

use super::shop::{CALL, SHOP, asks, offer, payments, refused, settled, shop};
use crate::stand_in::{Reply, StandIn};

const TOKEN: &str = "0x1111111111111111111111111111111111111111";

#[test]
fn a_price_above_the_limit_or_without_a_known_token_is_not_paid() {
    let unknown = || {
        let mut unknown = offer(1);
        unknown["asset"] = json!(TOKEN);
        asks(&[unknown])
    };
    let unreadable = |header: String| Reply::error(402, "x").header("payment-required", header);
    // offers, more arguments, exit code, what the error says
    for (reply, more, code, text) in [
        (asks(&[offer(50_001)]), "", 9, "0.050001 USDC is more than 0.05"),
        (unknown(), "", 7, "is not known"),
        (unknown(), "--token 84532:0x1111111111111111111111111111111111111111:0", 9, "1 "),
        (asks(&[]), "", 7, "there are none"),
        (unreadable("e30_".to_owned()), "", 1, "cannot be read"),
        (unreadable("A".repeat(70_000)), "", 1, "too long"),
    ] {
        let (program, shop) = shop([reply]);
        let message = program.run(&format!("call $shop/x --pay --max 0.05 {more}")).failure(code);
        assert!(message.contains(text) && message.to_lowercase().contains("nothing was paid"), "{message}");
        assert_eq!(payments(&shop), [None]);
    }
    let (program, _shop) = shop([unknown(), Reply::ok("{}")]);
    let _ = program.run(&format!("call $shop/x --pay --max 0.05 --token 84532:{TOKEN}:6")).expect(0);
}

#[test]
fn daily_limit_counts_everything_that_was_signed() {
    let ask = || asks(&[offer(400_000)]);
    let (program, shop) = shop([ask(), settled(Reply::ok("{}")), ask()]);
    shop.on_each("/bad", [ask(), refused("insufficient_funds")]);
    let call = |path: &str, more: &str| program.run(&format!("call $shop{path} --pay --max 0.5 {more}"));
    let _ = call("/x", "").expect(0);
    let message = call("/bad", "").failure(7);
    assert!(message.contains("refused the payment of 0.4 USDC") && message.contains(SHOP), "{message}");
    let message = call("/x", "").failure(9);
    assert!(message.contains("0.2 of 1, with 0.8 signed"), "{message}");
    assert_eq!(payments(&shop).iter().flatten().count(), 2);
    // The limit can be raised, for one run or permanently.
    shop.on_each("/x", [settled(Reply::ok("{}")), ask()]);
    let _ = call("/x", "--daily-limit 1.2").expect(0);
    let _ = program.run("config set daily-limit 1.5").expect(0);
    program.documents(&[("config show", &[("/daily_limit", "\"1.5\"")])]);
    let message = call("/x", "").failure(9);
    assert!(message.contains("0.3 of 1.5, with 1.2 signed"), "{message}");
    let _ = program.run("config unset daily-limit").expect(0);
    program.documents(&[("config show", &[("/daily_limit", "\"1\"")])]);
}

#[test]
fn without_a_wallet_nothing_is_signed() {
    let (program, _shop) = shop([asks(&[offer(1)])]);
    let message = program.run_without("METERING_CLIENT_WALLET_KEY", CALL).failure(2);
    assert!(message.contains("METERING_CLIENT_WALLET_KEY"), "{message}");
    assert!(!program.profile("default", "pay/journal.jsonl").exists());
}

#[test]
fn a_second_402_is_not_paid_and_redirects_are_not_followed() {
    let elsewhere = StandIn::start();
    // A service that responds to each payment with new offers.
    let (program, shop) = shop([asks(&[offer(1)])]);
    let redirect = Reply::new(307, "").header("location", format!("{}/x", elsewhere.url()));
    shop.on_each("/moved", [asks(&[offer(1)]), redirect]);
    program.refuses(&[("call $shop/x --pay --max 1 --retry", 7, "")]);
    let first = payments(&shop);
    assert_eq!((first.len(), first.iter().flatten().count()), (2, 1));
    program.refuses(&[("call $shop/moved --pay --max 1 --retry", 1, "")]);
    assert_eq!(elsewhere.requests().len(), 0);
    // And again: only the refused payment is sent, until it expires.
    program.refuses(&[("call $shop/x --pay --max 1 --retry", 7, "")]);
    let sent: Vec<_> = payments(&shop).into_iter().flatten().collect();
    assert_eq!((sent.len(), payments(&shop).len()), (3, 5));
    assert_eq!(sent[0], sent[2]);
}
