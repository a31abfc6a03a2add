//! The extension `payment-identifier`: an id that a client gives its payment, so it can send it again.

use std::str::FromStr;

use metering_core::text_traits;
use serde_json::{Value, json};

/// The key of the extension.
pub const PAYMENT_IDENTIFIER_EXTENSION: &str = "payment-identifier";

const MIN_CHARS: usize = 16;
const MAX_CHARS: usize = 128;

/// The id that a client gave its payment: 16 to 128 of `A-Z a-z 0-9 _ -` (`specs/extensions/payment_identifier.md`).
///
/// ```
/// use metering_pay::wire::x402::PaymentIdentifier;
///
/// assert!("pay_11111111222243338444555555555555".parse::<PaymentIdentifier>().is_ok());
/// assert!("short".parse::<PaymentIdentifier>().is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PaymentIdentifier(String);

/// The text is not the id of a payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be 16 to 128 letters, digits, underscores and hyphens")]
pub struct PaymentIdentifierError;

impl PaymentIdentifier {
    /// Its text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The extension of a 402, which lets clients send an id, or requires it.
    #[must_use]
    pub fn extension(required: bool) -> Value {
        json!({
            "info": {"required": required},
            "schema": {
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "type": "object",
                "properties": {
                    "required": {"type": "boolean"},
                    "id": {
                        "type": "string",
                        "minLength": MIN_CHARS,
                        "maxLength": MAX_CHARS,
                        "pattern": "^[a-zA-Z0-9_-]+$",
                    },
                },
                "required": ["required"],
            },
        })
    }
}

impl FromStr for PaymentIdentifier {
    type Err = PaymentIdentifierError;

    fn from_str(text: &str) -> Result<Self, PaymentIdentifierError> {
        let fits = (MIN_CHARS..=MAX_CHARS).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
        if fits { Ok(Self(text.to_owned())) } else { Err(PaymentIdentifierError) }
    }
}

text_traits!(PaymentIdentifier: Display);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::vectors::vector;

    #[test]
    fn ids_have_16_to_128_characters() {
        for (text, valid) in [
            ("a".repeat(15), false),
            ("a".repeat(16), true),
            ("a".repeat(128), true),
            ("a".repeat(129), false),
            (format!("{}é", "a".repeat(20)), false),
            (format!("{} ", "a".repeat(20)), false),
        ] {
            assert_eq!(text.parse::<PaymentIdentifier>().is_ok(), valid, "{text}");
        }
    }

    #[test]
    fn the_extension_is_that_of_the_reference() {
        let expected = &vector("server-messages")["payment_required"]["extensions"]["payment-identifier"];
        assert_eq!(&PaymentIdentifier::extension(false), expected);
    }
}
