//! `Cache-Control` of responses that only the requesting client may have.
//!
//! RFC 9111 lets a shared cache store whatever a response calls `public`, and responses to requests with credentials
//! that it does not recognise, such as a key in `X-API-Key`. A second client would then get the first one's response,
//! with its receipt.

/// Response headers that instruct one kind of shared cache differently from `Cache-Control` (RFC 9213), in lower case.
/// Remove them from a private response, and all others that end with [`TARGETED_SUFFIX`].
pub const TARGETED_CACHE_HEADERS: [&str; 4] =
    ["cdn-cache-control", "edge-control", "surrogate-control", "x-accel-expires"];
/// How the names of such headers of single providers end.
pub const TARGETED_SUFFIX: &str = "-cdn-cache-control";

/// The `Cache-Control` of a private response (RFC 9111, section 5.2.2), from the values of all of its lines.
///
/// `public` and `s-maxage` are dropped, and `private` is added, unless `no-store` forbids more. Unreadable values
/// become `no-store`.
///
/// ```
/// use metering_core::wire::private_cache_control;
///
/// let upstream: [&[u8]; 2] = [b"public, max-age=5", b"s-maxage=60"];
/// assert_eq!(private_cache_control(upstream), "max-age=5, private");
/// assert_eq!(private_cache_control([]), "private");
/// ```
#[must_use]
pub fn private_cache_control<'v>(lines: impl IntoIterator<Item = &'v [u8]>) -> String {
    let mut kept = Vec::new();
    let mut is_stored = true;
    for line in lines {
        let Some(directives) = std::str::from_utf8(line).ok().and_then(list_members) else {
            return "no-store".to_owned();
        };
        for directive in directives {
            let name = directive.split('=').next().unwrap_or_default().trim();
            // `private="x-name"` is about one header; without an argument it is about the whole response.
            let is_dropped = ["public", "s-maxage", "private"].iter().any(|dropped| name.eq_ignore_ascii_case(dropped));
            if !is_dropped {
                is_stored &= !name.eq_ignore_ascii_case("no-store");
                kept.push(directive);
            }
        }
    }
    if is_stored {
        kept.push("private");
    }
    kept.join(", ")
}

/// The members of a list whose quoted strings may have commas (RFC 9110, section 5.6); `None` if a string does not end.
pub(super) fn list_members(line: &str) -> Option<Vec<&str>> {
    let (mut members, mut start) = (Vec::new(), 0);
    let (mut is_quoted, mut is_escaped) = (false, false);
    for (at, character) in line.char_indices() {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => {
                members.push(line[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    members.push(line[start..].trim());
    (!is_quoted).then(|| members.into_iter().filter(|member| !member.is_empty()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_private_response_is_for_no_shared_cache() {
        // the upstream's lines, the response's
        let table: [(&[&str], &str); 16] = [
            (&[], "private"),
            (&[""], "private"),
            (&["public, max-age=5"], "max-age=5, private"),
            (&["Public,S-MaxAge=60 , immutable"], "immutable, private"),
            (&["max-age=5", "public", "s-maxage=\"7\""], "max-age=5, private"),
            (&["private"], "private"),
            (&["private, max-age=5"], "max-age=5, private"),
            (&["private=\"set-cookie, x-a\", max-age=5"], "max-age=5, private"),
            (&["no-cache=\"a, public\", public"], "no-cache=\"a, public\", private"),
            (&["must-revalidate, public"], "must-revalidate, private"),
            (&["no-store"], "no-store"),
            (&["public, no-store, max-age=0"], "no-store, max-age=0"),
            (&["s-maxage=5", "No-Store"], "No-Store"),
            (&["publicly, s-maxage-x=1"], "publicly, s-maxage-x=1, private"),
            (&["x=\"a\\\", public\", public"], "x=\"a\\\", public\", private"),
            (&["x=\"never ends, public"], "no-store"),
        ];
        for (lines, expected) in table {
            assert_eq!(private_cache_control(lines.iter().map(|line| line.as_bytes())), expected, "{lines:?}");
        }
        assert_eq!(private_cache_control([&b"public, x=\xff"[..]]), "no-store");
    }
}
