use serde_json::json;

use super::*;

const CATALOGUE: &str = r#"{"market": "M", "version": 1, "endpoints": [
    {"path": "/mpp/token/{token}/pools", "method": "GET", "metered": true,
     "params": [{"name": "token", "in": "path", "type": "string", "required": true}]},
    {"path": "/mpp/token/latest/pools", "method": "GET", "metered": true},
    {"path": "/mpp/block/{block}", "method": "GET", "metered": true, "credit_weight": 1,
     "params": [{"name": "block", "in": "path", "type": "integer"}, {"name": "page", "in": "query", "type": "integer"},
                {"name": "q", "in": "query", "type": "string"}, {"name": "most", "in": "query", "type": "number"},
                {"name": "meta", "in": "query", "type": "boolean"}]},
    {"path": "/mpp/back/{seconds}", "method": "GET", "metered": true,
     "params": [{"name": "seconds", "in": "path", "type": "integer", "required": true}],
     "billing_modifier": {"type": "lookback_multiplier", "param": "seconds", "overflow_multiplier": 8,
                          "tiers": [{"max_seconds": 60, "multiplier": 1}]}},
    {"path": "/mpp/stream", "method": "GET", "metered": true, "sse": true,
     "params": [{"name": "from", "in": "query", "type": "integer", "required": true}]},
    {"path": "/m/{model}", "method": "GET", "metered": true, "params": [{"name": "model", "in": "path", "type": "string"}]},
    {"path": "/m/{model}:run", "method": "GET", "metered": true, "encoded_slash": true,
     "params": [{"name": "model", "in": "path", "type": "string"},
                {"name": "include", "in": "query", "type": "integer", "array": true}]},
    {"path": "/mpp/own", "method": "GET", "metered": true, "sse": true,
     "params": [{"name": "max_events", "in": "query", "type": "integer"}]}]}"#;

fn ask(template: &str, arguments: Value) -> Result<ToolRequest, Box<ErrorBody>> {
    let catalogue = Catalogue::from_json(CATALOGUE).unwrap();
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    read(&catalogue, catalogue.by_template("GET", template).unwrap(), &arguments)
}

#[test]
fn values_are_encoded_and_mean_the_same_to_the_gateway() {
    const TOKEN: &str = "/mpp/token/{token}/pools";
    const BLOCK: &str = "/mpp/block/{block}";
    // route, arguments, target
    let table = [
        (TOKEN, json!({"token": "0xAb12"}), "/mpp/token/0xAb12/pools"),
        (TOKEN, json!({"token": "a b?c=d&e#f%2e"}), "/mpp/token/a%20b%3Fc%3Dd%26e%23f%252e/pools"),
        (TOKEN, json!({"token": "é…"}), "/mpp/token/%C3%A9%E2%80%A6/pools"),
        (TOKEN, json!({"token": "..."}), "/mpp/token/.../pools"),
        (TOKEN, json!({"token": "{token}"}), "/mpp/token/%7Btoken%7D/pools"),
        (BLOCK, json!({"block": 19_000_000}), "/mpp/block/19000000"),
        (BLOCK, json!({"block": "19000000"}), "/mpp/block/19000000"),
        (BLOCK, json!({"block": 19_000_000.0}), "/mpp/block/19000000"),
        (BLOCK, json!({"block": -7}), "/mpp/block/-7"),
        (BLOCK, json!({"block": i64::MAX}), "/mpp/block/9223372036854775807"),
        (BLOCK, json!({"block": 1, "page": null, "q": null}), "/mpp/block/1"),
        (BLOCK, json!({"q": "a+b &c", "page": 2, "block": 1}), "/mpp/block/1?page=2&q=a%2Bb%20%26c"),
        (BLOCK, json!({"block": 1, "q": "../../x", "meta": true}), "/mpp/block/1?q=..%2F..%2Fx&meta=true"),
        (BLOCK, json!({"block": 1, "most": 0.5, "meta": "false"}), "/mpp/block/1?most=0.5&meta=false"),
        ("/mpp/back/{seconds}", json!({"seconds": 61}), "/mpp/back/61"),
        ("/mpp/token/latest/pools", json!({}), "/mpp/token/latest/pools"),
        ("/m/{model}:run", json!({"model": "openai/x:free"}), "/m/openai%2Fx%3Afree:run"),
        ("/m/{model}:run", json!({"model": "x", "include": [2, "1"]}), "/m/x:run?include=2&include=1"),
        ("/m/{model}:run", json!({"model": "x", "include": []}), "/m/x:run"),
        ("/m/{model}:run", json!({"model": "x", "include": 3}), "/m/x:run?include=3"),
        ("/m/{model}", json!({"model": "x:free"}), "/m/x%3Afree"),
    ];
    let catalogue = Catalogue::from_json(CATALOGUE).unwrap();
    for (template, arguments, target) in table {
        let request = ask(template, arguments.clone()).unwrap_or_else(|error| panic!("{arguments}: {}", error.message));
        assert_eq!(request.target, target);
        let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
        let resolved = catalogue.resolve("GET", &catalogue.path(path).unwrap(), query).unwrap();
        assert_eq!(&*resolved.route.template, template, "{target}");
    }
}

