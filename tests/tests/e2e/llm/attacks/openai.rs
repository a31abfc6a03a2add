//! OpenAI's routes.

use super::Outcome::{HeldTooLittle, Refused, RefusedWith, Served};
use super::{Attack, Outcome, check};

const CHAT: &str = "/v1/chat/completions";
const COMPLETIONS: &str = "/v1/completions";
const RESPONSES: &str = "/v1/responses";
const EMBEDDINGS: &str = "/v1/embeddings";
const IMAGES: &str = "/v1/images/generations";

/// A chat request for at most 50 tokens whose prompt requests 5,000, with more members.
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

fn in_chat(what: &'static str, members: &str, outcome: Outcome) -> Attack {
    Attack::new(what, CHAT, chat(members), outcome)
}

fn in_open_chat(what: &'static str, members: &str, outcome: Outcome) -> Attack {
    Attack::new(what, CHAT, open_chat(members), outcome)
}

fn in_response(what: &'static str, members: &str, outcome: Outcome) -> Attack {
    Attack::new(what, RESPONSES, respond(members), outcome)
}

fn in_tools(what: &'static str, tool: &str, outcome: Outcome) -> Attack {
    Attack::new(what, RESPONSES, with_tool(tool), outcome)
}

fn in_image(what: &'static str, members: &str, outcome: Outcome) -> Attack {
    Attack::new(what, IMAGES, image(members), outcome)
}

