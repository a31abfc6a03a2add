//! A payment of version 2.

use metering_core::chains::Address;
use serde_json::Value;

use crate::offers::{Offer, Offers, SignedAuthorization};
use crate::wire::accepted::{Accepted, OfferMismatch};
use crate::wire::fields::{Base64, Fields};
use crate::wire::malformed_payment::MalformedPayment;
use crate::wire::x402::identifier::{PAYMENT_IDENTIFIER_EXTENSION, PaymentIdentifier};
use crate::wire::x402::requirements::{
    PAYMENT_FLOW, SCHEME, TRANSFER_METHOD, UPTO_PAYMENT_FLOW, UPTO_SCHEME, UPTO_TRANSFER_METHOD,
};

const HEADER: &str = "PAYMENT-SIGNATURE";
/// Where the payment of a tool call is.
pub(super) const META: &str = "_meta[\"x402/payment\"]";
pub(super) const ADDRESS: &str =
    "must be an address: 0x and 40 hexadecimal digits, with a valid checksum if the case is mixed";
pub(super) const AMOUNT: &str = "must be a whole number of the token's smallest unit, in decimal digits";
pub(super) const ONLY_EXACT: &str = "must be \"exact\", the only scheme on offer in version 1";
const SCHEMES: &str = "must be \"exact\" or \"upto\", the only schemes on offer";

/// A payment of x402 version 2: which offer it accepts, and the signed authorization.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaymentPayload {
    /// The offer that it names. Not signed.
    pub accepted: Accepted,
    /// The signed message, for the chain and the token of that offer.
    pub signed: SignedAuthorization,
    /// Who may execute it, for at most the signed amount, if its scheme is `upto`; `None` for `exact`.
    pub facilitator: Option<Address>,
    /// The URL that it claims to pay for. Not signed.
    pub resource: Option<String>,
    /// The id that the client gave it.
    pub identifier: Option<PaymentIdentifier>,
}

impl PaymentPayload {
    /// Reads the value of [`PAYMENT_SIGNATURE_HEADER`](metering_core::wire::PAYMENT_SIGNATURE_HEADER).
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
        root.version(2, "must be 2; version 1 belongs in X-PAYMENT")?;
        let accepted = root.object("accepted")?;
        let is_for_usage = match accepted.text("scheme")? {
            SCHEME => false,
            UPTO_SCHEME => true,
            _ => return Err(accepted.fault("scheme", SCHEMES)),
        };
        let accepted = read_accepted(&accepted, is_for_usage)?;
        let payload = root.object("payload")?;
        let (authorization, facilitator) = if is_for_usage {
            let (authorization, facilitator) = payload.object("permit2Authorization")?.permit(accepted.asset)?;
            (authorization, Some(facilitator))
        } else if let Some(authorization) = payload.optional_object("authorization")? {
            (authorization.authorization()?, None)
        } else {
            let problem =
                "is missing; with the scheme \"exact\", only transferWithAuthorization (EIP-3009) is accepted";
            return Err(payload.fault("authorization", problem));
        };
        let (chain_id, token, signature) = (accepted.network.0, accepted.asset, payload.signature()?);
        let signed = SignedAuthorization { chain_id, token, authorization, signature };
        let resource = root.optional_object("resource")?;
        let resource = resource.map(|resource| resource.optional_text("url")).transpose()?.flatten();
        let identifier = read_identifier(&root)?;
        Ok(Self { accepted, signed, facilitator, resource: resource.map(str::to_owned), identifier })
    }

    /// The offer that it accepts. [`Authorization::check`](crate::offers::Authorization::check) compares the signed
    /// message with [`Offer::expected`].
    ///
    /// # Errors
    /// When it is none of these offers.
    pub fn offer<'o>(&self, offers: &'o Offers) -> Result<&'o Offer, OfferMismatch> {
        self.accepted.offer(offers)
    }
}

