//! `metering signup`.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::new_key;
use crate::program::{Program, RunOutput, ended, kill, mode, signal};
use crate::stand_in::{Reply, StandIn};

const TOKEN: &str = "sst_very+secret/token";
const STATUS: &str = "/signup/status";
const PENDING: &str = r#"{"status":"pending","expires_in":600}"#;
const SIGNUP: &str = "signup --email me@example.com --agent-name bot --url $url";

struct Scene {
    service: StandIn,
    program: Program,
    key: String,
}

impl Scene {
    /// A service whose sessions last ten minutes, and these statuses of the session.
    fn new(statuses: impl IntoIterator<Item = Reply>) -> Self {
        Self::lasting(600, statuses)
    }

    fn lasting(expires_in: u64, statuses: impl IntoIterator<Item = Reply>) -> Self {
        let session = json!({
            "session_token": TOKEN, "user_code": "ABCD-EFGH", "expires_in": expires_in, "interval": 1,
            "verification_url": "https://pay.example/verify",
            "verification_url_complete": "https://pay.example/verify?code=ABCD-EFGH",
        });
        let scene = Self { service: StandIn::start(), program: Program::new(), key: new_key() };
        scene.service.on("/signup/initiate", Reply::new(201, session.to_string())).on_each(STATUS, statuses);
        scene.program.call("url", scene.service.url());
        scene
    }

    fn approved(&self) -> Reply {
        approved(&self.key)
    }

    /// Runs a command that prints no secrets, unless the key is asked for.
    fn run(&self, line: &str) -> RunOutput {
        let ran = self.program.run(line);
        assert!(!ran.shows(TOKEN) && (line.contains("--show-key") || !ran.shows(&self.key)), "{ran:?}");
        ran
    }

    fn signup(&self, options: &str) -> RunOutput {
        self.run(&format!("{SIGNUP} {options}"))
    }

    /// Kills a signup that waits for the person.
    fn kill_one(&self) {
        let child = self.program.start(SIGNUP);
        self.service.await_requests(STATUS, 1);
        let _ = kill(child);
    }

    fn stored(&self) -> String {
        std::fs::read_to_string(self.program.profile("default", "profile.toml")).unwrap_or_default()
    }

    fn pending(&self) -> bool {
        self.program.profile("default", "signup.json").exists()
    }
}

fn approved(key: &str) -> Reply {
    Reply::ok(format!(
        r#"{{"status":"approved","api_key":"{key}","org_id":"org_7","credit_balance":2.00,"rate_limits":{{"requests_per_minute":240,"requests_per_day":1500000}}}}"#
    ))
}

fn pending() -> Reply {
    Reply::ok(PENDING)
}

