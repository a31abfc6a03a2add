//! The configuration section of a chain.

mod log_blocks;
mod url_list;

use std::collections::HashSet;
use std::fmt;
use std::time::Duration;

use metering_core::chains::{Address, Chain, known_explorer};
use metering_core::payments::NotBefore;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use url::Url;

use crate::block_time::CONFIRMATIONS_MIN;
use crate::finality::Finality;
use crate::rpc_url::RpcUrl;

/// A chain that plans are paid on: the section `[chains.NAME]`.
///
/// ```
/// use metering_evm::ChainConfig;
///
/// let mut config: ChainConfig = toml::from_str(
///     r#"
///     chain_id = 8453
///     rpc_urls = ["https://one.example.com", "https://two.example.com"]
///     agree = 2
///     recipient = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"
///     confirmations = "safe"
///     "#,
/// )?;
/// config.validate()?;
/// assert!(config.is_watched());
/// assert_eq!(config.chain("base").name, "base");
/// config.agree = 3;
/// assert_eq!(config.validate().unwrap_err().to_string(), "agree: cannot require 3 of 2 rpc_urls to agree");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChainConfig {
    /// Its id (EIP-155).
    pub chain_id: u64,
    /// Its display name; by default the section's name.
    #[serde(default)]
    pub name: Option<String>,
    /// The RPC sources: a list, or one string of comma-separated URLs. Without any, the chain's plans are listed but
    /// cannot be paid.
    #[serde(default, deserialize_with = "url_list::deserialize")]
    pub rpc_urls: Vec<RpcUrl>,
    /// An RPC URL that is published to clients; never the operator's own.
    #[serde(default)]
    pub public_rpc_url: String,
    /// The block explorer that receipts link to, without a trailing slash; empty for none. Well-known chains have a
    /// default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explorer_url: Option<String>,
    /// The address that receives payments.
    pub recipient: Address,
    /// When a payment is credited: after a number of confirmations, or once its block is `safe` or `finalized`. By
    /// default after as many blocks as the chain makes in 30 seconds, at least 2.
    #[serde(default)]
    pub confirmations: Option<Finality>,
    /// When a payment is final. Until then it is watched, and reversed if a reorganisation removes it. By default once
    /// its block is `finalized`, or after 64 blocks on a chain without that tag.
    #[serde(default)]
    pub finality: Option<Finality>,
    /// How many of the sources must give the same response.
    #[serde(default = "default_agree")]
    pub agree: u32,
    /// Timeout for one request to a source.
    #[serde(default = "default_request_timeout", with = "duration_text")]
    pub request_timeout: Duration,
    /// How often a request to a source is attempted before that source counts as failed.
    #[serde(default = "default_attempts")]
    pub attempts: u32,
    /// The maximum number of blocks to search for logs in one request to a source: one number for all sources, or one
    /// for each of `rpc_urls`. 2,000 by default. A source that refuses this many gets smaller requests.
    #[serde(default, deserialize_with = "log_blocks::deserialize", skip_serializing_if = "Vec::is_empty")]
    pub log_blocks_max: Vec<u64>,
    /// Whether to look for unclaimed payments; by default if there are `rpc_urls`.
    #[serde(default)]
    pub watch: Option<bool>,
    /// The first block to watch; by default the newest confirmed block when the chain is first watched.
    #[serde(default)]
    pub watch_from_block: Option<u64>,
    /// The oldest payments to accept, as a block number or a time. By default, payments since the store has known the
    /// recipient.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<NotBefore>,
}

/// A problem in the configuration section of a chain.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {problem}")]
pub struct ChainConfigError {
    /// The key in the section.
    pub key: &'static str,
    /// The problem. Never contains a URL.
    pub problem: String,
}

impl ChainConfigError {
    pub(crate) fn new(key: &'static str, problem: impl fmt::Display) -> Self {
        Self { key, problem: problem.to_string() }
    }
}

