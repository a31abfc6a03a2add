//! The bodies of requests: the client sends the form that the service reads.

use metering_client::calls::billing::{Capture, Deduct, Hold, Release, Settle};
use metering_client::calls::keys::{
    ChangeKey, CreateChallenge, CreateKey, RecoverByLink, ReportLeaked, RotateKey, SendRecoveryLink, VerifyChallenge,
};
use metering_client::calls::payments::{ClaimQuote, CompleteTopUp, CreateQuote, CreateTopUpQuote, TopUp};
use metering_client::calls::signup::{ApproveSignup, StartSignup};
use metering_client::calls::webhooks::{ChangeWebhook, CreateWebhook, RotateWebhook, SetBalanceAlert};
use metering_core::wire::call::Call;
use serde::de::DeserializeOwned;

/// Reads and writes bodies: one with every field, and one with the required ones only.
#[track_caller]
fn check<C: Call<Body: DeserializeOwned>>(full: &str, minimal: &str) {
    for text in [full, minimal] {
        let body: C::Body = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&body).unwrap(), text, "{}", C::ID);
    }
}

#[test]
fn billing_bodies_are_written_as_they_are_read() {
    check::<Deduct>(
        concat!(
            r#"{"path":"/a","method":"POST","route_template":"/{a}","credit_weight":2.5,"history_multiplier":1.5,"#,
            r#""lookback_seconds":60,"client_source":"cli","client_ip":"203.0.113.7","request_id":"r"}"#
        ),
        r#"{"path":"/a","method":"GET"}"#,
    );
    check::<Hold>(
        concat!(
            r#"{"path":"/a","method":"POST","route_template":"/{a}","credit_weight":2.5,"history_multiplier":1.5,"#,
            r#""lookback_seconds":60,"client_source":"cli","client_ip":"203.0.113.7","request_id":"r","#,
            r#""amount":0.5,"fallback":0.25,"lease_seconds":60}"#
        ),
        r#"{"path":"/a","method":"GET"}"#,
    );
    check::<Capture>(r#"{"id":"req_1","amount":0.5,"units":{"input_tokens":12}}"#, r#"{"id":"req_1"}"#);
    check::<Release>(r#"{"id":"req_1"}"#, r#"{"id":"req_1"}"#);
    check::<Settle>(r#"{"request_id":"r","status":200}"#, r#"{"request_id":"r","status":200}"#);
}

#[test]
fn key_bodies_are_written_as_they_are_read() {
    check::<CreateKey>(
        concat!(
            r#"{"name":"n","limit":0.5,"limit_reset":"daily","alert_below":0.25,"expires_at":"2026-11-21T12:00:00Z","#,
            r#""scopes":["call"],"routes":["/a"],"networks":["203.0.113.0/24"],"requests_per_minute":1,"#,
            r#""requests_per_day":2,"tokens_per_minute":4,"max_in_flight":3}"#
        ),
        r#"{"name":"n"}"#,
    );
    check::<ChangeKey>(
        concat!(
            r#"{"name":"n","limit":0.5,"limit_reset":null,"alert_below":null,"expires_at":null,"disabled":true,"#,
            r#""scopes":["call"],"routes":null,"networks":null,"requests_per_minute":null,"requests_per_day":2,"#,
            r#""tokens_per_minute":null,"max_in_flight":3}"#
        ),
        "{}",
    );
    check::<RotateKey>(r#"{"grace_seconds":60}"#, "{}");
    check::<ReportLeaked>(r#"{"key":"sk_live_x"}"#, r#"{"key":"sk_live_x"}"#);
    check::<CreateChallenge>(r#"{"address":"0xa"}"#, r#"{"address":"0xa"}"#);
    check::<VerifyChallenge>(
        r#"{"address":"0xa","nonce":"n","signature":"0xb"}"#,
        r#"{"address":"0xa","nonce":"n","signature":"0xb"}"#,
    );
    check::<SendRecoveryLink>(r#"{"email":"a@example.com"}"#, r#"{"email":"a@example.com"}"#);
    check::<RecoverByLink>(r#"{"token":"t"}"#, r#"{"token":"t"}"#);
}

#[test]
fn payment_bodies_are_written_as_they_are_read() {
    check::<CreateQuote>(
        concat!(
            r#"{"agent_name":"a","plan_id":"p","chain_id":8453,"token_symbol":"USDC","payer_address":"0xa","#,
            r#""email":"a@example.com"}"#
        ),
        r#"{"agent_name":"a","plan_id":"p","chain_id":8453,"token_symbol":"USDC","payer_address":"0xa"}"#,
    );
    check::<ClaimQuote>(
        r#"{"signup_nonce":"n","tx_hash":"0xc","signature":"0xb"}"#,
        r#"{"signup_nonce":"n","tx_hash":"0xc"}"#,
    );
    check::<CreateTopUpQuote>(r#"{"plan_id":"p","chain_id":8453}"#, r#"{"plan_id":"p","chain_id":8453}"#);
    check::<TopUp>(
        r#"{"plan_id":"p","chain_id":8453,"tx_hash":"0xc","signature":"0xb"}"#,
        r#"{"plan_id":"p","chain_id":8453,"tx_hash":"0xc"}"#,
    );
    check::<CompleteTopUp>(
        r#"{"org_id":"org_1","plan_id":"p","chain_id":8453,"tx_hash":"0xc","signature":"0xb"}"#,
        r#"{"org_id":"org_1","plan_id":"p","chain_id":8453,"tx_hash":"0xc"}"#,
    );
}

#[test]
fn signup_and_webhook_bodies_are_written_as_they_are_read() {
    check::<StartSignup>(
        r#"{"email":"a@example.com","agent_name":"a"}"#,
        r#"{"email":"a@example.com","agent_name":"a"}"#,
    );
    check::<ApproveSignup>(
        r#"{"user_code":"u","tos_accepted":true,"captcha_token":"c"}"#,
        r#"{"user_code":"u","tos_accepted":false}"#,
    );
    check::<SetBalanceAlert>(r#"{"below":0.5}"#, r#"{"below":null}"#);
    check::<CreateWebhook>(r#"{"url":"https://a.example","events":["balance.low"]}"#, r#"{"url":"https://a.example"}"#);
    check::<ChangeWebhook>(r#"{"url":"https://a.example","events":null,"disabled":true}"#, "{}");
    check::<RotateWebhook>(r#"{"grace_seconds":60}"#, "{}");
}
