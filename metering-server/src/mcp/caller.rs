//! Authenticates callers: looks up the key's account at the service, and whether it has credit.

use std::sync::Arc;

use http::HeaderMap;
use metering_client::{Client, ClientError};
use metering_core::access::KeyFault;
use metering_core::wire::ErrorCode;
use metering_core::{ApiKey, Error};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::shares::AccountKey;
use crate::access::credentials;
use crate::http::Problem;

/// `Retry-After` when the service cannot look up a key, in seconds.
const RETRY_SECONDS: u64 = 1;

/// A live key, its account, and whether the account has credit.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) key: ApiKey,
    pub(crate) account: AccountKey,
    pub(crate) has_credit: bool,
}

/// The fields of the balance document that are used here.
#[derive(Debug, Deserialize)]
struct Balance {
    org_id: Arc<str>,
    /// As text: documents round balances to ten decimals, which is not an exact amount of credits.
    credit_balance: Box<RawValue>,
}

/// The caller of a request, if its key is live. Asks the service for every request.
///
/// # Errors
/// 401 if there is no key, or it is malformed or not live; 502 when the service cannot tell.
pub(crate) async fn authenticate(service: &Client, headers: &HeaderMap) -> Result<Caller, Problem> {
    let key = credentials::key(headers)?.ok_or(Error::Unauthorized)?;
    match look_up(service, &key).await {
        Ok(Some(caller)) => Ok(caller),
        Ok(None) => Err(Error::KeyRefused(KeyFault::NotLive).into()),
        Err(error) => {
            tracing::warn!(%error, "could not check whether a key is live");
            let message = "The service behind the tools cannot be reached at the moment; try again.";
            Err(Problem::new(ErrorCode::UpstreamUnreachable, message).retry_after(RETRY_SECONDS))
        }
    }
}

/// Looks up the account of a key; `None` when the key is not live.
///
/// # Errors
/// When the service cannot tell.
pub(crate) async fn look_up(service: &Client, key: &ApiKey) -> Result<Option<Caller>, ClientError> {
    // This endpoint is free and works at any balance.
    let response = match service.with_key(key.clone()).get("/credits/balance").await {
        Ok(response) => response,
        Err(ClientError::Refused(refusal)) if refusal.status == http::StatusCode::UNAUTHORIZED => return Ok(None),
        Err(error) => return Err(error),
    };
    Ok(Some(caller(key, &response.body)))
}

/// The caller with this key, read from the service's balance document. If a service sends another format, the key is
/// still live, and its hash stands for its account.
fn caller(key: &ApiKey, document: &[u8]) -> Caller {
    let (account, has_credit) = match serde_json::from_slice::<Balance>(document) {
        Ok(balance) => (balance.org_id, is_positive(balance.credit_balance.get())),
        Err(_) => (hex::encode(key.hash().as_bytes()).into(), true),
    };
    Caller { key: key.clone(), account, has_credit }
}

/// Whether a JSON number is above zero.
fn is_positive(number: &str) -> bool {
    let digits = number.split(['e', 'E']).next().unwrap_or_default();
    !number.starts_with('-') && digits.bytes().any(|byte| matches!(byte, b'1'..=b'9'))
}

#[cfg(test)]
mod tests {
    use metering_core::SystemRandomness;

    use super::*;

    #[test]
    fn balance_sign_is_read_from_json_numbers() {
        let table = [
            ("0.9998611111", true),
            ("0.0000000001", true),
            ("1", true),
            ("10", true),
            ("0", false),
            ("0.0", false),
            ("0e5", false),
            ("-0.5", false),
            ("-1", false),
        ];
        for (number, positive) in table {
            let json = format!(r#"{{"org_id": "org_1", "credit_balance": {number}, "more": []}}"#);
            let caller = caller(&ApiKey::generate(&SystemRandomness), json.as_bytes());
            assert_eq!((&*caller.account, caller.has_credit), ("org_1", positive), "{number}");
        }
    }

    #[test]
    fn key_hash_stands_in_for_an_unknown_account() {
        let [one, other] = [(); 2].map(|()| ApiKey::generate(&SystemRandomness));
        let [first, again, second] = [&one, &one, &other].map(|key| caller(key, b"{}"));
        assert!(first.has_credit);
        assert_eq!(first.account, again.account);
        assert_ne!(first.account, second.account);
    }
}
