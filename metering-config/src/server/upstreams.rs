//! Named upstreams: the tables `[[gateway.upstreams]]`, which routes of the catalogue name.

use std::num::NonZeroU16;
use std::path::Path;

use http::{HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};

use crate::ConfigError;
use crate::server::{Span, UpstreamHeaders};

/// The key of the tables.
pub(super) const KEY: &str = "gateway.upstreams";

/// Whether requests to an upstream go over HTTP/2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Http2 {
    /// If its TLS offers it (ALPN). Without TLS never.
    #[default]
    Auto,
    /// Never.
    Never,
    /// Always, also without TLS (prior knowledge).
    Always,
}

/// A service behind the gateway, besides the default one.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UpstreamConfig {
    /// Its name in routes, logs, metrics and responses.
    pub name: String,
    /// Its http or https URL; a path in it is prepended to every request's.
    pub url: String,
    /// Its share of the requests, relative to the other upstreams of the same step of a route.
    #[serde(default = "default_weight")]
    pub weight: NonZeroU16,
    /// How many consecutive failures eject it; 0 for never.
    #[serde(default = "default_eject_after")]
    pub eject_after: u32,
    /// How long the first ejection lasts. Each further ejection lasts longer.
    #[serde(default = "default_eject_time")]
    pub eject_time: Span,
    /// The health check path, below the path of its URL; by default there is no health check.
    #[serde(default)]
    pub health: Option<String>,
    /// The interval of health checks.
    #[serde(default = "default_health_interval")]
    pub health_interval: Span,
    /// Whether its requests go over HTTP/2, like `upstream_http2`.
    #[serde(default)]
    pub http2: Http2,
    /// Headers that are added to its requests, such as credentials. They replace those of the client. Those of
    /// `gateway.upstream_headers` are for the default upstream alone.
    #[serde(default)]
    pub headers: UpstreamHeaders,
}

const fn default_weight() -> NonZeroU16 {
    NonZeroU16::MIN
}

const fn default_eject_after() -> u32 {
    5
}

const fn default_eject_time() -> Span {
    Span::seconds(30)
}

const fn default_health_interval() -> Span {
    Span::seconds(5)
}

impl UpstreamConfig {
    /// The files that its headers are read from.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.headers.files()
    }

    /// Whether nothing differs, including the contents of its files.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        let parts = |of: &Self| (of.weight, of.eject_after, of.eject_time, of.health_interval, of.http2);
        let Self { name, url, health, .. } = self;
        (name, url, health) == (&other.name, &other.url, &other.health)
            && parts(self) == parts(other)
            && self.header_pairs().ok() == other.header_pairs().ok()
    }

    /// Its headers. Their values are marked as sensitive.
    ///
    /// # Errors
    /// Same as [`UpstreamHeaders::pairs`].
    pub fn header_pairs(&self) -> Result<Vec<(HeaderName, HeaderValue)>, ConfigError> {
        self.headers.pairs_of(&self.section())
    }

    /// Reads the files of its headers.
    ///
    /// # Errors
    /// When one cannot be read or is empty.
    pub(super) fn read_files(&mut self) -> Result<(), ConfigError> {
        let section = self.section();
        self.headers.read_files(&section)
    }

    fn section(&self) -> String {
        format!("{KEY}.{}.headers", self.name)
    }
}
