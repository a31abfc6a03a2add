//! The catalogue's rules, on the default catalogue's shapes.

use super::*;

const CATALOGUE: &str = r#"{
  "market": "TEST", "version": 3, "note": "unknown fields are ignored",
  "endpoints": [
    {"path": "/mpp/token/{token}/pools", "method": "GET", "metered": true, "sse": false, "description": "pools",
     "params": [{"name": "token", "in": "path", "type": "string", "required": true}], "credit_weight": 1},
    {"path": "/mpp/token/price/{token}/{pool}", "method": "GET", "metered": true, "sse": false, "description": "price",
     "params": [{"name": "token", "in": "path", "type": "string", "required": true},
                {"name": "pool", "in": "path", "type": "string", "required": true}], "credit_weight": 5.5},
    {"path": "/mpp/ethPrice", "method": "GET", "metered": true, "credit_weight": 5},
    {"path": "/mpp/ethPrice", "method": "POST", "metered": true, "credit_weight": 6},
    {"path": "/mpp/ethPrice/{block}", "method": "GET", "metered": true,
     "params": [{"name": "block", "in": "path", "type": "integer", "required": true}], "credit_weight": 10},
    {"path": "/mpp/series/{interval}", "method": "GET", "metered": true,
     "params": [{"name": "interval", "in": "path", "type": "integer", "required": true}], "credit_weight": 5,
     "billing_modifier": {"type": "lookback_multiplier", "param": "interval",
       "tiers": [{"max_seconds": 600, "multiplier": 1}, {"max_seconds": 1800, "multiplier": 2}],
       "overflow_multiplier": 2048}},
    {"path": "/mpp/stream", "method": "GET", "metered": true, "sse": true,
     "params": [{"name": "from_epoch", "in": "query", "type": "integer", "required": false}], "credit_weight": 1,
     "billing_modifier": {"type": "stream_session", "credits_per_connection": 0.01}},
    {"path": "/mpp/search", "method": "GET", "metered": true,
     "params": [{"name": "q", "in": "query", "type": "string", "required": true},
                {"name": "deep", "in": "query", "type": "boolean", "required": false}], "credit_weight": 1}
  ]}"#;

fn resolve(method: &str, target: &str) -> Result<(String, i64, Option<String>), RouteRefusal> {
    let catalogue = Catalogue::from_json(CATALOGUE).unwrap();
    let (path, query) = match target.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (target, None),
    };
    let resolved = catalogue.resolve(method, &RequestPath::parse(path).unwrap(), query)?;
    Ok((resolved.route.template.to_string(), resolved.price.atoms(), resolved.query))
}

#[test]
fn requests_find_their_route_and_price() {
    // target, template, atoms
    let table = [
        ("/mpp/token/0xabc/pools", "/mpp/token/{token}/pools", 1_000_000),
        ("/mpp/token/price/0xabc/0xdef", "/mpp/token/price/{token}/{pool}", 5_500_000),
        // "price" is a token here: the literal leads nowhere, so the parameter is tried.
        ("/mpp/token/price/pools", "/mpp/token/{token}/pools", 1_000_000),
        ("/mpp/ethPrice", "/mpp/ethPrice", 5_000_000),
        ("/mpp/ethPrice/19000000", "/mpp/ethPrice/{block}", 10_000_000),
        ("/mpp/%65thPrice", "/mpp/ethPrice", 5_000_000),
        ("/mpp/series/600", "/mpp/series/{interval}", 5_000_000),
        ("/mpp/series/601", "/mpp/series/{interval}", 10_000_000),
        ("/mpp/series/9000000000", "/mpp/series/{interval}", 10_240_000_000),
        ("/mpp/stream", "/mpp/stream", 72_000_000),
        ("/mpp/stream?from_epoch=5", "/mpp/stream", 72_000_000),
    ];
    for (target, template, atoms) in table {
        let (found, price, _) = resolve("GET", target).unwrap_or_else(|refusal| panic!("{target}: {refusal:?}"));
        assert_eq!((found.as_str(), price), (template, atoms), "{target}");
    }
    assert_eq!(resolve("POST", "/mpp/ethPrice").unwrap().1, 6_000_000);
}

#[test]
fn unknown_paths_and_methods_are_told_apart() {
    for target in
        ["/mpp/ethprice", "/mpp/ethPrice/", "/mpp//ethPrice", "/mpp", "/", "/mpp/ethPrice/1/2", "/mpp/token//pools"]
    {
        assert_eq!(resolve("GET", target), Err(RouteRefusal::UnknownRoute), "{target}");
    }
    let allowed = vec!["GET".to_owned(), "POST".to_owned()];
    assert_eq!(resolve("DELETE", "/mpp/ethPrice"), Err(RouteRefusal::MethodNotAllowed(allowed)));
    assert_eq!(resolve("get", "/mpp/stream"), Err(RouteRefusal::MethodNotAllowed(vec!["GET".to_owned()])));
}