#[test]
fn invalid_parameters_are_rejected_by_name() {
    const TOKEN: &str = "/mpp/token/{token}/pools";
    const BLOCK: &str = "/mpp/block/{block}";
    const SEGMENT: &str = "must be one path segment: no / or \\, and not . or ..";
    const TEXT: &str = "must be text, not empty and without control characters";
    const KNOWN: &str = "this tool has no such argument; it takes token, max_cost";
    const INTEGER: &str = "must be an integer, such as 42";
    // route, arguments, the name, the problem
    let table = [
        (TOKEN, json!({}), "token", "is required"),
        (TOKEN, json!({"token": null}), "token", TEXT),
        (TOKEN, json!({"token": ""}), "token", TEXT),
        (TOKEN, json!({"token": 5}), "token", TEXT),
        (TOKEN, json!({"token": ["a"]}), "token", TEXT),
        (TOKEN, json!({"token": "a\r\nb"}), "token", TEXT),
        (TOKEN, json!({"token": "\0"}), "token", TEXT),
        (TOKEN, json!({"token": ".."}), "token", SEGMENT),
        (TOKEN, json!({"token": "."}), "token", SEGMENT),
        (TOKEN, json!({"token": "../../credits"}), "token", SEGMENT),
        (TOKEN, json!({"token": "a\\b"}), "token", SEGMENT),
        (TOKEN, json!({"token": "a".repeat(2001)}), "token", "must be at most 2000 bytes long"),
        (TOKEN, json!({"token": "a", "address": "b"}), "address", KNOWN),
        (TOKEN, json!({"token": "a", "max_events": 1}), "max_events", KNOWN),
        ("/mpp/token/latest/pools", json!({"x": 1}), "x", "this tool has no such argument; it takes max_cost"),
        (BLOCK, json!({"block": "latest"}), "block", INTEGER),
        (BLOCK, json!({"block": 1.5}), "block", INTEGER),
        (BLOCK, json!({"block": 1e300}), "block", INTEGER),
        (BLOCK, json!({"block": 9_007_199_254_740_994.0}), "block", INTEGER),
        (BLOCK, json!({"block": u64::MAX}), "block", INTEGER),
        (BLOCK, json!({"block": "007"}), "block", INTEGER),
        (BLOCK, json!({"block": true}), "block", INTEGER),
        (BLOCK, json!({"block": 1, "meta": "yes"}), "meta", "must be true or false"),
        (BLOCK, json!({"block": 1, "meta": 1}), "meta", "must be true or false"),
        (BLOCK, json!({"block": 1, "most": true}), "most", "must be a number, such as 42 or 0.5"),
        ("/mpp/back/{seconds}", json!({"seconds": -1}), "seconds", "must be a number of seconds, zero or more"),
        ("/mpp/stream", json!({"max_events": 5}), "from", "is required"),
    ];
    for (template, arguments, name, problem) in table {
        let error = ask(template, arguments.clone()).expect_err("refused");
        assert_eq!(error.error, ErrorCode::InvalidParameter, "{arguments}");
        assert_eq!(error.fields.as_ref().unwrap().get(name).map(String::as_str), Some(problem), "{arguments}");
        assert!(error.message.contains("nothing was charged"), "{}", error.message);
    }
}

#[test]
fn value_that_forms_another_routes_path_calls_neither() {
    let error = ask("/mpp/token/{token}/pools", json!({"token": "latest"})).expect_err("refused");
    assert!(error.fields.unwrap()["path"].contains("another route"));
}

#[test]
fn all_problems_are_reported_at_once_with_long_names_cut() {
    let long = "n".repeat(1000);
    let error = ask("/mpp/block/{block}", json!({"page": "x", "unknown": 1, &long: 1})).expect_err("refused");
    let fields = error.fields.unwrap();
    assert_eq!(fields.keys().map(|name| name.len()).collect::<Vec<_>>(), [5, 64, 4, 7]);
}

#[test]
fn many_arguments_are_not_echoed() {
    let flood: JsonObject = (0..1000).map(|index| (format!("n{index}"), json!(1))).collect();
    let problems = |error: Box<ErrorBody>| error.fields.unwrap().len();
    assert_eq!(ask("/mpp/token/latest/pools", flood.clone().into()).map_err(problems), Err(PROBLEMS_MAX));
    assert_eq!(none(&flood).map_err(problems), Err(PROBLEMS_MAX));
}

