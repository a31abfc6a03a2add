use super::*;
use crate::catalogue::usage_price::tests::{tokens, usage_price};
use proptest::prelude::*;

const EVENTS: Option<&str> = Some("text/event-stream; charset=utf-8");
const LINES: Option<&str> = Some("Application/X-NDJSON");
const JSON: Option<&str> = Some("application/json");

/// A price of 1 credit per input and 1000 per output, so a cost shows both counts.
fn chat() -> Arc<UsagePrice> {
    usage_price(
        r#"{"max": "500", "units": {"input": "1", "output": "1000"},
            "report": {"json": {"input": "/usage/input", "output": "/usage/output"}}}"#,
    )
}

fn in_credits() -> Arc<UsagePrice> {
    usage_price(r#"{"max": "1", "report": {"json": "/cost"}}"#)
}

fn read<'b>(
    price: &Arc<UsagePrice>,
    content_type: Option<&str>,
    pieces: impl IntoIterator<Item = &'b [u8]>,
) -> Result<Option<String>, ReportError> {
    let mut reader = price.body_reader(content_type).unwrap();
    pieces.into_iter().for_each(|piece| reader.push(piece));
    reader.finish().map(|cost| cost.map(|cost| cost.to_string()))
}

#[test]
fn last_usage_of_a_chat_completion_stream_counts() {
    // As OpenAI streams it, with `stream_options.include_usage`.
    let body = br#"data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant"}}],"usage":null}

data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"prompt_tokens"}}],"usage":null}

data: {"id":"c","object":"chat.completion.chunk","choices":[],"usage":{"prompt_tokens":8000,"completion_tokens":1000,"total_tokens":9000}}

data: [DONE]

"#;
    assert_eq!(read(&tokens(""), EVENTS, [&body[..]]), Ok(Some("0.003".to_owned())));
}

#[test]
fn usage_in_different_events_is_put_together() {
    // As Anthropic streams it: input at the start, output so far at the end.
    let price = usage_price(
        r#"{"max": "500", "units": {"input": "1", "output": "1000"},
            "report": {"json": {"input": "/message/usage/input_tokens", "output": "/usage/output_tokens"}}}"#,
    );
    let body = b"event: message_start\n\
        data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":25,\"output_tokens\":1}}}\n\n\
        event: ping\ndata: {\"type\": \"ping\"}\n\n\
        event: content_block_delta\n\
        data: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"Hello \\u00e9\"}}\n\n\
        event: message_delta\ndata: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":7}}\n\n\
        event: message_delta\ndata: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":15}}\n\n\
        event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";
    assert_eq!(read(&price, EVENTS, [&body[..]]), Ok(Some("15025".to_owned())));
}

/// A cost, or the kind of an error.
type Expected = Result<Option<&'static str>, &'static str>;

#[test]
fn a_unit_can_be_in_several_places() {
    // One route for Anthropic's plain responses and its streams, which report the input in another place.
    let price = usage_price(
        r#"{"max": "500", "units": {"input": "1", "output": "100"}, "report": {"json": {
            "input": ["/usage/input_tokens", "/message/usage/input_tokens"], "output": "/usage/output_tokens"}}}"#,
    );
    let plain = r#"{"usage": {"input_tokens": 3, "output_tokens": 2}}"#;
    assert_eq!(read(&price, JSON, [plain.as_bytes()]), Ok(Some("203".to_owned())));
    let events = "data: {\"message\": {\"usage\": {\"input_tokens\": 3}}}\n\n\
                  data: {\"usage\": {\"output_tokens\": 2}}\n\n";
    assert_eq!(read(&price, EVENTS, [events.as_bytes()]), Ok(Some("203".to_owned())));
    // The first place that has a count decides, wherever it is in the body.
    let both = r#"{"message": {"usage": {"input_tokens": 9}}, "usage": {"input_tokens": 3, "output_tokens": 0}}"#;
    assert_eq!(read(&price, JSON, [both.as_bytes()]), Ok(Some("3".to_owned())));
}

