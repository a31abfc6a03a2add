//! Sinks that usage is sent to: the tables `[[usage.sinks]]`.

use std::ops::RangeInclusive;
use std::path::Path;
use std::time::Duration;

use http::header::CONTENT_TYPE;
use http::{HeaderName, HeaderValue};
use metering_core::catalogue::is_upstream_name;
use metering_core::events::WebhookUrl;
use serde::{Deserialize, Serialize};

use crate::ConfigError;
use crate::server::{Secret, Span, UpstreamHeaders};

/// The key of the tables.
pub(super) const KEY: &str = "usage.sinks";

/// The maximum number of sinks.
const MAX: usize = 8;
/// The sizes of a batch.
const BATCHES: RangeInclusive<u32> = 1..=1_000;
/// The limits of `interval`.
const INTERVALS: RangeInclusive<Duration> = Duration::from_secs(10)..=Duration::from_secs(86_400);

/// The usage sinks.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UsageConfig {
    /// The sinks.
    pub sinks: Vec<UsageSinkConfig>,
}

/// A sink: it gets changes of daily totals, as CloudEvents over HTTP.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UsageSinkConfig {
    /// Its name in logs, metrics and ids. A new name makes a new sink, which gets everything again.
    pub name: String,
    /// The URL that batches are posted to. An http(s) URL, masked when printed.
    pub url: Secret,
    /// The `source` of the events; by default `public_url` and `/usage/NAME`. Receivers detect duplicates by it, so
    /// never change it.
    #[serde(default)]
    pub source: Option<String>,
    /// The maximum number of events in a batch.
    #[serde(default = "default_batch")]
    pub batch: u32,
    /// How often to look for changes.
    #[serde(default = "default_interval")]
    pub interval: Span,
    /// Headers of the requests, such as credentials, in the form of `gateway.upstream_headers`.
    #[serde(default)]
    pub headers: UpstreamHeaders,
}

const fn default_batch() -> u32 {
    100
}

const fn default_interval() -> Span {
    Span::seconds(300)
}

impl UsageConfig {
    /// # Errors
    /// The first key that does not fit. `public_url` is that of the service.
    pub(super) fn check(&self, public_url: Option<&str>, delivers: bool) -> Result<(), ConfigError> {
        if self.sinks.len() > MAX {
            let problem = format!("has {} sinks; at most {MAX} are allowed", self.sinks.len());
            return Err(ConfigError::key(KEY, problem));
        }
        if !self.sinks.is_empty() && !delivers {
            return Err(ConfigError::key(
                KEY,
                "needs webhooks.deliver = true: this process would never send to a sink",
            ));
        }
        for (index, sink) in self.sinks.iter().enumerate() {
            sink.check(public_url)?;
            if self.sinks[..index].iter().any(|other| other.name == sink.name) {
                return Err(ConfigError::key(KEY, format_args!("two sinks have the name {:?}", sink.name)));
            }
        }
        Ok(())
    }
}

impl UsageSinkConfig {
    fn check(&self, public_url: Option<&str>) -> Result<(), ConfigError> {
        if !is_upstream_name(&self.name) {
            let problem = format!("{:?} must be 1 to 40 characters of A-Z a-z 0-9 . _ -", self.name);
            return Err(ConfigError::key(format!("{KEY}.name"), problem));
        }
        self.target()?;
        match (&self.source, public_url) {
            (None, None) => {
                let problem = "is required without public_url: receivers detect duplicates by it";
                return Err(ConfigError::key(self.key("source"), problem));
            }
            (Some(source), _) if !is_source(source) => {
                let problem = "must be a URI of 1 to 200 visible ASCII characters, such as https://api.example.com";
                return Err(ConfigError::key(self.key("source"), problem));
            }
            _ => {}
        }
        if !BATCHES.contains(&self.batch) {
            return Err(ConfigError::key(self.key("batch"), "must be 1 to 1000"));
        }
        if !INTERVALS.contains(&self.interval.duration()) {
            return Err(ConfigError::key(self.key("interval"), "must be 10s to 24h"));
        }
        if self.header_pairs()?.iter().any(|(name, _)| *name == CONTENT_TYPE) {
            return Err(ConfigError::key(self.key("headers"), "must not have content-type: batches set it"));
        }
        Ok(())
    }

