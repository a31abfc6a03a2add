//! A receipt as its holder has it: parses it, and verifies it with the service's published keys.

use std::fmt;
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use metering_log::keys::{JwkSet, Jws, JwsError};
use metering_log::tree::{ProofError, TreeHash, verify_inclusion};

use crate::payload::{PayloadFault, ReceiptPayload};
use crate::signed_root::SignedRoot;

/// A receipt that was not verified yet. Its text is the value of the header, and the content of a receipt file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedReceipt {
    payload: Vec<u8>,
    place: u64,
    size: u64,
    path: Vec<TreeHash>,
    jws: String,
}

/// Why a text is not a valid receipt.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReceiptFault {
    /// It does not have six parts.
    #[error("not a receipt: it has {0} parts separated by dots, and a complete receipt has six")]
    Parts(usize),
    /// One of its first three parts is damaged.
    #[error("the receipt is damaged: its {0} cannot be read")]
    Damaged(&'static str),
    /// Its signature is damaged, or was not made with a key of the set.
    #[error("the signature of the receipt does not verify: {0}")]
    Signature(#[from] JwsError),
    /// The key signed a different kind of statement.
    #[error("what was signed is not a batch of receipts")]
    OtherStatement,
    /// It is not in the batch that was signed.
    #[error("the receipt is not one of the signed ones: {0}")]
    NotInBatch(#[from] ProofError),
    /// The batch's size does not match the receipt.
    #[error("the receipt is not one of the signed ones: it is from a batch of {stated}, not of {signed}")]
    OtherBatch {
        /// The size that it states.
        stated: u64,
        /// The size that was signed.
        signed: u64,
    },
    /// The payload and the signature name different issuers.
    #[error("the receipt says that it is from {stated:?}, but its signature is from {signed:?}")]
    OtherIssuer {
        /// The issuer that the payload states.
        stated: String,
        /// The issuer that was signed.
        signed: String,
    },
    /// Its payload cannot be read, although it was signed.
    #[error(transparent)]
    Payload(#[from] PayloadFault),
}

impl SignedReceipt {
    pub(crate) fn new(payload: Vec<u8>, (place, size): (u64, u64), path: Vec<TreeHash>, jws: String) -> Self {
        Self { payload, place, size, path, jws }
    }

    /// Its payload, if one of these keys signed it. The caller must check that the keys belong to the issuer.
    ///
    /// # Errors
    /// When it was not signed with one of them, or was changed.
    pub fn verify(&self, keys: &JwkSet) -> Result<ReceiptPayload, ReceiptFault> {
        let jws = Jws::parse(&self.jws)?;
        let signed = jws.verify_with(keys)?;
        if jws.header().typ.as_deref() != Some(SignedRoot::TYPE) {
            return Err(ReceiptFault::OtherStatement);
        }
        let batch: SignedRoot = serde_json::from_slice(signed).map_err(|_| ReceiptFault::OtherStatement)?;
        if batch.size != self.size {
            return Err(ReceiptFault::OtherBatch { stated: self.size, signed: batch.size });
        }
        verify_inclusion(TreeHash::leaf(&self.payload), self.place, self.size, &self.path, batch.root)?;
        let payload = ReceiptPayload::parse(&self.payload)?;
        if payload.issuer != batch.iss {
            return Err(ReceiptFault::OtherIssuer { stated: payload.issuer, signed: batch.iss });
        }
        Ok(payload)
    }
}

impl fmt::Display for SignedReceipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let payload = URL_SAFE_NO_PAD.encode(&self.payload);
        let path: Vec<u8> = self.path.iter().flat_map(|hash| *hash.as_bytes()).collect();
        write!(f, "{payload}.{}-{}.{}.{}", self.place, self.size, URL_SAFE_NO_PAD.encode(path), self.jws)
    }
}

impl FromStr for SignedReceipt {
    type Err = ReceiptFault;

    /// White space around the receipt is ignored.
    fn from_str(text: &str) -> Result<Self, ReceiptFault> {
        let text = text.trim();
        let parts: Vec<&str> = text.splitn(4, '.').collect();
        let (&[payload, place, path, jws], 6) = (parts.as_slice(), text.split('.').count()) else {
            return Err(ReceiptFault::Parts(text.split('.').count()));
        };
        let payload = URL_SAFE_NO_PAD.decode(payload).map_err(|_| ReceiptFault::Damaged("payload"))?;
        let (place, size) = place.split_once('-').ok_or(ReceiptFault::Damaged("place in the batch"))?;
        let path = URL_SAFE_NO_PAD.decode(path).map_err(|_| ReceiptFault::Damaged("path"))?;
        let (path, []) = path.as_chunks::<32>() else { return Err(ReceiptFault::Damaged("path")) };
        Jws::parse(jws)?;
        Ok(Self {
            payload,
            place: decimal(place)?,
            size: decimal(size)?,
            path: path.iter().copied().map(TreeHash::from_bytes).collect(),
            jws: jws.to_owned(),
        })
    }
}

/// A number without sign or leading zeros, so each number has one spelling.
fn decimal(text: &str) -> Result<u64, ReceiptFault> {
    let number = text.parse().ok().filter(|number: &u64| number.to_string() == text);
    number.ok_or(ReceiptFault::Damaged("place in the batch"))
}

#[cfg(test)]
mod tests {
    use metering_core::Timestamp;
    use metering_log::keys::PrivateKey;

    use super::*;

    const EXAMPLE: &str = include_str!("../tests/vectors/receipt.txt");
    const PAYLOAD: &str = include_str!("../tests/vectors/payload.json");
    /// The thumbprint of the key that signed the example.
    const NAME: &str = "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k";

    fn published() -> JwkSet {
        JwkSet::parse(include_str!("../tests/vectors/keys.json")).unwrap()
    }

    fn verify(text: &str) -> Result<ReceiptPayload, ReceiptFault> {
        text.parse::<SignedReceipt>()?.verify(&published())
    }

    #[test]
    fn the_example_is_valid() {
        let payload = verify(EXAMPLE).unwrap();
        assert_eq!(payload, ReceiptPayload::parse(PAYLOAD.as_bytes()).unwrap());
        assert_eq!(EXAMPLE.parse::<SignedReceipt>().unwrap().to_string(), EXAMPLE.trim());
    }

    #[test]
    fn the_documentation_has_the_example() {
        let page = include_str!("../../docs/provable-bills.md");
        for part in [EXAMPLE, PAYLOAD, include_str!("../tests/vectors/keys.json")] {
            assert!(page.contains(&format!("\n{part}```\n")), "{part}");
        }
    }

    #[test]
    fn any_changed_byte_is_found() {
        let example = EXAMPLE.trim();
        for place in 0..example.len() {
            for flipped in [0x01, 0x20] {
                let mut damaged = example.as_bytes().to_vec();
                damaged[place] ^= flipped;
                let damaged = String::from_utf8(damaged).unwrap();
                assert!(verify(&damaged).is_err(), "{damaged}");
            }
        }
    }

    #[test]
    fn a_truncated_receipt_is_found() {
        let example = EXAMPLE.trim();
        for length in 0..example.len() {
            assert!(verify(&example[..length]).is_err() && verify(&example[length + 1..]).is_err(), "{length}");
        }
        assert_eq!(verify(""), Err(ReceiptFault::Parts(1)));
        assert_eq!(verify(&format!("{example}.")), Err(ReceiptFault::Parts(7)));
        // Without its last byte, the signature is too short.
        assert_eq!(verify(&example[..example.len() - 2]), Err(ReceiptFault::Signature(JwsError::BadSignature)));
    }

    #[test]
    fn damaged_parts_are_named() {
        let parts: Vec<&str> = EXAMPLE.trim().split('.').collect();
        // part, replaced by, fault
        let table = [
            (0, "e", ReceiptFault::Damaged("payload")),
            (1, "1", ReceiptFault::Damaged("place in the batch")),
            (1, "01-3", ReceiptFault::Damaged("place in the batch")),
            (1, "+1-3", ReceiptFault::Damaged("place in the batch")),
            (1, "1-4", ReceiptFault::OtherBatch { stated: 4, signed: 3 }),
            (1, "0-3", ReceiptFault::NotInBatch(ProofError::RootMismatch)),
            (1, "3-3", ReceiptFault::NotInBatch(ProofError::OutOfRange)),
            (2, "", ReceiptFault::NotInBatch(ProofError::WrongLength)),
            (2, "AAAA", ReceiptFault::Damaged("path")),
            (3, "e30", ReceiptFault::Signature(JwsError::Malformed)),
            (5, "", ReceiptFault::Signature(JwsError::BadSignature)),
        ];
        for (part, replaced, fault) in table {
            let mut parts = parts.clone();
            parts[part] = replaced;
            assert_eq!(verify(&parts.join(".")), Err(fault), "{part} {replaced}");
        }
    }

    #[test]
    fn keys_of_others_verify_nothing() {
        let other = JwkSet::new([PrivateKey::from_seed(&[7; 32]).public()]);
        let fault = EXAMPLE.parse::<SignedReceipt>().unwrap().verify(&other).unwrap_err();
        assert!(matches!(fault, ReceiptFault::Signature(JwsError::UnknownKey(_))), "{fault}");
        // Another key under the same name does not verify it either.
        let (own_name, _) = other.iter().next().unwrap();
        let named = other.to_json().replace(own_name, NAME);
        let fault = EXAMPLE.parse::<SignedReceipt>().unwrap().verify(&JwkSet::parse(&named).unwrap());
        assert_eq!(fault, Err(ReceiptFault::Signature(JwsError::BadSignature)));
    }

    /// A batch of one, signed by the key that the set has.
    fn signed(payload: &str, issuer: &str) -> Result<ReceiptPayload, ReceiptFault> {
        let key = PrivateKey::from_seed(&[7; 32]);
        let root = TreeHash::leaf(payload.as_bytes());
        let jws = SignedRoot::new(issuer.to_owned(), Timestamp::from_unix_millis(0), root, 1).sign(&key).unwrap();
        let receipt = SignedReceipt::new(payload.into(), (0, 1), Vec::new(), jws);
        receipt.to_string().parse::<SignedReceipt>()?.verify(&JwkSet::new([key.public()]))
    }

    #[test]
    fn the_issuer_of_payload_and_signature_are_the_same() {
        assert!(signed(PAYLOAD, "https://api.example.com").is_ok());
        let (stated, other) = ("https://api.example.com".to_owned(), "https://api.example.net".to_owned());
        assert_eq!(signed(PAYLOAD, &other), Err(ReceiptFault::OtherIssuer { stated, signed: other }));
    }

    #[test]
    fn signed_payloads_that_cannot_be_read_are_refused() {
        let later = PAYLOAD.replace(r#""v":1"#, r#""v":2"#);
        let fault = ReceiptFault::Payload(PayloadFault::Version(2));
        assert_eq!(signed(&later, "https://api.example.com"), Err(fault));
    }

    #[test]
    fn other_signed_statements_are_no_receipts() {
        use metering_log::keys::{JwsHeader, sign_jws};

        let key = PrivateKey::from_seed(&[7; 32]);
        let root = SignedRoot::new(String::new(), Timestamp::from_unix_millis(0), TreeHash::EMPTY_TREE, 1);
        let root = serde_json::to_vec(&root).unwrap();
        let table =
            [(None, root.as_slice()), (Some("JWT"), root.as_slice()), (Some(SignedRoot::TYPE), b"{}".as_slice())];
        for (typ, payload) in table {
            let header = JwsHeader { kid: Some(key.public().thumbprint()), typ: typ.map(str::to_owned) };
            let jws = sign_jws(&header, payload, &key);
            let receipt = SignedReceipt::new(PAYLOAD.into(), (0, 1), Vec::new(), jws);
            assert_eq!(receipt.verify(&JwkSet::new([key.public()])), Err(ReceiptFault::OtherStatement));
        }
    }
}
