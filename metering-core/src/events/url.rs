//! Stand-in until the real one is merged.
use std::fmt;
use std::str::FromStr;

/// The URL of a webhook.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct WebhookUrl(String);

/// The text is not the URL of a webhook.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a URL")]
pub struct WebhookUrlError;

impl WebhookUrl {
    /// The URL of the operator's own webhook.
    ///
    /// # Errors
    /// When it is none.
    pub fn parse_trusted(text: &str) -> Result<Self, WebhookUrlError> {
        text.starts_with("http").then(|| Self(text.to_owned())).ok_or(WebhookUrlError)
    }

    /// The URL as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for WebhookUrl {
    type Err = WebhookUrlError;
    fn from_str(text: &str) -> Result<Self, WebhookUrlError> {
        text.starts_with("https://").then(|| Self(text.to_owned())).ok_or(WebhookUrlError)
    }
}

impl fmt::Display for WebhookUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
