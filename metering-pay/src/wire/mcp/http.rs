//! Payments of tool calls as headers of HTTP requests, and headers of responses as members of results.

use metering_core::wire::{
    AUTHORIZATION_HEADER, PAYMENT_AUTHORIZATION_HEADER, PAYMENT_RECEIPT_HEADER, PAYMENT_RESPONSE_HEADER,
    PAYMENT_SIGNATURE_HEADER, X_PAYMENT_HEADER, X_PAYMENT_RESPONSE_HEADER,
};
use serde_json::{Map, Value, json};

use crate::wire::fields::{Base64, MAX_PAYMENT_BYTES};
use crate::wire::malformed_payment::MalformedPayment;
use crate::wire::mcp::{MPP_CREDENTIAL_META, MPP_RECEIPT_META, McpPayment, X402_PAYMENT_META, X402_RESPONSE_META};
use crate::wire::mpp::OWN_HEADER;
use crate::wire::x402::{BAZAAR_EXTENSION, PricedTool, SIGN_IN_EXTENSION, bazaar_tool_extension};

/// Extensions of x402 that are about HTTP: a tool call can do nothing with them.
const OF_HTTP: [&str; 2] = [BAZAAR_EXTENSION, SIGN_IN_EXTENSION];

/// The fields of a payment of version 2 that a service reads, besides [`SIGNED`].
const FIELDS: [&[&str]; 11] = [
    &["x402Version"],
    &["accepted", "scheme"],
    &["accepted", "network"],
    &["accepted", "asset"],
    &["accepted", "amount"],
    &["accepted", "payTo"],
    &["accepted", "maxTimeoutSeconds"],
    &["accepted", "extra", "name"],
    &["accepted", "extra", "version"],
    &["resource", "url"],
    &["extensions", "payment-identifier", "info", "id"],
];

/// The same of version 1.
const FIELDS_V1: [&[&str]; 3] = [&["x402Version"], &["scheme"], &["network"]];

/// The signed message, and the signature.
const SIGNED: [&[&str]; 16] = [
    &["payload", "signature"],
    &["payload", "authorization", "from"],
    &["payload", "authorization", "to"],
    &["payload", "authorization", "value"],
    &["payload", "authorization", "validAfter"],
    &["payload", "authorization", "validBefore"],
    &["payload", "authorization", "nonce"],
    &["payload", "permit2Authorization", "from"],
    &["payload", "permit2Authorization", "spender"],
    &["payload", "permit2Authorization", "nonce"],
    &["payload", "permit2Authorization", "deadline"],
    &["payload", "permit2Authorization", "permitted", "token"],
    &["payload", "permit2Authorization", "permitted", "amount"],
    &["payload", "permit2Authorization", "witness", "to"],
    &["payload", "permit2Authorization", "witness", "facilitator"],
    &["payload", "permit2Authorization", "witness", "validAfter"],
];

/// The header that a request over HTTP has instead of the payment in `_meta` of a tool call; `None` if there is none.
/// It has only the fields that a service reads: clients send offers back in full, which may be too long for a header.
///
/// ```
/// use metering_pay::wire::mcp::payment_header;
///
/// let meta = serde_json::json!({"progressToken": 1, "x402/payment": null});
/// assert_eq!(payment_header(meta.as_object().unwrap()), Ok(None));
/// ```
///
/// # Errors
/// When there are two payments, or the payment cannot be read. Nothing was taken.
pub fn payment_header(meta: &Map<String, Value>) -> Result<Option<(&'static str, String)>, MalformedPayment> {
    let (name, what) = match McpPayment::read(meta)? {
        None => return Ok(None),
        Some(McpPayment::X402(_)) => (PAYMENT_SIGNATURE_HEADER, X402_PAYMENT_META),
        Some(McpPayment::X402V1(_)) => (X_PAYMENT_HEADER, X402_PAYMENT_META),
        Some(McpPayment::Mpp(_)) => (AUTHORIZATION_HEADER, MPP_CREDENTIAL_META),
    };
    let Some(payment) = meta.get(what) else { return Ok(None) };
    let (name, value) = match name {
        PAYMENT_SIGNATURE_HEADER => (name, Base64::Standard.encode_json(&only(payment, &FIELDS))),
        X_PAYMENT_HEADER => (name, Base64::Standard.encode_json(&only(payment, &FIELDS_V1))),
        // The credential goes into the header that its challenge names.
        _ => {
            let own_header = payment["challenge"]["header"].as_str() == Some(OWN_HEADER);
            let name = if own_header { PAYMENT_AUTHORIZATION_HEADER } else { AUTHORIZATION_HEADER };
            (name, format!("Payment {}", Base64::Url.encode_json(payment)))
        }
    };
    if value.len() > MAX_PAYMENT_BYTES {
        return Err(MalformedPayment::TooLong { what, max: MAX_PAYMENT_BYTES });
    }
    Ok(Some((name, value)))
}

