//! The catalogue's rules, on the default catalogue's shapes.

use super::*;

mod targets;

const CATALOGUE: &str = r#"{
  "market": "TEST", "version": 3, "x-note": "keys that start with x- are ignored",
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
fn unknown_paths_and_methods_are_distinguished() {
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
fn spelling_of_an_expensive_route_does_not_match_a_cheap_one() {
    let text = r#"{"market": "M", "version": 1, "endpoints": [
        {"path": "/v1/{document}", "method": "GET", "metered": true, "credit_weight": 1,
         "params": [{"name": "document", "in": "path", "type": "string"}]},
        {"path": "/v1/{document}/pages", "method": "GET", "metered": true, "credit_weight": 1,
         "params": [{"name": "document", "in": "path", "type": "string"}]},
        {"path": "/v1/export", "method": "POST", "metered": true, "credit_weight": 1000},
        {"path": "/v1/Stra%C3%9Fe", "method": "GET", "metered": true, "credit_weight": 1000}]}"#;
    let catalogue = Catalogue::from_json(text).unwrap();
    let find = |path: &str| {
        let path = RequestPath::parse(path).unwrap();
        catalogue.find("GET", &path).map(|route| route.template.to_string())
    };
    for path in [
        "/v1/EXPORT",
        "/v1/export.json",
        "/v1/export%3Bx=1",
        "/v1/export.",
        "/v1/export%20",
        "/v1/%2565xport",
        "/v1/%EF%BC%A5xport",
        "/v1/Export/pages",
        "/v1/export/pages",
        "/v1/STRASSE",
        "/v1/stra%C3%9Fe",
    ] {
        assert_eq!(find(path), Err(RouteRefusal::AmbiguousPath), "{path}");
    }
    assert_eq!(find("/v1/export"), Err(RouteRefusal::MethodNotAllowed(vec!["POST".to_owned()])));
    for path in ["/v1/exports", "/v1/report.json", "/v1/my-export", "/v1/a%2541"] {
        assert_eq!(find(path).as_deref(), Ok("/v1/{document}"), "{path}");
    }
    assert!(RequestPath::parse("/v1/export;x=1").is_err());
    for first in ["/V1/x", "/v1./x", "/v1%20/x"] {
        assert!(catalogue.covers(&RequestPath::parse(first).unwrap()), "{first}");
    }
    assert!(!catalogue.covers(&RequestPath::parse("/v2/x").unwrap()));
}

