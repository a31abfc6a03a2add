//! HTTP to sources and facilitators: neither is trusted to respond in time, briefly or politely.

use std::error::Error;
use std::iter;
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Client, Response};

use crate::failure::Failure;
use crate::rpc_url::RpcUrl;

/// How much of another party's message appears in our errors.
const MESSAGE_CHARS_MAX: usize = 200;

/// A client for requests to `url`. The error says why it cannot be set up.
pub(crate) fn client(url: &RpcUrl, timeout: Duration) -> Result<Client, String> {
    // Fails if another part of the process has already installed a provider. Any provider will do.
    let _ = rustls::crypto::ring::default_provider().install_default();
    // No redirects: a redirected POST would become a GET, and might send the key to another host.
    let client = Client::builder()
        .user_agent(concat!("metering-evm/", env!("CARGO_PKG_VERSION")))
        .redirect(Policy::none())
        .connect_timeout(timeout)
        .timeout(timeout);
    // Some networks need the proxy from the environment, but it cannot reach this machine's loopback.
    let client = if url.is_loopback() { client.no_proxy() } else { client };
    client.build().map_err(cause)
}

/// The body of a response, if it has at most `max` bytes.
pub(crate) async fn read_capped(response: &mut Response, max: usize) -> Result<Vec<u8>, Failure> {
    let announced = response.content_length().and_then(|length| usize::try_from(length).ok()).unwrap_or_default();
    if announced > max {
        return Err(Failure::TooLarge(max));
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(unreached)? {
        if body.len() + chunk.len() > max {
            return Err(Failure::TooLarge(max));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

pub(crate) fn unreached(error: reqwest::Error) -> Failure {
    if error.is_timeout() { Failure::TimedOut } else { Failure::Transport(cause(error)) }
}

/// The beginning of a message, on one line.
pub(crate) fn shortened(text: &str) -> String {
    let cut = text.char_indices().nth(MESSAGE_CHARS_MAX).map(|(end, _)| end);
    let short = text.get(..cut.unwrap_or(text.len())).unwrap_or_default().replace(char::is_control, " ");
    format!("{short}{}", if cut.is_some() { "…" } else { "" })
}

/// The root cause of an error, without the URL.
fn cause(error: reqwest::Error) -> String {
    let error = error.without_url();
    let deepest = iter::successors(error.source(), |cause| (*cause).source()).last();
    deepest.map_or_else(|| error.to_string(), ToString::to_string)
}
