//! Limits, ownership, and everything that ends a session.

use async_trait::async_trait;
use bytes::Bytes;
use metering_client::{BodyStream, Client, Transport, Unreachable};

use super::*;

fn sessions() -> Arc<Sessions> {
    let size = |size| std::num::NonZeroUsize::new(size).unwrap();
    let config = McpConfig {
        max_sessions_per_key: size(2),
        max_sessions: size(3),
        max_calls_per_key: size(2),
        max_calls: size(3),
        max_without_credit: size(1),
        ..McpConfig::default()
    };
    Arc::new(Sessions::new(&config, &Shutdown::new()))
}

/// A caller of a new account.
fn caller() -> Caller {
    let key = ApiKey::generate(&SystemRandomness);
    let account = hex::encode(key.hash().as_bytes()).into();
    Caller { key: Some(key), address: None, account, has_credit: true, token: None }
}

fn inbox() -> Option<Inbox> {
    Some(Inbox { messages: mpsc::channel(1).0, backlog: Arc::new(Backlog::new()) })
}

/// A service where one key is unknown, another one hangs, the account of a third has no credit, and requests with any
/// other key fail as unreachable.
#[derive(Debug)]
struct Service {
    dead: ApiKey,
    hangs: ApiKey,
    poor: Caller,
}