#[test]
fn streams_are_bounded_by_an_argument_that_is_not_sent() {
    // arguments, events
    let table = [
        (json!({"from": 1}), Ok(5)),
        (json!({"from": 1, "max_events": null}), Ok(5)),
        (json!({"from": 1, "max_events": 1}), Ok(1)),
        (json!({"from": 1, "max_events": 50}), Ok(50)),
        (json!({"from": 1, "max_events": "7"}), Ok(7)),
        (json!({"from": 1, "max_events": 0}), Err(())),
        (json!({"from": 1, "max_events": 51}), Err(())),
        (json!({"from": 1, "max_events": -1}), Err(())),
        (json!({"from": 1, "max_events": 2.5}), Err(())),
        (json!({"from": 1, "max_events": "many"}), Err(())),
    ];
    for (arguments, expected) in table {
        match ask("/mpp/stream", arguments.clone()) {
            Ok(request) => {
                assert_eq!(Ok(request.max_events), expected, "{arguments}");
                assert_eq!(request.target, "/mpp/stream?from=1");
            }
            Err(error) => {
                assert_eq!(Err(()), expected, "{arguments}");
                assert_eq!(error.fields.unwrap()["max_events"], "must be an integer from 1 to 50");
            }
        }
    }
    let own = ask("/mpp/own", json!({"max_events": 500})).unwrap();
    assert_eq!((own.target.as_str(), own.max_events), ("/mpp/own?max_events=500", 5));
}

#[test]
fn a_parameter_of_the_route_is_no_bound_on_the_call() {
    let own = r#"{"market": "M", "version": 1, "endpoints": [{"path": "/own", "method": "GET", "metered": true,
        "params": [{"name": "max_cost", "in": "query", "type": "string"}]}]}"#;
    let catalogue = Catalogue::from_json(own).unwrap();
    let arguments = JsonObject::from_iter([("max_cost".to_owned(), json!("cheap"))]);
    let request = read(&catalogue, &catalogue.routes()[0], &arguments).unwrap();
    assert_eq!((request.target.as_str(), request.max_cost), ("/own?max_cost=cheap", None));
    let request = ask("/mpp/stream", json!({"from": 1, "max_cost": "0.0006944444"})).unwrap();
    assert_eq!((request.target.as_str(), request.max_cost.as_deref()), ("/mpp/stream?from=1", Some("0.0006944444")));
}

#[test]
fn tools_without_arguments_take_none() {
    assert!(none(&JsonObject::new()).is_ok());
    let Value::Object(some) = json!({"days": 3}) else { unreachable!() };
    assert_eq!(none(&some).unwrap_err().fields.unwrap()["days"], "this tool takes no arguments");
}

#[test]
fn a_value_cannot_become_another_routes_verb_or_an_unaccepted_slash() {
    // route, arguments, the argument that is refused
    let table = [
        ("/m/{model}", json!({"model": "x:run"}), "path"),
        ("/m/{model}", json!({"model": "a/b"}), "model"),
        ("/m/{model}:run", json!({"model": "a/../b"}), "path"),
        ("/m/{model}:run", json!({"model": "x:run"}), "path"),
        ("/m/{model}:run", json!({"model": "x", "include": [1, "x"]}), "include"),
        ("/m/{model}:run", json!({"model": ["x"]}), "model"),
    ];
    for (template, arguments, refused) in table {
        let fields = ask(template, arguments.clone()).unwrap_err().fields.unwrap();
        assert!(fields.contains_key(refused), "{arguments}: {fields:?}");
    }
}

#[test]
fn body_is_sent_as_json() {
    let routes = r#"{"market": "M", "version": 1, "endpoints": [
        {"path": "/any", "method": "POST", "metered": true},
        {"path": "/chat/{model}", "method": "POST", "metered": true,
         "params": [{"name": "model", "in": "path", "type": "string"}],
         "request": {"schema": {"type": "object", "required": ["q"], "properties": {"q": {"type": "string"}}}}}]}"#;
    let catalogue = Catalogue::from_json(routes).unwrap();
    let [any, chat] = [0, 1].map(|index| &catalogue.routes()[index]);
    let ask = |route: &Route, arguments: Value| read(&catalogue, route, arguments.as_object().unwrap());
    // route, arguments, body
    let sent = [
        (any, json!({}), None),
        (any, json!({"body": null}), None),
        (any, json!({"body": {}}), Some("{}")),
        (any, json!({"body": {"a": [1, 0.1, "\u{7}é"]}}), Some("{\"a\":[1,0.1,\"\\u0007é\"]}")),
        (chat, json!({"model": "m", "body": {"q": "x"}}), Some("{\"q\":\"x\"}")),
        // The gateway checks it against the schema.
        (chat, json!({"model": "m", "body": {"q": 1}}), Some("{\"q\":1}")),
        (chat, json!({"model": "m", "body": null}), Some("null")),
    ];
    for (route, arguments, body) in sent {
        assert_eq!(ask(route, arguments.clone()).unwrap().body.as_deref(), body, "{arguments}");
    }
    // route, arguments, name, problem
    let refused = [
        (any, json!({"body": [1]}), "body", "must be a JSON object"),
        (any, json!({"body": "{}"}), "body", "must be a JSON object"),
        (any, json!({"text": 1}), "text", "this tool has no such argument; it takes body, max_cost"),
        (chat, json!({"model": "m"}), "body", "is required"),
    ];
    for (route, arguments, name, problem) in refused {
        let fields = ask(route, arguments.clone()).unwrap_err().fields.unwrap();
        assert_eq!(fields.get(name).map(String::as_str), Some(problem), "{arguments}");
    }
    assert!(none(json!({"body": {}}).as_object().unwrap()).is_err());
}
