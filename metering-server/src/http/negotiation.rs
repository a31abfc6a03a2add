//! Content negotiation (RFC 9110, section 12.5): HTML or JSON, compressed or not.

use http::{HeaderMap, HeaderName, header};

/// Whether the client accepts gzip and does not prefer an uncompressed body.
pub(crate) fn accepts_gzip(headers: &HeaderMap) -> bool {
    let weight = |coding: &str| weight_of(headers, &header::ACCEPT_ENCODING, coding);
    let gzip = weight("gzip").or_else(|| weight("x-gzip")).or_else(|| weight("*")).unwrap_or(0.0);
    gzip > 0.0 && weight("identity").is_none_or(|identity| gzip >= identity)
}

/// Whether the client is most likely a browser: browsers name HTML when they open a page, and programs do not.
pub(crate) fn prefers_html(headers: &HeaderMap) -> bool {
    let weight = |kind: &str| weight_of(headers, &header::ACCEPT, kind).unwrap_or(0.0);
    let html = weight("text/html");
    html > 0.0 && html >= weight("application/json")
}

/// Whether the client accepts JSON (RFC 9110, section 12.5.1): the most specific range that covers it counts, and no
/// range at all accepts everything.
pub(crate) fn accepts_json(headers: &HeaderMap) -> bool {
    let mut lines = headers.get_all(header::ACCEPT).iter();
    if lines.all(|line| line.as_bytes().trim_ascii().is_empty()) {
        return true;
    }
    let weight = |range: &str| weight_of(headers, &header::ACCEPT, range);
    let json = weight("application/json").or_else(|| weight("application/*")).or_else(|| weight("*/*"));
    json.is_some_and(|weight| weight > 0.0)
}

/// The weight of a value in a list such as `gzip, br;q=0.5`: the highest if the list has it more than once, `None` if
/// it does not have it.
fn weight_of(headers: &HeaderMap, name: &HeaderName, value: &str) -> Option<f32> {
    let lines = headers.get_all(name).iter().filter_map(|line| line.to_str().ok());
    let items = lines.flat_map(|line| line.split(','));
    let weights = items.filter_map(|item| {
        let mut parts = item.split(';').map(str::trim);
        parts.next().filter(|named| named.eq_ignore_ascii_case(value))?;
        let weight = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
        // An invalid weight counts as zero.
        Some(weight.map_or(1.0, |weight| weight.parse().unwrap_or(0.0)))
    });
    weights.reduce(f32::max)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn headers(name: HeaderName, lines: &[&'static str]) -> HeaderMap {
        lines.iter().map(|line| (name.clone(), HeaderValue::from_static(line))).collect()
    }

    #[test]
    fn gzip_is_sent_only_if_accepted() {
        // Accept-Encoding, gzip accepted
        let table: [(&[&str], bool); 11] = [
            (&[], false),
            (&["gzip, deflate, br, zstd"], true),
            (&["br", "GZIP;q=0.5"], true),
            (&["x-gzip"], true),
            (&["*"], true),
            (&["*;q=0"], false),
            (&["gzip;q=0, *"], false),
            (&["gzip; q=0.000"], false),
            (&["identity;q=1, gzip;q=0.5"], false),
            (&["br"], false),
            (&["gzip;q=many"], false),
        ];
        for (lines, gzip) in table {
            assert_eq!(accepts_gzip(&headers(header::ACCEPT_ENCODING, lines)), gzip, "{lines:?}");
        }
    }

    #[test]
    fn json_is_accepted_by_its_most_specific_range() {
        // Accept, JSON accepted
        let table: [(&[&str], bool); 14] = [
            (&[], true),
            (&[""], true),
            (&["*/*"], true),
            (&["application/*"], true),
            (&["application/json"], true),
            (&["application/json, text/event-stream"], true),
            (&["text/event-stream", "Application/JSON; q=0.5"], true),
            (&["application/json;charset=utf-8"], true),
            (&["text/html, */*;q=0.1"], true),
            (&["application/json;q=0, */*"], false),
            (&["application/*;q=0, */*"], false),
            (&["*/*;q=0"], false),
            (&["text/event-stream"], false),
            (&["text/html"], false),
        ];
        for (lines, json) in table {
            assert_eq!(accepts_json(&headers(header::ACCEPT, lines)), json, "{lines:?}");
        }
    }

    #[test]
    fn browsers_get_html_and_programs_json() {
        // Accept, HTML preferred
        let table: [(&[&str], bool); 8] = [
            (&[], false),
            (&["*/*"], false),
            (&["application/json"], false),
            (&["text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"], true),
            (&["text/html"], true),
            (&["text/html;q=0"], false),
            (&["application/json, text/html;q=0.9"], false),
            (&["application/json, text/plain, */*"], false),
        ];
        for (lines, html) in table {
            assert_eq!(prefers_html(&headers(header::ACCEPT, lines)), html, "{lines:?}");
        }
    }
}
