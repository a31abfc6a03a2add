//! OpenAI's routes.

use super::Outcome::{HeldTooLittle, Refused, RefusedWith, Served};
use super::{Attack, check};

const CHAT: &str = "/v1/chat/completions";
const COMPLETIONS: &str = "/v1/completions";
const RESPONSES: &str = "/v1/responses";
const EMBEDDINGS: &str = "/v1/embeddings";
const IMAGES: &str = "/v1/images/generations";

/// A chat request for at most 50 tokens whose prompt asks for 5,000, with more members.
fn chat(members: &str) -> String {
    let messages = r#"[{"role": "user", "content": "Hi. output=5000"}]"#;
    format!(r#"{{"model": "small", "messages": {messages}, "max_tokens": 50, {members}}}"#)
}

/// The same without a limit or a model.
fn open_chat(members: &str) -> String {
    format!(r#"{{"messages": [{{"role": "user", "content": "Hi. output=5000"}}], {members}}}"#)
}

fn respond(members: &str) -> String {
    format!(r#"{{"model": "small", "input": "Hi. output=5000", "max_output_tokens": 50, {members}}}"#)
}

fn with_tool(tool: &str) -> String {
    respond(&format!(r#""tools": [{tool}]"#))
}

#[test]
fn models() {
    check(&[
        Attack::new("another model", CHAT, open_chat(r#""model": "dear""#), RefusedWith(&[404])),
        Attack::new("no model", CHAT, open_chat(r#""max_tokens": 1"#), Refused("model")),
        Attack::new(
            "a list of models in a text",
            CHAT,
            open_chat(r#""model": "small,small,small""#),
            RefusedWith(&[404]),
        ),
        Attack::new("an array of models", CHAT, open_chat(r#""model": ["small", "dear"]"#), Refused("/model")),
        Attack::new("an object as model", CHAT, open_chat(r#""model": {"model": "small"}"#), Refused("/model")),
        Attack::new("a model with spaces", CHAT, open_chat(r#""model": " small""#), RefusedWith(&[404])),
        Attack::new("the model twice", CHAT, chat(r#""model": "dear""#), Refused("model")),
        Attack::new("the model twice, escaped", CHAT, chat(r#""\u006dodel": "dear""#), Refused("model")),
        Attack::new("in another case", CHAT, chat(r#""MODEL": "dear""#), Served(&["dear", "MODEL"])),
        Attack::new("with other letters", CHAT, chat(r#""\uff4dodel": "dear""#), Served(&["dear"])),
        Attack::new("in extra_body", CHAT, chat(r#""extra_body": {"model": "o1-pro"}"#), Served(&["o1-pro", "extra"])),
        Attack::new(
            "in extra_body of responses",
            RESPONSES,
            respond(r#""extra_body": {"model": "o1-pro"}"#),
            Served(&["o1-pro", "extra"]),
        ),
        Attack::new("in metadata", CHAT, chat(r#""metadata": {"model": "dear"}"#), Served(&["dear", "metadata"])),
        Attack::new(
            "in litellm_params",
            CHAT,
            chat(r#""litellm_params": {"model": "dear", "api_base": "https://elsewhere.example"}"#),
            Served(&["dear", "elsewhere"]),
        ),
        Attack::new("fallbacks", CHAT, chat(r#""fallbacks": ["dear"]"#), Served(&["dear", "fallbacks"])),
        Attack::new(
            "fallbacks for long prompts",
            CHAT,
            chat(r#""context_window_fallbacks": [{"small": ["dear"]}], "models": ["dear"]"#),
            Served(&["dear"]),
        ),
        Attack::new("retries", CHAT, chat(r#""num_retries": 9, "max_retries": 9"#), Served(&["retries"])),
        Attack::new("a race", CHAT, chat(r#""fastest_response": true"#), Served(&["fastest"])),
        Attack::new("a moderation model", CHAT, chat(r#""moderation": {"model": "dear"}"#), Served(&["dear"])),
        Attack::new("in the query", "/v1/chat/completions?model=dear", chat(r#""n": 1"#), Refused("model")),
        Attack::new(
            "another path",
            "/openai/deployments/dear/chat/completions",
            chat(r#""n": 1"#),
            RefusedWith(&[404]),
        ),
        Attack::new("another author of SVG", IMAGES, image(r#""svg": {"model": "dear"}"#), Served(&["dear", "svg"])),
    ]);
}

#[test]
fn usage_that_is_not_reported() {
    let off = r#""stream": true, "stream_options": {"include_usage": false}"#;
    check(&[
        Attack::new("turned off", CHAT, chat(off), Served(&[])),
        Attack::new("turned off by null", CHAT, chat(r#""stream": true, "stream_options": null"#), Served(&[])),
        Attack::new("not asked for", CHAT, chat(r#""stream": true"#), Served(&[])),
        Attack::new(
            "asked for",
            CHAT,
            chat(r#""stream": true, "stream_options": {"include_usage": true}"#),
            Served(&[]),
        ),
        Attack::new(
            "no boolean",
            CHAT,
            chat(r#""stream": true, "stream_options": {"include_usage": "no"}"#),
            Refused("/stream_options/include_usage"),
        ),
        Attack::new("no object", CHAT, chat(r#""stream": true, "stream_options": "none""#), Refused("/stream_options")),
        Attack::new("a stream that is no boolean", CHAT, chat(r#""stream": 1"#), Refused("/stream")),
        Attack::new("a stream in a text", CHAT, chat(r#""stream": "true""#), Refused("/stream")),
        Attack::new(
            "turned off in extra_body",
            CHAT,
            chat(r#""stream": true, "extra_body": {"stream_options": {"include_usage": false}}"#),
            Served(&["extra_body"]),
        ),
        Attack::new(
            "turned off in another case",
            CHAT,
            chat(r#""stream": true, "Stream_Options": {"include_usage": false}"#),
            Served(&["Stream_Options"]),
        ),
        Attack::new("of completions", COMPLETIONS, complete(r#""Hi. output=5000""#, off), Served(&[])),
        Attack::new("in the background", RESPONSES, respond(r#""background": true"#), Refused("/background")),
    ]);
}

#[test]
fn output_beyond_what_is_held() {
    let both = r#""max_completion_tokens": 4000"#;
    check(&[
        Attack::new("an ordinary call", CHAT, chat(r#""temperature": 1"#), Served(&[])),
        Attack::new("no limit", CHAT, open_chat(r#""model": "small""#), Served(&[])),
        Attack::new("both limits", CHAT, chat(both), Served(&[])),
        Attack::new("a limit of null", CHAT, open_chat(r#""model": "small", "max_tokens": null"#), Served(&[])),
        Attack::new("in extra_body", CHAT, chat(r#""extra_body": {"max_tokens": 99999}"#), Served(&["99999"])),
        Attack::new("in another case", CHAT, chat(r#""Max_Tokens": 99999"#), Served(&["99999"])),
        Attack::new("of another API", CHAT, chat(r#""max_output_tokens": 99999"#), Served(&["99999"])),
        Attack::new("too much", CHAT, open_chat(r#""model": "small", "max_tokens": 99999"#), Refused("/max_tokens")),
        Attack::new("in a text", CHAT, open_chat(r#""model": "small", "max_tokens": "50""#), Refused("/max_tokens")),
        Attack::new("in a list", CHAT, open_chat(r#""model": "small", "max_tokens": [50]"#), Refused("/max_tokens")),
        Attack::new("zero", CHAT, open_chat(r#""model": "small", "max_tokens": 0"#), Refused("/max_tokens")),
        Attack::new("negative", CHAT, open_chat(r#""model": "small", "max_tokens": -1"#), Refused("/max_tokens")),
        Attack::new("a fraction", CHAT, open_chat(r#""model": "small", "max_tokens": 1e-9"#), Refused("/max_tokens")),
        Attack::new("beyond a double", CHAT, open_chat(r#""model": "small", "max_tokens": 1e400"#), Refused("")),
        Attack::new(
            "just above one",
            CHAT,
            open_chat(r#""model": "small", "max_tokens": 1.00000000000000000001"#),
            Served(&["1.0"]),
        ),
        Attack::new("twice", CHAT, chat(r#""max_tokens": 99999"#), Refused("max_tokens")),
        Attack::new("twice, escaped", CHAT, chat(r#""max\u005ftokens": 99999"#), Refused("max_tokens")),
        Attack::new("two choices", CHAT, chat(r#""n": 2"#), Served(&[])),
        Attack::new("many choices", CHAT, chat(r#""n": 128"#), Refused("/n")),
        Attack::new("choices in a text", CHAT, chat(r#""n": "2""#), Refused("/n")),
        Attack::new("no choices", CHAT, chat(r#""n": 0"#), Refused("/n")),
        Attack::new("many choices in another case", CHAT, chat(r#""N": 128"#), Served(&["128"])),
        Attack::new("best of many, in a chat", CHAT, chat(r#""best_of": 20"#), Served(&["best_of"])),
        Attack::new("best of two", COMPLETIONS, complete(r#""Hi. output=5000""#, r#""best_of": 2"#), Served(&[])),
        Attack::new("best of many", COMPLETIONS, complete(r#""Hi.""#, r#""best_of": 20"#), Refused("/best_of")),
        Attack::new("one prompt in a list", COMPLETIONS, complete(r#"["Hi. output=5000"]"#, r#""n": 1"#), Served(&[])),
        Attack::new("a prompt of tokens", COMPLETIONS, complete("[1, 2, 3]", r#""n": 1"#), Served(&[])),
        Attack::new("several prompts", COMPLETIONS, complete(r#"["Hi.", "Ho."]"#, r#""n": 1"#), Refused("/prompt")),
        Attack::new("several prompts of tokens", COMPLETIONS, complete("[[1], [2]]", r#""n": 1"#), Refused("/prompt")),
        Attack::new(
            "a prediction",
            CHAT,
            chat(r#""prediction": {"type": "content", "content": "a b c"}"#),
            Served(&["prediction"]),
        ),
        Attack::new("spoken output", CHAT, chat(r#""modalities": ["text", "audio"]"#), Refused("/modalities/1")),
    ]);
}

fn complete(prompt: &str, members: &str) -> String {
    format!(r#"{{"model": "small", "prompt": {prompt}, "max_tokens": 50, {members}}}"#)
}

fn image(members: &str) -> String {
    format!(r#"{{"model": "small", "prompt": "A meter.", {members}}}"#)
}

#[test]
fn tools_that_cost_by_the_call() {
    let function = r#"{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "model": "x"}}}"#;
    check(&[
        Attack::new("a function", CHAT, chat(&format!(r#""tools": [{function}]"#)), Served(&[])),
        Attack::new("a search", CHAT, chat(r#""tools": [{"type": "web_search"}]"#), Refused("/tools/0/type")),
        Attack::new(
            "a second tool",
            CHAT,
            chat(&format!(r#""tools": [{function}, {{"type": "web_search"}}]"#)),
            Refused("/tools/1/type"),
        ),
        Attack::new("options of a search", CHAT, chat(r#""web_search_options": {}"#), Refused("/web_search_options")),
        Attack::new("no type", CHAT, chat(r#""tools": [{"web_search": {}}]"#), Refused("/tools/0")),
        Attack::new(
            "a function of responses",
            RESPONSES,
            with_tool(r#"{"type": "function", "name": "f", "parameters": {}}"#),
            Served(&[]),
        ),
        Attack::new("web_search", RESPONSES, with_tool(r#"{"type": "web_search"}"#), Refused("/tools/0/type")),
        Attack::new(
            "web_search_preview",
            RESPONSES,
            with_tool(r#"{"type": "web_search_preview", "name": "f"}"#),
            Refused("/tools/0/type"),
        ),
        Attack::new(
            "file_search",
            RESPONSES,
            with_tool(r#"{"type": "file_search", "vector_store_ids": []}"#),
            Refused("/tools/0/type"),
        ),
        Attack::new(
            "code_interpreter",
            RESPONSES,
            with_tool(r#"{"type": "code_interpreter", "container": {"type": "auto"}}"#),
            Refused("/tools/0/type"),
        ),
        Attack::new(
            "mcp",
            RESPONSES,
            with_tool(r#"{"type": "mcp", "server_url": "https://x.example"}"#),
            Refused("/tools/0/type"),
        ),
        Attack::new(
            "computer use",
            RESPONSES,
            with_tool(r#"{"type": "computer_use_preview"}"#),
            Refused("/tools/0/type"),
        ),
        Attack::new(
            "image_generation",
            RESPONSES,
            with_tool(r#"{"type": "image_generation"}"#),
            Refused("/tools/0/type"),
        ),
        Attack::new(
            "tools in an item",
            RESPONSES,
            r#"{"model": "small", "input": [{"type": "additional_tools", "role": "developer", "tools": [{"type": "web_search"}]}]}"#,
            Refused("/input/0/type"),
        ),
        Attack::new("more calls", RESPONSES, respond(r#""max_tool_calls": 100"#), Served(&["max_tool_calls"])),
    ]);
}

#[test]
fn dearer_ways_of_the_same() {
    let item = |item: &str| format!(r#"{{"model": "small", "input": [{item}], "max_output_tokens": 50}}"#);
    let picture = r#"[{"type": "image_url", "image_url": {"url": "https://x.example/i.png", "detail": "low"}}]"#;
    let seen =
        format!(r#"{{"model": "small", "max_tokens": 50, "messages": [{{"role": "user", "content": {picture}}}]}}"#);
    check(&[
        Attack::new("a tier", CHAT, chat(r#""service_tier": "priority""#), Served(&["tier"])),
        Attack::new("another tier", RESPONSES, respond(r#""service_tier": "ultrafast""#), Served(&["tier"])),
        Attack::new("a longer cache", CHAT, chat(r#""prompt_cache_retention": "24h""#), Served(&["24h"])),
        Attack::new(
            "options of the cache",
            RESPONSES,
            respond(r#""prompt_cache_options": {"ttl": "12h"}"#),
            Served(&["12h"]),
        ),
        Attack::new(
            "a mode",
            RESPONSES,
            respond(r#""reasoning": {"effort": "high", "mode": "pro"}"#),
            Served(&[r#""mode""#]),
        ),
        Attack::new(
            "a program",
            RESPONSES,
            respond(r#""access_programs": {"cyber": "daybreak_red"}"#),
            Served(&["cyber"]),
        ),
        Attack::new("stored responses", RESPONSES, respond(r#""store": true"#), Served(&[r#""store":true"#])),
        Attack::new(
            "an earlier response",
            RESPONSES,
            respond(r#""previous_response_id": "resp_1""#),
            Refused("/previous_response_id"),
        ),
        Attack::new("a conversation", RESPONSES, respond(r#""conversation": "conv_1""#), Refused("/conversation")),
        Attack::new("a template", RESPONSES, respond(r#""prompt": {"id": "pmpt_1"}"#), Refused("/prompt")),
        Attack::new(
            "an item by its id",
            RESPONSES,
            item(r#"{"type": "item_reference", "id": "msg_1"}"#),
            Refused("/input/0/type"),
        ),
        Attack::new("an item by its id alone", RESPONSES, item(r#"{"id": "msg_1"}"#), Refused("/input/0")),
        Attack::new(
            "a file by its id",
            RESPONSES,
            item(r#"{"role": "user", "content": [{"type": "input_file", "file_id": "file_1"}]}"#),
            Refused("/input/0/content/0/type"),
        ),
        Attack::new("a large image", IMAGES, image(r#""size": "4096x4096""#), Refused("/size")),
        Attack::new("many images", IMAGES, image(r#""n": 10"#), Refused("/n")),
        Attack::new("frames", IMAGES, image(r#""output_format": "gif", "frame_count": 16"#), Refused("/output_format")),
        Attack::new("ordinary images", IMAGES, image(r#""n": 2, "quality": "low""#), Served(&[])),
        Attack::new("the dearest images", IMAGES, image(r#""n": 3, "quality": "high""#), Served(&[])),
        Attack::new("embeddings", EMBEDDINGS, r#"{"model": "small", "input": ["a b", "c"]}"#, Served(&[])),
        Attack::new("embeddings of tokens", EMBEDDINGS, r#"{"model": "small", "input": [[1, 2], [3]]}"#, Served(&[])),
        Attack::new("embeddings of nothing", EMBEDDINGS, r#"{"model": "small", "input": []}"#, Refused("/input")),
        Attack::new(
            "an image behind a URL",
            CHAT,
            seen,
            HeldTooLittle("a URL has fewer bytes than its image has tokens"),
        ),
    ]);
}

#[test]
fn headers() {
    let plain = || chat(r#""n": 1"#);
    let to = |what, headers, removed| Attack::new(what, CHAT, plain(), Served(removed)).headers(headers);
    check(&[
        to("retries", &[("x-litellm-num-retries", "9")], &["x-litellm"]),
        to("an organization", &[("OpenAI-Organization", "org-other")], &["org-other"]),
        to("a project", &[("OpenAI-Project", "proj-other")], &["proj-other"]),
        to("betas", &[("anthropic-beta", "fast-mode-2026-02-01")], &["fast-mode"]),
        to("another key", &[("x-goog-api-key", "AIza-other")], &["AIza-other"]),
        to("another path", &[("x-original-url", "/v1/images/generations")], &[]),
    ]);
}
