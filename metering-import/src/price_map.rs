//! Reads the price map that LiteLLM publishes (`model_prices_and_context_window.json`): USD per token, by model.
//!
//! Prices that a preset of the catalogue can charge become prices per million tokens. Prices that it cannot charge are
//! reported, because those units would be free; prices of features that its requests cannot use are ignored.

use std::collections::{BTreeMap, BTreeSet};

use metering_core::Credits;
use metering_core::catalogue::UnitPrice;
use rust_decimal::{Decimal, RoundingStrategy};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::model_list::ModelList;

/// The price fields of the map, and their units.
const FIELDS: [(&str, &str); 9] = [
    ("input_cost_per_token", "input_tokens"),
    ("cache_read_input_token_cost", "cached_input_tokens"),
    ("cache_creation_input_token_cost", "cache_write_tokens"),
    ("cache_creation_input_token_cost_above_1hr", "cache_write_1h_tokens"),
    ("input_cost_per_audio_token", "audio_input_tokens"),
    ("input_cost_per_image_token", "image_input_tokens"),
    ("output_cost_per_token", "output_tokens"),
    ("output_cost_per_reasoning_token", "reasoning_tokens"),
    ("output_cost_per_audio_token", "audio_output_tokens"),
];
/// The price of the output of models for images.
const IMAGE_OUTPUT: &str = "output_cost_per_image_token";
/// Prices whose names contain one of these are for features that presets remove from requests: other tiers, batches, tools
/// of the provider.
const NOT_SOLD: [&str; 10] = [
    "_batches",
    "_batch_requests",
    "_priority",
    "_flex",
    "search_context_cost",
    "code_interpreter",
    "computer_use",
    "file_search",
    "vector_store",
    "code_execution",
];
/// The part of a field's name that makes it a price for long prompts, such as `_above_200k_tokens`.
const LONG: &str = "_above_";
/// The maximum number of choices that presets allow in a request.
const CHOICES: u64 = 2;
/// Prices by the length of the prompt, as a list.
const TIERS: &str = "tiered_pricing";
/// Decimals of a price per million.
const DECIMALS: u32 = 12;
/// Why a model with two entries for its name is left out.
const TWICE: &str = "the map has it twice at different prices, with and without its provider or of two providers; write its \
                     price into the catalogue";
/// The maximum that can be held for a request.
const MAX: &str = "568.88888888";

/// Credits for a dollar of the map.
#[derive(Debug, Clone, Copy)]
pub struct PriceRate {
    markup: Decimal,
    usd_per_credit: Decimal,
}

/// Which models to import, and how.
#[derive(Debug, Clone)]
pub struct PriceMapOptions {
    /// Providers, by their names in the map.
    pub providers: Vec<String>,
    /// The preset for all of them. By default, it is derived from provider and mode.
    pub preset: Option<String>,
    /// The hold for a model whose limits are not in the map; without it, such models are left out.
    pub max: Option<Credits>,
    /// Whether to charge the price of long prompts for all prompts. Otherwise long prompts cost the same as others.
    pub long_prompts: bool,
}

/// The result of reading a price map.
#[derive(Debug)]
pub struct PriceMapImport {
    /// The models.
    pub models: ModelList,
    /// Models of the chosen providers that are left out, and why.
    pub left_out: Vec<(String, String)>,
    /// Imported models, and their prices that are not charged.
    pub not_charged: Vec<(String, String)>,
}

/// Why a price map is not imported.
#[derive(Debug, thiserror::Error)]
pub enum PriceMapError {
    /// It is not a JSON object.
    #[error("the price map is not a JSON object by model: {0}")]
    NotJson(serde_json::Error),
    /// A markup or a rate is not a positive number.
    #[error("{name} must be a decimal number above 0, such as {example}, not {value}")]
    Rate {
        /// Which of them.
        name: &'static str,
        /// A valid one.
        example: &'static str,
        /// What was given.
        value: String,
    },
    /// No model is left.
    #[error("the price map has no model of {0} that can be imported")]
    Nothing(String),
}

impl PriceRate {
    /// Reads a markup, such as `1.2`, and how many dollars a credit is sold for.
    ///
    /// # Errors
    /// When one of them is not a decimal number above 0.
    pub fn new(markup: &str, usd_per_credit: &str) -> Result<Self, PriceMapError> {
        let read = |name, example, value: &str| {
            let number = Decimal::from_str_exact(value).ok().filter(|number| *number > Decimal::ZERO);
            number.ok_or_else(|| PriceMapError::Rate { name, example, value: value.to_owned() })
        };
        Ok(Self {
            markup: read("the markup", "1.2", markup)?,
            usd_per_credit: read("USD per credit", "0.01", usd_per_credit)?,
        })
    }

