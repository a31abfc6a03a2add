//! The result for a price map.

use super::*;

fn import(entries: &str, markup: &str, usd_per_credit: &str) -> PriceMapImport {
    let providers = ["openai", "anthropic", "gemini"].map(str::to_owned).to_vec();
    let options = PriceMapOptions { providers, preset: None, max: None, long_prompts: false };
    read_price_map(&format!("{{{entries}}}"), PriceRate::new(markup, usd_per_credit).unwrap(), &options).unwrap()
}

#[test]
fn prices_are_exact_and_rounded_up_only_where_they_do_not_end() {
    // USD per token, markup, USD per credit, credits per million
    let table = [
        ("2.5e-07", "1", "1", "0.25"),
        ("0.00000125", "1.2", "1", "1.5"),
        ("1.25e-05", "1.15", "0.01", "1437.5"),
        ("1e-06", "1", "3", "0.333333333334"),
        ("5.46875e-07", "1", "1", "0.546875"),
    ];
    for (usd, markup, rate, expected) in table {
        let entry = format!(
            r#""m": {{"litellm_provider": "openai", "mode": "embedding", "max_input_tokens": 10, "input_cost_per_token": {usd}}}"#
        );
        let import = import(&entry, markup, rate);
        assert_eq!(import.models.get("m").unwrap()["per_million"]["input_tokens"], expected, "{usd} {markup} {rate}");
    }
    for wrong in ["0", "-1", "x", ""] {
        assert!(PriceRate::new(wrong, "1").is_err() && PriceRate::new("1", wrong).is_err(), "{wrong}");
    }
}

#[test]
fn what_cannot_be_charged_is_listed_and_what_is_not_sold_is_not() {
    let import = import(
        r#""sample_spec": {"litellm_provider": "one of https://docs.litellm.ai/docs/providers", "mode": "one of: chat"},
        "claude-x": {"litellm_provider": "anthropic", "mode": "chat", "input_cost_per_token": 3e-06,
            "input_cost_per_token_above_200k_tokens": 6e-06, "cache_read_input_token_cost": 3e-07,
            "cache_creation_input_token_cost": 3.75e-06, "cache_creation_input_token_cost_above_1hr": 6e-06,
            "output_cost_per_token": 1.5e-05, "search_context_cost_per_query": {"search_context_size_low": 0.01},
            "input_cost_per_token_batches": 1.5e-06, "max_input_tokens": 200000, "max_output_tokens": 64000,
            "newer_field": [1]},
        "gemini/gemini-x": {"litellm_provider": "gemini", "mode": "chat", "input_cost_per_token": 1e-06,
            "output_cost_per_token": 4e-06, "output_cost_per_reasoning_token": 8e-06, "input_cost_per_image": 0.001,
            "output_cost_per_pixel": 0.0, "max_tokens": 8192},
        "tts": {"litellm_provider": "openai", "mode": "audio_speech", "input_cost_per_character": 1.5e-05},
        "no-limits": {"litellm_provider": "openai", "mode": "chat", "input_cost_per_token": 1e-06, "output_cost_per_token": 1e-06},
        "other": {"litellm_provider": "bedrock", "mode": "chat", "input_cost_per_token": 1e-06}"#,
        "1",
        "1",
    );
    assert_eq!(
        import.models.get("claude-x").unwrap(),
        &json!({"presets": ["anthropic-messages"], "max": "3.12",
            "per_million": {"input_tokens": "3", "cached_input_tokens": "0.3", "cache_write_tokens": "3.75",
                "cache_write_1h_tokens": "6", "output_tokens": "15"},
            "limits": {"output_tokens": 64000}})
    );
    assert_eq!(
        import.models.get("gemini-x").unwrap(),
        &json!({"presets": ["gemini"], "max": "0.139264",
            "per_million": {"input_tokens": "1", "output_tokens": "4", "reasoning_tokens": "8"}})
    );
    let pairs =
        |pairs: &[(String, String)]| pairs.iter().map(|(model, what)| format!("{model}: {what}")).collect::<Vec<_>>();
    assert_eq!(
        pairs(&import.not_charged),
        ["claude-x: input_cost_per_token_above_200k_tokens", "gemini-x: input_cost_per_image"]
    );
    let left_out = pairs(&import.left_out);
    assert_eq!(left_out.len(), 2, "{left_out:?}");
    assert!(left_out[0].contains("no-limits: its limits of tokens") && left_out[1].contains("tts: no preset sells"));
}

