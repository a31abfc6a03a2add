//! Which price a request has on a route whose models have their own.
//!
//! The upstream must read the same model as this code. So bodies that two JSON parsers may read differently are refused,
//! and so are models without a price.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::catalogue::model_names::ModelPlace;
use crate::catalogue::path::RequestPath;
use crate::catalogue::pointer::{Lookup, Pointer, look_up};
use crate::catalogue::query::decode;
use crate::catalogue::route::Route;
use crate::catalogue::usage_price::UsagePrice;

/// Names of models come from the request, so limit the length that is echoed.
const NAME_CHARS_SHOWN: usize = 64;

/// Why a request has no price.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModelRefusal {
    /// Its model cannot be read: the problem, by JSON pointer, or by `body`.
    Unread(BTreeMap<String, String>),
    /// Its model has no price. The name is cut.
    Unsold(String),
}

impl Route {
    /// The price by usage of a request: its model's, if models have their own. `None` if the route is not priced by
    /// usage.
    ///
    /// `body` is the body that is forwarded, as far as it is known.
    ///
    /// ```
    /// use metering_core::Catalogue;
    /// use metering_core::catalogue::{ModelRefusal, RequestPath};
    ///
    /// let catalogue = Catalogue::from_json(
    ///     r#"{"market": "M", "version": 1, "endpoints": [{"path": "/chat", "method": "POST", "metered": true, "price": {
    ///         "max": "0.5", "model": {"json": "/model"},
    ///         "models": {"small": {"per_million": {"tokens": "0.25"}}, "large*": {"per_million": {"tokens": "10"}}},
    ///         "report": {"json": {"tokens": "/usage/total_tokens"}}}}]}"#,
    /// )?;
    /// let (route, path) = (&catalogue.routes()[0], RequestPath::parse("/chat")?);
    /// let price = |model: &str| route.usage_price_of(&path, Some(format!(r#"{{"model": "{model}"}}"#).as_bytes()));
    /// let large = price("large-2").map_err(|_| "refused")?.ok_or("no price by usage")?;
    /// assert_eq!(large.units().map(|(_, price)| price.to_string()).collect::<Vec<_>>(), ["0.00001"]);
    /// assert_eq!(price("medium"), Err(ModelRefusal::Unsold("medium".to_owned())));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When the request names no model, or one without a price.
    pub fn usage_price_of(
        &self,
        path: &RequestPath<'_>,
        body: Option<&[u8]>,
    ) -> Result<Option<Arc<UsagePrice>>, ModelRefusal> {
        let Some(price) = self.usage_price() else { return Ok(None) };
        let Some(models) = &price.models else { return Ok(Some(Arc::clone(price))) };
        let name = match &models.place {
            ModelPlace::Json(pointer) => in_body(pointer, body).map_err(ModelRefusal::Unread)?,
            ModelPlace::Param(param) => self.path_value(param, path).unwrap_or_default(),
        };
        price.of_model(&name).map(|price| Some(Arc::clone(price)))
    }

    /// The model of a request with this path, if that is where the route's requests name it.
    pub(crate) fn model_in_path(&self, path: &str) -> Option<String> {
        self.path_value(self.usage_price()?.model_param()?, &RequestPath::parse(path).ok()?)
    }

    fn path_value(&self, param: &str, path: &RequestPath<'_>) -> Option<String> {
        let (piece, segment) = self.segments().zip(path.segments()).find(|(piece, _)| piece.param() == Some(param))?;
        decode(piece.value(segment)?, false).ok().map(|value| value.into_owned())
    }
}

impl UsagePrice {
    /// The price of requests with this model: the model's own, or this one if models have none.
    ///
    /// # Errors
    /// [`ModelRefusal::Unsold`] if the model has no price.
    pub(crate) fn of_model<'p>(self: &'p Arc<Self>, name: &str) -> Result<&'p Arc<Self>, ModelRefusal> {
        let Some(models) = &self.models else { return Ok(self) };
        let found = models.names.find(name).and_then(|position| models.prices.get(position));
        let unsold = || ModelRefusal::Unsold(name.chars().take(NAME_CHARS_SHOWN).collect());
        found.map(|(_, price)| price).ok_or_else(unsold)
    }
}

