//! The catalogue: which routes there are, which one a request means, and what it costs.

mod file;
mod lenient;
mod object;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::credits::Credits;
use crate::path::RequestPath;
use crate::route::Route;
use crate::trie::{Found, Trie};
use file::CatalogueFile;
use lenient::StreamPrefix;
use object::UnknownKeys;

/// The routes that a gateway serves, read from a file of the `endpoints.json` shape.
#[derive(Debug, Clone)]
pub struct Catalogue {
    market: String,
    version: u64,
    routes: Vec<Route>,
    trie: Trie,
    stream_prefixes: Vec<StreamPrefix>,
    json: Arc<str>,
}

/// What is wrong with a catalogue file.
#[derive(Debug, thiserror::Error)]
pub enum CatalogueError {
    /// Not JSON of the expected shape.
    #[error("the route catalogue is not valid: {0}")]
    Json(#[from] serde_json::Error),
    /// The file itself breaks a rule.
    #[error("the route catalogue is not valid: {0}")]
    File(String),
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
    /// A parameter's value could be read as the name of another route.
    AmbiguousPath,
    /// Parameters do not fit: what is wrong, by name.
    InvalidParameters(BTreeMap<String, String>),
}

impl Catalogue {
    /// Reads the operator's own catalogue. Unknown keys are refused, so that a misspelt price is not a price of 1;
    /// keys that start with `x-` or `$` are free to use.
    ///
    /// ```
    /// use metering_core::Catalogue;
    ///
    /// let misspelt = r#"{"market": "M", "version": 1, "endpoints": [
    ///     {"path": "/report", "method": "GET", "metered": true, "credit_wieght": 72}]}"#;
    /// let error = Catalogue::from_json(misspelt).unwrap_err().to_string();
    /// assert!(error.contains("unknown key credit_wieght; did you mean credit_weight?"), "{error}");
    /// ```
    ///
    /// # Errors
    /// When it is not JSON of the `endpoints.json` shape, or a route breaks a rule; the message names route and key.
    pub fn from_json(text: &str) -> Result<Self, CatalogueError> {
        Self::read(text, UnknownKeys::Refuse)
    }

    /// Reads the catalogue that another server publishes. Unknown keys are ignored, since that server may be newer.
    ///
    /// # Errors
    /// As [`Catalogue::from_json`], unknown keys aside.
    pub fn from_published_json(text: &str) -> Result<Self, CatalogueError> {
        Self::read(text, UnknownKeys::Ignore)
    }

    fn read(text: &str, unknown: UnknownKeys) -> Result<Self, CatalogueError> {
        let CatalogueFile { market, version, routes } = CatalogueFile::read(text, unknown)?;
        let mut trie = Trie::default();
        for (index, route) in routes.iter().enumerate() {
            if !trie.insert(&route.template, &route.method, index) {
                let (method, path) = (route.method.to_string(), route.template.to_string());
                let problem = "another route has the same method and path".to_owned();
                return Err(CatalogueError::Route { method, path, problem });
            }
        }
        let stream_prefixes = StreamPrefix::of(&routes);
        Ok(Self { market, version, routes, trie, stream_prefixes, json: text.into() })
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
    /// [`RouteRefusal::UnknownRoute`], [`RouteRefusal::MethodNotAllowed`] or [`RouteRefusal::AmbiguousPath`].
    pub fn find(&self, method: &str, path: &RequestPath<'_>) -> Result<&Route, RouteRefusal> {
        match self.trie.find(path.segments(), method) {
            Found::Route(index) => Ok(&self.routes[index]),
            Found::OtherMethods(methods) => Err(RouteRefusal::MethodNotAllowed(methods)),
            Found::Ambiguous => Err(RouteRefusal::AmbiguousPath),
            Found::Nothing => Err(RouteRefusal::UnknownRoute),
        }
    }
}

/// The name in `{name}`.
pub(crate) fn param_name(segment: &str) -> Option<&str> {
    segment.strip_prefix('{')?.strip_suffix('}')
}

#[cfg(test)]
mod tests;
