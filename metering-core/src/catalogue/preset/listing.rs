//! The list of models that a route responds with: in OpenAI's shape, with OpenRouter's names of prices.

use super::units::price_of;
use crate::catalogue::json_tree::Tree;
use crate::catalogue::units::UnitPrice;

/// Prices by OpenRouter's names. Theirs are USD, ours credits.
const PRICING: [(&str, &str); 6] = [
    ("prompt", "input_tokens"),
    ("completion", "output_tokens"),
    ("input_cache_read", "cached_input_tokens"),
    ("input_cache_write", "cache_write_tokens"),
    ("internal_reasoning", "reasoning_tokens"),
    ("audio", "audio_input_tokens"),
];

/// The list of all models that have a name. Patterns have none.
pub(super) fn list(models: &Tree) -> Tree {
    let named = models.members().iter().filter(|(name, _)| !name.ends_with('*'));
    let data: Vec<String> = named.map(|(name, model)| entry(name, model).to_json()).collect();
    object([
        ("object", Tree::of_str("list")),
        ("pricing_unit", Tree::of_str("credits")),
        ("data", Tree::of_list(data.iter().map(String::as_str))),
    ])
}

fn entry(name: &str, model: &Tree) -> Tree {
    let pricing = PRICING.iter().filter_map(|(field, unit)| Some(((*field).to_owned(), of_one(model, unit)?)));
    let mut entry = object([
        ("id", Tree::of_str(name)),
        ("object", Tree::of_str("model")),
        ("created", Tree::Text("0".to_owned())),
        ("owned_by", Tree::of_str("system")),
        ("pricing", Tree::Object(pricing.collect())),
    ]);
    if let Some(limit) = model.get("limits").and_then(|limits| limits.get("output_tokens")) {
        entry.set("top_provider", object([("max_completion_tokens", limit.clone())]));
    }
    entry
}

/// The price of one unit, exactly. Unreadable values are a problem of the routes that sell the model.
fn of_one(model: &Tree, unit: &str) -> Option<Tree> {
    let (key, price) = price_of(model, unit)?;
    let text = price.as_string().unwrap_or_else(|| price.to_json());
    let price = if key == "per_million" { UnitPrice::of_million(&text) } else { text.parse() };
    Some(Tree::of_str(&price.ok()?.to_string()))
}

fn object<const N: usize>(members: [(&str, Tree); N]) -> Tree {
    Tree::Object(members.map(|(name, value)| (name.to_owned(), value)).into())
}
