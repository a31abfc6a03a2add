//! The extension `offer-receipt`: offers and receipts that the service signs, as evidence for others
//! (`specs/extensions/extension-offer-and-receipt.md`, version 0.6, in both of its formats: `eip712` and `jws`).

use std::collections::BTreeMap;

use metering_core::clock::Timestamp;
use serde_json::{Map, Value, json};
use sha3::{Digest, Keccak256};

use crate::offers::{Network, Offer, Offers, SignedAuthorization, StatementSignature, StatementSigner};
use crate::wire::x402::requirements::{MAX_TIMEOUT_SECONDS, SCHEME};

/// The key of the extension.
pub const OFFER_RECEIPT_EXTENSION: &str = "offer-receipt";

/// The version of both statements.
const VERSION: u64 = 1;
/// Fixed by the extension, whose statements are not tied to a chain.
const CHAIN_ID: u64 = 1;
const DOMAIN: &str = "EIP712Domain(string name,string version,uint256 chainId)";

/// A member of a statement.
enum Member {
    Number(u64),
    Text(String),
}

/// The signed message: the members are those of its JSON and of its type (EIP-712), in this order.
struct Statement {
    /// The name of the domain.
    domain: &'static str,
    /// The name of the type.
    kind: &'static str,
    members: Vec<(&'static str, Member)>,
}

/// The extension of a 402 that has these offers for a URL, signed, in the order of `accepts`.
#[must_use]
pub fn offers_extension(signer: &dyn StatementSigner, offers: &Offers, url: &str, now: Timestamp) -> Value {
    let until = seconds(now).saturating_add(MAX_TIMEOUT_SECONDS.into());
    let signed = offers.iter().enumerate().map(|(index, offer)| {
        let mut signed = Statement::offer(offer, url, until).signed(signer);
        signed.insert("acceptIndex".to_owned(), index.into());
        Value::Object(signed)
    });
    extension("offers", signed.collect::<Vec<_>>().into(), "array")
}

/// The extension of the outcome of a payment for a URL that was served.
#[must_use]
pub fn receipt_extension(
    signer: &dyn StatementSigner,
    paid: &SignedAuthorization,
    url: &str,
    now: Timestamp,
) -> Map<String, Value> {
    let receipt = Statement::receipt(paid, url, seconds(now)).signed(signer);
    let extension = extension("receipt", receipt.into(), "object");
    Map::from_iter([(OFFER_RECEIPT_EXTENSION.to_owned(), extension)])
}

/// The schema is as short as it may be: all of this is a header, and clients send offers back.
fn extension(name: &str, value: Value, kind: &str) -> Value {
    json!({
        "info": {name: value},
        "schema": {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {name: {"type": kind}},
            "required": [name],
        },
    })
}

fn seconds(time: Timestamp) -> u64 {
    u64::try_from(time.unix_seconds()).unwrap_or_default()
}

impl Statement {
    fn offer(offer: &Offer, url: &str, until: u64) -> Self {
        let text = |text: &str| Member::Text(text.to_owned());
        let members = vec![
            ("version", Member::Number(VERSION)),
            ("resourceUrl", text(url)),
            ("scheme", text(SCHEME)),
            ("network", Member::Text(offer.network().to_string())),
            ("asset", Member::Text(offer.asset.domain.contract.to_checksummed())),
            ("payTo", Member::Text(offer.pay_to.to_checksummed())),
            ("amount", Member::Text(offer.amount.get().to_string())),
            ("validUntil", Member::Number(until)),
        ];
        Self { domain: "x402 offer", kind: "Offer", members }
    }

    /// Without its transaction, which would tie the payer's other payments to it.
    fn receipt(paid: &SignedAuthorization, url: &str, issued_at: u64) -> Self {
        let members = vec![
            ("version", Member::Number(VERSION)),
            ("network", Member::Text(Network(paid.chain_id).to_string())),
            ("resourceUrl", Member::Text(url.to_owned())),
            ("payer", Member::Text(paid.authorization.from.to_checksummed())),
            ("issuedAt", Member::Number(issued_at)),
            ("transaction", Member::Text(String::new())),
        ];
        Self { domain: "x402 receipt", kind: "Receipt", members }
    }

    /// The digest that is signed (EIP-712).
    fn digest(&self) -> [u8; 32] {
        let types: Vec<_> = self.members.iter().map(|(name, member)| format!("{} {name}", member.kind())).collect();
        let mut message = vec![keccak(format!("{}({})", self.kind, types.join(",")).as_bytes())];
        message.extend(self.members.iter().map(|(_, member)| member.word()));
        let domain =
            [keccak(DOMAIN.as_bytes()), keccak(self.domain.as_bytes()), keccak(b"1"), Member::Number(CHAIN_ID).word()];
        keccak(&[b"\x19\x01".as_slice(), &keccak(&domain.concat()), &keccak(&message.concat())].concat())
    }

    /// As JSON in its canonical form (RFC 8785): sorted, and without the optional members that are empty, which only types
    /// of EIP-712 must have.
    fn canonical(&self) -> Vec<u8> {
        let members = self.members.iter().filter(|(_, member)| !member.is_empty());
        let sorted: BTreeMap<_, _> = members.map(|(name, member)| (*name, Value::from(member))).collect();
        serde_json::to_vec(&sorted).unwrap_or_default()
    }

