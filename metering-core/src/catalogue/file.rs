//! Reads a catalogue file and checks the rules for its routes.

use std::sync::Arc;

use serde::de::Deserialize;
use serde_json::value::RawValue;

use super::json_text::JsonText;
use super::object::{Object, UnknownKeys, documentation};
use super::preset::{Expansion, ModelFiles};
use super::problem::{CatalogueError, CatalogueProblem, Problems};
use super::route_upstreams::{self, RouteUpstreams};
use super::template_file::check_template;
use super::{
    body, overlap, param_file, removed_headers, schema, served, upstream_file, usage_file, volume_file, websocket,
};
use crate::catalogue::free_statuses::{self, FreeStatuses};
use crate::catalogue::price::{LookbackTiers, MAX_PRICE, Multiplier, Pricing, Weight};
use crate::catalogue::route::{Param, ParamLocation, ParamType, QueryRule, Route};
use crate::catalogue::trie::Trie;
use crate::catalogue::usage_price::UsagePrice;
use crate::money::credits::Credits;

const FILE_KEYS: [&str; 7] =
    ["market", "version", "description", free_statuses::KEY, "models", route_upstreams::KEY, "endpoints"];
const ROUTE_KEYS: [&str; 27] = [
    "path",
    "method",
    "metered",
    "sse",
    "websocket",
    "serve",
    "errors",
    "replay",
    "receipt",
    "overlap",
    "description",
    "group",
    "unit",
    "params",
    "request",
    "credit_weight",
    "price",
    "billing_modifier",
    "response",
    "example",
    "query",
    "encoded_slash",
    "request_headers",
    "response_headers",
    free_statuses::KEY,
    route_upstreams::KEY,
    route_upstreams::RETRY_KEY,
];
const LOOKBACK_KEYS: [&str; 4] = ["type", "param", "tiers", "overflow_multiplier"];
const STREAM_KEYS: [&str; 2] = ["type", "credits_per_connection"];
const TIER_KEYS: [&str; 2] = ["max_seconds", "multiplier"];

/// A valid catalogue file.
pub(super) struct CatalogueFile {
    pub(super) market: String,
    pub(super) version: u64,
    pub(super) routes: Vec<Route>,
    pub(super) trie: Trie,
    /// The text with its presets written out, if it has any.
    pub(super) written: Option<String>,
}

impl CatalogueFile {
    pub(super) fn read(json: &str, unknown: UnknownKeys, files: &ModelFiles<'_>) -> Result<Self, CatalogueError> {
        // Parse the whole text first, so a syntax error is reported with its line.
        let _: &RawValue = serde_json::from_str(json)?;
        let mut problems = Problems::default();
        let file = problems.keep(Object::read(json, ""));
        let top = file.as_ref().and_then(|file| {
            problems.keep(file.only(&FILE_KEYS, unknown));
            let market = problems.keep(file.require("market"));
            let version = problems.keep(file.require("version"));
            let free = problems.keep(documentation(FreeStatuses::read(file), unknown)).flatten().unwrap_or_default();
            let upstreams = problems.keep(RouteUpstreams::read_default(file, unknown)).flatten();
            let expansion = problems.keep(Expansion::new(file, files));
            let endpoints: Option<Vec<&RawValue>> = problems.keep(file.require("endpoints"));
            Some((market, version, (free, upstreams), endpoints?, expansion))
        });
        let mut found: Vec<_> = problems.into_texts().into_iter().map(CatalogueProblem::of_file).collect();
        let (market, version, defaults, endpoints, mut expansion) = top.unwrap_or_default();
        let (mut routes, mut trie) = (Vec::with_capacity(endpoints.len()), Trie::default());
        for (index, endpoint) in endpoints.into_iter().enumerate() {
            // Without the models, a route's problems cannot be reported.
            let Some(expansion) = &mut expansion else { break };
            let problems = match expansion.route(endpoint).and_then(|text| read_endpoint(&text, &defaults, unknown)) {
                Ok(route) if trie.insert(&route.template, &route.method, routes.len()) => {
                    routes.push(route);
                    continue;
                }
                Ok(_) => "another route has the same method and path".to_owned().into(),
                Err(problems) => problems,
            };
            let (place, route) = (format!("endpoints[{index}]"), route_name(endpoint));
            let of_route = |problem| CatalogueProblem { place: place.clone(), route: route.clone(), problem };
            found.extend(problems.into_texts().into_iter().map(of_route));
        }
        let mut written = None;
        if let (true, Some(file), Some(expansion)) = (found.is_empty(), &file, expansion) {
            match expansion.finish(file) {
                Ok(text) => written = text,
                Err(problem) => found.push(CatalogueProblem::of_file(problem)),
            }
        }
        CatalogueError::unless_none(found)?;
        Ok(Self { written, market: market.unwrap_or_default(), version: version.unwrap_or_default(), routes, trie })
    }
}

