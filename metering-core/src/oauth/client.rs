//! A client of OAuth: its own metadata, from its registration (RFC 7591) or from the document that its id names
//! (draft-ietf-oauth-client-id-metadata-document-00). Nothing of it is verified, except that the holder of the redirect
//! URI gets the code. All clients are public: none has a secret.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use serde::Deserialize;
use url::Url;

use crate::access::key_terms::KeyName;
use crate::clock::Timestamp;
use crate::oauth::redirect_uri::{RedirectUri, RedirectUriError};
use crate::random::{Randomness, random_digits};

/// The most redirect URIs of a client.
const REDIRECT_URIS_MAX: usize = 10;

/// The prefix of the ids of registered clients.
const PREFIX: &str = "cli_";

/// A client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OAuthClient {
    /// Its id: made up when it registered, or the URL of its document.
    pub id: String,
    /// Its name, for people.
    pub name: KeyName,
    /// Its redirect URIs; at least one.
    pub redirect_uris: Vec<RedirectUri>,
    /// When a registration is forgotten.
    pub expires_at: Timestamp,
}

/// Why metadata is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClientMetadataError {
    /// None of the redirect URIs can be used.
    #[error("redirect_uris must have 1 to {REDIRECT_URIS_MAX} entries, and one at least that can be used: each {0}")]
    RedirectUris(RedirectUriError),
    /// Another error.
    #[error("{0}")]
    Other(String),
}

/// Fetches the documents that ids of clients name.
#[async_trait]
pub trait ClientDocuments: Send + Sync + fmt::Debug {
    /// The document at this URL. It must come from a public address, without a redirect, and be small.
    ///
    /// # Errors
    /// Why there is none, for the person at the browser.
    async fn fetch(&self, url: &str) -> Result<Vec<u8>, String>;
}

/// Finds no documents.
#[async_trait]
impl ClientDocuments for () {
    async fn fetch(&self, _url: &str) -> Result<Vec<u8>, String> {
        Err("this service fetches no client metadata documents".to_owned())
    }
}

#[derive(Debug, Deserialize)]
struct Metadata {
    client_id: Option<String>,
    client_name: Option<String>,
    redirect_uris: Option<Vec<String>>,
    token_endpoint_auth_method: Option<String>,
    grant_types: Option<Vec<String>>,
}

impl ClientMetadataError {
    /// The code of RFC 7591, section 3.2.2.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::RedirectUris(_) => "invalid_redirect_uri",
            Self::Other(_) => "invalid_client_metadata",
        }
    }
}

/// A new id for a client that registers.
#[must_use]
pub fn new_client_id(randomness: &dyn Randomness) -> String {
    format!("{PREFIX}{}", random_digits(randomness, 32))
}

impl OAuthClient {
    /// How many registrations a service keeps. Any program may register, so they are bounded.
    pub const MAX_REGISTERED: u64 = 10_000;
    /// How long a registration is kept until its first token. A consent alone does not keep it, since anyone with an account
    /// could give many.
    pub const UNUSED_RETENTION: Duration = Duration::from_secs(24 * 60 * 60);
    /// How long it is kept after its last use.
    pub const RETENTION: Duration = Duration::from_secs(180 * 24 * 60 * 60);

    /// The client that registers with this JSON. Redirect URIs that cannot be used are left out, as RFC 7591 allows:
    /// programs register one for each way that they are run.
    ///
    /// # Errors
    /// When it has no redirect URI that can be used, or is not metadata of a client.
    pub fn registered(id: String, json: &[u8], expires_at: Timestamp) -> Result<Self, ClientMetadataError> {
        Self::read(id, &metadata(json)?, expires_at)
    }

    /// The client whose document is at `url`. All of its redirect URIs are checked, as it may be used elsewhere.
    ///
    /// # Errors
    /// When it is not the document of that client.
    pub fn of_document(url: &str, json: &[u8], expires_at: Timestamp) -> Result<Self, ClientMetadataError> {
        let metadata = metadata(json)?;
        if metadata.client_id.as_deref() != Some(url) {
            return Err(other("the client_id in the document is not the URL that it was fetched from"));
        }
        if metadata.client_name.is_none() {
            return Err(other("the document has no client_name"));
        }
        if metadata.token_endpoint_auth_method.as_deref().is_some_and(|method| method != "none") {
            return Err(other("the document asks for another token_endpoint_auth_method than none"));
        }
        Self::read(url.to_owned(), &metadata, expires_at)
    }

    fn read(id: String, metadata: &Metadata, expires_at: Timestamp) -> Result<Self, ClientMetadataError> {
        let given = metadata.redirect_uris.as_deref().unwrap_or_default();
        let redirect_uris: Vec<RedirectUri> = given.iter().filter_map(|uri| uri.parse().ok()).collect();
        let first = redirect_uris.first().filter(|_| given.len() <= REDIRECT_URIS_MAX);
        let Some(first) = first else { return Err(ClientMetadataError::RedirectUris(RedirectUriError)) };
        let uses_codes = |types: &Vec<String>| types.iter().any(|kind| kind == "authorization_code");
        if !metadata.grant_types.as_ref().is_none_or(uses_codes) {
            return Err(other("grant_types must have authorization_code"));
        }
        let named = metadata.client_name.as_deref().and_then(|name| name.parse().ok());
        let name = named.or_else(|| first.host().parse().ok());
        let name = name.ok_or_else(|| other("client_name must be 1 to 100 visible characters on one line"))?;
        Ok(Self { id, name, redirect_uris, expires_at })
    }

