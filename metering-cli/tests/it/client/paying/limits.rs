//! What is not paid.

use serde_json::json;

use super::shop::{SHOP, asks, offer, payments, run, settled, unsettled};
use crate::home::Home;
use crate::stand_in::{Reply, StandIn};

const TOKEN: &str = "0x1111111111111111111111111111111111111111";

#[test]
fn a_price_above_the_limit_or_without_a_known_token_is_not_paid() {
    let mut unknown = offer(1);
    unknown["asset"] = json!(TOKEN);
    let home = Home::new();
    // offers, more arguments, exit code, what the error says
    let table = [
        (asks(&[offer(50_001)]), vec![], 9, "0.050001 USDC is more than 0.05"),
        (asks(&[unknown.clone()]), vec![], 7, "is not known"),
        (asks(&[unknown.clone()]), vec!["--token", "84532:0x1111111111111111111111111111111111111111:0"], 9, "1 "),
        (asks(&[]), vec![], 7, "there are none"),
        (Reply::error(402, "x").header("payment-required", "e30_"), vec![], 1, "cannot be read"),
        (Reply::error(402, "x").header("payment-required", "A".repeat(70_000)), vec![], 1, "too long"),
    ];
    for (reply, more, code, text) in table {
        let shop = StandIn::start();
        shop.on("/x", reply);
        let url = format!("{}/x", shop.url());
        let message = run(&home, &[&["call", &url, "--pay", "--max", "0.05"], &more[..]].concat()).failure(code);
        assert!(message.contains(text) && message.to_lowercase().contains("nothing was paid"), "{message}");
        assert_eq!(payments(&shop), [None]);
    }
    let shop = StandIn::start();
    shop.on("/x", asks(&[unknown])).on("/x", Reply::ok("{}"));
    let token = format!("84532:{TOKEN}:6");
    let ran = run(&home, &["call", &format!("{}/x", shop.url()), "--pay", "--max", "0.05", "--token", &token]);
    assert_eq!(ran.code, 0, "{ran:?}");
}

#[test]
fn daily_limit_counts_everything_that_was_signed() {
    let shop = StandIn::start();
    let refused = || unsettled(Reply::error(402, "payment_refused"), "insufficient_funds");
    shop.on("/good", asks(&[offer(400_000)]))
        .on("/good", settled(Reply::ok("{}")))
        .on("/good", asks(&[offer(400_000)]));
    shop.on("/bad", asks(&[offer(400_000)])).on("/bad", refused());
    let home = Home::new();
    let call = |path: &str, more: &[&str]| {
        let url = format!("{}{path}", shop.url());
        run(&home, &[&["call", &url, "--pay", "--max", "0.5"], more].concat())
    };
    assert_eq!(call("/good", &[]).code, 0);
    let message = call("/bad", &[]).failure(7);
    assert!(message.contains("refused the payment of 0.4 USDC") && message.contains(SHOP), "{message}");
    let message = call("/good", &[]).failure(9);
    assert!(message.contains("0.2 of 1, with 0.8 signed"), "{message}");
    assert_eq!(payments(&shop).iter().flatten().count(), 2);
    // The limit can be raised, for one run or permanently.
    shop.on("/good", settled(Reply::ok("{}"))).on("/good", asks(&[offer(400_000)]));
    assert_eq!(call("/good", &["--daily-limit", "1.2"]).code, 0);
    assert_eq!(home.metering(&["config", "set", "daily-limit", "1.5"]).code, 0);
    let shown = home.metering(&["config", "show", "--json"]).json();
    assert_eq!(shown["daily_limit"], "1.5");
    let message = call("/good", &[]).failure(9);
    assert!(message.contains("0.3 of 1.5, with 1.2 signed"), "{message}");
    assert_eq!(home.metering(&["config", "unset", "daily-limit"]).code, 0);
    assert_eq!(home.metering(&["config", "show", "--json"]).json()["daily_limit"], "1");
}

#[test]
fn without_a_wallet_nothing_is_signed() {
    let shop = StandIn::start();
    shop.on("/x", asks(&[offer(1)]));
    let home = Home::new();
    let message = home.metering(&["call", &format!("{}/x", shop.url()), "--pay", "--max", "1"]).failure(2);
    assert!(message.contains("METERING_CLIENT_WALLET_KEY"), "{message}");
    assert!(!home.profile("default", "pay/journal.jsonl").exists());
}

#[test]
fn a_second_402_is_not_paid_and_redirects_are_not_followed() {
    let (shop, elsewhere) = (StandIn::start(), StandIn::start());
    // A service that responds to each payment with new offers.
    shop.on("/greedy", asks(&[offer(1)]));
    let redirect = Reply::new(307, "").header("location", format!("{}/x", elsewhere.url()));
    shop.on("/moved", asks(&[offer(1)])).on("/moved", redirect);
    let home = Home::new();
    let call = |path: &str| run(&home, &["call", &format!("{}{path}", shop.url()), "--pay", "--max", "1", "--retry"]);
    call("/greedy").failure(7);
    let first = payments(&shop);
    assert_eq!((first.len(), first.iter().flatten().count()), (2, 1));
    call("/moved").failure(1);
    assert_eq!(elsewhere.requests().len(), 0);
    // And again: only the refused payment is sent, until it expires.
    call("/greedy").failure(7);
    let sent: Vec<_> = payments(&shop).into_iter().flatten().collect();
    assert_eq!((sent.len(), payments(&shop).len()), (3, 5));
    assert_eq!(sent[0], sent[2]);
}
