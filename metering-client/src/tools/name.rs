//! The names of route tools.
//!
//! Some agents drop tools with long names. Limits differ: OpenAI's API accepts 64 characters, and some clients count
//! the server's name too or accept fewer. So names are at most [`MAX_CHARS`] long.

use std::str::FromStr;

use metering_core::catalogue::Route;
use metering_core::text_traits;
use serde::{Deserialize, Serialize};
use sha3::{Digest, Sha3_256};

/// The header of `/endpoints.json` with the prefix of a service's route tool names, so tools served elsewhere get the
/// same names.
pub const TOOL_PREFIX_HEADER: &str = "mcp-tool-prefix";
/// The longest name, in characters.
pub(super) const MAX_CHARS: usize = 60;
/// How many hexadecimal digits of its hash end a name that cannot be shortened otherwise.
const HASH_DIGITS: usize = 6;

/// The prefix of route tool names: `bds_` by default. It may be empty.
///
/// ```
/// use metering_client::tools::ToolPrefix;
///
/// assert_eq!(ToolPrefix::default().as_str(), "bds_");
/// assert_eq!("acme_".parse::<ToolPrefix>()?.as_str(), "acme_");
/// assert!("acme data".parse::<ToolPrefix>().is_err());
/// # Ok::<(), metering_client::tools::ToolPrefixError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ToolPrefix(String);

/// The text cannot begin the name of a tool.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} must be empty, or a letter and up to 19 more letters, digits, underscores or hyphens, such as acme_")]
pub struct ToolPrefixError(String);

impl ToolPrefix {
    const MAX_CHARS: usize = 20;

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for ToolPrefix {
    fn default() -> Self {
        Self("bds_".to_owned())
    }
}

text_traits!(ToolPrefix: Display);

impl FromStr for ToolPrefix {
    type Err = ToolPrefixError;

    fn from_str(text: &str) -> Result<Self, ToolPrefixError> {
        let plain = text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
        let starts = text.is_empty() || text.starts_with(|first: char| first.is_ascii_alphabetic());
        if plain && starts && text.len() <= Self::MAX_CHARS {
            Ok(Self(text.to_owned()))
        } else {
            Err(ToolPrefixError(text.to_owned()))
        }
    }
}

impl TryFrom<String> for ToolPrefix {
    type Error = ToolPrefixError;