    /// Credits per million, of USD for one, rounded up to what a catalogue can have.
    fn per_million(self, usd: Decimal) -> Option<Decimal> {
        let credits = usd.checked_mul(Decimal::from(1_000_000))?.checked_mul(self.markup)?;
        let credits = credits.checked_div(self.usd_per_credit)?;
        Some(credits.round_dp_with_strategy(DECIMALS, RoundingStrategy::AwayFromZero).normalize())
    }
}

/// Reads a price map.
///
/// ```
/// use metering_import::{PriceMapOptions, PriceRate, read_price_map};
///
/// let map = r#"{"gpt-5-mini": {"litellm_provider": "openai", "mode": "chat", "input_cost_per_token": 2.5e-07,
///     "output_cost_per_token": 2e-06, "max_input_tokens": 272000, "max_output_tokens": 128000, "supports_vision": true}}"#;
/// let openai = PriceMapOptions { providers: vec!["openai".to_owned()], preset: None, max: None, long_prompts: false };
/// let import = read_price_map(map, PriceRate::new("1.2", "0.01")?, &openai)?;
/// assert_eq!(import.models.get("gpt-5-mini").ok_or("no model")?["per_million"]["input_tokens"], "30");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// When it cannot be read, or no model is left.
pub fn read_price_map(text: &str, rate: PriceRate, options: &PriceMapOptions) -> Result<PriceMapImport, PriceMapError> {
    let map: BTreeMap<String, Box<RawValue>> = serde_json::from_str(text).map_err(PriceMapError::NotJson)?;
    let (mut models, mut left_out, mut not_charged) = (BTreeMap::<String, Value>::new(), Vec::new(), Vec::new());
    let mut twice = BTreeSet::new();
    for (name, entry) in &map {
        let Some(entry) = Entry::read(entry).filter(|entry| options.providers.contains(&entry.provider)) else {
            continue;
        };
        // LiteLLM puts the provider before the names of some of its models.
        let name = name.strip_prefix(&format!("{}/", entry.provider)).unwrap_or(name).to_owned();
        match entry.model(rate, options) {
            Ok((model, ignored)) => {
                not_charged.extend(ignored.into_iter().map(|field| (name.clone(), field)));
                let is_other = models.get(&name).is_some_and(|known| known["per_million"] != model["per_million"]);
                if is_other {
                    twice.insert(name);
                } else {
                    models.entry(name).or_insert(model);
                }
            }
            Err(why) => left_out.push((name, why)),
        }
    }
    // It is unknown which of them the upstream charges.
    models.retain(|name, _| !twice.contains(name));
    not_charged.retain(|(name, _)| !twice.contains(name));
    left_out.extend(twice.into_iter().map(|name| (name, TWICE.to_owned())));
    if models.is_empty() {
        return Err(PriceMapError::Nothing(options.providers.join(", ")));
    }
    Ok(PriceMapImport { models: ModelList::from(models), left_out, not_charged })
}

/// A model of the map.
struct Entry {
    provider: String,
    mode: String,
    fields: BTreeMap<String, Box<RawValue>>,
}

impl Entry {
    fn read(entry: &RawValue) -> Option<Self> {
        let fields: BTreeMap<String, Box<RawValue>> = serde_json::from_str(entry.get()).ok()?;
        let text = |key: &str| serde_json::from_str::<String>(fields.get(key)?.get()).ok();
        let (provider, mode) = (text("litellm_provider")?, text("mode").unwrap_or_default());
        Some(Self { provider, mode, fields })
    }