    fn signed(&self, signer: &dyn StatementSigner) -> Map<String, Value> {
        let (format, payload, signature) = match signer.sign(self.digest(), &self.canonical()) {
            StatementSignature::Eip712(signature) => {
                let members = self.members.iter().map(|(name, member)| ((*name).to_owned(), Value::from(member)));
                ("eip712", Some(Value::Object(members.collect())), format!("0x{}", hex::encode(signature.as_bytes())))
            }
            // It has the payload in itself.
            StatementSignature::Jws(jws) => ("jws", None, jws),
        };
        let signed = [("format".to_owned(), Value::from(format)), ("signature".to_owned(), Value::from(signature))];
        signed.into_iter().chain(payload.map(|payload| ("payload".to_owned(), payload))).collect()
    }
}

impl Member {
    const fn kind(&self) -> &'static str {
        match self {
            Self::Number(_) => "uint256",
            Self::Text(_) => "string",
        }
    }

    fn is_empty(&self) -> bool {
        matches!(self, Self::Text(text) if text.is_empty())
    }

    fn word(&self) -> [u8; 32] {
        match self {
            Self::Number(number) => {
                let mut word = [0; 32];
                word[24..].copy_from_slice(&number.to_be_bytes());
                word
            }
            Self::Text(text) => keccak(text.as_bytes()),
        }
    }
}

impl From<&Member> for Value {
    fn from(member: &Member) -> Self {
        match member {
            Member::Number(number) => (*number).into(),
            Member::Text(text) => text.as_str().into(),
        }
    }
}

fn keccak(bytes: &[u8]) -> [u8; 32] {
    Keccak256::digest(bytes).into()
}

#[cfg(test)]
mod tests {
    use metering_core::chains::WalletSignature;

    use super::*;
    use crate::wire::vectors::{NOW, offers, vector};
    use crate::wire::x402::PaymentPayload;

    const URL: &str = "https://api.example.com/v1/quote?symbol=ETH";

    /// Shows the digest as the first part of a signature.
    #[derive(Debug)]
    struct Shows;

    impl StatementSigner for Shows {
        fn sign(&self, digest: [u8; 32], _json: &[u8]) -> StatementSignature {
            StatementSignature::Eip712(WalletSignature::from_bytes([&digest[..], &[0; 33]].concat()).unwrap())
        }
    }

    /// Shows the JSON as the whole signature.
    #[derive(Debug)]
    struct ShowsJson;

    impl StatementSigner for ShowsJson {
        fn sign(&self, _digest: [u8; 32], json: &[u8]) -> StatementSignature {
            StatementSignature::Jws(String::from_utf8(json.to_vec()).unwrap())
        }
    }

    fn digest(statement: &Value) -> &str {
        &statement["signature"].as_str().unwrap()[2..66]
    }

    fn now() -> Timestamp {
        Timestamp::from_unix_millis(NOW * 1_000)
    }

    /// The digests are the results of `hashOfferTypedData` and `hashReceiptTypedData` of npm's `@x402/extensions`
    /// 2.27.0.
    #[test]
    fn statements_have_the_digests_of_the_reference() {
        let extension = offers_extension(&Shows, &offers(), URL, now());
        let signed = extension["info"]["offers"].as_array().unwrap();
        assert_eq!((signed.len(), &signed[1]["acceptIndex"]), (2, &json!(1)));
        let payload = json!({"version": 1, "resourceUrl": URL, "scheme": "exact", "network": "eip155:84532",
            "asset": "0x036CbD53842c5426634e7929541eC2318f3dCF7e",
            "payTo": "0x209693Bc6afc0C5328bA36FaF03C514EF312287C", "amount": "50000", "validUntil": 1_750_000_300});
        assert_eq!((&signed[0]["payload"], &signed[0]["format"]), (&payload, &json!("eip712")));
        assert_eq!(digest(&signed[0]), "01903d485a59c886a0521053d22de1a6e91c01c5020a6c02c8030dafebcb7403");

        let paid = PaymentPayload::from_value(&vector("x402-v2-fetch")["payload"]).unwrap().signed;
        let extension = &receipt_extension(&Shows, &paid, URL, now())[OFFER_RECEIPT_EXTENSION];
        let receipt = &extension["info"]["receipt"];
        let payload = json!({"version": 1, "network": "eip155:84532", "resourceUrl": URL,
            "payer": "0x70997970C51812dc3A010C7d01b50e0d17dc79C8", "issuedAt": NOW, "transaction": ""});
        assert_eq!(receipt["payload"], payload);
        assert_eq!(digest(receipt), "bdf15dd7425e2c58e9defdb8b008f70bbdd25bfdce008303a8d5352fba0665c9");
        assert_eq!(extension["schema"]["required"], json!(["receipt"]));
    }

    #[test]
    fn a_jws_has_the_canonical_payload_and_no_empty_members() {
        let offers = offers_extension(&ShowsJson, &offers(), URL, now());
        let expected = format!(
            "{{\"amount\":\"50000\",\"asset\":\"0x036CbD53842c5426634e7929541eC2318f3dCF7e\",\"network\":\"eip155:84532\",\
             \"payTo\":\"0x209693Bc6afc0C5328bA36FaF03C514EF312287C\",\"resourceUrl\":\"{URL}\",\"scheme\":\"exact\",\
             \"validUntil\":1750000300,\"version\":1}}"
        );
        let signed = json!({"format": "jws", "signature": expected, "acceptIndex": 0});
        assert_eq!(offers["info"]["offers"][0], signed);

        let paid = PaymentPayload::from_value(&vector("x402-v2-fetch")["payload"]).unwrap().signed;
        let extension = &receipt_extension(&ShowsJson, &paid, URL, now())[OFFER_RECEIPT_EXTENSION];
        let expected = format!(
            "{{\"issuedAt\":{NOW},\"network\":\"eip155:84532\",\"payer\":\"0x70997970C51812dc3A010C7d01b50e0d17dc79C8\",\
             \"resourceUrl\":\"{URL}\",\"version\":1}}"
        );
        assert_eq!(extension["info"]["receipt"], json!({"format": "jws", "signature": expected}));
    }
}
