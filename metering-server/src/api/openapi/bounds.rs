//! Adds the limits that the server enforces on strings and numbers to the document's schemas, so that generated clients
//! and fuzzers know them.
//!
//! Fields are matched by name, since a name means the same in every schema. A test compares the patterns with the types
//! that enforce them.

use utoipa::Number;
use utoipa::openapi::path::ParameterIn;
use utoipa::openapi::schema::{KnownFormat, Schema, SchemaFormat};
use utoipa::openapi::{OpenApi, RefOr};

use crate::endpoints::errors::operations;

/// String fields with a fixed format. Mixed-case addresses must also satisfy EIP-55, which a pattern cannot express.
const PATTERNS: [(&str, &str); 23] = [
    ("Idempotency-Key", IDEMPOTENCY_KEY),
    ("Max-Cost", AMOUNT),
    ("address", ADDRESS),
    ("agent_name", "^[A-Za-z0-9_-]{1,64}$"),
    ("amount_atomic", "^[0-9]{1,39}$"),
    ("api_key", "^sk_live_[A-Za-z0-9]{38}$"),
    ("code", USER_CODE),
    ("email", EMAIL),
    ("method", METHOD),
    ("org_id", "^org_([A-Za-z0-9]{20}|[0-9a-f]{24})$"),
    ("payer_address", ADDRESS),
    ("plan_id", "^[A-Za-z0-9._-]{1,64}$"),
    ("primary_recipient", ADDRESS),
    ("recipient", ADDRESS),
    ("request_id", "^[!-~]{1,128}$"),
    ("session_token", "^sst_[A-Za-z0-9]{43}$"),
    ("signature", "^0x([0-9a-fA-F]{2}){1,8192}$"),
    ("signup_nonce", "^sqn_[A-Za-z0-9]{43}$"),
    ("token", "^eml_[A-Za-z0-9]{43}$"),
    ("token_contract", ADDRESS),
    ("token_symbol", r"\S"),
    ("tx_hash", "^0x[0-9a-fA-F]{64}$"),
    ("user_code", USER_CODE),
];

/// Schemas whose fields have the names that RFCs gave them.
const OF_RFCS: [&str; 2] = ["RevocationRequest", "TokenRequest"];

/// Credits. The server also takes more digits, and exponents.
const AMOUNT: &str = r"^(0|[1-9][0-9]{0,9})(\.[0-9]{1,10})?$";
const ADDRESS: &str = "^0x[0-9a-fA-F]{40}$";
/// The same without the zero address, for a field whose length is limited too.
const PAYER: &str = "^0x0*[1-9a-fA-F][0-9a-fA-F]*$";
/// The server also refuses invisible characters; a pattern for them would be very long.
const EMAIL: &str =
    r#"^[^\s@<>,;"\x00-\x1f\x7f-\x9f]+@[^\s@<>,;".\x00-\x1f\x7f-\x9f]+(\.[^\s@<>,;".\x00-\x1f\x7f-\x9f]+)+$"#;
/// Bare, or the string of a structured field.
const IDEMPOTENCY_KEY: &str = r#"^([!#-~][!-~]{0,127}|"([!#-\[\]-~]|\\["\\]){1,128}")$"#;
const METHOD: &str = "^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}$";
/// Accepted in any case, with hyphens and spaces anywhere; always issued in one form.
const USER_CODE: &str = "^[ -]*([BCDFGHJKLMNPQRSTVWXZbcdfghjklmnpqrstvwxz][ -]*){8}$";

/// Amounts that are never negative: sold, charged and added credits. Balances may be negative.
const NOT_NEGATIVE: [(&str, &str); 15] = [
    ("BalanceDocument", "total_credits_purchased"),
    ("DeductResponse", "amount_charged"),
    ("EpochUnit", "credits_per_epoch"),
    ("EmailVerification", "free_credits"),
    ("ErrorBody", "max_cost"),
    ("ErrorBody", "required"),
    ("PlanDocument", "bonus_credits"),
    ("PlanDocument", "credits"),
    ("RequestDocument", "charged"),
    ("RequestDocument", "held"),
    ("RequestDocument", "released"),
    ("CompletionResponse", "amount_added"),
    ("TopUpResponse", "amount_added"),
    ("TopUpResponse", "total_credits_purchased"),
    ("VerifiedResponse", "credits_granted"),
];

