//! The differences at single upstreams of a route: the name of the model, and the price of a request.

use std::sync::Arc;

use crate::catalogue::model_names::{ModelPlace, UpstreamModel};
use crate::catalogue::pointer::{Lookup, Pointer, look_up};
use crate::catalogue::template::TemplateSegment;
use crate::catalogue::usage_price::{UpstreamTerms, UsagePrice};

/// The part of a request that names its model, with the name that an upstream has for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Renamed {
    /// The path.
    Path(String),
    /// The body.
    Body(Vec<u8>),
}

impl UsagePrice {
    /// The price of a request that this upstream serves.
    ///
    /// ```
    /// use metering_core::Catalogue;
    ///
    /// let catalogue = Catalogue::from_json(
    ///     r#"{"market": "M", "version": 1, "endpoints": [{"path": "/chat", "method": "POST", "metered": true,
    ///         "upstream": ["eu", "backup"], "price": {"max": "0.5", "units": {"tokens": "0.001"},
    ///         "report": {"json": {"tokens": "/usage/total_tokens"}},
    ///         "upstreams": {"backup": {"max": "0.75", "units": {"tokens": "0.0015"}}}}}]}"#,
    /// )?;
    /// let price = catalogue.routes()[0].usage_price().ok_or("no price by usage")?;
    /// let of_token = |upstream| price.at(upstream).units().map(|(_, price)| price.to_string()).next();
    /// assert_eq!((of_token("eu").as_deref(), of_token("backup").as_deref()), (Some("0.001"), Some("0.0015")));
    /// assert_eq!(price.hold(None), "0.75".parse()?, "whichever serves the request");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn at(self: &Arc<Self>, upstream: &str) -> Arc<Self> {
        let own = self.terms_at(upstream).and_then(|terms| terms.price.as_ref());
        Arc::clone(own.unwrap_or(self))
    }

    /// The upstreams with their own prices, each with its price, in the file's order.
    pub fn upstreams(&self) -> impl Iterator<Item = (&str, &Self)> {
        self.upstreams.iter().filter_map(|terms| Some((&*terms.upstream, &**terms.price.as_ref()?)))
    }

    /// A request with the name that this upstream has for its model; `None` if it has no other name. `path` is in normal
    /// form, and `template` is that of the route.
    #[must_use]
    pub fn renamed(&self, upstream: &str, template: &str, path: &str, body: &[u8]) -> Option<Renamed> {
        let model = self.terms_at(upstream)?.model.as_ref()?;
        match &model.place {
            ModelPlace::Json(pointer) => renamed_in_body(model, pointer, body).map(Renamed::Body),
            ModelPlace::Param(param) => renamed_in_path(model, param, template, path).map(Renamed::Path),
        }
    }

    /// The names of all upstreams that it describes.
    pub(super) fn named_upstreams(&self) -> impl Iterator<Item = &str> {
        let of_models = self.models().flat_map(|(_, price)| &price.upstreams);
        self.upstreams.iter().chain(of_models).map(|terms| &*terms.upstream)
    }

    fn terms_at(&self, upstream: &str) -> Option<&UpstreamTerms> {
        self.upstreams.iter().find(|terms| *terms.upstream == *upstream)
    }

    /// Adds the differences at upstreams. The hold then covers the most expensive of them.
    pub(super) fn with_upstreams(self, upstreams: Vec<UpstreamTerms>) -> Self {
        let prices = upstreams.iter().filter_map(|terms| terms.price.as_ref());
        let max = prices.map(|price| price.max).fold(self.max, Ord::max);
        Self { max, upstreams, ..self }
    }
}

/// Replaces the name in a body, and changes no other byte of it.
fn renamed_in_body(model: &UpstreamModel, pointer: &Pointer, body: &[u8]) -> Option<Vec<u8>> {
    let json = std::str::from_utf8(body).ok()?;
    let found = look_up(json, &[pointer]).ok()?;
    // Bodies without one name were refused.
    let Some(Lookup::Value(value)) = found.first() else { return None };
    let literal = value.get();
    let asked: String = serde_json::from_str(literal).ok()?;
    let name = serde_json::Value::from(model.name_for(&asked)).to_string();
    let start = literal.as_ptr().addr().checked_sub(json.as_ptr().addr())?;
    let (before, after) = (json.get(..start)?, json.get(start.checked_add(literal.len())?..)?);
    Some([before, &name, after].concat().into_bytes())
}

/// Replaces the parameter in a path.
fn renamed_in_path(model: &UpstreamModel, param: &str, template: &str, path: &str) -> Option<String> {
    let segments = TemplateSegment::of(template).zip(path.strip_prefix('/')?.split('/'));
    let renamed = segments.map(|(piece, segment)| match piece {
        TemplateSegment::Param { name, verb: Some(verb) } if name == param => format!("/{}:{verb}", model.name),
        TemplateSegment::Param { name, verb: None } if name == param => format!("/{}", model.name),
        TemplateSegment::Param { .. } | TemplateSegment::Literal(_) => format!("/{segment}"),
    });
    Some(renamed.collect())
}

#[cfg(test)]
mod tests;
