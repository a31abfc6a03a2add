//! Reads small documents from URLs that strangers name, with the same precautions as webhooks are sent.

use std::time::Duration;

use metering_core::events::WebhookUrl;
use reqwest::StatusCode;
use reqwest::header::{ACCEPT, CACHE_CONTROL, HeaderMap};

use super::WebhookClient;
use crate::webhooks::failure::WebhookFailure;

/// A document, and how long it may be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FetchedDocument {
    pub(crate) content: Vec<u8>,
    /// The lifetime from its server; `None` if it does not state one.
    pub(crate) max_age: Option<Duration>,
}

impl WebhookClient {
    /// Reads a document of at most `most` bytes. A redirect is not followed.
    ///
    /// # Errors
    /// Why there is none, without details about names in the operator's network.
    pub(crate) async fn fetch(&self, url: &WebhookUrl, most: usize) -> Result<FetchedDocument, String> {
        let failed = |failure: WebhookFailure| failure.for_customers();
        // For an IP address there is no lookup, so the resolver would not check it.
        if url.address().is_some_and(|address| !self.resolver.allows(address)) {
            return Err(failed(WebhookFailure::RefusedAddress));
        }
        let sent = self.http.get(url.as_str()).header(ACCEPT, "application/json").send();
        let mut response = sent.await.map_err(|error| failed(WebhookFailure::of(&error)))?;
        if response.status() != StatusCode::OK {
            return Err(format!("the response has the status {}", response.status().as_u16()));
        }
        let max_age = max_age(response.headers());
        let mut content = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| failed(WebhookFailure::of(&error)))? {
            if content.len() + chunk.len() > most {
                return Err(format!("it has more than {most} bytes"));
            }
            content.extend_from_slice(&chunk);
        }
        Ok(FetchedDocument { content, max_age })
    }
}

/// `Cache-Control`: `max-age`, or nothing at all with `no-store` or `no-cache`.
fn max_age(headers: &HeaderMap) -> Option<Duration> {
    let lines = headers.get_all(CACHE_CONTROL).iter().filter_map(|value| value.to_str().ok());
    let directives: Vec<String> =
        lines.flat_map(|line| line.split(',')).map(|directive| directive.trim().to_ascii_lowercase()).collect();
    if directives.iter().any(|directive| matches!(directive.as_str(), "no-store" | "no-cache")) {
        return Some(Duration::ZERO);
    }
    directives.iter().find_map(|directive| directive.strip_prefix("max-age=")?.parse().ok()).map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_kept_as_long_as_its_server_says() {
        // Cache-Control, seconds
        let table = [
            (None, None),
            (Some("public"), None),
            (Some("public, Max-Age=300"), Some(300)),
            (Some("max-age=x"), None),
            (Some("max-age=300, no-store"), Some(0)),
        ];
        for (value, seconds) in table {
            let headers = value.map(|value| (CACHE_CONTROL, value.parse().unwrap())).into_iter().collect();
            assert_eq!(max_age(&headers), seconds.map(Duration::from_secs), "{value:?}");
        }
    }
}
