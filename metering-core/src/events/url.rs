//! The URLs that webhooks are sent to.
//!
//! URLs are parsed as browsers do it (the WHATWG URL standard), so every spelling of an IP address, such as `0x7f.1` or
//! `2130706433`, becomes that address before it is checked. Texts that other parsers read differently, such as those
//! with backslashes, are refused.
//!
//! Mail to the owner of an account is a webhook, too, with a `mailto:` URL: so it is queued, retried and listed as any
//! other event is.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use url::{Host, Url};

use crate::access::email::Email;
use crate::access::invisible::is_invisible;
use crate::events::address::AddressPolicy;

/// The longest URL, in bytes.
const MAX_BYTES: usize = 2_048;

/// How the URL of mail begins.
const MAIL: &str = "mailto:";

/// Top-level names that never lead out of a machine or a local network (RFC 6761, RFC 6762, and ICANN's `internal`).
const LOCAL_NAMES: [&str; 3] = ["localhost", "local", "internal"];

/// A URL that webhooks are sent to, in normal form.
///
/// The text of a URL proves little: a host's name may still resolve to an address that is not public. The sender checks
/// that.
///
/// ```
/// use metering_core::events::{WebhookUrl, WebhookUrlError};
///
/// let url: WebhookUrl = "https://Hooks.example.com/metering?team=7".parse()?;
/// assert_eq!(url.as_str(), "https://hooks.example.com/metering?team=7");
/// assert_eq!("https://0x7f.1/".parse::<WebhookUrl>(), Err(WebhookUrlError::PrivateAddress));
/// # Ok::<(), WebhookUrlError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookUrl(Url);

/// Why a text is not a URL that webhooks may be sent to. It never repeats the text, which may have a secret in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WebhookUrlError {
    /// It is too long.
    #[error("a webhook's URL must have at most {MAX_BYTES} bytes")]
    TooLong,
    /// It has a character that programs read differently, or that people do not see.
    #[error("a webhook's URL must not have spaces, backslashes, control characters or invisible characters")]
    Character,
    /// Its scheme is not `https`.
    #[error("a webhook's URL must start with https://")]
    NotHttps,
    /// Its scheme is neither `https` nor `http`.
    #[error("a webhook's URL must start with https:// or http://")]
    NotHttp,
    /// It has no host, or is not a URL for another reason.
    #[error("a webhook's URL must have a valid host, as in https://hooks.example.com/metering")]
    Malformed,
    /// It has a user name or a password.
    #[error("a webhook's URL must not have a user name or password; check the signature to authenticate webhooks")]
    UserInfo,
    /// It has a fragment, which is never sent.
    #[error("a webhook's URL must not have a fragment (the part after #)")]
    Fragment,
    /// Its port is 0.
    #[error("a webhook's URL must have a port from 1 to 65535, or none")]
    Port,
    /// Its host's name is local.
    #[error(
        "a webhook's host must be public: names such as localhost, *.local and *.internal, or without a dot, are not"
    )]
    LocalName,
    /// Its host is an IP address that is not public.
    #[error("a webhook's host must have a public IP address; this one is private or reserved")]
    PrivateAddress,
}

impl WebhookUrl {
    /// Parses the URL of a customer: `https` only, and a host that `policy` may allow. If the operator allows networks
    /// that are not public, local names are accepted as well; their addresses decide.
    ///
    /// # Errors
    /// When the text is not such a URL.
    pub fn parse(text: &str, policy: &AddressPolicy) -> Result<Self, WebhookUrlError> {
        let url = parse(text, &["https"], WebhookUrlError::NotHttps)?;
        if url.address().is_some_and(|address| !policy.allows(address)) {
            return Err(WebhookUrlError::PrivateAddress);
        }
        if policy.is_public_only() && url.address().is_none() && is_local(url.host()) {
            return Err(WebhookUrlError::LocalName);
        }
        Ok(url)
    }

    /// Parses the operator's own URL: `https` or `http`, and any host.
    ///
    /// # Errors
    /// When the text is not such a URL.
    pub fn parse_trusted(text: &str) -> Result<Self, WebhookUrlError> {
        parse(text, &["https", "http"], WebhookUrlError::NotHttp)
    }

