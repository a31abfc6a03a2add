//! Models with separate prices, in one list for the APIs of three providers.

use metering_tests::site::Site;
use serde_json::{Value, json};

use crate::llm::scene::Scene;

const CHAT: &str = "/v1/chat/completions";
const MESSAGES: &str = "/v1/messages";
const GEMINI: &str = "/v1beta/models/{model}:generateContent";

fn route(path: &str, preset: &str) -> Value {
    json!({"path": path, "method": "POST", "metered": true, "price": {"preset": preset}})
}

/// The prices of the upstream: any model but `small` costs a hundred times as much.
fn scene() -> Scene {
    let units = |[input, cached, written, output]: [&str; 4]| {
        json!({
            "input_tokens": input, "cached_input_tokens": cached, "cache_write_tokens": written,
            "output_tokens": output,
        })
    };
    let models = json!({
        "small": {"max": "0.5", "per_million": units(["1", "0.1", "1.25", "10"])},
        "dear*": {"max": "50", "per_million": units(["100", "10", "125", "1000"]), "limits": {"output_tokens": 16384}},
    });
    let catalogue = json!({"market": "LLM", "version": 1, "models": {"file": "models.json"}, "endpoints": [
        route(CHAT, "openai-chat"), route(MESSAGES, "anthropic-messages"), route(GEMINI, "gemini")]});
    let site = Site::new();
    let _ = site.write("models.json", &json!({"models": models}).to_string());
    let catalogue = site.write("routes.json", &catalogue.to_string());
    Scene::selling(site, &catalogue)
}

fn request(path: &str, model: &str, limit: Option<u64>) -> (String, Value) {
    let prompt = "Tell me a story. output=30 cached=100 write=20";
    if path == GEMINI {
        let mut body = json!({"contents": [{"parts": [{"text": prompt}]}]});
        if let Some(limit) = limit {
            body["generationConfig"] = json!({"maxOutputTokens": limit});
        }
        return (path.replace("{model}", model), body);
    }
    let mut body = json!({"model": model, "messages": [{"role": "user", "content": prompt}]});
    if let Some(limit) = limit {
        body["max_tokens"] = json!(limit);
    }
    (path.to_owned(), body)
}

#[test]
fn each_model_costs_exactly_its_own_price() {
    let scene = scene();
    let account = scene.site.account("200");
    for path in [CHAT, MESSAGES, GEMINI] {
        for model in ["small", "dear", "dear-2026"] {
            let (target, body) = request(path, model, Some(50));
            let response = scene.send(&account, &target, &[], body.to_string().as_bytes()).expect(200);
            let (paid, received) = (scene.paid(&account, &response), scene.upstream.received().pop().unwrap());
            assert_eq!(paid.charged, received.cost_atoms, "{path} {model}");
            assert!(paid.charged > if model == "small" { 0 } else { 100 * 30 * 72_000 }, "{path} {model}: {paid:?}");
            assert!(paid.released > 0, "{path} {model}: {paid:?}");
        }
    }
}

/// A request without a limit holds the model's maximum cost: 16,384 tokens at 0.001 credits, and its bytes.
#[test]
fn limit_of_a_model_bounds_what_is_held() {
    let scene = scene();
    let account = scene.site.account("17");
    let (target, body) = request(CHAT, "dear", None);
    let response = scene.send(&account, &target, &[], body.to_string().as_bytes()).expect(200);
    let paid = scene.paid(&account, &response);
    let held = paid.charged + paid.released;
    assert!((16_384 * 7_200_000..17 * 7_200_000_000).contains(&held), "{held} atoms");
    let poor = scene.site.account("1");
    let refused = scene.send(&poor, &target, &[], body.to_string().as_bytes()).expect(402);
    assert!(refused.text().contains("insufficient_credits"), "{}", refused.text());
    let (target, body) = request(CHAT, "small", Some(50));
    let _ = scene.send(&poor, &target, &[], body.to_string().as_bytes()).expect(200);
}

#[test]
fn list_of_models_has_their_prices_and_comes_from_the_gateway() {
    let scene = Scene::new();
    let account = scene.site.account("1");
    let list = scene.client(&account).get("/v1/models").expect(200).json();
    assert_eq!((&list["object"], &list["pricing_unit"]), (&json!("list"), &json!("credits")));
    assert_eq!((&list["data"][0]["id"], &list["data"][0]["pricing"]["prompt"]), (&json!("small"), &json!("0.000001")));
    assert!(scene.upstream.received().is_empty());
    assert_eq!(scene.balance(&account), 7_200_000_000);
    assert_eq!(scene.server.client().get("/v1/models").status, 401);
}
