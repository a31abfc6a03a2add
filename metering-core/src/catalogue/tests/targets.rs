//! Templates with verbs, encoded slashes, and queries with undeclared or repeated parameters.

use super::*;

const VERBS: &str = r#"{"market": "M", "version": 1, "endpoints": [
    {"path": "/v1beta/models/{model}", "method": "GET", "metered": true, "price": "1",
     "params": [{"name": "model", "in": "path", "type": "string"}]},
    {"path": "/v1beta/models/{model}:generateContent", "method": "POST", "metered": true, "price": "100",
     "params": [{"name": "model", "in": "path", "type": "string"}]},
    {"path": "/v1beta/models/{model}:countTokens", "method": "POST", "metered": false,
     "params": [{"name": "model", "in": "path", "type": "string"}]},
    {"path": "/v1beta/models/list", "method": "GET", "metered": true, "price": "2"},
    {"path": "/v1/jobs/{id}:cancel", "method": "POST", "metered": true, "price": "3",
     "params": [{"name": "id", "in": "path", "type": "integer"}]}]}"#;

fn find(catalogue: &Catalogue, method: &str, path: &str) -> Result<String, String> {
    let path = catalogue.path(path).map_err(|error| format!("{error:?}"))?;
    let resolved = catalogue.resolve(method, &path, None).map_err(|refusal| format!("{refusal:?}"))?;
    Ok(resolved.route.template.to_string())
}

#[test]
fn a_verb_has_a_price_of_its_own_in_one_spelling() {
    let catalogue = Catalogue::from_json(VERBS).unwrap();
    let (model, generate, count) = (
        Ok("/v1beta/models/{model}"),
        Ok("/v1beta/models/{model}:generateContent"),
        Ok("/v1beta/models/{model}:countTokens"),
    );
    let (ambiguous, others) = (Err("AmbiguousPath"), Err("MethodNotAllowed([\"POST\"])"));
    // method, the last segment, template or refusal
    let table = [
        ("POST", "gemini-2.5-flash:generateContent", generate),
        ("POST", "gemini-2.5-flash:countTokens", count),
        ("POST", "gemini-2.5-flash:generate%43ontent", generate),
        // The last colon separates: names of models have some.
        ("POST", "x:free:generateContent", generate),
        ("POST", "generateContent:countTokens", count),
        ("GET", "gemini-2.5-flash", model),
        ("GET", "x:free", model),
        ("GET", "list", Ok("/v1beta/models/list")),
        // Another spelling of a verb is not a model.
        ("GET", "x%3AgenerateContent", ambiguous),
        ("POST", "x%3AgenerateContent", ambiguous),
        ("GET", "x:GENERATECONTENT", ambiguous),
        ("GET", "x:generateContent.json", ambiguous),
        ("GET", "x:generateContent%20", ambiguous),
        ("GET", "x%253AgenerateContent", ambiguous),
        ("GET", "x%EF%BC%9AgenerateContent", ambiguous),
        ("GET", ":generateContent", ambiguous),
        // A dear verb in front of a free one.
        ("POST", "x:generateContent:countTokens", ambiguous),
        ("POST", "x%3AgenerateContent:countTokens", ambiguous),
        ("POST", "x:generateContent%3F:countTokens", ambiguous),
        ("POST", "x:countTokens:generateContent", ambiguous),
        ("POST", "LIST:countTokens", count),
        ("GET", "x:generateContent", others),
    ];
    for (method, segment, expected) in table {
        let found = find(&catalogue, method, &format!("/v1beta/models/{segment}"));
        assert_eq!(found.as_deref().map_err(String::as_str), expected, "{method} {segment}");
    }
    assert!(find(&catalogue, "POST", "/v1/jobs/7:cancel").is_ok());
    for (path, refusal) in [("/v1/jobs/x:cancel", "InvalidParameters"), ("/v1/jobs/7", "UnknownRoute")] {
        assert!(find(&catalogue, "POST", path).unwrap_err().starts_with(refusal), "{path}");
    }
    assert_eq!(catalogue.nearest_template("/v1/jobs/7:cancl"), Some("/v1/jobs/{id}:cancel"));
    let lenient = |method, path: &[&str]| catalogue.find_leniently(method, path).map(|route| &*route.template);
    let generate = Some("/v1beta/models/{model}:generateContent");
    assert_eq!(lenient("POST", &["v1beta", "models", "x%3AGENERATECONTENT"]), generate);
    assert_eq!(lenient("GET", &["v1beta", "models", "x:y"]), Some("/v1beta/models/{model}"));
}

