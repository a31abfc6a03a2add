//! A chain's section of the configuration.

mod url_list;

use std::collections::HashSet;
use std::fmt;
use std::time::Duration;

use metering_core::{Address, Chain, NotBefore};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use url::Url;

use crate::block_time::CONFIRMATIONS_MIN;
use crate::finality::Finality;
use crate::reader::EvmReader;
use crate::rpc_url::RpcUrl;

/// A chain that plans are paid on: the section `[chains.NAME]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChainConfig {
    /// Its id (EIP-155).
    pub chain_id: u64,
    /// Its name for people; by default the section's.
    #[serde(default)]
    pub name: Option<String>,
    /// Where it is read: a list, or one text with commas between the URLs. Without any, its plans are listed and
    /// cannot be paid.
    #[serde(default, deserialize_with = "url_list::deserialize")]
    pub rpc_urls: Vec<RpcUrl>,
    /// An RPC URL that clients may be told; never the operator's own.
    #[serde(default)]
    pub public_rpc_url: String,
    /// Who is paid.
    pub recipient: Address,
    /// How deep a payment must be to be credited: a number of confirmations, `safe` or `finalized`. By default as many
    /// blocks as the chain makes in 30 seconds, at least 2.
    #[serde(default)]
    pub confirmations: Option<Finality>,
    /// How deep a payment must be to be final: until then it is watched, and reversed if a reorganisation removes it.
    /// By default what the chain calls `finalized`, or 64 blocks on a chain that has no such tag.
    #[serde(default)]
    pub finality: Option<Finality>,
    /// How many of the sources must give the same answer.
    #[serde(default = "default_agree")]
    pub agree: u32,
    /// How long a source may take for one request.
    #[serde(default = "default_request_timeout", with = "duration_text")]
    pub request_timeout: Duration,
    /// How often a request is tried at one source before that source has failed.
    #[serde(default = "default_attempts")]
    pub attempts: u32,
    /// Whether to look for payments that nobody claimed; by default wherever there are `rpc_urls`.
    #[serde(default)]
    pub watch: Option<bool>,
    /// The first block to look at; by default the newest confirmed block when the chain is first watched.
    #[serde(default)]
    pub watch_from_block: Option<u64>,
    /// The oldest payment that is accepted: a block's number or a time. By default, those since the store has known
    /// the recipient.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<NotBefore>,
}

/// What is wrong with a chain's section.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {problem}")]
pub struct ChainConfigError {
    /// The key, as it stands in the section.
    pub key: &'static str,
    /// What is wrong with it. Never holds a URL.
    pub problem: String,
}

impl ChainConfigError {
    pub(crate) fn new(key: &'static str, problem: impl fmt::Display) -> Self {
        Self { key, problem: problem.to_string() }
    }
}

impl ChainConfig {
    /// What clients are told of the chain.
    #[must_use]
    pub fn chain(&self, section: &str) -> Chain {
        Chain {
            chain_id: self.chain_id,
            name: self.name.clone().unwrap_or_else(|| section.to_owned()),
            public_rpc_url: self.public_rpc_url.clone(),
            recipient: self.recipient,
            confirmations: self.confirmations.map_or(CONFIRMATIONS_MIN, Finality::confirmations_hint),
        }
    }

    /// Holds the values against each other.
    ///
    /// # Errors
    /// The first key whose value does not fit.
    pub fn validate(&self) -> Result<(), ChainConfigError> {
        let wrong = |key, problem: &str| Err(ChainConfigError::new(key, problem));
        if self.chain_id == 0 || i64::try_from(self.chain_id).is_err() {
            // Near the bound of EIP-2294, and what a database can hold.
            return wrong("chain_id", "must be from 1 to 9223372036854775807");
        }
        if self.recipient == Address::ZERO {
            return wrong("recipient", "must not be the zero address: what is paid to it is lost");
        }
        if !self.public_rpc_url.is_empty() && !is_public(&self.public_rpc_url) {
            return wrong("public_rpc_url", "must be an http:// or https:// URL without user and password, or empty");
        }
        let distinct: HashSet<_> = self.rpc_urls.iter().map(RpcUrl::expose).collect();
        if distinct.len() < self.rpc_urls.len() {
            return wrong("rpc_urls", "names a URL twice; one source cannot agree with itself");
        }
        if self.agree == 0 {
            return wrong("agree", "must be at least 1");
        }
        if !self.rpc_urls.is_empty() && self.agree() > self.rpc_urls.len() {
            let problem = format_args!("{} of {} rpc_urls cannot agree", self.agree, self.rpc_urls.len());
            return Err(ChainConfigError::new("agree", problem));
        }
        if self.request_timeout.is_zero() {
            return wrong("request_timeout", "must be above zero");
        }
        if self.attempts == 0 {
            return wrong("attempts", "must be at least 1");
        }
        if self.watch == Some(true) && self.rpc_urls.is_empty() {
            return wrong("watch", "needs rpc_urls");
        }
        if let (Some(Finality::Confirmations(credited)), Some(Finality::Confirmations(last))) =
            (self.confirmations, self.finality)
            && credited > last
        {
            let problem = format_args!("must not be above finality, which is {last}");
            return Err(ChainConfigError::new("confirmations", problem));
        }
        Ok(())
    }

    /// Whether to look for payments that nobody claimed.
    #[must_use]
    pub fn is_watched(&self) -> bool {
        self.watch.unwrap_or(!self.rpc_urls.is_empty())
    }

    /// A reader of the chain; `None` without `rpc_urls`. It connects to nothing yet: see [`EvmReader::check`].
    ///
    /// # Errors
    /// As [`ChainConfig::validate`], or when the machine cannot do TLS.
    pub fn reader(&self) -> Result<Option<EvmReader>, ChainConfigError> {
        self.validate()?;
        if self.rpc_urls.is_empty() {
            return Ok(None);
        }
        EvmReader::new(self).map(Some)
    }

    /// How many sources must agree.
    pub(crate) fn agree(&self) -> usize {
        usize::try_from(self.agree).unwrap_or(usize::MAX)
    }
}

fn is_public(text: &str) -> bool {
    let Ok(url) = Url::parse(text) else { return false };
    let anonymous = url.username().is_empty() && url.password().is_none();
    matches!(url.scheme(), "http" | "https") && url.has_host() && anonymous
}

const fn default_agree() -> u32 {
    1
}

const fn default_attempts() -> u32 {
    3
}

const fn default_request_timeout() -> Duration {
    Duration::from_secs(5)
}

/// A length of time as text: `5s`, `500ms`.
mod duration_text {
    use super::{Deserialize, Deserializer, Duration, Serializer};

    pub(super) fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&humantime::format_duration(*duration))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        let text = String::deserialize(deserializer)?;
        humantime::parse_duration(&text)
            .map_err(|_| serde::de::Error::custom(format_args!("{text:?} is not a length of time such as 5s or 500ms")))
    }
}

#[cfg(test)]
mod tests;
