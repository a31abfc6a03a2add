//! One RPC source: sends batches over HTTP, and retries transient failures.

use std::error::Error;
use std::fmt;
use std::iter;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, RETRY_AFTER};
use reqwest::redirect::Policy;
use reqwest::{Client, Response};

use crate::call::{self, Call};
use crate::encoding::Quantity;
use crate::failure::{self, Failure};
use crate::results::{BatchResults, rejection};
use crate::retry;
use crate::rpc_url::RpcUrl;

/// The largest response that is read. Even the largest blocks are smaller.
const RESPONSE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// How much of a source's error message is repeated.
const MESSAGE_CHARS_MAX: usize = 200;

/// One RPC source of a chain.
pub(crate) struct Source {
    url: RpcUrl,
    chain_id: u64,
    attempts: u32,
    client: Client,
    /// Whether it has ever returned a `finalized` block.
    names_finalized: AtomicBool,
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
        // No redirects: a redirected POST would become a GET, and might send the key to another host.
        let client = Client::builder()
            .user_agent(concat!("metering-evm/", env!("CARGO_PKG_VERSION")))
            .redirect(Policy::none())
            .connect_timeout(request_timeout)
            .timeout(request_timeout);
        // Some networks need the proxy from the environment, but it cannot reach this machine's loopback.
        let client = if url.is_loopback() { client.no_proxy() } else { client };
        let client = client.build().map_err(cause)?;
        Ok(Self { url: url.clone(), chain_id, attempts, client, names_finalized: AtomicBool::new(false) })
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
        let text = self.url.redact(&failure.to_string());
        let cut = text.char_indices().nth(MESSAGE_CHARS_MAX).map(|(end, _)| end);
        let short: String = text.get(..cut.unwrap_or(text.len())).unwrap_or_default().replace(char::is_control, " ");
        format!("{}: {short}{}", self.url.host(), if cut.is_some() { "…" } else { "" })
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
        let mut response = request.send().await.map_err(unreached)?;
        let status = response.status();
        let retry_after = retry_after(&response);
        let body = read_capped(&mut response).await;
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

async fn read_capped(response: &mut Response) -> Result<Vec<u8>, Failure> {
    let announced = response.content_length().and_then(|length| usize::try_from(length).ok()).unwrap_or_default();
    if announced > RESPONSE_BYTES_MAX {
        return Err(Failure::TooLarge(RESPONSE_BYTES_MAX));
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(unreached)? {
        if body.len() + chunk.len() > RESPONSE_BYTES_MAX {
            return Err(Failure::TooLarge(RESPONSE_BYTES_MAX));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// `Retry-After` in seconds. RPC sources do not send the other form, a date (RFC 9110, section 10.2.3).
fn retry_after(response: &Response) -> Option<Duration> {
    let seconds = response.headers().get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}

fn unreached(error: reqwest::Error) -> Failure {
    if error.is_timeout() { Failure::TimedOut } else { Failure::Transport(cause(error)) }
}

/// The root cause of an error, without the URL.
fn cause(error: reqwest::Error) -> String {
    let error = error.without_url();
    let deepest = iter::successors(error.source(), |cause| (*cause).source()).last();
    deepest.map_or_else(|| error.to_string(), ToString::to_string)
}
