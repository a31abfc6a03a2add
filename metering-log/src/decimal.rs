//! Numbers as the C2SP texts write them: ASCII decimals without leading zeros.

/// Reads such a number; `None` for anything else, also `+1` and numbers over 64 bits.
pub(crate) fn parse(text: &str) -> Option<u64> {
    let canonical = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    if canonical { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn only_canonical_numbers_are_read() {
        assert_eq!(parse("0"), Some(0));
        assert_eq!(parse("18446744073709551615"), Some(u64::MAX));
        for text in ["", "00", "01", "+1", "-1", " 1", "1 ", "1_0", "18446744073709551616", "١"] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }
}
