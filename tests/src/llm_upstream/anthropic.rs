//! Anthropic's messages.

use serde_json::{Value, json};

use super::answer::{Answer, event, words};
use super::wish::Wish;

/// The usage of a response. Input tokens are those that are in no cache.
fn usage(wish: &Wish) -> Value {
    let tokens = &wish.tokens;
    json!({
        "input_tokens": tokens.input,
        "cache_creation_input_tokens": tokens.cache_write + tokens.cache_write_1h,
        "cache_read_input_tokens": tokens.cached,
        "cache_creation": {
            "ephemeral_5m_input_tokens": tokens.cache_write, "ephemeral_1h_input_tokens": tokens.cache_write_1h,
        },
        "output_tokens": tokens.output,
        "service_tier": "standard",
    })
}

fn text(wish: &Wish) -> String {
    if wish.structured {
        r#"{"word":"0"}"#.to_owned()
    } else {
        words(wish.tokens.output - wish.tokens.reasoning).collect()
    }
}

fn block(wish: &Wish) -> Value {
    match &wish.tool {
        Some(name) => json!({"type": "tool_use", "id": "toolu_1", "name": name, "input": {"a": "b"}}),
        None => json!({"type": "text", "text": text(wish)}),
    }
}

fn body(content: Value, reason: Value, usage: Value) -> Value {
    json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "small-2026", "content": content,
        "stop_reason": reason, "stop_sequence": null, "usage": usage,
    })
}

pub(super) fn message(wish: &Wish) -> Answer {
    let reason = if wish.tool.is_some() { "tool_use" } else { "end_turn" };
    if !wish.stream {
        return Answer::json(body(json!([block(wish)]), json!(reason), usage(wish)));
    }
    let mut at_start = usage(wish);
    // Some services have not counted the input by then, and report it in the last event.
    let late = wish.said.contains_key("late");
    at_start["output_tokens"] = json!(1);
    if late {
        at_start["input_tokens"] = json!(0);
    }
    let start = json!({"type": "message_start", "message": body(json!([]), Value::Null, at_start)});
    let (empty, deltas) = deltas(wish);
    let mut events = vec![start, json!({"type": "content_block_start", "index": 0, "content_block": empty})];
    events.extend(deltas.into_iter().map(|delta| json!({"type": "content_block_delta", "index": 0, "delta": delta})));
    events.push(json!({"type": "content_block_stop", "index": 0}));
    // The counts are cumulative. Some services repeat the input as zero.
    let mut at_end = json!({"output_tokens": wish.tokens.output});
    if late || wish.said.contains_key("repeats") {
        at_end["input_tokens"] = json!(if late { wish.tokens.input } else { 0 });
    }
    let delta = json!({"stop_reason": reason, "stop_sequence": null});
    events.push(json!({"type": "message_delta", "delta": delta, "usage": at_end}));
    events.push(json!({"type": "message_stop"}));
    let named = events.iter().map(|body| event(body["type"].as_str().unwrap_or_default(), body));
    Answer::events(named.collect(), wish)
}

/// A block's beginning, and what is added to it.
fn deltas(wish: &Wish) -> (Value, Vec<Value>) {
    match &wish.tool {
        Some(name) => {
            let empty = json!({"type": "tool_use", "id": "toolu_1", "name": name, "input": {}});
            (empty, vec![json!({"type": "input_json_delta", "partial_json": r#"{"a":"b"}"#})])
        }
        None => {
            let texts: Vec<String> = match wish.structured {
                true => vec![text(wish)],
                false => words(wish.tokens.output - wish.tokens.reasoning).collect(),
            };
            let deltas = texts.into_iter().map(|text| json!({"type": "text_delta", "text": text}));
            (json!({"type": "text", "text": ""}), deltas.collect())
        }
    }
}

pub(super) fn count(wish: &Wish) -> Answer {
    Answer::json(json!({"input_tokens": wish.tokens.input}))
}