fn in_body(pointer: &Pointer, body: Option<&[u8]>) -> Result<String, BTreeMap<String, String>> {
    let problem = |place: &str, problem: &str| BTreeMap::from([(place.to_owned(), problem.to_owned())]);
    let no_json = || problem("body", "must be JSON: it names the model, which decides the price");
    let body = body.ok_or_else(|| {
        problem(
            "body",
            "names the model, which decides the price, so the gateway has to read it: send it there, without \
             Content-Encoding",
        )
    })?;
    let json = std::str::from_utf8(body).map_err(|_| no_json())?;
    let found = look_up(json, &[pointer]).map_err(|_| no_json())?;
    match found.first() {
        Some(Lookup::Value(value)) => serde_json::from_str(value.get())
            .map_err(|_| problem(pointer.as_str(), "must be a string, the name of one model")),
        Some(Lookup::Ambiguous) => Err(problem(pointer.as_str(), "must be there once, in this spelling")),
        Some(Lookup::Nothing) | None => Err(problem(pointer.as_str(), "is required: the price depends on the model")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Catalogue;

    fn units_of(route: &str, path: &str, body: Option<&str>) -> Result<String, ModelRefusal> {
        let catalogue = Catalogue::from_json(&format!(
            r#"{{"market": "M", "version": 1, "endpoints": [{{"method": "POST", "metered": true, {route}}}]}}"#
        ));
        let catalogue = catalogue.unwrap_or_else(|error| panic!("{error}"));
        let path = RequestPath::parse(path).unwrap();
        let price = catalogue.routes()[0].usage_price_of(&path, body.map(str::as_bytes))?.unwrap();
        Ok(price.units().map(|(_, price)| price.to_string()).collect())
    }

    const MODELS: &str = r#""models": {"small": {"units": {"t": "0.1"}}, "large*": {"units": {"t": "0.9"}}},
        "report": {"json": {"t": "/t"}}"#;

    #[test]
    fn model_is_read_from_the_body_without_doubt() {
        let route = format!(r#""path": "/x", "price": {{"max": "1", "model": {{"json": "/model"}}, {MODELS}}}"#);
        // body, the unit's price
        let table = [
            (r#"{"model": "small"}"#, "0.1"),
            (r#"{"m": {"model": "x"}, "model": "large-2"}"#, "0.9"),
            (r#"{"model": "sm\u0061ll"}"#, "0.1"),
        ];
        for (body, price) in table {
            assert_eq!(units_of(&route, "/x", Some(body)).unwrap(), price, "{body}");
        }
        for name in ["Small", "small ", "small,large", "medium", ""] {
            let body = format!(r#"{{"model": "{name}"}}"#);
            assert_eq!(units_of(&route, "/x", Some(&body)), Err(ModelRefusal::Unsold(name.to_owned())));
        }
        // body, where the problem is
        let table = [
            (Some(r#"{"model": "small", "model": "large"}"#), "/model"),
            (Some(r#"{"model": "small", "MODEL": "large"}"#), "/model"),
            (Some(r#"{"model": ["small"]}"#), "/model"),
            (Some(r#"{"model": null}"#), "/model"),
            (Some("{}"), "/model"),
            (Some("model=small"), "body"),
            (None, "body"),
        ];
        for (body, place) in table {
            match units_of(&route, "/x", body) {
                Err(ModelRefusal::Unread(problems)) => assert!(problems.contains_key(place), "{body:?}: {problems:?}"),
                other => panic!("{body:?}: {other:?}"),
            }
        }
    }

    #[test]
    fn model_is_read_from_the_path() {
        let route = format!(
            r#""path": "/m/{{model}}:run", "params": [{{"name": "model", "in": "path", "type": "string"}}],
               "price": {{"max": "1", "model": {{"param": "model"}}, {MODELS}}}"#
        );
        assert_eq!(units_of(&route, "/m/small:run", None).unwrap(), "0.1");
        assert_eq!(units_of(&route, "/m/large:1:run", None).unwrap(), "0.9");
        assert_eq!(units_of(&route, "/m/dear:run", None), Err(ModelRefusal::Unsold("dear".to_owned())));
    }
}
