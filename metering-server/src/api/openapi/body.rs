//! The body of a metered route's requests: its schema as the catalogue declares it.

use metering_core::catalogue::{BodyUse, Route};
use serde_json::json;
use utoipa::openapi::request_body::{RequestBody, RequestBodyBuilder};
use utoipa::openapi::{ContentBuilder, Required};

/// The body of requests to a route; `None` if they have none.
pub(super) fn request_body(route: &Route) -> Option<RequestBody> {
    let (schema, required, about) = match route.body_use() {
        BodyUse::None => return None,
        BodyUse::Any => {
            (json!({}), Required::False, "Any body; the catalogue does not describe what the upstream accepts")
        }
        BodyUse::Declared(schema) => {
            (schema.clone(), Required::True, "JSON, which is checked before anything is charged")
        }
    };
    // The catalogue's schema may have keywords that utoipa's type would drop, so it is written verbatim.
    let mut content = ContentBuilder::new().build();
    content.example = route.body.as_ref().and_then(|rules| Some(rules.example()?.value().clone()));
    content.extensions = Some(std::iter::once(("schema", schema)).collect());
    Some(RequestBodyBuilder::new().description(Some(about)).required(Some(required)).content(JSON, content).build())
}

const JSON: &str = "application/json";

/// The possible errors in the body, for the description of status 400.
pub(super) fn refusal(route: &Route) -> &'static str {
    match route.body_use() {
        BodyUse::Declared(_) => "; for a body, `fields` has the JSON pointer of each problem",
        BodyUse::None | BodyUse::Any => "",
    }
}

#[cfg(test)]
mod tests {
    use metering_core::Catalogue;
    use serde_json::Value;

    use super::*;
    use crate::api::openapi::document;

    #[test]
    fn declared_bodies_are_described_and_others_are_free() {
        let schema = json!({"type": "object", "properties": {"n": {"multipleOf": 1, "x-unit": "tokens"}}});
        let declared = json!({"required": true, "description": "JSON, which is checked before anything is charged",
            "content": {JSON: {"schema": schema}}});
        let mut with_example = declared.clone();
        with_example["content"][JSON]["example"] = json!({"n": 7});
        let free = json!({"required": false, "content": {JSON: {"schema": {}}},
            "description": "Any body; the catalogue does not describe what the upstream accepts"});
        // method, more of the route, its body
        let table = [
            ("GET", json!({}), Value::Null),
            ("DELETE", json!({}), Value::Null),
            ("POST", json!({}), free.clone()),
            ("PATCH", json!({}), free),
            ("PUT", json!({"request": {"schema": schema}}), declared.clone()),
            ("PUT", json!({"request": {"schema": schema, "example": {"n": 7}}}), with_example),
        ];
        for (method, more, expected) in table {
            let mut route = json!({"path": "/x", "method": method, "metered": true});
            route.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let text = json!({"market": "M", "version": 1, "endpoints": [route]}).to_string();
            let document = serde_json::to_value(document(&Catalogue::from_json(&text).unwrap())).unwrap();
            let operation = &document["paths"]["/x"][method.to_lowercase()];
            assert_eq!(operation["requestBody"], expected, "{route}");
            let refusal = operation["responses"]["400"]["description"].as_str().unwrap();
            assert_eq!(refusal.contains("JSON pointer"), more["request"].is_object(), "{refusal}");
        }
    }
}
