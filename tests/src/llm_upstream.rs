//! An LLM service for tests that speaks the APIs of OpenAI, Anthropic and Google, and records the true cost of each
//! request.
//!
//! It obeys everything that a careless proxy would obey, so that a request which should not have reached it shows:
//! other spellings of names, `extra_body`, lists of models, fallbacks, retries, paid tools. The text of a prompt tells
//! it what to do, as words such as `output=50`, `cached=1000` or `script=cut`; see `wish`.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::extract::{Request, State};
use axum::response::Response;
use tokio::sync::watch;

mod answer;
mod anthropic;
mod cost;
mod gemini;
mod openai;
mod responses;
mod wish;

use answer::Answer;
use cost::Api;
use wish::Wish;

/// A running service. Dropping it ends it.
#[derive(Debug)]
pub struct LlmUpstream {
    address: SocketAddr,
    state: Arc<Shared>,
    runtime: Option<tokio::runtime::Runtime>,
}

/// A request that reached the service, and the true cost of serving it.
#[derive(Debug, Clone)]
pub struct Received {
    /// The method.
    pub method: String,
    /// The path and query.
    pub target: String,
    /// The headers, with lower-case names; of a repeated one, the last value.
    pub headers: HashMap<String, String>,
    /// The body, as received.
    pub body: Vec<u8>,
    /// The true cost of what was done for it, in atoms: at the prices of `deploy/llm/routes.json` for the model
    /// `small`, a hundred times that for any other model.
    pub cost_atoms: u64,
}

#[derive(Debug)]
struct Shared {
    received: Mutex<Vec<Received>>,
    gate: watch::Sender<bool>,
}

impl LlmUpstream {
    /// Starts one on a free port.
    #[must_use]
    pub fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime can be built");
        let state = Arc::new(Shared { received: Mutex::default(), gate: watch::channel(false).0 });
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).expect("a port is free");
        let address = listener.local_addr().expect("the listener has an address");
        let routes = Router::new().fallback(serve).with_state(Arc::clone(&state));
        runtime.spawn(async move { axum::serve(listener, routes).await });
        Self { address, state, runtime: Some(runtime) }
    }

    /// Its URL.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Every request that has reached it.
    #[must_use]
    pub fn received(&self) -> Vec<Received> {
        self.state.received.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The true cost of all requests so far, in atoms.
    #[must_use]
    pub fn cost_atoms(&self) -> u64 {
        self.received().iter().map(|received| received.cost_atoms).sum()
    }

    /// Lets responses continue that wait at `wait=N`, present and future ones.
    pub fn open_gate(&self) {
        self.state.gate.send_replace(true);
    }
}

impl Drop for LlmUpstream {
    fn drop(&mut self) {
        // Open streams would keep a runtime that waits for its tasks.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

async fn serve(State(state): State<Arc<Shared>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let body = axum::body::to_bytes(body, usize::MAX).await.unwrap_or_default();
    let text = |value: &axum::http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let headers: HashMap<_, _> = head.headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect();
    let target = head.uri.to_string();
    let (answer, cost_atoms) = answer(&head.method, &target, &headers, &body);
    let method = head.method.to_string();
    let received = Received { method, target, headers, body: body.to_vec(), cost_atoms };
    state.received.lock().unwrap_or_else(PoisonError::into_inner).push(received);
    answer.into_response(state.gate.subscribe())
}

/// The response to send, and its true cost.
fn answer(method: &axum::http::Method, target: &str, headers: &HashMap<String, String>, body: &[u8]) -> (Answer, u64) {
    let path = target.split('?').next().unwrap_or_default();
    if *method == axum::http::Method::GET {
        return (Answer::json(openai::models()), 0);
    }
    let Some(api) = Api::of(path) else { return (Answer::error(404, "there is no such path"), 0) };
    let Some(wish) = Wish::read(api, target, headers, body) else {
        return (Answer::error(400, "the body cannot be read"), 0);
    };
    let cost = if wish.delivers() { wish.cost_atoms() } else { 0 };
    (render(api, &wish), cost)
}

fn render(api: Api, wish: &Wish) -> Answer {
    if let Some(failure) = answer::failure(api, wish) {
        return failure;
    }
    match api {
        Api::Chat => openai::chat(wish),
        Api::Completions => openai::completions(wish),
        Api::Embeddings => openai::embeddings(wish),
        Api::Images => openai::images(wish),
        Api::Responses => responses::respond(wish),
        Api::Messages => anthropic::message(wish),
        Api::CountTokens => anthropic::count(wish),
        Api::Gemini => gemini::content(wish),
        Api::GeminiCount => gemini::count(wish),
    }
}