fn read_accepted(accepted: &Fields<'_>, is_for_usage: bool) -> Result<Accepted, MalformedPayment> {
    let extra = accepted.optional_object("extra")?;
    if let Some(extra) = &extra {
        // Clients that are older than payment flows leave this out.
        let (flow, method) = match is_for_usage {
            false => ((PAYMENT_FLOW, "must be \"upfront\""), (TRANSFER_METHOD, "must be \"eip3009\"")),
            true => ((UPTO_PAYMENT_FLOW, "must be \"authorization\""), (UPTO_TRANSFER_METHOD, "must be \"permit2\"")),
        };
        extra.exactly_if_sent("paymentFlow", flow.0, flow.1)?;
        extra.exactly_if_sent("assetTransferMethod", method.0, method.1)?;
    }
    let domain = |name| extra.as_ref().map(|extra| extra.optional_text(name)).transpose();
    Ok(Accepted {
        network: accepted.parse("network", "must be a chain as in CAIP-2, such as eip155:8453")?,
        asset: accepted.parse("asset", ADDRESS)?,
        amount: accepted.parse("amount", AMOUNT)?,
        pay_to: accepted.parse("payTo", ADDRESS)?,
        domain_name: domain("name")?.flatten().map(str::to_owned),
        domain_version: domain("version")?.flatten().map(str::to_owned),
    })
}

fn read_identifier(root: &Fields<'_>) -> Result<Option<PaymentIdentifier>, MalformedPayment> {
    let Some(extensions) = root.optional_object("extensions")? else { return Ok(None) };
    let Some(extension) = extensions.optional_object(PAYMENT_IDENTIFIER_EXTENSION)? else { return Ok(None) };
    let Some(info) = extension.optional_object("info")? else { return Ok(None) };
    let id = info.get("id").map(|_| info.parse("id", "must be 16 to 128 letters, digits, underscores and hyphens"));
    id.transpose()
}

#[cfg(test)]
mod tests {
    use metering_core::clock::Timestamp;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::offers::AuthorizationFault;
    use crate::wire::vectors::{NOW, decoded, header_of, mutated, offers, payer, usdc, vector};

    const FILES: [&str; 5] =
        ["x402-v2-fetch", "x402-v2-axios", "x402-v2-py-httpx", "x402-v2-mppx", "x402-v2-payment-identifier"];

    #[test]
    fn payments_of_published_clients_are_read() {
        for file in FILES {
            let vector = vector(file);
            let payment = PaymentPayload::parse(vector["header"].as_str().unwrap()).unwrap();
            assert_eq!(PaymentPayload::from_value(&vector["payload"]).as_ref(), Ok(&payment), "{file}");
            let offers = offers();
            let offer = payment.offer(&offers).unwrap();
            assert_eq!(offer.amount.get(), 50_000, "{file}");
            let authorization = payment.signed.authorization;
            assert_eq!(authorization.from, payer(), "{file}");
            assert_eq!(
                authorization.check(offer.expected(), Timestamp::from_unix_millis(NOW * 1_000)),
                Ok(()),
                "{file}"
            );
            let digest = format!("0x{}", hex::encode(authorization.digest(&usdc())));
            assert_eq!(digest, vector["eip712_digest"].as_str().unwrap(), "{file}");
            assert!(authorization.is_signed_by_key(&usdc(), &payment.signed.signature), "{file}");
            assert_eq!(payment.resource.as_deref(), Some("https://api.example.com/v1/quote?symbol=ETH"), "{file}");
            let id = payment.identifier.map(|id| id.to_string());
            assert_eq!(id.as_deref(), vector["id"].as_str(), "{file}");
        }
    }

    #[test]
    fn nulls_unknown_fields_and_other_spellings_change_nothing() {
        let original = vector("x402-v2-fetch")["payload"].clone();
        let expected = PaymentPayload::from_value(&original).unwrap();
        let lower = "0x036cbd53842c5426634e7929541ec2318f3dcf7e";
        for (path, value) in [
            ("/more", json!({"a": 1})),
            ("/extensions", json!(null)),
            ("/accepted/asset", json!(lower)),
            ("/accepted/more", json!([])),
            ("/accepted/maxTimeoutSeconds", json!(60)),
            ("/accepted/extra/assetTransferMethod", json!("eip3009")),
            ("/accepted/extra/paymentFlow", json!("upfront")),
            ("/resource/serviceName", json!(null)),
            ("/payload/authorization/validAfter", json!(0)),
            ("/payload/authorization/value", json!("050000")),
        ] {
            assert_eq!(PaymentPayload::from_value(&mutated(&original, path, value)).as_ref(), Ok(&expected), "{path}");
        }
        let mut without = mutated(&original, "/resource", json!(null));
        without["accepted"]["extra"] = json!(null);
        let payment = PaymentPayload::from_value(&without).unwrap();
        assert_eq!((payment.resource.as_ref(), payment.signed == expected.signed), (None, true));
        assert!(payment.offer(&offers()).is_ok());
    }

