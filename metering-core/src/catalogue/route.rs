//! A metered route: its template, its parameters and its price.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::catalogue::body::BodyRules;
use crate::catalogue::error_shape::ErrorShape;
use crate::catalogue::free_statuses::FreeStatuses;
use crate::catalogue::json_text::JsonText;
use crate::catalogue::price::{MAX_PRICE, Pricing};
use crate::catalogue::removed_headers::RemovedHeaders;
use crate::catalogue::route_upstreams::RouteUpstreams;
use crate::catalogue::usage_price::UsagePrice;
use crate::catalogue::volume_tiers::VolumeTiers;
use crate::money::credits::Credits;
use crate::money::decimal;
use crate::usage::{ClientSource, UsageLine};

/// Where a parameter is in the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ParamLocation {
    /// In the path, as `{name}`.
    Path,
    /// In the query.
    Query,
}

/// The type that a parameter's value must have.
///
/// ```
/// use metering_core::catalogue::ParamType;
///
/// assert_eq!(ParamType::Integer.problem_with("42"), None);
/// assert_eq!(ParamType::Integer.problem_with("042"), Some("must be an integer, such as 42"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ParamType {
    /// Any text without control characters.
    String,
    /// A decimal 64-bit integer, without leading zeros or a plus sign.
    Integer,
    /// A JSON number.
    Number,
    /// `true` or `false` (case-insensitive), `1` or `0`.
    Boolean,
}

impl ParamType {
    /// Why `value` is not valid for the type; `None` when it is valid.
    #[must_use]
    pub fn problem_with(self, value: &str) -> Option<&'static str> {
        let (fits, problem) = match self {
            Self::String => (
                !value.is_empty() && !value.chars().any(char::is_control),
                "must be text, not empty and without control characters",
            ),
            Self::Integer => (is_integer(value), "must be an integer, such as 42"),
            Self::Number => (decimal::parse_exact(value).is_ok(), "must be a number, such as 42 or 0.5"),
            Self::Boolean => {
                let words = ["true", "false", "1", "0"];
                (words.iter().any(|word| value.eq_ignore_ascii_case(word)), "must be true or false")
            }
        };
        (!fits).then_some(problem)
    }
}

/// Accepts one spelling per number: otherwise, an upstream that reads `010` as eight would get a request priced as ten.
fn is_integer(value: &str) -> bool {
    let digits = value.strip_prefix('-').unwrap_or(value);
    (digits == "0" && value == "0" || !digits.starts_with('0'))
        && digits.bytes().all(|b| b.is_ascii_digit())
        && value.parse::<i64>().is_ok()
}

/// Which query parameters a route accepts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QueryRule {
    /// The parameters that it declares.
    #[default]
    Declared,
    /// Any, in their normal encoding. Declared ones are checked.
    Any,
}

/// A declared parameter of a route.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Param {
    /// Its name.
    pub name: String,
    /// Where it is in the request.
    #[serde(rename = "in")]
    pub location: ParamLocation,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: ParamType,
    /// Whether a query may have it several times.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub array: bool,
    /// Whether a request without the parameter is rejected; path parameters are always required.
    #[serde(default)]
    pub required: bool,
    /// Its meaning, for documentation; empty when the catalogue has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// A valid value, as written in a request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub example: Option<String>,
}

/// A route of the catalogue.
///
/// ```
/// use metering_core::catalogue::{ParamLocation, ParamType};
/// use metering_core::{Catalogue, ClientSource};
///
/// let catalogue = Catalogue::from_json(
///     r#"{"market": "M", "version": 1, "endpoints": [
///         {"path": "/quotes/{number}", "method": "GET", "metered": true, "credit_weight": 72,
///          "params": [{"name": "number", "in": "path", "type": "integer", "required": true}]}]}"#,
/// )?;
/// let [route] = catalogue.routes() else { panic!("the file has one route") };
/// assert_eq!(route.price(0).to_string(), "0.01");
/// assert_eq!(&*route.usage_line(ClientSource::Direct).route_template, "/quotes/{number}");
/// assert_eq!(route.param(ParamLocation::Path, "number").map(|param| param.kind), Some(ParamType::Integer));
/// # Ok::<(), metering_core::catalogue::CatalogueError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// The HTTP method, upper-case.
    pub method: Arc<str>,
    /// The path with `{name}` for each path parameter.
    pub template: Arc<str>,
    /// Its purpose.
    pub description: String,
    /// Its parameters.
    pub params: Vec<Param>,
    /// Which query parameters it accepts.
    pub query: QueryRule,
    /// Whether values of its path parameters may have encoded slashes. They are forwarded unchanged.
    pub encoded_slash: bool,
    /// Whether requests need a key and are charged. Other routes are open to any client.
    pub metered: bool,
    /// Whether its responses are server-sent events.
    pub sse: bool,
    /// Whether its requests open WebSocket connections (RFC 6455), and no others are served.
    pub websocket: bool,
    /// The document that the gateway responds with itself, without the upstream.
    pub serve: Option<JsonText>,
    /// How its errors look.
    pub errors: ErrorShape,
    /// Whether a retry after a cut-off gets the response of the first attempt.
    pub replay: bool,
    /// Whether its charged responses have a signed receipt even if their clients did not request one.
    pub receipt: bool,
    /// Whether the catalogue lets its requests be served while their charge is flushed; see [`Route::overlaps`].
    pub overlap: Option<bool>,
    /// Which responses cost nothing although they are passed on.
    pub free_statuses: FreeStatuses,
    /// How its requests are priced.
    pub pricing: Pricing,
    /// The headers of its requests and responses that do not pass the gateway.
    pub removed_headers: RemovedHeaders,
    /// Which upstreams serve it; `None` for the gateway's default one.
    pub upstreams: Option<RouteUpstreams>,
    /// The heading under which documentation lists it.
    pub group: Option<String>,
    /// The name of one request, as a plain noun, such as `search`. Plans show how many of these they buy.
    pub unit: Option<String>,
    /// The JSON Schema of a response; for a stream, of the data of one event.
    pub response: Option<JsonText>,
    /// An example of a response; for a stream, of the data of one event.
    pub example: Option<JsonText>,
    /// The request body that it accepts; `None` for any body, which is forwarded unchanged.
    pub body: Option<Arc<BodyRules>>,
}