/// The same payment with only these fields and the signed message, without nulls.
fn only(payment: &Value, fields: &[&[&str]]) -> Value {
    let mut kept = Map::new();
    for path in fields.iter().chain(&SIGNED) {
        let found = path.iter().try_fold(payment, |value, name| value.get(name));
        if let Some(value) = found.filter(|value| !value.is_null()) {
            insert(&mut kept, path, value);
        }
    }
    kept.into()
}

fn insert(members: &mut Map<String, Value>, path: &[&str], value: &Value) {
    match path {
        [] => {}
        [name] => drop(members.insert((*name).to_owned(), value.clone())),
        [name, rest @ ..] => {
            if let Value::Object(below) = members.entry(*name).or_insert_with(|| json!({})) {
                insert(below, rest, value);
            }
        }
    }
}

/// The outcome of a tool call's payment: members of `_meta` of its result, from the headers of the response. `header`
/// returns the value of a header by its name in lower case.
#[must_use]
pub fn payment_results<'h>(header: impl Fn(&'static str) -> Option<&'h str>) -> Vec<(&'static str, Value)> {
    let settled = header(PAYMENT_RESPONSE_HEADER).or_else(|| header(X_PAYMENT_RESPONSE_HEADER));
    let settled = settled.and_then(|text| object(Base64::Standard, text));
    let receipt = header(PAYMENT_RECEIPT_HEADER).and_then(|text| object(Base64::Url, text));
    let named = [(X402_RESPONSE_META, settled), (MPP_RECEIPT_META, receipt)];
    named.into_iter().filter_map(|(name, value)| Some((name, Value::Object(value?)))).collect()
}

/// The challenges of MPP in a 402: the value of [`MPP_REQUIRED_META`](crate::wire::mcp::MPP_REQUIRED_META), from the
/// lines of `WWW-Authenticate`, which have one challenge each. `None` if there is none.
pub fn payment_challenges<'h>(lines: impl IntoIterator<Item = &'h str>) -> Option<Value> {
    let challenges: Vec<_> = lines.into_iter().filter_map(challenge).collect();
    (!challenges.is_empty()).then(|| json!({ "challenges": challenges }))
}

/// A challenge as JSON, with the request as an object.
fn challenge(line: &str) -> Option<Value> {
    let mut rest = line.strip_prefix("Payment ")?;
    let mut members = Map::new();
    loop {
        let (name, value) = rest.split_once("=\"")?;
        let (text, after) = unquoted(value)?;
        members.insert(name.to_owned(), text.into());
        match after.strip_prefix(", ") {
            Some(more) => rest = more,
            None => break,
        }
    }
    let request = object(Base64::Url, members.get("request")?.as_str()?)?;
    members.insert("request".to_owned(), request.into());
    Some(members.into())
}

/// The text of a quoted string, after its first quote, and the rest (RFC 9110, section 5.6.4).
fn unquoted(text: &str) -> Option<(String, &str)> {
    let mut plain = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((plain, &text[at + 1..])),
            '\\' => plain.push(characters.next()?.1),
            _ => plain.push(character),
        }
    }
    None
}

/// The offers of a 402, in the form of a tool call's result.
#[derive(Debug, Clone, PartialEq)]
pub struct PaymentForm(Map<String, Value>);

