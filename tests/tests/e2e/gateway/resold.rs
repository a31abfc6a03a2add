//! An API that is resold: the upstream gets its own key, its headers stay hidden, and clients made for it work
//! unchanged.

use metering_tests::response::Response;
use metering_tests::server::Server;
use metering_tests::site::{IssuedAccount, Site};
use serde_json::{Value, json};

use crate::support::script::{Script, chunk, chunked, json_response, last_chunk, with_length};

/// Headers of LiteLLM and of the providers behind it.
const TELLTALES: &str = "X-LiteLLM-Response-Cost: 0.03\r\nLLM_Provider-OpenAI-Organization: acme\r\nVia: 1.1 google\r\n\
                         X-RateLimit-Remaining-Tokens: 5\r\nOpenAI-Processing-Ms: 7\r\nCF-Ray: 1\r\nServer: uvicorn\r\n\
                         Retry-After-Ms: 9\r\nX-Request-Id: req-1\r\n";
const HIDDEN: [&str; 7] = [
    "x-litellm-response-cost",
    "llm_provider-openai-organization",
    "via",
    "x-ratelimit-remaining-tokens",
    "openai-processing-ms",
    "cf-ray",
    "server",
];

fn catalogue() -> String {
    let by_usage = json!({"max": "0.5", "report": {"header": "x-litellm-response-cost"}});
    let model = json!([{"name": "model", "in": "path", "type": "string"}]);
    let routes = json!([
        {"path": "/v1/chat", "method": "POST", "metered": true, "price": by_usage, "query": "any"},
        {"path": "/v1/open", "method": "POST", "metered": true, "price": by_usage,
         "request_headers": {"remove": []}, "response_headers": {"remove": []}},
        {"path": "/v1/flat", "method": "POST", "metered": true, "price": "0.01",
         "params": [{"name": "include[]", "in": "query", "type": "string", "array": true}]},
        {"path": "/v1/models/{model}", "method": "POST", "metered": true, "price": "0.02", "params": model,
         "encoded_slash": true},
        {"path": "/v1/models/{model}:generateContent", "method": "POST", "metered": true, "price": "0.1",
         "params": model},
        {"path": "/v1/models/{model}:countTokens", "method": "POST", "metered": false, "params": model},
    ]);
    json!({"market": "TEST", "version": 1, "endpoints": routes}).to_string()
}

struct Resold {
    site: Site,
    upstream: Script,
    server: Server,
    account: IssuedAccount,
}

impl Resold {
    fn start(configuration: &str) -> Self {
        let (site, upstream) = (Site::new(), Script::start());
        let account = site.account("2");
        let routes = site.write("routes.json", &catalogue()).display().to_string();
        let file = site.write("metering.toml", configuration).display().to_string();
        let flags = ["--config", &file, "--upstream", &upstream.url(), "--catalogue", &routes];
        let server = site.server().args(flags).set("METERING_LOG__FILTER", "trace").start();
        Self { site, upstream, server, account }
    }

    #[track_caller]
    fn call(&self, target: &str, response: &Value) -> Response {
        self.server.client_with(&self.account.api_key).post(target, &json!({"steps": [response]}))
    }
}

fn ok() -> Value {
    json_response("{}")
}

#[test]
fn the_upstreams_key_is_sent_and_reloaded_and_printed_nowhere() {
    let site = Site::new();
    let key = site.write("key", "provider-key-one\n");
    let configuration = format!(
        "[gateway.upstream_headers]\nx-team = 'provider-team'\n\
         authorization = {{ file = '{}', prefix = 'Bearer ' }}\n",
        key.display()
    );
    let scene = Resold::start(&configuration);
    let sends = |key: &str| {
        let _ = scene.call("/v1/flat", &ok()).expect(200);
        let head = scene.upstream.last_head();
        assert!(head.contains(&format!("\r\nauthorization: bearer {key}\r\n")), "{head}");
        assert!(head.contains("\r\nx-team: provider-team\r\n") && !head.contains("sk_live"), "{head}");
    };
    sends("provider-key-one");
    let forged = scene.server.client_with(&scene.account.api_key).with_header("X_Team", "mine");
    let _ = forged.post("/v1/flat", &json!({"steps": [ok()]})).expect(200);
    assert!(!scene.upstream.last_head().contains("mine"));

    site.write("key", "provider-key-two");
    scene.server.hang_up();
    scene.server.expect_log("gateway.upstream_headers.authorization.file");
    sends("provider-key-two");
    site.write("key", " \n");
    scene.server.hang_up();
    scene.server.expect_log("was not reloaded");
    sends("provider-key-two");

    site.write("key", "provider-key-two");
    let file = scene.site.path("metering.toml").display().to_string();
    let printed = scene.site.server().args(["--config", &file, "--print-config"]).run();
    let printed = format!("{printed:?}");
    for text in [scene.server.log(), printed] {
        assert!(text.contains("upstream_headers"), "{text}");
        assert!(!text.contains("provider-key") && !text.contains("provider-team"), "{text}");
    }
    std::fs::remove_file(&key).unwrap();
    let refused = format!("{:?}", scene.site.server().args(["--config", &file]).run());
    assert!(refused.contains("gateway.upstream_headers.authorization.file"), "{refused}");
}

