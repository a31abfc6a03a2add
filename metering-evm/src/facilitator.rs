//! Executes signed authorizations through an x402 facilitator, which pays the gas.

mod documents;

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use metering_core::chains::TxHash;
use metering_pay::offers::{Facilitator, FacilitatorError, Listing, Offer, SignedAuthorization};
use metering_pay::wire::x402::{EXTENSION_RESPONSES_HEADER, ExtensionOutcome};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::{Client, StatusCode};
use serde::de::DeserializeOwned;

use self::documents::{PaymentRequest, Settled, Verified};
use crate::http;
use crate::rpc_url::RpcUrl;

/// The largest response that is read.
const RESPONSE_BYTES_MAX: usize = 64 * 1024;

/// A verification simulates the transfer.
const VERIFY_TIMEOUT: Duration = Duration::from_secs(10);
/// A settlement waits for a block.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(60);

/// A facilitator of x402, version 2, over HTTP.
///
/// It can execute payments or fail to, but cannot change them; its reports are checked against the chain.
///
/// ```
/// use metering_evm::HttpFacilitator;
///
/// let facilitator = HttpFacilitator::new("https://x402.org/facilitator")?.with_token("secret")?;
/// assert_eq!(format!("{facilitator:?}"), "HttpFacilitator(https://x402.org/…)");
/// assert!(HttpFacilitator::new("http://x402.org/facilitator").is_err());
/// # Ok::<(), metering_evm::FacilitatorSetupError>(())
/// ```
pub struct HttpFacilitator {
    url: RpcUrl,
    /// The value of `Authorization`.
    authorization: Option<HeaderValue>,
    client: Client,
    verify_timeout: Duration,
    settle_timeout: Duration,
}

/// Why a facilitator cannot be used. Contains neither its URL nor its token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FacilitatorSetupError {
    /// The text is not a URL that accepts requests.
    #[error("the facilitator's URL must begin with https://; http:// is allowed for this machine only")]
    Url,
    /// The token cannot be sent.
    #[error("the facilitator's token must be printable ASCII without spaces")]
    Token,
    /// The HTTP client cannot be set up.
    #[error("cannot set up an HTTP client: {0}")]
    Client(String),
}

/// A request without a response.
struct Lost {
    /// Whether the facilitator may have received it.
    was_sent: bool,
    why: String,
}

impl HttpFacilitator {
    /// The facilitator at this URL, to which `/verify` and `/settle` are appended. Does not connect yet.
    ///
    /// # Errors
    /// When the URL is malformed or not secure, or the HTTP client cannot be set up.
    pub fn new(url: &str) -> Result<Self, FacilitatorSetupError> {
        let url: RpcUrl = url.parse().map_err(|_| FacilitatorSetupError::Url)?;
        if url.expose().scheme() != "https" && !url.is_loopback() {
            return Err(FacilitatorSetupError::Url);
        }
        let client = http::client(&url, SETTLE_TIMEOUT).map_err(FacilitatorSetupError::Client)?;
        let (verify_timeout, settle_timeout) = (VERIFY_TIMEOUT, SETTLE_TIMEOUT);
        Ok(Self { url, authorization: None, client, verify_timeout, settle_timeout })
    }

