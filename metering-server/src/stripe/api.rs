//! Stripe's API: the few requests that are made.

use std::collections::BTreeMap;
use std::time::Duration;

use metering_core::{Randomness, SystemRandomness};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use crate::config::Secret;

const TIMEOUT: Duration = Duration::from_secs(20);
/// The number of attempts of a request that gets no response.
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
        /// Stripe's message, without the ids of customers and cards.
        message: String,
        /// Its kind of error.
        kind: String,
        /// Why a payment failed.
        failure: PaymentFailure,
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
    pub(super) customer: Option<String>,
    pub(super) metadata: Option<BTreeMap<String, String>>,
}

/// A payment, by a Checkout session or with a saved card.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct PaymentIntent {
    pub(super) id: String,
    pub(super) status: String,
    pub(super) amount: u64,
    pub(super) currency: String,
    pub(super) metadata: Option<BTreeMap<String, String>>,
    pub(super) last_payment_error: Option<PaymentFailure>,
}

/// Why a payment failed.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct PaymentFailure {
    pub(super) code: Option<String>,
    pub(super) decline_code: Option<String>,
}

/// The payment method of a payment.
#[derive(Clone, Deserialize)]
pub(super) struct PaymentMethod {
    pub(super) id: String,
    /// `None` once it is removed.
    pub(super) customer: Option<String>,
    pub(super) card: Option<Card>,
}

/// The details of a card.
#[derive(Clone, Deserialize)]
pub(super) struct Card {
    pub(super) brand: String,
    pub(super) last4: String,
}

#[derive(Deserialize)]
struct PaidWith {
    payment_method: Option<PaymentMethod>,
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
    #[serde(rename = "type")]
    kind: String,
    code: Option<String>,
    decline_code: Option<String>,
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
        self.post("/v1/checkout/sessions", &form, &key).await
    }

    /// Charges a saved card. With the same key, for a day, it is charged once, and the response is the same.
    pub(super) async fn create_payment(&self, form: &[(&str, String)], key: &str) -> Result<PaymentIntent, ApiError> {
        self.post("/v1/payment_intents", &encoded(form), key).await
    }

    /// Removes a card from its customer. One that was removed before is fine.
    pub(super) async fn detach(&self, method: &str) -> Result<(), ApiError> {
        let path = format!("/v1/payment_methods/{}/detach", segment(method));
        let detached = self.post::<serde::de::IgnoredAny>(&path, "", &random_key()).await;
        match detached {
            Err(ApiError::Refused { status: 400 | 404, .. }) => Ok(()),
            outcome => outcome.map(drop),
        }
    }

    async fn post<T: DeserializeOwned>(&self, path: &str, form: &str, key: &str) -> Result<T, ApiError> {
        let mut attempt = 1;
        loop {
            let request = self.client.post(format!("{}{path}", self.base));
            let request = request.header("content-type", "application/x-www-form-urlencoded");
            let request = request.header("idempotency-key", key).body(form.to_owned());
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

    /// The current state of a payment, if there is one with this id.
    pub(super) async fn payment(&self, id: &str) -> Result<Option<PaymentIntent>, ApiError> {
        self.found(&format!("/v1/payment_intents/{}", segment(id))).await
    }

    /// The payment method of a payment.
    pub(super) async fn paid_with(&self, id: &str) -> Result<Option<PaymentMethod>, ApiError> {
        let path = format!("/v1/payment_intents/{}?expand%5B%5D=payment_method", segment(id));
        let paid: Option<PaidWith> = self.found(&path).await?;
        Ok(paid.and_then(|paid| paid.payment_method))
    }

    /// The payments of a customer since a moment, in seconds.
    pub(super) async fn payments_of(&self, customer: &str, since: i64) -> Result<Vec<PaymentIntent>, ApiError> {
        let query = [("customer", customer.to_owned()), ("created[gte]", since.to_string())];
        self.all("/v1/payment_intents", &query, |payment: &PaymentIntent| &payment.id).await
    }

    async fn found<T: DeserializeOwned>(&self, path: &str) -> Result<Option<T>, ApiError> {
        match self.send(self.client.get(format!("{}{path}", self.base))).await {
            Err(ApiError::Refused { status: 404, .. }) => Ok(None),
            outcome => outcome.map(Some),
        }
    }

    /// All refunds of a payment.
    pub(super) async fn refunds_of(&self, payment_intent: &str) -> Result<Vec<Refund>, ApiError> {
        let query = [("payment_intent", payment_intent.to_owned())];
        self.all("/v1/refunds", &query, |refund: &Refund| &refund.id).await
    }

    /// All pages of a list.
    async fn all<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, String)],
        id: impl Fn(&T) -> &String,
    ) -> Result<Vec<T>, ApiError> {
        let mut all: Vec<T> = Vec::new();
        loop {
            let mut query = query.to_vec();
            query.push(("limit", "100".to_owned()));
            query.extend(all.last().map(|last| ("starting_after", id(last).clone())));
            let request = self.client.get(format!("{}{path}?{}", self.base, encoded(&query)));
            let list: List<T> = self.send(request).await?;
            let is_last = !list.has_more || list.data.is_empty();
            all.extend(list.data);
            if is_last {
                return Ok(all);
            }
        }
    }

    /// The current state of a dispute.
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
            let FailureDetails { message, kind, code, decline_code } = error;
            let (message, failure) = (without_names(&message), PaymentFailure { code, decline_code });
            return Err(ApiError::Refused { status: status.as_u16(), message, kind, failure });
        }
        serde_json::from_slice(&body).map_err(ApiError::Unexpected)
    }
}

/// Without ids of customers and cards, which must not be logged.
fn without_names(message: &str) -> String {
    let word =
        |word: &'_ str| if word.contains("cus_") || word.contains("pm_") { "…".to_owned() } else { word.to_owned() };
    message.split(' ').map(word).collect::<Vec<_>>().join(" ")
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
