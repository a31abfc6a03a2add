//! Reads fields of payments, with errors that name them.
//!
//! Clients send different forms: some add fields, some send null for fields that they leave out, some write numbers as
//! text. So unknown fields are ignored, null is as good as nothing, and values are compared after parsing.

use std::str::FromStr;

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use metering_core::chains::{Address, WalletSignature};
use metering_core::offers::UPTO_PROXY;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::offers::{Authorization, AuthorizationNonce};
use crate::wire::malformed_payment::MalformedPayment;

/// The longest payment that is read, in bytes of base64: signatures of contract wallets have up to 8 kB, and clients
/// send back all extensions of a 402.
pub(super) const MAX_PAYMENT_BYTES: usize = 32 * 1_024;

const ADDRESS: &str = "must be an address: 0x and 40 hexadecimal digits, with a valid checksum if the case is mixed";
const UNITS: &str = "must be a whole number of the token's smallest unit, in decimal digits";
const SECONDS: &str = "must be a time in seconds since 1970, below 2^64, in decimal digits";

const LENIENT: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);

/// An alphabet of base64, and whether it is written with padding. Each is read with and without it.
#[derive(Debug, Clone, Copy)]
pub(super) enum Base64 {
    /// Section 4 of RFC 4648, with padding, as in x402.
    Standard,
    /// Section 5 of RFC 4648, without padding, as in MPP.
    Url,
}

impl Base64 {
    const fn name(self) -> &'static str {
        match self {
            Self::Standard => "standard base64 with padding (RFC 4648, section 4)",
            Self::Url => "base64url without padding (RFC 4648, section 5)",
        }
    }

    pub(super) fn encode(self, bytes: &[u8]) -> String {
        match self {
            Self::Standard => base64::engine::general_purpose::STANDARD.encode(bytes),
            Self::Url => base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes),
        }
    }

    /// The JSON of a document, in base64.
    pub(super) fn encode_json(self, document: &impl Serialize) -> String {
        self.encode(&serde_json::to_vec(document).expect("documents of payments have text keys and no floats"))
    }

    /// Decodes a JSON value.
    ///
    /// # Errors
    /// When it is too long, not base64, or not JSON.
    pub(super) fn decode_json(self, what: &'static str, text: &str) -> Result<Value, MalformedPayment> {
        if text.len() > MAX_PAYMENT_BYTES {
            return Err(MalformedPayment::TooLong { what, max: MAX_PAYMENT_BYTES });
        }
        let alphabet = match self {
            Self::Standard => &alphabet::STANDARD,
            Self::Url => &alphabet::URL_SAFE,
        };
        let decoded = GeneralPurpose::new(alphabet, LENIENT).decode(text.trim_matches([' ', '\t']));
        let value = decoded.ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        value.ok_or(MalformedPayment::Encoding { what, encoding: self.name() })
    }
}

/// An object of a payment.
#[derive(Debug)]
pub(super) struct Fields<'v> {
    what: &'static str,
    path: String,
    members: &'v Map<String, Value>,
}

impl<'v> Fields<'v> {
    pub(super) fn of(what: &'static str, value: &'v Value) -> Result<Self, MalformedPayment> {
        let members = value.as_object().ok_or(MalformedPayment::NotAnObject { what })?;
        Ok(Self { what, path: String::new(), members })
    }

    /// The error for a field of this object.
    pub(super) fn fault(&self, name: &str, problem: &'static str) -> MalformedPayment {
        MalformedPayment::Field { what: self.what, field: format!("{}{name}", self.path), problem }
    }

