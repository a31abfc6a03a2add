//! Which requests get a recording, and when it is dropped.

use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::StatusCode;
use http_body::Frame;
use http_body_util::StreamBody;
use metering_core::access::KeyHash;
use metering_core::wire::CHARGED_HEADER;
use metering_core::{ApiKey, Catalogue, MemoryStore, ServiceConfig, SystemRandomness};
use tokio::sync::mpsc;
use tokio::time::{Duration, sleep};

use super::*;

const TIME: Duration = Duration::from_secs(600);

struct Scene {
    service: Service,
    key: ApiKey,
    replays: Replays,
    budget: BodyBudget,
    served: Arc<AtomicUsize>,
}

/// Pieces of a response, sent one by one; it ends when the sender is dropped.
type Pieces = mpsc::UnboundedSender<Bytes>;

impl Scene {
    async fn new(bytes: usize) -> Self {
        let service = Service::with_defaults(Arc::new(MemoryStore::new()));
        let (_, key) = service.open_account("my-agent", "2".parse().unwrap()).await.unwrap();
        let config = GatewayConfig { replay_bytes: bytes, ..GatewayConfig::default() };
        let budget = BodyBudget::new(1 << 30, 1 << 30);
        Self { service, key, replays: Replays::new(&config), budget, served: Arc::default() }
    }

    fn request(&self, number: u8, retry: Retry, key: &ApiKey) -> Replayable {
        let none = |_| std::iter::empty::<&[u8]>();
        let bearer = format!("Bearer {}", key.expose());
        let header = |name: &str| (name == "authorization").then_some(bearer.as_bytes());
        Replayable {
            key: ReplayKey::of(&KeyHash::from_bytes([0; 32]), "POST", "/chat", &[number], none),
            retry,
            credentials: Credentials::read(header),
            address: None,
            connection: None,
            share: self.budget.share(&http::Extensions::new()),
        }
    }

    /// A response that the upstream sends in these pieces, and how many requests it got.
    fn response(&self, status: u16) -> (Pieces, impl Future<Output = Response> + Send + 'static) {
        let (sender, receiver) = mpsc::unbounded_channel();
        let served = Arc::clone(&self.served);
        let serving = async move {
            let number = served.fetch_add(1, Ordering::SeqCst) + 1;
            // The upstream takes a while to begin.
            sleep(Duration::from_secs(3)).await;
            let pieces =
                stream::unfold(receiver, |mut receiver| async move { Some((receiver.recv().await?, receiver)) });
            let frames = pieces.map(|data| Ok(Frame::data(data)));
            let mut response = http::Response::new(StreamBody::new(frames).boxed_unsync());
            *response.status_mut() = StatusCode::from_u16(status).unwrap();
            response.headers_mut().insert(CHARGED_HEADER, "0.1".parse().unwrap());
            response.headers_mut().insert("x-served", number.into());
            response
        };
        (sender, serving)
    }

