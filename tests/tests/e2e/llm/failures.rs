//! Failures of the upstream, and large responses, through the catalogue that sellers copy.

use metering_tests::response::Response;
use metering_tests::site::IssuedAccount;

use crate::llm::scene::Scene;

const CHAT: &str = "/v1/chat/completions";
const COMPLETIONS: &str = "/v1/completions";
const RESPONSES: &str = "/v1/responses";
const MESSAGES: &str = "/v1/messages";
const GEMINI: &str = "/v1beta/models/small:generateContent";
const GEMINI_STREAM: &str = "/v1beta/models/small:streamGenerateContent?alt=sse";
const GEMINI_ARRAY: &str = "/v1beta/models/small:streamGenerateContent";
const ONE_CREDIT: i64 = 7_200_000_000;

fn body(target: &str, prompt: &str, stream: bool) -> String {
    let messages = format!(r#""messages": [{{"role": "user", "content": "{prompt}"}}], "max_tokens": 1000"#);
    let members = match target {
        CHAT | MESSAGES => messages,
        COMPLETIONS => format!(r#""prompt": "{prompt}", "max_tokens": 1000"#),
        RESPONSES => format!(r#""input": "{prompt}", "max_output_tokens": 1000"#),
        _ => return format!(r#"{{"contents": [{{"parts": [{{"text": "{prompt}"}}]}}]}}"#),
    };
    format!(r#"{{"model": "small", "stream": {stream}, {members}}}"#)
}

fn call(scene: &Scene, account: &IssuedAccount, target: &str, prompt: &str, stream: bool) -> Response {
    scene.send(account, target, &[], body(target, prompt, stream).as_bytes())
}

#[test]
fn failure_of_the_upstream_costs_nothing() {
    let scene = Scene::new();
    let account = scene.site.account("1");
    let mut wrong = Vec::new();
    let scripts = ["error", "empty", "status"];
    let targets = [CHAT, COMPLETIONS, RESPONSES, MESSAGES, GEMINI, GEMINI_STREAM];
    let mut calls: Vec<_> = Vec::new();
    for target in targets {
        for script in scripts {
            calls.extend([false, true].map(|stream| (target, script, stream)));
        }
    }
    calls.push((RESPONSES, "failed", true));
    for (target, script, stream) in calls {
        let response = call(&scene, &account, target, &format!("Hi. script={script}"), stream);
        let left = scene.balance(&account);
        if left != ONE_CREDIT {
            wrong.push(format!("{target} {script} {stream}: {} {left} {}", response.status, response.text()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A stream that breaks off costs what was delivered: at least its tokens, and much less than what was held.
#[test]
fn stream_that_breaks_off_costs_what_was_delivered() {
    let scene = Scene::new();
    let mut wrong = Vec::new();
    for target in [CHAT, COMPLETIONS, RESPONSES, MESSAGES, GEMINI_STREAM, GEMINI_ARRAY] {
        let account = scene.site.account("1");
        let request = body(target, "Hi. output=500 cut=12", true);
        // The response has no proper end.
        let head = format!(
            "POST {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{request}",
            account.api_key,
            request.len()
        );
        let received = metering_tests::client::exchange(scene.server.address(), head.as_bytes()).unwrap();
        let paid = ONE_CREDIT - scene.balance(&account);
        // Twelve events have at least eight tokens of output, 72,000 atoms each. 500 of them would cost 36,000,000.
        if !(8 * 72_000..18_000_000).contains(&paid) {
            wrong.push(format!("{target}: paid {paid}: {}", String::from_utf8_lossy(&received)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn stream_that_is_stopped_costs_what_the_upstream_reports_at_its_end() {
    let scene = Scene::new();
    for target in [CHAT, RESPONSES, MESSAGES, GEMINI_STREAM] {
        let account = scene.site.account("1");
        let before = scene.upstream.cost_atoms();
        let request = body(target, "Hi. output=100 wait=8", true);
        let mut open = scene.client(&account).open_with_body("POST", target, request.as_bytes());
        let _ = open.read_until(" 3");
        drop(open);
        scene.upstream.open_gate();
        let paid = ONE_CREDIT - scene.balance(&account);
        assert_eq!(u64::try_from(paid).unwrap(), scene.upstream.cost_atoms() - before, "{target}");
    }
}

#[test]
fn large_responses_cost_what_they_report() {
    let scene = Scene::new();
    let account = scene.site.account("10");
    let images = r#"{"model": "small", "prompt": "A meter. bytes=4000000", "n": 3, "quality": "high"}"#;
    let inputs = vec![r#""dimensions=3072""#; 300].join(",");
    let embeddings = format!(r#"{{"model": "small", "input": [{inputs}]}}"#);
    for (target, body) in [("/v1/images/generations", images), ("/v1/embeddings", &embeddings)] {
        let (balance, cost) = (scene.balance(&account), scene.upstream.cost_atoms());
        let response = scene.send(&account, target, &[], body.as_bytes()).expect(200);
        assert!(response.body.len() > 4_000_000, "{target}: {} bytes", response.body.len());
        let cost = i64::try_from(scene.upstream.cost_atoms() - cost).unwrap();
        assert_eq!(balance - scene.balance(&account), cost, "{target}");
    }
}

#[test]
fn customers_do_not_see_what_the_seller_pays() {
    let scene = Scene::new();
    let account = scene.site.account("1");
    for (target, stream) in [(CHAT, false), (CHAT, true), (MESSAGES, true), (GEMINI, false)] {
        let response = call(&scene, &account, target, "Hi.", stream).expect(200);
        let families = ["x-litellm-", "llm_provider-", "x-ratelimit-"];
        let is_hidden = |name: &str| families.iter().any(|family| name.starts_with(family));
        let shown: Vec<_> = response.headers.iter().filter(|(name, _)| is_hidden(name)).collect();
        assert!(shown.is_empty(), "{target}: {shown:?}");
    }
}
