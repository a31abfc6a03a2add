//! The catalogue: which routes there are, which one a request means, and what it costs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Deserialize;

use crate::credits::Credits;
use crate::path::{RequestPath, TargetError};
use crate::price::{LookbackTiers, Multiplier, Pricing, Weight};
use crate::route::{Param, ParamPlace, ParamType, Route};
use crate::trie::{Found, Trie};

/// The routes that a gateway serves, read from a file of the `endpoints.json` shape.
#[derive(Debug, Clone)]
pub struct Catalogue {
    market: String,
    version: u64,
    routes: Vec<Route>,
    trie: Trie,
    json: Arc<str>,
}

/// What is wrong with a catalogue file.
#[derive(Debug, thiserror::Error)]
pub enum CatalogueError {
    /// Not JSON of the expected shape.
    #[error("the route catalogue is not valid: {0}")]
    Json(#[from] serde_json::Error),
    /// A route breaks a rule.
    #[error("route {method} {path} of the catalogue: {problem}")]
    Route {
        /// The route's method.
        method: String,
        /// The route's path.
        path: String,
        /// Which rule.
        problem: String,
    },
}

/// What a request means and costs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved<'c> {
    /// The route.
    pub route: &'c Route,
    /// What the request costs.
    pub price: Credits,
    /// The query to forward, in normal form.
    pub query: Option<String>,
}

/// Why a request means nothing here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RouteRefusal {
    /// No route has that path.
    UnknownRoute,
    /// Routes have that path, with these methods only.
    MethodNotAllowed(Vec<String>),
    /// Parameters do not fit: what is wrong, by name.
    InvalidParameters(BTreeMap<String, String>),
}

impl Catalogue {
    /// Reads a catalogue. Unknown fields are ignored, so that files made for other tools can be used as they are.
    ///
    /// # Errors
    /// When it is not JSON of the `endpoints.json` shape, or a route breaks a rule; the message names the route.
    pub fn from_json(text: &str) -> Result<Self, CatalogueError> {
        let file: CatalogueFile = serde_json::from_str(text)?;
        let mut routes = Vec::with_capacity(file.endpoints.len());
        let mut trie = Trie::default();
        for endpoint in file.endpoints {
            let (method, path) = (endpoint.method.clone(), endpoint.path.clone());
            let refuse = |problem: String| CatalogueError::Route { method, path, problem };
            let route = match endpoint.into_route() {
                Ok(route) => route,
                Err(problem) => return Err(refuse(problem)),
            };
            if !trie.insert(&route.template, &route.method, routes.len()) {
                return Err(refuse("another route has the same method and path".to_owned()));
            }
            routes.push(route);
        }
        Ok(Self { market: file.market, version: file.version, routes, trie, json: text.into() })
    }

    /// The text that it was read from.
    #[must_use]
    pub fn json(&self) -> &str {
        &self.json
    }

    /// The market the catalogue is for.
    #[must_use]
    pub fn market(&self) -> &str {
        &self.market
    }

    /// The catalogue's version.
    #[must_use]
    pub const fn version(&self) -> u64 {
        self.version
    }

    /// All routes, in the file's order.
    #[must_use]
    pub fn routes(&self) -> &[Route] {
        &self.routes
    }

    /// The first segments of all paths: what a gateway answers for.
    #[must_use]
    pub fn prefixes(&self) -> BTreeSet<&str> {
        self.routes.iter().filter_map(|route| route.template.split('/').nth(1)).collect()
    }

    /// Whether some route's first segment takes the path's first one that is not empty.
    ///
    /// Empty segments are skipped because routers are known to: `//mpp/x` must not pass for something else than
    /// `/mpp/x`.
    #[must_use]
    pub fn covers(&self, path: &RequestPath<'_>) -> bool {
        path.segments().find(|segment| !segment.is_empty()).is_some_and(|first| self.trie.covers(first))
    }

    /// The route of that template and method.
    #[must_use]
    pub fn by_template(&self, method: &str, template: &str) -> Option<&Route> {
        self.routes.iter().find(|route| &*route.template == template && &*route.method == method)
    }

    /// Finds a request's route, checks its parameters and computes its price.
    ///
    /// ```
    /// use metering_core::{Catalogue, Credits, RequestPath};
    ///
    /// let catalogue = Catalogue::from_json(
    ///     r#"{"market": "M", "version": 1, "endpoints": [{"path": "/mpp/ethPrice/{block}", "method": "GET",
    ///         "metered": true, "sse": false, "description": "", "credit_weight": 10,
    ///         "params": [{"name": "block", "in": "path", "type": "integer", "required": true}]}]}"#,
    /// )?;
    /// let path = RequestPath::parse("/mpp/ethPrice/19000000").unwrap();
    /// let resolved = catalogue.resolve("GET", &path, None).unwrap();
    /// assert_eq!(resolved.price.atoms(), 10 * Credits::BASE_CALL.atoms());
    /// assert!(catalogue.resolve("GET", &path, Some("from=1")).is_err());
    /// # Ok::<(), metering_core::CatalogueError>(())
    /// ```
    ///
    /// # Errors
    /// When no route is meant or its parameters do not fit.
    pub fn resolve(
        &self,
        method: &str,
        path: &RequestPath<'_>,
        query: Option<&str>,
    ) -> Result<Resolved<'_>, RouteRefusal> {
        let route = self.find(method, path)?;
        let (price, query) = route.read(path, query)?;
        Ok(Resolved { route, price, query })
    }

    /// Finds a request's route, by path and method alone.
    ///
    /// # Errors
    /// [`RouteRefusal::UnknownRoute`] or [`RouteRefusal::MethodNotAllowed`].
    pub fn find(&self, method: &str, path: &RequestPath<'_>) -> Result<&Route, RouteRefusal> {
        match self.trie.find(path.segments(), method) {
            Found::Route(index) => Ok(&self.routes[index]),
            Found::OtherMethods(methods) => Err(RouteRefusal::MethodNotAllowed(methods)),
            Found::Nothing => Err(RouteRefusal::UnknownRoute),
        }
    }
}

