//! Signing up without paying, through the service.

use std::net::IpAddr;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use metering_core::service::SignupSettings;
use metering_core::signups::{BotCheck, BotCheckError, BotVerdict};
use metering_core::store::SignupStore;
use metering_core::wire::{ApproveRequest, InitiateRequest, InitiateResponse, StatusResponse};
use metering_core::{ApiKey, Catalogue, Clock, Error, Meter, MeterConfig, Service, ServiceConfig, Store, Timestamp};
use metering_sqlite::SqliteStore;
use tokio::task::JoinSet;

#[derive(Debug)]
struct ManualClock(AtomicI64);

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_unix_millis(self.0.load(Ordering::SeqCst))
    }
}

/// A bot check that passes `good`, and each token that starts with `once` a single time. For `down` it fails.
#[derive(Debug, Default)]
struct BotCheckStub {
    tokens: Mutex<Vec<String>>,
}

#[async_trait]
impl BotCheck for BotCheckStub {
    async fn judge(&self, token: &str, _: Option<IpAddr>, now: Timestamp) -> Result<BotVerdict, BotCheckError> {
        self.tokens.lock().unwrap().push(token.to_owned());
        match token {
            "good" => Ok(BotVerdict::Passed { once: None }),
            "down" => Err(BotCheckError("no response".to_owned())),
            token if token.starts_with("once") => {
                let mut name = [0; 32];
                name[..token.len()].copy_from_slice(token.as_bytes());
                Ok(BotVerdict::Passed { once: Some((name, now.saturating_add(Duration::from_secs(60)))) })
            }
            _ => Ok(BotVerdict::Failed),
        }
    }
}

struct Scene {
    service: Arc<Service>,
    store: Arc<SqliteStore>,
    clock: Arc<ManualClock>,
    bot_check: Arc<BotCheckStub>,
}

impl Scene {
    fn new() -> Self {
        let clock = Arc::new(ManualClock(AtomicI64::new(1_795_262_400_000)));
        let store = Arc::new(SqliteStore::in_memory().unwrap());
        let bot_check = Arc::new(BotCheckStub::default());
        let shared: Arc<dyn Clock> = Arc::clone(&clock) as _;
        let meter = Meter::start(Arc::clone(&store) as _, Arc::clone(&shared), MeterConfig::default());
        let catalogue = r#"{"market": "M", "version": 1, "endpoints": []}"#;
        let catalogue = Arc::new(Catalogue::from_json(catalogue).unwrap());
        let service =
            Service::new(Arc::clone(&store) as _, Arc::new(meter), catalogue, shared, ServiceConfig::default());
        let settings = SignupSettings {
            verification_url: "https://api.example/verify".to_owned(),
            bot_check: Some(Arc::clone(&bot_check) as _),
            ..SignupSettings::default()
        };
        Self { service: Arc::new(service.with_signup(Arc::clone(&store) as _, settings)), store, clock, bot_check }
    }

    async fn initiate(&self, email: &str) -> Result<InitiateResponse, Error> {
        let request = InitiateRequest { email: Some(email.to_owned()), agent_name: Some("agent".to_owned()) };
        self.service.signups().initiate(&request).await
    }

    async fn approve(&self, code: &str, token: &str) -> Result<&'static str, Error> {
        let request = ApproveRequest {
            user_code: Some(code.to_owned()),
            tos_accepted: true,
            captcha_token: Some(token.to_owned()),
        };
        self.service.signups().approve(&request, None).await.map(|response| response.status)
    }

    async fn status(&self, session: &InitiateResponse) -> Result<StatusResponse, Error> {
        self.service.signups().status(&session.session_token).await
    }

    fn pass(&self, minutes: i64) {
        self.clock.0.fetch_add(minutes * 60_000, Ordering::SeqCst);
    }
}

fn code<T: std::fmt::Debug>(response: Result<T, Error>) -> &'static str {
    match response {
        Ok(response) => panic!("accepted: {response:?}"),
        Err(error) => error.code().as_str(),
    }
}

fn key_of(response: StatusResponse) -> ApiKey {
    let document = serde_json::to_value(&response).unwrap();
    assert_eq!(document["status"], "approved");
    ApiKey::parse(document["api_key"].as_str().unwrap()).unwrap()
}

#[tokio::test]
async fn an_approved_signup_gets_its_key_once() {
    let scene = Scene::new();
    let session = scene.initiate("name@example.com").await.unwrap();
    assert_eq!(session.verification_url, "https://api.example/verify");
    assert_eq!(session.verification_url_complete, format!("https://api.example/verify?code={}", session.user_code));
    assert_eq!((session.expires_in, session.interval), (900, 2));
    let pending = serde_json::to_value(scene.status(&session).await.unwrap()).unwrap();
    assert_eq!(pending, serde_json::json!({"status": "pending", "expires_in": 900}));
    let shown = scene.service.signups().pending(&session.user_code.to_lowercase()).await.unwrap();
    assert_eq!((shown.email.as_str(), shown.agent_name.as_str()), ("name@example.com", "agent"));

    assert_eq!(scene.approve(&session.user_code, "good").await.unwrap(), "approved");
    assert_eq!(code(scene.approve(&session.user_code, "good").await), "invalid_code");
    assert_eq!(code(scene.service.signups().pending(&session.user_code).await), "invalid_code");
    let key = key_of(scene.status(&session).await.unwrap());
    let balance = scene.service.usage().balance(Some(&key)).await.unwrap();
    assert_eq!(
        (balance.credit_balance.to_string().as_str(), balance.email.as_deref()),
        ("2", Some("name@example.com"))
    );
    assert_eq!(code(scene.status(&session).await), "not_found");
    assert_eq!(code(scene.initiate("NAME@example.com").await), "email_already_registered");
}

