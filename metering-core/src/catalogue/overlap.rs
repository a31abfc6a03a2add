//! Whether the requests of a route are served while their charge is flushed.

use serde_json::value::RawValue;

use super::object::{Object, UnknownKeys, documentation, member};
use super::problem::Problems;

/// The route's own setting; `None` if its method decides. `true` must have an effect.
pub(super) fn read(endpoint: &Object<'_>, unknown: UnknownKeys) -> Result<Option<bool>, Problems> {
    let overlap = documentation(endpoint.get::<bool>("overlap"), unknown)?;
    if overlap != Some(true) || unknown == UnknownKeys::Ignore {
        return Ok(overlap);
    }
    let mut problems = Problems::default();
    for (key, value) in [("metered", false), ("sse", true), ("websocket", true)] {
        if matches!(endpoint.get::<bool>(key), Ok(Some(found)) if found == value) {
            problems.add(format!("overlap has no effect on a route with {key} {value}"));
        }
    }
    if member(endpoint, "price")?.map(RawValue::get).is_some_and(|price| price.starts_with('{')) {
        problems.add("overlap has no effect on a price by usage: the hold is on disk before the request is served");
    }
    problems.or(|| Some(overlap))
}

#[cfg(test)]
mod tests {
    use crate::catalogue::Catalogue;

    fn read(fields: &str) -> Result<bool, String> {
        let text =
            format!(r#"{{"market": "M", "version": 1, "endpoints": [{{"path": "/x", "metered": true, {fields}}}]}}"#);
        Catalogue::from_json(&text).map(|catalogue| catalogue.routes()[0].overlaps()).map_err(|e| e.to_string())
    }

    #[test]
    fn safe_methods_overlap_unless_the_route_says_otherwise() {
        let usage = r#""price": {"max": "1", "report": {"header": "x-cost"}}"#;
        // fields, whether it overlaps
        let table = [
            (r#""method": "GET""#.to_owned(), true),
            (r#""method": "HEAD""#.to_owned(), true),
            (r#""method": "POST""#.to_owned(), false),
            (r#""method": "POST", "overlap": null"#.to_owned(), false),
            (r#""method": "POST", "overlap": true"#.to_owned(), true),
            (r#""method": "GET", "overlap": false"#.to_owned(), false),
            (r#""method": "GET", "sse": true"#.to_owned(), false),
            (r#""method": "GET", "websocket": true"#.to_owned(), false),
            (format!(r#""method": "GET", {usage}"#), false),
        ];
        for (fields, overlaps) in table {
            assert_eq!(read(&fields), Ok(overlaps), "{fields}");
        }
    }

    #[test]
    fn overlap_without_effect_is_refused() {
        let usage = r#""price": {"max": "1", "report": {"header": "x-cost"}}"#;
        for (fields, part) in [(r#""sse": true"#, "a route with sse true"), (usage, "a price by usage")] {
            let error = read(&format!(r#""method": "GET", {fields}, "overlap": true"#)).unwrap_err();
            assert!(error.contains(&format!("overlap has no effect on {part}")), "{fields}: {error}");
        }
        assert!(read(r#""method": "GET", "overlap": "yes""#).unwrap_err().contains("overlap"));
    }
}
