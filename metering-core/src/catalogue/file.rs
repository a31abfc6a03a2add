//! Reads a catalogue file and checks the rules for its routes.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use super::CatalogueError;
use super::object::{Object, UnknownKeys, documentation};
use super::{schema, usage_file};
use crate::catalogue::path::{RequestPath, TargetError};
use crate::catalogue::price::{LookbackTiers, MAX_PRICE, Multiplier, Pricing, Weight};
use crate::catalogue::route::{Param, ParamLocation, ParamType, Route};
use crate::catalogue::trie::param_name;
use crate::money::credits::Credits;

const FILE_KEYS: [&str; 4] = ["market", "version", "description", "endpoints"];
const ROUTE_KEYS: [&str; 12] = [
    "path",
    "method",
    "metered",
    "sse",
    "description",
    "group",
    "params",
    "credit_weight",
    "price",
    "billing_modifier",
    "response",
    "example",
];
const PARAM_KEYS: [&str; 6] = ["name", "in", "type", "required", "description", "example"];
const LOOKBACK_KEYS: [&str; 4] = ["type", "param", "tiers", "overflow_multiplier"];
const STREAM_KEYS: [&str; 2] = ["type", "credits_per_connection"];
const TIER_KEYS: [&str; 2] = ["max_seconds", "multiplier"];

/// A valid catalogue file.
pub(super) struct CatalogueFile {
    pub(super) market: String,
    pub(super) version: u64,
    pub(super) routes: Vec<Route>,
}

impl CatalogueFile {
    pub(super) fn read(json: &str, unknown: UnknownKeys) -> Result<Self, CatalogueError> {
        // Parse the whole text first, so that a syntax error is reported with its line.
        let _: &RawValue = serde_json::from_str(json)?;
        let file = Object::read(json, "").map_err(CatalogueError::File)?;
        let top = || -> Result<_, String> {
            file.only(&FILE_KEYS, unknown)?;
            Ok((file.require("market")?, file.require("version")?, file.list("endpoints")?, file.has("endpoints")))
        };
        let (market, version, endpoints, present) = top().map_err(CatalogueError::File)?;
        if !present {
            return Err(CatalogueError::File("endpoints is missing".to_owned()));
        }
        let mut routes = Vec::with_capacity(endpoints.len());
        for (index, endpoint) in endpoints.iter().enumerate() {
            // Errors name the route by its own method and path, if those can be read.
            let text = |key: &str| endpoint.get::<String>(key).ok().flatten();
            let refuse = |problem: String| match (text("method"), text("path")) {
                (Some(method), Some(path)) => CatalogueError::Route { method, path, problem },
                _ => CatalogueError::File(format!("endpoints[{index}]: {problem}")),
            };
            routes.push(route(&endpoint.at_location(""), unknown).map_err(refuse)?);
        }
        Ok(Self { market, version, routes })
    }
}

fn route(endpoint: &Object<'_>, unknown: UnknownKeys) -> Result<Route, String> {
    endpoint.only(&ROUTE_KEYS, unknown)?;
    let (path, method): (String, String) = (endpoint.require("path")?, endpoint.require("method")?);
    let params = endpoint.list("params")?;
    let params = params.iter().map(|param| read_param(param, unknown)).collect::<Result<Vec<_>, _>>()?;
    check_template(&path, &params)?;
    if method.is_empty() || !method.bytes().all(|b| b.is_ascii_uppercase()) {
        return Err("the method must be an upper-case HTTP method".to_owned());
    }
    let pricing = pricing(endpoint, &params, unknown)?;
    let (response, example) = documented_response(endpoint, unknown)?;
    Ok(Route {
        method: method.into(),
        template: path.into(),
        description: documentation(endpoint.get("description"), unknown)?.unwrap_or_default(),
        params,
        metered: endpoint.require("metered")?,
        sse: endpoint.get("sse")?.unwrap_or_default(),
        pricing,
        group: documentation(endpoint.get::<String>("group"), unknown)?.filter(|group| !group.trim().is_empty()),
        response,
        example,
    })
}

/// The schema of a route's response, and an example of one. The example has to fit the schema.
fn documented_response(endpoint: &Object<'_>, unknown: UnknownKeys) -> Result<(Option<Value>, Option<Value>), String> {
    // Read as values first, which limits their depth: the checks below are recursive.
    let response: Option<Value> = documentation(endpoint.get("response"), unknown)?;
    let example: Option<Value> = documentation(endpoint.get("example"), unknown)?;
    if unknown == UnknownKeys::Ignore {
        return Ok((response.filter(Value::is_object), example));
    }
    if let Some(schema) = endpoint.object("response")? {
        schema::check(&schema)?;
    }
    if let (Some(schema), Some(example)) = (&response, &example) {
        schema::check_example(schema, example, "example")?;
    }
    Ok((response, example))
}

fn read_param(param: &Object<'_>, unknown: UnknownKeys) -> Result<Param, String> {
    param.only(&PARAM_KEYS, unknown)?;
    let kind: ParamType = param.require("type")?;
    Ok(Param {
        name: param.require("name")?,
        location: param.require("in")?,
        kind,
        required: param.get("required")?.unwrap_or_default(),
        description: documentation(param.get("description"), unknown)?.unwrap_or_default(),
        example: documentation(param_example(param, kind), unknown)?,
    })
}

/// The example of a parameter, as it is written in a request: the text of a JSON string, or a number or boolean as the
/// file has it.
fn param_example(param: &Object<'_>, kind: ParamType) -> Result<Option<String>, String> {
    let Some(value) = param.get::<&RawValue>("example")?.filter(|value| value.get() != "null") else { return Ok(None) };
    let text = read::<String>(value).unwrap_or_else(|| value.get().to_owned());
    match kind.problem_with(&text) {
        Some(problem) => Err(format!("{}: {problem}", param.location_of("example"))),
        None => Ok(Some(text)),
    }
}

