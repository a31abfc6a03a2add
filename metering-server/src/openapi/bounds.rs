//! Adds the limits that the server enforces on strings and numbers to the document's schemas, so that generated clients
//! and fuzzers know them.
//!
//! Fields are matched by name, since a name means the same in every schema. A test compares the patterns with the types
//! that enforce them.

use utoipa::Number;
use utoipa::openapi::schema::Schema;
use utoipa::openapi::{OpenApi, RefOr};

/// String fields with a fixed format. Mixed-case addresses must also satisfy EIP-55, which a pattern cannot express.
const PATTERNS: [(&str, &str); 18] = [
    ("address", ADDRESS),
    ("agent_name", "^[A-Za-z0-9_-]{1,64}$"),
    ("amount_atomic", "^[0-9]{1,39}$"),
    ("api_key", "^sk_live_[A-Za-z0-9]{38}$"),
    ("code", USER_CODE),
    ("org_id", "^org_[A-Za-z0-9]{20}$"),
    ("payer_address", ADDRESS),
    ("plan_id", "^[A-Za-z0-9._-]{1,64}$"),
    ("primary_recipient", ADDRESS),
    ("recipient", ADDRESS),
    ("request_id", "^[!-~]{1,128}$"),
    ("session_token", "^sst_[A-Za-z0-9]{43}$"),
    ("signature", "^0x([0-9a-fA-F]{2}){1,8192}$"),
    ("signup_nonce", "^sqn_[A-Za-z0-9]{43}$"),
    ("token_contract", ADDRESS),
    ("token_symbol", r"\S"),
    ("tx_hash", "^0x[0-9a-fA-F]{64}$"),
    ("user_code", USER_CODE),
];

const ADDRESS: &str = "^0x[0-9a-fA-F]{40}$";
/// Accepted in any case, with hyphens and spaces anywhere; always issued in one form.
const USER_CODE: &str = "^[ -]*([BCDFGHJKLMNPQRSTVWXZbcdfghjklmnpqrstvwxz][ -]*){8}$";

/// Amounts that are never negative: sold, charged and added credits. Balances may be negative.
const NOT_NEGATIVE: [(&str, &str); 8] = [
    ("BalanceDocument", "total_credits_purchased"),
    ("DeductAnswer", "amount_charged"),
    ("EpochUnit", "credits_per_epoch"),
    ("ErrorBody", "required"),
    ("PlanDocument", "bonus_credits"),
    ("PlanDocument", "credits"),
    ("TopUpAnswer", "amount_added"),
    ("TopUpAnswer", "total_credits_purchased"),
];

/// Adds the limits to all schemas and parameters.
pub(super) fn add(document: &mut OpenApi) {
    for item in document.paths.paths.values_mut() {
        for operation in [&mut item.get, &mut item.post].into_iter().flatten() {
            for parameter in operation.parameters.iter_mut().flatten() {
                let RefOr::T(parameter) = parameter else { continue };
                let is_metered = operation.tags.iter().flatten().any(|tag| tag == "metered");
                // The parameters of metered routes come from the catalogue.
                if let (Some(schema), false) = (&mut parameter.schema, is_metered) {
                    bound("", &parameter.name, schema);
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
    if let Some((_, pattern)) = PATTERNS.iter().find(|(known, _)| *known == field) {
        object.pattern = Some((*pattern).to_owned());
    }
    if NOT_NEGATIVE.contains(&(name, field)) {
        object.minimum = Some(Number::Int(0));
    }
}

#[cfg(test)]
mod tests {
    use metering_core::{AccountId, Catalogue, SystemRandomness};
    use serde_json::Value;

    use super::*;
    use crate::openapi::document;

    fn default_document() -> Value {
        let catalogue = Catalogue::from_json(include_str!("../../assets/routes.json")).unwrap();
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
        assert_eq!(schemas["QuoteRequest"]["properties"]["payer_address"]["pattern"], ADDRESS);
        assert_eq!(schemas["BalanceDocument"]["properties"]["credit_balance"]["minimum"], Value::Null);
    }

    /// Checks the lengths and prefixes in the patterns against ids and keys that the server itself generates and
    /// accepts.
    #[test]
    fn ids_and_keys_have_the_lengths_that_the_patterns_say() {
        let key = metering_core::ApiKey::generate(&SystemRandomness);
        assert_eq!(key.expose().len(), "sk_live_".len() + 38);
        assert_eq!(AccountId::generate(&SystemRandomness).as_str().len(), "org_".len() + 20);
        assert_eq!(metering_core::SessionToken::generate(&SystemRandomness).expose().len(), "sst_".len() + 43);
        assert!("a".repeat(64).parse::<metering_core::AgentName>().is_ok());
        assert!("a".repeat(65).parse::<metering_core::AgentName>().is_err());
        assert!(" b-cdf GHjk-".parse::<metering_core::UserCode>().is_ok());
    }
}
