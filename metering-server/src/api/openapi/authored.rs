//! Writes the schemas and examples of routes with their members in the order of the catalogue's author.
//!
//! utoipa's types hold `serde_json::Value`, which sorts the members of objects. So an operation is written with a
//! placeholder for each schema and example, and the placeholders are replaced afterwards.

use metering_core::catalogue::{BodyRules, JsonText, Route};
use serde_json::Value;
use utoipa::openapi::path::Operation;
use utoipa::openapi::{Content, PathItem, RefOr};

use crate::endpoints::errors::operations;

/// Begins the JSON of a mark. No text has this character, because Unicode reserves it for such uses.
const BEGINS: &str = "\"\u{fdd0}";
const ENDS: &str = "\u{fdd0}\"";

/// The JSON of a path's item with these routes, which are given with their operation ids.
pub(super) fn to_json(mut item: Option<PathItem>, routes: &[(&Route, &str)]) -> serde_json::Result<String> {
    let mut texts = Vec::new();
    for (route, id) in routes {
        let all = item.iter_mut().flat_map(operations);
        for operation in all.filter(|operation| operation.operation_id.as_deref() == Some(*id)) {
            mark(operation, route, &mut texts);
        }
    }
    let json = serde_json::to_string(&item)?;
    Ok(with_texts(&json, &texts))
}

fn mark<'r>(operation: &mut Operation, route: &'r Route, texts: &mut Vec<&'r str>) {
    let rules = route.body.as_deref();
    if let Some(RefOr::T(body)) = &mut operation.request_body {
        for content in body.content.values_mut() {
            mark_content(content, rules.map(BodyRules::schema_text), rules.and_then(BodyRules::example), texts);
        }
    }
    if let Some(RefOr::T(response)) = operation.responses.responses.get_mut("200") {
        for content in response.content.values_mut() {
            mark_content(content, route.response.as_ref(), route.example.as_ref(), texts);
        }
    }
}

fn mark_content<'r>(
    content: &mut RefOr<Content>,
    schema: Option<&'r JsonText>,
    example: Option<&'r JsonText>,
    texts: &mut Vec<&'r str>,
) {
    let RefOr::T(content) = content else { return };
    let mut replace = |slot: &mut Value, text: &'r JsonText| {
        *slot = format!("\u{fdd0}{}\u{fdd0}", texts.len()).into();
        texts.push(text.text());
    };
    if let Some((slot, example)) = content.example.as_mut().zip(example) {
        replace(slot, example);
    }
    for keyword in ["schema", "x-event-schema"] {
        let slot = content.extensions.as_mut().and_then(|extensions| extensions.get_mut(keyword));
        if let Some((slot, schema)) = slot.zip(schema) {
            replace(slot, schema);
        }
    }
}

/// Replaces the placeholders with their texts.
fn with_texts(json: &str, texts: &[&str]) -> String {
    let mut written = String::with_capacity(json.len() + texts.iter().map(|text| text.len()).sum::<usize>());
    let mut parts = json.split(BEGINS);
    written.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let marked = part.split_once(ENDS).and_then(|(number, rest)| {
            let text = *texts.get(number.parse::<usize>().ok()?)?;
            Some((text, rest))
        });
        let (text, rest) = marked.unwrap_or((BEGINS, part));
        written.push_str(text);
        written.push_str(rest);
    }
    written
}

#[cfg(test)]
mod tests {
    use metering_core::Catalogue;

    use super::*;
    use crate::api::openapi::Description;
    use crate::config::Config;

    #[test]
    fn members_stay_in_the_authors_order() {
        let text = r#"{"market": "M", "version": 1, "endpoints": [
            {"path": "/x", "method": "POST", "metered": true, "description": "\"\ufdd00\ufdd0\" and \ufdd0",
             "request": {"schema": {"type": "object", "required": ["model"], "properties": {
                "model": {"type": "string", "minLength": 1, "description": "a: \"b\""}, "count": {"type": "integer"}}},
                "example": {"model": "small", "count": 1}},
             "response": {"type": "object", "properties": {"z": {"type": "string"}, "a": {"type": "integer"}}},
             "example": {"z": "}", "a": 1}},
            {"path": "/x", "method": "GET", "metered": true, "sse": true, "response": {"type": "object", "description": "E"},
             "example": {"y": 1, "b": 2}}]}"#;
        let catalogue = Catalogue::from_json(text).unwrap();
        let document = Description::new(&catalogue, &Config::default()).to_json(&catalogue).unwrap();
        for written in [
            r#""model":{"type":"string","minLength":1,"description":"a: \"b\""},"count":{"type":"integer"}"#,
            r#""example":{"model":"small","count":1}"#,
            r#""z":{"type":"string"},"a":{"type":"integer"}"#,
            r#""example":{"z":"}","a":1}"#,
            r#""x-event-schema":{"type":"object","description":"E"}"#,
            r#""example":{"y":1,"b":2}"#,
        ] {
            assert_eq!(document.matches(written).count(), 1, "{written} in {document}");
        }
        let read: Value = serde_json::from_str(&document).unwrap();
        assert_eq!(read["paths"]["/x"]["post"]["summary"], "\"\u{fdd0}0\u{fdd0}\" and \u{fdd0}");
    }
}
