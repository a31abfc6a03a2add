//! Profiles next to each other, and the environment that overrides them.

use metering_core::{ApiKey, SystemRandomness};

use crate::home::Home;
use crate::stand_in::{Reply, StandIn};

const BALANCE: &str = r#"{"org_id":"org_1","agent_name":"a","email":null,"payer_address":null,"credit_balance":1,"total_credits_purchased":0,"total_credits_granted":1,"total_credits_used":0,"rate_limits":{"requests_per_minute":1,"requests_per_day":1}}"#;

fn service() -> StandIn {
    let service = StandIn::start();
    service.on("/credits/balance", Reply::ok(BALANCE));
    service
}

fn bearer(key: &ApiKey) -> String {
    format!("Bearer {}", key.expose())
}

#[test]
fn each_profile_asks_its_own_service_with_its_own_key() {
    let (here, there) = (service(), service());
    let home = Home::new();
    let first = home.add_profile("first", &here);
    let second = home.add_profile("second", &there);
    home.metering(&["balance", "--profile", "first"]).success();
    let output = home.command(&["balance"]).env("METERING_CLIENT_PROFILE", "second").output().unwrap();
    assert!(output.status.success());
    for (service, key) in [(&here, &first), (&there, &second)] {
        let keys: Vec<_> =
            service.requests().iter().map(|request| request.header("authorization").map(str::to_owned)).collect();
        assert_eq!(keys, [Some(bearer(key))]);
    }
}

#[test]
fn the_environments_key_and_url_win() {
    let (here, there) = (service(), service());
    let (home, _) = Home::of(&here);
    let other = ApiKey::generate(&SystemRandomness);
    let mut command = home.command(&["balance"]);
    command.env("METERING_CLIENT_URL", there.url()).env("METERING_CLIENT_API_KEY", other.expose());
    assert!(command.output().unwrap().status.success());
    assert_eq!(there.requests()[0].header("authorization"), Some(bearer(&other).as_str()));
    assert_eq!(here.requests().len(), 0);
}

#[test]
fn a_profiles_key_is_not_shown_to_another_service() {
    let (here, there) = (service(), service());
    let (home, _) = Home::of(&here);
    let message = home.metering(&["balance", "--url", &there.url()]).failure(6);
    assert!(message.contains("another service"), "{message}");
    assert_eq!(there.requests().len(), 0);
}

#[test]
fn plain_http_to_another_machine_is_refused() {
    let home = Home::new();
    let message = home.metering(&["plans", "--url", "http://api.example.com"]).failure(2);
    assert!(message.contains("https://"), "{message}");
}

#[test]
fn help_shows_no_secrets_of_the_environment() {
    let home = Home::new();
    let key = ApiKey::generate(&SystemRandomness);
    for args in [&["balance", "--help"][..], &["config", "show", "--help"], &["--help"]] {
        let output = home.command(args).env("METERING_CLIENT_API_KEY", key.expose()).output().unwrap();
        assert!(!String::from_utf8(output.stdout).unwrap().contains(key.expose()), "{args:?}");
    }
}

#[test]
fn next_command_uses_the_same_profile() {
    let home = Home::new();
    let message = home.metering(&["balance", "--profile", "work", "--url", "http://127.0.0.1:1"]).failure(6);
    assert!(message.contains("`metering signup --profile work`"), "{message}");
    assert!(message.contains("`metering config set api-key --profile work`"), "{message}");
    let message = home.metering(&["balance", "--url", "http://127.0.0.1:1"]).failure(6);
    assert!(message.contains("`metering signup`"), "{message}");
    let service = StandIn::start();
    service.on("/credits/balance", Reply::ok(BALANCE.replace(r#""credit_balance":1"#, r#""credit_balance":0"#)));
    home.add_profile("work", &service);
    let ran = home.metering(&["balance", "--profile", "work"]);
    assert!(ran.stderr.contains("`metering topup --profile work` buys"), "{ran:?}");
}
