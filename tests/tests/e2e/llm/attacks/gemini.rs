//! Google's routes.

use super::Outcome::{Refused, RefusedWith, Served};
use super::{Attack, Outcome, check};

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

fn in_call(what: &'static str, members: &str, outcome: Outcome) -> Attack {
    Attack::new(what, GENERATE, generate(members), outcome)
}

fn in_limited(what: &'static str, members: &str, outcome: Outcome) -> Attack {
    Attack::new(what, GENERATE, limited(members), outcome)
}

fn in_part(what: &'static str, part: &str, outcome: Outcome) -> Attack {
    Attack::new(what, GENERATE, says(part), outcome)
}

#[test]
fn content() {
    let safe = r#""safetySettings": []"#;
    check(&[
        in_limited("an ordinary call", safe, Served(&[])),
        in_call("no limit", safe, Served(&[])),
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
        in_limited("a model in the body", r#""model": "models/dear""#, Served(&["dear"])),
        Attack::new(
            "a model in the query",
            "/v1beta/models/small:generateContent?model=dear",
            limited(safe),
            Refused("model"),
        ),
        in_call(
            "too much",
            r#""generationConfig": {"maxOutputTokens": 99999}"#,
            Refused("/generationConfig/maxOutputTokens"),
        ),
        in_call(
            "a limit in the other spelling",
            r#""generationConfig": {"max_output_tokens": 50}"#,
            Served(&["max_output_tokens"]),
        ),
        in_call(
            "a second limit",
            r#""generationConfig": {"maxOutputTokens": 50, "max_output_tokens": 5000}"#,
            Served(&["5000}"]),
        ),
        in_limited(
            "settings in the other spelling",
            r#""generation_config": {"maxOutputTokens": 5000}"#,
            Refused("/generation_config"),
        ),
        in_call("two candidates", r#""generationConfig": {"maxOutputTokens": 50, "candidateCount": 2}"#, Served(&[])),
        in_call(
            "many candidates",
            r#""generationConfig": {"candidateCount": 8}"#,
            Refused("/generationConfig/candidateCount"),
        ),
        in_call(
            "images as output",
            r#""generationConfig": {"responseModalities": ["TEXT", "IMAGE"]}"#,
            Refused("/generationConfig/responseModalities/1"),
        ),
        in_limited("a search", r#""tools": [{"googleSearch": {}}]"#, Refused("/tools/0/googleSearch")),
        in_limited(
            "a search in the other spelling",
            r#""tools": [{"google_search": {}}]"#,
            Refused("/tools/0/google_search"),
        ),
        in_limited(
            "code",
            r#""tools": [{"functionDeclarations": []}, {"codeExecution": {}}]"#,
            Refused("/tools/1/codeExecution"),
        ),
        in_limited("a function", r#""tools": [{"functionDeclarations": [{"name": "f"}]}]"#, Served(&[])),
        in_limited("a cache", r#""cachedContent": "cachedContents/1""#, Refused("/cachedContent")),
        in_limited("a tier", r#""serviceTier": "priority""#, Served(&["Tier"])),
        in_part(
            "a film behind a URL",
            r#"{"fileData": {"fileUri": "https://youtu.be/x"}}"#,
            Refused("/contents/0/parts/0/fileData"),
        ),
        in_part(
            "a film",
            r#"{"inlineData": {"mimeType": "video/mp4", "data": "AAAA"}}"#,
            Refused("/contents/0/parts/0/inlineData/mimeType"),
        ),
    ]);
}
