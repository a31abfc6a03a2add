use std::sync::Arc;

use super::*;
use crate::Catalogue;

/// The price of a catalogue's one route.
pub(in crate::catalogue) fn usage_price(price: &str) -> Arc<UsagePrice> {
    let route = format!(r#"{{"path": "/x", "method": "POST", "metered": true, "price": {price}}}"#);
    let text = format!(r#"{{"market": "M", "version": 1, "endpoints": [{route}]}}"#);
    let catalogue = Catalogue::from_json(&text).unwrap_or_else(|error| panic!("{price}: {error}"));
    Arc::clone(catalogue.routes()[0].usage_price().unwrap())
}

/// A price for a language model, with more fields.
pub(in crate::catalogue) fn tokens(fields: &str) -> Arc<UsagePrice> {
    usage_price(&format!(
        r#"{{"max": "0.5", "min": "0.0001", "units": {{"input_tokens": "0.00000025", "output_tokens": "0.000001"}},
            "report": {{"json": {{"input_tokens": "/usage/prompt_tokens", "output_tokens": "/usage/completion_tokens"}}}}
            {fields}}}"#
    ))
}

fn credits(text: &str) -> Credits {
    text.parse().unwrap()
}

fn counts(json: &str) -> Counts {
    serde_json::from_str(json).unwrap()
}