#[test]
fn templates_with_verbs_are_checked() {
    // path, problem
    let table = [
        ("/m/{a}:", "mixes text and a parameter"),
        ("/m/{a}run", "mixes text and a parameter"),
        ("/m/run{a}", "mixes text and a parameter"),
        ("/m/{a}:x:y", "mixes text and a parameter"),
        ("/m/{a}:r%75n", "not in normal form"),
        ("/m/{b}:run", "path parameter b is not declared"),
        ("/m/{a}:run", ""),
    ];
    for (path, problem) in table {
        let text = format!(
            r#"{{"market": "M", "version": 1, "endpoints": [{{"path": "{path}", "method": "POST", "metered": true,
                "params": [{{"name": "a", "in": "path", "type": "string"}}]}}]}}"#
        );
        match Catalogue::from_json(&text) {
            Ok(_) => assert_eq!(problem, "", "{path}"),
            Err(error) => assert!(!problem.is_empty() && error.to_string().contains(problem), "{path}: {error}"),
        }
    }
    let twice = Catalogue::from_json(&VERBS.replace(":countTokens", ":generateContent")).unwrap_err().to_string();
    assert!(twice.contains("another route has the same method and path"), "{twice}");
}

#[test]
fn encoded_slashes_are_part_of_a_value_where_the_route_says_so() {
    let catalogue = Catalogue::from_json(
        r#"{"market": "M", "version": 1, "endpoints": [
        {"path": "/m/{model}", "method": "GET", "metered": true, "encoded_slash": true,
         "params": [{"name": "model", "in": "path", "type": "string"}]},
        {"path": "/m/{model}", "method": "DELETE", "metered": true,
         "params": [{"name": "model", "in": "path", "type": "string"}]},
        {"path": "/m/{model}:run", "method": "POST", "metered": true, "encoded_slash": true,
         "params": [{"name": "model", "in": "path", "type": "string"}]},
        {"path": "/m/export", "method": "GET", "metered": true},
        {"path": "/m/{model}/files", "method": "GET", "metered": true,
         "params": [{"name": "model", "in": "path", "type": "string"}]},
        {"path": "/n/{id}", "method": "GET", "metered": true, "params": [{"name": "id", "in": "path", "type": "string"}]}]}"#,
    )
    .unwrap();
    // method, path, template or refusal
    let table = [
        ("GET", "/m/openai%2Fx", Ok("/m/{model}")),
        ("GET", "/m/a%2fb%2Fc", Ok("/m/{model}")),
        ("POST", "/m/openai%2Fx:free:run", Ok("/m/{model}:run")),
        ("DELETE", "/m/openai%2Fx", Err("EncodedSlash")),
        ("GET", "/n/a%2Fb", Err("EncodedSeparator")),
        ("GET", "/m%2Fx", Err("EncodedSeparator")),
        ("GET", "/m/a%2F..%2Fb", Err("DotSegment")),
        ("GET", "/m/a%252Fb", Err("EncodedSeparator")),
        ("GET", "/m/a%5Cb", Err("EncodedSeparator")),
        // Other routes, for servers that decode before they route.
        ("GET", "/m/a%2Ffiles", Err("ReadsLikeOtherRoute")),
        ("GET", "/m/export%2Fx", Err("EncodedSeparator")),
        ("GET", "/m/x:run%2Fy", Err("EncodedSeparator")),
        ("GET", "/m/a%2Fb/files", Err("EncodedSeparator")),
    ];
    for (method, path, expected) in table {
        let found = find(&catalogue, method, path);
        assert_eq!(found.as_deref().map_err(String::as_str), expected, "{method} {path}");
    }
    assert_eq!(catalogue.path("/m/a%2fb").unwrap().as_str(), "/m/a%2Fb");
    let plain =
        r#"{"market":"M","version":1,"endpoints":[{"path":"/x","method":"GET","metered":true,"encoded_slash":true}]}"#;
    assert!(Catalogue::from_json(plain).unwrap_err().to_string().contains("encoded_slash has no effect"));
}

