//! Anthropic's routes.

use super::Outcome::{Refused, Served};
use super::{Attack, check};

const MESSAGES: &str = "/v1/messages";

fn message(members: &str) -> String {
    let messages = r#"[{"role": "user", "content": "Hi. output=5000"}]"#;
    format!(r#"{{"model": "small", "max_tokens": 50, "messages": {messages}, {members}}}"#)
}

fn says(content: &str) -> String {
    format!(r#"{{"model": "small", "max_tokens": 50, "messages": [{{"role": "user", "content": [{content}]}}]}}"#)
}

#[test]
fn messages() {
    let no_limit = r#"{"model": "small", "messages": [{"role": "user", "content": "Hi."}]}"#;
    let cached = r#"{"type": "text", "text": "Hi. write1h=100 write=50 cached=30", "cache_control": {"type": "ephemeral", "ttl": "1h"}}"#;
    check(&[
        Attack::new("an ordinary call", MESSAGES, message(r#""temperature": 1"#), Served(&[])),
        Attack::new("a stream", MESSAGES, message(r#""stream": true"#), Served(&[])),
        Attack::new("a beta", "/v1/messages?beta=true", message(r#""stream": true"#), Served(&[])),
        Attack::new("a model in the query", "/v1/messages?model=dear", message(r#""stream": true"#), Refused("model")),
        Attack::new("no limit", MESSAGES, no_limit, Refused("max_tokens")),
        Attack::new(
            "too much",
            MESSAGES,
            message(r#""thinking": {"type": "enabled", "budget_tokens": 99999}"#),
            Refused("/thinking/budget_tokens"),
        ),
        Attack::new(
            "in extra_body",
            MESSAGES,
            message(r#""extra_body": {"max_tokens": 99999, "model": "dear"}"#),
            Served(&["99999", "dear"]),
        ),
        Attack::new("fast", MESSAGES, message(r#""speed": "fast""#), Refused("/speed")),
        Attack::new("a region", MESSAGES, message(r#""inference_geo": "us""#), Served(&["geo"])),
        Attack::new("a tier", MESSAGES, message(r#""service_tier": "priority""#), Served(&["tier"])),
        Attack::new("a container", MESSAGES, message(r#""container": "c_1""#), Served(&["container"])),
        Attack::new(
            "servers of tools",
            MESSAGES,
            message(r#""mcp_servers": [{"type": "url", "url": "https://x.example"}]"#),
            Refused("/mcp_servers"),
        ),
        Attack::new(
            "a search",
            MESSAGES,
            message(r#""tools": [{"type": "web_search_20250305", "name": "web_search"}]"#),
            Refused("/tools/0"),
        ),
        Attack::new(
            "a search that looks like a function",
            MESSAGES,
            message(r#""tools": [{"type": "web_search_20250305", "name": "web_search", "input_schema": {}}]"#),
            Refused("/tools/0/type"),
        ),
        Attack::new(
            "a function",
            MESSAGES,
            message(r#""tools": [{"name": "f", "input_schema": {"type": "object"}}]"#),
            Served(&[]),
        ),
        Attack::new(
            "a document behind a URL",
            MESSAGES,
            says(r#"{"type": "document", "source": {"type": "url", "url": "https://x.example/d.pdf"}}"#),
            Refused("/messages/0/content/0/type"),
        ),
        Attack::new(
            "a file",
            MESSAGES,
            says(r#"{"type": "image", "source": {"type": "file", "file_id": "file_1"}}"#),
            Refused("/messages/0/content/0/source/type"),
        ),
        Attack::new("caches", MESSAGES, says(cached), Served(&[])),
        Attack::new("betas", MESSAGES, message(r#""stream": false"#), Served(&["fast-mode"]))
            .headers(&[("anthropic-beta", "fast-mode-2026-02-01")]),
    ]);
}
