//! One RPC source: sends batches over HTTP, and retries transient failures.

use std::iter;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use metering_core::shown_fields;
use reqwest::header::{CONTENT_TYPE, RETRY_AFTER};
use reqwest::{Client, Response};
use tokio::time::Instant;

use crate::call::{self, Call};
use crate::capacity::{Capacity, LOG_BLOCKS_MAX};
use crate::encoding::Quantity;
use crate::failure::{self, Failure, RpcError};
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
    capacity: Capacity,
}

// Leaves out the client, since its proxy URL may contain a password.
shown_fields!(Source: url);

impl Source {
    /// A source of a chain. The error says why the HTTP client cannot be set up.
    pub(crate) fn new(url: &RpcUrl, chain_id: u64, attempts: u32, request_timeout: Duration) -> Result<Self, String> {
        let client = http::client(url, request_timeout)?;
        let (names_finalized, health) = (AtomicBool::new(false), SourceHealth::default());
        let capacity = Capacity::new(LOG_BLOCKS_MAX);
        Ok(Self { url: url.clone(), chain_id, attempts, client, names_finalized, health, capacity })
    }

    /// The same source, with the most blocks to request logs of at once.
    pub(crate) fn with_log_blocks_max(self, blocks: u64) -> Self {
        Self { capacity: Capacity::new(blocks), ..self }
    }

