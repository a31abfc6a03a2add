//! Stripe's API: the few requests that are made.

use std::collections::BTreeMap;
use std::time::Duration;

use metering_core::{Randomness, SystemRandomness};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use crate::config::Secret;

const TIMEOUT: Duration = Duration::from_secs(20);
/// How often a request is sent, if there is no response.
const ATTEMPTS: u32 = 2;

/// A client of the API.
#[derive(Debug)]
pub(super) struct Api {
    client: reqwest::Client,
    /// Without a slash at the end.
    base: String,
    key: Secret,
}

/// Why a request failed. The text has no secret.
#[derive(Debug, thiserror::Error)]
pub(super) enum ApiError {
    #[error("no response: {0}")]
    Unreachable(reqwest::Error),
    #[error("status {status}: {message}")]
    Refused {
        status: u16,
        /// What Stripe says of it.
        message: String,
    },
    #[error("an unexpected response: {0}")]
    Unexpected(serde_json::Error),
}

/// A Checkout session: the fields that matter here.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Session {
    pub(super) id: String,
    /// Where the customer pays; `None` once that is over.
    pub(super) url: Option<String>,
    pub(super) client_reference_id: Option<String>,
    pub(super) payment_status: Option<String>,
    pub(super) amount_total: Option<u64>,
    pub(super) currency: Option<String>,
    pub(super) payment_intent: Option<String>,
    pub(super) metadata: Option<BTreeMap<String, String>>,
}

/// A refund.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Refund {
    pub(super) id: String,
    pub(super) amount: u64,
    pub(super) currency: String,
    pub(super) payment_intent: Option<String>,
    pub(super) reason: Option<String>,
    pub(super) status: Option<String>,
}

/// A dispute.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Dispute {
    pub(super) id: String,
    pub(super) amount: u64,
    pub(super) currency: String,
    pub(super) payment_intent: Option<String>,
    pub(super) reason: Option<String>,
    pub(super) status: String,
}

#[derive(Debug, Deserialize)]
struct List<T> {
    data: Vec<T>,
    #[serde(default)]
    has_more: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Failure {
    error: FailureDetails,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct FailureDetails {
    message: String,
}

impl Api {
    pub(super) fn new(base: &str, key: Secret) -> Result<Self, reqwest::Error> {
        let redirect = reqwest::redirect::Policy::none();
        let client = reqwest::Client::builder().timeout(TIMEOUT).redirect(redirect).build()?;
        Ok(Self { client, base: base.trim_end_matches('/').to_owned(), key })
    }

    /// Creates a session. A retry with the same form and idempotency key gets the same session. Stripe's key is derived from
    /// both, because another account may send the same key, or this account may send it again after the plan changed.
    pub(super) async fn create_session(&self, form: &[(&str, String)], key: Option<&str>) -> Result<Session, ApiError> {
        let form = encoded(form);
        let key = key.map_or_else(random_key, |key| {
            // No key has a zero byte.
            let digest = Sha256::new().chain_update(key).chain_update([0_u8]).chain_update(&form).finalize();
            hex::encode(digest)
        });
        let mut attempt = 1;
        loop {
            let request = self.client.post(format!("{}/v1/checkout/sessions", self.base));
            let request = request.header("content-type", "application/x-www-form-urlencoded");
            let request = request.header("idempotency-key", &key).body(form.clone());
            match self.send(request).await {
                Err(ApiError::Unreachable(_)) if attempt < ATTEMPTS => attempt += 1,
                outcome => return outcome,
            }
        }
    }

    /// The session whose payment this is, if any.
    pub(super) async fn session_of(&self, payment_intent: &str) -> Result<Option<Session>, ApiError> {
        let query = encoded(&[("payment_intent", payment_intent.to_owned()), ("limit", "1".to_owned())]);
        let request = self.client.get(format!("{}/v1/checkout/sessions?{query}", self.base));
        let list: List<Session> = self.send(request).await?;
        Ok(list.data.into_iter().next())
    }

    /// All refunds of a payment.
    pub(super) async fn refunds_of(&self, payment_intent: &str) -> Result<Vec<Refund>, ApiError> {
        let mut refunds: Vec<Refund> = Vec::new();
        loop {
            let mut query = vec![("payment_intent", payment_intent.to_owned()), ("limit", "100".to_owned())];
            query.extend(refunds.last().map(|last| ("starting_after", last.id.clone())));
            let request = self.client.get(format!("{}/v1/refunds?{}", self.base, encoded(&query)));
            let list: List<Refund> = self.send(request).await?;
            let is_last = !list.has_more || list.data.is_empty();
            refunds.extend(list.data);
            if is_last {
                return Ok(refunds);
            }
        }
    }

    /// A dispute as it is now.
    pub(super) async fn dispute(&self, id: &str) -> Result<Dispute, ApiError> {
        self.send(self.client.get(format!("{}/v1/disputes/{}", self.base, segment(id)))).await
    }

    async fn send<T: DeserializeOwned>(&self, request: reqwest::RequestBuilder) -> Result<T, ApiError> {
        let unreachable = |error: reqwest::Error| ApiError::Unreachable(error.without_url());
        let response = request.bearer_auth(self.key.expose()).send().await.map_err(unreachable)?;
        let status = response.status();
        let body = response.bytes().await.map_err(unreachable)?;
        if !status.is_success() {
            let Failure { error } = serde_json::from_slice(&body).unwrap_or_default();
            return Err(ApiError::Refused { status: status.as_u16(), message: error.message });
        }
        serde_json::from_slice(&body).map_err(ApiError::Unexpected)
    }
}

/// An id, as a segment of a path.
fn segment(id: &str) -> String {
    form_urlencoded::byte_serialize(id.as_bytes()).collect()
}

fn encoded(pairs: &[(&str, String)]) -> String {
    let mut form = form_urlencoded::Serializer::new(String::new());
    for (name, value) in pairs {
        form.append_pair(name, value);
    }
    form.finish()
}

fn random_key() -> String {
    let mut bytes = [0; 16];
    SystemRandomness.fill(&mut bytes);
    hex::encode(bytes)
}