#[test]
fn bodies_are_read_by_content_type() {
    // content type, body, report
    let table: &[(Option<&str>, &str, Expected)] = &[
        (JSON, r#"{"usage": {"input": 3, "output": 2}}"#, Ok(Some("2003"))),
        (JSON, r#" {"usage": {"input": "3", "output": 2.5}} "#, Ok(Some("2503"))),
        (JSON, r#"{"usage": {"input": 3e1, "output": null}}"#, Ok(Some("30"))),
        (JSON, r#"{"usage": {"output": 1}}"#, Ok(Some("1000"))),
        (JSON, r#"{"usage": {"input": 0}}"#, Ok(Some("0"))),
        (JSON, "\u{feff}{\"usage\": {\"input\": 3}}", Ok(Some("3"))),
        (None, r#"{"usage": {"input": 3}}"#, Ok(Some("3"))),
        (Some("text/plain"), r#"{"usage": {"input": 3}}"#, Ok(Some("3"))),
        (JSON, r#"{"usage": {}}"#, Ok(None)),
        (JSON, r#"{"usage": null}"#, Ok(None)),
        (JSON, "[]", Ok(None)),
        (JSON, "", Ok(None)),
        (JSON, " \n", Ok(None)),
        (JSON, r#"{"usage": {"input": 3}"#, Err("NotJson")),
        (JSON, "<html>", Err("NotJson")),
        (JSON, r#"{"usage": {"input": -3}}"#, Err("Unreadable")),
        (JSON, r#"{"usage": {"input": true}}"#, Err("Unreadable")),
        (JSON, r#"{"usage": {"input": "many"}}"#, Err("Unreadable")),
        (JSON, r#"{"usage": {"input": [3], "output": 1}}"#, Err("Unreadable")),
        (JSON, r#"{"usage": {"input": 3, "input": 4}}"#, Err("Ambiguous")),
        (LINES, "{\"usage\":{\"input\":1}}\n{\"usage\":{\"input\":3}}\n", Ok(Some("3"))),
        (LINES, "{\"usage\":{\"input\":1}}\r\n\r\nnot JSON\r\n{\"usage\":{\"output\":2}}", Ok(Some("2001"))),
        (Some("application/stream+json"), "{\"usage\":{\"input\":1}}\n{\"usage\":{\"inp", Ok(Some("1"))),
        (Some("application/jsonl"), "{}\n{}\n", Ok(None)),
        (EVENTS, "data: {\"usage\":{\"input\":1}}\n\ndata: {\"usage\":{\"input\":null}}\n\n", Ok(Some("1"))),
        (EVENTS, "data: {\"usage\":\ndata: {\"input\":1}}\n\n", Ok(Some("1"))),
        (EVENTS, "data: {\"usage\":{\"input\":1}}", Ok(Some("1"))),
        (EVENTS, "data: {\"usage\":{\"input\":1}", Ok(None)),
        (EVENTS, "data: {\"usage\":{\"input\":-1}}\n\n", Err("Unreadable")),
        (EVENTS, "data: {\"usage\":{\"input\":-1}}\n\ndata: {\"usage\":{\"input\":1}}\n\n", Ok(Some("1"))),
        (EVENTS, "data: {\"usage\":{\"input\":1}}\n\ndata: {\"usage\":{\"input\":-1}}\n\n", Ok(Some("1"))),
        // Counters are cumulative: a later zero erases nothing.
        (EVENTS, "data: {\"usage\":{\"input\":12}}\n\ndata: {\"usage\":{\"input\":0}}\n\n", Ok(Some("12"))),
        (EVENTS, "", Ok(None)),
        // A document where events should be has no report.
        (EVENTS, r#"{"usage": {"input": 3}}"#, Ok(None)),
    ];
    for (content_type, body, expected) in table {
        let found = read(&chat(), *content_type, [body.as_bytes()]);
        match (&found, expected) {
            (Ok(cost), Ok(expected)) => assert_eq!(cost.as_deref(), *expected, "{body}"),
            (Err(error), Err(kind)) => assert!(format!("{error:?}").starts_with(kind), "{body}: {error:?}"),
            _ => panic!("{body}: {found:?}"),
        }
    }
}

#[test]
fn credits_in_a_body_are_the_cost() {
    // content type, body, cost
    let table = [
        (JSON, r#"{"cost": 0.25}"#, Some("0.25")),
        (JSON, r#"{"cost": 1.35e-05}"#, Some("0.0000135")),
        (JSON, r#"{"cost": "2"}"#, Some("2")),
        (JSON, r#"{"cost": null}"#, None),
        (EVENTS, "data: {\"cost\": 0.1}\n\ndata: {\"cost\": 0.3}\n\ndata: [DONE]\n\n", Some("0.3")),
        (LINES, "{\"cost\": 0.1}\n{}\n", Some("0.1")),
    ];
    for (content_type, body, cost) in table {
        assert_eq!(read(&in_credits(), content_type, [body.as_bytes()]), Ok(cost.map(str::to_owned)), "{body}");
    }
    assert!(matches!(read(&in_credits(), JSON, [&b"{\"cost\": false}"[..]]), Err(ReportError::Unreadable { .. })));
}

#[test]
fn length_of_the_body_is_the_count_of_its_unit() {
    let price = usage_price(r#"{"max": "1", "units": {"bytes": "0.001"}, "report": {"bytes": "bytes"}}"#);
    assert_eq!(read(&price, EVENTS, [&b"ab"[..], b"", b"c"]), Ok(Some("0.003".to_owned())));
    assert_eq!(read(&price, None, []), Ok(Some("0".to_owned())));
}

#[test]
fn only_a_plain_body_is_kept_until_it_ends() {
    let keeps =
        |price: &Arc<UsagePrice>, content_type| price.body_reader(content_type).map(|reader| reader.reads_whole_body());
    assert_eq!(keeps(&chat(), JSON), Some(true));
    assert_eq!(keeps(&chat(), None), Some(true));
    assert_eq!(keeps(&chat(), EVENTS), Some(false));
    assert_eq!(keeps(&chat(), LINES), Some(false));
    let by_bytes = usage_price(r#"{"max": "1", "units": {"b": "0.001"}, "report": {"bytes": "b"}}"#);
    assert_eq!(keeps(&by_bytes, JSON), Some(false));
    assert_eq!(keeps(&usage_price(r#"{"max": "1", "report": {"header": "x-cost"}}"#), JSON), None);
}

#[test]
fn size_of_a_body_or_an_event_does_not_matter() {
    let large = format!("{{\"cost\": 0.2, \"images\": [\"{}\"]}}", "x".repeat(11 << 20));
    assert_eq!(read(&in_credits(), JSON, large.as_bytes().chunks(65_536)), Ok(Some("0.2".to_owned())));
    let event = format!("data: {large}\n\n");
    assert_eq!(read(&in_credits(), EVENTS, event.as_bytes().chunks(65_536)), Ok(Some("0.2".to_owned())));
    let embeddings = "[0.0123456789,-0.5],".repeat(300);
    let embeddings = format!("{{\"data\": [{embeddings}[]], \"cost\": 0.1}}");
    assert_eq!(read(&in_credits(), JSON, [embeddings.as_bytes()]), Ok(Some("0.1".to_owned())));
    let deep = format!("{{\"cost\": 1, \"x\": {}", "[".repeat(200));
    assert_eq!(read(&in_credits(), JSON, [deep.as_bytes()]), Err(ReportError::TooDeep));
}

#[test]
fn units_are_sums_and_differences_and_are_combined() {
    // As OpenAI reports cached tokens, within its prompt tokens.
    let price = usage_price(
        r#"{"max": "500", "units": {"input": "1", "cached": "0.1", "output": "100"}, "report": {"json": {
            "input": {"plus": ["/usage/prompt_tokens"], "minus": ["/usage/prompt_tokens_details/cached_tokens"]},
            "cached": "/usage/prompt_tokens_details/cached_tokens",
            "output": ["/usage/completion_tokens", "/*/usageMetadata/candidatesTokenCount"]}}}"#,
    );
    // body, cost
    let table = [
        (
            r#"{"usage": {"prompt_tokens": 10, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}}}"#,
            "206.4",
        ),
        (r#"{"usage": {"prompt_tokens": 10, "prompt_tokens_details": null}}"#, "10"),
        (r#"{"usage": {"prompt_tokens": 4, "prompt_tokens_details": {"cached_tokens": 10}}}"#, "1"),
        (r#"[{"usageMetadata": {"candidatesTokenCount": 1}}, {"usageMetadata": {"candidatesTokenCount": 3}}]"#, "300"),
    ];
    for (body, cost) in table {
        assert_eq!(read(&price, JSON, [body.as_bytes()]), Ok(Some(cost.to_owned())), "{body}");
    }
    for (combine, cost) in [("max", "5"), ("last", "2"), ("sum", "8")] {
        let price = usage_price(&format!(
            r#"{{"max": "1", "units": {{"a": "1"}}, "report": {{"json": {{"a": "/*/a"}}, "combine": "{combine}"}}}}"#
        ));
        let body = br#"[{"a": 1}, {"a": 5}, {"a": 2}]"#;
        assert_eq!(read(&price, JSON, [&body[..]]), Ok(Some(cost.to_owned())), "{combine}");
    }
}

/// Events with everything that matters to the reader, and bodies that are none.
fn event() -> impl Strategy<Value = String> {
    let count = prop_oneof!["[0-9]{1,3}", "null", "-1", "\"7\"", "\"x\"", "\\{\\}"];
    let key = prop_oneof!["input", "output", "\\\\u0069nput", "o\\\\u0075tput", "INPUT", "text\\\\n"];
    let usage = proptest::collection::vec((key, count), 0..3).prop_map(|members| {
        let members: Vec<_> = members.into_iter().map(|(key, count)| format!(r#""{key}":{count}"#)).collect();
        format!("{{{}}}", members.join(","))
    });
    let parent = prop_oneof!["usage", "us\\\\u0061ge", "message"];
    let member = (parent, prop_oneof![3 => usage, 1 => Just("null".to_owned()), 1 => Just("[1]".to_owned())]);
    let json = proptest::collection::vec(member, 0..3).prop_map(|members| {
        let members: Vec<_> = members.into_iter().map(|(key, value)| format!(r#""{key}":{value}"#)).collect();
        format!("{{{}}}", members.join(","))
    });
    prop_oneof![8 => json, 1 => Just("[DONE]".to_owned()), 1 => Just("{\"usage\":{\"input\":".to_owned())]
}

proptest! {
    #[test]
    fn pieces_never_change_the_report(
        events in proptest::collection::vec((event(), prop_oneof!["\n\n", "\r\n\r\n", "\r\r", "\n"]), 0..6),
        cut in 1_usize..20,
    ) {
        let as_events: String = events.iter().map(|(event, end)| format!("data: {event}{end}")).collect();
        let as_lines: String = events.iter().map(|(event, end)| format!("{event}{end}")).collect();
        for (content_type, body) in [(EVENTS, &as_events), (LINES, &as_lines), (JSON, &as_lines)] {
            let whole = read(&chat(), content_type, [body.as_bytes()]);
            prop_assert_eq!(read(&chat(), content_type, body.as_bytes().chunks(cut)), whole);
        }
    }

    #[test]
    fn bytes_never_panic(body in proptest::collection::vec(any::<u8>(), 0..200)) {
        for content_type in [EVENTS, LINES, JSON] {
            let _ = read(&chat(), content_type, [&body[..]]);
        }
        let _ = tokens(r#", "estimate": {"json": {"output_tokens": "/a"}, "bytes": "input_tokens"}"#).hold(Some(&body));
    }
}
