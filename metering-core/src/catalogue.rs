//! The catalogue: all routes, and the lookup of a request's route and price.

mod amount;
pub(crate) mod body;
mod body_use;
mod buying_power;
mod by_unit;
mod byte_search;
mod credits_file;
mod error_shape;
mod errors_near;
mod estimate;
mod event_data;
mod file;
mod findings;
pub(crate) mod free_statuses;
mod header_patterns;
mod json_report;
mod json_scanner;
mod json_text;
mod json_tree;
mod lenient;
mod model_choice;
mod model_file;
mod model_names;
pub(crate) mod nearest;
mod object;
mod outcome;
mod overlap;
pub(crate) mod override_headers;
mod param_file;
pub(crate) mod path;
mod pointer;
mod preset;
pub(crate) mod price;
mod price_table;
mod price_words;
mod problem;
mod query;
mod ratio;
mod reading;
mod removed_headers;
mod report;
mod report_file;
mod report_headers;
mod report_reader;
pub(crate) mod request;
pub(crate) mod route;
mod route_upstreams;
mod schema;
mod served;
pub(crate) mod spelling;
mod stream_prefix;
pub(crate) mod template;
mod template_file;
mod token_units;
pub(crate) mod trie;
mod undeclared;
mod units;
mod upstream_file;
mod upstream_terms;
mod usage_file;
pub(crate) mod usage_price;
mod volume_file;
pub(crate) mod volume_tiers;
mod websocket;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::catalogue::trie::{Trie, TrieMatch};
use crate::money::credits::Credits;
use stream_prefix::StreamPrefix;

pub use body::{BodyRules, CheckedBody, HiddenEvents};
pub use body_use::BodyUse;
pub use error_shape::ErrorShape;
pub use free_statuses::FreeStatuses;
pub use header_patterns::{HeaderPattern, HeaderPatternError, HeaderPatterns};
pub use json_text::JsonText;
pub use model_choice::ModelRefusal;
pub use outcome::{BodyEnd, Ended, Settlement};
pub use override_headers::{
    GATEWAY_HEADER_PREFIXES, HOP_BY_HOP_HEADERS, is_hop_by_hop, is_of_gateway, is_same_header, overrides_request,
    starts_like_header,
};
pub use path::{RequestPath, TargetError};
pub use preset::ModelFiles;
pub(crate) use price::MAX_PRICE;
pub use price::{LookbackTiers, Multiplier, Pricing, Weight};
pub use price_table::prices_in_words;
pub use problem::{CatalogueError, CatalogueProblem};
pub use ratio::{Ratio, fixed_price};
pub use removed_headers::RemovedHeaders;
pub use report::{Report, ReportError};
pub use report_reader::ReportReader;
pub use route::{Param, ParamLocation, ParamType, QueryRule, Route};
pub use route_upstreams::{RouteUpstreams, is_upstream_name};
pub use template::TemplateSegment;
pub use units::{Count, Counts, UnitPrice};
pub use upstream_terms::Renamed;
pub use usage_price::{CostError, UsagePrice};
pub use volume_tiers::{VolumeTier, VolumeTiers};

/// The routes that a gateway serves, read from a file in the format of `endpoints.json`. Clones share them.
///
/// ```
/// use metering_core::Catalogue;
///
/// let catalogue = Catalogue::from_json(
///     r#"{"market": "M", "version": 1, "endpoints": [
///         {"path": "/price", "method": "GET", "metered": true, "price": "0.01"},
///         {"path": "/status", "method": "GET", "metered": false}]}"#,
/// )?;
/// assert_eq!(catalogue.routes().len(), 2);
/// assert_eq!(catalogue.prefixes().into_iter().collect::<Vec<_>>(), ["price", "status"]);
/// let route = catalogue.by_template("GET", "/price").ok_or("there is no such route")?;
/// assert_eq!(route.price(0).to_string(), "0.01");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Catalogue {
    market: String,
    version: u64,
    routes: Arc<[Route]>,
    trie: Arc<Trie>,
    stream_prefixes: Arc<[StreamPrefix]>,
    json: Arc<str>,
}