#[test]
fn parameters_that_do_not_fit_are_named() {
    // target, the parameter named
    let table = [
        ("/mpp/ethPrice/latest", "block"),
        ("/mpp/ethPrice/1.5", "block"),
        ("/mpp/ethPrice/99999999999999999999", "block"),
        ("/mpp/ethPrice/1?from_epoch=5", "from_epoch"),
        ("/mpp/ethPrice?x", "x"),
        ("/mpp/series/-5", "interval"),
        ("/mpp/stream?from_epoch=x", "from_epoch"),
        ("/mpp/stream?from_epoch=1&from_epoch=2", "from_epoch"),
        ("/mpp/stream?from_epoch=", "from_epoch"),
        ("/mpp/stream?from_epoch=%zz", "query"),
        ("/mpp/search", "q"),
        ("/mpp/search?q=", "q"),
        ("/mpp/search?q=a&deep=maybe", "deep"),
        ("/mpp/search?q=a&Q=b", "Q"),
    ];
    for (target, name) in table {
        match resolve("GET", target) {
            Err(RouteRefusal::InvalidParameters(problems)) => {
                assert!(problems.contains_key(name), "{target}: {problems:?}");
            }
            other => panic!("{target}: {other:?}"),
        }
    }
}

#[test]
fn the_forwarded_query_is_in_normal_form() {
    let (.., query) = resolve("GET", "/mpp/search?q=a%2fb+c&&deep=TRUE").unwrap();
    assert_eq!(query.as_deref(), Some("q=a%2Fb%20c&deep=TRUE"));
    assert_eq!(resolve("GET", "/mpp/ethPrice?").unwrap().2, None);
}

#[test]
fn broken_catalogues_are_refused_by_route() {
    let route = |fields: &str| {
        format!(r#"{{"market":"M","version":1,"endpoints":[{{"method":"GET","metered":true,{fields}}}]}}"#)
    };
    // the endpoint's fields, a part of the message
    let table = [
        (r#""path":"mpp/x""#, "normal form"),
        (r#""path":"/mpp/%41""#, "normal form"),
        (r#""path":"/mpp/../x""#, "segments"),
        (r#""path":"/mpp//x""#, "empty segment"),
        (r#""path":"/mpp/{id}""#, "not declared"),
        (r#""path":"/mpp/x{id}","params":[{"name":"id","in":"path","type":"integer"}]"#, "mixes"),
        (r#""path":"/mpp/x","params":[{"name":"id","in":"path","type":"integer"}]"#, "not in the path"),
        (r#""path":"/mpp/x","params":[{"name":"id","in":"header","type":"integer"}]"#, "unknown variant"),
        (r#""path":"/mpp/x","params":[{"name":"id","in":"query","type":"date"}]"#, "unknown variant"),
        (r#""path":"/mpp/x","credit_weight":-1"#, "weight"),
        (r#""path":"/mpp/x","credit_weight":0.0000001"#, "weight"),
        (r#""path":"/mpp/x","billing_modifier":{"type":"stream_session"}"#, "credits_per_connection"),
        (r#""path":"/mpp/x","billing_modifier":{"type":"surge"}"#, "unknown variant"),
        (
            r#""path":"/mpp/x","billing_modifier":{"type":"lookback_multiplier","param":"t","overflow_multiplier":1,"tiers":[]}"#,
            "tiers",
        ),
        (
            r#""path":"/mpp/x","billing_modifier":{"type":"lookback_multiplier","param":"t","overflow_multiplier":1,"tiers":[{"max_seconds":1,"multiplier":1}]}"#,
            "lookback parameter t",
        ),
    ];
    for (fields, part) in table {
        let error = Catalogue::from_json(&route(fields)).unwrap_err().to_string();
        assert!(error.contains(part), "{fields}: {error}");
    }
    let twice =
        r#"{"path":"/mpp/{a}","method":"GET","metered":true,"params":[{"name":"a","in":"path","type":"string"}]}"#;
    let text = format!(
        r#"{{"market":"M","version":1,"endpoints":[{twice},{}]}}"#,
        twice.replace("\"a\"", "\"b\"").replace("{a}", "{b}")
    );
    assert!(Catalogue::from_json(&text).unwrap_err().to_string().contains("same method and path"));
}
