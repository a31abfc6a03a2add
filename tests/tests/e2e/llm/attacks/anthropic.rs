//! Anthropic's routes.

use super::Outcome::{Refused, Served};
use super::{Attack, Outcome, check};

const MESSAGES: &str = "/v1/messages";

fn message(members: &str) -> String {
    let messages = r#"[{"role": "user", "content": "Hi. output=5000"}]"#;
    format!(r#"{{"model": "small", "max_tokens": 50, "messages": {messages}, {members}}}"#)
}

fn says(content: &str) -> String {
    format!(r#"{{"model": "small", "max_tokens": 50, "messages": [{{"role": "user", "content": [{content}]}}]}}"#)
}

fn in_message(what: &'static str, members: &str, outcome: Outcome) -> Attack {
    Attack::new(what, MESSAGES, message(members), outcome)
}

fn in_content(what: &'static str, content: &str, outcome: Outcome) -> Attack {
    Attack::new(what, MESSAGES, says(content), outcome)
}

#[test]
fn messages() {
    let no_limit = r#"{"model": "small", "messages": [{"role": "user", "content": "Hi."}]}"#;
    let cached = r#"{"type": "text", "text": "Hi. write1h=100 write=50 cached=30", "cache_control": {"type": "ephemeral", "ttl": "1h"}}"#;
    check(&[
        in_message("an ordinary call", r#""temperature": 1"#, Served(&[])),
        in_message("a stream", r#""stream": true"#, Served(&[])),
        Attack::new("a beta", "/v1/messages?beta=true", message(r#""stream": true"#), Served(&[])),
        Attack::new("a model in the query", "/v1/messages?model=dear", message(r#""stream": true"#), Refused("model")),
        Attack::new("no limit", MESSAGES, no_limit, Refused("max_tokens")),
        in_message(
            "too much",
            r#""thinking": {"type": "enabled", "budget_tokens": 99999}"#,
            Refused("/thinking/budget_tokens"),
        ),
        in_message(
            "in extra_body",
            r#""extra_body": {"max_tokens": 99999, "model": "dear"}"#,
            Served(&["99999", "dear"]),
        ),
        in_message("fast", r#""speed": "fast""#, Refused("/speed")),
        in_message("a region", r#""inference_geo": "us""#, Served(&["geo"])),
        in_message("a tier", r#""service_tier": "priority""#, Served(&["tier"])),
        in_message("a container", r#""container": "c_1""#, Served(&["container"])),
        in_message(
            "servers of tools",
            r#""mcp_servers": [{"type": "url", "url": "https://x.example"}]"#,
            Refused("/mcp_servers"),
        ),
        in_message(
            "a search",
            r#""tools": [{"type": "web_search_20250305", "name": "web_search"}]"#,
            Refused("/tools/0"),
        ),
        in_message(
            "a search that looks like a function",
            r#""tools": [{"type": "web_search_20250305", "name": "web_search", "input_schema": {}}]"#,
            Refused("/tools/0/type"),
        ),
        in_message("a function", r#""tools": [{"name": "f", "input_schema": {"type": "object"}}]"#, Served(&[])),
        in_content(
            "a document behind a URL",
            r#"{"type": "document", "source": {"type": "url", "url": "https://x.example/d.pdf"}}"#,
            Refused("/messages/0/content/0/type"),
        ),
        in_content(
            "a file",
            r#"{"type": "image", "source": {"type": "file", "file_id": "file_1"}}"#,
            Refused("/messages/0/content/0/source/type"),
        ),
        in_content("caches", cached, Served(&[])),
        in_message("betas", r#""stream": false"#, Served(&["fast-mode"]))
            .headers(&[("anthropic-beta", "fast-mode-2026-02-01")]),
    ]);
}
