//! The argument for the body of a tool's request.
//!
//! A route that declares its body has a tool whose argument has the declared schema. The gateway checks the body, so a
//! mistake is reported with its place, and costs nothing. Other routes with such a method take any object.

use metering_core::catalogue::{BodyUse, Route};
use serde_json::{Value, json};

/// The argument's names. The second is for routes that have a parameter with the first.
const NAMES: [&str; 2] = ["body", "request_body"];
/// The description of the body, unless its schema has one.
const ABOUT: &str = "The body of the request, which is sent as JSON.";

/// The argument that is the body of a tool's request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BodyArgument<'r> {
    pub(super) name: &'static str,
    /// As the catalogue declares it.
    declared: Option<&'r Value>,
}

impl<'r> BodyArgument<'r> {
    /// The argument; `None` if requests to the route have no body.
    pub(super) fn of(route: &'r Route) -> Option<Self> {
        let declared = match route.body_use() {
            BodyUse::None => return None,
            BodyUse::Any => None,
            BodyUse::Declared(schema) => Some(schema),
        };
        let is_free = |name: &&str| route.params.iter().all(|param| param.name != *name);
        Some(Self { name: NAMES.into_iter().find(is_free)?, declared })
    }

    /// Whether calls without it are rejected.
    pub(super) const fn is_required(self) -> bool {
        self.declared.is_some()
    }

    /// Its JSON Schema.
    pub(super) fn schema(self) -> Value {
        let Some(declared) = self.declared else { return json!({"type": "object", "description": ABOUT}) };
        let mut schema = declared.clone();
        if let Some(members) = schema.as_object_mut() {
            // Inside another schema, these would start a separate document.
            members.remove("$schema");
            members.remove("$id");
            members.entry("description").or_insert_with(|| ABOUT.into());
        }
        schema
    }

    /// Why `value` cannot be sent, if that is clear without the declaration's rules.
    pub(super) fn problem_with(self, value: &Value) -> Option<&'static str> {
        (self.declared.is_none() && !value.is_object()).then_some("must be a JSON object")
    }
}

#[cfg(test)]
mod tests {
    use metering_core::Catalogue;

    use super::*;

    fn argument(route: &Value) -> Option<(&'static str, bool, Value)> {
        let text = json!({"market": "M", "version": 1, "endpoints": [route]}).to_string();
        let catalogue = Catalogue::from_json(&text).unwrap();
        let argument = BodyArgument::of(&catalogue.routes()[0])?;
        Some((argument.name, argument.is_required(), argument.schema()))
    }

    #[test]
    fn argument_has_the_declared_schema() {
        let any = json!({"type": "object", "description": ABOUT});
        let declared = json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "https://a.example/b",
            "type": "object", "required": ["q"], "properties": {"q": {"type": "string"}}});
        let shown = json!({"type": "object", "required": ["q"], "properties": {"q": {"type": "string"}},
            "description": ABOUT});
        let own = json!({"type": "object", "description": "What to search for"});
        let param = json!([{"name": "body", "in": "query", "type": "string"}]);
        let both = json!([{"name": "body", "in": "query", "type": "string"},
            {"name": "request_body", "in": "query", "type": "string"}]);
        // method, more of the route, the argument
        let table = [
            ("GET", json!({}), None),
            ("DELETE", json!({}), None),
            ("POST", json!({}), Some(("body", false, any.clone()))),
            ("PUT", json!({}), Some(("body", false, any.clone()))),
            ("PATCH", json!({"params": param}), Some(("request_body", false, any))),
            ("POST", json!({"params": both}), None),
            ("POST", json!({"request": {"schema": declared}}), Some(("body", true, shown))),
            ("POST", json!({"request": {"schema": own}}), Some(("body", true, own))),
        ];
        for (method, more, expected) in table {
            let mut route = json!({"path": "/x", "method": method, "metered": true});
            route.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            assert_eq!(argument(&route), expected, "{route}");
        }
    }
}
