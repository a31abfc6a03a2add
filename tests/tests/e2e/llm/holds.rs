//! Prices by the tokens that the upstream reports, with OpenAI's clients.

use metering_tests::client::Client;
use metering_tests::litellm;
use metering_tests::site::Site;
use serde_json::{Value, json};

use crate::llm::scene::shipped;
use crate::llm::setup::{COMPLETION_TOKENS, LANGUAGES, PROMPT_TOKENS, in_front_of_litellm, setup, text};
use crate::support::wait::until;
use crate::support::wire::balance;

/// A thousandth of a credit per input token, a hundredth per output token. The clients' request costs 4 × 0.001 + 20 ×
/// 0.01 credits.
const COST: &str = "0.204";

fn price(missing: &str) -> Value {
    json!({
        "max": "0.5",
        "min": "0.001",
        "units": {"input_tokens": "0.001", "output_tokens": "0.01"},
        "report": {"json": {"input_tokens": "/usage/prompt_tokens", "output_tokens": "/usage/completion_tokens"}},
        "missing": missing,
    })
}

/// Waits until nothing is held, and returns the balance.
fn settled(client: &Client) -> String {
    let held = || client.get("/credits/balance").expect(200).member("credits_held");
    until("the hold is settled", || held() == "0");
    balance(client)
}

#[test]
fn clients_pay_for_the_tokens_that_they_used() {
    metering_tests::skip_if!(litellm::is_skipped());
    let site = Site::verified();
    let server = setup(&site, &price("hold")).start();
    for language in LANGUAGES {
        let key = site.account("1").api_key;
        let client = server.client_with(&key);
        let plain = language.run(&server, &key, "short", &["plain"]);
        assert_eq!((&plain["credit_charged"], &plain["credit_balance"]), (&json!(COST), &json!("0.796")), "{plain}");
        assert_eq!(plain["usage"], json!({"prompt": PROMPT_TOKENS, "completion": COMPLETION_TOKENS}), "{plain}");
        let stream = language.run(&server, &key, "short", &["stream"]);
        assert_eq!((&plain["text"], &stream["text"]), (&json!(text(COMPLETION_TOKENS)), &plain["text"]), "{stream}");
        assert_eq!((&stream["credit_held"], &stream["credit_charged"]), (&json!("0.5"), &Value::Null), "{stream}");
        assert_eq!(settled(&client), "0.592", "{language:?}");
    }
}

/// The shipped catalogue, unchanged, in front of LiteLLM: prompts have one token for each word.
#[test]
fn shipped_catalogue_sells_models_of_litellm() {
    metering_tests::skip_if!(litellm::is_skipped());
    let site = Site::verified();
    let catalogue = shipped().join("routes.json").display().to_string();
    let server = in_front_of_litellm(&site).args(["--catalogue", &catalogue]).start();
    let hello = json!([{"role": "user", "content": "Tell me a story."}]);
    for (path, mut body) in [
        ("/v1/chat/completions", json!({"model": "small", "messages": hello})),
        ("/v1/responses", json!({"model": "small", "input": "Tell me a story."})),
        ("/v1/messages", json!({"model": "small", "max_tokens": 100, "messages": hello})),
    ] {
        for stream in [false, true] {
            let client = server.client_with(&site.account("1").api_key);
            body["stream"] = json!(stream);
            let _ = client.post(path, &body).expect(200);
            assert_eq!(settled(&client), "0.999796", "{path}, stream {stream}: four and 20 tokens");
        }
    }
    let client = server.client_with(&site.account("1").api_key);
    let models = client.get("/v1/models").expect(200).json();
    assert!(models["data"].as_array().is_some_and(|models| !models.is_empty()), "{models}");
    assert_eq!(settled(&client), "1");
}

#[test]
fn client_that_leaves_a_stream_pays_for_all_its_tokens() {
    metering_tests::skip_if!(litellm::is_skipped());
    let site = Site::verified();
    let server = setup(&site, &price("hold")).start();
    for language in LANGUAGES {
        let key = site.account("1").api_key;
        let left = language.run(&server, &key, "slow", &["abort"]);
        assert_eq!(left["usage"], Value::Null, "{left}");
        assert_eq!(settled(&server.client_with(&key)), "0.796", "{language:?}");
    }
}

/// `missing` punishes clients, and this is the model's failure: the nine bytes of five words are at most nine tokens.
#[test]
fn stream_that_breaks_in_the_model_costs_what_was_delivered() {
    metering_tests::skip_if!(litellm::is_skipped());
    for missing in ["hold", "minimum", "release"] {
        let site = Site::new();
        let mut price = price(missing);
        price["delivered"] = json!({"output_tokens": "/choices/*/delta/content"});
        let server = setup(&site, &price).start();
        for language in LANGUAGES {
            let key = site.account("1").api_key;
            let broken = language.run(&server, &key, "broken", &["stream"]);
            assert!(broken["error"].as_str().is_some_and(|error| error.contains("the model broke")), "{broken}");
            assert_eq!(settled(&server.client_with(&key)), "0.91", "{missing}, {language:?}");
        }
        site.verify();
    }
}

#[test]
fn cost_above_the_hold_is_capped_or_charged_in_full() {
    metering_tests::skip_if!(litellm::is_skipped());
    for (over, left) in [("cap", "0.5"), ("debt", "-19.004")] {
        let site = Site::new();
        let mut price = price("hold");
        price["over"] = json!(over);
        let server = setup(&site, &price).start();
        let key = site.account("1").api_key;
        // 2000 output tokens: 20.004 credits.
        let _ = LANGUAGES[0].run(&server, &key, "long", &["plain"]);
        assert_eq!(settled(&server.client_with(&key)), left, "{over}");
        site.verify();
    }
}

#[test]
fn concurrent_calls_never_use_more_than_the_balance() {
    metering_tests::skip_if!(litellm::is_skipped());
    let site = Site::verified();
    let server = setup(&site, &price("hold")).set("METERING_GATEWAY__MAX_STREAMS_PER_KEY", "100").start();
    for language in LANGUAGES {
        let key = site.account("2").api_key;
        let race = language.run(&server, &key, "short", &["race", "24"]);
        let served = race["statuses"]["200"].as_u64().unwrap();
        let refused = race["statuses"]["402"].as_u64().unwrap_or(0);
        // Four holds of 0.5 fit at a time. With 0.204 each, the eighth still fits: 2 - 7 × 0.204 = 0.572.
        assert!((4..=8).contains(&served) && served + refused == 24, "{language:?}: {race}");
        assert_eq!(race["completion"], json!(20 * served), "{language:?}: {race}");
        let left = 2_000 - 204 * served;
        let left = format!("{}.{:03}", left / 1000, left % 1000);
        assert_eq!(
            settled(&server.client_with(&key)),
            left.trim_end_matches('0').trim_end_matches('.'),
            "{language:?}"
        );
    }
}
