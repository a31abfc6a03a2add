//! `metering balance`.

use crate::home::Home;
use crate::stand_in::{Reply, StandIn};

fn document(balance: &str) -> String {
    format!(
        r#"{{"org_id":"org_1","agent_name":"bot\u0007","email":null,"payer_address":"0xabc","credit_balance":{balance},"total_credits_purchased":5,"total_credits_granted":2.50,"total_credits_used":0.0000694444,"alert_below":0.5000000001,"rate_limits":{{"requests_per_minute":240,"requests_per_day":0}}}}"#
    )
}

#[test]
fn the_balance_is_shown_digit_by_digit() {
    let service = StandIn::start();
    service.on("/credits/balance", Reply::ok(document("7.4999305556")));
    let (home, key) = Home::of(&service);
    let text = home.metering(&["balance"]).success();
    for line in [
        "balance      7.4999305556",
        "granted      2.50",
        "used         0.0000694444",
        "alert below  0.5000000001",
        "requests     240 per minute, no limit per day",
        "agent name   bot\u{fffd}",
        "email        -",
        "payer        0xabc",
    ] {
        assert!(text.lines().any(|shown| shown == line), "{line}\n{text}");
    }
    let bearer = format!("Bearer {}", key.expose());
    assert_eq!(service.requests()[0].header("authorization"), Some(bearer.as_str()));
}

#[test]
fn empty_account_is_not_a_failure_and_gets_advice() {
    let service = StandIn::start();
    let (home, _) = Home::of(&service);
    for (balance, has_advice) in [("0", true), ("-0.0000694444", true), ("0.0000000001", false)] {
        let service = StandIn::start();
        service.on("/credits/balance", Reply::ok(document(balance)));
        let key = metering_core::ApiKey::generate(&metering_core::SystemRandomness);
        for json in [false, true] {
            let args = ["balance", "--url", &service.url(), "--json"];
            let mut command = home.command(&args[..if json { 4 } else { 3 }]);
            let output = command.env("METERING_CLIENT_API_KEY", key.expose()).output().unwrap();
            let notice = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(0), "{notice}");
            assert_eq!(notice.contains("metering topup"), has_advice, "{balance}: {notice}");
            if json {
                assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("{}\n", document(balance)));
            }
        }
    }
}

#[test]
fn held_credits_are_shown_when_there_are_any() {
    for (held, line) in [
        ("0.25", Some("held         0.25 for requests whose cost is not known yet")),
        ("0.0000000001", Some("held         0.0000000001 for requests whose cost is not known yet")),
        ("0", None),
    ] {
        let service = StandIn::start();
        let next = "\"total_credits_purchased\"";
        let text = document("7").replace(next, &format!("\"credits_held\":{held},{next}"));
        service.on("/credits/balance", Reply::ok(text.clone()));
        let (home, _) = Home::of(&service);
        let shown = home.metering(&["balance"]).success();
        assert_eq!(shown.lines().find(|line| line.starts_with("held")), line, "{shown}");
        assert_eq!(home.metering(&["balance", "--json"]).success(), format!("{text}\n"));
    }
}
