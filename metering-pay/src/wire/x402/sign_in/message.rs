//! The message that a wallet signed.

use std::fmt::Write;

use metering_core::chains::Address;
use metering_core::chains::{WalletSignature, signer_of_digest, signing_digest};
use metering_core::clock::Timestamp;
use metering_core::shown_fields;

use crate::offers::Network;
use crate::wire::fields::{Base64, Fields};
use crate::wire::malformed_payment::MalformedPayment;

const HEADER: &str = "SIGN-IN-WITH-X";

/// A wallet's sign-in: the fields of a message (EIP-4361), and its signature. Rely on none of it before
/// [`SignIn::check`], [`SignIn::is_signed_by_key`] and a check that its nonce was not used.
#[derive(Clone, PartialEq, Eq)]
pub struct SignIn {
    pub(super) domain: String,
    /// The wallet's address as sent.
    address: String,
    wallet: Address,
    statement: Option<String>,
    pub(super) uri: String,
    network: Network,
    nonce: String,
    pub(super) issued_at: String,
    pub(super) expiration_time: Option<String>,
    pub(super) not_before: Option<String>,
    request_id: Option<String>,
    resources: Option<Vec<String>>,
    signature: WalletSignature,
}

// Leaves out the signature, because anyone who has it can sign in until the nonce is used.
shown_fields!(SignIn: wallet, network, uri);

impl SignIn {
    /// Reads the value of [`SIGN_IN_HEADER`](metering_core::wire::SIGN_IN_HEADER).
    ///
    /// # Errors
    /// When it cannot be read, or has control characters, which could turn the message into another one. Names the
    /// wrong field.
    pub fn parse(header: &str) -> Result<Self, MalformedPayment> {
        let value = Base64::Standard.decode_json(HEADER, header)?;
        let fields = Fields::of(HEADER, &value)?;
        fields.exactly("version", "1", "must be \"1\"")?;
        fields.exactly("type", "eip191", "must be \"eip191\": only wallets of EVM chains can sign in")?;
        let nonce = line(&fields, "nonce")?;
        if nonce.len() < 8 || !nonce.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return Err(fields.fault("nonce", "must be at least 8 letters and digits"));
        }
        Ok(Self {
            domain: line(&fields, "domain")?,
            address: line(&fields, "address")?,
            wallet: fields.parse("address", "must be an address: 0x and 40 hexadecimal digits")?,
            statement: optional_line(&fields, "statement")?,
            uri: line(&fields, "uri")?,
            network: fields.parse("chainId", "must be a chain as in CAIP-2, such as eip155:8453")?,
            nonce,
            issued_at: line(&fields, "issuedAt")?,
            expiration_time: optional_line(&fields, "expirationTime")?,
            not_before: optional_line(&fields, "notBefore")?,
            request_id: optional_line(&fields, "requestId")?,
            resources: resources(&fields)?,
            signature: fields.signature()?,
        })
    }

    /// The wallet that claims to have signed.
    #[must_use]
    pub const fn wallet(&self) -> Address {
        self.wallet
    }

    /// The chain of the wallet. It matters for the wallets of contracts, which may have another owner on another chain.
    #[must_use]
    pub const fn chain_id(&self) -> u64 {
        self.network.0
    }

    /// The nonce, which must be one that this service issued, and must not have been used.
    #[must_use]
    pub fn nonce(&self) -> &str {
        &self.nonce
    }

    /// The time of issue in the message; `None` if that is not a time, which [`SignIn::check`] refuses.
    #[must_use]
    pub fn issued_at(&self) -> Option<Timestamp> {
        self.issued_at.parse().ok()
    }

    /// The signature.
    #[must_use]
    pub const fn signature(&self) -> &WalletSignature {
        &self.signature
    }

    /// The messages that the wallet may have signed (EIP-4361), rebuilt from the fields as sent. The first has the
    /// wallet's address in the mixed case of EIP-55, which EIP-4361 requires and stock clients sign, also those that
    /// send their signer's own spelling. If that differs, the second has the spelling that was sent.
    pub fn texts(&self) -> impl Iterator<Item = String> {
        let checksummed = self.wallet.to_checksummed();
        let as_sent = (self.address != checksummed).then(|| self.text(&self.address));
        std::iter::once(self.text(&checksummed)).chain(as_sent)
    }

    fn text(&self, address: &str) -> String {
        let mut text = format!("{} wants you to sign in with your Ethereum account:\n{address}\n\n", self.domain);
        if let Some(statement) = &self.statement {
            text.push_str(statement);
            text.push('\n');
        }
        // Writing to a `String` cannot fail.
        let _ = write!(text, "\nURI: {}\nVersion: 1\nChain ID: {}", self.uri, self.network.0);
        let _ = write!(text, "\nNonce: {}\nIssued At: {}", self.nonce, self.issued_at);
        let optional = [
            ("Expiration Time", &self.expiration_time),
            ("Not Before", &self.not_before),
            ("Request ID", &self.request_id),
        ];
        for (name, value) in optional {
            if let Some(value) = value {
                let _ = write!(text, "\n{name}: {value}");
            }
        }
        if let Some(resources) = &self.resources {
            text.push_str("\nResources:");
            for resource in resources {
                let _ = write!(text, "\n- {resource}");
            }
        }
        text
    }

    /// The digests that the signature may be over (EIP-191), of [`SignIn::texts`]. For a contract wallet, check on its
    /// chain, with [`ChainReader::accepts_signature`](metering_core::chains::ChainReader::accepts_signature).
    pub fn digests(&self) -> impl Iterator<Item = [u8; 32]> {
        self.texts().map(|text| signing_digest(&text))
    }

    /// Whether the wallet's own key made the signature.
    #[must_use]
    pub fn is_signed_by_key(&self) -> bool {
        self.digests().any(|digest| signer_of_digest(&digest, &self.signature) == Some(self.wallet))
    }
}

