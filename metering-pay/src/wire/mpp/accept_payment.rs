//! Which methods of payment a client has: the header `Accept-Payment`.

use crate::wire::mpp::{INTENT, METHOD};

/// Whether a client supports our challenges. The value is a list such as `evm/charge, tempo/*;q=0.5`, of which the most
/// specific entry counts; an entry with `q=0` excludes what it names.
///
/// Send challenges only to such clients: some others fail on a challenge although they could accept an offer of x402.
///
/// ```
/// use metering_pay::wire::mpp::accepts_evm_charge;
///
/// assert!(accepts_evm_charge("tempo/charge, evm/charge;q=0.5"));
/// assert!(!accepts_evm_charge("*/*, evm/charge;q=0"));
/// ```
#[must_use]
pub fn accepts_evm_charge(value: &str) -> bool {
    let best = value.split(',').filter_map(specificity_and_quality).max();
    best.is_some_and(|(_, accepted)| accepted)
}

/// How specific an entry that fits is, and whether it accepts what it names.
fn specificity_and_quality(entry: &str) -> Option<(u8, bool)> {
    let mut parts = entry.split(';').map(str::trim);
    let (method, intent) = parts.next()?.split_once('/')?;
    if !(matches!(method, "*") || method == METHOD) || !(matches!(intent, "*") || intent == INTENT) {
        return None;
    }
    let quality = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
    let excluded = quality.is_some_and(|quality| quality.bytes().all(|byte| matches!(byte, b'0' | b'.')));
    Some((u8::from(method != "*") + u8::from(intent != "*"), !excluded))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_specific_entry_counts() {
        let table = [
            ("evm/charge", true),
            ("evm/*", true),
            ("*/*;q=0.1", true),
            ("tempo/charge , evm/charge; q=0.3", true),
            ("", false),
            ("evm", false),
            ("tempo/charge", false),
            ("evm/session", false),
            ("evm/charge;q=0", false),
            ("evm/charge;q=0.000", false),
            ("*/*, evm/charge;q=0", false),
            ("evm/charge;q=0, evm/charge", true),
            ("*/*;q=0, evm/charge", true),
        ];
        for (value, accepted) in table {
            assert_eq!(accepts_evm_charge(value), accepted, "{value}");
        }
    }
}
