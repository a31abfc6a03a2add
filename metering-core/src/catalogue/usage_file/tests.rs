use crate::Catalogue;
use crate::catalogue::Pricing;
use crate::money::Credits;

fn catalogue(fields: &str) -> String {
    format!(r#"{{"market":"M","version":1,"endpoints":[{{"path":"/x","method":"POST",{fields}}}]}}"#)
}

fn read(price: &str) -> Result<Catalogue, String> {
    let text = catalogue(&format!(r#""metered": true, "price": {price}"#));
    Catalogue::from_json(&text).map_err(|error| error.to_string())
}

const HEADER: &str = r#""report": {"header": "x-cost"}"#;
const UNITS: &str = r#""max": "1", "units": {"input_tokens": "0.1"}"#;

#[test]
fn whole_price_is_read() {
    let price = r#"{
        "max": "0.5", "min": "0.0001", "x-note": 1,
        "units": {"input_tokens": "0.00000025", "output_tokens": 0.000001, "x-note": "free to use"},
        "report": {"json": {"input_tokens": "/usage/prompt_tokens", "output_tokens": "/usage/completion_tokens"}},
        "missing": "minimum", "over": "cap",
        "estimate": {"json": {"output_tokens": ["/max_completion_tokens", "/max_tokens"]}, "bytes": "input_tokens",
            "times": "/n"}}"#;
    let catalogue = read(price).unwrap();
    let route = &catalogue.routes()[0];
    let price = route.usage_price().unwrap();
    assert_eq!((price.max(), price.min()), ("0.5".parse().unwrap(), "0.0001".parse().unwrap()));
    let units: Vec<_> = price.units().map(|(unit, price)| format!("{unit} {price}")).collect();
    assert_eq!(units, ["input_tokens 0.00000025", "output_tokens 0.000001"]);
    assert_eq!(route.price(0), price.max(), "the most that is held");
    assert!(price.report().needs_body() && !price.report().is_in_credits());
    assert_eq!(price.report().header_names().count(), 0);
}

#[test]
fn header_names_are_lower_case() {
    let names = |report: &str| {
        let catalogue = read(&format!("{{{UNITS}, {report}}}")).unwrap();
        let report = catalogue.routes()[0].usage_price().unwrap().report();
        (report.header_names().map(str::to_owned).collect::<Vec<_>>(), report.needs_body())
    };
    assert_eq!(names(r#""report": {"header": {"input_tokens": "X-Input"}}"#), (vec!["x-input".to_owned()], false));
    assert_eq!(names(r#""report": {"bytes": "input_tokens"}"#), (vec![], true));
}

#[test]
fn mistakes_are_named() {
    let many: Vec<_> = (0..17).map(|number| format!(r#""u{number}": "1""#)).collect();
    let long_unit = format!(r#"{{"max": "1", "units": {{"a{}": "1"}}, {HEADER}}}"#, "b".repeat(64));
    // price, a part of the message
    let table = [
        (format!("{{{HEADER}}}"), "price.max is missing"),
        (format!(r#"{{"max": "0", {HEADER}}}"#), "price.max: must be above 0 and at most 568.8888888889, not 0"),
        (format!(r#"{{"max": "569", {HEADER}}}"#), "price.max: must be above 0 and at most"),
        (format!(r#"{{"max": "free", {HEADER}}}"#), "price.max: not a decimal number"),
        (format!(r#"{{"max": "0.0000000001", {HEADER}}}"#), "price.max: too many decimal places"),
        (format!(r#"{{"max": true, {HEADER}}}"#), "price.max: not a decimal number"),
        (format!(r#"{{"max": "1", "min": "2", {HEADER}}}"#), "price.min: must be 0 to max, 1, not 2"),
        (format!(r#"{{"max": "1", "min": "-1", {HEADER}}}"#), "price.min: must be 0 to max"),
        (format!(r#"{{"max": "1", "mim": "0", {HEADER}}}"#), "unknown key price.mim; did you mean min?"),
        (format!(r#"{{"max": "1", "max": "2", {HEADER}}}"#), "price.key max appears twice"),
        (r#"{"max": "1"}"#.to_owned(), "price.report is missing"),
        (r#"{"max": "1", "report": {}}"#.to_owned(), "price.report: set exactly one of header, json and bytes"),
        (r#"{"max": "1", "report": {"header": "a", "json": "/b"}}"#.to_owned(), "price.report: set exactly one of"),
        (
            r#"{"max": "1", "report": {"heder": "a"}}"#.to_owned(),
            "unknown key price.report.heder; did you mean header?",
        ),
        (
            r#"{"max": "1", "report": {"header": "x cost"}}"#.to_owned(),
            r#"price.report.header: "x cost" is not the name"#,
        ),
        (r#"{"max": "1", "report": {"header": ""}}"#.to_owned(), r#"price.report.header: "" is not the name"#),
        (r#"{"max": "1", "report": {"header": 5}}"#.to_owned(), "price.report.header: invalid type"),
        (
            r#"{"max": "1", "report": {"json": "cost"}}"#.to_owned(),
            "price.report.json: cost: a JSON pointer begins with /",
        ),
        (r#"{"max": "1", "report": {"json": "/a~2"}}"#.to_owned(), "write ~ as ~0"),
        (r#"{"max": "1", "report": {"json": {}}}"#.to_owned(), "price.report.json: must have at least one unit"),
        (
            r#"{"max": "1", "report": {"bytes": "bytes"}}"#.to_owned(),
            "price.report.bytes: unit bytes has no price; add its price to units",
        ),
        (format!(r#"{{{UNITS}, {HEADER}}}"#), "price.units: has no effect, because the report is in credits"),
        (r#"{"max": "1", "units": {}, "report": {"header": "a"}}"#.to_owned(), "price.units: must have 1 to 16 units"),
        (
            format!(r#"{{"max": "1", "units": {{{}}}, {HEADER}}}"#, many.join(",")),
            "price.units: must have 1 to 16 units",
        ),
        (long_unit, "a unit's name has 1 to 64 characters"),
        (format!(r#"{{"max": "1", "units": {{"Tokens": "1"}}, {HEADER}}}"#), "price.units.Tokens: a unit's name"),
        (format!(r#"{{"max": "1", "units": {{"1a": "1"}}, {HEADER}}}"#), "price.units.1a: a unit's name"),
        (format!(r#"{{"max": "1", "units": {{"": "1"}}, {HEADER}}}"#), "price.units.: a unit's name"),
        (format!(r#"{{"max": "1", "units": {{"a": "-1"}}, {HEADER}}}"#), "price.units.a: out of range; write credits"),
        (
            format!(r#"{{{UNITS}, "report": {{"json": {{"inptu_tokens": "/a"}}}}}}"#),
            "price.report.json.inptu_tokens: unit inptu_tokens has no price; did you mean input_tokens?",
        ),
        (
            r#"{"max": "1", "units": {"a": "1", "b": "1"}, "report": {"json": {"a": "/a"}}}"#.to_owned(),
            "price.report: unit b is priced but not reported",
        ),
        (
            r#"{"max": "1", "units": {"a": "1", "b": "1"}, "report": {"bytes": "a"}}"#.to_owned(),
            "price.report: unit b is priced but not reported",
        ),
        (
            format!(r#"{{"max": "1", {HEADER}, "missing": "none"}}"#),
            "price.missing: must be one of hold, minimum, release, not none",
        ),
        (format!(r#"{{"max": "1", {HEADER}, "over": "all"}}"#), "price.over: must be one of cap, debt, not all"),
        (
            format!(r#"{{"max": "1", {HEADER}, "estimate": {{}}}}"#),
            "price.estimate: must estimate units by json or bytes",
        ),
        (
            format!(r#"{{"max": "1", {HEADER}, "estimate": {{"bytes": "a"}}}}"#),
            "price.estimate.bytes: unit a has no price",
        ),
        (
            format!(r#"{{{UNITS}, "report": {{"json": {{"input_tokens": {{"minus": ["/a"]}}}}}}}}"#),
            "price.report.json.input_tokens.plus is missing",
        ),
        (
            format!(r#"{{{UNITS}, "report": {{"json": {{"input_tokens": {{"max": ["/a"], "plus": ["/b"]}}}}}}}}"#),
            "price.report.json.input_tokens: max must be the only member",
        ),
        (
            format!(r#"{{{UNITS}, "report": {{"json": {{"input_tokens": {{"plus": ["a"]}}}}}}}}"#),
            "price.report.json.input_tokens.plus: a: a JSON pointer begins with /",
        ),
        (
            format!(r#"{{{UNITS}, "report": {{"json": {{"input_tokens": {{"plsu": ["/a"]}}}}}}}}"#),
            "unknown key price.report.json.input_tokens.plsu; did you mean plus?",
        ),
        (
            format!(r#"{{{UNITS}, "report": {{"json": {{"input_tokens": "/a"}}, "combine": "min"}}}}"#),
            "price.report.combine: must be one of max, last, sum, not min",
        ),
        (
            format!(r#"{{"max": "1", {HEADER}, "failed": "/error"}}"#),
            "price.failed: has no effect, because the report is not in json",
        ),
        (
            format!(r#"{{{UNITS}, "report": {{"json": {{"input_tokens": "/a"}}}}, "delivered": {{"output": "/b"}}}}"#),
            "price.delivered.output: unit output has no price",
        ),
        (
            format!(r#"{{{UNITS}, "report": {{"json": {{"input_tokens": "/a"}}}}, "failed": ["b"]}}"#),
            "price.failed: b: a JSON pointer begins with /",
        ),
        (
            format!(
                r#"{{{UNITS}, "report": {{"bytes": "input_tokens"}}, "estimate": {{"json": {{"input_tokens": []}}}}}}"#
            ),
            "price.estimate.json.input_tokens: must have at least one JSON pointer",
        ),
        (
            format!(
                r#"{{{UNITS}, "report": {{"bytes": "input_tokens"}}, "estimate": {{"json": {{"input_tokens": ["n"]}}}}}}"#
            ),
            "price.estimate.json.input_tokens: n: a JSON pointer begins with /",
        ),
        (
            format!(
                r#"{{{UNITS}, "report": {{"bytes": "input_tokens"}},
                    "estimate": {{"json": {{"input_tokens": "/n"}}, "bytes": "input_tokens"}}}}"#
            ),
            "price.estimate: unit input_tokens is estimated twice",
        ),
        (
            format!(
                r#"{{{UNITS}, "report": {{"bytes": "input_tokens"}}, "estimate": {{"bytes": "input_tokens", "times": "n"}}}}"#
            ),
            "price.estimate.times: n: a JSON pointer begins with /",
        ),
    ];
    for (price, part) in table {
        let error = read(&price).unwrap_err();
        assert!(error.contains(part) && error.contains("route POST /x"), "{price}: {error}");
    }
}

#[test]
fn fields_without_effect_are_refused() {
    let price = format!(r#""price": {{"max": "1", {HEADER}}}"#);
    // fields, a part of the message
    let table = [
        (
            format!(r#""metered": true, "credit_weight": 1, {price}"#),
            "credit_weight does not apply to a price by usage",
        ),
        (
            format!(
                r#""metered": true, "billing_modifier": {{"type": "stream_session", "credits_per_connection": 1}}, {price}"#
            ),
            "billing_modifier does not apply to a price by usage",
        ),
        (format!(r#""metered": false, {price}"#), "a price by usage has no effect on a route with metered false"),
    ];
    for (fields, part) in table {
        let text = catalogue(&fields);
        let error = Catalogue::from_json(&text).unwrap_err().to_string();
        assert!(error.contains(part), "{fields}: {error}");
        assert!(Catalogue::from_published_json(&text).is_ok(), "{fields}");
    }
    let stream = format!(r#""metered": true, "sse": true, {price}"#);
    assert!(Catalogue::from_json(&catalogue(&stream)).is_ok());
}

#[test]
fn newer_prices_of_other_servers_are_read_as_far_as_possible() {
    // price, its text; none when it is unknown
    let table = [
        (format!(r#"{{"max": "1", {HEADER}, "newer": 1}}"#), Some("up to 1 credit, as each response reports")),
        (format!(r#"{{"max": "1", {HEADER}, "over": "newer"}}"#), Some("up to 1 credit, as each response reports")),
        (format!(r#"{{"max": "1", {HEADER}, "missing": 5}}"#), Some("up to 1 credit, as each response reports")),
        (format!(r#"{{{UNITS}, "report": {{"newer": 1}}}}"#), Some("up to 1 credit: input_tokens 0.1 each")),
        (format!(r#"{{{UNITS}, "report": 5, "estimate": 5}}"#), Some("up to 1 credit: input_tokens 0.1 each")),
        (format!(r#"{{"max": {{"eur": 1}}, {HEADER}}}"#), None),
        (format!(r#"{{{HEADER}}}"#), None),
        (format!(r#"{{"max": "1", "units": "newer", {HEADER}}}"#), None),
    ];
    for (price, shown) in table {
        let text = catalogue(&format!(r#""metered": true, "price": {price}"#));
        let catalogue = Catalogue::from_published_json(&text).unwrap();
        let route = &catalogue.routes()[0];
        assert_eq!(route.usage_price().map(ToString::to_string).as_deref(), shown, "{price}");
        if shown.is_none() {
            assert_eq!(route.pricing, Pricing::Unknown);
            assert_eq!(route.price(0), Credits::from_atoms(4_096_000_000_000), "the highest price");
        }
        assert!(Catalogue::from_json(&text).is_err(), "{price}");
    }
}
