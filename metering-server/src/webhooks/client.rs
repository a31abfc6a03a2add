//! The HTTP client for webhooks, and for documents that strangers name.

mod fetch;

use std::error::Error;
use std::fmt;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use metering_core::Timestamp;
use metering_core::events::{AddressPolicy, AttemptOutcome, WebhookUrl};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use reqwest::redirect::Policy;
use reqwest::{Certificate, Response, StatusCode};

use super::failure::WebhookFailure;
use super::resolver::{Lookup, Resolver, SystemLookup};
pub(crate) use fetch::FetchedDocument;

/// How much of a response's body is read. More than is stored, because a receiver may log an error if it cannot send its whole
/// response.
const BODY_BYTES_MAX: usize = 4 * 1024;

/// The maximum number of headers in a response.
const HEADERS_MAX: usize = 100;

/// The client cannot be set up.
type SetupError = Box<dyn Error + Send + Sync>;

/// How long a request may take.
#[derive(Debug, Clone, Copy)]
struct Timeouts {
    /// Until there is a connection, with DNS lookup and TLS handshake.
    connect: Duration,
    /// Until the response's headers are read.
    total: Duration,
    /// For the response's body.
    body: Duration,
}

/// The specification recommends a total of 15 to 30 seconds.
const TIMEOUTS: Timeouts =
    Timeouts { connect: Duration::from_secs(5), total: Duration::from_secs(15), body: Duration::from_secs(1) };

/// One delivery of a webhook.
#[derive(Debug, Clone)]
pub(crate) struct WebhookRequest<'a> {
    /// Where to.
    pub(crate) url: &'a WebhookUrl,
    /// The value of `webhook-id`, the same for each attempt.
    pub(crate) id: &'a str,
    /// The time of this attempt.
    pub(crate) timestamp: Timestamp,
    /// The value of `webhook-signature`: see [`metering_core::events::signature`].
    pub(crate) signature: &'a str,
    /// The JSON that was signed.
    pub(crate) body: Bytes,
}

/// A receiver's response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WebhookResponse {
    /// The HTTP status. A redirect is a response like any other: it is not followed.
    pub(crate) status: StatusCode,
    /// How long the receiver asks to wait before the next attempt, without a limit.
    pub(crate) retry_after: Option<Duration>,
    /// The beginning of the body.
    pub(crate) body: Vec<u8>,
}

impl WebhookResponse {
    /// Its meaning for the delivery.
    pub(crate) fn outcome(&self) -> AttemptOutcome {
        AttemptOutcome::of_response(self.status.as_u16(), self.retry_after).with_body(&self.body)
    }
}

/// Sends webhooks, either to customers or to the operator.
pub(crate) struct WebhookClient {
    http: reqwest::Client,
    resolver: Resolver,
    timeouts: Timeouts,
}

/// Leaves out the HTTP client, which prints pages of settings.
impl fmt::Debug for WebhookClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhookClient").field("resolver", &self.resolver).finish_non_exhaustive()
    }
}

impl WebhookClient {
    /// Sends webhooks to customers: by `https`, and only to addresses that the policy allows. The certificates in
    /// `ca_file` (PEM) are trusted in addition to those of the system.
    ///
    /// # Errors
    /// When the file or the system's certificates cannot be used.
    pub(crate) fn for_customers(policy: AddressPolicy, ca_file: Option<&Path>) -> Result<Self, SetupError> {
        Self::new(Some(policy), ca_file, Arc::<SystemLookup>::default(), TIMEOUTS)
    }

    /// Sends webhooks to the operator: to any address, by `https` or `http`. The certificates in `ca_file` (PEM) are
    /// trusted in addition to those of the system.
    ///
    /// # Errors
    /// When the file or the system's certificates cannot be used.
    pub(crate) fn for_operator(ca_file: Option<&Path>) -> Result<Self, SetupError> {
        Self::new(None, ca_file, Arc::<SystemLookup>::default(), TIMEOUTS)
    }