/// A string in the query of a metered route: no control characters.
pub(super) const TEXT: &str = r"^[^\x00-\x1f\x7f-\x9f]+$";
/// The same in its path, where it is one segment. The server also refuses segments that read as another path.
pub(super) const SEGMENT: &str = r"^[^/\\\x00-\x1f\x7f-\x9f]+$";

/// The name of a schema's variant for bounded parameters.
const PARAMETER: &str = "";
/// The number of a receipt or a credit note: that of the payment, or a consecutive one.
const RECEIPT_NUMBER: &str = "^[A-Za-z0-9._-]{1,40}$";
const TOP_UP_QUOTE: &str = "^tuq_[0-9a-f]{64}$";

/// This page accepts any user code and lets the user correct it.
const PAGE: &str = "/verify";

/// Adds the limits to all schemas and parameters.
pub(super) fn add(document: &mut OpenApi) {
    for (path, item) in &mut document.paths.paths {
        for operation in operations(item).filter(|_| path != PAGE) {
            let is_metered = operation.tags.iter().flatten().any(|tag| tag == "metered");
            for parameter in operation.parameters.iter_mut().flatten() {
                let RefOr::T(parameter) = parameter else { continue };
                // Those of metered routes are the catalogue's, except the header.
                let is_ours = !is_metered || parameter.parameter_in == ParameterIn::Header;
                if let (Some(schema), true) = (&mut parameter.schema, is_ours) {
                    bound(PARAMETER, &parameter.name, schema);
                }
            }
        }
    }
    let Some(components) = &mut document.components else { return };
    for (name, schema) in &mut components.schemas {
        within(name, schema);
    }
}

fn within(name: &str, schema: &mut RefOr<Schema>) {
    let RefOr::T(schema) = schema else { return };
    match schema {
        Schema::Object(object) => {
            for (field, schema) in &mut object.properties {
                bound(name, field, schema);
            }
        }
        Schema::OneOf(one_of) => one_of.items.iter_mut().for_each(|item| within(name, item)),
        Schema::AllOf(all_of) => all_of.items.iter_mut().for_each(|item| within(name, item)),
        _ => {}
    }
}