#[test]
fn customers_see_nothing_of_the_upstream_on_routes_priced_by_usage() {
    let scene = Resold::start("gateway.response_headers.remove = ['x-internal-*']");
    let response = || with_length("200 OK", &format!("{TELLTALES}X_Internal_Id: 1\r\n"), "{}");
    let chat = scene.call("/v1/chat", &response()).expect(200);
    assert_eq!(chat.header("x-bds-credit-charged"), Some("0.03"), "the report is read before it is removed");
    let hidden = |response: &Response| HIDDEN.iter().filter(|name| response.header(name).is_none()).count();
    assert_eq!(hidden(&chat), HIDDEN.len(), "{:?}", chat.headers);
    assert_eq!((chat.header("retry-after-ms"), chat.header("x-request-id").is_some()), (Some("9"), true));
    for path in ["/v1/open", "/v1/flat"] {
        let open = scene.call(path, &response()).expect(200);
        assert_eq!((hidden(&open), open.header("x_internal_id")), (0, None), "{path} {:?}", open.headers);
    }

    // Trailers too.
    let body = json!({"steps": [chunked("Trailer: X-LiteLLM-Response-Cost, X-Checksum\r\n"), chunk("{}"),
        last_chunk("X-LiteLLM-Response-Cost: 0.04\r\nX-Checksum: 7\r\n")]})
    .to_string();
    let request = format!(
        "POST /v1/chat HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTE: trailers\r\nAuthorization: Bearer {}\r\n\
         Content-Length: {}\r\n\r\n{body}",
        scene.account.api_key,
        body.len()
    );
    let raw = metering_tests::client::exchange(scene.server.address(), request.as_bytes()).unwrap();
    let raw = String::from_utf8(raw).unwrap().to_ascii_lowercase();
    assert!(raw.contains("x-bds-credit-charged: 0.04\r\n") && raw.contains("x-checksum: 7\r\n"), "{raw}");
    assert!(!raw.contains("litellm"), "{raw}");
}

#[test]
fn clients_cannot_change_the_price_or_the_payer_at_the_upstream() {
    let scene = Resold::start("gateway.request_headers.remove = ['x-internal-*']");
    let client = scene.server.client_with(&scene.account.api_key);
    let client = client.with_header("Anthropic-Beta", "context-1m").with_header("OpenAI_Organization", "theirs");
    let client =
        client.with_header("X-LiteLLM-Tags", "a").with_header("X_Internal_Id", "1").with_header("X-Title", "app");
    let response = with_length("200 OK", "X-LiteLLM-Response-Cost: 0.01\r\n", "{}");
    for (path, passes) in [("/v1/chat", false), ("/v1/open", true)] {
        let _ = client.post(path, &json!({"steps": [response]})).expect(200);
        let head = scene.upstream.last_head();
        for name in ["anthropic-beta", "openai_organization", "x-litellm-tags"] {
            assert_eq!(head.contains(&format!("\r\n{name}:")), passes, "{path} {name}: {head}");
        }
        assert!(head.contains("\r\nx-title: app") && !head.contains("x_internal"), "{head}");
    }
}

#[test]
fn keys_in_the_headers_of_azures_and_googles_clients_pay_and_stay_here() {
    let scene = Resold::start("");
    for name in ["Api-Key", "X-Goog-Api-Key"] {
        let client = scene.server.client().with_header(name, &scene.account.api_key);
        let paid = client.post("/v1/flat", &json!({"steps": [ok()]})).expect(200);
        assert_eq!(paid.header("x-bds-credit-charged"), Some("0.01"), "{name}");
        let head = scene.upstream.last_head();
        assert!(!head.contains("api-key") && !head.contains("sk_live"), "{head}");
        let _ = client.get("/credits/balance").expect(200);

        let other = scene.server.client().with_header(name, "AIzaSyD-0123456789abcdef");
        let refused = other.post("/v1/flat", &json!({"steps": [ok()]})).expect(401);
        assert!(refused.text().contains("a key starts with sk_live_"), "{}", refused.text());
    }
    assert!(!scene.server.log().contains(&scene.account.api_key));
}

#[test]
fn targets_of_model_apis_are_priced_and_forwarded_as_they_are() {
    let scene = Resold::start("");
    let cost = with_length("200 OK", "X-LiteLLM-Response-Cost: 0.03\r\n", "{}");
    // target, response, target at the upstream, charge
    let table = [
        ("/v1/models/gemini:generateContent", ok(), "/v1/models/gemini:generatecontent", Some("0.1")),
        ("/v1/models/x:free:generateContent", ok(), "/v1/models/x:free:generatecontent", Some("0.1")),
        ("/v1/models/gemini:countTokens", ok(), "/v1/models/gemini:counttokens", None),
        ("/v1/models/openai%2fgpt", ok(), "/v1/models/openai%2fgpt", Some("0.02")),
        ("/v1/chat?beta=true", cost, "/v1/chat?beta=true", Some("0.03")),
        ("/v1/flat?include[]=a&include%5B%5D=b", ok(), "/v1/flat?include%5b%5d=a&include%5b%5d=b", Some("0.01")),
    ];
    for (target, response, seen, charged) in table {
        let served = scene.call(target, &response).expect(200);
        assert_eq!(served.header("x-bds-credit-charged"), charged, "{target}");
        let head = scene.upstream.last_head();
        assert!(head.starts_with(&format!("post {seen} http/1.1\r\n")), "{target}: {head}");
    }
    let calls = scene.upstream.requests();
    for target in [
        "/v1/models/gemini%3AgenerateContent",
        "/v1/models/gemini:GENERATECONTENT",
        "/v1/models/gemini:generateContent:countTokens",
        "/v1/models/a%2F..%2Fb",
        "/v1/models/a%252Fb",
        "/v1/models/a%2Fb:countTokens",
        "/v1/chat?_method=DELETE",
        "/v1/flat?beta=true",
    ] {
        let refused = scene.call(target, &ok());
        assert_eq!(refused.status, 400, "{target}: {}", refused.text());
    }
    assert_eq!(scene.upstream.requests(), calls);
}
