//! The URL of an RPC source. It is a secret, since providers put their customers' keys into it.

use std::fmt;
use std::str::FromStr;

use metering_core::access::is_own_machine;
use metering_core::text_traits;
use url::{Url, form_urlencoded};

/// Shorter parts of a path or query are not keys, but words such as `v2` or `rpc`.
const KEY_BYTES_MIN: usize = 8;

/// The URL of an RPC source. Displayed as scheme and host only: `https://rpc.example.com/…`.
///
/// ```
/// use metering_evm::RpcUrl;
///
/// let url: RpcUrl = "https://rpc.example.com/v2/0123456789abcdef".parse()?;
/// assert_eq!(url.to_string(), "https://rpc.example.com/…");
/// # Ok::<(), metering_evm::RpcUrlError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct RpcUrl(Url);

/// The text is not the URL of an RPC source. The error does not repeat the text, since it may contain a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be an http:// or https:// URL")]
pub struct RpcUrlError;

impl RpcUrl {
    /// The whole URL with its secrets. Use it only to send requests, never to display it.
    #[must_use]
    pub const fn expose(&self) -> &Url {
        &self.0
    }

    /// Its host, and its port if it is not the scheme's default.
    ///
    /// ```
    /// use metering_evm::RpcUrl;
    ///
    /// assert_eq!("https://rpc.example.com/v2/0123456789abcdef".parse::<RpcUrl>()?.host(), "rpc.example.com");
    /// assert_eq!("http://127.0.0.1:8545".parse::<RpcUrl>()?.host(), "127.0.0.1:8545");
    /// # Ok::<(), metering_evm::RpcUrlError>(())
    /// ```
    #[must_use]
    pub fn host(&self) -> String {
        let host = self.0.host_str().unwrap_or_default();
        self.0.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }

    /// Whether it refers to this machine.
    pub(crate) fn is_loopback(&self) -> bool {
        self.0.host_str().is_some_and(is_own_machine)
    }

    /// `text` without the secrets of this URL, which a source may repeat in its error messages.
    pub(crate) fn redact(&self, text: &str) -> String {
        let mut secrets = self.secrets();
        // Longest first: one may be a part of another.
        secrets.sort_unstable_by_key(|secret| std::cmp::Reverse(secret.len()));
        secrets.iter().fold(text.to_owned(), |text, secret| text.replace(secret.as_str(), "…"))
    }

    fn secrets(&self) -> Vec<String> {
        let user = [self.0.username(), self.0.password().unwrap_or_default()];
        let path = self.0.path_segments().into_iter().flatten();
        let query = self.0.query().unwrap_or_default().split(['&', '=']);
        let words = path.chain(query).chain(self.0.fragment());
        let keys = words.filter(|word| word.len() >= KEY_BYTES_MIN);
        user.into_iter()
            .filter(|word| !word.is_empty())
            .chain(keys)
            .flat_map(|word| {
                // Both as it is written and decoded.
                let decoded = form_urlencoded::parse(word.as_bytes()).next().map(|(name, _)| name.into_owned());
                [Some(word.to_owned()), decoded]
            })
            .flatten()
            .filter(|word| !word.is_empty())
            .collect()
    }
}

impl FromStr for RpcUrl {
    type Err = RpcUrlError;

    fn from_str(text: &str) -> Result<Self, RpcUrlError> {
        let url = Url::parse(text.trim()).map_err(|_| RpcUrlError)?;
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return Err(RpcUrlError);
        }
        Ok(Self(url))
    }
}

impl fmt::Display for RpcUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hidden = self.0.path() != "/" || self.0.query().is_some() || self.0.fragment().is_some();
        write!(f, "{}://{}/{}", self.0.scheme(), self.host(), if hidden { "…" } else { "" })
    }
}

text_traits!(RpcUrl: Debug, Serialize, Deserialize);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_scheme_and_host_are_shown() {
        // text, as displayed
        let table = [
            ("https://rpc.example.com/v2/secretkey", "https://rpc.example.com/…"),
            ("https://rpc.example.com/?apikey=secretkey", "https://rpc.example.com/…"),
            ("https://user:secretkey@rpc.example.com:8443", "https://rpc.example.com:8443/"),
            ("http://127.0.0.1:8545", "http://127.0.0.1:8545/"),
            ("http://[::1]:8545/#secretkey", "http://[::1]:8545/…"),
        ];
        for (text, shown) in table {
            let url: RpcUrl = text.parse().unwrap();
            assert_eq!(url.to_string(), shown);
            assert_eq!(format!("{url:?}"), shown);
            assert_eq!(serde_json::to_value(&url).unwrap(), shown);
            assert!(url.is_loopback() || shown.contains("example"), "{text}");
        }
    }

    #[test]
    fn invalid_rpc_url_is_refused_without_repeating_it() {
        for text in ["", "secretkey", "wss://rpc.example.com/secretkey", "file:///secretkey", "https://:secretkey@"] {
            let error = text.parse::<RpcUrl>().unwrap_err();
            assert!(!error.to_string().contains("secretkey"), "{text}");
        }
    }

    #[test]
    fn message_that_repeats_the_key_is_redacted() {
        let url: RpcUrl = "https://me:pw@rpc.example.com/v2/path%2Dsecret?apikey=query-secret".parse().unwrap();
        let problem = "me:pw may not use path-secret (path%2Dsecret) or query-secret of v2";
        assert_eq!(url.redact(problem), "…:… may not use … (…) or … of v2");
    }
}
