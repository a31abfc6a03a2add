//! Whether a request to a route has a body, for everything that describes the route: OpenAPI, tools, the command line.

use serde_json::Value;

use super::route::Route;

/// Whether a request to a route has a body.
///
/// ```
/// use metering_core::Catalogue;
/// use metering_core::catalogue::BodyUse;
///
/// let catalogue = Catalogue::from_json(
///     r#"{"market": "M", "version": 1, "endpoints": [
///         {"path": "/price", "method": "GET", "metered": true},
///         {"path": "/search", "method": "POST", "metered": true},
///         {"path": "/chat", "method": "POST", "metered": true, "request": {"schema": {"type": "object"}}}]}"#,
/// )?;
/// let [price, search, chat] = catalogue.routes() else { panic!("the file has three routes") };
/// assert_eq!(price.body_use(), BodyUse::None);
/// assert_eq!(search.body_use(), BodyUse::Any);
/// assert!(matches!(chat.body_use(), BodyUse::Declared(schema) if schema["type"] == "object"));
/// # Ok::<(), metering_core::catalogue::CatalogueError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyUse<'r> {
    /// It has none.
    None,
    /// It may have one, but the catalogue does not describe it.
    Any,
    /// It has JSON of this schema.
    Declared(&'r Value),
}

impl Route {
    /// Whether requests to the route have a body: one that the catalogue declares, or any where the method is `POST`,
    /// `PUT` or `PATCH`.
    #[must_use]
    pub fn body_use(&self) -> BodyUse<'_> {
        match &self.body {
            Some(rules) => BodyUse::Declared(rules.schema()),
            None if ["POST", "PUT", "PATCH"].contains(&&*self.method) => BodyUse::Any,
            None => BodyUse::None,
        }
    }
}