#[async_trait]
impl Transport for Service {
    async fn send(&self, request: http::Request<Bytes>) -> Result<http::Response<BodyStream>, Unreachable> {
        let key = request.headers()["authorization"].to_str().unwrap().trim_start_matches("Bearer ").to_owned();
        if key == self.hangs.expose() {
            std::future::pending::<()>().await;
        }
        if Some(key.as_str()) == self.poor.key.as_ref().map(ApiKey::expose) {
            let json = format!(r#"{{"org_id": "{}", "credit_balance": -0.5, "more": 1}}"#, self.poor.account);
            let body = stream::once(std::future::ready(Ok(Bytes::from(json)))).boxed();
            return Ok(http::Response::new(body));
        }
        if key != self.dead.expose() {
            return Err(Unreachable("down".to_owned()));
        }
        let response = http::Response::builder().status(401);
        Ok(response.body(stream::empty().boxed()).unwrap())
    }
}

#[tokio::test(start_paused = true)]
async fn sessions_of_a_revoked_key_end_but_not_on_service_failures() {
    let config = McpConfig::default();
    let sessions = Arc::new(Sessions::new(&config, &Shutdown::new()));
    let callers = [(); 4].map(|()| caller());
    let permits = callers.each_ref().map(|caller| sessions.open(caller.clone(), inbox()).unwrap().1);
    let [dead, hangs, poor, other] = callers;
    let service = Service { dead: dead.key.unwrap(), hangs: hangs.key.unwrap(), poor: poor.clone() };
    let accounts = Accounts::Elsewhere(Client::new(Arc::new(service), metering_core::ClientSource::Mcp));
    sessions.check_keys(&accounts).await;
    assert_eq!(permits.each_ref().map(|permit| permit.end().is_cancelled()), [true, false, false, false]);
    let has_credit = |caller: &Caller| sessions.lock().holdings[&caller.account].has_credit;
    assert_eq!((has_credit(&poor), has_credit(&other)), (false, true), "the credit was spent after the session began");
}

#[tokio::test(start_paused = true)]
async fn shutdown_ends_all_sessions_including_later_ones() {
    let (shutdown, hanging) = (Shutdown::new(), caller());
    let sessions = Arc::new(Sessions::new(&McpConfig::default(), &shutdown));
    let (_, permit) = sessions.open(hanging.clone(), inbox()).unwrap();
    let service = Service { dead: caller().key.unwrap(), hangs: hanging.key.clone().unwrap(), poor: caller() };
    let accounts = Accounts::Elsewhere(Client::new(Arc::new(service), metering_core::ClientSource::Mcp));
    let (watched, second) = (Arc::clone(&sessions), Duration::from_secs(1));
    let watch = tokio::spawn(async move { watched.watch(&accounts, second).await });
    // By then the watch is waiting for a response that never comes.
    tokio::time::sleep(2 * second).await;
    shutdown.cancel();
    assert!(permit.end().is_cancelled());
    assert!(tokio::time::timeout(second / 10, watch).await.is_ok());
    let (_, late) = sessions.open(hanging, inbox()).unwrap();
    assert!(late.end().is_cancelled());
}

#[test]
fn sessions_are_bounded_per_account_and_in_all_and_come_back() {
    let (sessions, a, b) = (sessions(), caller(), caller());
    let (_, first) = sessions.open(a.clone(), inbox()).unwrap();
    let (_, _second) = sessions.open(a.clone(), inbox()).unwrap();
    assert_eq!(sessions.open(a.clone(), inbox()).unwrap_err().code(), ErrorCode::TooManySessions);
    let (_, _of_b) = sessions.open(b.clone(), inbox()).unwrap();
    assert_eq!(
        sessions.open(b.clone(), inbox()).unwrap_err().code(),
        ErrorCode::TooManySessions,
        "`a` does not have more than `b` would"
    );
    drop(first);
    let _session = sessions.open(b, inbox()).unwrap();
}

#[test]
fn full_server_ends_the_stalest_session_of_the_heaviest_account() {
    let (sessions, a, b) = (sessions(), caller(), caller());
    let opened = [sessions.open(a.clone(), inbox()).unwrap(), sessions.open(a.clone(), inbox()).unwrap()];
    let (_, of_b) = sessions.open(b, inbox()).unwrap();
    std::thread::sleep(Duration::from_millis(2));
    assert!(sessions.inbox(&opened[0].0, a.key.as_ref()).is_some(), "it was active last");
    let (_, newest) = sessions.open(caller(), inbox()).unwrap();
    let ended = [&opened[0].1, &opened[1].1, &of_b, &newest].map(|permit| permit.end().is_cancelled());
    assert_eq!(ended, [false, true, false, false]);
    assert!(sessions.inbox(&opened[1].0, a.key.as_ref()).is_none());
    assert_eq!(
        sessions.open(caller(), inbox()).unwrap_err().code(),
        ErrorCode::TooManySessions,
        "each account has one"
    );
    // The slot of a session that was ended before is not released twice.
    drop(opened);
    assert_eq!(sessions.lock().sessions.len(), 2);
    drop((of_b, newest));
    assert!(sessions.lock().sessions.is_empty() && sessions.lock().holdings.is_empty());
}

#[test]
fn accounts_without_credit_have_few_sessions_and_lose_them_first() {
    let sessions = sessions();
    let poor = || Caller { has_credit: false, ..caller() };
    let one = poor();
    let (_, _first) = sessions.open(one.clone(), inbox()).unwrap();
    let refused = sessions.open(one.clone(), inbox()).unwrap_err();
    assert_eq!(refused.code(), ErrorCode::TooManySessions);
    let others = [sessions.open(poor(), inbox()).unwrap(), sessions.open(poor(), inbox()).unwrap()];
    assert!(sessions.open(poor(), inbox()).is_err());
    let (_, _paid) = sessions.open(caller(), inbox()).unwrap();
    assert_eq!(sessions.lock().sessions.len(), 3);
    let _call = sessions.reserve(&one).unwrap();
    assert!(sessions.reserve(&one).is_err());
    drop(others);
}

#[test]
fn calls_have_their_own_permits() {
    let (sessions, a, b) = (sessions(), caller(), caller());
    let open = [sessions.open(a.clone(), inbox()).unwrap(), sessions.open(a.clone(), inbox()).unwrap()];
    let first = sessions.reserve(&a).unwrap();
    let second = sessions.reserve(&a).unwrap();
    assert_eq!(sessions.reserve(&a).unwrap_err().code(), ErrorCode::TooManySessions);
    let third = sessions.reserve(&b).unwrap();
    assert_eq!(sessions.reserve(&caller()).unwrap_err().code(), ErrorCode::TooManySessions, "all call slots are taken");
    drop(first);
    let fourth = sessions.reserve(&caller()).unwrap();
    drop((second, third, fourth, open));
    let books = sessions.lock();
    assert!(books.calls.is_empty() && books.calls_total == 0);
}

#[test]
fn session_belongs_to_its_key_and_ends_with_its_permit() {
    let (sessions, a, b) = (sessions(), caller(), caller());
    let (id, permit) = sessions.open(a.clone(), inbox()).unwrap();
    assert!(sessions.inbox(&id, a.key.as_ref()).is_some());
    assert!(sessions.inbox(&id, b.key.as_ref()).is_none());
    assert!(sessions.inbox(&SessionId::read("unknown"), a.key.as_ref()).is_none());
    let end = permit.end().clone();
    drop(permit);
    assert!(end.is_cancelled());
    assert!(sessions.inbox(&id, a.key.as_ref()).is_none());
    assert!(sessions.lock().holdings.is_empty());
}

#[test]
fn idle_session_is_ended() {
    let config = McpConfig { idle_timeout: crate::config::Span::seconds(0), ..McpConfig::default() };
    let sessions = Arc::new(Sessions::new(&config, &Shutdown::new()));
    let (_, permit) = sessions.open(caller(), inbox()).unwrap();
    let subscriber = caller();
    let (id, subscription) = sessions.open(subscriber.clone(), None).unwrap();
    assert_eq!(sessions.end_idle().len(), 1, "the key of the subscription is still checked");
    assert!(permit.end().is_cancelled() && !subscription.end().is_cancelled());
    assert!(sessions.inbox(&id, subscriber.key.as_ref()).is_none(), "it takes no messages");
}

#[test]
fn session_without_a_key_is_nobody_elses_and_networks_have_a_small_share() {
    let sessions = sessions();
    let stranger = || Caller { key: None, account: "a network".into(), has_credit: false, ..caller() };
    let (id, _permit) = sessions.open(stranger(), inbox()).unwrap();
    let (of_key, _other) = sessions.open(caller(), inbox()).unwrap();
    assert!(sessions.inbox(&id, None).is_some());
    assert!(sessions.inbox(&id, caller().key.as_ref()).is_none());
    assert!(sessions.inbox(&of_key, None).is_none());
    assert_eq!(sessions.end_idle().len(), 1, "there is one key to check");
    let refused = sessions.open(stranger(), inbox()).unwrap_err();
    assert_eq!(refused.code(), ErrorCode::TooManySessions);
    let _call = sessions.reserve(&stranger()).unwrap();
    assert!(sessions.reserve(&stranger()).is_err());
    assert!(sessions.reserve(&caller()).is_ok());
}

#[test]
fn session_ids_differ_and_keys_are_not_printed() {
    let (sessions, caller) = (sessions(), caller());
    let (a, _permit) = sessions.open(caller.clone(), inbox()).unwrap();
    let (b, _other) = sessions.open(caller.clone(), inbox()).unwrap();
    assert!(a != b && a.as_str().len() == 32);
    assert!(!format!("{sessions:?} {caller:?}").contains(caller.key.as_ref().unwrap().expose()));
}