#[test]
fn price_in_credits_is_exact_and_replaces_the_weight() {
    let price = |fields: &str| {
        let text = format!(
            r#"{{"market":"M","version":1,"endpoints":[{{"path":"/x","method":"GET","metered":true,{fields}}}]}}"#
        );
        Catalogue::from_json(&text).map(|catalogue| catalogue.routes()[0].price(0).atoms()).map_err(|e| e.to_string())
    };
    assert_eq!(price(r#""price": "0.01""#), Ok(72_000_000));
    assert_eq!(price(r#""price": 0.01"#), Ok(72_000_000));
    assert_eq!(price(r#""price": "0""#), Ok(0));
    assert_eq!(price(r#""price": null"#), Ok(1_000_000));
    assert_eq!(price(r#""price": "568""#), Ok(568 * 7_200_000_000));
    // fields, a part of the message
    let table = [
        (r#""price": "0.01", "credit_weight": 72"#, "price and credit_weight"),
        (r#""price": "-1""#, "price: must be 0 to"),
        (r#""price": "569""#, "price: must be 0 to"),
        (r#""price": "0.00000000001""#, "too many decimal places"),
        (r#""price": "free""#, "price: free: not a decimal number"),
        (
            r#""price": "0.01", "sse": true, "billing_modifier": {"type": "stream_session", "credits_per_connection": 1}"#,
            "price does not apply",
        ),
    ];
    for (fields, part) in table {
        let error = price(fields).unwrap_err();
        assert!(error.contains(part) && error.contains("route GET /x"), "{fields}: {error}");
    }
}

#[test]
fn misspelt_and_misplaced_keys_are_refused_and_the_right_one_is_named() {
    let route =
        r#"{"path":"/x/{s}","method":"GET","metered":true,"params":[{"name":"s","in":"path","type":"integer"}]"#;
    let lookback = r#""billing_modifier":{"type":"lookback_multiplier","param":"s","overflow_multiplier":1"#;
    // the file, a part of the message
    let table = [
        (format!(r#"{{"market":"M","version":1,"endpoints":[{route},"credit_wieght":72}}]}}"#), "endpoints[0], route GET /x/{s}: unknown key credit_wieght; did you mean credit_weight?"),
        (format!(r#"{{"market":"M","version":1,"endpoints":[{route},"colour":1}}]}}"#), "unknown key colour; known keys are path, method"),
        (r#"{"market":"M","version":1,"endpoint":[]}"#.to_owned(), "unknown key endpoint; did you mean endpoints?"),
        (r#"{"market":"M","version":1,"endpoints":[{"paht":"/x","method":"GET","metered":true}]}"#.to_owned(), "endpoints[0]: unknown key paht; did you mean path?"),
        (r#"{"market":"M","version":1,"endpoints":[{"path":"/x","method":"GET","metered":true,"params":[{"name":"q","in":"query","type":"string","requierd":true}]}]}"#.to_owned(), "unknown key params[0].requierd; did you mean required?"),
        (format!(r#"{{"market":"M","version":1,"endpoints":[{route},{lookback},"tires":[]}}}}]}}"#), "unknown key billing_modifier.tires; did you mean tiers?"),
        (format!(r#"{{"market":"M","version":1,"endpoints":[{route},{lookback},"tiers":[{{"max_secs":1,"multiplier":1}}]}}}}]}}"#), "unknown key billing_modifier.tiers[0].max_secs; did you mean max_seconds?"),
        (format!(r#"{{"market":"M","version":1,"endpoints":[{route},{lookback},"credits_per_connection":1,"tiers":[]}}}}]}}"#), "unknown key billing_modifier.credits_per_connection"),
        (format!(r#"{{"market":"M","version":1,"endpoints":[{route},"credit_weight":1,"credit_weight":72}}]}}"#), "key credit_weight appears twice"),
        (format!(r#"{{"market":"M","version":1,"endpoints":[{route},"credit_weight":"72"}}]}}"#), "credit_weight: not a usable weight"),
        (format!(r#"{{"market":"M","version":1,"endpoints":[{route},"credit_weight":1001}}]}}"#), "credit_weight: not a usable weight"),
        (r#"{"market":"M","version":1}"#.to_owned(), "endpoints is missing"),
    ];
    for (text, part) in table {
        let error = Catalogue::from_json(&text).unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
    let extended =
        format!(r#"{{"$schema":"s","x-owner":"me","market":"M","version":1,"endpoints":[{route},"x-team":[1]}}]}}"#);
    assert!(Catalogue::from_json(&extended).is_ok());
    let newer = format!(r#"{{"market":"M","version":1,"endpoints":[{route},"not_invented_yet":72}}]}}"#);
    assert!(Catalogue::from_published_json(&newer).is_ok(), "another server may be newer");
}

#[test]
fn everything_below_streams_costs_a_session() {
    let catalogue = Catalogue::from_json(include_str!("../../../metering-sample/routes.json")).unwrap();
    // path, atoms
    let table = [
        ("mpp/stream/allTrades", Some(72_000_000)),
        ("mpp/stream/allTrades/0xabc", Some(72_000_000)),
        ("mpp/stream/unheardOf", Some(72_000_000)),
        ("mpp/stream", Some(72_000_000)),
        ("mpp/Stream/alltrades", Some(72_000_000)),
        ("mpp/streams", None),
        ("mpp/ethPrice", None),
        ("mpp", None),
        ("", None),
    ];
    for (path, atoms) in table {
        let segments: Vec<_> = path.split('/').filter(|segment| !segment.is_empty()).collect();
        assert_eq!(catalogue.session_price(&segments).map(Credits::atoms), atoms, "{path}");
    }
    // A stream among other routes has its own prefix, and nothing else does.
    let catalogue = Catalogue::from_json(CATALOGUE).unwrap();
    assert_eq!(catalogue.session_price(&["mpp", "stream", "x"]).map(Credits::atoms), Some(72_000_000));
    assert_eq!(catalogue.session_price(&["mpp", "search"]), None);
}

#[test]
fn nearest_route_is_suggested_for_a_typo() {
    let catalogue = Catalogue::from_json(CATALOGUE).unwrap();
    // path, suggested
    let table = [
        ("/mpp/ethprice", Some("/mpp/ethPrice")),
        ("/mpp/ethPrice/", Some("/mpp/ethPrice")),
        ("/mpp/ethPrcie/19000000", Some("/mpp/ethPrice/{block}")),
        ("/mpp/tokens/0xabc/pools", Some("/mpp/token/{token}/pools")),
        ("/mpp/unheardOf", None),
        ("/", None),
    ];
    for (path, suggested) in table {
        assert_eq!(catalogue.nearest_template(path), suggested, "{path}");
    }
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
        (r#""path":"/mpp/{rest*}""#, "{rest*}: a parameter matches one segment"),
        (r#""path":"/mpp/{*rest}","params":[{"name":"rest","in":"path","type":"string"}]"#, "matches one segment"),
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
        (
            r#""path":"/mpp/x","credit_weight":0.000001,"params":[{"name":"t","in":"query","type":"integer","required":true}],"billing_modifier":{"type":"lookback_multiplier","param":"t","overflow_multiplier":1,"tiers":[{"max_seconds":1,"multiplier":0.5}]}"#,
            "weight times multiplier must have at most six decimals",
        ),
        (
            r#""path":"/mpp/x","credit_weight":0.000001,"params":[{"name":"t","in":"query","type":"integer","required":true}],"billing_modifier":{"type":"lookback_multiplier","param":"t","overflow_multiplier":0.5,"tiers":[{"max_seconds":1,"multiplier":1}]}"#,
            "weight times multiplier must have at most six decimals",
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

#[test]
fn every_problem_is_reported_with_its_place() {
    let text = r#"{"market": "M", "verson": 1, "endpoints": [
        {"path": "/a/{id}", "method": "get", "metered": "yes", "credit_weight": -1, "colour": 1, "sze": true,
         "params": [{"name": "idd", "in": "path", "type": "integer"}]},
        5,
        {"path": "/b", "method": "GET", "metered": true},
        {"path": "/c", "method": "POST", "metered": true, "price": {"max": "0", "min": "x", "over": "all",
            "units": {"tokens": "1", "T": "1"}, "report": {"header": "a"}}},
        {"path": "/d", "method": "GET", "metered": true, "params": [
            {"name": "s", "in": "query", "type": "date"}, {"name": "t", "in": "body", "type": "string", "requierd": 1}],
         "billing_modifier": {"type": "lookback_multiplier", "param": "s", "tiers": [
            {"max_seconds": 1, "multiplier": 1}, {"max_secs": 1, "multiplier": "x"}]}},
        {"path": "/b", "method": "GET", "metered": false},
        {"path": "/e", "method": "GET", "metered": true, "response": {"typ": "object", "required": 1,
            "properties": {"a": {"type": "text"}}}, "example": {}}]}"#;
    let error = Catalogue::from_json(text).unwrap_err();
    let problems: Vec<String> = error.problems().iter().map(ToString::to_string).collect();
    // each problem's beginning, in the file's order
    let expected = [
        "unknown key verson; did you mean version?",
        "version is missing",
        "endpoints[0], route get /a/{id}: unknown key colour; known keys are",
        "endpoints[0], route get /a/{id}: unknown key sze; did you mean sse?",
        "endpoints[0], route get /a/{id}: the method must be an upper-case HTTP method",
        "endpoints[0], route get /a/{id}: path parameter id is not declared exactly once; did you mean idd?",
        "endpoints[0], route get /a/{id}: path parameter idd is not in the path",
        "endpoints[0], route get /a/{id}: credit_weight: not a usable weight",
        "endpoints[0], route get /a/{id}: metered: invalid type",
        "endpoints[1]: invalid type: integer `5`, expected an object",
        "endpoints[3], route POST /c: price.max: must be above 0",
        "endpoints[3], route POST /c: price.min: not a decimal number",
        "endpoints[3], route POST /c: price.units.T: a unit's name",
        "endpoints[3], route POST /c: price.over: must be one of cap, debt, not all",
        "endpoints[4], route GET /d: params[0].type: unknown variant `date`",
        "endpoints[4], route GET /d: unknown key params[1].requierd; did you mean required?",
        "endpoints[4], route GET /d: params[1].in: unknown variant `body`",
        "endpoints[4], route GET /d: lookback_multiplier needs overflow_multiplier",
        "endpoints[4], route GET /d: unknown key billing_modifier.tiers[1].max_secs; did you mean max_seconds?",
        "endpoints[4], route GET /d: billing_modifier.tiers[1].max_seconds is missing",
        "endpoints[4], route GET /d: billing_modifier.tiers[1].multiplier: not a usable multiplier",
        "endpoints[5], route GET /b: another route has the same method and path",
        "endpoints[6], route GET /e: unknown key response.typ; did you mean type?",
        "endpoints[6], route GET /e: response.required: invalid type",
        "endpoints[6], route GET /e: response.properties.a.type: must be one or a list of",
    ];
    for (found, start) in problems.iter().zip(expected) {
        assert!(found.starts_with(start), "{found} instead of {start}");
    }
    assert_eq!(problems.len(), expected.len(), "{problems:#?}");
    assert!(error.to_string().starts_with("the route catalogue has 25 problems:\n- unknown key verson;"), "{error}");
    let one = Catalogue::from_json("[").unwrap_err().to_string();
    assert!(one.starts_with("the route catalogue is not valid: EOF while parsing"), "{one}");
}

#[test]
fn settings_of_charges_are_refused_on_routes_that_are_not_metered() {
    for key in ["replay", "receipt"] {
        let read = |metered: bool| {
            let route = format!(r#"{{"path": "/x", "method": "GET", "metered": {metered}, "{key}": true}}"#);
            Catalogue::from_json(&format!(r#"{{"market": "M", "version": 1, "endpoints": [{route}]}}"#))
        };
        assert!(read(true).is_ok(), "{key}");
        let error = read(false).unwrap_err().to_string();
        assert!(error.contains(&format!("{key} has no effect on a route with metered false")), "{error}");
    }
}
