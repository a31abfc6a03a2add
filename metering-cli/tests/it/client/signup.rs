//! `metering signup`.

use std::time::{Duration, Instant};

use metering_core::{ApiKey, SystemRandomness};
use serde_json::json;

use crate::home::{Home, RunOutput};
use crate::stand_in::{Reply, StandIn};

const TOKEN: &str = "sst_very+secret/token";
const STATUS: &str = "/signup/status";
const PENDING: &str = r#"{"status":"pending","expires_in":600}"#;
const SIGNUP_ARGS: [&str; 5] = ["signup", "--email", "me@example.com", "--agent-name", "bot"];

struct Scene {
    service: StandIn,
    home: Home,
    key: ApiKey,
}

impl Scene {
    /// A service whose sessions last this many seconds.
    fn new(expires_in: u64) -> Self {
        let service = StandIn::start();
        let scene = Self { service, home: Home::new(), key: ApiKey::generate(&SystemRandomness) };
        let session = json!({
            "session_token": TOKEN, "user_code": "ABCD-EFGH", "expires_in": expires_in, "interval": 1,
            "verification_url": "https://pay.example/verify",
            "verification_url_complete": "https://pay.example/verify?code=ABCD-EFGH",
        });
        scene.service.on("/signup/initiate", Reply::new(201, session.to_string()));
        scene
    }

    fn approved(&self) -> Reply {
        self.approved_with(self.key.expose())
    }

    fn approved_with(&self, key: &str) -> Reply {
        Reply::ok(format!(
            r#"{{"status":"approved","api_key":"{key}","org_id":"org_7","credit_balance":2.00,"rate_limits":{{"requests_per_minute":240,"requests_per_day":1500000}}}}"#
        ))
    }

