//! Preferences of clients: the header `Prefer` (RFC 7240).

use super::cache_control::list_members;
use super::headers::RECEIPT_HEADER;

/// Whether a client prefers a signed receipt: whether `metering-receipt` is among the preferences in the lines of its
/// `Prefer` header. Its value and parameters are ignored.
///
/// ```
/// use metering_core::wire::prefers_receipt;
///
/// assert!(prefers_receipt([&b"respond-async, metering-receipt"[..]]));
/// assert!(!prefers_receipt([&b"return=minimal"[..]]));
/// ```
#[must_use]
pub fn prefers_receipt<'v>(lines: impl IntoIterator<Item = &'v [u8]>) -> bool {
    lines.into_iter().any(|line| {
        let preferences = std::str::from_utf8(line).ok().and_then(list_members).unwrap_or_default();
        preferences.into_iter().any(|preference| {
            let token = preference.split(['=', ';']).next().unwrap_or_default();
            token.trim().eq_ignore_ascii_case(RECEIPT_HEADER)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preference_is_found_among_others_and_in_no_string() {
        // the lines, whether a receipt is preferred
        let table: [(&[&str], bool); 9] = [
            (&[], false),
            (&["metering-receipt"], true),
            (&["wait=5", "Metering-Receipt"], true),
            (&["return=minimal,metering-receipt; x=1 , wait=5"], true),
            (&["metering-receipt=\"\""], true),
            (&["metering-receipts"], false),
            (&["x=metering-receipt"], false),
            (&["x=\"a, metering-receipt\""], false),
            (&["metering-receipt, x=\"never ends"], false),
        ];
        for (lines, expected) in table {
            assert_eq!(prefers_receipt(lines.iter().map(|line| line.as_bytes())), expected, "{lines:?}");
        }
    }
}
