//! Routes priced by usage: credits are held before the request, and what its response reports is captured.

mod amounts;
mod disconnects;
mod ends;
mod replay;
mod reports;
mod streams;
mod tokens;
mod unreported;

use metering_tests::client::Client;
use metering_tests::response::Response;
use metering_tests::server::{Server, ServerSetup};
use metering_tests::site::{IssuedAccount, Site};
use serde_json::{Value, json};

use crate::support::script::Script;
use crate::support::wait::until;

/// Credits that are held for the routes without an estimate.
const MAX: &str = "0.5";
/// The charge for a request without a report on most of them.
const MIN: &str = "0.01";

/// An account, and a gateway in front of a scripted upstream.
struct Scene {
    // Ends before the books are verified.
    server: Server,
    site: Site,
    upstream: Script,
    account: IssuedAccount,
}

impl Scene {
    fn new(credits: &str) -> Self {
        Self::with(credits, |server| server)
    }

    fn with(credits: &str, set_up: impl Fn(ServerSetup) -> ServerSetup) -> Self {
        let (site, upstream) = (Site::verified(), Script::start());
        let account = site.account(credits);
        let server = set_up(setup(&site, &upstream)).start();
        Self { site, upstream, server, account }
    }

    fn client(&self) -> Client {
        self.server.client_with(&self.account.api_key)
    }

    /// Calls a route whose upstream sends these steps.
    #[track_caller]
    fn call(&self, path: &str, steps: &[Value]) -> Response {
        self.client().post(path, &json!({"steps": steps}))
    }

    /// The response to a client that reads trailers.
    #[track_caller]
    fn call_raw(&self, path: &str, steps: &[Value]) -> String {
        let request = request(&self.account.api_key, path, steps, "TE: trailers\r\n");
        let raw = metering_tests::client::exchange(self.server.address(), request.as_bytes()).unwrap();
        String::from_utf8(raw).unwrap()
    }

    /// The request with this id, once it is settled.
    #[track_caller]
    fn settled(&self, id: &str) -> Value {
        let path = format!("/requests/{id}");
        until("the hold is settled", || self.client().get(&path).expect(200).json()["state"] != "held");
        self.client().get(&path).expect(200).json()
    }
}

fn setup(site: &Site, upstream: &Script) -> ServerSetup {
    let catalogue = site.write("usage.json", &catalogue());
    let flags = ["--upstream".into(), upstream.url(), "--catalogue".into(), catalogue.display().to_string()];
    site.server().args(flags).set("METERING_LOG__FILTER", "info")
}

/// A request with a body of steps.
fn request(api_key: &str, path: &str, steps: &[Value], headers: &str) -> String {
    let body = json!({"steps": steps}).to_string();
    format!(
        "POST {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAuthorization: Bearer {api_key}\r\n{headers}\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn catalogue() -> String {
    let tokens = |rest: Value| {
        let mut price = json!({"max": MAX, "min": MIN, "units": {"tokens": "0.001"},
            "report": {"json": {"tokens": "/usage/total_tokens"}}});
        price.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        price
    };
    let claude = json!({"max": MAX, "units": {"input": "0.001", "output": "0.01"},
        "report": {"json": {"input": "/message/usage/input_tokens", "output": "/usage/output_tokens"}}});
    let texts = json!({"max": MAX, "missing": "hold", "units": {"input": "0.000001", "output": "0.00001"},
        "report": {"json": {"input": "/usage/input", "output": "/usage/output"}},
        "delivered": {"output": "/choices/*/delta/content"}, "estimate": {"json": {"output": "/max"}, "bytes": "input"}});
    let gemini = json!({"max": MAX, "units": {"tokens": "0.001"}, "report": {"json": {"tokens":
        ["/usageMetadata/totalTokenCount", "/*/usageMetadata/totalTokenCount"]}}});
    let routes = [
        ("/v1/texts", true, texts),
        ("/v1/gemini", false, gemini),
        ("/v1/chat", false, tokens(json!({}))),
        ("/v1/stream", true, tokens(json!({}))),
        ("/v1/missing/hold", false, tokens(json!({"missing": "hold"}))),
        ("/v1/missing/release", false, tokens(json!({"missing": "release"}))),
        ("/v1/debt", false, tokens(json!({"over": "debt"}))),
        ("/v1/estimate", false, tokens(json!({"estimate": {"json": {"tokens": "/max_tokens"}}}))),
        ("/v1/claude", true, claude),
        ("/v1/header", false, json!({"max": MAX, "min": MIN, "report": {"header": "X-Cost"}})),
        ("/v1/bytes", false, json!({"max": MAX, "units": {"bytes": "0.00001"}, "report": {"bytes": "bytes"}})),
    ];
    let route =
        |(path, sse, price)| json!({"path": path, "method": "POST", "metered": true, "sse": sse, "price": price});
    let replayed = [
        ("/v1/replay/usage", "openai", true, tokens(json!({}))),
        ("/v1/replay/fixed", "anthropic", false, json!("0.1")),
        ("/v1/replay/stream", "openai", true, json!("0.1")),
    ];
    let replayed = replayed.map(|(path, errors, sse, price)| {
        json!({"path": path, "method": "POST", "metered": true, "sse": sse, "price": price, "replay": true,
            "errors": errors})
    });
    let mut routes: Vec<_> = routes.into_iter().map(route).chain(replayed).collect();
    // Requests the usage from the upstream, and hides it from a client that did not request it.
    let asks = json!({"schema": {"type": "object", "properties": {"steps": {}, "stream": {"type": "boolean"}}},
        "unknown": "pass", "set": {"/stream_options/include_usage": true, "when": {"/stream": true}, "hide": {"/choices": []}}});
    let mut asking = route(("/v1/asking", true, tokens(json!({"missing": "hold"}))));
    asking["request"] = asks;
    routes.push(asking);
    json!({"market": "TEST", "version": 1, "endpoints": routes}).to_string()
}
