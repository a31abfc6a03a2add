//! Google's routes.

use super::Outcome::{Refused, RefusedWith, Served};
use super::{Attack, check};

const GENERATE: &str = "/v1beta/models/small:generateContent";
const STREAM: &str = "/v1beta/models/small:streamGenerateContent";

fn generate(members: &str) -> String {
    let contents = r#"[{"role": "user", "parts": [{"text": "Hi. output=5000 reasoning=10 cached=7"}]}]"#;
    format!(r#"{{"contents": {contents}, {members}}}"#)
}

fn limited(members: &str) -> String {
    generate(&format!(r#""generationConfig": {{"maxOutputTokens": 50}}, {members}"#))
}

fn says(part: &str) -> String {
    format!(r#"{{"contents": [{{"parts": [{part}]}}], "generationConfig": {{"maxOutputTokens": 50}}}}"#)
}

#[test]
fn content() {
    let safe = r#""safetySettings": []"#;
    check(&[
        Attack::new("an ordinary call", GENERATE, limited(safe), Served(&[])),
        Attack::new("no limit", GENERATE, generate(safe), Served(&[])),
        Attack::new(
            "a stream of events",
            "/v1beta/models/small:streamGenerateContent?alt=sse",
            limited(safe),
            Served(&[]),
        ),
        Attack::new("a stream in an array", STREAM, limited(safe), Served(&[])),
        Attack::new("the other prefix", "/v1/models/small:streamGenerateContent?alt=sse", limited(safe), Served(&[])),
        Attack::new("another model", "/v1beta/models/dear:generateContent", limited(safe), RefusedWith(&[404])),
        Attack::new(
            "another model, encoded",
            "/v1beta/models/sm%61ll%2Fdear:generateContent",
            limited(safe),
            RefusedWith(&[400, 404]),
        ),
        Attack::new(
            "a colon, encoded",
            "/v1beta/models/small%3AgenerateContent",
            limited(safe),
            RefusedWith(&[400, 404]),
        ),
        Attack::new("another case", "/v1beta/models/small:GenerateContent", limited(safe), RefusedWith(&[400, 404])),
        Attack::new("a model in the body", GENERATE, limited(r#""model": "models/dear""#), Served(&["dear"])),
        Attack::new(
            "a model in the query",
            "/v1beta/models/small:generateContent?model=dear",
            limited(safe),
            Refused("model"),
        ),
        Attack::new(
            "too much",
            GENERATE,
            generate(r#""generationConfig": {"maxOutputTokens": 99999}"#),
            Refused("/generationConfig/maxOutputTokens"),
        ),
        Attack::new(
            "a limit in the other spelling",
            GENERATE,
            generate(r#""generationConfig": {"max_output_tokens": 50}"#),
            Served(&["max_output_tokens"]),
        ),
        Attack::new(
            "a second limit",
            GENERATE,
            generate(r#""generationConfig": {"maxOutputTokens": 50, "max_output_tokens": 5000}"#),
            Served(&["5000}"]),
        ),
        Attack::new(
            "settings in the other spelling",
            GENERATE,
            limited(r#""generation_config": {"maxOutputTokens": 5000}"#),
            Refused("/generation_config"),
        ),
        Attack::new(
            "two candidates",
            GENERATE,
            generate(r#""generationConfig": {"maxOutputTokens": 50, "candidateCount": 2}"#),
            Served(&[]),
        ),
        Attack::new(
            "many candidates",
            GENERATE,
            generate(r#""generationConfig": {"candidateCount": 8}"#),
            Refused("/generationConfig/candidateCount"),
        ),
        Attack::new(
            "images as output",
            GENERATE,
            generate(r#""generationConfig": {"responseModalities": ["TEXT", "IMAGE"]}"#),
            Refused("/generationConfig/responseModalities/1"),
        ),
        Attack::new(
            "a search",
            GENERATE,
            limited(r#""tools": [{"googleSearch": {}}]"#),
            Refused("/tools/0/googleSearch"),
        ),
        Attack::new(
            "a search in the other spelling",
            GENERATE,
            limited(r#""tools": [{"google_search": {}}]"#),
            Refused("/tools/0/google_search"),
        ),
        Attack::new(
            "code",
            GENERATE,
            limited(r#""tools": [{"functionDeclarations": []}, {"codeExecution": {}}]"#),
            Refused("/tools/1/codeExecution"),
        ),
        Attack::new(
            "a function",
            GENERATE,
            limited(r#""tools": [{"functionDeclarations": [{"name": "f"}]}]"#),
            Served(&[]),
        ),
        Attack::new("a cache", GENERATE, limited(r#""cachedContent": "cachedContents/1""#), Refused("/cachedContent")),
        Attack::new("a tier", GENERATE, limited(r#""serviceTier": "priority""#), Served(&["Tier"])),
        Attack::new(
            "a film behind a URL",
            GENERATE,
            says(r#"{"fileData": {"fileUri": "https://youtu.be/x"}}"#),
            Refused("/contents/0/parts/0/fileData"),
        ),
        Attack::new(
            "a film",
            GENERATE,
            says(r#"{"inlineData": {"mimeType": "video/mp4", "data": "AAAA"}}"#),
            Refused("/contents/0/parts/0/inlineData/mimeType"),
        ),
    ]);
}