    fn new(
        policy: Option<AddressPolicy>,
        ca_file: Option<&Path>,
        lookup: Arc<dyn Lookup>,
        timeouts: Timeouts,
    ) -> Result<Self, SetupError> {
        // Another part of the process may have installed a provider already; any will do.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let resolver = Resolver { lookup, policy: policy.map(Arc::new) };
        let http = reqwest::Client::builder()
            .user_agent(concat!("metering-webhooks/", env!("CARGO_PKG_VERSION")))
            .dns_resolver(resolver.clone())
            // A redirect could lead anywhere, and a proxy would look up names itself.
            .redirect(Policy::none())
            .no_proxy()
            .https_only(resolver.policy.is_some())
            // Connections are not reused, so each delivery looks up its host again.
            .pool_max_idle_per_host(0)
            .http1_only()
            .http1_max_headers(HEADERS_MAX)
            .tls_certs_merge(ca_file.map(certificates).transpose()?.unwrap_or_default())
            .connect_timeout(timeouts.connect)
            .timeout(timeouts.total)
            .build()?;
        Ok(Self { http, resolver, timeouts })
    }

    /// Sends a webhook. Any response is a result; whether its status means success is up to the caller.
    ///
    /// # Errors
    /// When no response arrives.
    pub(crate) async fn send(&self, request: WebhookRequest<'_>) -> Result<WebhookResponse, WebhookFailure> {
        let WebhookRequest { url, id, timestamp, signature, body } = request;
        let text = |text: &str| HeaderValue::from_str(text).map_err(|_| WebhookFailure::InvalidRequest);
        let mut headers = HeaderMap::with_capacity(4);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert("webhook-id", text(id)?);
        headers.insert("webhook-timestamp", timestamp.unix_seconds().into());
        headers.insert("webhook-signature", text(signature)?);
        self.post(url, headers, body, timestamp).await
    }

    /// Posts a body. `now` is what a date in `Retry-After` is compared with.
    ///
    /// # Errors
    /// When no response arrives.
    pub(crate) async fn post(
        &self,
        url: &WebhookUrl,
        headers: HeaderMap,
        body: Bytes,
        now: Timestamp,
    ) -> Result<WebhookResponse, WebhookFailure> {
        // For an IP address there is no lookup, so the resolver would not check it.
        if url.address().is_some_and(|address| !self.resolver.allows(address)) {
            return Err(WebhookFailure::RefusedAddress);
        }
        let sent = self.http.post(url.as_str()).headers(headers).body(body).send();
        let response = sent.await.map_err(|error| WebhookFailure::of(&error))?;
        let retry_after = retry_after(response.headers(), now);
        let mut outcome = WebhookResponse { status: response.status(), retry_after, body: Vec::new() };
        // The status has arrived, so it does not matter how the body ends.
        let _ = tokio::time::timeout(self.timeouts.body, read_beginning(response, &mut outcome.body)).await;
        Ok(outcome)
    }
}

/// Reads the beginning of the body, as far as there is time.
async fn read_beginning(mut response: Response, body: &mut Vec<u8>) {
    while let Ok(Some(chunk)) = response.chunk().await {
        let left = BODY_BYTES_MAX.saturating_sub(body.len());
        body.extend_from_slice(chunk.get(..left).unwrap_or(&chunk));
        if body.len() >= BODY_BYTES_MAX {
            return;
        }
    }
}

/// `Retry-After`: seconds, or a date (RFC 9110, section 10.2.3). A date in the past means no wait.
fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let at = httpdate::parse_http_date(value).ok()?.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    let now = Duration::from_millis(u64::try_from(now.unix_millis()).unwrap_or(0));
    Some(at.saturating_sub(now))
}

fn certificates(file: &Path) -> Result<Vec<Certificate>, SetupError> {
    let failed = |problem: &dyn fmt::Display| SetupError::from(format!("{}: {problem}", file.display()));
    let pem = fs::read(file).map_err(|error| failed(&error))?;
    let certificates = Certificate::from_pem_bundle(&pem).map_err(|_| failed(&"this is not a PEM file"))?;
    if certificates.is_empty() { Err(failed(&"there is no certificate in this file")) } else { Ok(certificates) }
}

#[cfg(test)]
mod tests;
