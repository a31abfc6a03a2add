//! Detects spellings of a path segment that lenient servers read as the same name.
//!
//! Many servers fold case, Unicode compatibility forms, padding and repeated percent-encoding, or cut off a file
//! extension or `;parameter` before they route. If `/v1/{document}` is cheap and `/v1/export` is expensive,
//! `/v1/EXPORT` and `/v1/export;x` must not be priced as documents and then served as exports.

use unicode_normalization::UnicodeNormalization;

use crate::access::invisible::is_invisible;

/// How many levels of nested percent-encoding are decoded. Deeper nesting is rejected.
const MAX_ROUNDS: usize = 4;

/// The loosest reading of a segment. Use it for comparison only.
pub(crate) fn fold(segment: &str) -> String {
    let decoded = decode_nested(segment).unwrap_or_else(|| segment.to_owned());
    let visible = |c: &char| c.is_whitespace() || !is_invisible(*c);
    // Upper-casing first also folds letters that share only their capital, such as the dotless i and i.
    let upper: String = decoded.nfkc().filter(visible).flat_map(char::to_uppercase).collect();
    let folded: String = upper.chars().flat_map(char::to_lowercase).nfkc().collect();
    folded.trim_start_matches(is_padding).trim_end_matches(|c| is_padding(c) || c == '.').to_owned()
}

/// Whether some server could read `segment` as the name whose [`fold`] is `folded`.
pub(crate) fn reads_like(segment: &str, folded: &str) -> bool {
    reads_like_any(segment, std::slice::from_ref(&folded))
}

/// Whether some server could read `segment` as one of these folded names.
pub(crate) fn reads_like_any<S: AsRef<str>>(segment: &str, folded: &[S]) -> bool {
    if folded.is_empty() {
        return false;
    }
    starts_like_any(&fold(segment), folded)
}

/// Whether some server could read the text after a colon in `segment` as one of these folded names.
pub(crate) fn ends_like_any<S: AsRef<str>>(segment: &str, folded: &[S]) -> bool {
    if folded.is_empty() {
        return false;
    }
    let segment = fold(segment);
    segment.match_indices(':').any(|(at, _)| starts_like_any(segment[at + 1..].trim_start_matches(is_padding), folded))
}

/// Whether a folded text is one of these folded names, ignoring suffixes that servers cut off.
fn starts_like_any<S: AsRef<str>>(text: &str, folded: &[S]) -> bool {
    folded.iter().any(|name| {
        let rest = text.strip_prefix(name.as_ref()).map(|rest| rest.trim_start_matches(is_padding));
        // An extension, a path parameter, an encoded slash, a query or fragment (for servers that decode too often), or
        // an NTFS stream.
        rest.is_some_and(|rest| {
            rest.is_empty() || rest.starts_with(['.', ';', '/', '?', '#']) || rest.starts_with("::")
        })
    })
}

/// Servers that decode paths like forms read a plus sign as a space.
fn is_padding(c: char) -> bool {
    c.is_whitespace() || c == '+'
}

/// Percent-decodes until nothing changes; `None` when the nesting is too deep.
pub(crate) fn decode_nested(segment: &str) -> Option<String> {
    let mut bytes = segment.as_bytes().to_vec();
    for _ in 0..MAX_ROUNDS {
        match decode_round(&bytes) {
            Some(decoded) => bytes = decoded,
            None => return Some(String::from_utf8_lossy(&bytes).into_owned()),
        }
    }
    decode_round(&bytes).is_none().then(|| String::from_utf8_lossy(&bytes).into_owned())
}

/// One round of percent-decoding, including `%u` with four digits, as old servers do; `None` if nothing is encoded.
fn decode_round(bytes: &[u8]) -> Option<Vec<u8>> {
    let hex = |digits: &[u8]| {
        let all = digits.iter().all(u8::is_ascii_hexdigit);
        u32::from_str_radix(std::str::from_utf8(digits).ok().filter(|_| all)?, 16).ok()
    };
    let mut decoded = Vec::with_capacity(bytes.len());
    let (mut rest, mut changed) = (bytes, false);
    while let [first, tail @ ..] = rest {
        rest = tail;
        if *first == b'%' {
            if let Some(byte) = tail.get(..2).and_then(hex) {
                decoded.extend(u8::try_from(byte));
                (rest, changed) = (&tail[2..], true);
                continue;
            }
            let wide = tail.strip_prefix(b"u").and_then(|tail| tail.get(..4)).and_then(hex).and_then(char::from_u32);
            if let Some(c) = wide {
                decoded.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                (rest, changed) = (&tail[5..], true);
                continue;
            }
        }
        decoded.push(*first);
    }
    changed.then_some(decoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lenient_servers_read_many_spellings_as_one_name() {
        let spellings = [
            "export",
            "EXPORT",
            "eXport",
            "export.",
            "export..",
            "export%20",
            "%20export",
            "export+",
            "export%2E",
            "export;x=1",
            "export%3Bx=1",
            "export%253Bx",
            "export%3Fx=1",
            "export%23x",
            "export.json",
            "export::$DATA",
            "%65xport",
            "%2565xport",
            "%252565xport",
            "%25u0065xport",
            "%EF%BC%A5xport",          // full-width E
            "e%F0%9D%90%B1port",       // mathematical bold x
            "ex%E2%80%8Bport",         // zero-width space
            "ex%C2%ADport",            // soft hyphen
            "export%C2%A0",            // no-break space
            "%EF%BC%A5xport%EF%BC%8E", // full-width full stop
        ];
        for spelling in spellings {
            assert!(reads_like(spelling, &fold("export")), "{spelling}");
        }
        for other in ["exports", "xport", "ex-port", "export2", "export-json", "export:run", "reexport", "exp%20ort"] {
            assert!(!reads_like(other, &fold("export")), "{other}");
        }
        assert!(reads_like("%C5%BFtatus", &fold("status")), "the long s");
        assert!(reads_like("%E2%84%AAelvin", &fold("kelvin")), "the Kelvin sign");
        assert!(reads_like("STRASSE", &fold("stra%C3%9Fe")));
        assert!(reads_like("caf%65%CC%81", &fold("CAF%C3%89")), "composed and decomposed");
    }

    #[test]
    fn verbs_are_found_behind_any_colon() {
        let verbs = [fold("generateContent")];
        for segment in [
            "x:generateContent",
            "x%3AgenerateContent",
            "x%3agenerateContent",
            "x%253AgenerateContent",
            "x:GENERATECONTENT",
            "x:generateContent.json",
            "x:generateContent%20",
            "x:%20generateContent",
            "x:generateContent::$DATA",
            "x:generateContent%3Ffoo",
            "x:generateContent%2Fy",
            "x%EF%BC%9AgenerateContent", // full-width colon
            ":generateContent",
            "x:y:generateContent",
            "x:generateContent:y",
        ] {
            let found = ends_like_any(segment, &verbs);
            // A verb before another colon counts only where something after it is cut off.
            assert_eq!(found, segment != "x:generateContent:y", "{segment}");
        }
        for segment in ["generateContent", "x:generateContents", "x:free", "x"] {
            assert!(!ends_like_any(segment, &verbs), "{segment}");
        }
    }

    #[test]
    fn nested_encoding_is_followed_to_its_end_or_refused() {
        assert_eq!(decode_nested("a%2525b").as_deref(), Some("a%b"));
        assert_eq!(decode_nested("100%").as_deref(), Some("100%"));
        assert_eq!(decode_nested(&format!("%{}41", "25".repeat(10))), None);
    }
}