/// The name in `{name}`.
pub(crate) fn param_name(segment: &str) -> Option<&str> {
    segment.strip_prefix('{')?.strip_suffix('}')
}

/// The file's shape.
#[derive(Debug, Deserialize)]
struct CatalogueFile {
    market: String,
    version: u64,
    endpoints: Vec<Endpoint>,
}

#[derive(Debug, Deserialize)]
struct Endpoint {
    path: String,
    method: String,
    metered: bool,
    #[serde(default)]
    sse: bool,
    #[serde(default)]
    description: String,
    #[serde(default)]
    params: Vec<Param>,
    #[serde(default = "weight_one")]
    credit_weight: Weight,
    #[serde(default)]
    billing_modifier: Option<BillingModifier>,
}

fn weight_one() -> Weight {
    Weight::ONE
}

/// As one struct rather than a tagged enum: serde buffers tagged enums, which would send decimals through a float.
#[derive(Debug, Deserialize)]
struct BillingModifier {
    #[serde(rename = "type")]
    kind: ModifierKind,
    param: Option<String>,
    #[serde(default)]
    tiers: Vec<Tier>,
    overflow_multiplier: Option<Multiplier>,
    credits_per_connection: Option<Credits>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ModifierKind {
    LookbackMultiplier,
    StreamSession,
}

#[derive(Debug, Deserialize)]
struct Tier {
    max_seconds: u64,
    multiplier: Multiplier,
}

impl Endpoint {
    fn into_route(self) -> Result<Route, String> {
        check_template(&self.path, &self.params)?;
        if self.method.is_empty() || !self.method.bytes().all(|b| b.is_ascii_uppercase()) {
            return Err("the method must be an upper-case HTTP method".to_owned());
        }
        let pricing = pricing(self.credit_weight, self.billing_modifier, &self.params)?;
        Ok(Route {
            method: self.method.into(),
            template: self.path.into(),
            description: self.description,
            params: self.params,
            metered: self.metered,
            sse: self.sse,
            pricing,
        })
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
        params.iter().filter(|param| param.place == ParamPlace::Path).map(|param| param.name.as_str()).collect();
    let names: BTreeSet<_> = params.iter().map(|param| param.name.as_str()).collect();
    if names.len() != params.len() {
        return Err("two parameters have the same name".to_owned());
    }
    for segment in template[1..].split('/') {
        match param_name(segment) {
            _ if segment.is_empty() => return Err("the path has an empty segment".to_owned()),
            Some(name) if !declared.remove(name) => return Err(format!("path parameter {name} is not declared once")),
            None if segment.contains(['{', '}']) => return Err(format!("segment {segment} mixes text and parameter")),
            _ => {}
        }
    }
    match declared.first() {
        Some(name) => Err(format!("path parameter {name} is not in the path")),
        None => Ok(()),
    }
}

fn pricing(weight: Weight, modifier: Option<BillingModifier>, params: &[Param]) -> Result<Pricing, String> {
    let Some(modifier) = modifier else {
        let price = weight.price(Multiplier::ONE).expect("a weight times one is whole");
        return Ok(Pricing::PerRequest(price));
    };
    match modifier.kind {
        ModifierKind::StreamSession => match modifier.credits_per_connection {
            Some(price) if !price.is_negative() => Ok(Pricing::PerConnection(price)),
            _ => Err("stream_session needs credits_per_connection, zero or more".to_owned()),
        },
        ModifierKind::LookbackMultiplier => {
            let name = modifier.param.ok_or("lookback_multiplier needs param")?;
            let overflow = modifier.overflow_multiplier.ok_or("lookback_multiplier needs overflow_multiplier")?;
            let steps = modifier.tiers.into_iter().map(|tier| (tier.max_seconds, tier.multiplier)).collect();
            let tiers = LookbackTiers::new(steps, overflow).ok_or("tiers must rise by max_seconds")?;
            let given = |param: &&Param| param.place == ParamPlace::Path || param.required;
            let integer = |param: &Param| param.kind == ParamType::Integer;
            if !params.iter().filter(given).any(|param| param.name == name && integer(param)) {
                return Err(format!("lookback parameter {name} must be a required integer parameter"));
            }
            if tiers.multipliers().any(|multiplier| weight.price(multiplier).is_err()) {
                return Err("weight times multiplier must have at most six decimals".to_owned());
            }
            Ok(Pricing::PerLookback { weight, param: name, tiers })
        }
    }
}

#[cfg(test)]
mod tests;
