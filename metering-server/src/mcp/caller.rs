//! Who calls: a key that the service knows at this moment, its account, and whether that can pay.

use std::sync::Arc;

use http::HeaderMap;
use metering_client::{Client, ClientError};
use metering_core::wire::ErrorCode;
use metering_core::{ApiKey, Error, KeyFault};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::shares::AccountKey;
use crate::credentials;
use crate::http::Problem;

/// After how many seconds a service that cannot say whose a key is may be asked again.
const RETRY_SECONDS: u64 = 1;

/// A live key, and what its account has.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) key: ApiKey,
    pub(crate) account: AccountKey,
    pub(crate) has_credit: bool,
}

/// What of the balance's document counts here.
#[derive(Debug, Deserialize)]
struct Balance {
    org_id: Arc<str>,
    /// As text: documents round balances to ten decimals, which is not an exact amount of credits again.
    credit_balance: Box<RawValue>,
}

/// The caller of a request, if its key is live: the service is asked, every time.
///
/// # Errors
/// 401 for any other; 502 or 503 when the service cannot say.
pub(crate) async fn authenticate(service: &Client, headers: &HeaderMap) -> Result<Caller, Problem> {
    let key = credentials::key(headers)?.ok_or(Error::Unauthorized)?;
    match look_up(service, &key).await {
        Ok(Some(caller)) => Ok(caller),
        Ok(None) => Err(Error::KeyRefused(KeyFault::NotLive).into()),
        Err(error) => {
            tracing::warn!(%error, "whether a key is live cannot be found out");
            let message = "The service behind the tools cannot be asked at the moment; try again.";
            Err(Problem::new(ErrorCode::UpstreamUnreachable, message).retry_after(RETRY_SECONDS))
        }
    }
}

/// Whose a key is; `None` when it is not live.
///
/// # Errors
/// When the service cannot say.
pub(crate) async fn look_up(service: &Client, key: &ApiKey) -> Result<Option<Caller>, ClientError> {
    // An answer at any balance, and free.
    let answer = match service.with_key(key.clone()).get("/credits/balance").await {
        Ok(answer) => answer,
        Err(ClientError::Refused(refusal)) if refusal.status == http::StatusCode::UNAUTHORIZED => return Ok(None),
        Err(error) => return Err(error),
    };
    Ok(Some(caller(key, &answer.body)))
}

/// The caller with this key, by what the service says of its account. A service may say it in another form; the key is
/// live all the same, and stands for its account.
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
    fn balances_are_read_as_they_are_printed() {
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
    fn a_key_stands_for_its_account_where_the_service_says_nothing_of_it() {
        let [one, other] = [(); 2].map(|()| ApiKey::generate(&SystemRandomness));
        let [first, again, second] = [&one, &one, &other].map(|key| caller(key, b"{}"));
        assert!(first.has_credit);
        assert_eq!(first.account, again.account);
        assert_ne!(first.account, second.account);
    }
}