    /// A field's value, unless it is null.
    pub(super) fn get(&self, name: &str) -> Option<&'v Value> {
        self.members.get(name).filter(|value| !value.is_null())
    }

    fn required(&self, name: &str) -> Result<&'v Value, MalformedPayment> {
        self.get(name).ok_or_else(|| self.fault(name, "is missing"))
    }

    pub(super) fn object(&self, name: &str) -> Result<Fields<'v>, MalformedPayment> {
        match self.required(name)? {
            Value::Object(members) => Ok(Self { what: self.what, path: format!("{}{name}.", self.path), members }),
            _ => Err(self.fault(name, "must be an object")),
        }
    }

    pub(super) fn optional_object(&self, name: &str) -> Result<Option<Fields<'v>>, MalformedPayment> {
        self.get(name).map(|_| self.object(name)).transpose()
    }

    pub(super) fn text(&self, name: &str) -> Result<&'v str, MalformedPayment> {
        self.required(name)?.as_str().ok_or_else(|| self.fault(name, "must be text"))
    }

    pub(super) fn optional_text(&self, name: &str) -> Result<Option<&'v str>, MalformedPayment> {
        self.get(name).map(|_| self.text(name)).transpose()
    }

    /// A field that must have this text.
    pub(super) fn exactly(&self, name: &str, text: &str, problem: &'static str) -> Result<(), MalformedPayment> {
        if self.text(name)? == text { Ok(()) } else { Err(self.fault(name, problem)) }
    }

    /// A field that must have this text, if it is present.
    pub(super) fn exactly_if_sent(
        &self,
        name: &str,
        text: &str,
        problem: &'static str,
    ) -> Result<(), MalformedPayment> {
        match self.optional_text(name)? {
            Some(sent) if sent != text => Err(self.fault(name, problem)),
            _ => Ok(()),
        }
    }

    pub(super) fn parse<T: FromStr>(&self, name: &str, problem: &'static str) -> Result<T, MalformedPayment> {
        self.text(name)?.parse().map_err(|_| self.fault(name, problem))
    }

    /// A whole number, as a number or as its decimal digits.
    fn whole<T: FromStr>(&self, name: &str, problem: &'static str) -> Result<T, MalformedPayment> {
        let digits = match self.required(name)? {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            _ => return Err(self.fault(name, problem)),
        };
        if digits.bytes().all(|byte| byte.is_ascii_digit()) {
            digits.parse().map_err(|_| self.fault(name, problem))
        } else {
            Err(self.fault(name, problem))
        }
    }

    /// The version of the protocol.
    pub(super) fn version(&self, expected: u64, problem: &'static str) -> Result<(), MalformedPayment> {
        match self.required("x402Version")?.as_u64() {
            Some(version) if version == expected => Ok(()),
            _ => Err(self.fault("x402Version", problem)),
        }
    }

    /// The message of EIP-3009 whose fields are in this object.
    pub(super) fn authorization(&self) -> Result<Authorization, MalformedPayment> {
        Ok(Authorization {
            from: self.parse("from", ADDRESS)?,
            to: self.parse("to", ADDRESS)?,
            value: self.whole("value", UNITS)?,
            valid_after: self.whole("validAfter", SECONDS)?,
            valid_before: self.whole("validBefore", SECONDS)?,
            nonce: self.parse("nonce", "must be 0x and 64 hexadecimal digits")?,
        })
    }

    /// The permit (Permit2, with the witness of x402's `upto`) for `token` whose fields are in this object, as an
    /// authorization of the most, and its facilitator.
    pub(super) fn permit(&self, token: Address) -> Result<(Authorization, Address), MalformedPayment> {
        let (permitted, witness) = (self.object("permitted")?, self.object("witness")?);
        if self.parse::<Address>("spender", ADDRESS)? != UPTO_PROXY {
            return Err(self.fault("spender", "must be 0x4020A4f3b7b90ccA423B9fabCc0CE57C6C240002, the proxy for upto"));
        }
        if permitted.parse::<Address>("token", ADDRESS)? != token {
            return Err(permitted.fault("token", "must be accepted.asset"));
        }
        let nonce = AuthorizationNonce::of_permit(self.text("nonce")?);
        let authorization = Authorization {
            from: self.parse("from", ADDRESS)?,
            to: witness.parse("to", ADDRESS)?,
            value: permitted.whole("amount", UNITS)?,
            valid_after: witness.whole("validAfter", SECONDS)?,
            valid_before: self.whole("deadline", SECONDS)?,
            nonce: nonce.ok_or_else(|| self.fault("nonce", "must be a number of at most 256 bits"))?,
        };
        Ok((authorization, witness.parse("facilitator", ADDRESS)?))
    }

    pub(super) fn signature(&self) -> Result<WalletSignature, MalformedPayment> {
        let problem = "must be 0x and hexadecimal digits: 130 of them, unless the wallet is a contract";
        WalletSignature::parse(self.text("signature")?).map_err(|_| self.fault("signature", problem))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn both_paddings_are_read_and_the_other_alphabet_is_not() {
        let document = json!({"a": "??>>~~"});
        for base64 in [Base64::Standard, Base64::Url] {
            let text = base64.encode_json(&document);
            let bare = text.trim_end_matches('=').to_owned();
            for form in [text.clone(), bare, format!(" {text} ")] {
                assert_eq!(base64.decode_json("X", &form).unwrap(), document, "{form}");
            }
        }
        let (standard, url) = (Base64::Standard.encode_json(&document), Base64::Url.encode_json(&document));
        assert_ne!(standard.trim_end_matches('='), url, "the example has digits that differ");
        let error = Base64::Standard.decode_json("X-PAYMENT", &url).unwrap_err().to_string();
        assert!(error.starts_with("X-PAYMENT must be standard base64 with padding"), "{error}");
        assert!(Base64::Url.decode_json("X", &standard).is_err());
    }

    #[test]
    fn what_is_too_long_is_not_decoded() {
        let text = "A".repeat(MAX_PAYMENT_BYTES + 1);
        let error = Base64::Standard.decode_json("X", &text).unwrap_err();
        assert_eq!(error, MalformedPayment::TooLong { what: "X", max: MAX_PAYMENT_BYTES });
        assert!(matches!(Base64::Standard.decode_json("X", &text[1..]), Err(MalformedPayment::Encoding { .. })));
    }

    #[test]
    fn errors_name_the_field_and_null_counts_as_missing() {
        let value = json!({"a": {"b": {"n": null, "t": 5, "w": "01", "x": "1.5"}}});
        let root = Fields::of("PAYMENT", &value).unwrap();
        let fields = root.object("a").unwrap().object("b").unwrap();
        assert_eq!(
            fields.text("n").unwrap_err().to_string(),
            "PAYMENT: the field a.b.n is missing. Nothing was taken."
        );
        assert_eq!(fields.optional_text("n"), Ok(None));
        assert_eq!(fields.text("t"), Err(fields.fault("t", "must be text")));
        assert_eq!(fields.whole::<u64>("t", "!"), Ok(5));
        assert_eq!(fields.whole::<u64>("w", "!"), Ok(1));
        assert_eq!(fields.whole::<u64>("x", "!"), Err(fields.fault("x", "!")));
        assert!(root.object("a").unwrap().optional_object("zzz").unwrap().is_none());
        assert!(matches!(Fields::of("X", &json!([])), Err(MalformedPayment::NotAnObject { what: "X" })));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,200}") {
            for base64 in [Base64::Standard, Base64::Url] {
                let _ = base64.decode_json("X", &text);
                let _ = base64.decode_json("X", &base64.encode(text.as_bytes()));
            }
        }
    }
}
