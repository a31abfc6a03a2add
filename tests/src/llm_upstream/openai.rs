//! OpenAI's chat completions, completions, embeddings and images.

use serde_json::{Value, json};

use super::answer::{Answer, data, words};
use super::wish::Wish;

/// The dimensions of an embedding if the prompt does not say `dimensions=N`, with N a multiple of three.
const DIMENSIONS: u64 = 3;

pub(super) fn models() -> Value {
    json!({"object": "list", "data": [{"id": "small", "object": "model", "created": 1, "owned_by": "the-seller"}]})
}

fn usage(wish: &Wish) -> Value {
    let tokens = &wish.tokens;
    json!({
        "prompt_tokens": tokens.all_input(),
        "completion_tokens": tokens.output,
        "total_tokens": tokens.all_input() + tokens.output,
        "prompt_tokens_details": {"cached_tokens": tokens.cached, "cache_write_tokens": tokens.cache_write},
        "completion_tokens_details": {"reasoning_tokens": tokens.reasoning},
    })
}

/// The visible tokens of one choice.
fn visible(wish: &Wish) -> u64 {
    (wish.tokens.output - wish.tokens.reasoning) / wish.choices.max(1)
}

fn text(wish: &Wish) -> String {
    if wish.structured { r#"{"word":"0"}"#.to_owned() } else { words(visible(wish)).collect() }
}

fn tool_call(name: &str) -> Value {
    json!({"index": 0, "id": "call_1", "type": "function", "function": {"name": name, "arguments": r#"{"a":"b"}"#}})
}

pub(super) fn chat(wish: &Wish) -> Answer {
    if wish.stream {
        return chat_stream(wish);
    }
    let message = match &wish.tool {
        Some(name) => json!({"role": "assistant", "content": null, "tool_calls": [tool_call(name)]}),
        None => json!({"role": "assistant", "content": text(wish)}),
    };
    let reason = if wish.tool.is_some() { "tool_calls" } else { "stop" };
    let choice = |index: u64| json!({"index": index, "message": message, "finish_reason": reason, "logprobs": null});
    let choices: Vec<_> = (0..wish.choices).map(choice).collect();
    Answer::json(json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "small-2026", "choices": choices,
        "usage": usage(wish),
    }))
}

fn chat_stream(wish: &Wish) -> Answer {
    let chunk = |index: u64, delta: Value, reason: Value| {
        let mut chunk = json!({
            "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "small-2026",
            "choices": [{"index": index, "delta": delta, "finish_reason": reason}],
        });
        if wish.include_usage {
            chunk["usage"] = Value::Null;
        }
        data(&chunk)
    };
    let mut events = Vec::new();
    for index in 0..wish.choices {
        events.push(chunk(index, json!({"role": "assistant", "content": ""}), Value::Null));
        match &wish.tool {
            Some(name) => events.push(chunk(index, json!({"tool_calls": [tool_call(name)]}), Value::Null)),
            None if wish.structured => events.push(chunk(index, json!({"content": text(wish)}), Value::Null)),
            None => {
                events.extend(words(visible(wish)).map(|word| chunk(index, json!({"content": word}), Value::Null)));
            }
        }
        let reason = if wish.tool.is_some() { "tool_calls" } else { "stop" };
        events.push(chunk(index, json!({}), json!(reason)));
    }
    events.extend(last_chunk("chat.completion.chunk", wish));
    Answer::events(events, wish)
}

/// The chunk with the usage, if requested, and the end.
fn last_chunk(object: &str, wish: &Wish) -> impl Iterator<Item = String> {
    let chunk = json!({
        "id": "chatcmpl-1", "object": object, "created": 1, "model": "small-2026", "choices": [], "usage": usage(wish),
    });
    let usage = wish.include_usage.then(|| data(&chunk));
    usage.into_iter().chain(["data: [DONE]\n\n".to_owned()])
}

pub(super) fn completions(wish: &Wish) -> Answer {
    let completion = |text: &str, reason: Value| {
        json!({
            "id": "cmpl-1", "object": "text_completion", "created": 1, "model": "small-2026",
            "choices": [{"index": 0, "text": text, "finish_reason": reason, "logprobs": null}],
        })
    };
    if wish.stream {
        let words = words(visible(wish)).map(|word| data(&completion(&word, Value::Null)));
        return Answer::events(words.chain(last_chunk("text_completion", wish)).collect(), wish);
    }
    let mut body = completion(&text(wish), json!("stop"));
    body["usage"] = usage(wish);
    Answer::json(body)
}

pub(super) fn embeddings(wish: &Wish) -> Answer {
    let dimensions = wish.number("dimensions").unwrap_or(DIMENSIONS);
    let length = usize::try_from(dimensions).unwrap_or_default();
    // Three zeros are twelve bytes, which are sixteen letters.
    let vector = if wish.base64 { json!("A".repeat(length / 3 * 16)) } else { json!(vec![0.125; length]) };
    let embedding = |index: u64| json!({"object": "embedding", "index": index, "embedding": vector});
    let embeddings: Vec<_> = (0..wish.inputs).map(embedding).collect();
    let tokens = wish.tokens.all_input();
    let usage = json!({"prompt_tokens": tokens, "total_tokens": tokens});
    Answer::json(json!({"object": "list", "data": embeddings, "model": "small-2026", "usage": usage}))
}

/// Images of `bytes=N` bytes each.
pub(super) fn images(wish: &Wish) -> Answer {
    let length = wish.number("bytes").and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(64);
    let image = json!({"b64_json": "A".repeat(length)});
    let images = vec![image; usize::try_from(wish.choices).unwrap_or(1)];
    let (input, output) = (wish.tokens.all_input(), wish.tokens.output);
    Answer::json(json!({"created": 1, "data": images, "usage": {
        "input_tokens": input, "input_tokens_details": {"text_tokens": input, "image_tokens": 0},
        "output_tokens": output, "total_tokens": input + output,
    }}))
}