    fn try_from(text: String) -> Result<Self, ToolPrefixError> {
        text.parse()
    }
}

impl From<ToolPrefix> for String {
    fn from(prefix: ToolPrefix) -> Self {
        prefix.0
    }
}

/// The full name of a route's tool: the prefix and the path, with slashes and braces folded to `_`.
///
/// Other characters that agents' APIs do not accept in a name become `_` too. If several methods share a path
/// (`shared`), `GET` gets the plain name and the others get their method as a suffix.
pub(super) fn full_name(prefix: &ToolPrefix, route: &Route, shared: bool) -> String {
    let method = (shared && &*route.method != "GET").then(|| route.method.to_ascii_lowercase());
    let words: Vec<_> = words(&route.template).chain(method.as_deref()).collect();
    format!("{prefix}{}", words.join("_"))
}

/// Drops trailing path parameters until the name fits. `None` if it never does, or a method ends the name.
pub(super) fn without_last_parameters(prefix: &ToolPrefix, route: &Route, shared: bool) -> Option<String> {
    if shared && &*route.method != "GET" {
        return None;
    }
    let mut segments: Vec<_> = route.template.split('/').collect();
    while segments.pop_if(|segment| segment.starts_with('{') && segment.ends_with('}')).is_some() {
        let words: Vec<_> = segments.iter().flat_map(|segment| words(segment)).collect();
        let name = format!("{prefix}{}", words.join("_"));
        if name.len() <= MAX_CHARS {
            return Some(name);
        }
    }
    None
}

/// The name cut to whole words, and ended by a part of its hash.
pub(super) fn hashed(name: &str) -> String {
    let start: String = name.chars().take(MAX_CHARS - HASH_DIGITS - 1).collect();
    let start = start.rsplit_once('_').map_or(&*start, |(words, _)| words);
    format!("{start}_{}", &hex::encode(Sha3_256::digest(name))[..HASH_DIGITS])
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    let kept = |c: char| c.is_ascii_alphanumeric() || c == '-';
    text.split(move |c| !kept(c)).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use metering_core::Catalogue;

    use super::*;

    fn route(path: &str, method: &str) -> Catalogue {
        let params: Vec<_> = path
            .split('/')
            .filter_map(|segment| Some(segment.strip_prefix('{')?.split_once('}')?.0))
            .map(|name| format!(r#"{{"name":"{name}","in":"path","type":"string","required":true}}"#))
            .collect();
        let text = format!(
            r#"{{"market":"M","version":1,"endpoints":[{{"path":"{path}","method":"{method}","metered":true,
                "params":[{}]}}]}}"#,
            params.join(",")
        );
        Catalogue::from_json(&text).unwrap()
    }

    #[test]
    fn separators_fold_to_one_underscore() {
        // path, method, shared, name
        let table = [
            ("/mpp/snapshot/allTrades/{block_number}", "GET", false, "bds_mpp_snapshot_allTrades_block_number"),
            ("/mpp/ethPrice", "GET", true, "bds_mpp_ethPrice"),
            ("/mpp/ethPrice", "POST", true, "bds_mpp_ethPrice_post"),
            ("/mpp/ethPrice", "POST", false, "bds_mpp_ethPrice"),
            ("/v1.2/{a}/{b}/c-d", "GET", false, "bds_v1_2_a_b_c-d"),
            ("/_x/y__z_", "GET", false, "bds_x_y_z"),
            ("/a:b", "GET", false, "bds_a_b"),
        ];
        for (path, method, shared, name) in table {
            let catalogue = route(path, method);
            assert_eq!(full_name(&ToolPrefix::default(), &catalogue.routes()[0], shared), name, "{method} {path}");
        }
    }

    #[test]
    fn long_names_lose_their_last_parameters() {
        // path, method, name
        let table = [
            (
                "/mpp/timeSeries/{token_address}/{pool_address}/{time_interval}/{step_seconds}",
                "GET",
                Some("bds_mpp_timeSeries_token_address_pool_address_time_interval"),
            ),
            (
                "/a/{the_first_parameter_of_a_route}/{another_one_that_has_a_long_name}",
                "GET",
                Some("bds_a_the_first_parameter_of_a_route"),
            ),
            ("/a/{the_first_parameter_of_a_route}/{another_one_that_has_a_long_name}", "POST", None),
            ("/a/{the_first_parameter_of_a_route}/and_something_literal_after_it_all", "GET", None),
        ];
        for (path, method, name) in table {
            let catalogue = route(path, method);
            let short = without_last_parameters(&ToolPrefix::default(), &catalogue.routes()[0], true);
            assert_eq!(short.as_deref(), name, "{method} {path}");
        }
    }

    #[test]
    fn hashed_names_are_cut_to_words() {
        let (one, other) = (format!("bds_{}", "word_".repeat(14)), format!("bds_{}", "word_".repeat(15)));
        let (short, shorter) = (hashed(&one), hashed(&"x".repeat(90)));
        assert!(short.starts_with("bds_word_") && short.len() <= MAX_CHARS, "{short}");
        assert_ne!(short, hashed(&other));
        assert_eq!((short, shorter.len()), (hashed(&one), MAX_CHARS));
    }

    #[test]
    fn prefixes_can_begin_a_name() {
        for (text, valid) in [("", true), ("acme_", true), ("A-1", true), ("1a", false), ("_", false), ("a b", false)] {
            assert_eq!(text.parse::<ToolPrefix>().is_ok(), valid, "{text}");
        }
        assert!("a".repeat(20).parse::<ToolPrefix>().is_ok() && "a".repeat(21).parse::<ToolPrefix>().is_err());
    }
}
