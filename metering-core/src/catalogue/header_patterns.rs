//! Patterns of header names, for headers that do not pass the gateway.
//!
//! They match as [`is_same_header`] compares: a pattern that missed another spelling of a name would let a client, or
//! an upstream behind a CGI-style server, send the header anyway.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::catalogue::override_headers::{is_same_header, starts_like_header};
use crate::text_traits::text_traits;

/// A header's name, or the beginning of names and an asterisk.
///
/// ```
/// use metering_core::catalogue::HeaderPattern;
///
/// let pattern: HeaderPattern = "x-litellm-*".parse()?;
/// assert!(pattern.matches("X-LiteLLM-Response-Cost"));
/// assert!(pattern.matches("x_litellm_model_id"));
/// assert!(!"via".parse::<HeaderPattern>()?.matches("via-proxy"));
/// assert!("*".parse::<HeaderPattern>().is_err());
/// # Ok::<(), metering_core::catalogue::HeaderPatternError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderPattern {
    /// The name or the beginning of names, in lower case.
    text: Box<str>,
    is_prefix: bool,
}

/// The text is not a pattern of header names.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a header name such as via, or the beginning of names and an asterisk, such as x-ratelimit-*")]
pub struct HeaderPatternError(String);

/// Patterns of header names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeaderPatterns(Arc<[HeaderPattern]>);

impl HeaderPattern {
    /// Whether some server reads this header as one that the pattern describes.
    #[must_use]
    pub fn matches(&self, header: &str) -> bool {
        if self.is_prefix { starts_like_header(header, &self.text) } else { is_same_header(header, &self.text) }
    }
}

impl HeaderPatterns {
    /// Whether any of them matches a header.
    #[must_use]
    pub fn matches(&self, header: &str) -> bool {
        self.0.iter().any(|pattern| pattern.matches(header))
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<HeaderPattern> for HeaderPatterns {
    fn from_iter<I: IntoIterator<Item = HeaderPattern>>(patterns: I) -> Self {
        Self(patterns.into_iter().collect())
    }
}

impl FromStr for HeaderPattern {
    type Err = HeaderPatternError;

    fn from_str(text: &str) -> Result<Self, HeaderPatternError> {
        let (name, is_prefix) = text.strip_suffix('*').map_or((text, false), |start| (start, true));
        // `tchar` of RFC 9110, section 5.6.2, without the asterisk.
        let is_tchar = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'+-.^_`|~".contains(&byte);
        if name.is_empty() || !name.bytes().all(is_tchar) {
            return Err(HeaderPatternError(text.chars().take(60).collect()));
        }
        Ok(Self { text: name.to_ascii_lowercase().into(), is_prefix })
    }
}

impl fmt::Display for HeaderPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.text, if self.is_prefix { "*" } else { "" })
    }
}

text_traits!(HeaderPattern: Serialize, Deserialize);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_cgi_servers_read_names() {
        // pattern, header, matches
        let table = [
            ("via", "via", true),
            ("Via", "VIA", true),
            ("via", "via-2", false),
            ("x-litellm-*", "x-litellm-response-cost", true),
            ("x-litellm-*", "X_LiteLLM_Response_Cost", true),
            ("x-litellm-*", "x.litellm.response.cost", true),
            ("x-litellm-*", "x-litellm-", true),
            ("x-litellm-*", "x-litellm", false),
            ("llm_provider-*", "llm-provider-x-request-id", true),
            ("openai-organization", "openai_organization", true),
            ("openai-organization", "openai-organizations", false),
        ];
        for (pattern, header, matches) in table {
            assert_eq!(pattern.parse::<HeaderPattern>().unwrap().matches(header), matches, "{pattern} {header}");
        }
    }

    #[test]
    fn what_is_not_a_pattern_is_refused() {
        for text in ["", "*", "**", "x-*-y", "*-x", "a b", "a:", "é", "x-*\n"] {
            assert!(text.parse::<HeaderPattern>().is_err(), "{text:?}");
        }
        assert_eq!("X-RateLimit-*".parse::<HeaderPattern>().unwrap().to_string(), "x-ratelimit-*");
    }
}