impl PaymentForm {
    /// Members that replace or extend those of the error's JSON, in this order.
    pub const MEMBERS: [&str; 4] = ["x402Version", "resource", "accepts", "extensions"];

    /// Reads the value of [`PAYMENT_REQUIRED_HEADER`](metering_core::wire::PAYMENT_REQUIRED_HEADER), for the tool of this name.
    /// `None` if it has no offers.
    #[must_use]
    pub fn of_tool(tool: &str, header: &str) -> Option<Self> {
        let mut document = object(Base64::Standard, header)?;
        document.get("accepts")?.as_array().filter(|offers| !offers.is_empty())?;
        document.get_mut("resource")?.as_object_mut()?.insert("url".to_owned(), format!("mcp://tool/{tool}").into());
        if let Some(Value::Object(extensions)) = document.get_mut("extensions") {
            extensions.retain(|name, _| !OF_HTTP.contains(&name.as_str()));
            if extensions.is_empty() {
                document.remove("extensions");
            }
        }
        document.retain(|name, _| Self::MEMBERS.contains(&name.as_str()));
        Some(Self(document))
    }

    /// The same, with a description of the tool for catalogues of paid services.
    #[must_use]
    pub fn described(mut self, tool: &PricedTool<'_>) -> Self {
        if let Value::Object(extensions) = self.0.entry("extensions").or_insert_with(|| json!({})) {
            extensions.insert(BAZAAR_EXTENSION.to_owned(), bazaar_tool_extension(tool));
        }
        self
    }

    /// The members, by name.
    pub fn into_members(mut self) -> impl Iterator<Item = (&'static str, Value)> {
        Self::MEMBERS.into_iter().filter_map(move |name| Some((name, self.0.remove(name)?)))
    }
}

