//! One RPC source: sends batches over HTTP, and retries transient failures.

use std::fmt;
use std::iter;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, RETRY_AFTER};
use reqwest::{Client, Response};
use tokio::time::Instant;

use crate::call::{self, Call};
use crate::encoding::Quantity;
use crate::failure::{self, Failure};
use crate::health::{News, SourceHealth};
use crate::http;
use crate::results::{BatchResults, rejection};
use crate::retry;
use crate::rpc_url::RpcUrl;

/// The largest response that is read. Even the largest blocks are smaller.
const RESPONSE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// One RPC source of a chain.
pub(crate) struct Source {
    url: RpcUrl,
    chain_id: u64,
    attempts: u32,
    client: Client,
    /// Whether it has ever returned a `finalized` block.
    names_finalized: AtomicBool,
    health: SourceHealth,
}

/// Leaves out the client, since its proxy URL may contain a password.
impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").field("url", &self.url).finish_non_exhaustive()
    }
}

impl Source {
    /// A source of a chain. The error says why the HTTP client cannot be set up.
    pub(crate) fn new(url: &RpcUrl, chain_id: u64, attempts: u32, request_timeout: Duration) -> Result<Self, String> {
        let client = http::client(url, request_timeout)?;
        let (names_finalized, health) = (AtomicBool::new(false), SourceHealth::default());
        Ok(Self { url: url.clone(), chain_id, attempts, client, names_finalized, health })
    }

    /// Sends `calls` in one batch and reads the responses. Every batch also asks for the chain's id: a source that now
    /// serves another chain is not believed, whatever it served before.
    pub(crate) async fn send_batch<T, R>(&self, calls: &[Call], read: R) -> Result<T, Failure>
    where
        R: Fn(&mut BatchResults<'_>) -> Result<T, Failure>,
    {
        let id = Call::chain_id();
        let calls: Vec<_> = iter::once(&id).chain(calls).collect();
        let body = call::batch(&calls);
        let mut retries = retry::retries(self.attempts);
        loop {
            let failure = match self.post(body.clone()).await.and_then(|body| self.read(&body, &calls, &read)) {
                Ok(result) => return Ok(result),
                Err(failure) => failure,
            };
            let Some(pause) = retry::pause(&mut retries, &failure) else { return Err(failure) };
            tracing::debug!(source = self.problem(&failure), ?pause, "an RPC request failed; retrying");
            tokio::time::sleep(pause).await;
        }
    }

    /// The failure as operators see it: with the source's host, but without the secrets of its URL.
    pub(crate) fn problem(&self, failure: &Failure) -> String {
        format!("{}: {}", self.url.host(), self.shown(&failure.to_string()))
    }

    /// The beginning of a message of the source, without the secrets of its URL.
    pub(crate) fn shown(&self, message: &str) -> String {
        http::shortened(&self.url.redact(message))
    }

    /// The source's host.
    pub(crate) fn host(&self) -> String {
        self.url.host()
    }

    /// Whether this source has returned a `finalized` block before. If one is absent later, it is missing, not
    /// unsupported.
    pub(crate) fn names_finalized(&self) -> &AtomicBool {
        &self.names_finalized
    }

    /// What is known of it from its responses so far.
    pub(crate) fn health(&self) -> &SourceHealth {
        &self.health
    }

    /// Remembers that it works, and says so if the log has said that it fails.
    pub(crate) fn worked(&self) {
        if self.health.worked() == News::Working {
            tracing::info!(source = self.host(), chain_id = self.chain_id, "the RPC source works again");
        }
    }

    /// Remembers that it fails, and says so once in a while.
    pub(crate) fn failed(&self, problem: &str) {
        let problem = format!("{}: {problem}", self.host());
        if self.health.failed(&problem, Instant::now()) == News::Failing {
            tracing::warn!(
                source = problem,
                chain_id = self.chain_id,
                "an RPC source fails; payments wait if too few others are left"
            );
        }
    }

    fn read<T>(
        &self,
        body: &[u8],
        calls: &[&Call],
        read: impl Fn(&mut BatchResults<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let mut results = BatchResults::parse(body, calls)?;
        let Quantity(found) = results.next()?;
        if found != self.chain_id {
            return Err(Failure::WrongChain(found));
        }
        read(&mut results)
    }

    async fn post(&self, body: Vec<u8>) -> Result<Vec<u8>, Failure> {
        let request = self.client.post(self.url.expose().clone()).header(CONTENT_TYPE, "application/json").body(body);
        let mut response = request.send().await.map_err(http::unreached)?;
        let status = response.status();
        let retry_after = retry_after(&response);
        let body = http::read_capped(&mut response, RESPONSE_BYTES_MAX).await;
        if status.is_success() {
            return body;
        }
        // Some sources send an HTTP error status along with a JSON-RPC error. The JSON-RPC error is more specific,
        // unless the status is transient.
        match body.ok().and_then(|body| rejection(&body)) {
            Some(error) if error.is_too_large() || !failure::is_transient(status) => Err(Failure::Rpc(error)),
            _ => Err(Failure::Http { status, retry_after }),
        }
    }
}

/// `Retry-After` in seconds. RPC sources do not send the other form, a date (RFC 9110, section 10.2.3).
fn retry_after(response: &Response) -> Option<Duration> {
    let seconds = response.headers().get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}