#[test]
fn cost_is_the_sum_of_all_units_and_at_least_the_minimum() {
    let price = tokens("");
    // counts, cost
    let table = [
        (r#"{"input_tokens": 1000, "output_tokens": 1000}"#, credits("0.00125")),
        (r#"{"output_tokens": 1000000}"#, credits("1")),
        (r#"{"input_tokens": 1}"#, credits("0.0001")),
        ("{}", credits("0.0001")),
        (r#"{"input_tokens": 100000000000000000000}"#, credits("1000000")),
        // 400.001 input tokens cost 720,001.8 atoms.
        (r#"{"input_tokens": 400.001}"#, Credits::from_atoms(720_002)),
    ];
    for (json, cost) in table {
        assert_eq!(price.cost(&counts(json)), Ok(cost), "{json}");
    }
    assert_eq!(price.cost_of_credits(credits("0.00001")), credits("0.0001"));
    assert_eq!(price.cost_of_credits(credits("7")), credits("7"));
}

#[test]
fn unknown_units_are_named() {
    let error = |price: &UsagePrice, json| price.cost(&counts(json)).unwrap_err().to_string();
    assert_eq!(
        error(&tokens(""), r#"{"inptu_tokens": 1}"#),
        "inptu_tokens is not a unit of this price; did you mean input_tokens?"
    );
    assert_eq!(
        error(&tokens(""), r#"{"images": 1}"#),
        "images is not a unit of this price; its units are input_tokens, output_tokens"
    );
    let in_credits = usage_price(r#"{"max": "1", "report": {"header": "x-cost"}}"#);
    assert_eq!(error(&in_credits, r#"{"a": 1}"#), "a is not a unit of this price; it has no units, only credits");
    assert!(error(&tokens(""), &format!(r#"{{"{}": 1}}"#, "é".repeat(1_000))).chars().count() < 200);
}

#[test]
fn hold_is_the_estimate_if_every_unit_has_one() {
    let price = tokens(
        r#", "estimate": {"json": {"output_tokens": ["/max_completion_tokens", "/max_tokens"]},
            "bytes": "input_tokens", "times": "/n"}"#,
    );
    let hold = |body: &str| price.hold(Some(body.as_bytes()));
    // Bodies of 800 bytes cost 0.0002 for their input.
    let padded = |fields: &str| format!("{fields:<800}");
    // body, credits held
    let table = [
        (r#"{"max_tokens": 1000}"#, "0.0012"),
        (r#"{"max_tokens": 1e3}"#, "0.0012"),
        (r#"{"max_tokens": 1000, "n": 3}"#, "0.0036"),
        (r#"{"max_tokens": 1000, "n": null}"#, "0.0012"),
        (r#"{"max_tokens": 1000, "n": 0.5}"#, "0.5"),
        (r#"{"max_tokens": 1000, "n": 1.5}"#, "0.5"),
        (r#"{"max_completion_tokens": 100, "max_tokens": 1000}"#, "0.0012"),
        (r#"{"max_completion_tokens": 1000, "max_tokens": 100}"#, "0.0012"),
        (r#"{"max_completion_tokens": null, "max_tokens": 1000}"#, "0.0012"),
        (r#"{"max_tokens": 0}"#, "0.5"),
        // Not a whole number of at least 1: the upstream's reading of it is unknown.
        (r#"{"max_tokens": 1e-9}"#, "0.5"),
        (r#"{"max_tokens": 1.5}"#, "0.5"),
        (r#"{"max_tokens": 0.99999999999}"#, "0.5"),
        // Go's JSON reader takes a Kelvin sign for a k, and a long s for an s.
        ("{\"max_tokens\": 1, \"max_to\u{212a}ens\": 1000}", "0.5"),
        ("{\"max_tokens\": 1, \"max_token\u{17f}\": 1000}", "0.5"),
        (r#"{"max_tokens": 1000000}"#, "0.5"),
        (r#"{"max_tokens": 1e28, "n": 1e28}"#, "0.5"),
        (r#"{"max_tokens": 1}"#, "0.000201"),
    ];
    for (fields, held) in table {
        assert_eq!(hold(&padded(fields)), credits(held), "{fields}");
    }
    let max_is_held = [
        "{}",
        "",
        "null",
        "[]",
        "{",
        r#"{"max_tokens": -1}"#,
        r#"{"max_tokens": "1"}"#,
        r#"{"max_tokens": null}"#,
        r#"{"max_tokens": [1]}"#,
        // Which of these counts depends on the parser.
        r#"{"max_tokens": 1, "max_tokens": 100000}"#,
        r#"{"max_tokens": 1, "MAX_TOKENS": 100000}"#,
        r#"{"MAX_TOKENS": 1}"#,
        r#"{"max_completion_tokens": "100000", "max_tokens": 1}"#,
        r#"{"max_completion_tokens": 1, "max_completion_tokens": 2, "max_tokens": 1}"#,
        r#"{"max_tokens": 1, "n": 0}"#,
        r#"{"max_tokens": 1, "n": -1}"#,
        r#"{"max_tokens": 1, "n": "1"}"#,
        r#"{"max_tokens": 1, "n": 1, "n": 50}"#,
        r#"{"max_tokens": 1, "N": 50}"#,
        "{\"max_tokens\": 1} x",
    ];
    for body in max_is_held {
        assert_eq!(hold(body), price.max(), "{body}");
    }
    assert_eq!(price.hold(None), price.max());
    assert_eq!(price.hold(Some(b"{\"max_tokens\": 1, \"x\": \"\xff\"}")), price.max());
    assert!(price.needs_request_body());
}

#[test]
fn bytes_are_of_the_dearest_unit_and_the_largest_factor_counts() {
    let price = usage_price(
        r#"{"max": "0.5", "units": {"input": "0.001", "written": "0.002", "output": "0.01"},
            "report": {"json": {"input": "/i", "written": "/w", "output": "/o"}},
            "estimate": {"json": {"output": "/max"}, "bytes": ["input", "written"], "times": ["/n", "/best_of"]}}"#,
    );
    // body, credits held
    let table = [
        (r#"{"max": 1}"#, "0.03"),
        (r#"{"max": 1,"n":1,"best_of":2}"#, "0.132"),
        (r#"{"max": 1,"n":2,"best_of":1}"#, "0.132"),
        (r#"{"max": 1,"n":1,"best_of":0}"#, "0.5"),
    ];
    for (body, held) in table {
        assert_eq!(price.hold(Some(body.as_bytes())), credits(held), "{body}");
    }
}

#[test]
fn hold_without_an_estimate_is_the_maximum() {
    assert_eq!(tokens("").hold(Some(br#"{"max_tokens": 1}"#)), credits("0.5"));
    assert!(!tokens("").needs_request_body());
    let partial = tokens(r#", "estimate": {"bytes": "input_tokens"}"#);
    assert_eq!(partial.hold(Some(b"1")), credits("0.5"));
    // Free units and bodies of any kind do not prevent an estimate by length.
    let by_length = usage_price(
        r#"{"max": "1", "units": {"sent": "0.001", "received": "0"}, "report": {"json": {"sent": "/s", "received": "/r"}},
            "estimate": {"bytes": "sent"}}"#,
    );
    assert_eq!(by_length.hold(Some(b"{12")), credits("0.003"));
    assert_eq!(by_length.hold(Some(b"")), Credits::ZERO);
}

#[test]
fn what_is_captured_follows_missing_and_over() {
    // missing, held, captured
    let table = [
        ("", "0.3", "0.0001"),
        (r#", "missing": "minimum""#, "0.00001", "0.00001"),
        (r#", "missing": "hold""#, "0.3", "0.3"),
        (r#", "missing": "release""#, "0.3", "0"),
    ];
    for (fields, held, captured) in table {
        assert_eq!(tokens(fields).without_report(credits(held)), credits(captured), "{fields}");
    }
    // over, cost, held, captured
    let table = [
        ("", "0.2", "0.3", "0.2"),
        ("", "0.4", "0.3", "0.3"),
        (r#", "over": "cap""#, "0.4", "0.3", "0.3"),
        (r#", "over": "debt""#, "0.4", "0.3", "0.4"),
        (r#", "over": "debt""#, "0.2", "0.3", "0.2"),
    ];
    for (fields, cost, held, captured) in table {
        assert_eq!(tokens(fields).captured(credits(cost), credits(held)), credits(captured), "{fields} {cost}");
    }
    assert!(tokens(r#", "over": "debt""#).may_exceed_hold() && !tokens("").may_exceed_hold());
}

#[test]
fn prices_are_stated_in_words() {
    assert_eq!(
        tokens("").to_string(),
        "0.0001 to 0.5 credits: input_tokens 0.00000025 each, output_tokens 0.000001 each"
    );
    let in_credits = usage_price(r#"{"max": 1, "report": {"header": "x-cost"}}"#);
    assert_eq!(in_credits.to_string(), "up to 1 credit, as each response reports");
    let with_debt = usage_price(r#"{"max": 1, "over": "debt", "units": {"b": "0.1"}, "report": {"bytes": "b"}}"#);
    assert_eq!(with_debt.to_string(), "up to 1 credit: b 0.1 each; a higher cost is charged in full");
}