/// A route's method and path, for messages, if both can be read.
fn route_name(endpoint: &RawValue) -> Option<String> {
    let endpoint = Object::read(endpoint.get(), "").ok()?;
    let text = |key: &str| endpoint.require::<String>(key).ok();
    Some(format!("{} {}", text("method")?, text("path")?))
}

/// The file's defaults for routes that do not set them.
type Defaults = (FreeStatuses, Option<RouteUpstreams>);

/// Reads a route.
fn read_endpoint(endpoint: &str, (free, upstreams): &Defaults, unknown: UnknownKeys) -> Result<Route, Problems> {
    let endpoint = &Object::read(endpoint, "")?;
    let mut problems = Problems::default();
    problems.keep(endpoint.only(&ROUTE_KEYS, unknown));
    let path = problems.keep(endpoint.require::<String>("path"));
    let method = problems.keep(read_method(endpoint));
    let params = problems.keep(param_file::read(endpoint, unknown));
    if let (Some(path), Some(params)) = (&path, &params) {
        problems.keep(check_template(path, params));
    }
    let pricing = problems.keep(pricing(endpoint, params.as_deref(), unknown));
    let body = problems.keep(documentation(body::read_rules(endpoint, unknown), unknown));
    let query: Option<Option<QueryRule>> = problems.keep(documentation(endpoint.get("query"), unknown));
    let encoded_slash = problems.keep(encoded_slash(endpoint, params.as_deref(), unknown));
    let upstreams = problems.keep(RouteUpstreams::read(endpoint, upstreams.as_ref(), unknown));
    if let (Some(Pricing::ByUsage(price)), Some(upstreams), UnknownKeys::Refuse) = (&pricing, &upstreams, unknown) {
        problems.keep(upstream_file::check_names(price, upstreams.as_ref()));
    }
    let removed_headers = problems.keep(removed_headers::read(endpoint, pricing.as_ref(), unknown));
    let documented = problems.keep(documented_response(endpoint, unknown));
    let metered = problems.keep(endpoint.require("metered"));
    let sse = problems.keep(endpoint.get("sse"));
    let websocket = problems.keep(websocket::read(endpoint, unknown));
    let serve = problems.keep(served::read(endpoint, unknown));
    let errors = problems.keep(documentation(endpoint.get("errors"), unknown));
    let mut of_metered = |key: &str| {
        let is_set = problems.keep(endpoint.get::<bool>(key)).map(Option::unwrap_or_default);
        if is_set == Some(true) && metered == Some(false) && unknown == UnknownKeys::Refuse {
            problems.add(format!("{key} has no effect on a route with metered false"));
        }
        is_set
    };
    let (replay, receipt) = (of_metered("replay"), of_metered("receipt"));
    let overlap = problems.keep(overlap::read(endpoint, unknown));
    let free_statuses = problems.keep(documentation(FreeStatuses::read(endpoint), unknown));
    if let (Some(Some(_)), Some(false), UnknownKeys::Refuse) = (&free_statuses, metered, unknown) {
        problems.add("free_statuses has no effect on a route with metered false");
    }
    let description = problems.keep(documentation(endpoint.get("description"), unknown));
    let group = problems.keep(documentation(endpoint.get::<String>("group"), unknown));
    let unit = problems.keep(documentation(read_unit(endpoint), unknown));
    if let (Some(Some(_)), Some(false), UnknownKeys::Refuse) = (&unit, metered, unknown) {
        problems.add("unit has no effect on a route with metered false");
    }
    problems.or(|| {
        let (response, example) = documented?;
        Some(Route {
            method: method?.into(),
            template: path?.into(),
            description: description?.unwrap_or_default(),
            params: params?,
            query: query?.unwrap_or_default(),
            encoded_slash: encoded_slash?,
            metered: metered?,
            sse: sse?.unwrap_or_default(),
            websocket: websocket?,
            serve: serve?,
            errors: errors?.unwrap_or_default(),
            replay: replay?,
            receipt: receipt?,
            overlap: overlap?,
            free_statuses: free_statuses?.unwrap_or_else(|| free.clone()),
            pricing: pricing?,
            removed_headers: removed_headers?,
            upstreams: upstreams?,
            group: group?.filter(|group| !group.trim().is_empty()),
            unit: unit?,
            response,
            example,
            body: body?.map(Arc::new),
        })
    })
}

fn read_method(endpoint: &Object<'_>) -> Result<String, String> {
    let method: String = endpoint.require("method")?;
    if method.is_empty() || !method.bytes().all(|b| b.is_ascii_uppercase()) {
        return Err("the method must be an upper-case HTTP method".to_owned());
    }
    Ok(method)
}