#[test]
fn any_query_passes_in_normal_form_except_for_what_undoes_the_checks() {
    let usage = r#""price": {"max": "1", "report": {"json": "/cost"}}"#;
    let key = crate::ApiKey::generate(&crate::random::SystemRandomness);
    let leaked = format!("key={}", key.expose());
    // query, the query for a flat price, the query for a price by usage, or the parameter refused
    let table = [
        ("beta=true", Ok("beta=true"), Ok("beta=true")),
        ("alt=sse&x", Ok("alt=sse&x="), Ok("alt=sse&x=")),
        ("a=1&a=2&a=%2f%26;", Ok("a=1&a=2&a=%2F%26%3B"), Ok("a=1&a=2&a=%2F%26%3B")),
        ("n=5&include=a&b=1&include=b", Ok("n=5&include=a&b=1&include=b"), Ok("n=5&include=a&b=1&include=b")),
        ("n=x", Err("n"), Err("n")),
        ("n=5&n=6", Err("n"), Err("n")),
        ("N=5", Err("N"), Err("N")),
        ("n%5B%5D=5", Err("n[]"), Err("n[]")),
        ("n%20=5", Err("n "), Err("n ")),
        ("_method=DELETE", Err("_method"), Err("_method")),
        ("%24httpHeaders=X-Goog-FieldMask:a", Err("$httpHeaders"), Err("$httpHeaders")),
        ("fields=candidates", Ok("fields=candidates"), Err("fields")),
        ("%24fields=candidates", Ok("%24fields=candidates"), Err("$fields")),
        ("alt=proto", Ok("alt=proto"), Err("alt")),
        ("callback=f", Ok("callback=f"), Err("callback")),
        (&leaked, Err("key"), Err("key")),
        ("a=%zz", Err("query"), Err("query")),
    ];
    for (query, flat, by_usage) in table {
        for (price, expected) in [(r#""price": "1""#, flat), (usage, by_usage)] {
            let text = format!(
                r#"{{"market": "M", "version": 1, "endpoints": [{{"path": "/x", "method": "POST", "metered": true,
                    "query": "any", {price}, "params": [{{"name": "n", "in": "query", "type": "integer"}},
                    {{"name": "include", "in": "query", "type": "string", "array": true}}]}}]}}"#
            );
            let catalogue = Catalogue::from_json(&text).unwrap();
            let found = catalogue.resolve("POST", &RequestPath::parse("/x").unwrap(), Some(query));
            let found = found.map(|resolved| resolved.query.unwrap_or_default()).map_err(|refusal| match refusal {
                RouteRefusal::InvalidParameters(problems) => problems.into_keys().next().unwrap(),
                other => panic!("{other:?}"),
            });
            assert_eq!(found.as_deref().map_err(String::as_str), expected, "{query} {price}");
        }
    }
}

#[test]
fn a_query_does_not_choose_the_model_of_a_route_with_prices_by_model() {
    let one_price = r#""price": {"max": "1", "report": {"json": "/cost"}}"#;
    let by_model = r#""price": {"max": "1", "model": {"json": "/model"}, "models": {"a": {"units": {"t": "0.1"}}},
        "report": {"json": {"t": "/t"}}}"#;
    for (price, query, is_refused) in [
        (one_price, "model=b", false),
        (by_model, "model=b", true),
        (by_model, "Model=b", true),
        (by_model, "model%5B%5D=b", true),
        (by_model, "beta=true", false),
    ] {
        let text = format!(
            r#"{{"market": "M", "version": 1, "endpoints": [
                {{"path": "/x", "method": "POST", "metered": true, "query": "any", {price}}}]}}"#
        );
        let catalogue = Catalogue::from_json(&text).unwrap();
        let found = catalogue.resolve("POST", &RequestPath::parse("/x").unwrap(), Some(query));
        assert_eq!(found.is_err(), is_refused, "{query} {price}");
    }
}

#[test]
fn a_parameter_repeats_only_if_it_is_an_array() {
    let catalogue = |fields: &str| {
        Catalogue::from_json(&format!(
            r#"{{"market": "M", "version": 1, "endpoints": [{{"path": "/x", "method": "GET", "metered": true, {fields}}}]}}"#
        ))
    };
    let param = r#""name": "include", "in": "query", "type": "integer", "required": true"#;
    let repeated = catalogue(&format!(r#""params": [{{{param}, "array": true}}]"#)).unwrap();
    let resolve = |query| repeated.resolve("GET", &RequestPath::parse("/x").unwrap(), query).map(|found| found.query);
    assert_eq!(resolve(Some("include=2&include=1&include=2")), Ok(Some("include=2&include=1&include=2".to_owned())));
    for query in [None, Some("include=1&include=x"), Some("include=1&other=1")] {
        assert!(matches!(resolve(query), Err(RouteRefusal::InvalidParameters(_))), "{query:?}");
    }
    let lookback = r#""billing_modifier": {"type": "lookback_multiplier", "param": "include",
        "tiers": [{"max_seconds": 1, "multiplier": 1}], "overflow_multiplier": 1}"#;
    for (fields, problem) in [
        (format!(r#"{lookback}, "params": [{{{param}, "array": true}}]"#), "must be a required integer parameter"),
        (r#""query": "all""#.to_owned(), "query: unknown variant"),
    ] {
        let error = catalogue(&fields).unwrap_err().to_string();
        assert!(error.contains(problem), "{error}");
    }
    let in_path = r#"{"market": "M", "version": 1, "endpoints": [{"path": "/x/{a}", "method": "GET", "metered": true,
        "params": [{"name": "a", "in": "path", "type": "string", "array": true}]}]}"#;
    assert!(Catalogue::from_json(in_path).unwrap_err().to_string().contains("does not repeat"));
}