    #[test]
    fn a_field_that_cannot_be_read_is_named() {
        let original = vector("x402-v2-payment-identifier")["payload"].clone();
        let table = [
            ("x402Version", json!(1)),
            ("x402Version", json!("2")),
            ("accepted", json!(null)),
            ("accepted.scheme", json!("deferred")),
            ("accepted.network", json!("base-sepolia")),
            ("accepted.asset", json!("0x036cbD53842c5426634e7929541eC2318f3dCF7e")),
            ("accepted.amount", json!(50_000)),
            ("accepted.payTo", json!(null)),
            ("accepted.extra", json!("USDC")),
            ("accepted.extra.paymentFlow", json!("authorization")),
            ("accepted.extra.assetTransferMethod", json!("permit2")),
            ("payload", json!([])),
            ("payload.authorization", json!(null)),
            ("payload.authorization.from", json!("0x1")),
            ("payload.authorization.to", json!(7)),
            ("payload.authorization.value", json!("-1")),
            ("payload.authorization.validAfter", json!("soon")),
            ("payload.authorization.validBefore", json!("18446744073709551616")),
            ("payload.authorization.nonce", json!("0x00")),
            ("payload.signature", json!("0x")),
            ("extensions.payment-identifier.info.id", json!("short")),
        ];
        for (path, value) in table {
            let pointer = format!("/{}", path.replace('.', "/"));
            let error = PaymentPayload::parse(&header_of(&mutated(&original, &pointer, value))).unwrap_err();
            let MalformedPayment::Field { field, .. } = &error else { panic!("{path}: {error}") };
            assert_eq!(field, path);
            assert!(error.to_string().ends_with("Nothing was taken."), "{error}");
        }
    }

    #[test]
    fn a_permit_of_a_published_client_is_read() {
        use crate::offers::Permit;
        let vector = vector("x402-v2-upto");
        let payment = PaymentPayload::parse(vector["header"].as_str().unwrap()).unwrap();
        let (signed, facilitator) = (&payment.signed, payment.facilitator.unwrap());
        assert_eq!((signed.authorization.value.get(), signed.authorization.from), (20_000, payer()));
        assert_eq!(facilitator, Address::from_bytes([0x99; 20]));
        let permit = Permit { signed, facilitator };
        assert_eq!(format!("0x{}", hex::encode(permit.digest())), vector["eip712_digest"].as_str().unwrap());
        assert!(permit.is_signed_by_key());
    }

    #[test]
    fn a_field_of_a_permit_that_cannot_be_read_is_named() {
        let original = vector("x402-v2-upto")["payload"].clone();
        let table = [
            ("accepted.extra.paymentFlow", json!("upfront")),
            ("accepted.extra.assetTransferMethod", json!("eip3009")),
            ("payload.permit2Authorization", json!(null)),
            ("payload.permit2Authorization.spender", json!("0x402085c248EeA27D92E8b30b2C58ed07f9E20001")),
            ("payload.permit2Authorization.from", json!("0x1")),
            ("payload.permit2Authorization.nonce", json!("1e9")),
            ("payload.permit2Authorization.deadline", json!("soon")),
            ("payload.permit2Authorization.permitted.token", json!("0x209693Bc6afc0C5328bA36FaF03C514EF312287C")),
            ("payload.permit2Authorization.permitted.amount", json!("-1")),
            ("payload.permit2Authorization.witness.facilitator", json!(null)),
            ("payload.permit2Authorization.witness.to", json!(7)),
            ("payload.permit2Authorization.witness.validAfter", json!("x")),
        ];
        for (path, value) in table {
            let pointer = format!("/{}", path.replace('.', "/"));
            let error = PaymentPayload::from_value(&mutated(&original, &pointer, value)).unwrap_err();
            let MalformedPayment::Field { field, .. } = &error else { panic!("{path}: {error}") };
            assert_eq!(field, path);
        }
    }