const ONE_LINE: &str = "must be one line, without control characters";

fn line(fields: &Fields<'_>, name: &'static str) -> Result<String, MalformedPayment> {
    let text = fields.text(name)?;
    if text.chars().any(char::is_control) { Err(fields.fault(name, ONE_LINE)) } else { Ok(text.to_owned()) }
}

fn optional_line(fields: &Fields<'_>, name: &'static str) -> Result<Option<String>, MalformedPayment> {
    fields.get(name).map(|_| line(fields, name)).transpose()
}

fn resources(fields: &Fields<'_>) -> Result<Option<Vec<String>>, MalformedPayment> {
    let Some(resources) = fields.get("resources") else { return Ok(None) };
    let fault = || fields.fault("resources", "must be a list of URLs without control characters");
    let resources = resources.as_array().ok_or_else(fault)?.iter().map(|resource| {
        let text = resource.as_str().filter(|text| !text.chars().any(char::is_control));
        text.map(str::to_owned).ok_or_else(fault)
    });
    resources.collect::<Result<_, _>>().map(Some)
}

#[cfg(test)]
mod tests {
    use k256::ecdsa::SigningKey;
    use metering_core::chains::signer;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::wire::vectors::{decoded, header_of, mutated, payer, vector};

    #[test]
    fn the_message_is_that_of_the_published_client() {
        let vector = vector("siwx");
        let header = vector["header"].as_str().unwrap();
        assert_eq!(decoded(header), vector["payload"]);
        let sign_in = SignIn::parse(header).unwrap();
        assert_eq!(sign_in.texts().collect::<Vec<_>>(), [vector["message"].as_str().unwrap()]);
        let digests: Vec<_> = sign_in.digests().map(|digest| format!("0x{}", hex::encode(digest))).collect();
        assert_eq!(digests, [vector["eip191_digest"].as_str().unwrap()]);
        assert!(sign_in.is_signed_by_key());
        assert_eq!((sign_in.wallet(), sign_in.chain_id()), (payer(), 84_532));
        assert_eq!(sign_in.nonce(), "a1b2c3d4e5f67890a1b2c3d4e5f67890");
        assert!(!format!("{sign_in:?}").contains("d49818ff"), "{sign_in:?}");
    }

    fn first_text(payload: &Value) -> String {
        SignIn::parse(&header_of(payload)).unwrap().texts().next().unwrap()
    }

    #[test]
    fn checksummed_address_is_signed_and_another_spelling_sent() {
        // Like stock clients.
        let payload = vector("siwx")["payload"].clone();
        let lower = payer().to_string();
        for spelling in [format!("0x{}", lower[2..].to_uppercase()), lower] {
            let sent = SignIn::parse(&header_of(&mutated(&payload, "/address", json!(spelling)))).unwrap();
            assert!(sent.is_signed_by_key(), "{spelling}");
            let texts: Vec<_> = sent.texts().collect();
            assert_eq!((texts.len(), &texts[0]), (2, &first_text(&payload)));
        }
    }