#[test]
fn models() {
    check(&[
        in_open_chat("another model", r#""model": "dear""#, RefusedWith(&[404])),
        in_open_chat("no model", r#""max_tokens": 1"#, Refused("model")),
        in_open_chat("a list of models in a text", r#""model": "small,small,small""#, RefusedWith(&[404])),
        in_open_chat("an array of models", r#""model": ["small", "dear"]"#, Refused("/model")),
        in_open_chat("an object as model", r#""model": {"model": "small"}"#, Refused("/model")),
        in_open_chat("a model with spaces", r#""model": " small""#, RefusedWith(&[404])),
        in_chat("the model twice", r#""model": "dear""#, Refused("model")),
        in_chat("the model twice, escaped", r#""\u006dodel": "dear""#, Refused("model")),
        in_chat("in another case", r#""MODEL": "dear""#, Served(&["dear", "MODEL"])),
        in_chat("with other letters", r#""\uff4dodel": "dear""#, Served(&["dear"])),
        in_chat("in extra_body", r#""extra_body": {"model": "o1-pro"}"#, Served(&["o1-pro", "extra"])),
        in_response("in extra_body of responses", r#""extra_body": {"model": "o1-pro"}"#, Served(&["o1-pro", "extra"])),
        in_chat("in metadata", r#""metadata": {"model": "dear"}"#, Served(&["dear", "metadata"])),
        in_chat(
            "in litellm_params",
            r#""litellm_params": {"model": "dear", "api_base": "https://elsewhere.example"}"#,
            Served(&["dear", "elsewhere"]),
        ),
        in_chat("fallbacks", r#""fallbacks": ["dear"]"#, Served(&["dear", "fallbacks"])),
        in_chat(
            "fallbacks for long prompts",
            r#""context_window_fallbacks": [{"small": ["dear"]}], "models": ["dear"]"#,
            Served(&["dear"]),
        ),
        in_chat("retries", r#""num_retries": 9, "max_retries": 9"#, Served(&["retries"])),
        in_chat("a race", r#""fastest_response": true"#, Served(&["fastest"])),
        in_chat("a moderation model", r#""moderation": {"model": "dear"}"#, Served(&["dear"])),
        Attack::new("in the query", "/v1/chat/completions?model=dear", chat(r#""n": 1"#), Refused("model")),
        Attack::new(
            "another path",
            "/openai/deployments/dear/chat/completions",
            chat(r#""n": 1"#),
            RefusedWith(&[404]),
        ),
        in_image("another author of SVG", r#""svg": {"model": "dear"}"#, Served(&["dear", "svg"])),
    ]);
}

#[test]
fn usage_that_is_not_reported() {
    let off = r#""stream": true, "stream_options": {"include_usage": false}"#;
    check(&[
        in_chat("turned off", off, Served(&[])),
        in_chat("turned off by null", r#""stream": true, "stream_options": null"#, Served(&[])),
        in_chat("not asked for", r#""stream": true"#, Served(&[])),
        in_chat("asked for", r#""stream": true, "stream_options": {"include_usage": true}"#, Served(&[])),
        in_chat(
            "no boolean",
            r#""stream": true, "stream_options": {"include_usage": "no"}"#,
            Refused("/stream_options/include_usage"),
        ),
        in_chat("no object", r#""stream": true, "stream_options": "none""#, Refused("/stream_options")),
        in_chat("a stream that is no boolean", r#""stream": 1"#, Refused("/stream")),
        in_chat("a stream in a text", r#""stream": "true""#, Refused("/stream")),
        in_chat(
            "turned off in extra_body",
            r#""stream": true, "extra_body": {"stream_options": {"include_usage": false}}"#,
            Served(&["extra_body"]),
        ),
        in_chat(
            "turned off in another case",
            r#""stream": true, "Stream_Options": {"include_usage": false}"#,
            Served(&["Stream_Options"]),
        ),
        Attack::new("of completions", COMPLETIONS, complete(r#""Hi. output=5000""#, off), Served(&[])),
        in_response("in the background", r#""background": true"#, Refused("/background")),
    ]);
}

#[test]
fn output_beyond_what_is_held() {
    let both = r#""max_completion_tokens": 4000"#;
    check(&[
        in_chat("an ordinary call", r#""temperature": 1"#, Served(&[])),
        in_open_chat("no limit", r#""model": "small""#, Served(&[])),
        in_chat("both limits", both, Served(&[])),
        in_open_chat("a limit of null", r#""model": "small", "max_tokens": null"#, Served(&[])),
        in_chat("in extra_body", r#""extra_body": {"max_tokens": 99999}"#, Served(&["99999"])),
        in_chat("in another case", r#""Max_Tokens": 99999"#, Served(&["99999"])),
        in_chat("of another API", r#""max_output_tokens": 99999"#, Served(&["99999"])),
        in_open_chat("too much", r#""model": "small", "max_tokens": 99999"#, Refused("/max_tokens")),
        in_open_chat("in a text", r#""model": "small", "max_tokens": "50""#, Refused("/max_tokens")),
        in_open_chat("in a list", r#""model": "small", "max_tokens": [50]"#, Refused("/max_tokens")),
        in_open_chat("zero", r#""model": "small", "max_tokens": 0"#, Refused("/max_tokens")),
        in_open_chat("negative", r#""model": "small", "max_tokens": -1"#, Refused("/max_tokens")),
        in_open_chat("a fraction", r#""model": "small", "max_tokens": 1e-9"#, Refused("/max_tokens")),
        in_open_chat("beyond a double", r#""model": "small", "max_tokens": 1e400"#, Refused("")),
        in_open_chat("just above one", r#""model": "small", "max_tokens": 1.00000000000000000001"#, Served(&["1.0"])),
        in_chat("twice", r#""max_tokens": 99999"#, Refused("max_tokens")),
        in_chat("twice, escaped", r#""max\u005ftokens": 99999"#, Refused("max_tokens")),
        in_chat("two choices", r#""n": 2"#, Served(&[])),
        in_chat("many choices", r#""n": 128"#, Refused("/n")),
        in_chat("choices in a text", r#""n": "2""#, Refused("/n")),
        in_chat("no choices", r#""n": 0"#, Refused("/n")),
        in_chat("many choices in another case", r#""N": 128"#, Served(&["128"])),
        in_chat("best of many, in a chat", r#""best_of": 20"#, Served(&["best_of"])),
        Attack::new("best of two", COMPLETIONS, complete(r#""Hi. output=5000""#, r#""best_of": 2"#), Served(&[])),
        Attack::new("best of many", COMPLETIONS, complete(r#""Hi.""#, r#""best_of": 20"#), Refused("/best_of")),
        Attack::new("one prompt in a list", COMPLETIONS, complete(r#"["Hi. output=5000"]"#, r#""n": 1"#), Served(&[])),
        Attack::new("a prompt of tokens", COMPLETIONS, complete("[1, 2, 3]", r#""n": 1"#), Served(&[])),
        Attack::new("several prompts", COMPLETIONS, complete(r#"["Hi.", "Ho."]"#, r#""n": 1"#), Refused("/prompt")),
        Attack::new("several prompts of tokens", COMPLETIONS, complete("[[1], [2]]", r#""n": 1"#), Refused("/prompt")),
        in_chat("a prediction", r#""prediction": {"type": "content", "content": "a b c"}"#, Served(&["prediction"])),
        in_chat("spoken output", r#""modalities": ["text", "audio"]"#, Refused("/modalities/1")),
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
        in_chat("a function", &format!(r#""tools": [{function}]"#), Served(&[])),
        in_chat("a search", r#""tools": [{"type": "web_search"}]"#, Refused("/tools/0/type")),
        in_chat(
            "a second tool",
            &format!(r#""tools": [{function}, {{"type": "web_search"}}]"#),
            Refused("/tools/1/type"),
        ),
        in_chat("options of a search", r#""web_search_options": {}"#, Refused("/web_search_options")),
        in_chat("no type", r#""tools": [{"web_search": {}}]"#, Refused("/tools/0")),
        in_tools("a function of responses", r#"{"type": "function", "name": "f", "parameters": {}}"#, Served(&[])),
        in_tools("web_search", r#"{"type": "web_search"}"#, Refused("/tools/0/type")),
        in_tools("web_search_preview", r#"{"type": "web_search_preview", "name": "f"}"#, Refused("/tools/0/type")),
        in_tools("file_search", r#"{"type": "file_search", "vector_store_ids": []}"#, Refused("/tools/0/type")),
        in_tools(
            "code_interpreter",
            r#"{"type": "code_interpreter", "container": {"type": "auto"}}"#,
            Refused("/tools/0/type"),
        ),
        in_tools("mcp", r#"{"type": "mcp", "server_url": "https://x.example"}"#, Refused("/tools/0/type")),
        in_tools("computer use", r#"{"type": "computer_use_preview"}"#, Refused("/tools/0/type")),
        in_tools("image_generation", r#"{"type": "image_generation"}"#, Refused("/tools/0/type")),
        Attack::new(
            "tools in an item",
            RESPONSES,
            r#"{"model": "small", "input": [{"type": "additional_tools", "role": "developer", "tools": [{"type": "web_search"}]}]}"#,
            Refused("/input/0/type"),
        ),
        in_response("more calls", r#""max_tool_calls": 100"#, Served(&["max_tool_calls"])),
    ]);
}

#[test]
fn dearer_ways_of_the_same() {
    let item = |item: &str| format!(r#"{{"model": "small", "input": [{item}], "max_output_tokens": 50}}"#);
    let picture = r#"[{"type": "image_url", "image_url": {"url": "https://x.example/i.png", "detail": "low"}}]"#;
    let seen =
        format!(r#"{{"model": "small", "max_tokens": 50, "messages": [{{"role": "user", "content": {picture}}}]}}"#);
    check(&[
        in_chat("a tier", r#""service_tier": "priority""#, Served(&["tier"])),
        in_response("another tier", r#""service_tier": "ultrafast""#, Served(&["tier"])),
        in_chat("a longer cache", r#""prompt_cache_retention": "24h""#, Served(&["24h"])),
        in_response("options of the cache", r#""prompt_cache_options": {"ttl": "12h"}"#, Served(&["12h"])),
        in_response("a mode", r#""reasoning": {"effort": "high", "mode": "pro"}"#, Served(&[r#""mode""#])),
        in_response("a program", r#""access_programs": {"cyber": "daybreak_red"}"#, Served(&["cyber"])),
        in_response("stored responses", r#""store": true"#, Served(&[r#""store":true"#])),
        in_response("an earlier response", r#""previous_response_id": "resp_1""#, Refused("/previous_response_id")),
        in_response("a conversation", r#""conversation": "conv_1""#, Refused("/conversation")),
        in_response("a template", r#""prompt": {"id": "pmpt_1"}"#, Refused("/prompt")),
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
        in_image("a large image", r#""size": "4096x4096""#, Refused("/size")),
        in_image("many images", r#""n": 10"#, Refused("/n")),
        in_image("frames", r#""output_format": "gif", "frame_count": 16"#, Refused("/output_format")),
        in_image("ordinary images", r#""n": 2, "quality": "low""#, Served(&[])),
        in_image("the dearest images", r#""n": 3, "quality": "high""#, Served(&[])),
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