    /// Sends this token with each request, as `Authorization: Bearer`.
    ///
    /// # Errors
    /// When the token contains a character that is not allowed in tokens.
    pub fn with_token(mut self, token: &str) -> Result<Self, FacilitatorSetupError> {
        if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(FacilitatorSetupError::Token);
        }
        let value = HeaderValue::try_from(format!("Bearer {token}")).map_err(|_| FacilitatorSetupError::Token)?;
        let value = self.authorization.insert(value);
        value.set_sensitive(true);
        Ok(self)
    }

    /// Sets the timeouts: by default, 10 seconds for a verification and 60 for a settlement.
    #[must_use]
    pub const fn with_timeouts(mut self, verify: Duration, settle: Duration) -> Self {
        (self.verify_timeout, self.settle_timeout) = (verify, settle);
        self
    }

    async fn post(
        &self,
        path: &str,
        (signed, offer, listing): (&SignedAuthorization, &Offer, Option<&Listing>),
        timeout: Duration,
    ) -> Result<(StatusCode, Vec<u8>), Lost> {
        let unsent = |why: &str| Lost { was_sent: false, why: why.to_owned() };
        let mut url = self.url.expose().clone();
        url.path_segments_mut().map_err(|()| unsent("its URL has no path"))?.pop_if_empty().push(path);
        let body = serde_json::to_vec(&PaymentRequest::new(signed, offer, listing))
            .map_err(|_| unsent("the payment cannot be written as JSON"))?;
        let request = self.client.post(url).timeout(timeout).header(CONTENT_TYPE, "application/json").body(body);
        let request = self.authorization.iter().fold(request, |request, value| request.header(AUTHORIZATION, value));
        let lost = |was_sent, failure| Lost { was_sent, why: self.shown(signed, failure) };
        let sent = request.send().await;
        let mut response = sent.map_err(|error| lost(!error.is_connect(), http::unreached(error)))?;
        let outcomes = response.headers().get(EXTENSION_RESPONSES_HEADER).and_then(|header| header.to_str().ok());
        self.report(signed, outcomes.map(ExtensionOutcome::read).unwrap_or_default());
        let body = http::read_capped(&mut response, RESPONSE_BYTES_MAX).await;
        Ok((response.status(), body.map_err(|failure| lost(true, failure))?))
    }

    /// Logs how the facilitator handled a payment's extensions. They never affect the payment itself.
    fn report(&self, signed: &SignedAuthorization, outcomes: Vec<ExtensionOutcome>) {
        for ExtensionOutcome { extension, status, reason } in outcomes {
            let shown = self.shown(signed, format_args!("{extension} {status} {}", reason.unwrap_or_default()));
            match status.as_str() {
                "rejected" => tracing::warn!(outcome = %shown, "the facilitator rejected an extension of a payment"),
                _ => tracing::debug!(outcome = %shown, "the facilitator processed an extension of a payment"),
            }
        }
    }

    /// The facilitator's message, without secrets. Some facilitators repeat the whole call, including the signature.
    fn shown(&self, signed: &SignedAuthorization, text: impl fmt::Display) -> String {
        let text = self.url.redact(&text.to_string());
        let token = self.authorization.as_ref().and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
        let signature = signed.signature.as_bytes();
        let words = signature.chunks_exact(32).map(hex::encode);
        let secrets = token.map(str::to_owned).into_iter().chain([hex::encode(signature)]).chain(words);
        let text = secrets.fold(text, |text, secret| text.replace(&secret, "…"));
        format!("{}: {}", self.url.host(), http::shortened(&text))
    }
}

impl fmt::Debug for HttpFacilitator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HttpFacilitator({})", self.url)
    }
}

#[async_trait]
impl Facilitator for HttpFacilitator {
    async fn verify(
        &self,
        signed: &SignedAuthorization,
        offer: &Offer,
        listing: Option<&Listing>,
    ) -> Result<(), FacilitatorError> {
        let shown = |text: String| self.shown(signed, text);
        let response = self.post("verify", (signed, offer, listing), self.verify_timeout).await;
        let (status, body) = response.map_err(|lost| FacilitatorError::Unavailable(lost.why))?;
        match parsed::<Verified>(&body) {
            Some(verified) if !verified.is_valid => Err(FacilitatorError::Refused(shown(verified.reason()))),
            Some(_) if status.is_success() => Ok(()),
            _ => Err(FacilitatorError::Unavailable(shown(unexpected(status)))),
        }
    }

    async fn settle(
        &self,
        signed: &SignedAuthorization,
        offer: &Offer,
        listing: Option<&Listing>,
    ) -> Result<TxHash, FacilitatorError> {
        let shown = |text: String| self.shown(signed, text);
        let response = self.post("settle", (signed, offer, listing), self.settle_timeout).await;
        let (status, body) = response.map_err(|Lost { was_sent, why }| match was_sent {
            true => FacilitatorError::Unfinished(why),
            false => FacilitatorError::Unavailable(why),
        })?;
        match parsed::<Settled>(&body) {
            Some(settled) if settled.success => {
                let hash = settled.transaction.as_deref().and_then(|hash| hash.parse().ok());
                hash.ok_or_else(|| FacilitatorError::Unfinished(shown("a success without a transaction".to_owned())))
            }
            Some(settled) if settled.may_be_executed() => Err(FacilitatorError::Unfinished(shown(settled.reason()))),
            Some(settled) => Err(FacilitatorError::Refused(shown(settled.reason()))),
            None if is_refused_unread(status) => Err(FacilitatorError::Unavailable(shown(unexpected(status)))),
            None => Err(FacilitatorError::Unfinished(shown(unexpected(status)))),
        }
    }
}

fn parsed<T: DeserializeOwned>(body: &[u8]) -> Option<T> {
    serde_json::from_slice(body).ok()
}

fn unexpected(status: StatusCode) -> String {
    if status.is_success() { "malformed response".to_owned() } else { format!("HTTP status {status}") }
}

/// Whether a status without a document means that the payment was not processed: a redirect, a missing page, a wrong
/// token, too many requests.
fn is_refused_unread(status: StatusCode) -> bool {
    let unclear = [StatusCode::REQUEST_TIMEOUT, StatusCode::CONFLICT, StatusCode::TOO_EARLY];
    status.is_redirection() || (status.is_client_error() && !unclear.contains(&status))
}