    #[test]
    fn the_spelling_that_is_sent_may_be_signed() {
        let key = SigningKey::from_slice(&[7; 32]).unwrap();
        let sign = |text: &str| {
            let (signature, recovery) = key.sign_prehash_recoverable(&signing_digest(text));
            format!("0x{}{:02x}", hex::encode(signature.to_bytes()), 27 + recovery.to_byte())
        };
        let wallet = signer("hello", &WalletSignature::parse(&sign("hello")).unwrap()).unwrap();
        let payload = mutated(&vector("siwx")["payload"], "/address", json!(wallet.to_string()));
        let text = SignIn::parse(&header_of(&payload)).unwrap().texts().last().unwrap();
        assert!(text.contains(&wallet.to_string()), "{text}");
        let signed = mutated(&payload, "/signature", json!(sign(&text)));
        assert!(SignIn::parse(&header_of(&signed)).unwrap().is_signed_by_key());
    }

    #[test]
    fn every_field_is_signed() {
        let original = vector("siwx")["payload"].clone();
        let other = "0x209693Bc6afc0C5328bA36FaF03C514EF312287C";
        for (field, value) in [
            ("domain", json!("api.example.org")),
            ("address", json!(other)),
            ("statement", json!(null)),
            ("statement", json!("")),
            ("uri", json!("https://api.example.com/v1/other")),
            ("chainId", json!("eip155:8453")),
            ("nonce", json!("a1b2c3d4e5f67890a1b2c3d4e5f67891")),
            ("issuedAt", json!("2025-06-15T15:06:40Z")),
            ("expirationTime", json!(null)),
            ("notBefore", json!("2025-06-15T15:06:40.000Z")),
            ("requestId", json!("1")),
            ("resources", json!(null)),
            ("resources", json!([])),
            ("signature", json!(format!("0x{}", "11".repeat(65)))),
        ] {
            let sign_in = SignIn::parse(&header_of(&mutated(&original, &format!("/{field}"), value))).unwrap();
            assert!(!sign_in.is_signed_by_key(), "{field}");
        }
        let unsigned = mutated(&original, "/signatureScheme", json!("eip191"));
        assert!(SignIn::parse(&header_of(&unsigned)).unwrap().is_signed_by_key());
    }

    #[test]
    fn optional_lines_are_in_order_and_none_is_left_for_what_is_missing() {
        let mut payload = vector("siwx")["payload"].clone();
        for name in ["statement", "expirationTime", "resources"] {
            payload[name] = json!(null);
        }
        let text = first_text(&payload);
        assert!(text.contains("79C8\n\n\nURI: ") && text.ends_with("Issued At: 2025-06-15T15:06:40.000Z"), "{text}");
        for name in ["expirationTime", "notBefore", "requestId"] {
            payload[name] = json!(name);
        }
        payload["resources"] = json!(["a:b", "c:d"]);
        let text = first_text(&payload);
        let end =
            "\nExpiration Time: expirationTime\nNot Before: notBefore\nRequest ID: requestId\nResources:\n- a:b\n- c:d";
        assert!(text.ends_with(end), "{text}");
    }

    #[test]
    fn a_field_that_cannot_be_read_is_named() {
        let original = vector("siwx")["payload"].clone();
        for (field, value) in [
            ("version", json!("2")),
            ("type", json!("ed25519")),
            ("address", json!("0x1")),
            ("chainId", json!("solana:1")),
            ("nonce", json!("short")),
            ("nonce", json!("a1b2c3d4-5f67890a1b2c3d4")),
            ("domain", json!("a\nb")),
            ("statement", json!("a\nURI: b")),
            ("uri", json!(null)),
            ("issuedAt", json!(5)),
            ("resources", json!(["a\n- b"])),
            ("resources", json!("a")),
            ("signature", json!("0x")),
        ] {
            let error = SignIn::parse(&header_of(&mutated(&original, &format!("/{field}"), value))).unwrap_err();
            assert!(
                matches!(&error, MalformedPayment::Field { field: found, .. } if found == field),
                "{field}: {error}"
            );
        }
    }

    proptest! {
        #[test]
        fn no_header_makes_it_panic(text in "\\PC{0,300}", cut in 0_usize..900, with in any::<u8>()) {
            prop_assert!(SignIn::parse(&text).is_err());
            let mut header = vector("siwx")["header"].as_str().unwrap().as_bytes().to_vec();
            if let Some(byte) = header.get_mut(cut) { *byte = with; }
            if let Some(Ok(sign_in)) = std::str::from_utf8(&header).ok().map(SignIn::parse) {
                let _ = sign_in.is_signed_by_key();
            }
        }
    }
}
