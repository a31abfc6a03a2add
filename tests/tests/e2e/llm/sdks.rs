//! The official clients through the catalogue that sellers copy, unchanged. Each call costs exactly the price of its
//! tokens.

use metering_tests::litellm;
use serde_json::json;

use crate::llm::scene::Scene;
use crate::llm::setup::LANGUAGES;

/// Prompts, with the output that they request.
const PLAIN: &str = "Tell me a story. output=30";
const CACHED: &str = "Tell me a story. output=30 cached=1000 write=200 write1h=70";
const REASONED: &str = "Tell me a story. output=30 reasoning=12";

/// Each client, scenario and prompt, and the resulting text; `words` for one of 30 words.
const CALLS: [(&str, &str, &str, &str); 29] = [
    ("openai", "plain", PLAIN, "words"),
    ("openai", "plain", CACHED, "words"),
    ("openai", "plain", REASONED, "words"),
    ("openai", "stream", PLAIN, "words"),
    ("openai", "stream", CACHED, "words"),
    ("openai", "stream", REASONED, "words"),
    ("openai", "stream_with_usage", CACHED, "words"),
    ("openai", "tools", "Call f. tool=f", "f"),
    ("openai", "structured", PLAIN, "0"),
    ("openai", "responses", PLAIN, "words"),
    ("openai", "responses", CACHED, "words"),
    ("openai", "responses", REASONED, "words"),
    ("openai", "responses_stream", CACHED, "words"),
    ("openai", "responses_stream", REASONED, "words"),
    ("openai", "embeddings", "A meter", "2"),
    ("anthropic", "plain", PLAIN, "words"),
    ("anthropic", "plain", CACHED, "words"),
    ("anthropic", "stream", CACHED, "words"),
    ("anthropic", "stream", "Tell me a story. output=30 cached=1000 write=200 late=1", "words"),
    ("anthropic", "stream", "Tell me a story. output=30 cached=1000 write=200 repeats=1", "words"),
    ("anthropic", "stream", REASONED, "words"),
    ("anthropic", "tools", "Call f. tool=f", "f"),
    ("anthropic", "structured", PLAIN, "0"),
    ("google", "plain", CACHED, "words"),
    ("google", "plain", REASONED, "words"),
    ("google", "stream", CACHED, "words"),
    ("google", "stream", REASONED, "words"),
    ("google", "tools", "Call f. tool=f", "f"),
    ("google", "structured", PLAIN, "0"),
];

/// `None` if tests with the clients are disabled.
#[track_caller]
fn scene() -> Option<Scene> {
    (!litellm::is_skipped()).then(Scene::new)
}