    /// Whether a text is the URL of a client's document: `https`, with a path, and nothing that URLs can be written
    /// differently with. An id of this kind is never that of a registered client.
    #[must_use]
    pub fn is_document_url(id: &str) -> bool {
        let Some(url) = Url::parse(id).ok().filter(|url| url.as_str() == id) else { return false };
        let is_bare = url.username().is_empty() && url.password().is_none() && url.fragment().is_none();
        url.scheme() == "https" && is_bare && url.path() != "/" && id.len() <= 2_048
    }

    /// The host that vouches for its document; `None` if it registered.
    #[must_use]
    pub fn host(&self) -> Option<String> {
        let host = || Url::parse(&self.id).ok()?.host_str().map(str::to_owned);
        Self::is_document_url(&self.id).then(host).flatten()
    }

    /// Whether responses may be sent there.
    #[must_use]
    pub fn may_redirect_to(&self, requested: &RedirectUri) -> bool {
        self.redirect_uris.iter().any(|registered| registered.accepts(requested))
    }
}

fn metadata(json: &[u8]) -> Result<Metadata, ClientMetadataError> {
    serde_json::from_slice(json).map_err(|error| other(format!("this is not the metadata of a client: {error}")))
}

fn other(problem: impl Into<String>) -> ClientMetadataError {
    ClientMetadataError::Other(problem.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SystemRandomness;

    const URL: &str = "https://app.example/client.json";
    const NOW: Timestamp = Timestamp::from_unix_millis(0);

    fn registered(json: &str) -> Result<OAuthClient, ClientMetadataError> {
        OAuthClient::registered(new_client_id(&SystemRandomness), json.as_bytes(), NOW)
    }

    #[test]
    fn a_client_registers_with_what_it_says() {
        let client = registered(
            r#"{"client_name": "Claude", "redirect_uris": ["cursor://x/cb", "http://localhost:1/cb", "https://a.example/cb"],
                "grant_types": ["authorization_code", "refresh_token"], "response_types": ["code"], "logo_uri": "x"}"#,
        );
        let client = client.unwrap();
        assert_eq!((client.name.as_str(), client.host()), ("Claude", None));
        let uris: Vec<_> = client.redirect_uris.iter().map(RedirectUri::as_str).collect();
        assert_eq!(uris, ["http://localhost:1/cb", "https://a.example/cb"]);
        assert!(client.may_redirect_to(&"http://localhost:5/cb".parse().unwrap()));
        assert!(!client.may_redirect_to(&"https://evil.example/cb".parse().unwrap()));
        let unnamed = registered(r#"{"redirect_uris": ["https://a.example/cb"]}"#).unwrap();
        assert_eq!(unnamed.name.as_str(), "a.example");
    }

    #[test]
    fn metadata_that_makes_no_client_is_refused() {
        let many = format!("[{}]", [r#""https://a.example/cb""#; 11].join(","));
        // redirect URIs, the rest, code
        let table = [
            ("[]", "", "invalid_redirect_uri"),
            (r#"["javascript:alert(1)"]"#, "", "invalid_redirect_uri"),
            (many.as_str(), "", "invalid_redirect_uri"),
            (r#"["https://a.example/cb"]"#, r#", "grant_types": ["client_credentials"]"#, "invalid_client_metadata"),
            ("7", "", "invalid_client_metadata"),
        ];
        for (uris, rest, code) in table {
            let problem = registered(&format!(r#"{{"redirect_uris": {uris}{rest}}}"#)).unwrap_err();
            assert_eq!(problem.code(), code, "{uris} {problem}");
        }
        assert_eq!(registered("{}").unwrap_err().code(), "invalid_redirect_uri");
    }

    #[test]
    fn a_document_is_that_of_its_url_alone() {
        let document = |json: &str| OAuthClient::of_document(URL, json.as_bytes(), NOW);
        let client = document(
            r#"{"client_id": "https://app.example/client.json", "client_name": "App", "redirect_uris": ["https://a.example/cb"],
                "token_endpoint_auth_method": "none"}"#,
        );
        assert_eq!(client.unwrap().host().as_deref(), Some("app.example"));
        let wrong = [
            r#"{"client_id": "https://app.example/other.json", "client_name": "App", "redirect_uris": ["https://a.example/cb"]}"#,
            r#"{"client_name": "App", "redirect_uris": ["https://a.example/cb"]}"#,
            r#"{"client_id": "https://app.example/client.json", "redirect_uris": ["https://a.example/cb"]}"#,
            r#"{"client_id": "https://app.example/client.json", "client_name": "App", "redirect_uris": ["https://a.example/cb"],
                "token_endpoint_auth_method": "private_key_jwt"}"#,
            "<html>",
        ];
        for json in wrong {
            assert_eq!(document(json).unwrap_err().code(), "invalid_client_metadata", "{json}");
        }
    }

    #[test]
    fn only_plain_https_urls_with_a_path_name_documents() {
        // id, is a URL of a document
        let table = [
            (URL, true),
            ("https://app.example/a?b=c", true),
            ("https://app.example/", false),
            ("https://app.example", false),
            ("http://app.example/client.json", false),
            ("https://app.example/a/../client.json", false),
            ("https://App.example/client.json", false),
            ("https://a@app.example/client.json", false),
            ("https://app.example/client.json#x", false),
            ("cli_0123", false),
        ];
        for (id, expected) in table {
            assert_eq!(OAuthClient::is_document_url(id), expected, "{id}");
        }
        assert!(!OAuthClient::is_document_url(&new_client_id(&SystemRandomness)));
    }
}
