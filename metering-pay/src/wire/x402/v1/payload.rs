//! A payment of version 1.

use metering_core::chains::Address;
use metering_core::chains::WalletSignature;
use metering_core::shown_fields;
use serde_json::Value;

use crate::offers::{Authorization, Network, Offer, Offers, SignedAuthorization};
use crate::wire::accepted::OfferMismatch;
use crate::wire::fields::{Base64, Fields};
use crate::wire::malformed_payment::MalformedPayment;
use crate::wire::x402::payload::{META, ONLY_EXACT};
use crate::wire::x402::requirements::SCHEME;
use crate::wire::x402::v1::network;

const HEADER: &str = "X-PAYMENT";

/// A payment of x402 version 1. It does not name its token: the signed message identifies the offer.
#[derive(Clone, PartialEq, Eq)]
pub struct PaymentPayloadV1 {
    /// The chain.
    pub network: Network,
    /// The signed authorization.
    pub authorization: Authorization,
    /// The payer's signature.
    pub signature: WalletSignature,
}

// Leaves out the signature, because anyone who has it can execute the authorization.
shown_fields!(PaymentPayloadV1: network, authorization);

impl PaymentPayloadV1 {
    /// Reads the value of [`X_PAYMENT_HEADER`](metering_core::wire::X_PAYMENT_HEADER).
    ///
    /// # Errors
    /// When it is not such a payment. Names the wrong field.
    pub fn parse(header: &str) -> Result<Self, MalformedPayment> {
        Self::read(HEADER, &Base64::Standard.decode_json(HEADER, header)?)
    }

    /// Reads the value of [`X402_PAYMENT_META`](crate::wire::mcp::X402_PAYMENT_META) in a call of an MCP tool.
    ///
    /// # Errors
    /// When it is not such a payment. Names the wrong field.
    pub fn from_value(value: &Value) -> Result<Self, MalformedPayment> {
        Self::read(META, value)
    }

    fn read(what: &'static str, value: &Value) -> Result<Self, MalformedPayment> {
        let root = Fields::of(what, value)?;
        root.version(1, "must be 1; version 2 belongs in PAYMENT-SIGNATURE")?;
        root.exactly("scheme", SCHEME, ONLY_EXACT)?;
        let chain_id = network::chain_id(root.text("network")?);
        let chain_id =
            chain_id.ok_or_else(|| root.fault("network", "must be the network of an offer, such as base"))?;
        let payload = root.object("payload")?;
        let authorization = payload.object("authorization")?.authorization()?;
        Ok(Self { network: Network(chain_id), authorization, signature: payload.signature()? })
    }

    /// The offer that it pays, and the authorization for that offer's token. If offers of several tokens have the same
    /// amount, it is the one whose token the payer signed for; for the wallet of a contract, whose signature only a
    /// chain can check, the first.
    ///
    /// # Errors
    /// When no offer on its network matches the signed message.
    pub fn offer<'o>(&self, offers: &'o Offers) -> Result<(&'o Offer, SignedAuthorization), OfferMismatch> {
        let fits = |offer: &&Offer| {
            let expected = offer.expected();
            offer.network() == self.network
                && (expected.to, expected.value) == (self.authorization.to, self.authorization.value)
        };
        let fitting: Vec<_> = offers.iter().filter(fits).collect();
        let signed_for = |offer: &&&Offer| self.authorization.is_signed_by_key(&offer.asset.domain, &self.signature);
        let offer = fitting.iter().find(signed_for).or_else(|| fitting.first()).copied();
        let Some(offer) = offer else {
            let Authorization { to: pay_to, value: amount, .. } = self.authorization;
            return Err(OfferMismatch::NoSuchOffer { network: self.network, pay_to, amount });
        };
        let (authorization, signature) = (self.authorization, self.signature.clone());
        let token = offer.asset.domain.contract;
        Ok((offer, SignedAuthorization { chain_id: self.network.0, token, authorization, signature }))
    }

    /// The authorization, if it matches no offer: for no token, which is never offered.
    pub(crate) fn without_offer(self) -> SignedAuthorization {
        let Self { network, authorization, signature } = self;
        SignedAuthorization { chain_id: network.0, token: Address::ZERO, authorization, signature }
    }
}

#[cfg(test)]
mod tests {
    use metering_core::clock::Timestamp;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::wire::vectors::{NOW, decoded, header_of, mutated, offer, offers, payer, usdc, vector};

    const FILES: [&str; 4] =
        ["x402-v1-x402-fetch", "x402-v1-x402-fetch-localaccount", "x402-v1-via-x402fetch", "x402-v1-py-httpx"];