    fn args<'a>(&self, url: &'a str, args: &[&'a str]) -> Vec<&'a str> {
        [&SIGNUP_ARGS[..], &["--url", url], args].concat()
    }

    fn signup(&self, args: &[&str]) -> RunOutput {
        let ran = self.home.metering(&self.args(&self.service.url(), args));
        assert!(!ran.stdout.contains(TOKEN) && !ran.stderr.contains(TOKEN), "{ran:?}");
        if !args.contains(&"--show-key") {
            assert!(!ran.stdout.contains(self.key.expose()) && !ran.stderr.contains(self.key.expose()), "{ran:?}");
        }
        ran
    }

    fn stored(&self) -> String {
        std::fs::read_to_string(self.home.profile("default", "profile.toml")).unwrap_or_default()
    }

    fn pending(&self) -> bool {
        self.home.profile("default", "signup.json").exists()
    }
}

#[test]
fn an_approved_signup_puts_the_key_into_the_profile() {
    let scene = Scene::new(600);
    scene.service.on(STATUS, Reply::ok(PENDING)).on(STATUS, scene.approved());
    let ran = scene.signup(&[]);
    assert_eq!(ran.code, 0, "{ran:?}");
    for shown in ["https://pay.example/verify\n", "ABCD-EFGH", "verify?code=ABCD-EFGH"] {
        assert!(ran.stderr.contains(shown), "{ran:?}");
    }
    let profile = scene.home.profile("default", "profile.toml");
    for shown in ["account        org_7", "balance        2.00", profile.to_str().unwrap()] {
        assert!(ran.stdout.contains(shown), "{ran:?}");
    }
    assert!(scene.stored().contains(scene.key.expose()) && scene.stored().contains("org_7"));
    assert!(!scene.pending());
    #[cfg(unix)]
    assert_eq!(crate::home::mode(&profile), 0o600);
    let requests = scene.service.requests();
    assert_eq!(requests[0].body, r#"{"email":"me@example.com","agent_name":"bot"}"#);
    assert_eq!(requests[1].target, "/signup/status?session_token=sst_very%2Bsecret%2Ftoken");
    assert_eq!(requests.len(), 3);
}

#[test]
fn json_output_has_the_key_only_on_request() {
    let scene = Scene::new(600);
    scene.service.on(STATUS, scene.approved());
    let document = scene.signup(&["--json"]).json();
    assert_eq!((&document["org_id"], &document["api_key"]), (&json!("org_7"), &json!(null)));
    let ran = scene.signup(&["--json", "--show-key", "--replace-key"]);
    assert_eq!(ran.json()["api_key"], scene.key.expose());
    assert!(ran.stdout.contains("\"credit_balance\":2.00"), "{ran:?}");
    let ran = scene.signup(&["--show-key", "--replace-key"]);
    assert!(ran.stdout.contains(scene.key.expose()), "{ran:?}");
}

#[test]
fn a_profile_that_has_a_key_keeps_it() {
    let scene = Scene::new(600);
    scene.service.on(STATUS, scene.approved());
    let before = scene.home.add_profile("default", &scene.service);
    let message = scene.signup(&[]).failure(5);
    assert!(message.contains("--replace-key") && !message.contains(before.expose()), "{message}");
    assert_eq!(scene.service.requests().len(), 0);
    assert!(scene.stored().contains(before.expose()));
    let ran = scene.signup(&["--replace-key"]);
    assert!(ran.code == 0 && ran.stderr.contains("still valid"), "{ran:?}");
    assert!(!ran.stderr.contains(before.expose()) && scene.stored().contains(scene.key.expose()));
}

#[test]
fn killed_signup_resumes_and_gets_its_key() {
    let scene = Scene::new(600);
    scene.service.on(STATUS, Reply::ok(PENDING));
    let url = scene.service.url();
    let mut child = scene.home.start(&scene.args(&url, &[]));
    scene.service.await_requests(STATUS, 1);
    // A second run at the same time would take the key from the first.
    let message = scene.signup(&[]).failure(5);
    assert!(message.contains("signing up"), "{message}");
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(scene.pending());
    #[cfg(unix)]
    assert_eq!(crate::home::mode(&scene.home.profile("default", "signup.json")), 0o600);
    scene.service.on(STATUS, scene.approved());
    // Another person's signup is not continued.
    let other = ["signup", "--email", "you@example.com", "--agent-name", "bot", "--url", &url];
    let message = scene.home.metering(&other).failure(5);
    assert!(message.contains("me@example.com") && message.contains("--restart"), "{message}");
    let ran = scene.home.metering(&["signup", "--url", &url]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stderr.contains("ABCD-EFGH") && scene.stored().contains(scene.key.expose()));
    let initiated = scene.service.targets().iter().filter(|target| *target == "/signup/initiate").count();
    assert_eq!((initiated, scene.pending()), (1, false));
}

#[cfg(unix)]
#[test]
fn interrupted_signup_says_how_to_continue() {
    let scene = Scene::new(600);
    scene.service.on(STATUS, Reply::ok(PENDING));
    let url = scene.service.url();
    let child = scene.home.start(&scene.args(&url, &[]));
    scene.service.await_requests(STATUS, 2);
    let killed = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let message = RunOutput::from(child.wait_with_output().unwrap()).failure(130);
    assert!(message.contains("run `metering signup` again"), "{message}");
    assert!(scene.pending());
}

#[test]
fn unapproved_signup_expires() {
    let scene = Scene::new(600);
    scene.service.on(STATUS, Reply::ok(r#"{"status":"expired"}"#));
    let message = scene.signup(&[]).failure(8);
    assert!(message.contains("ABCD-EFGH") && message.contains("again"), "{message}");
    assert!(!scene.pending() && !scene.stored().contains("api_key"));
    // Also when the service never says so.
    let scene = Scene::new(1);
    scene.service.on(STATUS, Reply::ok(PENDING));
    let began = Instant::now();
    scene.signup(&[]).failure(8);
    assert!(began.elapsed() < Duration::from_secs(10));
}

#[test]
fn expired_signup_starts_anew() {
    let scene = Scene::new(600);
    scene.service.on(STATUS, Reply::ok(PENDING));
    let url = scene.service.url();
    let mut child = scene.home.start(&scene.args(&url, &[]));
    scene.service.await_requests(STATUS, 1);
    child.kill().unwrap();
    child.wait().unwrap();
    scene.service.on(STATUS, Reply::ok(r#"{"status":"expired"}"#)).on(STATUS, scene.approved());
    let ran = scene.home.metering(&["signup", "--url", &url]);
    assert!(ran.code == 0 && ran.stderr.contains("has expired; starting a new one"), "{ran:?}");
    assert!(scene.stored().contains(scene.key.expose()));
}

#[test]
fn signup_resumes_at_its_service_without_naming_it_again() {
    let scene = Scene::new(600);
    scene.service.on(STATUS, Reply::ok(PENDING));
    let mut child = scene.home.start(&scene.args(&scene.service.url(), &[]));
    scene.service.await_requests(STATUS, 1);
    child.kill().unwrap();
    child.wait().unwrap();
    scene.service.on(STATUS, scene.approved());
    let ran = scene.home.metering(&["signup"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(scene.stored().contains(scene.key.expose()));
}

#[test]
fn short_outages_and_busy_service_are_retried() {
    let scene = Scene::new(600);
    for reply in [
        Reply::html(502),
        Reply::error(503, "overloaded"),
        Reply::error(429, "rate_limited").header("retry-after", 2),
        Reply::ok("{\"status\":").cut_off(),
        scene.approved(),
    ] {
        scene.service.on(STATUS, reply);
    }
    let began = Instant::now();
    let ran = scene.signup(&[]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(began.elapsed() >= Duration::from_secs(5), "{:?}", began.elapsed());
    assert_eq!(ran.stderr.matches("; still trying").count(), 2, "{ran:?}");
}

#[test]
fn key_lost_with_its_response_is_reported() {
    let scene = Scene::new(600);
    scene.service.on(STATUS, scene.approved().cut_off()).on(STATUS, Reply::error(404, "not_found"));
    let message = scene.signup(&[]).failure(4);
    assert!(message.contains("did not arrive") && message.contains("operator"), "{message}");
    assert!(!scene.pending() && !scene.stored().contains("api_key"));
}

#[test]
fn key_that_cannot_be_stored_is_reported_and_printed_on_request() {
    let scene = Scene::new(600);
    let malformed = scene.approved_with("sk_live_short");
    scene.service.on(STATUS, malformed);
    let ran = scene.signup(&[]);
    assert!(!ran.stdout.contains("sk_live_short") && !ran.stderr.contains("sk_live_short"), "{ran:?}");
    let message = ran.failure(1);
    assert!(message.contains("org_7") && message.contains("could not be stored"), "{message}");
    let ran = scene.signup(&["--show-key"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (1, "sk_live_short\n"), "{ran:?}");
    assert!(!scene.stored().contains("api_key"));
}

#[test]
fn rejections_end_the_signup_and_outages_keep_it() {
    // initiate, status, exit code, pending afterwards
    let session =
        r#"{"session_token":"t","user_code":"A\u001b[2J","expires_in":600,"interval":1,"verification_url":"u\u001b"}"#;
    let table = [
        (Reply::error(400, "validation_failed"), Reply::ok(PENDING), 2, false),
        (Reply::error(409, "email_already_registered"), Reply::ok(PENDING), 5, false),
        (Reply::html(200), Reply::ok(PENDING), 1, false),
        (Reply::new(201, session), Reply::html(200), 1, true),
        (Reply::new(201, session), Reply::ok(r#"{"status":"approved"}"#), 1, true),
        (Reply::new(201, session), Reply::error(409, "email_already_registered"), 5, false),
        (Reply::new(201, session), Reply::error(400, "validation_failed"), 2, true),
    ];
    for (initiate, status, code, pending) in table {
        let scene = Scene { service: StandIn::start(), ..Scene::new(600) };
        scene.service.on("/signup/initiate", initiate).on(STATUS, status);
        let ran = scene.signup(&[]);
        assert!(!ran.stderr.contains('\u{1b}'), "{ran:?}");
        ran.failure(code);
        assert_eq!(scene.pending(), pending);
    }
}

#[test]
fn signup_requires_an_email() {
    let scene = Scene::new(600);
    let message = scene.home.metering(&["signup", "--url", &scene.service.url()]).failure(2);
    assert!(message.contains("--email"), "{message}");
    assert_eq!(scene.service.requests().len(), 0);
    std::fs::write(scene.home.profile("default", "signup.json"), "{\"session_token\":\"secret\"").unwrap();
    let message = scene.signup(&[]).failure(1);
    assert!(message.contains("signup.json is damaged") && !message.contains("secret"), "{message}");
}

#[cfg(target_os = "linux")]
#[test]
fn browser_opens_only_on_request_and_is_optional() {
    use std::os::unix::fs::PermissionsExt;
    let scene = Scene::new(600);
    scene.service.on(STATUS, Reply::ok(PENDING)).on(STATUS, scene.approved());
    let opener = scene.home.path("xdg-open");
    std::fs::write(&opener, "#!/bin/sh\necho \"$1\" > \"$METERING_CLIENT_HOME/opened\"\n").unwrap();
    std::fs::set_permissions(&opener, PermissionsExt::from_mode(0o755)).unwrap();
    let url = scene.service.url();
    let mut command = scene.home.command(&scene.args(&url, &["--open"]));
    assert!(command.env("PATH", scene.home.path("")).output().unwrap().status.success());
    let opened = std::fs::read_to_string(scene.home.path("opened")).unwrap();
    assert_eq!(opened, "https://pay.example/verify?code=ABCD-EFGH\n");
    let mut command = scene.home.command(&scene.args(&url, &["--open", "--replace-key"]));
    let output = command.env("PATH", scene.home.path("nowhere")).output().unwrap();
    assert!(output.status.success() && String::from_utf8(output.stderr).unwrap().contains("open the page yourself"));
}
