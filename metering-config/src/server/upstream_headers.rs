//! Headers that the gateway adds to requests to an upstream: the section `[gateway.upstream_headers]` for the default
//! upstream, and `headers` for the others.
//!
//! Most are credentials, so each value is a secret, in the configuration or in a separate file.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use http::{HeaderName, HeaderValue};
use metering_core::catalogue::{is_hop_by_hop, is_of_gateway, is_same_header, overrides_request};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use zeroize::Zeroizing;

use crate::ConfigError;
use crate::secret_file::read;
use crate::server::{MASK, Secret};

/// The key of the section.
pub(super) const SECTION: &str = "gateway.upstream_headers";

/// Headers by name. An underscore in a name means a hyphen, because names of environment variables have no hyphens.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UpstreamHeaders(BTreeMap<String, UpstreamHeader>);

/// The value of a header: a text, or `{file, prefix}`.
#[derive(Debug, Clone)]
enum UpstreamHeader {
    Value(Secret),
    File(FromFile),
}

/// A value in a file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FromFile {
    file: PathBuf,
    /// The text before it in the header, such as `Bearer `.
    #[serde(default)]
    prefix: String,
    /// The contents of the file when the configuration was read.
    #[serde(skip)]
    content: Option<Secret>,
}

impl UpstreamHeaders {
    /// The files that values are read from.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.0.values().filter_map(|header| match header {
            UpstreamHeader::Value(_) => None,
            UpstreamHeader::File(from) => Some(from.file.as_path()),
        })
    }

    /// Reads the files.
    ///
    /// # Errors
    /// When one cannot be read or is empty.
    pub(super) fn read_files(&mut self, section: &str) -> Result<(), ConfigError> {
        for (name, header) in &mut self.0 {
            let UpstreamHeader::File(from) = header else { continue };
            from.content = Some(Secret::from(read(&format!("{section}.{name}.file"), &from.file)?));
        }
        Ok(())
    }

    /// The headers. Their values are marked as sensitive, so that they are not printed.
    ///
    /// # Errors
    /// When a name or a value is not valid, or the gateway sets the header itself. The text contains no value.
    pub fn pairs(&self) -> Result<Vec<(HeaderName, HeaderValue)>, ConfigError> {
        self.pairs_of(SECTION)
    }

    /// The same for headers of another section.
    pub(super) fn pairs_of(&self, section: &str) -> Result<Vec<(HeaderName, HeaderValue)>, ConfigError> {
        let mut pairs: Vec<(HeaderName, HeaderValue)> = Vec::with_capacity(self.0.len());
        for (key, header) in &self.0 {
            let invalid = |problem: &str| ConfigError::key(format!("{section}.{key}"), problem);
            let name =
                HeaderName::try_from(key.replace('_', "-")).map_err(|_| invalid("is not the name of a header"))?;
            if let Some(problem) = problem_with(name.as_str()) {
                return Err(invalid(problem));
            }
            if pairs.iter().any(|(known, _)| is_same_header(known.as_str(), name.as_str())) {
                return Err(invalid("is given twice; servers may read both names as one"));
            }
            let mut value = HeaderValue::try_from(header.value().as_str())
                .ok()
                .filter(|value| !value.is_empty())
                .ok_or_else(|| invalid("must be visible ASCII characters on one line, and not empty"))?;
            value.set_sensitive(true);
            pairs.push((name, value));
        }
        Ok(pairs)
    }
}

/// Why the gateway cannot add this header.
fn problem_with(name: &str) -> Option<&'static str> {
    let is_any = |known: &[&str]| known.iter().any(|known| is_same_header(name, known));
    if is_hop_by_hop(name) || is_any(&["host", "content-length", "expect"]) {
        Some("belongs to the gateway's own connection to the upstream")
    } else if is_of_gateway(name) || is_any(&["traceparent", "tracestate"]) {
        Some("is set by the gateway itself")
    } else if overrides_request(name) {
        Some("could make the upstream run a different request than the one that is charged")
    } else {
        None
    }
}

impl UpstreamHeader {
    fn value(&self) -> Zeroizing<String> {
        let text = match self {
            Self::Value(value) => value.expose().to_owned(),
            Self::File(from) => format!("{}{}", from.prefix, from.content.as_ref().map_or("", Secret::expose)),
        };
        Zeroizing::new(text)
    }
}