impl ChainConfig {
    /// The chain as clients see it.
    #[must_use]
    pub fn chain(&self, section: &str) -> Chain {
        Chain {
            chain_id: self.chain_id,
            name: self.name.clone().unwrap_or_else(|| section.to_owned()),
            public_rpc_url: self.public_rpc_url.clone(),
            recipient: self.recipient,
            confirmations: self.confirmations.map_or(CONFIRMATIONS_MIN, Finality::confirmations_hint),
            explorer_url: self.explorer_url.as_deref().or(known_explorer(self.chain_id)).unwrap_or_default().to_owned(),
        }
    }

    /// Checks the values, alone and in combination.
    ///
    /// # Errors
    /// The first key with an invalid value.
    pub fn validate(&self) -> Result<(), ChainConfigError> {
        let wrong = |key, problem: &str| Err(ChainConfigError::new(key, problem));
        if self.chain_id == 0 || i64::try_from(self.chain_id).is_err() {
            // Close to the bound of EIP-2294, and the largest number that a database can store.
            return wrong("chain_id", "must be from 1 to 9223372036854775807");
        }
        if self.recipient == Address::ZERO {
            return wrong("recipient", "must not be the zero address: payments to it would be lost");
        }
        if !self.public_rpc_url.is_empty() && !is_public(&self.public_rpc_url) {
            return wrong("public_rpc_url", "must be an http:// or https:// URL without user and password, or empty");
        }
        if self.explorer_url.as_ref().is_some_and(|url| !url.is_empty() && !is_public(url)) {
            return wrong("explorer_url", "must be an http:// or https:// URL without user and password, or empty");
        }
        let distinct: HashSet<_> = self.rpc_urls.iter().map(RpcUrl::expose).collect();
        if distinct.len() < self.rpc_urls.len() {
            return wrong("rpc_urls", "has a URL twice; a source cannot agree with itself");
        }
        if self.agree == 0 {
            return wrong("agree", "must be at least 1");
        }
        if !self.rpc_urls.is_empty() && self.agree() > self.rpc_urls.len() {
            let problem = format_args!("cannot require {} of {} rpc_urls to agree", self.agree, self.rpc_urls.len());
            return Err(ChainConfigError::new("agree", problem));
        }
        if self.request_timeout.is_zero() {
            return wrong("request_timeout", "must be above zero");
        }
        if self.attempts == 0 {
            return wrong("attempts", "must be at least 1");
        }
        if self.log_blocks_max.contains(&0) {
            return wrong("log_blocks_max", "must be at least 1");
        }
        if self.log_blocks_max.len() > 1 && self.log_blocks_max.len() != self.rpc_urls.len() {
            return wrong("log_blocks_max", "must be one number, or one for each of rpc_urls");
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

    /// The chain read from only the source with this index; `None` if there is no such source.
    #[must_use]
    pub fn with_source(&self, index: usize) -> Option<Self> {
        let url = self.rpc_urls.get(index)?.clone();
        let log_blocks_max = self.log_blocks_max(index).into_iter().collect();
        Some(Self { rpc_urls: vec![url], agree: 1, log_blocks_max, ..self.clone() })
    }

    /// Whether to look for unclaimed payments.
    #[must_use]
    pub fn is_watched(&self) -> bool {
        self.watch.unwrap_or(!self.rpc_urls.is_empty())
    }

    /// The maximum number of blocks to search for logs in one request to the source with this index, if that is
    /// configured.
    pub(crate) fn log_blocks_max(&self, source: usize) -> Option<u64> {
        let of_all = self.log_blocks_max.first().filter(|_| self.log_blocks_max.len() == 1);
        self.log_blocks_max.get(source).or(of_all).copied()
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

/// A duration as text: `5s`, `500ms`.
mod duration_text {
    use super::{Deserialize, Deserializer, Duration, Serializer};

    pub(super) fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&humantime::format_duration(*duration))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        let text = String::deserialize(deserializer)?;
        humantime::parse_duration(&text)
            .map_err(|_| serde::de::Error::custom(format_args!("{text:?} is not a duration such as 5s or 500ms")))
    }
}

#[cfg(test)]
mod tests;
