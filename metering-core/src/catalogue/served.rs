//! Routes that the gateway responds to itself, such as a list of models.

use serde_json::value::RawValue;

use super::json_text::JsonText;
use super::object::{Object, UnknownKeys, documentation, member};
use super::problem::Problems;

/// The document that a route responds with, if it has one. Then there is no body to check, and nothing to report.
pub(super) fn read(endpoint: &Object<'_>, unknown: UnknownKeys) -> Result<Option<JsonText>, Problems> {
    let serve: Option<JsonText> = documentation(endpoint.get("serve"), unknown)?;
    if serve.is_none() || unknown == UnknownKeys::Ignore {
        return Ok(serve);
    }
    let mut problems = Problems::default();
    if endpoint.get::<String>("method").is_ok_and(|method| method.is_some_and(|method| method != "GET")) {
        problems.add("serve needs the method GET");
    }
    let is_true = |key: &str| matches!(endpoint.get::<bool>(key), Ok(Some(true)));
    for other in ["sse", "websocket", "replay"].into_iter().filter(|key| is_true(key)) {
        problems.add(format!("{other} does not apply to a route with serve: the gateway responds with one document"));
    }
    if member(endpoint, "price")?.map(RawValue::get).is_some_and(|price| price.starts_with('{')) {
        problems.add("a price by usage does not apply to a route with serve: its response reports nothing");
    }
    problems.or(|| Some(serve))
}

#[cfg(test)]
mod tests {
    use crate::catalogue::Catalogue;

    #[test]
    fn document_is_kept_as_it_is_written() {
        let read = |fields: &str| {
            let text = format!(
                r#"{{"market": "M", "version": 1, "endpoints": [{{"path": "/x", "metered": true, {fields}}}]}}"#
            );
            let served = |catalogue: Catalogue| catalogue.routes()[0].serve.as_ref().map(|json| json.text().to_owned());
            Catalogue::from_json(&text).map(served).map_err(|error| error.to_string())
        };
        assert_eq!(read(r#""method": "GET""#), Ok(None));
        assert_eq!(
            read(r#""method": "GET", "serve": {"b": 1, "a": 0.10}"#),
            Ok(Some(r#"{"b":1,"a":0.10}"#.to_owned()))
        );
        // fields, a part of the message
        let table = [
            (r#""method": "POST", "serve": {}"#, "serve needs the method GET"),
            (r#""method": "GET", "sse": true, "serve": {}"#, "sse does not apply to a route with serve"),
            (
                r#""method": "GET", "serve": {}, "price": {"max": "1", "report": {"header": "x"}}"#,
                "a price by usage does not apply to a route with serve",
            ),
        ];
        for (fields, part) in table {
            let error = read(fields).unwrap_err();
            assert!(error.contains(part), "{fields}: {error}");
        }
    }
}