    #[test]
    fn a_payment_for_another_offer_is_refused() {
        let original = vector("x402-v2-fetch")["payload"].clone();
        let other = "0x209693bc6afc0c5328ba36faf03c514ef312287d";
        for (path, value, text) in [
            ("/accepted/network", json!("eip155:8453"), "50000 units of 0x036c"),
            ("/accepted/asset", json!(other), "are not on offer"),
            ("/accepted/amount", json!("50001"), "50001 units"),
            ("/accepted/payTo", json!(other), "the offer pays 0x2096"),
            ("/accepted/extra/name", json!("USD Coin"), "name and version"),
            ("/accepted/extra/version", json!("1"), "name and version"),
        ] {
            let payment = PaymentPayload::from_value(&mutated(&original, path, value)).unwrap();
            let error = payment.offer(&offers()).unwrap_err().to_string();
            assert!(error.contains(text), "{path}: {error}");
        }
    }

    #[test]
    fn what_was_signed_cannot_be_altered() {
        let original = vector("x402-v2-fetch")["payload"].clone();
        let other = "0x209693bc6afc0c5328ba36faf03c514ef312287d";
        for (field, value) in [
            ("authorization/from", json!(other)),
            ("authorization/to", json!(other)),
            ("authorization/value", json!("50001")),
            ("authorization/validAfter", json!("1")),
            ("authorization/validBefore", json!("1750000301")),
            ("authorization/nonce", json!(format!("0x{}", "11".repeat(32)))),
            ("signature", json!(format!("0x{}", "11".repeat(65)))),
        ] {
            let altered = mutated(&original, &format!("/payload/{field}"), value);
            let payment = PaymentPayload::from_value(&altered).unwrap();
            let signed = payment.signed;
            assert!(!signed.authorization.is_signed_by_key(&usdc(), &signed.signature), "{field}");
        }
        let cheap = mutated(&original, "/payload/authorization/value", json!("1"));
        let payment = PaymentPayload::from_value(&cheap).unwrap();
        let offers = offers();
        let expected = payment.offer(&offers).unwrap().expected();
        let refused = payment.signed.authorization.check(expected, Timestamp::from_unix_millis(NOW * 1_000));
        assert!(matches!(refused, Err(AuthorizationFault::Amount { .. })), "{refused:?}");
    }

    #[test]
    fn the_signature_is_not_printed() {
        let vector = vector("x402-v2-fetch");
        let printed = format!("{:?}", PaymentPayload::parse(vector["header"].as_str().unwrap()).unwrap());
        assert!(!printed.contains("37ee65cd"), "{printed}");
        let wrong = mutated(&vector["payload"], "/payload/signature", json!("0x37ee65cd?"));
        let error = PaymentPayload::from_value(&wrong).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("37ee"), "{error:?}");
    }

    proptest! {
        #[test]
        fn no_header_makes_it_panic(text in "\\PC{0,300}", cut in 0_usize..3_000, with in any::<u8>()) {
            prop_assert!(PaymentPayload::parse(&text).is_err());
            let mut header = vector("x402-v2-fetch")["header"].as_str().unwrap().as_bytes().to_vec();
            if let Some(byte) = header.get_mut(cut) { *byte = with; }
            if let Ok(text) = std::str::from_utf8(&header) { let _ = PaymentPayload::parse(text); }
            if let Some(start) = header.get(..cut) { let _ = PaymentPayload::parse(&String::from_utf8_lossy(start)); }
        }

        #[test]
        fn no_value_in_a_field_makes_it_panic(field in 0_usize..16, text in "\\PC{0,40}", number in any::<i64>()) {
            let original = vector("x402-v2-fetch")["payload"].clone();
            let paths = ["/accepted/network", "/accepted/amount", "/accepted/asset", "/accepted/payTo", "/accepted/extra",
                "/accepted/extra/name", "/payload/signature", "/payload/authorization/from", "/payload/authorization/to",
                "/payload/authorization/value", "/payload/authorization/validAfter", "/payload/authorization/nonce",
                "/payload/authorization/validBefore", "/resource", "/extensions", "/x402Version"];
            for value in [json!(text), json!(number), json!([text]), json!({ "a": text })] {
                let _ = PaymentPayload::from_value(&mutated(&original, paths[field], value));
            }
        }
    }

    #[test]
    fn the_payload_of_a_vector_is_its_header() {
        for file in FILES {
            let vector = vector(file);
            assert_eq!(decoded(vector["header"].as_str().unwrap()), vector["payload"], "{file}");
        }
    }
}
