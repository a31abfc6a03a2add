//! The body of requests to the token and revocation endpoints.

use std::collections::BTreeMap;

use url::form_urlencoded;
use zeroize::Zeroizing;

use super::error::OAuthError;

/// `grant_type` of RFC 8693.
pub(super) const EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";

/// The parameters of a form (`application/x-www-form-urlencoded`). They may be secrets, so none is printed.
#[derive(Clone)]
pub struct TokenForm(BTreeMap<String, Zeroizing<String>>);

impl std::fmt::Debug for TokenForm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl TokenForm {
    /// Reads a form. Empty parameters count as left out (RFC 6749, section 3.2).
    ///
    /// ```
    /// use metering_core::service::TokenForm;
    ///
    /// let form = TokenForm::parse(b"grant_type=refresh_token&scope=")?;
    /// assert!(!form.is_exchange());
    /// assert!(TokenForm::parse(b"code=a&code=b").is_err());
    /// # Ok::<(), metering_core::service::OAuthError>(())
    /// ```
    ///
    /// # Errors
    /// When a parameter comes twice.
    pub fn parse(body: &[u8]) -> Result<Self, OAuthError> {
        let mut form = BTreeMap::new();
        for (name, value) in form_urlencoded::parse(body).filter(|(_, value)| !value.is_empty()) {
            if form.insert(name.clone().into_owned(), Zeroizing::new(value.into_owned())).is_some() {
                return Err(OAuthError::refused("invalid_request", format_args!("{name} was sent twice")));
            }
        }
        Ok(Self(form))
    }

    /// Whether it requests a token exchange.
    #[must_use]
    pub fn is_exchange(&self) -> bool {
        self.get("grant_type") == Some(EXCHANGE)
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(|value| value.as_str())
    }

    pub(super) fn required(&self, name: &str) -> Result<&str, OAuthError> {
        self.get(name).ok_or_else(|| OAuthError::refused("invalid_request", format_args!("{name} is required")))
    }
}
