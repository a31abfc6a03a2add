//! An OpenID Connect provider that operators sign in through (OpenID Connect Core 1.0 with errata set 2).
//!
//! The authorization code flow with PKCE, `state` and `nonce`.

mod pending;
mod provider;
mod refusal;
mod transport;

use metering_core::Randomness;
use url::Url;
use zeroize::Zeroizing;

use super::person::Person;
use crate::config::Config;
use pending::Pending;
use provider::Provider;

pub(super) use pending::LIFETIME;
pub(super) use refusal::Refusal;

/// The provider, and the sign-ins that wait for it.
#[derive(Debug)]
pub(super) struct Oidc {
    provider: Provider,
    pending: Pending,
    /// Whether browsers reach the console over HTTPS.
    pub(super) is_secure: bool,
}

impl Oidc {
    /// `None` without a provider. Sends no request to the provider until someone opens the sign-in page.
    pub(super) fn new(config: &Config) -> Option<Self> {
        let (url, oidc) = (config.console.url.as_ref()?, config.console.oidc.as_ref()?);
        let provider = Provider::new(oidc, &format!("{url}/admin/oidc/callback"));
        let provider = provider
            .inspect_err(|error| tracing::error!("operators cannot sign in through the provider: {error}"))
            .ok()?;
        Some(Self { provider, pending: Pending::default(), is_secure: url.as_str().starts_with("https://") })
    }

    /// Whether a person could start to sign in now.
    pub(super) async fn is_available(&self) -> bool {
        self.provider.is_available().await
    }

    /// Begins to sign in: the provider's URL for the browser, and the value of its cookie.
    ///
    /// # Errors
    /// When the provider does not respond.
    pub(super) async fn begin(&self, randomness: &dyn Randomness) -> Result<(Url, Zeroizing<String>), Refusal> {
        let (url, login) = self.provider.begin().await?;
        Ok((url, self.pending.open(login, randomness)))
    }

    /// Who signed in. `code` is the authorization code, or the provider's error.
    ///
    /// # Errors
    /// When no one signed in.
    pub(super) async fn finish(
        &self,
        state: &str,
        browser: &str,
        code: Result<String, String>,
    ) -> Result<Person, Refusal> {
        let login = self.pending.take(state, browser).ok_or(Refusal::Expired)?;
        self.provider.finish(login, code.map_err(Refusal::Refused)?).await
    }
}