/// The name of one request, for people.
fn read_unit(endpoint: &Object<'_>) -> Result<Option<String>, String> {
    const CHARS_MAX: usize = 40;
    let unit: Option<String> = endpoint.get("unit")?;
    let fits = |unit: &String| {
        (1..=CHARS_MAX).contains(&unit.chars().count()) && unit.trim() == unit && !unit.chars().any(char::is_control)
    };
    match unit {
        Some(unit) if !fits(&unit) => {
            Err(format!("unit: must be a noun in the singular, such as search, of 1 to {CHARS_MAX} characters"))
        }
        unit => Ok(unit),
    }
}

/// Whether the path parameters of a route may have encoded slashes.
fn encoded_slash(endpoint: &Object<'_>, params: Option<&[Param]>, unknown: UnknownKeys) -> Result<bool, String> {
    let accepted = documentation(endpoint.get("encoded_slash"), unknown)?.unwrap_or_default();
    let takes = |param: &Param| param.location == ParamLocation::Path && param.kind == ParamType::String;
    if accepted && unknown == UnknownKeys::Refuse && params.is_some_and(|params| !params.iter().any(takes)) {
        return Err("encoded_slash has no effect without a path parameter of type string".to_owned());
    }
    Ok(accepted)
}

/// The schema of a route's response, and an example of one. The example must fit the schema.
fn documented_response(
    endpoint: &Object<'_>,
    unknown: UnknownKeys,
) -> Result<(Option<JsonText>, Option<JsonText>), Problems> {
    // Read as values first, which limits their depth: the checks below are recursive.
    let response: Option<JsonText> = documentation(endpoint.get("response"), unknown)?;
    let example: Option<JsonText> = documentation(endpoint.get("example"), unknown)?;
    if unknown == UnknownKeys::Ignore {
        return Ok((response.filter(|response| response.value().is_object()), example));
    }
    let mut problems = Problems::default();
    if let Some(schema) = endpoint.object("response")? {
        problems.keep(schema::check(&schema));
    }
    if let (Some(schema), Some(example)) = (&response, &example) {
        schema::check_example(schema.value(), example.value(), "example", &mut problems);
    }
    problems.or(|| Some((response, example)))
}

fn pricing(endpoint: &Object<'_>, params: Option<&[Param]>, unknown: UnknownKeys) -> Result<Pricing, Problems> {
    if endpoint.get::<&RawValue>("price")?.is_some_and(|price| price.get().starts_with('{')) {
        return match (usage_pricing(endpoint, params, unknown), unknown) {
            (Err(_), UnknownKeys::Ignore) => Ok(Pricing::Unknown),
            (pricing, _) => pricing,
        };
    }
    if endpoint.get::<&RawValue>("price")?.is_some_and(|price| price.get().starts_with('[')) {
        return match (volume_file::read_tiers(endpoint, unknown), unknown) {
            (Err(_), UnknownKeys::Ignore) => Ok(Pricing::Unknown),
            (tiers, _) => tiers.map(|tiers| Pricing::ByVolume(Arc::new(tiers))),
        };
    }
    let mut problems = Problems::default();
    let base = problems.keep(base_price(endpoint));
    let Some(modifier) = problems.keep(endpoint.object("billing_modifier")).flatten() else {
        return problems.or(|| base.map(Pricing::PerRequest));
    };
    let pricing = match problems.keep(modifier.require::<String>("type")).as_deref() {
        Some("stream_session") => problems.keep(per_connection(endpoint, &modifier, unknown)),
        Some("lookback_multiplier") => problems.keep(lookback(&modifier, base, params, unknown)),
        Some(other) => problems.keep(Err(format!(
            "billing_modifier.type: unknown variant {other}, expected lookback_multiplier or stream_session"
        ))),
        None => None,
    };
    problems.or(|| pricing)
}

fn per_connection(endpoint: &Object<'_>, modifier: &Object<'_>, unknown: UnknownKeys) -> Result<Pricing, Problems> {
    let mut problems = Problems::default();
    problems.keep(modifier.only(&STREAM_KEYS, unknown));
    if endpoint.has("price") {
        problems.add("price does not apply to a stream_session: its price is credits_per_connection");
    }
    let price = problems.keep(modifier.get::<Credits>("credits_per_connection")).flatten();
    match price.filter(|price| !price.is_negative()) {
        Some(price) => problems.or(|| Some(Pricing::PerConnection(price))),
        None => {
            problems.add("stream_session needs credits_per_connection, zero or more");
            Err(problems)
        }
    }
}

