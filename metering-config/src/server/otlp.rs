//! Traces: the section `[otlp]`.

use std::path::PathBuf;

use http::HeaderValue;
use url::Url;
use zeroize::Zeroizing;

use crate::ConfigError;
use crate::server::Secret;
use crate::server::section::section;

section! {
    /// Where the spans of charges are sent, by OTLP over HTTP with protobuf bodies. Without this section there are no
    /// traces.
    pub struct OtlpConfig;

    /// The collector, an http(s) URL. `/v1/traces` is appended.
    endpoint: String = "http://127.0.0.1:4318".to_owned(),
    /// The value of the `Authorization` header of requests to the collector.
    authorization: Option<Secret>,
    /// A file with that value, instead of `authorization`.
    authorization_file: Option<PathBuf>,
    /// The share of traces that are recorded, 0 to 1.
    sample_ratio: f64 = 1.0,
    /// Whether to honour the sampling decision in a request's `traceparent` header. Otherwise the ratio decides. Either
    /// way its trace is continued.
    trust_caller: bool = false,
    /// The name of this service in traces.
    service_name: String = "metering-server".to_owned(),
}

impl OtlpConfig {
    /// The URL that traces are posted to.
    #[must_use]
    pub fn traces_url(&self) -> String {
        format!("{}/v1/traces", self.endpoint.trim_end_matches('/'))
    }

    /// The `Authorization` header, from the configuration or its file. A line break at the end of the file is ignored.
    ///
    /// # Errors
    /// When the file cannot be read, or the value is not valid in a header.
    pub fn authorization(&self) -> Result<Option<Zeroizing<String>>, ConfigError> {
        let (key, value) = match (&self.authorization, &self.authorization_file) {
            (Some(_), Some(_)) => {
                let problem = "cannot be used together with otlp.authorization";
                return Err(ConfigError::key("otlp.authorization_file", problem));
            }
            (Some(value), None) => ("otlp.authorization", Zeroizing::new(value.expose().to_owned())),
            (None, Some(file)) => {
                let key = "otlp.authorization_file";
                let text = std::fs::read_to_string(file)
                    .map_err(|error| ConfigError::key(key, format_args!("{}: {error}", file.display())))?;
                let text = Zeroizing::new(text);
                (key, Zeroizing::new(text.trim_end_matches(['\r', '\n']).to_owned()))
            }
            (None, None) => return Ok(None),
        };
        if value.is_empty() || HeaderValue::from_str(&value).is_err() {
            return Err(ConfigError::key(key, "must be a header value on one line, such as Bearer TOKEN"));
        }
        Ok(Some(value))
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let is_plain = |url: &Url| {
            matches!(url.scheme(), "http" | "https")
                && url.has_host()
                && url.query().is_none()
                && url.fragment().is_none()
                && url.username().is_empty()
                && url.password().is_none()
        };
        if !Url::parse(&self.endpoint).is_ok_and(|url| is_plain(&url)) {
            let problem = "must be an http(s) URL without user, query or fragment, such as http://127.0.0.1:4318";
            return Err(ConfigError::key("otlp.endpoint", problem));
        }
        if !(0.0..=1.0).contains(&self.sample_ratio) {
            return Err(ConfigError::key("otlp.sample_ratio", "must be 0 to 1"));
        }
        if self.service_name.trim().is_empty() {
            return Err(ConfigError::key("otlp.service_name", "must not be empty"));
        }
        self.authorization().map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> Option<String> {
        let config: OtlpConfig = toml::from_str(text).unwrap();
        config.check().err().map(|error| error.to_string())
    }

    #[test]
    fn values_are_checked() {
        let table = [
            ("", None),
            ("endpoint = 'https://collector.example:4318/otlp/'", None),
            ("endpoint = 'collector:4318'", Some("otlp.endpoint")),
            ("endpoint = 'http://user:pw@collector:4318'", Some("otlp.endpoint")),
            ("endpoint = 'http://collector/?key=1'", Some("otlp.endpoint")),
            ("sample_ratio = 0.0", None),
            ("sample_ratio = 1.5", Some("otlp.sample_ratio")),
            ("sample_ratio = nan", Some("otlp.sample_ratio")),
            ("service_name = ' '", Some("otlp.service_name")),
            ("authorization = \"a\\nb\"", Some("otlp.authorization")),
            ("authorization = 'a'\nauthorization_file = 'b'", Some("otlp.authorization_file")),
            ("authorization_file = '/nowhere/at/all'", Some("otlp.authorization_file")),
        ];
        for (text, expected) in table {
            let found = problem(text);
            assert_eq!(found.is_some(), expected.is_some(), "{text}: {found:?}");
            assert!(expected.is_none_or(|key| found.as_ref().unwrap().contains(key)), "{text}: {found:?}");
        }
    }

    #[test]
    fn authorization_comes_from_its_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "Bearer token-of-the-collector\n").unwrap();
        let config = OtlpConfig { authorization_file: Some(file.path().to_owned()), ..OtlpConfig::default() };
        assert_eq!(config.authorization().unwrap().unwrap().as_str(), "Bearer token-of-the-collector");
        let shown = toml::to_string(&OtlpConfig {
            authorization: Some(toml::Value::from("Bearer token-of-the-collector").try_into().unwrap()),
            ..OtlpConfig::default()
        });
        assert!(!shown.unwrap().contains("token-of"), "secrets are masked");
    }

    #[test]
    fn traces_have_a_path_below_the_endpoint() {
        for endpoint in ["http://collector:4318", "http://collector:4318/"] {
            let config = OtlpConfig { endpoint: endpoint.to_owned(), ..OtlpConfig::default() };
            assert_eq!(config.traces_url(), "http://collector:4318/v1/traces");
        }
    }
}
