//! The routes that a key may call.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

/// The most patterns that one key may list.
const MAX_PATTERNS: usize = 100;
/// The longest pattern, in bytes.
const MAX_BYTES: usize = 512;

/// The routes that a key may call, as patterns over the catalogue's templates. Empty means all.
///
/// A pattern is a route's template (`/quotes/{number}`), or the beginning of templates, up to a slash, and an asterisk
/// (`/quotes/*`). A leading method (`GET /quotes/*`) restricts it to that method.
///
/// ```
/// use metering_core::access::RoutePatterns;
///
/// let patterns = RoutePatterns::parse(["GET /quotes/*", "/search"])?;
/// assert!(patterns.allow("GET", "/quotes/{number}"));
/// assert!(!patterns.allow("POST", "/quotes/{number}"));
/// assert!(patterns.allow("POST", "/search"));
/// assert!(!patterns.allow("GET", "/searches"));
/// # Ok::<(), metering_core::access::RoutePatternsError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RoutePatterns(Vec<RoutePattern>);

/// A pattern over route templates.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct RoutePattern {
    method: Option<Box<str>>,
    /// The template, or its beginning.
    template: Box<str>,
    is_prefix: bool,
}

/// The text is not a list of route patterns.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RoutePatternsError {
    /// An entry is not a pattern.
    #[error("{0:?} is not a route such as /quotes/{{number}}, GET /search or /quotes/*")]
    Invalid(String),
    /// There are too many.
    #[error("must have at most {MAX_PATTERNS} entries")]
    TooMany,
}

impl RoutePatterns {
    /// Parses each pattern.
    ///
    /// # Errors
    /// When one is not a pattern, or there are more than 100.
    pub fn parse<'t>(patterns: impl IntoIterator<Item = &'t str>) -> Result<Self, RoutePatternsError> {
        let invalid = |text: &str| RoutePatternsError::Invalid(text.chars().take(60).collect());
        let pattern = |text: &'t str| RoutePattern::parse(text).ok_or_else(|| invalid(text));
        let mut patterns = patterns.into_iter().map(pattern).collect::<Result<Vec<_>, _>>()?;
        patterns.sort_unstable();
        patterns.dedup();
        if patterns.len() > MAX_PATTERNS { Err(RoutePatternsError::TooMany) } else { Ok(Self(patterns)) }
    }

    /// Whether all routes may be called.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the route with this method and template may be called.
    #[must_use]
    pub fn allow(&self, method: &str, template: &str) -> bool {
        self.is_empty() || self.0.iter().any(|pattern| pattern.matches(method, template))
    }

    /// Whether `other` allows every route that these allow.
    #[must_use]
    pub fn is_within(&self, other: &Self) -> bool {
        let covered = |pattern: &RoutePattern| other.0.iter().any(|wider| wider.covers(pattern));
        other.is_empty() || (!self.is_empty() && self.0.iter().all(covered))
    }

    /// The first pattern that matches none of these routes, given as method and template.
    #[must_use]
    pub fn unmatched<'r>(&self, routes: impl Iterator<Item = (&'r str, &'r str)> + Clone) -> Option<String> {
        let is_used =
            |pattern: &RoutePattern| routes.clone().any(|(method, template)| pattern.matches(method, template));
        self.0.iter().find(|pattern| !is_used(pattern)).map(RoutePattern::to_string)
    }
}

impl RoutePattern {
    fn parse(text: &str) -> Option<Self> {
        let (method, path) = match text.split_once(' ') {
            Some((method, path)) => (Some(method), path),
            None => (None, text),
        };
        let is_method = |method: &str| !method.is_empty() && method.bytes().all(|b| b.is_ascii_uppercase());
        let (template, is_prefix) = match path.strip_suffix('*') {
            Some(prefix) if prefix.ends_with('/') => (prefix, true),
            Some(_) => return None,
            None => (path, false),
        };
        let is_clean = |c: char| !c.is_whitespace() && !c.is_control() && c != '*';
        let valid = template.starts_with('/')
            && text.len() <= MAX_BYTES
            && method.is_none_or(is_method)
            && template.chars().all(is_clean);
        valid.then(|| Self { method: method.map(Into::into), template: template.into(), is_prefix })
    }

    fn matches(&self, method: &str, template: &str) -> bool {
        let has_template =
            if self.is_prefix { template.starts_with(&*self.template) } else { template == &*self.template };
        has_template && self.method.as_deref().is_none_or(|own| own == method)
    }

    /// Whether it matches everything that `other` matches.
    fn covers(&self, other: &Self) -> bool {
        let templates = if self.is_prefix {
            other.template.starts_with(&*self.template)
        } else {
            !other.is_prefix && self.template == other.template
        };
        templates && (self.method.is_none() || self.method == other.method)
    }
}

impl fmt::Display for RoutePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(method) = &self.method {
            write!(f, "{method} ")?;
        }
        write!(f, "{}{}", self.template, if self.is_prefix { "*" } else { "" })
    }
}

impl fmt::Display for RoutePatterns {
    /// A line each, as stores keep them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<_> = self.0.iter().map(RoutePattern::to_string).collect();
        f.write_str(&texts.join("\n"))
    }
}

impl FromStr for RoutePatterns {
    type Err = RoutePatternsError;

    /// A line each.
    fn from_str(text: &str) -> Result<Self, RoutePatternsError> {
        Self::parse(text.lines())
    }
}

impl Serialize for RoutePatterns {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(RoutePattern::to_string))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_within_another_when_the_other_allows_all_of_it() {
        let table = [
            ("/a", "", true),
            ("", "/a", false),
            ("/a", "/a", true),
            ("/a", "GET /a", false),
            ("GET /a", "/a", true),
            ("/a/{b}", "/a/*", true),
            ("/a/b/*", "/a/*", true),
            ("/a/*", "/a/b/*", false),
            ("/a/*", "/a/", false),
            ("/a\n/b", "/a\n/*", true),
            ("/ab", "/a/*", false),
        ];
        for (list, of, within) in table {
            let (list, of): (RoutePatterns, RoutePatterns) = (list.parse().unwrap(), of.parse().unwrap());
            assert_eq!(list.is_within(&of), within, "{list} in {of}");
        }
    }

    #[test]
    fn what_is_not_a_pattern_is_refused() {
        for text in ["", "a", "/a*", "*", "get /a", "GET  /a", "/a b", "/*/b", "/a\u{7}", " /a"] {
            assert!(RoutePatterns::parse([text]).is_err(), "{text:?}");
        }
        let many: Vec<_> = (0..=100).map(|n| format!("/{n}")).collect();
        assert_eq!(many.join("\n").parse::<RoutePatterns>(), Err(RoutePatternsError::TooMany));
    }

    #[test]
    fn a_pattern_without_a_route_is_named() {
        let patterns = RoutePatterns::parse(["GET /a/*", "/find"]).unwrap();
        let routes = [("GET", "/a/{b}"), ("GET", "/search")];
        assert_eq!(patterns.unmatched(routes.into_iter()).as_deref(), Some("/find"));
        assert_eq!(RoutePatterns::default().unmatched(routes.into_iter()), None);
    }
}
