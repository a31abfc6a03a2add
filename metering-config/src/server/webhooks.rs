//! Webhooks: those of customers, and the operator's own.

use std::path::{Path, PathBuf};

use crate::ConfigError;
use metering_core::events::{AddressPolicy, EventKind, WebhookSecret, WebhookTerms, WebhookUrl};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use zeroize::Zeroizing;

use crate::server::section::section;
use crate::server::{List, Network, Secret};

section! {
    /// Webhooks: those of customers, and the operator's own.
    pub struct WebhooksConfig;

    /// Whether this process delivers webhooks. Others on the same database may, and customers can create webhooks here
    /// either way.
    deliver: bool = true,
    /// How many webhooks an account may have. With 0, customers can create none; existing ones still get events.
    max_per_account: u32 = 10,
    /// Networks that customers' webhooks may be sent to, in addition to public addresses.
    allowed_networks: List<Network>,
    /// A PEM file with certificate authorities that are trusted in addition to those of the system.
    ca_file: Option<PathBuf>,
    /// The operator's own webhook, which gets the events of all accounts. An http(s) URL, masked when printed.
    url: Option<Secret>,
    /// The events that it gets; all of them if empty.
    events: List<EventName>,
    /// Its signing secret: `whsec_` and base64.
    secret: Option<Secret>,
    /// A file with that secret, instead of `secret`.
    secret_file: Option<PathBuf>,
    /// The previous secret, which also signs while the receiver switches to the new one.
    previous_secret: Option<Secret>,
    /// A file with that secret, instead of `previous_secret`.
    previous_secret_file: Option<PathBuf>,
}

/// The name of an event, such as `balance.low`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventName(EventKind);

impl WebhooksConfig {
    /// The networks that customers' webhooks may be sent to.
    pub fn addresses(&self) -> AddressPolicy {
        AddressPolicy::with_networks(self.allowed_networks.iter().map(|network| network.0).collect())
    }

    /// The operator's own webhook.
    ///
    /// # Errors
    /// When the URL is not valid.
    pub fn operators(&self) -> Result<Option<WebhookTerms>, ConfigError> {
        let Some(url) = &self.url else { return Ok(None) };
        let url = WebhookUrl::parse_trusted(url.expose()).map_err(|error| ConfigError::key("webhooks.url", error))?;
        Ok(Some(WebhookTerms { url, kinds: self.events.iter().map(|event| event.0).collect() }))
    }

    /// The signing secrets of the operator's own webhook, newest first. Empty without a URL.
    ///
    /// # Errors
    /// When a file cannot be read, or a secret is not valid.
    pub fn operators_secrets(&self) -> Result<Vec<WebhookSecret>, ConfigError> {
        if self.url.is_none() {
            return Ok(Vec::new());
        }
        let current = read("secret", self.secret.as_ref(), self.secret_file.as_deref())?;
        let previous = read("previous_secret", self.previous_secret.as_ref(), self.previous_secret_file.as_deref())?;
        Ok(current.into_iter().chain(previous).collect())
    }

    /// # Errors
    /// The first key that is missing or does not fit the others.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let invalid = |key: &str, problem: &str| Err(ConfigError::key(format!("webhooks.{key}"), problem));
        if self.max_per_account > 1_000 {
            return invalid("max_per_account", "must be at most 1000");
        }
        let has_secret = self.secret.is_some() || self.secret_file.is_some();
        let has_previous = self.previous_secret.is_some() || self.previous_secret_file.is_some();
        if self.url.is_some() && !has_secret {
            return invalid(
                "secret",
                "is required with webhooks.url, here or in webhooks.secret_file: whsec_ and base64",
            );
        }
        if self.url.is_none() && (has_secret || has_previous || !self.events.is_empty()) {
            return invalid("url", "is required: the other keys are about the operator's own webhook");
        }
        if self.url.is_some() && !self.deliver {
            return invalid("url", "needs webhooks.deliver = true: this process would never send to it");
        }
        self.operators()?;
        self.operators_secrets().map(drop)
    }
}

