//! Which responses of the upstream cost nothing: a sentence for people, and the extension `x-free-statuses` for
//! programs.

use metering_core::catalogue::Route;
use serde_json::Value;

/// The description of responses that are not listed.
pub(super) fn sentence(route: &Route) -> String {
    let any = "Any other response of the upstream is passed on";
    if !route.metered {
        return format!("{any}.");
    }
    let rest = if route.usage_price().is_some() { "costs what it used" } else { "is charged" };
    match route.free_statuses.entries().collect::<Vec<_>>().as_slice() {
        [] => format!("{any}, and {rest}."),
        free => format!("{any}. With status {} it costs nothing; any other {rest}.", either(free)),
    }
}

/// One of the statuses: `404, 429 or 5xx`.
fn either(statuses: &[String]) -> String {
    match statuses {
        [others @ .., last] if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => statuses.concat(),
    }
}

/// The statuses as the catalogue has them, such as `[429, "5xx"]`.
pub(super) fn document(route: &Route) -> Value {
    let entry = |entry: String| entry.parse::<u16>().map_or_else(|_| Value::from(entry), Value::from);
    route.free_statuses.entries().map(entry).collect()
}

#[cfg(test)]
mod tests {
    use metering_core::Catalogue;
    use serde_json::json;

    #[test]
    fn buyers_read_what_is_free() {
        let by_usage = r#""metered": true, "price": {"max": "1", "report": {"header": "x-cost"}}"#;
        let listed = r#""metered": true, "free_statuses": [404, "5xx", 304]"#;
        let one = r#""metered": true, "free_statuses": [404]"#;
        let table = [
            (one, json!([404]), "With status 404 it costs nothing; any other is charged."),
            (
                r#""metered": true"#,
                json!([429, "5xx"]),
                "With status 429 or 5xx it costs nothing; any other is charged.",
            ),
            (listed, json!([404, "5xx", 304]), "With status 404, 5xx or 304 it costs nothing; any other is charged."),
            (r#""metered": true, "free_statuses": []"#, json!([]), "passed on, and is charged."),
            (by_usage, json!([429, "5xx"]), "it costs nothing; any other costs what it used."),
        ];
        for (fields, free, end) in table {
            let route = format!(r#"{{"path": "/x", "method": "GET", {fields}}}"#);
            let text = format!(r#"{{"market": "M", "version": 1, "endpoints": [{route}]}}"#);
            let document = crate::api::openapi::document(&Catalogue::from_json(&text).unwrap());
            let operation = &serde_json::to_value(document).unwrap()["paths"]["/x"]["get"];
            assert_eq!(operation["x-free-statuses"], free, "{fields}");
            let sentence = operation["responses"]["default"]["description"].as_str().unwrap();
            assert!(sentence.ends_with(end), "{sentence}");
        }
    }
}