impl Serialize for UpstreamHeader {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Value(_) => serializer.serialize_str(MASK),
            Self::File(from) => from.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for UpstreamHeader {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(HeaderVisitor)
    }
}

struct HeaderVisitor;

impl<'de> Visitor<'de> for HeaderVisitor {
    type Value = UpstreamHeader;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, or a table with file and prefix")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<UpstreamHeader, E> {
        Ok(UpstreamHeader::Value(Secret::from(Zeroizing::new(text.to_owned()))))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<UpstreamHeader, A::Error> {
        FromFile::deserialize(MapAccessDeserializer::new(map)).map(UpstreamHeader::File)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "sk-of-the-provider";

    fn headers(toml: &str) -> Result<Vec<(String, String)>, String> {
        let mut headers: UpstreamHeaders = toml::from_str(toml).map_err(|error| error.to_string())?;
        headers.read_files(SECTION).map_err(|error| error.to_string())?;
        let pairs = headers.pairs().map_err(|error| error.to_string())?;
        let printed = format!("{headers:?} {pairs:?} {}", toml::to_string(&headers).unwrap());
        assert!(!printed.contains(KEY), "{printed}");
        Ok(pairs.iter().map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned())).collect())
    }

    #[test]
    fn values_are_texts_or_come_from_files_and_are_never_printed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("key");
        std::fs::write(&file, format!("{KEY}\n")).unwrap();
        let file = file.display();
        let table = [
            (format!("authorization = 'Bearer {KEY}'"), "authorization", format!("Bearer {KEY}")),
            (format!("[authorization]\nfile = '{file}'\nprefix = 'Bearer '"), "authorization", format!("Bearer {KEY}")),
            (format!("X-Goog-Api-Key.file = '{file}'"), "x-goog-api-key", KEY.to_owned()),
            (format!("x_goog_api_key = '{KEY}'"), "x-goog-api-key", KEY.to_owned()),
        ];
        for (toml, name, value) in table {
            assert_eq!(headers(&toml), Ok(vec![(name.to_owned(), value)]), "{toml}");
        }
        assert_eq!(headers(""), Ok(vec![]));
    }

    #[test]
    fn what_cannot_be_added_is_refused_with_its_key() {
        let folder = tempfile::tempdir().unwrap();
        let (empty, missing) = (folder.path().join("empty"), folder.path().join("missing"));
        std::fs::write(&empty, " \n").unwrap();
        let (empty, missing) = (empty.display(), missing.display());
        let table = [
            (format!("authorization.file = '{empty}'"), "authorization.file: "),
            (format!("authorization.file = '{missing}'"), "authorization.file: "),
            (format!("authorization = {{file = '{empty}', value = '{KEY}'}}"), "unknown field `value`"),
            ("authorization.prefix = 'Bearer '".to_owned(), "missing field `file`"),
            ("authorization = 1".to_owned(), "a text, or a table"),
            ("authorization = ''".to_owned(), "authorization: must be visible"),
            (format!("authorization = \"{KEY}\\r\\nx: 1\""), "authorization: must be visible"),
            ("'a b' = 'x'".to_owned(), "a b: is not the name"),
            ("host = 'x'".to_owned(), "host: belongs to"),
            ("Content_Length = 'x'".to_owned(), "Content_Length: belongs to"),
            ("te = 'x'".to_owned(), "te: belongs to"),
            ("connection = 'x'".to_owned(), "connection: belongs to"),
            ("x-metering-org-id = 'x'".to_owned(), "x-metering-org-id: is set by"),
            ("x-forwarded-for = 'x'".to_owned(), "x-forwarded-for: is set by"),
            ("x-bds-request-id = 'x'".to_owned(), "x-bds-request-id: is set by"),
            ("x-http-method-override = 'x'".to_owned(), "x-http-method-override: could make"),
            ("x-team = 'a'\nx_team = 'b'".to_owned(), "x_team: is given twice"),
        ];
        for (toml, problem) in table {
            let error = headers(&toml).unwrap_err();
            assert!(error.contains(problem), "{toml}: {error}");
            assert!(problem.contains('`') || !error.contains(KEY), "{error}");
        }
    }
}
