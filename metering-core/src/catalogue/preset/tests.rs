use serde_json::{Value, json};

use crate::Catalogue;
use crate::catalogue::{ErrorShape, RequestPath};

fn written(price: &str, shared: &str) -> Result<Catalogue, String> {
    let path = if price.contains("\"gemini") { "/v1beta/models/{model}:run" } else { "/x" };
    let text = format!(
        r#"{{"market": "M", "version": 1, {shared} "endpoints": [
            {{"path": "{path}", "method": "POST", "metered": true, "price": {price}}}]}}"#
    );
    Catalogue::from_json(&text).map_err(|error| error.to_string())
}

/// The price of the only route, expanded.
fn price(catalogue: &Catalogue) -> Value {
    serde_json::from_str::<Value>(catalogue.json()).unwrap()["endpoints"][0]["price"].clone()
}

#[test]
fn expansion_is_a_catalogue_in_the_same_keys() {
    let catalogue = written(
        r#"{"preset": "openai-embeddings", "models": {"small": {"max": "0.01", "per_million": {"input_tokens": 0.020}}}}"#,
        "",
    );
    let catalogue = catalogue.unwrap();
    assert_eq!(
        price(&catalogue),
        json!({
            "model": {"json": "/model"},
            "models": {"small": {"max": "0.01", "per_million": {"input_tokens": 0.02}}},
            "report": {"json": {"input_tokens": "/usage/prompt_tokens"}},
            "estimate": {"bytes": ["input_tokens"]},
            "missing": "hold", "over": "debt",
        })
    );
    let route: Value = serde_json::from_str::<Value>(catalogue.json()).unwrap()["endpoints"][0].clone();
    assert_eq!(route["request"]["example"], json!({"model": "small", "input": "Hello"}));
    assert_eq!((&route["errors"], &route["replay"]), (&json!("openai"), &json!(true)));
    assert!(catalogue.json().contains("0.020"), "numbers keep their digits");
    let again = Catalogue::from_json(catalogue.json()).unwrap();
    assert_eq!((again.routes(), again.json()), (catalogue.routes(), catalogue.json()));
}