    /// The URL that batches are posted to.
    ///
    /// # Errors
    /// When the URL is not valid. The text does not repeat it.
    pub fn target(&self) -> Result<WebhookUrl, ConfigError> {
        WebhookUrl::parse_trusted(self.url.expose()).map_err(|error| ConfigError::key(self.key("url"), error))
    }

    /// The `source` of its events.
    #[must_use]
    pub fn event_source(&self, public_url: Option<&str>) -> String {
        let default = || format!("{}/usage/{}", public_url.unwrap_or_default().trim_end_matches('/'), self.name);
        self.source.clone().unwrap_or_else(default)
    }

    /// Its headers. Their values are marked as sensitive.
    ///
    /// # Errors
    /// Same as [`UpstreamHeaders::pairs`].
    pub fn header_pairs(&self) -> Result<Vec<(HeaderName, HeaderValue)>, ConfigError> {
        self.headers.pairs_of(&self.key("headers"))
    }

    /// The files that its headers are read from.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.headers.files()
    }

    /// Reads the files of its headers.
    ///
    /// # Errors
    /// When one cannot be read or is empty.
    pub(super) fn read_files(&mut self) -> Result<(), ConfigError> {
        let section = self.key("headers");
        self.headers.read_files(&section)
    }

    fn key(&self, key: &str) -> String {
        format!("{KEY}.{}.{key}", self.name)
    }
}

fn is_source(source: &str) -> bool {
    (1..=200).contains(&source.len()) && source.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(sinks: &str) -> UsageConfig {
        toml::from_str(sinks).unwrap()
    }

    fn sink(more: &str) -> String {
        format!("[[sinks]]\nname = 'warehouse'\nurl = 'https://ingest.example/s3cret'\n{more}\n")
    }

    #[test]
    fn a_sink_has_defaults_and_its_source_follows_from_the_public_url() {
        let config = read(&sink("headers.authorization = 'Bearer t0ken'"));
        config.check(Some("https://api.example.com/"), true).unwrap();
        let [sink] = &config.sinks[..] else { panic!("one sink") };
        assert_eq!((sink.batch, sink.interval.duration()), (100, Duration::from_secs(300)));
        assert_eq!(sink.event_source(Some("https://api.example.com/")), "https://api.example.com/usage/warehouse");
        assert_eq!(sink.header_pairs().unwrap()[0].1, "Bearer t0ken");
        let printed = format!("{config:?}{}", toml::to_string(&config).unwrap());
        assert!(!printed.contains("s3cret") && !printed.contains("t0ken"), "{printed}");
    }

    #[test]
    fn invalid_values_are_refused_by_name() {
        // configuration, the key that the error names
        let table = [
            (sink("").replace("warehouse", "a b"), "usage.sinks.name"),
            (sink("").replace("https:", "ftp:"), "usage.sinks.warehouse.url"),
            (sink("source = 'a b'"), "usage.sinks.warehouse.source"),
            (sink("batch = 0"), "usage.sinks.warehouse.batch"),
            (sink("batch = 1001"), "usage.sinks.warehouse.batch"),
            (sink("interval = '9s'"), "usage.sinks.warehouse.interval"),
            (sink("headers.content-type = 'text/plain'"), "usage.sinks.warehouse.headers"),
            (sink("headers.host = 'x'"), "usage.sinks.warehouse.headers.host"),
            (sink("").repeat(2), "usage.sinks: two sinks"),
            (sink("").repeat(9), "usage.sinks: has 9"),
        ];
        for (text, key) in table {
            let error = read(&text).check(Some("https://api.example.com"), true).unwrap_err().to_string();
            assert!(error.contains(key) && !error.contains("s3cret"), "{text}: {error}");
        }
        let error = read(&sink("")).check(None, true).unwrap_err().to_string();
        assert!(error.contains("warehouse.source: is required without public_url"), "{error}");
        assert!(read(&sink("")).check(Some("https://api.example.com"), false).is_err());
        for text in [sink("bach = 1"), sink("").replace("url", "uri")] {
            assert!(toml::from_str::<UsageConfig>(&text).is_err(), "{text}");
        }
    }
}