#[test]
fn calls_cost_exactly_their_tokens() {
    let words = (0..30).map(|number| number.to_string()).collect::<Vec<_>>().join(" ");
    let Some(scene) = scene() else { return };
    let account = scene.site.account("100");
    let mut wrong = Vec::new();
    for language in LANGUAGES {
        for (sdk, scenario, prompt, expected) in CALLS {
            let (balance, cost) = (scene.balance(&account), scene.upstream.cost_atoms());
            let got = language.run_script("sdks", &scene.server, &account.api_key, &[sdk, scenario, prompt]);
            let cost = i64::try_from(scene.upstream.cost_atoms() - cost).unwrap();
            let paid = balance - scene.balance(&account);
            let text = got["text"].as_str().unwrap_or_default();
            if text != if expected == "words" { &words } else { expected } || paid != cost || cost == 0 {
                wrong.push(format!("{language:?} {sdk} {scenario} {prompt:?}: cost {cost}, paid {paid}: {got}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn usage_is_shown_to_clients_that_ask_for_it() {
    let Some(scene) = scene() else { return };
    let account = scene.site.account("10");
    for language in LANGUAGES {
        let run = |scenario| language.run_script("sdks", &scene.server, &account.api_key, &["openai", scenario, PLAIN]);
        assert_eq!(run("stream")["reported"], json!(false), "{language:?}");
        assert_eq!(run("stream_with_usage")["reported"], json!(true), "{language:?}");
    }
}

#[test]
fn counting_tokens_is_free() {
    let Some(scene) = scene() else { return };
    let account = scene.site.account("1");
    for language in LANGUAGES {
        for sdk in ["anthropic", "google"] {
            let got = language.run_script("sdks", &scene.server, &account.api_key, &[sdk, "count", PLAIN]);
            assert!(got["text"].as_str().is_some_and(|count| count != "0"), "{language:?} {sdk}: {got}");
        }
    }
    assert_eq!(scene.balance(&account), 7_200_000_000);
}

/// The gateway has the list of models, with their prices.
#[test]
fn models_are_listed_for_free() {
    let Some(scene) = scene() else { return };
    let account = scene.site.account("1");
    for language in LANGUAGES {
        let got = language.run_script("sdks", &scene.server, &account.api_key, &["openai", "models", PLAIN]);
        assert_eq!(got["text"], "small", "{language:?}: {got}");
    }
    assert!(scene.upstream.received().is_empty());
    assert_eq!(scene.balance(&account), 7_200_000_000);
}

/// A model without a price is not found, as at the provider, and costs nothing.
#[test]
fn clients_show_that_a_model_is_not_sold() {
    let Some(scene) = scene() else { return };
    let account = scene.site.account("1");
    for language in LANGUAGES {
        for sdk in ["openai", "anthropic", "google"] {
            let got = language.run_script("sdks", &scene.server, &account.api_key, &[sdk, "unsold", PLAIN]);
            let (error, shown) = (&got["error"], format!("{language:?} {sdk}: {got}"));
            assert_eq!(error["status"], 404, "{shown}");
            assert!(error["message"].as_str().is_some_and(|message| message.contains("unsold")), "{shown}");
            if sdk == "openai" {
                assert_eq!(error["code"], "model_not_found", "{shown}");
            }
        }
    }
    assert!(scene.upstream.received().is_empty());
    assert_eq!(scene.balance(&account), 7_200_000_000);
}

#[test]
fn clients_show_why_they_are_refused_and_the_id_of_the_request() {
    let Some(scene) = scene() else { return };
    let (empty, rich) = (scene.site.account("0"), scene.site.account("1"));
    for language in LANGUAGES {
        for sdk in ["openai", "anthropic", "google"] {
            for scenario in ["plain", "stream"] {
                let got = language.run_script("sdks", &scene.server, &empty.api_key, &[sdk, scenario, PLAIN]);
                let (error, shown) = (&got["error"], format!("{language:?} {sdk} {scenario}: {got}"));
                assert_eq!(error["status"], 402, "{shown}");
                assert!(error["message"].as_str().is_some_and(|message| message.contains("balance")), "{shown}");
                if sdk != "google" {
                    assert!(error["id"].as_str().is_some_and(|id| !id.is_empty()), "{shown}");
                }
                if sdk == "openai" {
                    assert_eq!(error["code"], "insufficient_credits", "{shown}");
                }
            }
            if sdk != "google" {
                let got = language.run_script("sdks", &scene.server, &rich.api_key, &[sdk, "plain", PLAIN]);
                assert!(got["id"].as_str().is_some_and(|id| !id.is_empty()), "{language:?} {sdk}: {got}");
            }
        }
    }
}

#[test]
fn clients_see_how_many_tokens_are_left() {
    let Some(scene) = scene() else { return };
    let account = scene.site.account("10");
    let limit = |tokens| {
        let set = scene.site.admin_json(&["account", "limits", &account.org_id, "--tpm", tokens]);
        assert_eq!(set["tokens_per_minute"].to_string(), tokens);
    };
    for language in LANGUAGES {
        let run = |scenario| language.run_script("sdks", &scene.server, &account.api_key, &["openai", scenario, PLAIN]);
        limit("100000");
        let got = run("limits");
        let left: u32 = got["text"].as_str().and_then(|left| left.parse().ok()).unwrap_or_default();
        // The body is at most some hundred bytes long, and 40 tokens of output may come.
        assert!((99_000..99_960).contains(&left) && got["limit"] == "100000", "{language:?}: {got}");
        // Anthropic's clients have the same by its names.
        let got = language.run_script("sdks", &scene.server, &account.api_key, &["anthropic", "limits", PLAIN]);
        let left: u32 = got["text"].as_str().and_then(|left| left.parse().ok()).unwrap_or_default();
        assert!(left < 99_960 && left > 0 && got["limit"] == "100000", "{language:?}: {got}");
        assert!(got["reset"].as_str().is_some_and(|reset| reset.ends_with(":00Z")), "{language:?}: {got}");
        limit("10");
        let error = &run("plain")["error"];
        assert_eq!((&error["status"], &error["code"]), (&json!(429), &json!("rate_limited")), "{language:?}: {error}");
        assert!(error["message"].as_str().is_some_and(|text| text.contains("10 tokens per minute")), "{error}");
    }
}