fn bound(name: &str, field: &str, schema: &mut RefOr<Schema>) {
    let RefOr::T(Schema::Object(object)) = schema else { return };
    if let Some((_, pattern)) = PATTERNS.iter().find(|(known, _)| *known == field && !OF_RFCS.contains(&name)) {
        object.pattern = Some((*pattern).to_owned());
    }
    if NOT_NEGATIVE.contains(&(name, field)) {
        object.minimum = Some(Number::Int(0));
    }
    match (name, field) {
        ("QuoteRequest", "payer_address") => {
            object.pattern = Some(PAYER.to_owned());
            (object.min_length, object.max_length) = (Some(42), Some(42));
        }
        ("ApproveRequest", "tos_accepted") => object.enum_values = Some(vec![true.into()]),
        (_, "email") => object.max_length = Some(254),
        (PARAMETER, "number") => object.pattern = Some(RECEIPT_NUMBER.to_owned()),
        (PARAMETER, "quote_id") => object.pattern = Some(TOP_UP_QUOTE.to_owned()),
        (PARAMETER, "from" | "to") => object.format = Some(SchemaFormat::KnownFormat(KnownFormat::Date)),
        (PARAMETER, "before" | "after") if object.format.is_some() => object.minimum = Some(Number::Int(0)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use metering_core::{AccountId, Catalogue, SystemRandomness};
    use serde_json::Value;

    use super::*;
    use crate::api::openapi::document;

    fn default_document() -> Value {
        let catalogue = Catalogue::from_json(metering_sample::ROUTES).unwrap();
        serde_json::to_value(document(&catalogue)).unwrap()
    }

    #[test]
    fn every_bound_is_in_the_document() {
        let document = default_document();
        let text = document.to_string();
        for (field, pattern) in PATTERNS {
            let is_there = text.contains(&serde_json::to_string(pattern).unwrap());
            assert!(is_there, "the pattern of {field} is not in the document");
        }
        let schemas = &document["components"]["schemas"];
        for (schema, field) in NOT_NEGATIVE {
            assert_eq!(schemas[schema]["properties"][field]["minimum"], 0, "{schema}.{field}");
        }
        assert_eq!(schemas["QuoteRequest"]["properties"]["payer_address"]["pattern"], PAYER);
        assert_eq!(schemas["ApproveRequest"]["properties"]["tos_accepted"]["enum"], serde_json::json!([true]));
        assert_eq!(schemas["ApproveRequest"]["required"], serde_json::json!(["user_code", "tos_accepted"]));
        assert_eq!(schemas["BalanceDocument"]["properties"]["credit_balance"]["minimum"], Value::Null);
    }

    #[test]
    fn parameters_are_bounded_by_what_their_operation_takes() {
        let document = default_document();
        let parameter = |path: &str, method: &str, name: &str| {
            let parameters = document["paths"][path][method]["parameters"].as_array().unwrap();
            parameters.iter().find(|parameter| parameter["name"] == name).unwrap()["schema"].clone()
        };
        for method in ["get", "head"] {
            assert_eq!(parameter("/signup/pending", method, "code")["pattern"], USER_CODE, "{method}");
            assert_eq!(parameter("/verify", method, "code")["pattern"], Value::Null, "the page takes any: {method}");
        }
        assert_eq!(parameter("/mpp/ethPrice", "get", "Idempotency-Key")["pattern"], IDEMPOTENCY_KEY);
        assert_eq!(parameter("/mpp/ethPrice", "get", "Max-Cost")["pattern"], AMOUNT);
        let path = "/mpp/timeSeries/{token_address}/{pool_address}/{time_interval}/{step_seconds}";
        assert_eq!(parameter(path, "get", "time_interval")["minimum"], 0, "the price depends on it");
        assert_eq!(parameter(path, "get", "step_seconds")["minimum"], Value::Null);
        assert_eq!(parameter(path, "get", "pool_address")["pattern"], SEGMENT);
    }

    /// The values that the server itself issues and accepts match its own patterns, by length and prefix.
    #[test]
    fn ids_keys_and_addresses_are_what_the_patterns_say() {
        let key = metering_core::ApiKey::generate(&SystemRandomness);
        assert_eq!(key.expose().len(), "sk_live_".len() + 38);
        assert_eq!(AccountId::generate(&SystemRandomness).as_str().len(), "org_".len() + 20);
        assert_eq!(metering_core::signups::LinkToken::generate(&SystemRandomness).expose().len(), "eml_".len() + 43);
        assert_eq!(metering_core::signups::SessionToken::generate(&SystemRandomness).expose().len(), "sst_".len() + 43);
        assert!("a".repeat(64).parse::<metering_core::access::AgentName>().is_ok());
        assert!("a".repeat(65).parse::<metering_core::access::AgentName>().is_err());
        assert!(" b-cdf GHjk-".parse::<metering_core::signups::UserCode>().is_ok());
        for (name, is_email) in
            [("a@b.c", true), ("a.b@c.d.e", true), ("a@b", false), ("a@b..c", false), ("a b@c.d", false)]
        {
            assert_eq!(name.parse::<metering_core::access::Email>().is_ok(), is_email, "{name}");
        }
        let fits = |text: &str| metering_core::charging::IdempotencyKey::parse(text).is_ok();
        assert!(fits(&"\\".repeat(128)) && !fits(&"a".repeat(129)) && !fits("\"") && !fits("\"\""));
        let escaped = |count| format!("\"{}\"", "\\\\".repeat(count));
        assert_eq!(escaped(128).len(), 258);
        assert!(fits(&escaped(128)) && !fits(&escaped(129)));
    }
}
