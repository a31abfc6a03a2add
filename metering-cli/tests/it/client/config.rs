//! `metering config`.

use metering_core::{ApiKey, SystemRandomness};
use serde_json::Value;

use crate::home::Home;
use crate::stand_in::StandIn;

fn ends(key: &ApiKey) -> String {
    format!("sk_live_...{}", &key.expose()[key.expose().len() - 4..])
}

#[test]
fn profile_is_shown_with_its_key_redacted() {
    let service = StandIn::start();
    let (home, key) = Home::of(&service);
    let text = home.metering(&["config", "show"]).success();
    assert!(text.contains(&ends(&key)) && text.contains(&service.url()), "{text}");
    let ran = home.metering(&["config", "show", "--json"]);
    let document = ran.json();
    assert_eq!(document["profile"], "default");
    assert_eq!(document["api_key"], ends(&key));
    assert_eq!(document["file"], home.profile("default", "profile.toml").to_str().unwrap());
    assert_eq!(document["environment"], serde_json::json!(["METERING_CLIENT_HOME"]));
    assert!(!text.contains(key.expose()) && !ran.stdout.contains(key.expose()));
    let secret = &key.expose()[8..40];
    assert!(!text.contains(&secret[28..]), "{text}");
}

#[cfg(unix)]
#[test]
fn profile_is_readable_by_its_owner_only_from_the_first_byte() {
    use crate::home::mode;
    let service = StandIn::start();
    let (home, _) = Home::of(&service);
    let profile = home.profile("default", "profile.toml");
    assert_eq!((mode(&profile), mode(profile.parent().unwrap())), (0o600, 0o700));
    // A file that others can read is made private again.
    std::fs::set_permissions(&profile, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    home.metering(&["config", "unset", "api-key"]);
    assert_eq!(mode(&profile), 0o600);
}

#[test]
fn profiles_are_listed_side_by_side() {
    let service = StandIn::start();
    let home = Home::new();
    let ran = home.metering(&["config", "list"]);
    assert!(ran.code == 0 && ran.stderr.contains("No profiles"), "{ran:?}");
    let key = home.add_profile("work", &service);
    home.metering(&["config", "set", "url", "https://api.example.com", "--profile", "home"]).success();
    let text = home.metering(&["config", "list"]).success();
    let rows: Vec<Vec<_>> = text.lines().skip(1).map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(
        rows,
        [vec!["home", "https://api.example.com", "-", "-"], vec!["work", &service.url(), &ends(&key), "-"]]
    );
    let list: Value = home.metering(&["config", "list", "--json"]).json();
    assert_eq!(list.as_array().unwrap().len(), 2);
}

#[test]
fn key_is_read_from_stdin_and_never_printed() {
    let home = Home::new();
    let key = ApiKey::generate(&SystemRandomness);
    let mut wrong = key.expose().to_owned();
    wrong.replace_range(20..21, if &wrong[20..21] == "a" { "b" } else { "a" });
    for input in ["", "\n", &wrong, &"x".repeat(10_000)] {
        let ran = home.reading(&["config", "set", "api-key"], input);
        assert!(input.trim().is_empty() || !ran.stderr.contains(input.trim()), "{ran:?}");
        ran.failure(2);
    }
    assert!(!home.profile("default", "profile.toml").exists());
    let ran = home.metering(&["config", "set", "api-key", key.expose()]);
    assert_eq!(ran.code, 2, "a key cannot be an argument");
    let ran = home.reading(&["config", "set", "api-key"], &format!("  {}\r\n", key.expose()));
    assert!(ran.code == 0 && ran.stderr.contains(&ends(&key)) && !ran.stderr.contains(key.expose()), "{ran:?}");
}

#[test]
fn key_is_replaced_only_on_request() {
    let service = StandIn::start();
    let (home, first) = Home::of(&service);
    let second = ApiKey::generate(&SystemRandomness);
    let args = ["config", "set", "api-key", "--url", &service.url(), "--replace"];
    let message = home.reading(&args[..5], second.expose()).failure(5);
    assert!(message.contains(&ends(&first)) && message.contains("--replace"), "{message}");
    assert_eq!(home.reading(&args[..5], first.expose()).code, 0, "the same key again changes nothing");
    assert_eq!(home.reading(&args, second.expose()).code, 0);
    assert_eq!(home.metering(&["config", "show", "--json"]).json()["api_key"], ends(&second));
}

#[test]
fn key_is_not_sent_to_another_service() {
    let service = StandIn::start();
    let (home, _) = Home::of(&service);
    let set = ["config", "set", "url", "https://other.example", "--keep-key"];
    let message = home.metering(&set[..4]).failure(5);
    assert!(message.contains("--keep-key"), "{message}");
    home.metering(&["config", "set", "url", &service.url()]).success();
    assert_eq!(home.metering(&["config", "unset", "url"]).code, 5);
    home.metering(&set).success();
    assert_eq!(home.metering(&["config", "show", "--json"]).json()["url"], "https://other.example");
    assert_eq!(home.metering(&["config", "set", "url", "ftp://x"]).code, 2);
}

#[test]
fn settings_are_unset_one_by_one() {
    let service = StandIn::start();
    let (home, key) = Home::of(&service);
    let ran = home.metering(&["config", "unset", "api-key"]);
    assert!(ran.code == 0 && ran.stderr.contains(&ends(&key)), "{ran:?}");
    home.metering(&["config", "unset", "url"]).success();
    let document = home.metering(&["config", "show", "--json"]).json();
    assert_eq!((&document["url"], &document["api_key"]), (&Value::Null, &Value::Null));
    home.metering(&["config", "unset", "url", "--profile", "none"]).failure(4);
}

#[test]
fn profile_is_removed_completely_after_confirmation() {
    let service = StandIn::start();
    let (home, _) = Home::of(&service);
    home.add_profile("other", &service);
    let message = home.metering(&["config", "remove"]).failure(2);
    assert!(message.contains("--yes"), "{message}");
    assert!(home.profile("default", "profile.toml").exists());
    home.metering(&["config", "remove", "--yes"]).success();
    assert!(!home.profile("default", "").exists());
    assert!(home.profile("other", "profile.toml").exists());
    home.metering(&["config", "remove", "--yes"]).failure(4);
    home.metering(&["config", "show"]).failure(4);
}

#[test]
fn path_is_printed_before_the_file_exists() {
    let home = Home::new();
    let path = home.profile("work", "profile.toml");
    let text = home.metering(&["config", "path", "--profile", "work"]).success();
    assert_eq!(text, format!("{}\n", path.display()));
    assert!(!path.exists());
    assert_eq!(home.metering(&["config", "path", "--profile", "../x"]).code, 2);
}

#[test]
fn damaged_profile_is_named_without_its_content() {
    let home = Home::new();
    let path = home.profile("default", "profile.toml");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, "api_key = \"sk_live_damaged\"").unwrap();
    for args in [&["balance"][..], &["config", "show"], &["config", "list"], &["signup"], &["mcp"]] {
        let message = home.metering(args).failure(1);
        assert!(message.contains("profile.toml") && !message.contains("damaged"), "{args:?}: {message}");
    }
}
