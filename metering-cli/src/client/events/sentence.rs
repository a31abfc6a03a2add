//! An event as a sentence. An event that this version does not know is shown as the service sent it.

use metering_core::payments::TopUpStop;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::client::money::amount::Amount;

/// The fields that sentences use. Which ones an event has depends on its type.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Data {
    balance: Option<Amount>,
    threshold: Option<Amount>,
    required: Option<Amount>,
    key_name: Option<String>,
    limit: Option<Amount>,
    limit_remaining: Option<Amount>,
    credits: Option<Amount>,
    plan_id: Option<String>,
    processor: Option<String>,
    processor_id: Option<String>,
    held: Option<Amount>,
    charged: Option<Amount>,
    route_template: Option<String>,
    http_method: Option<String>,
    message: Option<String>,
    identity: Option<String>,
    role: Option<String>,
    reason: Option<String>,
}

/// The sentence about an event of a type.
pub(super) fn of(kind: &str, data: &RawValue) -> String {
    let known = serde_json::from_str(data.get()).ok().and_then(|fields| sentence(kind, fields));
    known.unwrap_or_else(|| data.get().to_owned())
}

fn sentence(kind: &str, data: Data) -> Option<String> {
    let Data { balance, threshold, key_name, credits, limit, .. } = data;
    let plan = data.plan_id.map_or_else(String::new, |plan| format!(" for plan {plan}"));
    let at = data.processor_id.zip(data.processor).map(|(id, processor)| format!(" {id} at {processor}"));
    let plan = at.unwrap_or_default() + &plan;
    Some(match (kind, key_name) {
        ("balance.low", None) => format!("Balance fell below {} credits: {} left", threshold?, balance?),
        ("balance.low", Some(key)) => {
            let (threshold, left) = (threshold?, data.limit_remaining?);
            format!("Key {key} fell below {threshold} credits: {left} of its limit of {} left", limit?)
        }
        ("balance.exhausted", _) => match data.required {
            Some(required) => format!("Balance of {} credits did not cover a request for {required}", balance?),
            None => "Balance is used up".to_owned(),
        },
        ("budget.exhausted", Some(key)) => format!("Key {key} used up its limit of {} credits", limit?),
        ("payment.credited", _) => format!("Payment{plan} added {} credits: balance {}", credits?, balance?),
        ("payment.reversed", _) => {
            format!("Payment{plan} was reversed, and {} credits taken back: balance {}", credits?, balance?)
        }
        ("top_up.stopped", _) => {
            let reason = data.reason?;
            let why = TopUpStop::from_name(&reason).map_or(reason.as_str(), |stop| stop.description());
            format!("Automatic top-ups{plan} stopped: {}", why.trim_end_matches('.'))
        }
        ("key.created", Some(key)) => format!("Key {key} was created"),
        ("key.revoked", Some(key)) => format!("Key {key} was deleted or revoked"),
        ("key.leaked", Some(key)) => format!("Key {key} was reported as leaked, and no longer works"),
        ("hold.expired", _) => format!(
            "Cost of {} {} was not reported in time: {} of {} credits held were charged",
            data.http_method?, data.route_template?, data.charged?, data.held?
        ),
        ("member.joined", _) => format!("{} joined as {}", data.identity?, data.role?),
        ("member.changed", _) => format!("{} is {} now", data.identity?, data.role?),
        ("member.removed", _) => format!("{} is no longer a member", data.identity?),
        ("webhook.test", _) => data.message?,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_has_a_sentence_and_an_unknown_one_its_data() {
        let table = [
            ("balance.low", r#"{"balance":4.20,"threshold":5}"#, "Balance fell below 5 credits: 4.20 left"),
            (
                "balance.low",
                r#"{"key_id":"key_1","key_name":"ci","limit":10,"limit_remaining":0.5,"threshold":1}"#,
                "Key ci fell below 1 credits: 0.5 of its limit of 10 left",
            ),
            ("balance.exhausted", r#"{"balance":0}"#, "Balance is used up"),
            (
                "balance.exhausted",
                r#"{"balance":0.1,"required":0.25}"#,
                "Balance of 0.1 credits did not cover a request for 0.25",
            ),
            (
                "budget.exhausted",
                r#"{"key_id":"key_1","key_name":"ci","limit":10,"limit_remaining":0}"#,
                "Key ci used up its limit of 10 credits",
            ),
            (
                "payment.credited",
                r#"{"credits":11,"balance":12.5,"chain_id":8453,"tx_hash":"0x1","plan_id":"starter"}"#,
                "Payment for plan starter added 11 credits: balance 12.5",
            ),
            (
                "payment.reversed",
                r#"{"credits":11,"balance":1.5,"chain_id":8453,"tx_hash":"0x1","plan_id":null}"#,
                "Payment was reversed, and 11 credits taken back: balance 1.5",
            ),
            (
                "payment.credited",
                r#"{"credits":11,"balance":12.5,"chain_id":0,"tx_hash":"0x1","plan_id":"starter","processor":"stripe","processor_id":"pi_1"}"#,
                "Payment pi_1 at stripe for plan starter added 11 credits: balance 12.5",
            ),
            (
                "top_up.stopped",
                r#"{"reason":"declined","plan_id":"starter"}"#,
                "Automatic top-ups for plan starter stopped: The card was declined",
            ),
            ("key.created", r#"{"key_id":"key_1","key_name":"ci"}"#, "Key ci was created"),
            ("key.revoked", r#"{"key_id":"key_1","key_name":"ci"}"#, "Key ci was deleted or revoked"),
            (
                "key.leaked",
                r#"{"key_id":"key_1","key_name":"ci"}"#,
                "Key ci was reported as leaked, and no longer works",
            ),
            (
                "hold.expired",
                r#"{"request_id":"req_1","held":0.5,"charged":0.2,"route_template":"/v1/chat","http_method":"POST"}"#,
                "Cost of POST /v1/chat was not reported in time: 0.2 of 0.5 credits held were charged",
            ),
            ("member.joined", r#"{"identity":"jo@example.com","role":"viewer"}"#, "jo@example.com joined as viewer"),
            ("member.changed", r#"{"identity":"jo@example.com","role":"owner"}"#, "jo@example.com is owner now"),
            ("member.removed", r#"{"identity":"jo@example.com"}"#, "jo@example.com is no longer a member"),
            ("webhook.test", r#"{"message":"This is a test."}"#, "This is a test."),
            ("later.kind", r#"{"a":1.00}"#, r#"{"a":1.00}"#),
            ("balance.low", r#"{"balance":1}"#, r#"{"balance":1}"#),
        ];
        for (kind, data, expected) in table {
            let data = RawValue::from_string(data.to_owned()).unwrap();
            assert_eq!(of(kind, &data), expected, "{kind}");
        }
    }
}
