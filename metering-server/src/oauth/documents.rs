//! Fetches the metadata documents of clients, and caches them for a while.
//!
//! Anyone can have a document fetched, from a host of their choice: so it is fetched with the precautions of webhooks, from
//! public addresses only, must be small, and few are fetched at a time.

use std::collections::HashMap;
use std::error::Error;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use metering_core::events::{AddressPolicy, WebhookUrl};
use metering_core::oauth::ClientDocuments;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::config::WebhooksConfig;
use crate::webhooks::{FetchedDocument, WebhookClient};

/// The largest document, as the draft recommends (section 6.6).
const BYTES_MAX: usize = 5 * 1024;
/// How many documents are kept.
const KEPT_MAX: usize = 1_000;
/// How long a document is kept if its server does not say.
const AGE: Duration = Duration::from_secs(60 * 60);
/// How long it is kept at most.
const AGE_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// How many documents are fetched at a time.
const CONCURRENT: usize = 8;

/// Documents of clients.
#[derive(Debug)]
pub(crate) struct Documents {
    client: WebhookClient,
    policy: AddressPolicy,
    fetching: Semaphore,
    kept: Mutex<HashMap<String, (Vec<u8>, Instant)>>,
}

impl Documents {
    /// Fetches from public addresses. Networks that are allowed for webhooks are for customers, but anyone can trigger
    /// these requests.
    ///
    /// # Errors
    /// When the certificates cannot be used.
    pub(crate) fn new(config: &WebhooksConfig) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let policy = AddressPolicy::default();
        let client = WebhookClient::for_customers(policy.clone(), config.ca_file.as_deref())?;
        Ok(Self { client, policy, fetching: Semaphore::new(CONCURRENT), kept: Mutex::default() })
    }

    fn kept(&self, url: &str) -> Option<Vec<u8>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get(url).filter(|(_, until)| Instant::now() < *until).map(|(content, _)| content.clone())
    }

    fn keep(&self, url: &str, document: &FetchedDocument) {
        let now = Instant::now();
        let age = document.max_age.unwrap_or(AGE).min(AGE_MAX);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|_, (_, until)| now < *until);
        // Without room, the next request fetches it again.
        if !age.is_zero() && kept.len() < KEPT_MAX {
            kept.insert(url.to_owned(), (document.content.clone(), now + age));
        }
    }
}

#[async_trait]
impl ClientDocuments for Documents {
    async fn fetch(&self, url: &str) -> Result<Vec<u8>, String> {
        if let Some(content) = self.kept(url) {
            return Ok(content);
        }
        let not_fetched = |problem: String| format!("names a document that cannot be fetched: {problem}");
        let parsed =
            WebhookUrl::parse(url, &self.policy).map_err(|_| not_fetched("its host is not public".to_owned()))?;
        let permit =
            self.fetching.try_acquire().map_err(|_| not_fetched("too many are being fetched; try again".to_owned()));
        let _permit = permit?;
        let document = self.client.fetch(&parsed, BYTES_MAX).await.map_err(not_fetched)?;
        self.keep(url, &document);
        Ok(document.content)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn documents_are_kept_for_a_while() {
        let documents = Documents::new(&WebhooksConfig::default()).unwrap();
        let document = |max_age: Option<u64>| FetchedDocument {
            content: b"{}".to_vec(),
            max_age: max_age.map(Duration::from_secs),
        };
        documents.keep("https://a.example/x", &document(None));
        documents.keep("https://b.example/x", &document(Some(0)));
        documents.keep("https://c.example/x", &document(Some(u64::MAX / 2)));
        assert!(documents.kept("https://a.example/x").is_some() && documents.kept("https://b.example/x").is_none());
        tokio::time::advance(AGE).await;
        assert!(documents.kept("https://a.example/x").is_none() && documents.kept("https://c.example/x").is_some());
        tokio::time::advance(AGE_MAX).await;
        assert!(documents.kept("https://c.example/x").is_none());
    }

    #[tokio::test]
    async fn documents_in_the_operators_network_are_not_fetched() {
        let config = toml::from_str("allowed_networks = '10.0.0.0/8, 127.0.0.0/8'").unwrap();
        let documents = Documents::new(&config).unwrap();
        let hosts = ["127.0.0.1", "10.0.0.1", "169.254.169.254", "localhost", "[::1]"];
        for url in hosts.map(|host| format!("https://{host}/x")) {
            let url = url.as_str();
            let problem = documents.fetch(url).await.unwrap_err();
            assert!(problem.contains("not public"), "{url} {problem}");
        }
    }
}