#[test]
fn missing_or_conflicting_prices_make_nothing_free() {
    let model = |name: &str, prices: &str| {
        format!(
            r#""{name}": {{"litellm_provider": "openai", "mode": "chat", "max_input_tokens": 10, "max_output_tokens": 10, {prices}}}"#
        )
    };
    let (both, other) = (
        r#""input_cost_per_token": 1e-06, "output_cost_per_token": 2e-06"#,
        r#""input_cost_per_token": 1e-07, "output_cost_per_token": 2e-06, "tiered_pricing": []"#,
    );
    let import = import(
        &[
            model("free", r#""input_cost_per_token": 0.0, "output_cost_per_token": 0"#),
            model("free-output", r#""input_cost_per_token": 1e-06, "output_cost_per_token": 0.0"#),
            model("openai/same", both),
            model("openai/two-prices", other),
            model("same", both),
            model("tiers", &format!(r#"{both}, "tiered_pricing": [{{"input_cost_per_token": 5e-06}}]"#)),
            model("two-prices", both),
            model("zero", &format!(r#"{both}, "cache_read_input_token_cost": 0.0"#)),
        ]
        .join(","),
        "1",
        "1",
    );
    let names: Vec<_> = ["free", "free-output", "same", "tiers", "two-prices", "zero"]
        .into_iter()
        .filter(|name| import.models.get(name).is_some())
        .collect();
    assert_eq!(names, ["same", "tiers", "zero"]);
    let zero = &import.models.get("zero").unwrap()["per_million"];
    assert_eq!(zero, &json!({"input_tokens": "1", "output_tokens": "2"}), "cached tokens cost what others do");
    let left_out: Vec<_> = import.left_out.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(left_out, ["free", "free-output", "two-prices"]);
    assert_eq!(import.not_charged, [("tiers".to_owned(), "tiered_pricing".to_owned())]);
    let options = PriceMapOptions {
        max: Credits::from_whole(1),
        providers: vec!["openai".to_owned()],
        preset: None,
        long_prompts: false,
    };
    let free = format!("{{{}}}", model("free", r#""input_cost_per_token": 0.0, "output_cost_per_token": 0"#));
    assert!(read_price_map(&free, PriceRate::new("1", "1").unwrap(), &options).is_err());
}

#[test]
fn options_choose_the_preset_the_hold_and_the_price_of_long_prompts() {
    let map = r#"{"deepseek/d": {"litellm_provider": "deepseek", "mode": "chat", "input_cost_per_token": 1e-06,
        "input_cost_per_token_above_128k_tokens": 3e-06, "output_cost_per_token": 2e-06}}"#;
    let options = PriceMapOptions {
        providers: vec!["deepseek".to_owned()],
        preset: Some("openai-chat".to_owned()),
        max: Some("0.5".parse().unwrap()),
        long_prompts: true,
    };
    let import = read_price_map(map, PriceRate::new("1", "1").unwrap(), &options).unwrap();
    assert_eq!(
        import.models.get("d").unwrap(),
        &json!({"presets": ["openai-chat"], "max": "0.5", "per_million": {"input_tokens": "3", "output_tokens": "2"}})
    );
    assert!(import.not_charged.is_empty());
    let none = PriceMapOptions { providers: vec!["nobody".to_owned()], ..options };
    assert!(read_price_map(map, PriceRate::new("1", "1").unwrap(), &none).is_err());
    assert!(read_price_map("[]", PriceRate::new("1", "1").unwrap(), &none).is_err());
}
