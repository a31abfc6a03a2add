//! Routes whose requests open WebSocket connections (RFC 6455).

use serde_json::value::RawValue;

use super::object::{Object, UnknownKeys, member};
use super::problem::Problems;

/// Whether a route takes WebSocket connections. The route's other settings must make sense for a connection: there is
/// no body, no event stream, and no response that could report a cost or be replayed.
pub(super) fn read(endpoint: &Object<'_>, unknown: UnknownKeys) -> Result<bool, Problems> {
    let is_websocket = endpoint.get::<bool>("websocket")?.unwrap_or_default();
    if !is_websocket || unknown == UnknownKeys::Ignore {
        return Ok(is_websocket);
    }
    let is_true = |key: &str| matches!(endpoint.get::<bool>(key), Ok(Some(true)));
    let mut problems = Problems::default();
    if endpoint.get::<String>("method").is_ok_and(|method| method.is_some_and(|method| method != "GET")) {
        problems.add("websocket needs the method GET");
    }
    for other in ["sse", "replay"].into_iter().filter(|key| is_true(key)) {
        problems.add(format!("websocket and {other} are both true; a route can be only one of them"));
    }
    if endpoint.has("request") {
        problems.add("request does not apply to a WebSocket route: a handshake has no body");
    }
    if member(endpoint, "price")?.map(RawValue::get).is_some_and(|price| price.starts_with('{')) {
        problems.add("a price by usage does not apply to a WebSocket route: it is charged once per connection");
    }
    problems.or(|| Some(true))
}

#[cfg(test)]
mod tests {
    use crate::catalogue::Catalogue;

    #[test]
    fn a_websocket_route_is_refused_what_only_responses_have() {
        let read = |fields: &str| {
            let text = format!(
                r#"{{"market": "M", "version": 1, "endpoints": [{{"path": "/live", "metered": true, {fields}}}]}}"#
            );
            Catalogue::from_json(&text).map(|catalogue| catalogue.routes()[0].websocket).map_err(|e| e.to_string())
        };
        assert_eq!(read(r#""method": "POST", "websocket": false"#), Ok(false));
        let session = r#""billing_modifier": {"type": "stream_session", "credits_per_connection": 0.01}"#;
        assert_eq!(read(&format!(r#""method": "GET", "websocket": true, {session}"#)), Ok(true));
        // fields, a part of the message
        let table = [
            (r#""method": "POST""#, "needs the method GET"),
            (r#""method": "GET", "sse": true"#, "websocket and sse"),
            (r#""method": "GET", "replay": true"#, "websocket and replay"),
            (r#""method": "GET", "request": {"schema": {"type": "object"}}"#, "a handshake has no body"),
            (r#""method": "GET", "price": {"max": "1", "report": {"header": "x-cost"}}"#, "once per connection"),
        ];
        for (fields, part) in table {
            let error = read(&format!(r#"{fields}, "websocket": true"#)).unwrap_err();
            assert!(error.contains(part), "{fields}: {error}");
        }
    }
}
