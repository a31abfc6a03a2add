use std::sync::Arc;

use super::*;
use crate::Catalogue;
use crate::catalogue::{Counts, RequestPath};

fn catalogue(route: &str) -> Result<Catalogue, String> {
    let text = format!(
        r#"{{"market": "M", "version": 1, "upstream": [["a", "b"], "c"], "endpoints": [
            {{"method": "POST", "metered": true, {route}}}]}}"#
    );
    Catalogue::from_json(&text).map_err(|error| error.to_string())
}

/// A route whose models have these settings.
fn by_model(models: &str) -> Result<Catalogue, String> {
    catalogue(&format!(
        r#""path": "/chat", "price": {{"max": "1", "model": {{"json": "/model"}}, "models": {{{models}}},
            "report": {{"json": {{"in": "/in", "out": "/out"}}}}, "estimate": {{"json": {{"out": "/n"}}, "bytes": "in"}}}}"#
    ))
}

const UNITS: &str = r#""units": {"in": "0.001", "out": "0.01"}"#;

fn price_of(catalogue: &Catalogue, body: &str) -> Arc<UsagePrice> {
    let path = RequestPath::parse("/chat").unwrap();
    catalogue.routes()[0].usage_price_of(&path, Some(body.as_bytes())).unwrap().unwrap()
}