fn expired() -> Reply {
    Reply::ok(r#"{"status":"expired"}"#)
}

#[test]
fn an_approved_signup_puts_the_key_into_the_profile() {
    let scene = Scene::new([pending()]);
    scene.service.on(STATUS, scene.approved());
    let ran = scene.signup("").expect(0);
    for shown in ["https://pay.example/verify\n", "ABCD-EFGH", "verify?code=ABCD-EFGH"] {
        assert!(ran.stderr.contains(shown), "{ran:?}");
    }
    let profile = scene.program.profile("default", "profile.toml");
    for shown in ["Account        org_7", "Balance        2.00", profile.to_str().unwrap()] {
        assert!(ran.stdout.contains(shown), "{ran:?}");
    }
    assert!(scene.stored().contains(&scene.key) && scene.stored().contains("org_7"));
    assert_eq!((scene.pending(), mode(&profile)), (false, 0o600));
    let requests = scene.service.requests();
    assert_eq!(requests[0].body, r#"{"agent_name":"bot","email":"me@example.com"}"#);
    assert_eq!(requests[1].target, "/signup/status?session_token=sst_very%2Bsecret%2Ftoken");
    assert_eq!(requests.len(), 3);
}

#[test]
fn json_output_has_the_key_only_on_request() {
    let scene = Scene::new([]);
    scene.service.on(STATUS, scene.approved());
    let document: Value = scene.signup("--json").expect(0).json();
    assert_eq!((&document["org_id"], &document["api_key"]), (&json!("org_7"), &json!(null)));
    let ran = scene.signup("--json --show-key --replace-key").expect(0);
    assert_eq!(ran.json::<Value>()["api_key"], scene.key);
    assert!(ran.stdout.contains("\"credit_balance\":2.00"), "{ran:?}");
    assert!(scene.signup("--show-key --replace-key").stdout.contains(&scene.key));
}

#[test]
fn a_profile_that_has_a_key_keeps_it() {
    let scene = Scene::new([]);
    scene.service.on(STATUS, scene.approved());
    let before = scene.program.add_profile("default", &scene.service);
    let ran = scene.signup("").expect(5).says("--replace-key");
    assert!(!ran.shows(&before) && scene.stored().contains(&before), "{ran:?}");
    assert_eq!(scene.service.requests().len(), 0);
    let ran = scene.signup("--replace-key").expect(0).says("still valid");
    assert!(!ran.shows(&before) && scene.stored().contains(&scene.key));
}

#[test]
fn killed_signup_resumes_and_gets_its_key() {
    let scene = Scene::new([pending()]);
    let child = scene.program.start(SIGNUP);
    scene.service.await_requests(STATUS, 1);
    // A second run at the same time would take the key from the first.
    let _ = scene.signup("").expect(5).says("signing up");
    let _ = kill(child);
    assert!(scene.pending());
    assert_eq!(mode(&scene.program.profile("default", "signup.json")), 0o600);
    scene.service.on(STATUS, scene.approved());
    // Another person's signup is not continued.
    let other = scene.run("signup --email you@example.com --agent-name bot --url $url").expect(5);
    let _ = other.says("me@example.com").says("--restart");
    // It resumes at its service without naming it again.
    let _ = scene.run("signup").expect(0).says("ABCD-EFGH");
    assert!(scene.stored().contains(&scene.key) && !scene.pending());
    assert_eq!(scene.service.count("/signup/initiate"), 1);
}

#[test]
fn interrupted_signup_says_how_to_continue() {
    let scene = Scene::new([pending()]);
    let child = scene.program.start(SIGNUP);
    scene.service.await_requests(STATUS, 2);
    signal(&child, "INT");
    let message = ended(child).failure(130);
    assert!(message.contains("run `metering signup` again") && scene.pending(), "{message}");
}

#[test]
fn unapproved_signup_expires_and_starts_anew() {
    let scene = Scene::new([expired()]);
    let _ = scene.signup("").expect(8).says("ABCD-EFGH").says("again");
    assert!(!scene.pending() && !scene.stored().contains("api_key"));
    // Also when the service never says so.
    let scene = Scene::lasting(1, [pending()]);
    let began = Instant::now();
    let _ = scene.signup("").expect(8);
    assert!(began.elapsed() < Duration::from_secs(60));
    // One that expired after it was killed is started anew.
    let scene = Scene::new([pending()]);
    scene.kill_one();
    scene.service.on_each(STATUS, [expired(), scene.approved()]);
    let _ = scene.run("signup --url $url").expect(0).says("has expired; starting a new one");
    assert!(scene.stored().contains(&scene.key));
}

#[test]
fn short_outages_and_busy_service_are_retried() {
    let busy = Reply::error(429, "rate_limited").header("retry-after", 2);
    let cut_off = Reply::ok("{\"status\":").cut_off();
    let scene = Scene::new([Reply::html(502), Reply::error(503, "overloaded"), busy, cut_off]);
    scene.service.on(STATUS, scene.approved());
    let began = Instant::now();
    let ran = scene.signup("").expect(0);
    assert!(began.elapsed() >= Duration::from_secs(5), "{:?}", began.elapsed());
    assert_eq!(ran.stderr.matches("; still trying").count(), 2, "{ran:?}");
}

#[test]
fn key_that_is_lost_or_cannot_be_stored_is_reported() {
    let scene = Scene::new([]);
    scene.service.on_each(STATUS, [scene.approved().cut_off(), Reply::error(404, "not_found")]);
    let _ = scene.signup("").expect(4).says("did not arrive").says("operator");
    assert!(!scene.pending() && !scene.stored().contains("api_key"));

    let scene = Scene::new([approved("sk_live_short")]);
    let ran = scene.signup("").expect(1).says("org_7").says("could not be stored");
    assert!(!ran.shows("sk_live_short"), "{ran:?}");
    assert_eq!(scene.signup("--show-key").expect(1).stdout, "sk_live_short\n");
    assert!(!scene.stored().contains("api_key"));
}

#[test]
fn rejections_end_the_signup_and_outages_keep_it() {
    let session =
        r#"{"session_token":"t","user_code":"A\u001b[2J","expires_in":600,"interval":1,"verification_url":"u\u001b"}"#;
    let opened = || Reply::new(201, session);
    // initiate, status, exit code, pending afterwards
    for (initiate, status, code, is_pending) in [
        (Reply::error(400, "validation_failed"), pending(), 2, false),
        (Reply::error(409, "email_already_registered"), pending(), 5, false),
        (Reply::html(200), pending(), 1, false),
        (opened(), Reply::html(200), 1, true),
        (opened(), Reply::ok(r#"{"status":"approved"}"#), 1, true),
        (opened(), Reply::error(409, "email_already_registered"), 5, false),
        (opened(), Reply::error(400, "validation_failed"), 2, true),
    ] {
        let scene = Scene::new([status]);
        scene.service.only("/signup/initiate", initiate);
        let ran = scene.signup("");
        assert!(!ran.stderr.contains('\u{1b}'), "{ran:?}");
        ran.failure(code);
        assert_eq!(scene.pending(), is_pending);
    }
}

#[test]
fn signup_requires_an_email() {
    let scene = Scene::new([]);
    scene.program.refuses(&[("signup --url $url", 2, "--email")]);
    assert_eq!(scene.service.requests().len(), 0);
    scene.program.write("profiles/default/signup.json", "{\"session_token\":\"secret\"");
    let message = scene.signup("").failure(1);
    assert!(message.contains("signup.json is damaged") && !message.contains("secret"), "{message}");
}

#[test]
fn browser_opens_only_on_request_and_is_optional() {
    use std::os::unix::fs::PermissionsExt;
    let scene = Scene::new([pending()]);
    scene.service.on(STATUS, scene.approved());
    let program = &scene.program;
    program.write("xdg-open", "#!/bin/sh\necho \"$1\" > \"$METERING_CLIENT_HOME/opened\"\n");
    std::fs::set_permissions(program.path("xdg-open"), PermissionsExt::from_mode(0o755)).unwrap();
    let run = |path: &str, options: &str| {
        let path = program.path(path);
        program.run_with(&[("PATH", path.to_str().unwrap())], &format!("{SIGNUP} {options}")).expect(0)
    };
    let _ = run("", "--open");
    assert_eq!(program.read("opened"), "https://pay.example/verify?code=ABCD-EFGH\n");
    let _ = run("nowhere", "--open --replace-key").says("open the page yourself");
}