/// A secret, from the configuration or its file. White space around it in the file is ignored.
fn read(key: &str, secret: Option<&Secret>, file: Option<&Path>) -> Result<Option<WebhookSecret>, ConfigError> {
    let (file_key, key) = (format!("webhooks.{key}_file"), format!("webhooks.{key}"));
    let parse = |key: &str, text: &str| {
        WebhookSecret::parse(text)
            .map(Some)
            .map_err(|error| ConfigError::key(key, format_args!("is not valid: {error}")))
    };
    match (secret, file) {
        (Some(_), Some(_)) => Err(ConfigError::key(file_key, format_args!("cannot be used together with {key}"))),
        (Some(secret), None) => parse(&key, secret.expose()),
        (None, Some(file)) => {
            let unreadable = |error| ConfigError::key(file_key.as_str(), format_args!("{}: {error}", file.display()));
            let text = Zeroizing::new(std::fs::read_to_string(file).map_err(unreadable)?);
            parse(&file_key, text.trim())
        }
        (None, None) => Ok(None),
    }
}

impl Serialize for EventName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.as_str())
    }
}

impl<'de> Deserialize<'de> for EventName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map(Self).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const OLD: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";

    fn read(text: &str) -> WebhooksConfig {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn invalid_values_are_refused_by_name() {
        let url = "url = 'https://hooks.example/s3cret'\n";
        let with = |rest: &str| format!("{url}{rest}");
        // configuration, the key that the error names
        let table = [
            (with(""), "webhooks.secret:"),
            (with("secret = 'hunter22'"), "webhooks.secret:"),
            (with("secret_file = '/nowhere/at/all'"), "webhooks.secret_file"),
            (with(&format!("secret = '{SECRET}'\nsecret_file = 'f'")), "webhooks.secret_file"),
            (with(&format!("secret = '{SECRET}'\nprevious_secret = 'hunter22'")), "webhooks.previous_secret:"),
            (with(&format!("secret = '{SECRET}'\ndeliver = false")), "webhooks.url"),
            (format!("secret = '{SECRET}'"), "webhooks.url"),
            ("events = 'balance.low'".to_owned(), "webhooks.url"),
            (format!("url = 'ftp://hooks.example/'\nsecret = '{SECRET}'"), "webhooks.url"),
            ("max_per_account = 1001".to_owned(), "webhooks.max_per_account"),
        ];
        for (text, key) in table {
            let error = read(&text).check().unwrap_err().to_string();
            assert!(error.contains(key), "{text}: {error}");
            assert!(!error.contains("s3cret") && !error.contains("hunter22"), "{error}");
        }
        for text in ["events = 'balance.lo'", "allowed_networks = '10.0.0.0/33'", "uri = 'x'", "max_per_account = -1"] {
            assert!(toml::from_str::<WebhooksConfig>(text).is_err(), "{text}");
        }
        for text in ["", "deliver = false", "deliver = false\nmax_per_account = 0", "max_per_account = 0"] {
            assert!(read(text).check().is_ok(), "{text}");
        }
    }

    #[test]
    fn the_operators_webhook_has_its_events_and_both_secrets() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), format!("{SECRET}\n")).unwrap();
        let config = read(&format!(
            "url = 'http://localhost:1/s3cret'\nevents = 'key.leaked, balance.low'\nsecret_file = '{}'\n\
             previous_secret = '{OLD}'",
            file.path().display()
        ));
        config.check().unwrap();
        let terms = config.operators().unwrap().unwrap();
        assert_eq!(
            (terms.url.as_str(), terms.kinds.to_string().as_str()),
            ("http://localhost:1/s3cret", "balance.low key.leaked")
        );
        let secrets = config.operators_secrets().unwrap();
        assert_eq!(secrets.iter().map(|secret| secret.expose().to_string()).collect::<Vec<_>>(), [SECRET, OLD]);
        let printed = format!("{config:?}{}", toml::to_string(&config).unwrap());
        assert!(!printed.contains("s3cret") && !printed.contains(&OLD[6..]), "{printed}");
    }

    #[test]
    fn networks_are_allowed_in_addition() {
        let policy = read("allowed_networks = '10.0.0.0/8, ::1'").addresses();
        for (address, allowed) in [("10.9.9.9", true), ("::1", true), ("127.0.0.1", false), ("93.184.216.34", true)] {
            assert_eq!(policy.allows(address.parse().unwrap()), allowed, "{address}");
        }
    }
}