#[test]
fn units_that_no_model_prices_are_part_of_what_they_belong_to() {
    let model = |units: &str| format!(r#""models": {{"m": {{"max": "1", "per_million": {{{units}}}}}}},"#);
    let (both, chat) = (r#""input_tokens": "1", "output_tokens": "10""#, r#"{"preset": "openai-chat"}"#);
    let report = |preset: &str, units: &str| price(&written(preset, &model(units)).unwrap())["report"]["json"].clone();
    assert_eq!(
        report(chat, both),
        json!({"input_tokens": "/usage/prompt_tokens", "output_tokens": "/usage/completion_tokens"})
    );
    let details = "/usage/prompt_tokens_details";
    assert_eq!(
        report(chat, &format!(r#"{both}, "cached_input_tokens": "0.1", "reasoning_tokens": "20""#)),
        json!({
            "input_tokens": {"plus": ["/usage/prompt_tokens"], "minus": [format!("{details}/cached_tokens")]},
            "cached_input_tokens": format!("{details}/cached_tokens"),
            "output_tokens": {"plus": ["/usage/completion_tokens"],
                "minus": ["/usage/completion_tokens_details/reasoning_tokens"]},
            "reasoning_tokens": "/usage/completion_tokens_details/reasoning_tokens",
        })
    );
    // Anthropic counts cached tokens apart from its input tokens, and Google counts thoughts apart from the output.
    let of = |name: &str| json!({"max": [format!("/message/usage/{name}"), format!("/usage/{name}")]});
    let anthropic = r#"{"preset": "anthropic-messages"}"#;
    assert_eq!(
        report(anthropic, both)["input_tokens"],
        json!({"plus": [of("input_tokens"), of("cache_read_input_tokens"), of("cache_creation_input_tokens")]})
    );
    assert_eq!(
        report(anthropic, &format!(r#"{both}, "cache_write_1h_tokens": "2""#))["input_tokens"],
        json!({"plus": [of("input_tokens"), of("cache_read_input_tokens"), of("cache_creation_input_tokens")],
            "minus": [of("cache_creation/ephemeral_1h_input_tokens")]})
    );
    let gemini = report(r#"{"preset": "gemini"}"#, both);
    assert_eq!(gemini["output_tokens"]["plus"][2], json!("/usageMetadata/thoughtsTokenCount"));
}

#[test]
fn model_without_a_price_of_its_own_for_a_unit_has_that_of_the_parent() {
    let catalogue = written(
        r#"{"preset": "anthropic-messages"}"#,
        r#""models": {
            "all": {"max": "1", "units": {"input_tokens": "0.1", "cached_input_tokens": "0.01", "cache_write_tokens": "0.2",
                "cache_write_1h_tokens": "0.3", "output_tokens": "1"}},
            "some": {"max": "1", "units": {"input_tokens": "0.5", "output_tokens": "5"},
                "per_million": {"cache_write_tokens": "7"}, "limits": {"output_tokens": 100}}},"#,
    );
    let models = &price(&catalogue.unwrap())["models"];
    assert_eq!(
        models["some"],
        json!({"max": "1", "units": {"input_tokens": "0.5", "cached_input_tokens": "0.5", "output_tokens": "5"},
            "per_million": {"cache_write_tokens": "7", "cache_write_1h_tokens": "7"}, "limits": {"output_tokens": 100}})
    );
}

#[test]
fn tokens_are_listed_where_a_unit_does_not_count() {
    let tokens = |preset: &str, units: &str| {
        let models = format!(
            r#""models": {{"m": {{"max": "1", "per_million": {{"input_tokens": "1", {units}"output_tokens": "10"}}}}}},"#
        );
        let catalogue = written(&format!(r#"{{"preset": "{preset}"}}"#), &models).unwrap();
        let of_model = catalogue.routes()[0].usage_price().unwrap().models().next().unwrap().1.token_units().count();
        (price(&catalogue).get("tokens").cloned(), of_model)
    };
    let listed = json!(["input_tokens", "cache_write_tokens", "output_tokens"]);
    let cached = r#""cached_input_tokens": "0.1", "#;
    let writes = r#""cached_input_tokens": "0.1", "cache_write_tokens": "2", "#;
    assert_eq!(tokens("anthropic-messages", writes), (Some(listed), 3));
    assert_eq!(tokens("anthropic-messages", ""), (None, 2), "cached tokens are input tokens");
    assert_eq!(tokens("openai-chat", cached), (None, 3));
}

#[test]
fn shared_models_are_sold_where_they_have_all_prices() {
    let shared = r#""models": {
        "chat": {"max": "1", "per_million": {"input_tokens": "1", "output_tokens": "10", "cache_write_1h_tokens": "2"},
            "limits": {"output_tokens": 9}},
        "embed": {"max": "1", "per_million": {"input_tokens": "1"}, "presets": ["openai-embeddings"]}},"#;
    let names = |preset: &str| {
        let catalogue = written(&format!(r#"{{"preset": "{preset}"}}"#), shared).unwrap();
        let price = catalogue.routes()[0].usage_price().unwrap().clone();
        price.models().map(|(name, _)| name.to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names("openai-chat"), ["chat"]);
    assert_eq!(names("openai-embeddings"), ["chat", "embed"]);
    assert_eq!(names("openai-images"), ["chat"], "whose output is not estimated");
}

#[test]
fn keys_of_the_route_win_and_its_rules_are_added() {
    let text = r#"{"market": "M", "version": 1, "endpoints": [{"path": "/x", "method": "POST", "metered": true,
        "errors": "problem", "replay": null,
        "request": {"unknown": "refuse", "schema": {"properties": {"n": {"maximum": 8}, "max_tokens": {"maximum": 500}}},
            "set": {"/max_tokens": 9, "when": {"/max_tokens": null}}},
        "price": {"preset": "openai-chat", "over": "cap", "min": "0.001",
            "report": {"json": {"searches": "/usage/searches"}},
            "models": {"m": {"max": "1", "units": {"input_tokens": "0.1", "output_tokens": "1", "searches": "2"}}}}}]}"#;
    let catalogue = Catalogue::from_json(text).unwrap();
    let route = &catalogue.routes()[0];
    assert_eq!((route.errors, route.replay), (ErrorShape::Problem, false));
    let price = route.usage_price().unwrap();
    assert!(!price.may_exceed_hold() && price.min() == "0.001".parse().unwrap());
    let rules = route.body.as_ref().unwrap();
    let body =
        |members: &str| format!(r#"{{"model": "m", "messages": [{{"role": "user", "content": "x"}}]{members}}}"#);
    let forwarded = rules.check(body(r#", "stream": true, "n": 8"#).as_bytes()).unwrap();
    let forwarded: Value = serde_json::from_slice(forwarded.as_ref()).unwrap();
    assert_eq!((&forwarded["stream_options"]["include_usage"], &forwarded["max_tokens"]), (&json!(true), &json!(9)));
    for wrong in [r#", "n": 9"#, r#", "max_tokens": 501"#, r#", "else": 1"#, r#", "web_search_options": {}"#] {
        assert!(rules.check(body(wrong).as_bytes()).is_err(), "{wrong}");
    }
}

#[test]
fn hold_and_cost_are_those_of_the_model() {
    let catalogue = written(
        r#"{"preset": "openai-chat"}"#,
        r#""models": {
            "small": {"max": "0.5", "per_million": {"input_tokens": "1", "output_tokens": "10"}},
            "large*": {"max": "5", "per_million": {"input_tokens": "100", "output_tokens": "1000"},
                "limits": {"output_tokens": 2000}}},"#,
    )
    .unwrap();
    let route = &catalogue.routes()[0];
    assert_eq!(route.price(0), "5".parse().unwrap(), "the most that is held for any model");
    let path = RequestPath::parse("/x").unwrap();
    let held = |body: &str| {
        let price = route.usage_price_of(&path, Some(body.as_bytes())).unwrap().unwrap();
        let counts = serde_json::from_str(r#"{"input_tokens": 3, "output_tokens": 7}"#).unwrap();
        (price.hold(Some(format!("{body:<1000}").as_bytes())).to_string(), price.cost(&counts).unwrap().to_string())
    };
    let pair = |held: &str, cost: &str| (held.to_owned(), cost.to_owned());
    assert_eq!(held(r#"{"model": "small", "max_tokens": 100}"#), pair("0.002", "0.000073"));
    assert_eq!(held(r#"{"model": "small"}"#), pair("0.5", "0.000073"), "no limit is known");
    assert_eq!(held(r#"{"model": "large-2"}"#), pair("2.1", "0.0073"), "the model's limit");
    assert_eq!(held(r#"{"model": "large-2", "max_tokens": 100, "n": 2}"#), pair("0.4", "0.0073"));
}

#[test]
fn free_presets_name_the_models_that_are_sold() {
    let shared = r#""models": {"small": {"max": "1", "per_million": {"input_tokens": "1", "output_tokens": "10"}}},"#;
    let catalogue = written(r#"{"preset": "anthropic-count-tokens"}"#, shared).unwrap();
    let route = &catalogue.routes()[0];
    assert!(route.is_free());
    let rules = route.body.as_ref().unwrap();
    let body = |model: &str| format!(r#"{{"model": "{model}", "messages": [{{"role": "user", "content": "x"}}]}}"#);
    assert!(rules.check(body("small").as_bytes()).is_ok() && rules.check(body("dear").as_bytes()).is_err());
    assert!(written(r#"{"preset": "gemini-count-tokens"}"#, shared).unwrap().routes()[0].is_free());
}

#[test]
fn models_are_listed_with_exact_prices() {
    fn entry(id: &str, pricing: &Value) -> Value {
        json!({"id": id, "object": "model", "created": 0, "owned_by": "system", "pricing": pricing})
    }
    let text = r#"{"market": "M", "version": 1, "models": {
        "small": {"max": "1", "per_million": {"input_tokens": "0.25", "output_tokens": 2}, "limits": {"output_tokens": 9}},
        "large": {"max": "1", "units": {"input_tokens": "0.1", "cached_input_tokens": "0.00000001", "output_tokens": "1"}},
        "other*": {"max": "1", "per_million": {"input_tokens": "1"}}},
        "endpoints": [{"path": "/v1/models", "method": "GET", "metered": true, "price": {"preset": "openai-models"}}]}"#;
    let catalogue = Catalogue::from_json(text).unwrap();
    let route = &catalogue.routes()[0];
    assert!(route.is_free() && route.errors == ErrorShape::OpenAi);
    let mut small = entry("small", &json!({"prompt": "0.00000025", "completion": "0.000002"}));
    small["top_provider"] = json!({"max_completion_tokens": 9});
    let large = entry("large", &json!({"prompt": "0.1", "completion": "1", "input_cache_read": "0.00000001"}));
    let served = route.serve.as_ref().unwrap();
    assert_eq!(*served.value(), json!({"object": "list", "pricing_unit": "credits", "data": [small, large]}));
}

#[test]
fn mistakes_are_named() {
    let model = r#"{"max": "1", "per_million": {"input_tokens": "1", "output_tokens": "10"}}"#;
    // price, the file's models, a part of the message
    let table = [
        (
            r#"{"preset": "openai-chatt"}"#,
            "",
            "price.preset: there is no preset openai-chatt; did you mean openai-chat?",
        ),
        (r#"{"preset": 5}"#, "", "price.preset: must be the name of a preset"),
        (r#"{"preset": "openai-chat"}"#, "", "price.models is missing"),
        (r#"{"preset": "openai-chat", "models": {}}"#, "", "price.models: no model has all prices"),
        (
            r#"{"preset": "openai-chat", "models": {"file": "m.json"}}"#,
            "",
            "price.models.file: m.json: this catalogue is not",
        ),
        (r#"{"preset": "openai-chat", "models": 5}"#, "", "price.models: must be an object, or a list of objects"),
        (
            r#"{"preset": "openai-chat", "models": {"a*b": MODEL}}"#,
            "",
            "price.models: a*b: an asterisk is only allowed at",
        ),
        (
            r#"{"preset": "openai-chat", "models": {"a": {"max": "1", "units": {"input_tokens": "1"}}}}"#,
            "",
            "price.report.json.output_tokens: unit output_tokens has no price",
        ),
        (
            r#"{"preset": "openai-chat", "models": {"a": {"per_million": {"input_tokens": "1", "output_tokens": "1"}}}}"#,
            "",
            "price.max is missing",
        ),
        (
            r#"{"preset": "openai-chat", "models": {"a": MODEL}, "mim": "1"}"#,
            "",
            "unknown key price.mim; did you mean min?",
        ),
        (
            r#"{"preset": "openai-chat", "units": {"a": "1"}}"#,
            r#""models": {"a": MODEL},"#,
            "price.units: each model has its",
        ),
        (
            r#"{"preset": "openai-chat"}"#,
            r#""models": {"a": {"presets": ["openai"]}},"#,
            "models.a.presets: there is no preset openai",
        ),
        (r#""1""#, r#""models": {"a": MODEL},"#, "models: has no effect, because no route has a preset"),
        (
            r#"{"preset": "anthropic-count-tokens", "max": "1"}"#,
            r#""models": {"a": MODEL},"#,
            "price.max: has no effect, because requests to anthropic-count-tokens are free",
        ),
    ];
    for (price, shared, part) in table {
        let error = written(&price.replace("MODEL", model), &shared.replace("MODEL", model)).unwrap_err();
        assert!(error.contains(part), "{price}: {error}");
    }
}

#[test]
fn lists_of_models_change_each_other() {
    let catalogue = r#"{"market": "M", "version": 1, "models": [{"file": "m.json"}, {"a": {"max": "2"}, "b": null}],
        "endpoints": [{"path": "/x", "method": "POST", "metered": true, "price": {"preset": "openai-embeddings"}}]}"#;
    let models = r#"{"x-source": 1, "models": {"a": {"max": "1", "per_million": {"input_tokens": "1"}},
        "b": {"max": "1", "per_million": {"input_tokens": "1"}}}}"#;
    let read = Catalogue::from_json_with_files(catalogue, &|name| match name {
        "m.json" => Ok(models.to_owned()),
        _ => Err("no such file".to_owned()),
    });
    let read = read.unwrap();
    let price = read.routes()[0].usage_price().unwrap();
    assert_eq!(
        price.models().map(|(name, price)| (name, price.max())).collect::<Vec<_>>(),
        [("a", "2".parse().unwrap())]
    );
    let other = Catalogue::from_json_with_files(&catalogue.replace("m.json", "n.json"), &|_| Ok("{}".to_owned()));
    assert!(other.unwrap_err().to_string().contains("models.file: n.json: must have an object models"));
}

#[test]
fn every_preset_can_be_written_out_for_all_of_its_units() {
    let all = [
        "input_tokens",
        "cached_input_tokens",
        "cache_write_tokens",
        "cache_write_1h_tokens",
        "audio_input_tokens",
        "image_input_tokens",
        "output_tokens",
        "reasoning_tokens",
        "audio_output_tokens",
    ];
    let units: Vec<String> = all.iter().map(|unit| format!(r#""{unit}": "1""#)).collect();
    let shared = format!(r#""models": {{"m": {{"max": "1", "per_million": {{{}}}}}}},"#, units.join(","));
    for (preset, count) in [
        ("openai-chat", 7),
        ("openai-completions", 5),
        ("openai-responses", 5),
        ("openai-embeddings", 1),
        ("openai-images", 3),
        ("anthropic-messages", 6),
        ("gemini", 4),
    ] {
        let catalogue =
            written(&format!(r#"{{"preset": "{preset}"}}"#), &shared).unwrap_or_else(|e| panic!("{preset}: {e}"));
        assert_eq!(catalogue.routes()[0].usage_price().unwrap().units().count(), count, "{preset}");
    }
}
