//! Sessions as clients see them, over a service that cannot be reached.

use async_trait::async_trait;
use futures_util::future::poll_fn;
use http_body::Body;
use metering_client::tools::{Callers, ToolSettings, Toolbox};
use metering_client::{BodyStream, Client, Transport, Unreachable};
use metering_core::{Catalogue, ClientSource, SystemRandomness};

use super::*;
use crate::config::McpConfig;
use crate::http::Shutdown;

#[derive(Debug)]
struct NoService;

#[async_trait]
impl Transport for NoService {
    async fn send(&self, _: http::Request<Bytes>) -> Result<http::Response<BodyStream>, Unreachable> {
        Err(Unreachable("nowhere".to_owned()))
    }
}

struct Scene {
    sse: Sse,
    key: ApiKey,
    shutdown: Shutdown,
}

impl Scene {
    fn new() -> Self {
        let catalogue = Catalogue::from_json(metering_sample::ROUTES).unwrap();
        let callers = Callers::PerRequest(Client::new(Arc::new(NoService), ClientSource::Mcp));
        let toolbox = Arc::new(Toolbox::new(&catalogue).unwrap());
        let server = McpServer::new(toolbox, callers, ToolSettings::default());
        let shutdown = Shutdown::new();
        let sessions = Arc::new(Sessions::new(&McpConfig::default(), &shutdown));
        let sse = Sse::new(sessions, server, "/v1".to_owned());
        Self { sse, key: ApiKey::generate(&SystemRandomness), shutdown }
    }

    /// A session's stream, and the path for its messages.
    async fn open(&self) -> (Response, String) {
        let mut stream = self.sse.open(caller(&self.key), None).unwrap();
        let first = next(&mut stream).await.unwrap();
        let path = first.strip_prefix("event: endpoint\ndata: /v1").unwrap().trim_end().to_owned();
        (stream, path)
    }

    fn post(&self, key: &ApiKey, path: &str, body: &str) -> Result<StatusCode, ErrorCode> {
        let (head, ()) = http::Request::post(path).body(()).unwrap().into_parts();
        self.sse.take(Some(key), head, body.as_bytes()).map(|reply| reply.status()).map_err(|problem| problem.code())
    }
}

fn caller(key: &ApiKey) -> Caller {
    Caller { key: Some(key.clone()), address: None, account: "org_1".into(), has_credit: true, token: None }
}

async fn next(stream: &mut Response) -> Option<String> {
    let frame = poll_fn(|context| std::pin::Pin::new(stream.body_mut()).poll_frame(context)).await?;
    Some(String::from_utf8(frame.unwrap().into_data().unwrap().to_vec()).unwrap())
}

fn ping(id: u64) -> String {
    serde_json::json!({"jsonrpc": "2.0", "id": id, "method": "ping"}).to_string()
}

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2024-11-05",
    "capabilities":{},"clientInfo":{"name":"test","version":"1"}}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

#[tokio::test]
async fn messages_posted_with_the_same_key_return_as_events() {
    let scene = Scene::new();
    let (mut stream, path) = scene.open().await;
    let other_key = ApiKey::generate(&SystemRandomness);
    assert_eq!(scene.post(&other_key, &path, INITIALIZE), Err(ErrorCode::NotFound));
    assert_eq!(scene.post(&scene.key, "/messages/?session_id=00", INITIALIZE), Err(ErrorCode::NotFound));
    assert_eq!(scene.post(&scene.key, &path, "{"), Err(ErrorCode::InvalidJson));
    assert_eq!(scene.post(&scene.key, &path, INITIALIZE), Ok(StatusCode::ACCEPTED));
    let response = next(&mut stream).await.unwrap();
    assert!(response.starts_with("event: message\ndata: {") && response.contains("\"serverInfo\""), "{response}");
    assert_eq!(scene.post(&scene.key, &path, INITIALIZED), Ok(StatusCode::ACCEPTED));
    assert_eq!(scene.post(&scene.key, &path, &ping(1)), Ok(StatusCode::ACCEPTED));
    assert!(next(&mut stream).await.unwrap().contains("\"id\":1"));
}

#[tokio::test]
async fn client_that_posts_without_reading_is_stopped_until_it_reads() {
    let scene = Scene::new();
    let (mut stream, path) = scene.open().await;
    assert!(scene.post(&scene.key, &path, INITIALIZE).is_ok());
    let _ = next(&mut stream).await;
    assert!(scene.post(&scene.key, &path, INITIALIZED).is_ok());
    let mut taken = 0;
    for id in 1..1_000 {
        match scene.post(&scene.key, &path, &ping(id)) {
            Ok(_) => taken += 1,
            Err(code) => assert_eq!(code, ErrorCode::TooManySessions),
        }
        tokio::task::yield_now().await;
    }
    assert!((32..=65).contains(&taken), "{taken} of 999");
    for _ in 0..taken {
        assert!(next(&mut stream).await.unwrap().contains("\"result\""));
    }
    assert_eq!(scene.post(&scene.key, &path, &ping(1_000)), Ok(StatusCode::ACCEPTED));
    assert!(next(&mut stream).await.unwrap().contains("\"id\":1000"));
}

#[tokio::test]
async fn session_ends_with_its_stream_and_with_the_server() {
    let scene = Scene::new();
    let (mut other, other_path) = scene.open().await;
    for initialized in [false, true] {
        let (stream, path) = scene.open().await;
        assert!(!initialized || scene.post(&scene.key, &path, INITIALIZE).is_ok());
        drop(stream);
        let gone = async {
            while scene.post(&scene.key, &path, "{}") != Err(ErrorCode::NotFound) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        assert!(tokio::time::timeout(Duration::from_secs(60), gone).await.is_ok(), "initialized: {initialized}");
    }
    assert!(scene.post(&scene.key, &other_path, INITIALIZE).is_ok());
    assert!(next(&mut other).await.is_some());
    scene.shutdown.cancel();
    assert!(next(&mut other).await.is_none());
}

#[test]
fn a_session_is_named_in_the_query() {
    assert_eq!(session_id("a=b&session_id=0f").map(|id| id.as_str().to_owned()).as_deref(), Some("0f"));
    assert!(session_id("session=0f").is_none());
}