fn object(base64: Base64, text: &str) -> Option<Map<String, Value>> {
    match base64.decode_json("header", text) {
        Ok(Value::Object(members)) => Some(members),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::mpp::Credential;
    use crate::wire::payment_headers::MppSource;
    use crate::wire::vectors::{mutated, vector};
    use crate::wire::x402::{PaymentPayload, PaymentPayloadV1};

    fn header(name: &str, payment: &Value) -> Result<Option<(&'static str, String)>, MalformedPayment> {
        payment_header(json!({ name: payment }).as_object().unwrap())
    }

    #[test]
    fn what_a_service_reads_survives_and_nothing_else() {
        let files = [
            "x402-v2-fetch",
            "x402-v2-axios",
            "x402-v2-py-httpx",
            "x402-v2-mppx",
            "x402-v2-payment-identifier",
            "x402-v2-upto",
        ];
        for file in files {
            let payment = vector(file)["payload"].clone();
            // PyPI's session writes nulls for fields that it leaves out.
            let mut padded = mutated(&payment, "/resource/serviceName", Value::Null);
            padded["extensions"]["unknown"] = json!({"info": "x".repeat(40_000), "schema": {}});
            let (name, value) = header(X402_PAYMENT_META, &padded).unwrap().unwrap();
            assert_eq!(name, "payment-signature");
            assert!(value.len() < 2_000, "{file}: {}", value.len());
            assert_eq!(PaymentPayload::parse(&value), PaymentPayload::from_value(&payment), "{file}");
        }
        for file in ["x402-v1-x402-fetch", "x402-v1-py-httpx"] {
            let payment = vector(file)["payload"].clone();
            let (name, value) = header(X402_PAYMENT_META, &payment).unwrap().unwrap();
            assert_eq!(name, "x-payment");
            assert_eq!(PaymentPayloadV1::parse(&value), PaymentPayloadV1::from_value(&payment), "{file}");
        }
    }

    #[test]
    fn a_credential_goes_where_its_challenge_says() {
        for (file, expected) in [
            ("mpp-evm-authorization", "authorization"),
            ("mpp-evm-payment-authorization-header", "payment-authorization"),
        ] {
            let credential = vector(file)["credential"].clone();
            let (name, value) = header(MPP_CREDENTIAL_META, &credential).unwrap().unwrap();
            let text = value.strip_prefix("Payment ").unwrap();
            assert_eq!(name, expected);
            assert!(Credential::parse(MppSource::Authorization, text).is_ok(), "{file}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_refused_before_anything_is_sent() {
        let payment = vector("x402-v2-fetch")["payload"].clone();
        for broken in [
            json!("base64"),
            json!([]),
            mutated(&payment, "/payload", Value::Null),
            mutated(&payment, "/x402Version", json!(3)),
            mutated(&payment, "/payload/authorization/value", json!("1.5")),
        ] {
            let error = header(X402_PAYMENT_META, &broken).unwrap_err().to_string();
            assert!(error.starts_with("_meta[\"x402/payment\"]") && error.ends_with("Nothing was taken."), "{error}");
        }
        let long = mutated(&payment, "/resource/url", json!("x".repeat(MAX_PAYMENT_BYTES)));
        assert!(matches!(header(X402_PAYMENT_META, &long), Err(MalformedPayment::TooLong { .. })));
    }

    #[test]
    fn offers_name_the_tool_and_drop_what_is_about_http() {
        let mut required = vector("x402-v2-fetch")["payment_required"].clone();
        required["extensions"]["bazaar"] = json!({"info": {}, "schema": {}});
        let form = PaymentForm::of_tool("get_price", &Base64::Standard.encode_json(&required)).unwrap();
        let members: Map<_, _> = form.into_members().map(|(name, value)| (name.to_owned(), value)).collect();
        assert_eq!(members["x402Version"], 2);
        assert_eq!(members["resource"]["url"], "mcp://tool/get_price");
        assert_eq!(members["accepts"], required["accepts"]);
        let extensions: Vec<_> = members["extensions"].as_object().unwrap().keys().collect();
        assert_eq!(extensions, ["payment-identifier"]);
        assert!(!members.contains_key("error"), "the error's own code stays");
        for none in ["", "e30=", "!", &Base64::Standard.encode_json(&json!({"accepts": [], "resource": {}}))] {
            assert_eq!(PaymentForm::of_tool("t", none), None, "{none}");
        }
    }

    #[test]
    fn challenges_are_those_of_the_headers() {
        for file in ["mpp-evm-authorization", "mpp-evm-payment-authorization-header"] {
            let vector = vector(file);
            let line = vector["www_authenticate"].as_str().unwrap();
            let read = payment_challenges(["Bearer", line]).unwrap();
            for member in ["id", "realm", "method", "intent", "request", "expires"] {
                assert_eq!(read["challenges"][0][member], vector["challenge"][member], "{file}: {member}");
            }
            assert_eq!(read["challenges"].as_array().unwrap().len(), 1);
        }
        let escaped = r#"Payment id="a \"b\\", request="e30""#;
        assert_eq!(payment_challenges([escaped]).unwrap()["challenges"], json!([{"id": "a \"b\\", "request": {}}]));
        for none in
            ["", "Bearer", "Payment", "Payment id", "Payment id=\"a", "Payment id=\"a\"", "Payment request=\"!\""]
        {
            assert_eq!(payment_challenges([none]), None, "{none}");
        }
    }

    #[test]
    fn what_became_of_a_payment_is_read_in_any_protocol() {
        let settled = json!({"success": true, "transaction": "0x1", "network": "eip155:84532"});
        let encoded = Base64::Standard.encode_json(&settled);
        let receipt = Base64::Url.encode_json(&json!({"status": "success"}));
        let of = |name: &'static str, value: &str| payment_results(|asked| (asked == name).then_some(value)).pop();
        assert_eq!(of("payment-response", &encoded), Some((X402_RESPONSE_META, settled.clone())));
        assert_eq!(of("x-payment-response", &encoded), Some((X402_RESPONSE_META, settled)));
        assert_eq!(of("payment-receipt", &receipt), Some((MPP_RECEIPT_META, json!({"status": "success"}))));
        assert_eq!(of("payment-response", "!"), None);
    }
}
