//! OpenAI's responses.

use serde_json::{Value, json};

use super::answer::{Answer, event, words};
use super::wish::Wish;

fn usage(wish: &Wish) -> Value {
    let tokens = &wish.tokens;
    json!({
        "input_tokens": tokens.all_input(),
        "input_tokens_details": {"cached_tokens": tokens.cached, "cache_write_tokens": tokens.cache_write},
        "output_tokens": tokens.output,
        "output_tokens_details": {"reasoning_tokens": tokens.reasoning},
        "total_tokens": tokens.all_input() + tokens.output,
    })
}

fn text(wish: &Wish) -> String {
    if wish.structured {
        return r#"{"word":"0"}"#.to_owned();
    }
    words(wish.tokens.output - wish.tokens.reasoning).collect()
}

fn output(wish: &Wish) -> Value {
    match &wish.tool {
        Some(name) => json!({
            "type": "function_call", "id": "fc_1", "call_id": "call_1", "name": name, "arguments": r#"{"a":"b"}"#,
            "status": "completed",
        }),
        None => json!({
            "type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": text(wish), "annotations": []}],
        }),
    }
}

fn response(status: &str, output: Value, usage: Value) -> Value {
    json!({
        "id": "resp_1", "object": "response", "created_at": 1, "status": status, "model": "small-2026", "error": null,
        "incomplete_details": null, "instructions": null, "metadata": {}, "output": output, "parallel_tool_calls": true,
        "temperature": null, "tool_choice": "auto", "tools": [], "top_p": null, "usage": usage,
    })
}

pub(super) fn respond(wish: &Wish) -> Answer {
    let completed = response("completed", json!([output(wish)]), usage(wish));
    if !wish.stream {
        return Answer::json(completed);
    }
    let created = response("in_progress", json!([]), Value::Null);
    let mut events = vec![json!({"type": "response.created", "response": created})];
    if wish.tool.is_none() {
        let deltas: Vec<String> = match wish.structured {
            true => vec![text(wish)],
            false => words(wish.tokens.output - wish.tokens.reasoning).collect(),
        };
        events.extend(deltas.iter().map(|word| {
            json!({"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 0, "content_index": 0,
                   "delta": word, "logprobs": []})
        }));
    }
    events.push(json!({"type": "response.output_item.done", "output_index": 0, "item": output(wish)}));
    events.push(json!({"type": "response.completed", "response": completed}));
    let numbered = events.into_iter().enumerate().map(|(number, mut body)| {
        body["sequence_number"] = json!(number);
        event(body["type"].as_str().unwrap_or_default(), &body)
    });
    Answer::events(numbered.collect(), wish)
}