#[tokio::test]
async fn second_signup_with_same_email_reveals_and_changes_nothing() {
    let scene = Scene::new();
    let victim = scene.initiate("name@example.com").await.unwrap();
    let other = scene.initiate("name@example.com").await.unwrap();
    assert_ne!(victim.session_token, other.session_token);
    assert_ne!(victim.user_code, other.user_code);
    scene.approve(&victim.user_code, "good").await.unwrap();
    let pending = serde_json::to_value(scene.status(&other).await.unwrap()).unwrap();
    assert_eq!(pending["status"], "pending");
    key_of(scene.status(&victim).await.unwrap());
    assert_eq!(code(scene.approve(&other.user_code, "good").await), "email_already_registered");
}

#[tokio::test]
async fn invalid_approvals_leave_the_session_pending() {
    let scene = Scene::new();
    let session = scene.initiate("name@example.com").await.unwrap();
    let request = |code: Option<&str>, tos_accepted, token: Option<&str>| ApproveRequest {
        user_code: code.map(str::to_owned),
        tos_accepted,
        captcha_token: token.map(str::to_owned),
    };
    let user_code = Some(session.user_code.as_str());
    let table = [
        (request(None, true, Some("good")), "validation_failed"),
        (request(user_code, false, Some("good")), "terms_not_accepted"),
        (request(user_code, true, None), "challenge_failed"),
        (request(user_code, true, Some("")), "challenge_failed"),
        (request(user_code, true, Some("bad")), "challenge_failed"),
        (request(user_code, true, Some("down")), "challenge_unavailable"),
        (request(Some("BCDF-GHJK"), true, Some("good")), "invalid_code"),
        (request(Some("nonsense"), true, Some("good")), "invalid_code"),
    ];
    for (request, expected) in table {
        assert_eq!(code(scene.service.signups().approve(&request, None).await), expected, "{request:?}");
    }
    assert!(matches!(scene.status(&session).await.unwrap(), StatusResponse::Pending { .. }));
    scene.approve(&session.user_code, "good").await.unwrap();
}

#[tokio::test]
async fn each_guessed_code_costs_a_solution() {
    let scene = Scene::new();
    assert_eq!(code(scene.approve("BCDF-GHJK", "once").await), "invalid_code");
    assert_eq!(code(scene.approve("BCDF-GHJL", "once").await), "challenge_failed");
    assert_eq!(scene.bot_check.tokens.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn signups_expire_unless_they_were_approved_in_time() {
    let scene = Scene::new();
    let late = scene.initiate("late@example.com").await.unwrap();
    let kept = scene.initiate("kept@example.com").await.unwrap();
    scene.approve(&kept.user_code, "good").await.unwrap();
    scene.pass(16);
    assert_eq!(code(scene.approve(&late.user_code, "good").await), "invalid_code");
    assert!(matches!(scene.status(&late).await.unwrap(), StatusResponse::Expired));
    key_of(scene.status(&kept).await.unwrap());
    scene.pass(25 * 60);
    assert!(scene.store.forget_expired(scene.clock.now()).await.unwrap() >= 1);
    assert_eq!(code(scene.status(&late).await), "not_found");
}

#[tokio::test]
async fn many_polls_at_once_get_one_key() {
    let scene = Scene::new();
    let session = scene.initiate("name@example.com").await.unwrap();
    scene.approve(&session.user_code, "good").await.unwrap();
    let mut tasks = JoinSet::new();
    for _ in 0..20 {
        let (service, token) = (scene.service.clone(), session.session_token.clone());
        tasks.spawn(async move { service.signups().status(&token).await });
    }
    let responses = tasks.join_all().await;
    assert_eq!(responses.iter().filter(|response| response.is_ok()).count(), 1);
    assert_eq!(scene.store.accounts(None, 10).await.unwrap().items.len(), 1);
}

#[tokio::test]
async fn used_solution_is_stored_until_its_challenge_expires() {
    let scene = Scene::new();
    let now = scene.clock.now();
    let over = now.saturating_add(Duration::from_secs(60));
    assert!(scene.store.use_solution([1; 32], over).await.unwrap());
    assert!(!scene.store.use_solution([1; 32], over).await.unwrap());
    assert!(scene.store.use_solution([2; 32], over).await.unwrap());
    assert_eq!(scene.store.forget_expired(over).await.unwrap(), 2);
}

#[tokio::test]
async fn malformed_signups_are_named() {
    let scene = Scene::new();
    let Err(Error::ValidationFailed(fields)) = scene.service.signups().initiate(&InitiateRequest::default()).await
    else {
        panic!("a signup without any field was accepted");
    };
    assert_eq!(fields.keys().map(String::as_str).collect::<Vec<_>>(), ["agent_name", "email"]);
    for email in ["", "x", "a@b", "a b@example.com"] {
        assert_eq!(code(scene.initiate(email).await), "validation_failed", "{email}");
    }
    for token in ["", "x", "sst_short"] {
        assert_eq!(code(scene.service.signups().status(token).await), "not_found");
    }
}
