//! Bounds, whose a session is, and everything that ends one.

use async_trait::async_trait;
use bytes::Bytes;
use metering_client::{BodyStream, Transport, Unreachable};

use super::*;

fn sessions() -> Arc<Sessions> {
    let size = |size| std::num::NonZeroUsize::new(size).unwrap();
    let config = McpConfig { max_sessions_per_key: size(2), max_sessions: size(3), ..McpConfig::default() };
    Arc::new(Sessions::new(&config, &Shutdown::new()))
}

fn key() -> ApiKey {
    ApiKey::generate(&SystemRandomness)
}

fn inbox() -> Inbox {
    Inbox { messages: mpsc::channel(1).0, backlog: Arc::new(Backlog::new()) }
}

/// A service that knows one key, hangs when asked for another, and cannot be reached for the third.
#[derive(Debug)]
struct Service {
    dead: ApiKey,
    hangs: ApiKey,
}

#[async_trait]
impl Transport for Service {
    async fn send(&self, request: http::Request<Bytes>) -> Result<http::Response<BodyStream>, Unreachable> {
        let asked = request.headers()["authorization"].to_str().unwrap().trim_start_matches("Bearer ").to_owned();
        if asked == self.hangs.expose() {
            std::future::pending::<()>().await;
        }
        if asked != self.dead.expose() {
            return Err(Unreachable("down".to_owned()));
        }
        let answer = http::Response::builder().status(401);
        Ok(answer.body(stream::empty().boxed()).unwrap())
    }
}

#[tokio::test(start_paused = true)]
async fn sessions_of_a_dead_key_end_and_a_service_that_is_in_trouble_ends_none() {
    let config = McpConfig::default();
    let sessions = Arc::new(Sessions::new(&config, &Shutdown::new()));
    let keys = [key(), key(), key()];
    let places = keys.each_ref().map(|key| sessions.open(key.clone(), inbox()).unwrap().1);
    let [dead, hangs, _] = keys;
    let service = Client::new(Arc::new(Service { dead, hangs }), metering_core::ClientSource::Mcp);
    sessions.look(&service).await;
    assert_eq!(places.each_ref().map(|place| place.end().is_cancelled()), [true, false, false]);
}

#[tokio::test(start_paused = true)]
async fn the_shutdown_ends_all_at_once_even_what_is_opened_after_it() {
    let (shutdown, hanging) = (Shutdown::new(), key());
    let sessions = Arc::new(Sessions::new(&McpConfig::default(), &shutdown));
    let (_, place) = sessions.open(hanging.clone(), inbox()).unwrap();
    let service = Service { dead: key(), hangs: hanging.clone() };
    let service = Client::new(Arc::new(service), metering_core::ClientSource::Mcp);
    let (watched, second) = (Arc::clone(&sessions), Duration::from_secs(1));
    let watch = tokio::spawn(async move { watched.watch(&service, second).await });
    // By then the watch waits for an answer that does not come.
    tokio::time::sleep(2 * second).await;
    shutdown.cancel();
    assert!(place.end().is_cancelled());
    assert!(tokio::time::timeout(second / 10, watch).await.is_ok());
    let (_, late) = sessions.open(hanging, inbox()).unwrap();
    assert!(late.end().is_cancelled());
}

#[test]
fn places_are_bounded_per_key_and_in_all_and_come_back() {
    let (sessions, a, b) = (sessions(), key(), key());
    let (_, first) = sessions.open(a.clone(), inbox()).unwrap();
    let call = sessions.reserve(&a).unwrap();
    assert_eq!(sessions.open(a.clone(), inbox()).unwrap_err().code(), ErrorCode::TooManySessions);
    let _of_b = sessions.open(b.clone(), inbox()).unwrap();
    assert_eq!(sessions.reserve(&b).unwrap_err().code(), ErrorCode::TooManySessions);
    drop(call);
    let _again = sessions.reserve(&b).unwrap();
    drop(first);
    let _session = sessions.open(a, inbox()).unwrap();
}

#[test]
fn a_session_is_its_keys_alone_and_ends_with_its_place() {
    let (sessions, a, b) = (sessions(), key(), key());
    let (id, place) = sessions.open(a.clone(), inbox()).unwrap();
    assert!(sessions.inbox(&id, &a).is_some());
    assert!(sessions.inbox(&id, &b).is_none());
    assert!(sessions.inbox(&SessionId::read("unknown"), &a).is_none());
    let end = place.end().clone();
    drop(place);
    assert!(end.is_cancelled());
    assert!(sessions.inbox(&id, &a).is_none());
    assert!(sessions.lock().places.is_empty());
}

#[test]
fn a_session_that_says_nothing_is_ended() {
    let config = McpConfig { idle_timeout: crate::config::Span::seconds(0), ..McpConfig::default() };
    let sessions = Arc::new(Sessions::new(&config, &Shutdown::new()));
    let (_, place) = sessions.open(key(), inbox()).unwrap();
    assert!(sessions.end_idle().is_empty());
    assert!(place.end().is_cancelled());
}

#[test]
fn ids_are_not_alike_and_keys_are_not_shown() {
    let (sessions, key) = (sessions(), key());
    let (a, _place) = sessions.open(key.clone(), inbox()).unwrap();
    let (b, _other) = sessions.open(key.clone(), inbox()).unwrap();
    assert!(a != b && a.as_str().len() == 32);
    assert!(!format!("{sessions:?}").contains(key.expose()));
}
