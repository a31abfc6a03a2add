//! Google's generateContent, whose streams are JSON arrays unless the client requests events.

use serde_json::{Value, json};

use super::answer::{Answer, words};
use super::wish::Wish;

/// The usage once `output` visible tokens were sent. Tokens of thoughts are not among those of the candidates.
fn usage(wish: &Wish, output: u64) -> Value {
    let tokens = &wish.tokens;
    let mut usage = json!({
        "promptTokenCount": tokens.all_input(),
        "candidatesTokenCount": output,
        "totalTokenCount": tokens.all_input() + output + tokens.reasoning,
    });
    if tokens.cached > 0 {
        usage["cachedContentTokenCount"] = json!(tokens.cached);
    }
    if tokens.reasoning > 0 {
        usage["thoughtsTokenCount"] = json!(tokens.reasoning);
    }
    usage
}

fn part(wish: &Wish, text: &str) -> Value {
    match &wish.tool {
        Some(name) => json!({"functionCall": {"name": name, "args": {"a": "b"}}}),
        None => json!({"text": text}),
    }
}

fn chunk(wish: &Wish, parts: &Value, reason: Option<&str>, output: u64) -> Value {
    let mut candidate = json!({"content": {"parts": [parts], "role": "model"}, "index": 0});
    if let Some(reason) = reason {
        candidate["finishReason"] = json!(reason);
    }
    let usage = usage(wish, output);
    json!({"candidates": [candidate], "usageMetadata": usage, "modelVersion": "small-2026", "responseId": "r_1"})
}

pub(super) fn content(wish: &Wish) -> Answer {
    let visible = wish.tokens.output - wish.tokens.reasoning;
    if !wish.stream {
        let text =
            if wish.structured { r#"{"word":"0"}"#.to_owned() } else { words(visible / wish.choices.max(1)).collect() };
        return Answer::json(chunk(wish, &part(wish, &text), Some("STOP"), visible));
    }
    let sent = words(visible).zip(1..);
    let chunks: Vec<Value> = sent
        .map(|(word, count)| chunk(wish, &part(wish, &word), (count == visible).then_some("STOP"), count))
        .collect();
    if wish.sse {
        return Answer::events(chunks.iter().map(|chunk| format!("data: {chunk}\r\n\r\n")).collect(), wish);
    }
    let separated = chunks.iter().enumerate().map(|(number, chunk)| match number {
        0 => format!("[{chunk}"),
        _ => format!(",\r\n{chunk}"),
    });
    Answer::in_pieces("application/json", separated.chain(["\n]\n".to_owned()]).collect(), wish)
}

pub(super) fn count(wish: &Wish) -> Answer {
    Answer::json(json!({"totalTokens": wish.tokens.all_input()}))
}