#[test]
fn body_has_the_upstreams_name_and_else_every_byte_of_the_clients() {
    let catalogue = by_model(&format!(
        r#""small": {{{UNITS}, "upstreams": {{"a": {{"model": "vendor/\"small\""}}}}}},
           "big-*": {{{UNITS}, "upstreams": {{"b": {{"model": "vendor/*"}}, "c": {{"model": "one"}}}}}}"#
    ));
    let catalogue = catalogue.unwrap();
    // body, upstream, the body that it gets; None for the client's
    let table = [
        (r#"{"model": "small"}"#, "a", Some(r#"{"model": "vendor/\"small\""}"#)),
        (r#"{"model": "small"}"#, "b", None),
        (
            " {\"n\" :1.0e0,\t\"model\":\n\"sm\\u0061ll\" , \"é\": [\"model\"]} ",
            "a",
            Some(" {\"n\" :1.0e0,\t\"model\":\n\"vendor/\\\"small\\\"\" , \"é\": [\"model\"]} "),
        ),
        (r#"{"model": "big-2:x"}"#, "b", Some(r#"{"model": "vendor/2:x"}"#)),
        (r#"{"model": "big-2:x"}"#, "c", Some(r#"{"model": "one"}"#)),
        (r#"{"model": "big-2:x"}"#, "a", None),
    ];
    for (body, upstream, expected) in table {
        let renamed = price_of(&catalogue, body).renamed(upstream, "/chat", "/chat", body.as_bytes());
        assert_eq!(renamed, expected.map(|body| Renamed::Body(body.into())), "{body} at {upstream}");
    }
}

#[test]
fn path_has_the_upstreams_name() {
    let catalogue = catalogue(
        r#""path": "/v1/{model}:run", "params": [{"name": "model", "in": "path", "type": "string"}],
           "price": {"max": "1", "model": {"param": "model"}, "report": {"json": {"t": "/t"}}, "models": {
               "small": {"units": {"t": "0.1"}, "upstreams": {"a": {"model": "small-001"}}}}}"#,
    );
    let catalogue = catalogue.unwrap();
    let (route, path) = (&catalogue.routes()[0], "/v1/small:run");
    let price = route.usage_price_of(&RequestPath::parse(path).unwrap(), None).unwrap().unwrap();
    let renamed = |upstream| price.renamed(upstream, &route.template, path, b"{}");
    assert_eq!((renamed("a"), renamed("b")), (Some(Renamed::Path("/v1/small-001:run".to_owned())), None));
}

#[test]
fn hold_covers_the_dearest_upstream_and_the_cost_is_that_of_the_one_that_served() {
    let catalogue = by_model(&format!(
        r#""small": {{{UNITS}, "min": "0.2", "upstreams": {{
            "b": {{"max": "3", "units": {{"in": "0.002", "out": "0.1"}}}}, "c": {{"max": "0.1"}}}}}}"#
    ));
    let catalogue = catalogue.unwrap();
    let route = catalogue.routes()[0].usage_price().unwrap();
    assert_eq!(route.max(), "3".parse().unwrap(), "the most that any request costs");
    let dearest: Vec<String> = route.units().map(|(_, price)| price.to_string()).collect();
    assert_eq!(dearest, ["0.002", "0.1"]);
    let body = r#"{"model": "small", "n": 20}"#;
    let price = price_of(&catalogue, body);
    // 27 bytes and 20 units of output: 0.227 at a, 2.054 at b.
    assert_eq!(price.hold(Some(body.as_bytes())), "2.054".parse().unwrap());
    assert_eq!(price.hold(None), "3".parse().unwrap());
    let counts: Counts = serde_json::from_str(r#"{"in": 10, "out": 20}"#).unwrap();
    for (upstream, cost) in [("a", "0.21"), ("b", "2.02"), ("c", "0.21"), ("unknown", "0.21")] {
        assert_eq!(price.at(upstream).cost(&counts).unwrap(), cost.parse().unwrap(), "{upstream}");
    }
    assert_eq!(price.at("c").hold(None), "0.1".parse().unwrap(), "its minimum is not above its maximum");
    assert!(route.to_string().contains("small in 0.001 each, out 0.01 each, or at b in 0.002 each, out 0.1 each"));
}

#[test]
fn mistakes_are_named() {
    let small = |upstreams: &str| by_model(&format!(r#""small": {{{UNITS}, "upstreams": {upstreams}}}"#));
    let all = |upstreams: &str| by_model(&format!(r#""s-*": {{{UNITS}, "upstreams": {upstreams}}}"#));
    // the catalogue, its problem
    let table = [
        (small(r#"{"d": {"model": "x"}}"#), "d, which is not an upstream of this route"),
        (small(r#"{"a": {}}"#), "upstreams.a: is empty; add model, or prices"),
        (small(r#"{"a": {"model": ""}}"#), "upstreams.a.model: must be a name of 1 to 256 bytes"),
        (small(r#"{"a": {"model": "x*"}}"#), "upstreams.a.model: must be a whole name, because small is one"),
        (all(r#"{"a": {"model": "x*y"}}"#), "upstreams.a.model: must be a name"),
        (small(r#"{"a": {"units": {"in": "1"}}}"#), "upstreams.a: has no price for unit out"),
        (small(r#"{"a": {"units": {"in": "1", "out": "1", "more": "1"}}}"#), "unit more has no price"),
        (small(r#"{"a": {"price": "1"}}"#), "unknown key price.models.small.upstreams.a.price"),
        (
            catalogue(
                r#""path": "/x", "price": {"max": "1", "units": {"t": "1"}, "report": {"json": {"t": "/t"}},
                   "upstreams": {"a": {"model": "x"}}}"#,
            ),
            "upstreams.a.model: has no effect, because this price is not by model",
        ),
    ];
    for (catalogue, problem) in table {
        let error = catalogue.unwrap_err();
        assert!(error.contains(problem), "{problem}: {error}");
    }
}

#[test]
fn presets_fill_in_the_prices_of_upstreams() {
    let catalogue = catalogue(
        r#""path": "/v1/chat/completions", "price": {"preset": "openai-chat", "models": {"m": {"max": "1",
            "per_million": {"input_tokens": "1", "cached_input_tokens": "0.1", "output_tokens": "10"},
            "upstreams": {"b": {"model": "vendor/m", "per_million": {"input_tokens": "2", "output_tokens": "20"}}}}}}"#,
    );
    let catalogue = catalogue.unwrap();
    let price = price_of(&catalogue, r#"{"model": "m"}"#);
    let at_b = price.at("b");
    let cached = at_b.units().find(|(unit, _)| *unit == "cached_input_tokens").map(|(_, price)| price.to_string());
    assert_eq!(cached.as_deref(), Some("0.000002"), "that of its parent unit at the same upstream");
    assert_eq!(Catalogue::from_json(catalogue.json()).unwrap().routes(), catalogue.routes());
}