    #[test]
    fn payments_of_published_clients_are_read() {
        for file in FILES {
            let vector = vector(file);
            let header = vector["header"].as_str().unwrap();
            assert_eq!(decoded(header), vector["payload"], "{file}");
            let payment = PaymentPayloadV1::parse(header).unwrap();
            assert_eq!((payment.network.0, payment.authorization.from), (84_532, payer()), "{file}");
            let offers = offers();
            let (offer, signed) = payment.offer(&offers).unwrap();
            let now = Timestamp::from_unix_millis(NOW * 1_000);
            assert_eq!(signed.authorization.check(offer.expected(), now), Ok(()), "{file}");
            assert_eq!((signed.chain_id, signed.token), (84_532, usdc().contract), "{file}");
            let digest = format!("0x{}", hex::encode(signed.authorization.digest(&usdc())));
            assert_eq!(digest, vector["eip712_digest"].as_str().unwrap(), "{file}");
            assert!(signed.authorization.is_signed_by_key(&usdc(), &signed.signature), "{file}");
        }
    }

    #[test]
    fn a_field_that_cannot_be_read_is_named() {
        let original = vector("x402-v1-py-httpx")["payload"].clone();
        for (path, value) in [
            ("x402Version", json!(2)),
            ("scheme", json!("upto")),
            ("network", json!("eip155:84532")),
            ("network", json!("ethereum")),
            ("payload", json!(null)),
            ("payload.authorization", json!(null)),
            ("payload.authorization.value", json!("1.5")),
            ("payload.signature", json!(5)),
        ] {
            let pointer = format!("/{}", path.replace('.', "/"));
            let error = PaymentPayloadV1::parse(&header_of(&mutated(&original, &pointer, value))).unwrap_err();
            assert!(matches!(&error, MalformedPayment::Field { field, .. } if field == path), "{path}: {error}");
        }
    }

    #[test]
    fn the_offer_is_found_by_what_was_signed() {
        let original = vector("x402-v1-py-httpx")["payload"].clone();
        for (path, value) in [
            ("/network", json!("base")),
            ("/payload/authorization/value", json!("50001")),
            ("/payload/authorization/to", json!("0x209693bc6afc0c5328ba36faf03c514ef312287d")),
        ] {
            let payment = PaymentPayloadV1::parse(&header_of(&mutated(&original, path, value))).unwrap();
            let error = payment.offer(&offers()).unwrap_err();
            assert!(matches!(error, OfferMismatch::NoSuchOffer { .. }), "{path}");
            assert!(error.to_string().contains("send the request without a payment"), "{error}");
        }
        let payment = PaymentPayloadV1::parse(&header_of(&original)).unwrap();
        let other = offer(84_532, "0x209693bc6afc0c5328ba36faf03c514ef312287d", "0.05");
        let both = Offers::new(vec![other.clone(), offers().iter().next().unwrap().clone()]);
        assert_eq!(payment.offer(&both).unwrap().0.asset.domain, usdc(), "the payer signed for the second");
        let contract = mutated(&original, "/payload/signature", json!("0x1234"));
        let payment = PaymentPayloadV1::parse(&header_of(&contract)).unwrap();
        assert_eq!(payment.offer(&both).unwrap().0, &other);
        assert!(!format!("{payment:?}").contains("1234"));
    }

    #[test]
    fn what_was_signed_cannot_be_altered() {
        let original = vector("x402-v1-py-httpx")["payload"].clone();
        let other = "0x209693bc6afc0c5328ba36faf03c514ef312287d";
        for (field, value) in [
            ("authorization/from", json!(other)),
            ("authorization/to", json!(other)),
            ("authorization/value", json!("500000")),
            ("authorization/validAfter", json!("0")),
            ("authorization/validBefore", json!("1750000301")),
            ("authorization/nonce", json!(format!("0x{}", "11".repeat(32)))),
            ("signature", json!(format!("0x{}", "11".repeat(65)))),
        ] {
            let altered = mutated(&original, &format!("/payload/{field}"), value);
            let payment = PaymentPayloadV1::parse(&header_of(&altered)).unwrap();
            assert!(!payment.authorization.is_signed_by_key(&usdc(), &payment.signature), "{field}");
        }
    }

    proptest! {
        #[test]
        fn no_header_makes_it_panic(text in "\\PC{0,300}", cut in 0_usize..900, with in any::<u8>()) {
            prop_assert!(PaymentPayloadV1::parse(&text).is_err());
            let mut header = vector("x402-v1-py-httpx")["header"].as_str().unwrap().as_bytes().to_vec();
            if let Some(byte) = header.get_mut(cut) { *byte = with; }
            if let Ok(text) = std::str::from_utf8(&header) { let _ = PaymentPayloadV1::parse(text); }
        }
    }
}