    /// Reads a stored URL: one of [`WebhookUrl::parse_trusted`] or of [`WebhookUrl::mail_to`].
    ///
    /// # Errors
    /// When the text is neither.
    pub fn parse_stored(text: &str) -> Result<Self, WebhookUrlError> {
        match text.strip_prefix(MAIL) {
            Some(address) => {
                let email = address.parse().ok();
                email.as_ref().and_then(Self::mail_to).ok_or(WebhookUrlError::Malformed)
            }
            None => Self::parse_trusted(text),
        }
    }

    /// The URL that represents mail to an address; `None` for an address that needs encoding in a URL.
    ///
    /// ```
    /// use metering_core::events::WebhookUrl;
    ///
    /// let email = "jo@example.com".parse()?;
    /// let url = WebhookUrl::mail_to(&email).expect("the address is plain");
    /// assert_eq!((url.as_str(), url.email()), ("mailto:jo@example.com", Some(email)));
    /// # Ok::<(), metering_core::access::EmailError>(())
    /// ```
    #[must_use]
    pub fn mail_to(email: &Email) -> Option<Self> {
        let is_plain = email.as_str().bytes().all(|byte| byte.is_ascii_alphanumeric() || b"@.-_+".contains(&byte));
        let text = format!("{MAIL}{email}");
        let url = Url::parse(&text).ok().filter(|url| is_plain && url.as_str() == text)?;
        Some(Self(url))
    }

    /// The address, if the URL represents mail.
    #[must_use]
    pub fn email(&self) -> Option<Email> {
        self.as_str().strip_prefix(MAIL)?.parse().ok()
    }

    /// The whole URL. Its path or query may have a secret in it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Its host: a name in ASCII, or an IP address (IPv6 in brackets).
    #[must_use]
    pub fn host(&self) -> &str {
        self.0.host_str().unwrap_or_default()
    }

    /// Its host, if that is an IP address. No name is resolved for it, so check it before connecting.
    #[must_use]
    pub fn address(&self) -> Option<IpAddr> {
        match self.0.host()? {
            Host::Ipv4(address) => Some(address.into()),
            Host::Ipv6(address) => Some(address.into()),
            Host::Domain(_) => None,
        }
    }
}

fn parse(text: &str, schemes: &[&str], wrong_scheme: WebhookUrlError) -> Result<WebhookUrl, WebhookUrlError> {
    if text.len() > MAX_BYTES {
        return Err(WebhookUrlError::TooLong);
    }
    if text.chars().any(|c| c == '\\' || c.is_whitespace() || is_invisible(c)) {
        return Err(WebhookUrlError::Character);
    }
    let (scheme, rest) = text.split_once("://").ok_or(wrong_scheme)?;
    if !schemes.iter().any(|allowed| scheme.eq_ignore_ascii_case(allowed)) {
        return Err(wrong_scheme);
    }
    // The parser would skip empty authorities and drop empty user names.
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.is_empty() {
        return Err(WebhookUrlError::Malformed);
    }
    if authority.contains('@') {
        return Err(WebhookUrlError::UserInfo);
    }
    let url = Url::parse(text).map_err(|error| match error {
        url::ParseError::InvalidPort => WebhookUrlError::Port,
        _ => WebhookUrlError::Malformed,
    })?;
    if url.fragment().is_some() {
        return Err(WebhookUrlError::Fragment);
    }
    if url.port() == Some(0) {
        return Err(WebhookUrlError::Port);
    }
    // Percent-encoding makes it longer.
    if url.as_str().len() > MAX_BYTES { Err(WebhookUrlError::TooLong) } else { Ok(WebhookUrl(url)) }
}

/// Whether a host's name ends in a local one, or has no dot: a resolver looks that up in the domains of its own
/// network. A trailing dot does not matter.
fn is_local(name: &str) -> bool {
    name.trim_end_matches('.').rsplit_once('.').is_none_or(|(_, last)| LOCAL_NAMES.contains(&last))
}

impl FromStr for WebhookUrl {
    type Err = WebhookUrlError;

    /// Parses the URL of a customer, where only public addresses are allowed.
    fn from_str(text: &str) -> Result<Self, WebhookUrlError> {
        Self::parse(text, &AddressPolicy::default())
    }
}

impl fmt::Display for WebhookUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Without path and query, which often have a secret in them.
impl fmt::Debug for WebhookUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WebhookUrl({}/…)", self.0.origin().ascii_serialization())
    }
}

#[cfg(test)]
mod tests;
