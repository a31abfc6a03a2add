//! Hex digits of ids, keys and hashes: in lower case only, so a text has one spelling.

/// Whether a text has nothing but `0-9` and `a-f`.
pub(crate) fn is_lower_hex(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}
