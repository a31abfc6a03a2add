//! Puts a JSON document on one line without changing its content.

use serde_json::value::RawValue;

/// The text is not a JSON document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotJson;

/// The document without line breaks. Everything else is unchanged, especially the digits of numbers, which do not pass
/// through a float.
pub(crate) fn one_line(document: &[u8]) -> Result<Vec<u8>, NotJson> {
    let raw: &RawValue = serde_json::from_slice(document).map_err(|_| NotJson)?;
    // JSON allows line breaks only between tokens, never inside a string (RFC 8259, section 7), and no two adjacent
    // tokens need a separator.
    Ok(raw.get().bytes().filter(|byte| !matches!(byte, b'\n' | b'\r')).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_line_breaks_between_tokens_are_removed() {
        // document, line
        let table = [
            ("{\"a\":1}", "{\"a\":1}"),
            (" \r\n{\r\n  \"a\": 1.00,\n\n  \"b\": [\n1\n,\r2 ]\n}\n", "{  \"a\": 1.00,  \"b\": [1,2 ]}"),
            (r#""a\nb""#, r#""a\nb""#),
            ("[1e400, -0, 0.30000000000000000000000000004]", "[1e400, -0, 0.30000000000000000000000000004]"),
        ];
        for (document, line) in table {
            assert_eq!(one_line(document.as_bytes()), Ok(line.as_bytes().to_vec()), "{document}");
        }
    }

    #[test]
    fn invalid_json_is_rejected() {
        for document in [&b""[..], b"{", b"\"a\nb\"", b"1\n2", b"\"\xff\"", b"nul"] {
            assert_eq!(one_line(document), Err(NotJson), "{document:?}");
        }
    }
}
