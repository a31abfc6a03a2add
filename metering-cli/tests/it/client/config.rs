//! `metering config`: profiles next to each other, and the environment that overrides them.

use serde_json::Value;

use super::{client, new_key};
use crate::program::{Program, mode, one_space};
use crate::stand_in::{Reply, StandIn};

const BALANCE: &str = r#"{"org_id":"org_1","agent_name":"a","email":null,"payer_address":null,"credit_balance":1,"total_credits_purchased":0,"total_credits_granted":1,"total_credits_used":0,"rate_limits":{"requests_per_minute":1,"requests_per_day":1}}"#;

fn ends(key: &str) -> String {
    format!("sk_live_…{}", &key[key.len() - 4..])
}

fn service(balance: &str) -> StandIn {
    let service = StandIn::start();
    service.on(
        "/credits/balance",
        Reply::ok(BALANCE.replace("\"credit_balance\":1", &format!("\"credit_balance\":{balance}"))),
    );
    service
}

#[test]
fn profile_is_shown_with_its_key_redacted_and_readable_by_its_owner_only() {
    let (program, _service) = client([]);
    let (key, profile) = (program.text("$key"), program.profile("default", "profile.toml"));
    let shown: [(&str, &str); 4] = [
        ("/profile", "\"default\""),
        ("/api_key", &format!("\"{}\"", ends(&key))),
        ("/file", &format!("\"{}\"", profile.display())),
        ("/environment", "[\"METERING_CLIENT_HOME\"]"),
    ];
    program.documents(&[("config show", &shown)]);
    program.prints(&[("config show", &[&ends(&key), "$url"])]);
    for line in ["config show", "config show --json"] {
        assert!(!program.run(line).shows(&key[36..40]), "{line}");
    }
    assert_eq!((mode(&profile), mode(profile.parent().unwrap())), (0o600, 0o700));
    // A file that others can read is made private again.
    std::fs::set_permissions(&profile, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    let _ = program.run("config unset api-key").expect(0).says(&ends(&key));
    assert_eq!(mode(&profile), 0o600);
}

#[test]
fn profiles_are_listed_side_by_side() {
    let (program, service) = (Program::new(), StandIn::start());
    let _ = program.run("config list").expect(0).says("No profiles");
    let key = program.add_profile("work", &service);
    program.run("config set url https://api.example.com --profile home").success();
    let text = program.run("config list").success();
    let rows: Vec<_> = text.lines().skip(1).map(one_space).collect();
    let work = format!("work {} {} -", service.url(), ends(&key));
    assert_eq!(rows, ["home https://api.example.com - -".to_owned(), work]);
    assert_eq!(program.json::<Value>("config list").as_array().unwrap().len(), 2);
}

#[test]
fn key_is_read_from_stdin_never_printed_and_replaced_only_on_request() {
    let (program, service) = (Program::new(), StandIn::start());
    let (first, second) = (new_key(), new_key());
    let mut wrong = first.clone();
    wrong.replace_range(20..21, if &wrong[20..21] == "a" { "b" } else { "a" });
    for input in ["", "\n", &wrong, &"x".repeat(10_000)] {
        let ran = program.reading("config set api-key", input).expect(2);
        assert!(input.trim().is_empty() || !ran.shows(input.trim()), "{ran:?}");
    }
    assert_eq!(program.run(&format!("config set api-key {first}")).code, 2, "a key cannot be an argument");
    assert!(!program.profile("default", "profile.toml").exists());
    let set = format!("config set api-key --url {}", service.url());
    let ran = program.reading(&set, &format!("  {first}\r\n")).expect(0).says(&ends(&first));
    assert!(!ran.shows(&first), "{ran:?}");
    let message = program.reading(&set, &second).failure(5);
    assert!(message.contains(&ends(&first)) && message.contains("--replace"), "{message}");
    let _ = program.reading(&set, &first).expect(0);
    let _ = program.reading(&format!("{set} --replace"), &second).expect(0);
    program.documents(&[("config show", &[("/api_key", &format!("\"{}\"", ends(&second)))])]);
}

#[test]
fn key_is_not_sent_to_another_service() {
    let ((program, own), other) = (client([]), service("1"));
    program.call("other", other.url());
    program.refuses(&[
        ("balance --url $other", 6, "another service"),
        ("config set url https://other.example", 5, "--keep-key"),
        ("config unset url", 5, ""),
        ("config set url ftp://x", 2, ""),
        ("plans --url http://api.example.com", 2, "https://"),
    ]);
    program.run("config set url $url").success();
    program.run("config set url https://other.example --keep-key").success();
    program.documents(&[("config show", &[("/url", "\"https://other.example\"")])]);
    assert_eq!(own.requests().len() + other.requests().len(), 0);
    // Settings are unset one by one.
    let _ = program.run("config unset api-key").expect(0);
    program.run("config unset url").success();
    program.documents(&[("config show", &[("/url", "null"), ("/api_key", "null")])]);
    program.refuses(&[("config unset url --profile none", 4, "")]);
}

#[test]
fn profile_is_removed_completely_after_confirmation() {
    let (program, service) = client([]);
    program.add_profile("other", &service);
    program.refuses(&[("config remove", 2, "--yes")]);
    assert!(program.profile("default", "profile.toml").exists());
    program.run("config remove --yes").success();
    assert!(!program.profile("default", "").exists() && program.profile("other", "profile.toml").exists());
    program.refuses(&[("config remove --yes", 4, ""), ("config show", 4, "")]);
}

#[test]
fn path_is_printed_before_the_file_exists() {
    let program = Program::new();
    let path = program.profile("work", "profile.toml");
    assert_eq!(program.run("config path --profile work").success(), format!("{}\n", path.display()));
    assert!(!path.exists());
    program.refuses(&[("config path --profile ../x", 2, "")]);
    // A damaged profile is named without its content.
    program.write("profiles/default/profile.toml", "api_key = \"sk_live_damaged\"");
    for line in ["balance", "config show", "config list", "signup", "mcp"] {
        let message = program.run(line).failure(1);
        assert!(message.contains("profile.toml") && !message.contains("damaged"), "{line}: {message}");
    }
}

#[test]
fn each_profile_asks_its_own_service_and_the_environment_wins() {
    let (here, there, elsewhere, program) = (service("1"), service("1"), service("1"), Program::new());
    let (first, second, third) =
        (program.add_profile("first", &here), program.add_profile("second", &there), new_key());
    program.run("balance --profile first").success();
    program.run_with(&[("METERING_CLIENT_PROFILE", "second")], "balance").success();
    let url = elsewhere.url();
    let own = [("METERING_CLIENT_URL", url.as_str()), ("METERING_CLIENT_API_KEY", third.as_str())];
    program.run_with(&own, "balance --profile first").success();
    for (service, key) in [(&here, &first), (&there, &second), (&elsewhere, &third)] {
        let mut keys: Vec<_> = service.requests().iter().map(|request| request.key().map(str::to_owned)).collect();
        keys.dedup();
        assert_eq!(keys, [Some(key.clone())]);
    }
    for line in ["balance --help", "config show --help", "--help"] {
        assert!(!program.run_with(&own, line).shows(&third), "{line}");
    }
}

#[test]
fn next_command_uses_the_same_profile() {
    let (program, service) = (Program::new(), service("0"));
    program.refuses(&[
        ("balance --profile work --url http://127.0.0.1:1", 6, "`metering signup --profile work`"),
        ("balance --profile work --url http://127.0.0.1:1", 6, "`metering config set api-key --profile work`"),
        ("balance --url http://127.0.0.1:1", 6, "`metering signup`"),
    ]);
    program.add_profile("work", &service);
    let _ = program.run("balance --profile work").says("`metering topup --profile work` buys");
}
