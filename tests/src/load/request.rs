//! Requests as bytes, built before a run so that sending one costs only a write.

/// An HTTP/1.1 request without a body; `key` becomes its Bearer token.
///
/// ```
/// use metering_tests::load::request;
///
/// let bytes = request("GET", "/mpp/ethPrice", None, &[("X-BDS-Client-Source", "cli")]);
/// assert_eq!(bytes, b"GET /mpp/ethPrice HTTP/1.1\r\nHost: localhost\r\nX-BDS-Client-Source: cli\r\n\r\n");
/// ```
///
/// # Panics
/// If a part contains a line break.
#[must_use]
pub fn request(method: &str, path: &str, key: Option<&str>, headers: &[(&str, &str)]) -> Vec<u8> {
    let mut text = format!("{method} {path} HTTP/1.1\r\n");
    // A `Host` from the caller replaces ours, because two are an error (RFC 9112, section 3.2).
    if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
        text.push_str("Host: localhost\r\n");
    }
    if let Some(key) = key {
        text.push_str(&format!("Authorization: Bearer {key}\r\n"));
    }
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    let given = headers.iter().flat_map(|(name, value)| [name, value]);
    let broken = [&method, &path].into_iter().chain(key.as_ref()).chain(given).any(|part| part.contains(['\r', '\n']));
    assert!(!broken, "a part of the request has a line break");
    text.push_str("\r\n");
    text.into_bytes()
}

/// Like [`request`], with a JSON body.
///
/// # Panics
/// If a part contains a line break.
#[must_use]
pub fn request_with_json(
    method: &str,
    path: &str,
    key: Option<&str>,
    headers: &[(&str, &str)],
    body: &serde_json::Value,
) -> Vec<u8> {
    let body = body.to_string();
    let length = body.len().to_string();
    let own = [("Content-Type", "application/json"), ("Content-Length", length.as_str())];
    let mut bytes = request(method, path, key, &[&own, headers].concat());
    bytes.extend_from_slice(body.as_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_becomes_the_bearer_token() {
        let bytes = request("GET", "/credits/balance", Some("sk_live_x"), &[]);
        let text = "GET /credits/balance HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer sk_live_x\r\n\r\n";
        assert_eq!(String::from_utf8(bytes).unwrap(), text);
    }

    #[test]
    fn given_host_replaces_the_default() {
        let bytes = request("GET", "/", None, &[("host", "meter.example")]);
        assert_eq!(String::from_utf8(bytes).unwrap(), "GET / HTTP/1.1\r\nhost: meter.example\r\n\r\n");
    }

    #[test]
    fn json_content_length_is_in_bytes() {
        let bytes = request_with_json("POST", "/x", None, &[("A", "b")], &serde_json::json!({"name": "é"}));
        let text = String::from_utf8(bytes).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert_eq!(body, "{\"name\":\"é\"}");
        assert!(head.contains("\r\nContent-Type: application/json\r\nContent-Length: 13\r\nA: b"), "{head}");
    }

    #[test]
    #[should_panic(expected = "line break")]
    fn line_break_in_a_header_is_rejected() {
        let _ = request("GET", "/", None, &[("A", "b\r\nC: d")]);
    }
}
