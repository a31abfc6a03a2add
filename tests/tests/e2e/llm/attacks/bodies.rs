//! Bodies that two parsers may read differently.

use super::Outcome::{Refused, Served};
use super::{Attack, check};

const CHAT: &str = "/v1/chat/completions";
const BODY: &str = r#"{"model": "small", "messages": [{"role": "user", "content": "Hi."}], "max_tokens": 50}"#;

#[test]
fn bodies_that_are_not_plainly_json() {
    let with = |before: &[u8], after: &[u8]| [before, BODY.as_bytes(), after].concat();
    let utf_16: Vec<u8> = BODY.encode_utf16().flat_map(u16::to_be_bytes).collect();
    let nested = format!(r#"{{"model": "small", "messages": {}1{}}}"#, "[".repeat(5_000), "]".repeat(5_000));
    let text = |content: &[u8]| {
        [br#"{"model": "small", "messages": [{"role": "user", "content": ""#, content, br#""}]}"#].concat()
    };
    let typed = |what, kind: &'static [(&'static str, &'static str)], outcome| {
        Attack::new(what, CHAT, BODY, outcome).headers(kind)
    };
    check(&[
        Attack::new("plain", CHAT, BODY, Served(&[])),
        Attack::new("spaces around", CHAT, with(b" \n", b"\n "), Served(&[])),
        Attack::new("nothing", CHAT, "", Refused("")),
        Attack::new("null", CHAT, "null", Refused("")),
        Attack::new("a list", CHAT, with(b"[", b"]"), Refused("")),
        Attack::new("a byte order mark", CHAT, with(b"\xef\xbb\xbf", b""), Refused("")),
        Attack::new("garbage after it", CHAT, with(b"", b"garbage"), Refused("")),
        Attack::new("a second document", CHAT, with(b"", br#"{"model": "dear"}"#), Refused("")),
        Attack::new("a comment", CHAT, with(b"/* */", b""), Refused("")),
        Attack::new("a zero byte after it", CHAT, with(b"", b"\0"), Refused("")),
        Attack::new("invalid UTF-8", CHAT, text(b"\xff\xfe"), Refused("")),
        Attack::new("overlong UTF-8", CHAT, text(b"\xc0\xa2"), Refused("")),
        Attack::new("half a surrogate", CHAT, text(br"\ud800"), Refused("")),
        Attack::new("a raw line break", CHAT, text(b"a\nb"), Refused("")),
        Attack::new("deep nesting", CHAT, nested, Refused("")),
        Attack::new("NaN", CHAT, BODY.replace("50", "NaN"), Refused("")),
        Attack::new(
            "a name twice, below",
            CHAT,
            BODY.replace(r#""content""#, r#""content": "a", "content""#),
            Refused("content"),
        ),
        Attack::new("in UTF-16", CHAT, utf_16, Refused(""))
            .headers(&[("content-type", "application/json; charset=utf-16")]),
        // The checked body is forwarded, as JSON.
        typed("declared as UTF-16", &[("content-type", "application/json; charset=utf-16")], Served(&["utf-16"])),
        typed("declared as UTF-8", &[("content-type", "application/json; charset=utf-8")], Served(&[])),
        typed("declared as a form", &[("content-type", "application/x-www-form-urlencoded")], Served(&["urlencoded"])),
        typed("declared as compressed", &[("content-encoding", "gzip")], Refused("")),
        Attack::new("a form", CHAT, "model=dear&messages=Hi", Refused(""))
            .headers(&[("content-type", "application/x-www-form-urlencoded")]),
    ]);
}