/// A request's route and price.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved<'c> {
    /// The route.
    pub route: &'c Route,
    /// The request's price.
    pub price: Credits,
    /// The query to forward, in normal form.
    pub query: Option<String>,
}

/// Why a request has no route or price.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RouteRefusal {
    /// No route has this path.
    UnknownRoute,
    /// The path has only these methods.
    MethodNotAllowed(Vec<String>),
    /// A parameter's value could be read as the name of another route.
    AmbiguousPath,
    /// The path has an encoded slash, and the route does not accept those.
    EncodedSlash,
    /// Parameters are not valid: the problem with each, by name.
    InvalidParameters(BTreeMap<String, String>),
}

impl Default for Catalogue {
    /// A catalogue without routes.
    fn default() -> Self {
        Self {
            market: String::new(),
            version: 0,
            routes: Arc::default(),
            trie: Arc::default(),
            stream_prefixes: Arc::default(),
            json: r#"{"market":"","version":0,"endpoints":[]}"#.into(),
        }
    }
}

impl Catalogue {
    /// Its JSON text: as it was read, with presets and models expanded.
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

    /// Whether the operator has chosen the units that describe plans: some route with a price has a `unit`.
    #[must_use]
    pub fn has_units(&self) -> bool {
        self.routes.iter().any(|route| route.unit.is_some() && !route.is_free())
    }

    /// All routes, in the file's order.
    #[must_use]
    pub fn routes(&self) -> &[Route] {
        &self.routes
    }

    /// What an amount of credits buys, in plain words. Each text is an alternative, such as `1,000 searches` and `about
    /// 330 reports`. Counts the routes that have a `unit`, or else those of `most_used`, which are routes of this
    /// catalogue, the most used first; if there are none, the first routes with different prices.
    #[must_use]
    pub fn buys(&self, credits: Credits, most_used: &[&Route]) -> Vec<String> {
        buying_power::of(&self.routes, most_used, credits)
    }

    /// The first segments of all paths, which a gateway must route to this catalogue.
    #[must_use]
    pub fn prefixes(&self) -> BTreeSet<&str> {
        self.routes.iter().filter_map(|route| route.template.split('/').nth(1)).collect()
    }