    /// The model as a catalogue has it, and its prices that are not charged.
    fn model(&self, rate: PriceRate, options: &PriceMapOptions) -> Result<(Value, Vec<String>), String> {
        let presets = match &options.preset {
            Some(preset) => vec![preset.as_str()],
            None => {
                self.presets().ok_or_else(|| format!("no preset sells {} of {}", self.mode(), self.provider))?.into()
            }
        };
        let (mut prices, mut ignored) = (BTreeMap::new(), Vec::new());
        for (field, value) in &self.fields {
            if !(field.contains("cost") || field == TIERS) || NOT_SOLD.iter().any(|part| field.contains(part)) {
                continue;
            }
            match (self.unit(field, options.long_prompts), price(value, rate)) {
                // A price of zero counts as missing, because the map also uses it for unknown prices.
                (_, Some(price)) if price.is_zero() => {}
                (Some(unit), Some(price)) => {
                    let highest = prices.entry(unit).or_insert(price);
                    *highest = (*highest).max(price);
                }
                (Some(_), None) => return Err(format!("{field} is not a price: {}", value.get())),
                (None, _) => ignored.push(field.clone()),
            }
        }
        if !prices.contains_key("input_tokens") {
            return Err("it has no price per input token".to_owned());
        }
        // Embeddings have no output.
        if self.mode == "embedding" {
            prices.retain(|unit, _| *unit == "input_tokens");
        }
        if self.mode != "embedding" && !prices.contains_key("output_tokens") {
            return Err("it has no price per output token".to_owned());
        }
        let max = self.max(&prices).or(options.max.map(|max| max.to_string()));
        let max = max.ok_or("its limits of tokens are not in the map; say with --max what is held for a request")?;
        let per_million: BTreeMap<&str, String> =
            prices.iter().map(|(unit, price)| (*unit, price.to_string())).collect();
        let mut model = json!({"presets": presets, "max": max, "per_million": per_million});
        // The output of images is not estimated.
        let is_limited = prices.contains_key("output_tokens") && self.mode != "image_generation";
        if let Some(limit) = self.number("max_output_tokens").filter(|_| is_limited) {
            model["limits"] = json!({"output_tokens": limit});
        }
        Ok((model, ignored))
    }

    /// The unit that a field is the price of.
    fn unit(&self, field: &str, long_prompts: bool) -> Option<&'static str> {
        if field == IMAGE_OUTPUT && self.mode == "image_generation" {
            return Some("output_tokens");
        }
        let of = |name: &str| FIELDS.iter().find(|(known, _)| *known == name).map(|(_, unit)| *unit);
        let long = || {
            let (name, length) = field.rsplit_once(LONG)?;
            of(name).filter(|_| length.ends_with("_tokens"))
        };
        of(field).or_else(|| long().filter(|_| long_prompts))
    }

    fn presets(&self) -> Option<&'static [&'static str]> {
        let presets: &'static [&'static str] = match (&*self.provider, &*self.mode) {
            ("openai", "chat") => &["openai-chat", "openai-responses"],
            ("openai", "responses") => &["openai-responses"],
            ("openai", "embedding") => &["openai-embeddings"],
            ("openai", "image_generation") => &["openai-images"],
            ("text-completion-openai", "completion") => &["openai-completions"],
            ("anthropic", "chat") => &["anthropic-messages"],
            ("gemini", "chat") => &["gemini"],
            _ => return None,
        };
        Some(presets)
    }

    fn mode(&self) -> &str {
        if self.mode.is_empty() { "models without a mode" } else { &self.mode }
    }

    fn number(&self, field: &str) -> Option<u64> {
        serde_json::from_str(self.fields.get(field)?.get()).ok().filter(|number| *number > 0)
    }

    /// The maximum cost of a request: all tokens at the highest price, and two choices.
    fn max(&self, prices: &BTreeMap<&'static str, Decimal>) -> Option<String> {
        let input = self.number("max_input_tokens").or_else(|| self.number("max_tokens"))?;
        let output = match self.mode.as_str() {
            "embedding" => 0,
            _ => self.number("max_output_tokens").or_else(|| self.number("max_tokens"))?,
        };
        let dearest = |is_output: bool| {
            let of_kind = prices.iter().filter(|(unit, _)| is_of_output(unit) == is_output);
            of_kind.map(|(_, price)| *price).max().unwrap_or_default()
        };
        let cost = |tokens: u64, price: Decimal| {
            Decimal::from(tokens).checked_mul(price)?.checked_div(Decimal::from(1_000_000))
        };
        let most = cost(input, dearest(false))?.checked_add(cost(output.checked_mul(CHOICES)?, dearest(true))?)?;
        // Eight decimals are always whole atoms.
        let most = most.round_dp_with_strategy(8, RoundingStrategy::AwayFromZero).normalize();
        let highest = Decimal::from_str_exact(MAX).ok()?;
        (most > Decimal::ZERO).then(|| if most > highest { MAX.to_owned() } else { most.to_string() })
    }
}

fn is_of_output(unit: &str) -> bool {
    unit.contains("output") || unit.contains("reasoning")
}

fn price(value: &RawValue, rate: PriceRate) -> Option<Decimal> {
    // Reads the digits of a JSON number exactly, with its exponent.
    let exact: UnitPrice = value.get().parse().ok()?;
    rate.per_million(Decimal::from_str_exact(&exact.to_string()).ok()?)
}

#[cfg(test)]
mod tests;