impl Route {
    /// The usage line of the route's requests.
    #[must_use]
    pub fn usage_line(&self, source: ClientSource) -> UsageLine {
        UsageLine { route_template: Arc::clone(&self.template), http_method: Arc::clone(&self.method), source }
    }

    /// The declared parameter with this location and name.
    #[must_use]
    pub fn param(&self, location: ParamLocation, name: &str) -> Option<&Param> {
        self.params.iter().find(|param| param.location == location && param.name == name)
    }

    /// Whether its requests may be served as soon as their charge is decided, while it is flushed to disk: by default
    /// those for GET and HEAD. Always `false` for event streams, WebSocket connections and prices by usage.
    #[must_use]
    pub fn overlaps(&self) -> bool {
        let is_safe = matches!(&*self.method, "GET" | "HEAD");
        let is_plain = self.metered && !self.sse && !self.websocket && self.usage_price().is_none();
        is_plain && self.overlap.unwrap_or(is_safe)
    }

    /// The price of a request. `lookback_seconds` only matters for [`Pricing::PerLookback`]. For [`Pricing::ByVolume`]
    /// it is the highest tier's, for [`Pricing::ByUsage`] the maximum hold, and for [`Pricing::Unknown`] the highest
    /// price that a route can have.
    #[must_use]
    pub fn price(&self, lookback_seconds: u64) -> Credits {
        match &self.pricing {
            Pricing::PerRequest(price) | Pricing::PerConnection(price) => *price,
            Pricing::PerLookback { weight, tiers, .. } => weight
                .price(tiers.multiplier(lookback_seconds))
                .expect("every tier of a loaded catalogue has a price in whole atoms"),
            Pricing::ByVolume(tiers) => tiers.max(),
            Pricing::ByUsage(price) => price.max(),
            Pricing::Unknown => MAX_PRICE,
        }
    }

    /// The volume tiers, if that is how the route is priced.
    #[must_use]
    pub const fn volume_tiers(&self) -> Option<&Arc<VolumeTiers>> {
        match &self.pricing {
            Pricing::ByVolume(tiers) => Some(tiers),
            _ => None,
        }
    }

    /// The price by usage, if that is how the route is priced. [`UsagePrice`] has an example.
    #[must_use]
    pub const fn usage_price(&self) -> Option<&Arc<UsagePrice>> {
        match &self.pricing {
            Pricing::ByUsage(price) => Some(price),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameter_values_must_match_their_type() {
        use ParamType::{Boolean, Integer, Number, String};
        // type, value, fits
        let table = [
            (Integer, "0", true),
            (Integer, "42", true),
            (Integer, "-7", true),
            (Integer, "9223372036854775807", true),
            (Integer, "9223372036854775808", false),
            (Integer, "007", false),
            (Integer, "-0", false),
            (Integer, "+5", false),
            (Integer, "1.0", false),
            (Integer, "1e3", false),
            (Integer, "0x10", false),
            (Integer, "", false),
            (Integer, "-", false),
            (Integer, "٣", false),
            (Number, "1.5", true),
            (Number, "-2e3", true),
            (Number, "one", false),
            (Boolean, "true", true),
            (Boolean, "False", true),
            (Boolean, "0", true),
            (Boolean, "yes", false),
            (Boolean, "", false),
            (String, "0xabc", true),
            (String, "", false),
            (String, "a\nb", false),
        ];
        for (kind, value, fits) in table {
            assert_eq!(kind.problem_with(value).is_none(), fits, "{kind:?} {value:?}");
        }
    }
}
