//! Reads a request's parameters, checks them against the route's declarations, and prices the request.

use std::collections::BTreeMap;

use crate::catalogue::RouteRefusal;

use crate::catalogue::path::RequestPath;
use crate::catalogue::price::Pricing;
use crate::catalogue::query::{decode, push_encoded, query_pairs};
use crate::catalogue::route::{Param, ParamLocation, QueryRule, Route};
use crate::catalogue::template::TemplateSegment;
use crate::catalogue::undeclared;
use crate::money::credits::Credits;

impl Route {
    /// Checks the parameters of a request for this route. Returns its price and its query in normal form.
    ///
    /// ```
    /// use metering_core::Catalogue;
    /// use metering_core::catalogue::RequestPath;
    ///
    /// let catalogue = Catalogue::from_json(
    ///     r#"{"market": "M", "version": 1, "endpoints": [
    ///         {"path": "/search", "method": "GET", "metered": true, "price": "0.5",
    ///          "params": [{"name": "text", "in": "query", "type": "string", "required": true}]}]}"#,
    /// )?;
    /// let path = RequestPath::parse("/search")?;
    /// let route = catalogue.find("GET", &path).map_err(|_| "no such route")?;
    /// let (price, query) = route.read(&path, Some("text=caf%c3%a9")).map_err(|_| "not valid")?;
    /// assert_eq!((price.to_string().as_str(), query.as_deref()), ("0.5", Some("text=caf%C3%A9")));
    /// assert!(route.read(&path, None).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`RouteRefusal::InvalidParameters`], or [`RouteRefusal::UnknownRoute`] for a path that does not fit the
    /// template.
    pub fn read(&self, path: &RequestPath<'_>, query: Option<&str>) -> Result<(Credits, Option<String>), RouteRefusal> {
        let mut values = Values { route: self, lookback_seconds: 0, problems: BTreeMap::new() };
        values.read_path(path).ok_or(RouteRefusal::UnknownRoute)?;
        let query = values.read_query(query.unwrap_or_default());
        if !values.problems.is_empty() {
            return Err(RouteRefusal::InvalidParameters(values.problems));
        }
        Ok((self.price(values.lookback_seconds), query))
    }
}

/// A request's parameters while they are being read.
struct Values<'c> {
    route: &'c Route,
    lookback_seconds: u64,
    problems: BTreeMap<String, String>,
}

impl Values<'_> {
    /// `None` if the path does not fit the template.
    fn read_path(&mut self, path: &RequestPath<'_>) -> Option<()> {
        let route = self.route;
        let mut segments = path.segments();
        for piece in route.segments() {
            let segment = segments.next()?;
            let name = match piece {
                TemplateSegment::Literal(text) if text == segment => continue,
                TemplateSegment::Literal(_) => return None,
                TemplateSegment::Param { name, .. } => name,
            };
            let value = piece.value(segment).filter(|value| !value.is_empty())?;
            match (route.param(ParamLocation::Path, name), decode(value, false)) {
                (Some(param), Ok(value)) => self.read(param, &value),
                (_, Err(error)) => self.refuse(name, &error.to_string()),
                (None, _) => unreachable!("the catalogue declares every path parameter"),
            }
        }
        segments.next().is_none().then_some(())
    }

    /// Checks a query and returns its normal form: percent-encoded the same way, with declared parameters only unless
    /// the route accepts any, and each declared one once unless it may repeat.
    fn read_query(&mut self, query: &str) -> Option<String> {
        let route = self.route;
        let pairs = match query_pairs(query) {
            Ok(pairs) => pairs,
            Err(error) => {
                self.refuse("query", &error.to_string());
                return None;
            }
        };
        for (index, (name, value)) in pairs.iter().enumerate() {
            match route.param(ParamLocation::Query, name) {
                None if route.query == QueryRule::Any => {
                    if let Some(problem) = undeclared::problem(route, name, value) {
                        self.refuse(name, problem);
                    }
                }
                None => self.refuse(name, "this route has no such parameter"),
                Some(param) if !param.array && pairs[..index].iter().any(|(earlier, _)| earlier == name) => {
                    self.refuse(name, "must be given once");
                }
                Some(param) => self.read(param, value),
            }
        }
        for param in route.params.iter().filter(|param| param.location == ParamLocation::Query && param.required) {
            if !pairs.iter().any(|(name, _)| *name == param.name) {
                self.refuse(&param.name, "is required");
            }
        }
        let mut normal = String::with_capacity(query.len());
        for (name, value) in &pairs {
            if !normal.is_empty() {
                normal.push('&');
            }
            push_encoded(name, &mut normal);
            normal.push('=');
            push_encoded(value, &mut normal);
        }
        (!normal.is_empty()).then_some(normal)
    }

    fn read(&mut self, param: &Param, value: &str) {
        if let Some(problem) = param.kind.problem_with(value) {
            return self.refuse(&param.name, problem);
        }
        if let Pricing::PerLookback { param: lookback, .. } = &self.route.pricing
            && *lookback == param.name
        {
            match value.parse() {
                Ok(seconds) => self.lookback_seconds = seconds,
                Err(_) => self.refuse(&param.name, "must be a number of seconds, zero or more"),
            }
        }
    }

    fn refuse(&mut self, name: &str, problem: &str) {
        // Names come from the request, so limit the length that is echoed.
        const MAX_CHARS: usize = 64;
        self.problems.entry(name.chars().take(MAX_CHARS).collect()).or_insert_with(|| problem.to_owned());
    }
}