fn check_template(template: &str, params: &[Param]) -> Result<(), String> {
    let literal = template.replace(['{', '}'], "");
    match RequestPath::parse(&literal) {
        Ok(path) if path.as_str() == literal => {}
        Ok(_) | Err(TargetError::NoLeadingSlash) => return Err("the path is not in normal form".to_owned()),
        Err(error) => return Err(error.to_string()),
    }
    let mut declared: BTreeSet<_> =
        params.iter().filter(|param| param.location == ParamLocation::Path).map(|param| param.name.as_str()).collect();
    let names: BTreeSet<_> = params.iter().map(|param| param.name.as_str()).collect();
    if names.len() != params.len() {
        return Err("two parameters have the same name".to_owned());
    }
    for segment in template[1..].split('/') {
        match param_name(segment) {
            _ if segment.is_empty() => return Err("the path has an empty segment".to_owned()),
            Some(name) if !declared.remove(name) => {
                return Err(format!("path parameter {name} is not declared exactly once"));
            }
            None if segment.contains(['{', '}']) => {
                return Err(format!("segment {segment} mixes text and a parameter"));
            }
            _ => {}
        }
    }
    match declared.first() {
        Some(name) => Err(format!("path parameter {name} is not in the path")),
        None => Ok(()),
    }
}

fn pricing(endpoint: &Object<'_>, params: &[Param], unknown: UnknownKeys) -> Result<Pricing, String> {
    if endpoint.get::<&RawValue>("price")?.is_some_and(|price| price.get().starts_with('{')) {
        return match (usage_pricing(endpoint, unknown), unknown) {
            (Err(_), UnknownKeys::Ignore) => Ok(Pricing::Unknown),
            (pricing, _) => pricing,
        };
    }
    let base = base_price(endpoint)?;
    let Some(modifier) = endpoint.object("billing_modifier")? else {
        return Ok(Pricing::PerRequest(base));
    };
    let kind: String = modifier.require("type")?;
    match kind.as_str() {
        "stream_session" => {
            modifier.only(&STREAM_KEYS, unknown)?;
            if endpoint.has("price") {
                return Err("price does not apply to a stream_session: its price is credits_per_connection".to_owned());
            }
            match modifier.get::<Credits>("credits_per_connection")? {
                Some(price) if !price.is_negative() => Ok(Pricing::PerConnection(price)),
                _ => Err("stream_session needs credits_per_connection, zero or more".to_owned()),
            }
        }
        "lookback_multiplier" => {
            modifier.only(&LOOKBACK_KEYS, unknown)?;
            lookback(&modifier, base, params, unknown)
        }
        other => Err(format!(
            "billing_modifier.type: unknown variant {other}, expected lookback_multiplier or stream_session"
        )),
    }
}

/// A price by usage: `price` is an object.
fn usage_pricing(endpoint: &Object<'_>, unknown: UnknownKeys) -> Result<Pricing, String> {
    if let Some(other) = ["credit_weight", "billing_modifier"].into_iter().find(|key| endpoint.has(key)) {
        return Err(format!("{other} does not apply to a price by usage; remove it, or write price as a string"));
    }
    if unknown == UnknownKeys::Refuse && !endpoint.require::<bool>("metered")? {
        return Err("a price by usage has no effect on a route with metered false".to_owned());
    }
    let price = endpoint.object("price")?.ok_or("price is missing")?;
    usage_file::read_price(&price, unknown).map(|price| Pricing::ByUsage(Arc::new(price)))
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
    let digits = read::<String>(text).unwrap_or_else(|| text.get().to_owned());
    let price: Credits = digits.parse().map_err(|error| wrong(format!("{digits}: {error}")))?;
    if price.is_negative() || price > MAX_PRICE {
        return Err(wrong(format!("must be 0 to {MAX_PRICE}, not {price}")));
    }
    Ok(price)
}

fn read<T: DeserializeOwned>(value: &RawValue) -> Option<T> {
    serde_json::from_str(value.get()).ok()
}

fn lookback(modifier: &Object<'_>, base: Credits, params: &[Param], unknown: UnknownKeys) -> Result<Pricing, String> {
    let name: String = modifier.get("param")?.ok_or("lookback_multiplier needs param")?;
    let overflow: Multiplier =
        modifier.get("overflow_multiplier")?.ok_or("lookback_multiplier needs overflow_multiplier")?;
    let tier = |tier: &Object<'_>| {
        tier.only(&TIER_KEYS, unknown)?;
        Ok((tier.require("max_seconds")?, tier.require("multiplier")?))
    };
    let steps = modifier.list("tiers")?.iter().map(tier).collect::<Result<Vec<_>, String>>()?;
    let tiers =
        LookbackTiers::new(steps, overflow).ok_or("tiers must not be empty, and their max_seconds must increase")?;
    let given = |param: &&Param| param.location == ParamLocation::Path || param.required;
    let integer = |param: &Param| param.kind == ParamType::Integer;
    if !params.iter().filter(given).any(|param| param.name == name && integer(param)) {
        return Err(format!("lookback parameter {name} must be a required integer parameter"));
    }
    let weight = Weight::of_price(base).ok_or("the price before a multiplier must not exceed that of weight 1000")?;
    if tiers.multipliers().any(|multiplier| weight.price(multiplier).is_err()) {
        return Err("weight times multiplier must have at most six decimals".to_owned());
    }
    Ok(Pricing::PerLookback { weight, param: name, tiers })
}
