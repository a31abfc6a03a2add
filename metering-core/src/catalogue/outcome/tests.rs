use std::sync::Arc;

use super::*;
use crate::catalogue::usage_price::tests::usage_price;

const EVENTS: &str = "text/event-stream";
const JSON: &str = "application/json";

/// Input costs 0.001 and output 0.01; at least 0.0005.
fn price(fields: &str) -> Arc<UsagePrice> {
    usage_price(&format!(
        r#"{{"max": "0.5", "min": "0.0005", "missing": "hold", "units": {{"input": "0.001", "output": "0.01"}},
            "report": {{"json": {{"input": ["/usage/input", "/message/usage/input"], "output": "/usage/output"}}}},
            "estimate": {{"json": {{"output": "/max"}}, "bytes": "input"}} {fields}}}"#
    ))
}

fn with_texts() -> Arc<UsagePrice> {
    price(r#", "delivered": {"output": "/choices/*/delta/content"}"#)
}

fn settle(price: &Arc<UsagePrice>, kind: &str, body: &str, end: BodyEnd, is_error: bool) -> String {
    let mut reader = price.body_reader(Some(kind)).unwrap();
    reader.push(body.as_bytes());
    let ended = Ended { body: end, is_error, held: "0.2".parse().unwrap(), request_bytes: 20 };
    match reader.settlement(&ended) {
        Settlement::Reported(cost) => format!("reported {cost}"),
        Settlement::Delivered(cost) => format!("delivered {cost}"),
        Settlement::Missing(None) => "missing".to_owned(),
        Settlement::Missing(Some(_)) => "unreadable".to_owned(),
        Settlement::Nothing => "nothing".to_owned(),
    }
}

const START: &str = "data: {\"message\": {\"usage\": {\"input\": 12}}}\n\n";
const TEXT: &str = "data: {\"choices\": [{\"delta\": {\"content\": \"Hi \\u00e9\"}}]}\n\n";
const USAGE: &str = "data: {\"choices\": [], \"usage\": {\"input\": 12, \"output\": 2}}\n\n";
const ERROR: &str = "data: {\"error\": {\"message\": \"overloaded\"}}\n\n";
const FAILED: &str =
    "event: response.failed\ndata: {\"response\": {\"error\": {\"code\": \"x\"}, \"usage\": null}}\n\n";

#[test]
fn streams_are_settled_by_how_they_ended() {
    use BodyEnd::{Abandoned, Broken, Complete, ShuttingDown};
    // events, end, settlement
    let table: &[(&[&str], BodyEnd, &str)] = &[
        (&[TEXT, USAGE, "data: [DONE]\n\n"], Complete, "reported 0.032"),
        (&[START, TEXT], Complete, "reported 0.012"),
        (&[TEXT], Complete, "missing"),
        (&["data: [DONE]\n\n"], Complete, "missing"),
        // The upstream failed.
        (&[], Complete, "nothing"),
        (&[": ping\n\n"], Complete, "nothing"),
        (&[ERROR], Complete, "nothing"),
        (&[FAILED], Complete, "nothing"),
        (&["event: error\ndata: {\"type\": \"error\", \"message\": \"x\"}\n\n"], Complete, "nothing"),
        (&["data: {\"error\": null}\n\n", "data: {\"error\": \"\"}\n\n"], Complete, "missing"),
        (&[START, ERROR], Complete, "reported 0.012"),
        // 5 bytes of output, and 20 bytes of input.
        (&[TEXT, ERROR], Complete, "delivered 0.07"),
        (&[START, TEXT, ERROR], Complete, "delivered 0.062"),
        (&[TEXT, USAGE, ERROR], Complete, "reported 0.032"),
        (&[ERROR], Abandoned, "nothing"),
        // The upstream cut the body off, or the server stopped.
        (&[], Broken, "nothing"),
        (&[TEXT], Broken, "delivered 0.07"),
        (&[TEXT, TEXT, TEXT, TEXT], Broken, "delivered 0.2"),
        (&[TEXT, USAGE], Broken, "reported 0.032"),
        (&[TEXT, USAGE, TEXT], Broken, "delivered 0.112"),
        (&[TEXT], ShuttingDown, "delivered 0.07"),
        (&[], ShuttingDown, "nothing"),
        // The client disconnected.
        (&[TEXT], Abandoned, "delivered 0.07"),
        (&[START], Abandoned, "reported 0.012"),
        (&[], Abandoned, "missing"),
        (&["data: {\"choices\": []}\n\n"], Abandoned, "missing"),
    ];
    for (events, end, expected) in table {
        assert_eq!(settle(&with_texts(), EVENTS, &events.concat(), *end, false), *expected, "{events:?} {end:?}");
    }
}

#[test]
fn without_texts_the_length_bounds_what_was_delivered() {
    use BodyEnd::{Abandoned, Broken, Complete, ShuttingDown};
    let text = "data: {\"t\": 1}\n\n";
    // events, end, settlement
    let table: &[(&[&str], BodyEnd, &str)] = &[
        (&[text], Broken, "delivered 0.08"),
        (&[text], ShuttingDown, "delivered 0.08"),
        (&[text, text, text], Broken, "delivered 0.2"),
        (&[text, ERROR], Complete, "delivered 0.08"),
        (&[ERROR], Complete, "nothing"),
        (&[text, USAGE], Broken, "reported 0.032"),
        (&[START, text], Broken, "delivered 0.012"),
        // A client cannot save the output by leaving before its report.
        (&[START, text], Abandoned, "delivered 0.08"),
        (&[], Abandoned, "missing"),
    ];
    for (events, end, expected) in table {
        assert_eq!(settle(&price(""), EVENTS, &events.concat(), *end, false), *expected, "{events:?} {end:?}");
    }
}

#[test]
fn documents_are_settled_too() {
    use BodyEnd::{Abandoned, Broken, Complete};
    // body, end, whether it has an error status, settlement
    let table = [
        (r#"{"usage": {"output": 3}}"#, Complete, false, "reported 0.03"),
        ("{}", Complete, false, "missing"),
        ("", Complete, false, "nothing"),
        (" \n", Complete, false, "nothing"),
        ("<html>", Complete, false, "unreadable"),
        (r#"{"usage": {"output": -1}}"#, Complete, false, "unreadable"),
        (r#"{"error": {"message": "x"}}"#, Complete, false, "nothing"),
        (r#"{"error": {"message": "x"}, "usage": {"output": 3}}"#, Complete, false, "reported 0.03"),
        (r#"{"error": "x"}"#, Complete, true, "nothing"),
        ("no", Complete, true, "nothing"),
        (r#"{"usage": {"output": 3}}"#, Complete, true, "reported 0.03"),
        // The report of an array that was cut off.
        (r#"[{"usage": 1}, {"choi"#, Abandoned, false, "missing"),
        (r#"{"choices": [{"delta": {"content": "abc"#, Broken, false, "delivered 0.05"),
        (r#"{"usage": {"output": 3}, "x"#, Broken, false, "reported 0.03"),
    ];
    for (body, end, is_error, expected) in table {
        assert_eq!(settle(&with_texts(), JSON, body, end, is_error), expected, "{body} {end:?}");
    }
    let none = price(r#", "failed": []"#);
    assert_eq!(settle(&none, JSON, r#"{"error": "x"}"#, Complete, false), "missing", "no failures are known");
}

#[test]
fn reports_in_credits_and_bytes_are_settled() {
    use BodyEnd::{Abandoned, Broken, Complete};
    let in_credits = usage_price(r#"{"max": "0.5", "min": "0.01", "missing": "hold", "report": {"json": "/cost"}}"#);
    let bytes = usage_price(r#"{"max": "0.5", "units": {"b": "0.001"}, "report": {"bytes": "b"}}"#);
    // price, events, end, settlement
    let table = [
        (&in_credits, "data: {\"cost\": 0.1}\n\n", Broken, "reported 0.1"),
        (&in_credits, "data: {\"t\": 1}\n\n", Broken, "delivered 0.01"),
        (&in_credits, "data: {\"t\": 1}\n\n", Abandoned, "missing"),
        (&in_credits, "data: {\"error\": 1}\n\n", Complete, "nothing"),
        (&in_credits, "", Broken, "nothing"),
        (&bytes, "12345", Broken, "reported 0.005"),
        (&bytes, "12345", Abandoned, "reported 0.005"),
        (&bytes, "", Broken, "nothing"),
        (&bytes, "", Complete, "reported 0"),
    ];
    for (price, body, end, expected) in table {
        assert_eq!(settle(price, EVENTS, body, end, false), expected, "{body} {end:?}");
    }
}