    async fn ask(&self, number: u8, retry: Retry, pieces: &[&'static str]) -> Response {
        let (sender, serving) = self.response(200);
        for piece in pieces {
            sender.send(Bytes::from(*piece)).unwrap();
        }
        drop(sender);
        self.replays.respond(&self.service, self.request(number, retry, &self.key), serving).await
    }

    /// A request whose client gives up after a second.
    async fn ask_in_vain(&self, number: u8, retry: Retry, pieces: &[&'static str]) {
        let waiting = tokio::time::timeout(Duration::from_secs(1), self.ask(number, retry, pieces));
        assert!(waiting.await.is_err());
    }
}

/// The number of the attempt behind a response, whether the response is marked as replayed, and its body.
async fn read(response: Response) -> (u8, bool, String) {
    let (head, body) = response.into_parts();
    let served = head.headers["x-served"].to_str().unwrap().parse().unwrap();
    let body = body.collect().await.unwrap().to_bytes();
    (served, head.headers.contains_key(REPLAYED_HEADER), String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_client_that_gives_up_again_and_again_pays_once() {
    let scene = Scene::new(1 << 20).await;
    scene.ask_in_vain(1, Retry::No, &["a", "b"]).await;
    scene.ask_in_vain(1, Retry::Counted, &["never"]).await;
    let last = read(scene.ask(1, Retry::Counted, &["never"]).await).await;
    assert_eq!(last, (1, true, "ab".to_owned()));
    assert_eq!(scene.served.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn what_was_cut_off_is_there_for_ten_minutes() {
    for (wait, expected) in [(TIME - Duration::from_secs(60), (1, true)), (TIME + Duration::from_secs(60), (2, false))]
    {
        let scene = Scene::new(1 << 20).await;
        scene.ask_in_vain(1, Retry::No, &["a"]).await;
        sleep(wait).await;
        let (served, replayed, body) = read(scene.ask(1, Retry::Counted, &["a"]).await).await;
        assert_eq!(((served, replayed), body.as_str()), (expected, "a"), "{wait:?}");
        sleep(TIME * 2).await;
        assert_eq!(scene.replays.shelf.bytes(), 0, "nothing is left");
    }
}

#[tokio::test(start_paused = true)]
async fn only_a_retry_of_the_same_request_gets_it() {
    // number, retry, and which attempt it gets
    let table = [(1, Retry::No, 2), (2, Retry::Counted, 2), (2, Retry::Keyed, 2), (1, Retry::Counted, 1)];
    for (number, retry, expected) in table {
        let scene = Scene::new(1 << 20).await;
        scene.ask_in_vain(1, Retry::No, &["a"]).await;
        let (served, replayed, _) = read(scene.ask(number, retry, &["b"]).await).await;
        assert_eq!((served, replayed), (expected, expected == 1), "{number} {retry:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_delivered_is_for_idempotency_keys_only() {
    for (retry, expected) in [(Retry::Counted, 2), (Retry::Keyed, 1)] {
        let scene = Scene::new(1 << 20).await;
        let first = if retry == Retry::Keyed { Retry::Keyed } else { Retry::No };
        assert_eq!(read(scene.ask(1, first, &["a"]).await).await.0, 1);
        let (served, replayed, body) = read(scene.ask(1, retry, &["a"]).await).await;
        assert_eq!((served, replayed, body.as_str()), (expected, expected == 1, "a"), "{retry:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_retry_joins_a_stream_that_goes_on() {
    let scene = Scene::new(1 << 20).await;
    let (sender, serving) = scene.response(200);
    let first = scene.replays.respond(&scene.service, scene.request(1, Retry::No, &scene.key), serving).await;
    sender.send(Bytes::from("data: 1\n\n")).unwrap();
    let mut first = first.into_body();
    assert!(first.frame().await.unwrap().is_ok());
    drop(first);
    let mut joined = scene.ask(1, Retry::Counted, &[]).await.into_body();
    for (sent, next) in [("data: 2\n\n", "data: 1\n\n"), ("data: 3\n\n", "data: 2\n\n")] {
        sender.send(Bytes::from(sent)).unwrap();
        assert_eq!(joined.frame().await.unwrap().unwrap().into_data().unwrap(), next);
    }
    drop(sender);
    assert_eq!(joined.collect().await.unwrap().to_bytes(), "data: 3\n\n");
    assert_eq!(scene.served.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn what_does_not_fit_reaches_its_client_and_is_not_kept() {
    let piece: &'static str = Box::leak("x".repeat(64 << 10).into_boxed_str());
    let scene = Scene::new(1 << 20).await;
    let pieces = [piece; 20];
    let (_, _, body) = read(scene.ask(1, Retry::Keyed, &pieces).await).await;
    assert_eq!(body.len(), 20 * piece.len());
    assert_eq!(read(scene.ask(1, Retry::Keyed, &["b"]).await).await, (2, false, "b".to_owned()));
    // Without readers, the upstream is not read any further.
    let scene = Scene::new(0).await;
    scene.ask_in_vain(1, Retry::No, &["a"]).await;
    assert_eq!(read(scene.ask(1, Retry::Counted, &["b"]).await).await.0, 2);
    assert_eq!(scene.replays.shelf.bytes(), 0);
}

#[tokio::test(start_paused = true)]
async fn what_the_budget_has_no_room_for_reaches_its_client_and_is_not_kept() {
    // Responses may take half of it.
    let scene = Scene { budget: BodyBudget::new(200, 200), ..Scene::new(1 << 20).await };
    let piece: &'static str = Box::leak("x".repeat(150).into_boxed_str());
    let (_, _, body) = read(scene.ask(1, Retry::Keyed, &[piece; 5]).await).await;
    assert_eq!((body.len(), scene.budget.taken()), (5 * piece.len(), 0));
    assert_eq!(read(scene.ask(1, Retry::Keyed, &["b"]).await).await, (2, false, "b".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn what_was_delivered_gives_way_to_what_was_not() {
    // Each takes its body and 4 KiB. Sixteen of these fit.
    let scene = Scene::new(16 * (5 << 10) + 100).await;
    let piece: &'static str = Box::leak("x".repeat(1 << 10).into_boxed_str());
    scene.ask_in_vain(0, Retry::No, &[piece]).await;
    for number in 1..=40 {
        read(scene.ask(number, Retry::Keyed, &[piece]).await).await;
    }
    assert!(scene.replays.shelf.bytes() <= 16 * (5 << 10) + 100);
    assert_eq!(read(scene.ask(0, Retry::Counted, &[]).await).await.0, 1, "the oldest one was not delivered");
    assert_eq!(read(scene.ask(40, Retry::Keyed, &[]).await).await.0, 41);
    assert_eq!(read(scene.ask(1, Retry::Keyed, &["b"]).await).await.0, 42);
}

#[tokio::test(start_paused = true)]
async fn what_was_not_paid_for_is_served_again() {
    let scene = Scene::new(1 << 20).await;
    let (sender, serving) = scene.response(503);
    drop(sender);
    let serving = async move {
        let mut response = serving.await;
        response.headers_mut().insert(CHARGED_HEADER, "0".parse().unwrap());
        response
    };
    let first = scene.replays.respond(&scene.service, scene.request(1, Retry::Keyed, &scene.key), serving).await;
    assert_eq!(first.status(), 503);
    assert_eq!(read(scene.ask(1, Retry::Keyed, &["b"]).await).await, (2, false, "b".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_key_that_is_not_live_is_refused_where_all_are() {
    let scene = Scene::new(1 << 20).await;
    scene.ask_in_vain(1, Retry::No, &["a"]).await;
    let revoked = ApiKey::generate(&SystemRandomness);
    let (_, serving) = scene.response(200);
    let response = scene.replays.respond(&scene.service, scene.request(1, Retry::Counted, &revoked), serving).await;
    // Not what was recorded: it goes to the layer, which refuses the key.
    assert!(!response.headers().contains_key(REPLAYED_HEADER));
    assert_eq!(scene.served.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn a_payment_with_an_id_needs_no_key() {
    let scene = Scene::new(1 << 20).await;
    let paid = || {
        let credentials = Credentials::read(|_| std::iter::empty::<&[u8]>());
        Replayable { credentials, ..scene.request(1, Retry::Keyed, &scene.key) }
    };
    for replayed in [false, true] {
        let (sender, serving) = scene.response(200);
        sender.send(Bytes::from("a")).unwrap();
        drop(sender);
        let found = read(scene.replays.respond(&scene.service, paid(), serving).await).await;
        assert_eq!(found, (1, replayed, "a".to_owned()));
    }
}

#[tokio::test]
async fn a_credential_next_to_a_key_is_a_payment() {
    let catalogue = Catalogue::from_json(
        r#"{"market": "M", "version": 1, "endpoints": [{"path": "/chat", "method": "POST", "metered": true, "replay": true}]}"#,
    );
    let store = Arc::new(MemoryStore::new());
    let service = Service::start(store, catalogue.unwrap(), ServiceConfig::default());
    let (_, key) = service.open_account("my-agent", "2".parse().unwrap()).await.unwrap();
    let budget = BodyBudget::new(1 << 30, 1 << 30);
    for (authorization, is_replayed) in [("Basic eDp5", true), ("Payment e30", false), ("payment e30", false)] {
        let request = http::Request::post("/chat").header("x-api-key", key.expose());
        let request = request.header("authorization", authorization).header("idempotency-key", "a");
        let head = request.body(()).unwrap().into_parts().0;
        assert_eq!(Replayable::read(&service, &head, b"", &budget).is_some(), is_replayed, "{authorization}");
    }
}

#[tokio::test(start_paused = true)]
async fn one_charge_does_not_buy_any_number_of_responses() {
    let scene = Scene::new(1 << 20).await;
    let mut last = 0;
    for _ in 0..40 {
        last = read(scene.ask(1, Retry::Keyed, &["a"]).await).await.0;
    }
    assert_eq!(last, 3, "each is replayed sixteen times");
}