/// A price by usage: `price` is an object.
fn usage_pricing(endpoint: &Object<'_>, params: Option<&[Param]>, unknown: UnknownKeys) -> Result<Pricing, Problems> {
    let mut problems = Problems::default();
    for other in ["credit_weight", "billing_modifier"].into_iter().filter(|key| endpoint.has(key)) {
        problems.add(format!("{other} does not apply to a price by usage; remove it, or write price as a string"));
    }
    if unknown == UnknownKeys::Refuse && matches!(endpoint.get::<bool>("metered"), Ok(Some(false))) {
        problems.add("a price by usage has no effect on a route with metered false");
    }
    let price = problems.keep(endpoint.object("price")).flatten();
    let price = price.and_then(|price| problems.keep(usage_file::read_price(&price, unknown)));
    if let (Some(name), Some(params)) = (price.as_ref().and_then(UsagePrice::model_param), params)
        && !params.iter().any(|param| param.location == ParamLocation::Path && *param.name == *name)
    {
        problems.add(format!("price.model.param: the route has no path parameter {name}"));
    }
    problems.or(|| Some(Pricing::ByUsage(Arc::new(price?))))
}

/// The price of a request before any modifier: `price` in credits, or `credit_weight` in base calls.
fn base_price(endpoint: &Object<'_>) -> Result<Credits, String> {
    let weight: Option<Weight> = endpoint.get("credit_weight")?;
    let Some(text) = endpoint.get::<&RawValue>("price")?.filter(|value| value.get() != "null") else {
        let weight = weight.unwrap_or(Weight::ONE);
        return weight.price(Multiplier::ONE).map_err(|error| format!("credit_weight: {error}"));
    };
    if weight.is_some() {
        return Err("price and credit_weight are both set; use only one".to_owned());
    }
    let wrong = |problem: String| format!("price: {problem}; write credits as a string, such as \"0.01\"");
    // A string, or a number whose digits are read exactly as written.
    let digits: String = serde_json::from_str(text.get()).unwrap_or_else(|_| text.get().to_owned());
    let price: Credits = digits.parse().map_err(|error| wrong(format!("{digits}: {error}")))?;
    if price.is_negative() || price > MAX_PRICE {
        return Err(wrong(format!("must be 0 to {MAX_PRICE}, not {price}")));
    }
    Ok(price)
}

fn lookback(
    modifier: &Object<'_>,
    base: Option<Credits>,
    params: Option<&[Param]>,
    unknown: UnknownKeys,
) -> Result<Pricing, Problems> {
    let mut problems = Problems::default();
    problems.keep(modifier.only(&LOOKBACK_KEYS, unknown));
    let name: Option<String> = problems.keep(required(modifier, "param"));
    let overflow = problems.keep(required(modifier, "overflow_multiplier"));
    let tiers = problems.keep(lookback_tiers(modifier, overflow, unknown));
    let given = |param: &&Param| param.location == ParamLocation::Path || param.required;
    let integer = |param: &Param| param.kind == ParamType::Integer && !param.array;
    if let (Some(name), Some(params)) = (&name, params)
        && !params.iter().filter(given).any(|param| param.name == *name && integer(param))
    {
        problems.add(format!("lookback parameter {name} must be a required integer parameter"));
    }
    let weight = base.and_then(Weight::of_price);
    if base.is_some() && weight.is_none() {
        problems.add("the price before a multiplier must not exceed that of weight 1000");
    }
    if let (Some(weight), Some(Some(tiers))) = (weight, &tiers)
        && tiers.multipliers().any(|multiplier| weight.price(multiplier).is_err())
    {
        problems.add("weight times multiplier must have at most six decimals");
    }
    problems.or(|| Some(Pricing::PerLookback { weight: weight?, param: name?, tiers: tiers?? }))
}

/// A member that a lookback multiplier cannot be without.
fn required<'j, T: Deserialize<'j>>(modifier: &Object<'j>, key: &str) -> Result<T, String> {
    modifier.get(key)?.ok_or_else(|| format!("lookback_multiplier needs {key}"))
}

/// The multipliers; empty if the one beyond the last tier could not be read.
fn lookback_tiers(
    modifier: &Object<'_>,
    overflow: Option<Multiplier>,
    unknown: UnknownKeys,
) -> Result<Option<LookbackTiers>, Problems> {
    let mut problems = Problems::default();
    let tier = |tier: &Object<'_>| {
        let mut problems = Problems::default();
        problems.keep(tier.only(&TIER_KEYS, unknown));
        let seconds = problems.keep(tier.require("max_seconds"));
        let multiplier = problems.keep(tier.require("multiplier"));
        problems.or(|| Some((seconds?, multiplier?)))
    };
    let steps = problems.all(modifier.list("tiers")?.iter().map(tier));
    let Some(steps) = steps else { return Err(problems) };
    match LookbackTiers::new(steps, overflow.unwrap_or(Multiplier::ONE)) {
        Some(tiers) => problems.or(|| Some(overflow.map(|_| tiers))),
        None => Err("tiers must not be empty, and their max_seconds must increase".to_owned().into()),
    }
}