    /// Sends `calls` in one batch and reads the responses. Every batch also asks for the chain's id: a source that now
    /// serves another chain is not trusted, whatever it served before.
    ///
    /// If the source refuses the batch, but not a single call, the batch is halved, down to single calls; what it took
    /// is remembered.
    pub(crate) async fn send_batch<T, R>(&self, calls: &[Call], read: R) -> Result<T, Failure>
    where
        R: Fn(&mut BatchResults<'_>) -> Result<T, Failure>,
    {
        let whole = calls.len() + 1;
        let mut size = self.capacity.calls(Instant::now()).map_or(whole, |most| most.min(whole));
        let mut refused = None;
        loop {
            let failure = match self.send_in_parts(calls, size, &read).await {
                Ok(result) => {
                    if let Some(refused) = refused {
                        self.takes_only(size, &refused);
                    }
                    return Ok(result);
                }
                Err(failure) => failure,
            };
            if size == 1 || !failure.may_be_of_the_batch() || refused.is_none() && !self.responds().await {
                return Err(failure);
            }
            size /= 2;
            refused = Some(failure);
        }
    }

    /// Sends `calls` in batches of at most `size` calls, each with the call for the chain's id; single calls with a
    /// `size` of 1. A batch that fails transiently is sent again.
    async fn send_in_parts<T, R>(&self, calls: &[Call], size: usize, read: &R) -> Result<T, Failure>
    where
        R: Fn(&mut BatchResults<'_>) -> Result<T, Failure>,
    {
        let id = Call::chain_id();
        let parts = parts(&id, calls, size);
        let mut bodies = Vec::new();
        let mut retries = retry::retries(self.attempts);
        loop {
            let failure = match self.complete(&parts, &mut bodies, size == 1).await {
                Ok(()) => match self.read(&bodies, &parts, size == 1, read) {
                    Ok(result) => return Ok(result),
                    Err(failure) => {
                        bodies.clear();
                        failure
                    }
                },
                Err(failure) => failure,
            };
            let Some(pause) = retry::pause(&mut retries, &failure) else { return Err(failure) };
            tracing::debug!(source = self.problem(&failure), ?pause, "an RPC request failed; retrying");
            tokio::time::sleep(pause).await;
        }
    }

    /// Requests the responses that are missing.
    async fn complete(&self, parts: &[Vec<&Call>], bodies: &mut Vec<Vec<u8>>, is_single: bool) -> Result<(), Failure> {
        for part in parts.iter().skip(bodies.len()) {
            let body = self.post(call::batch(part, is_single), is_single).await?;
            if !is_single && let Some(error) = rejection(&body) {
                return Err(Failure::Refused(error));
            }
            bodies.push(body);
        }
        Ok(())
    }

    /// Whether it responds to a single call: then it is the batch that it refuses.
    async fn responds(&self) -> bool {
        let id = Call::chain_id();
        let Ok(body) = self.post(call::batch(&[&id], true), true).await else { return false };
        self.read(&[body], &[vec![&id]], true, |_: &mut BatchResults<'_>| Ok(())).is_ok()
    }

    fn takes_only(&self, calls: usize, refused: &Failure) {
        self.capacity.takes_calls(calls, Instant::now());
        tracing::info!(
            source = self.problem(refused),
            chain_id = self.chain_id,
            calls,
            "an RPC source takes smaller batches; each lookup takes more requests"
        );
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

    /// What it takes in one request.
    pub(crate) fn capacity(&self) -> &Capacity {
        &self.capacity
    }

    /// What its responses so far have shown.
    pub(crate) fn health(&self) -> &SourceHealth {
        &self.health
    }

    /// Records that it works, and logs it if a failure was logged.
    pub(crate) fn worked(&self) {
        if self.health.worked() == News::Working {
            tracing::info!(source = self.host(), chain_id = self.chain_id, "the RPC source works again");
        }
    }

    /// Records that it fails, and logs it from time to time.
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
        bodies: &[Vec<u8>],
        parts: &[Vec<&Call>],
        is_single: bool,
        read: impl Fn(&mut BatchResults<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let mut all = Vec::new();
        for (index, (body, calls)) in bodies.iter().zip(parts).enumerate() {
            let mut results = match calls.as_slice() {
                [call] if is_single => BatchResults::parse_single(body, call)?,
                calls => BatchResults::parse(body, calls)?,
            };
            if index == 0 || !is_single {
                let Quantity(found) = results.next()?;
                if found != self.chain_id {
                    return Err(Failure::WrongChain(found));
                }
            }
            all.push(results);
        }
        read(&mut BatchResults::joined(all))
    }

    async fn post(&self, body: Vec<u8>, is_single: bool) -> Result<Vec<u8>, Failure> {
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
        let is_specific =
            |error: &RpcError| error.is_too_large() || error.is_about_batches() || !failure::is_transient(status);
        match body.ok().and_then(|body| rejection(&body)) {
            Some(error) if is_specific(&error) => {
                Err(if is_single { Failure::Rpc(error) } else { Failure::Refused(error) })
            }
            _ => Err(Failure::Http { status, retry_after }),
        }
    }
}

/// The calls of each request: at most `size`, the call for the chain's id first. With a `size` of 1, that is a separate
/// request.
fn parts<'a>(id: &'a Call, calls: &'a [Call], size: usize) -> Vec<Vec<&'a Call>> {
    match size {
        0 | 1 => iter::once(id).chain(calls).map(|call| vec![call]).collect(),
        _ if calls.is_empty() => vec![vec![id]],
        _ => calls.chunks(size - 1).map(|some| iter::once(id).chain(some).collect()).collect(),
    }
}

/// `Retry-After` in seconds. RPC sources do not send the other form, a date (RFC 9110, section 10.2.3).
fn retry_after(response: &Response) -> Option<Duration> {
    let seconds = response.headers().get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_divided_with_the_chains_id_in_each_part() {
        let (id, calls) = (Call::chain_id(), [(); 5].map(|()| Call::block_number()));
        // the most calls in a request, calls in each request
        let table: [(usize, &[usize]); 5] = [(6, &[6]), (9, &[6]), (3, &[3, 3, 2]), (2, &[2; 5]), (1, &[1; 6])];
        for (size, expected) in table {
            let parts = parts(&id, &calls, size);
            let sizes: Vec<_> = parts.iter().map(Vec::len).collect();
            assert_eq!(sizes, expected, "{size}");
            let ids = parts.iter().filter(|part| part[0].method == "eth_chainId").count();
            assert_eq!(ids, if size == 1 { 1 } else { parts.len() }, "{size}");
        }
        assert_eq!(parts(&id, &[], 4).len(), 1);
    }
}
