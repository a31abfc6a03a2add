//! Cloudflare Turnstile: the browser solves Cloudflare's challenge, and the server verifies the token with Cloudflare.

use std::net::IpAddr;
use std::time::Duration;

use async_trait::async_trait;
use metering_core::Timestamp;
use metering_core::signups::{BotCheck, BotCheckError, BotVerdict};
use serde::Deserialize;

use crate::config::{Secret, TurnstileConfig};

const VERIFY_TIMEOUT: Duration = Duration::from_secs(10);
/// According to Cloudflare, a token has at most 2,048 characters.
const MAX_TOKEN_BYTES: usize = 2_048;

/// Verifies tokens with Cloudflare, or with the service configured instead.
#[derive(Debug)]
pub(crate) struct Turnstile {
    client: reqwest::Client,
    verify_url: String,
    secret: Secret,
}

/// The part of Cloudflare's response that is used.
#[derive(Debug, Deserialize)]
struct VerifyResponse {
    success: bool,
}

impl Turnstile {
    /// Uses the configured secret.
    ///
    /// # Errors
    /// When no HTTP client can be set up.
    pub(crate) fn new(config: &TurnstileConfig) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        let secret = config.secret.clone().ok_or("signup.turnstile.secret is missing")?;
        let redirect = reqwest::redirect::Policy::none();
        let client = reqwest::Client::builder().timeout(VERIFY_TIMEOUT).redirect(redirect).build()?;
        Ok(Self { client, verify_url: config.verify_url.clone(), secret })
    }
}

impl Turnstile {
    fn form(&self, token: &str, client: Option<IpAddr>) -> String {
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.append_pair("secret", self.secret.expose()).append_pair("response", token);
        if let Some(client) = client {
            form.append_pair("remoteip", &client.to_string());
        }
        form.finish()
    }
}

#[async_trait]
impl BotCheck for Turnstile {
    /// Cloudflare accepts each token once, so used tokens are not stored here.
    async fn judge(&self, token: &str, client: Option<IpAddr>, _: Timestamp) -> Result<BotVerdict, BotCheckError> {
        if token.len() > MAX_TOKEN_BYTES {
            return Ok(BotVerdict::Failed);
        }
        let form = self.form(token, client);
        let request = self.client.post(&self.verify_url).header("content-type", "application/x-www-form-urlencoded");
        // Leave out the URL, in case the operator put a secret in it.
        let failed = |error: reqwest::Error| BotCheckError(error.without_url().to_string());
        let response = request.body(form).send().await.map_err(failed)?;
        if response.status().is_server_error() {
            return Err(BotCheckError(format!("the response was {}", response.status())));
        }
        let body = response.bytes().await.map_err(failed)?;
        let response: VerifyResponse =
            serde_json::from_slice(&body).map_err(|error| BotCheckError(error.to_string()))?;
        Ok(if response.success { BotVerdict::Passed { once: None } } else { BotVerdict::Failed })
    }
}