    /// Whether the path's first non-empty segment matches the first segment of some route.
    ///
    /// Empty segments are skipped because some routers skip them: `//mpp/x` must not be treated differently from
    /// `/mpp/x`.
    ///
    /// ```
    /// use metering_core::Catalogue;
    /// use metering_core::catalogue::RequestPath;
    ///
    /// let catalogue = Catalogue::from_json(
    ///     r#"{"market": "M", "version": 1, "endpoints": [{"path": "/mpp/price", "method": "GET", "metered": true}]}"#,
    /// )?;
    /// assert!(catalogue.covers(&RequestPath::parse("/mpp/unheard-of")?));
    /// assert!(!catalogue.covers(&RequestPath::parse("/health")?));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn covers(&self, path: &RequestPath<'_>) -> bool {
        path.segments().find(|segment| !segment.is_empty()).is_some_and(|first| self.trie.covers(first))
    }

    /// The route with this method and template.
    #[must_use]
    pub fn by_template(&self, method: &str, template: &str) -> Option<&Route> {
        self.routes.iter().find(|route| &*route.template == template && &*route.method == method)
    }

    /// Normalises the path of a request, as [`RequestPath::parse`] does. An encoded slash is accepted in the parameters
    /// of routes with `encoded_slash`, unless the path would be that of another route if it were decoded.
    ///
    /// ```
    /// use metering_core::Catalogue;
    ///
    /// let catalogue = Catalogue::from_json(
    ///     r#"{"market": "M", "version": 1, "endpoints": [
    ///         {"path": "/models/{model}", "method": "GET", "metered": true, "encoded_slash": true,
    ///          "params": [{"name": "model", "in": "path", "type": "string"}]}]}"#,
    /// )?;
    /// let path = catalogue.path("/models/openai%2fx")?;
    /// assert_eq!(path.as_str(), "/models/openai%2Fx");
    /// assert!(catalogue.find("GET", &path).is_ok());
    /// assert!(catalogue.path("/models%2Fx").is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When the path could be read in more than one way.
    pub fn path<'r>(&self, raw: &'r str) -> Result<RequestPath<'r>, TargetError> {
        let strict = RequestPath::parse(raw);
        if strict != Err(TargetError::EncodedSeparator) {
            return strict;
        }
        let with_slashes = self.routes.iter().filter(|route| route.encoded_slash);
        let methods: BTreeSet<_> = with_slashes.map(|route| &*route.method).collect();
        if methods.is_empty() {
            return strict;
        }
        let path = RequestPath::parse_with_slashes(raw)?;
        let is_accepted = methods.into_iter().any(|method| self.find(method, &path).is_ok());
        if !is_accepted {
            return strict;
        }
        let decoded = path.as_str().replace("%2F", "/");
        match self.trie.find(&decoded[1..], "") {
            TrieMatch::Nothing => Ok(path),
            _ => Err(TargetError::ReadsLikeOtherRoute),
        }
    }

    /// How an error looks to the client of a request that may match no route: the shape shared by the routes with the
    /// longest common prefix, if they agree.
    ///
    /// ```
    /// use metering_core::Catalogue;
    /// use metering_core::catalogue::ErrorShape;
    ///
    /// let catalogue = Catalogue::from_json(
    ///     r#"{"market": "M", "version": 1, "endpoints": [
    ///         {"path": "/v1/chat/completions", "method": "POST", "metered": true, "errors": "openai"},
    ///         {"path": "/v1/messages", "method": "POST", "metered": true, "errors": "anthropic"}]}"#,
    /// )?;
    /// assert_eq!(catalogue.errors_near("/v1/chat/completion"), ErrorShape::OpenAi);
    /// assert_eq!(catalogue.errors_near("/v1/messages/batches"), ErrorShape::Anthropic);
    /// assert_eq!(catalogue.errors_near("/v1/models"), ErrorShape::Own); // it could be either
    /// # Ok::<(), metering_core::catalogue::CatalogueError>(())
    /// ```
    #[must_use]
    pub fn errors_near(&self, path: &str) -> ErrorShape {
        errors_near::near(path, &self.routes)
    }

    /// Finds a request's route, checks its parameters and computes its price.
    ///
    /// ```
    /// use metering_core::catalogue::RequestPath;
    /// use metering_core::{Catalogue, Credits};
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
    /// # Ok::<(), metering_core::catalogue::CatalogueError>(())
    /// ```
    ///
    /// # Errors
    /// When no route matches or the parameters are not valid for it.
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

    /// Finds a request's route by path and method only.
    ///
    /// ```
    /// use metering_core::Catalogue;
    /// use metering_core::catalogue::{RequestPath, RouteRefusal};
    ///
    /// let catalogue = Catalogue::from_json(
    ///     r#"{"market": "M", "version": 1, "endpoints": [{"path": "/price", "method": "GET", "metered": true}]}"#,
    /// )?;
    /// let path = RequestPath::parse("/price")?;
    /// assert_eq!(&*catalogue.find("GET", &path).map_err(|_| "no such route")?.template, "/price");
    /// assert_eq!(catalogue.find("PUT", &path), Err(RouteRefusal::MethodNotAllowed(vec!["GET".to_owned()])));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`RouteRefusal::UnknownRoute`], [`RouteRefusal::MethodNotAllowed`], [`RouteRefusal::AmbiguousPath`] or
    /// [`RouteRefusal::EncodedSlash`].
    pub fn find(&self, method: &str, path: &RequestPath<'_>) -> Result<&Route, RouteRefusal> {
        match self.trie.find(&path.as_str()[1..], method) {
            TrieMatch::Route(index) if path.has_encoded_slash() && !self.routes[index].encoded_slash => {
                Err(RouteRefusal::EncodedSlash)
            }
            TrieMatch::Route(index) => Ok(&self.routes[index]),
            TrieMatch::OtherMethods(methods) => Err(RouteRefusal::MethodNotAllowed(methods)),
            TrieMatch::Ambiguous => Err(RouteRefusal::AmbiguousPath),
            TrieMatch::Nothing => Err(RouteRefusal::UnknownRoute),
        }
    }
}

#[cfg(test)]
mod tests;
