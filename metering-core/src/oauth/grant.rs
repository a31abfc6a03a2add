//! A grant: an owner gave a client a key with certain terms.
//!
//! It begins when the owner consents, with a code; redeeming that makes the key and its first secret, the access token.
//! Each refresh replaces that secret, and the key keeps its budget and usage. Whoever changes or deletes the key, as
//! any other, changes or ends the grant: it lasts as long as its last access token, and ends when that is revoked.

use std::time::Duration;

use crate::access::account::AccountId;
use crate::access::key::KeyHash;
use crate::access::key_id::KeyId;
use crate::clock::Timestamp;
use crate::oauth::code_challenge::CodeChallenge;
use crate::oauth::redirect_uri::RedirectUri;
use crate::oauth::token::{GrantId, GrantTokenHash};

/// A grant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// Its id.
    pub id: GrantId,
    /// The account.
    pub account: AccountId,
    /// The owner's key, which is the parent of the client's key.
    pub parent: KeyId,
    /// The client's id.
    pub client: String,
    /// Where the code was sent.
    pub redirect_uri: RedirectUri,
    /// The resource of the tokens.
    pub resource: String,
    /// The challenge that the code must be redeemed with.
    pub challenge: CodeChallenge,
    /// The terms that the owner chose: the JSON of a [`CreateKeyRequest`](crate::wire::CreateKeyRequest).
    pub terms: String,
    /// The hash of the code, and later of the refresh token that is valid now.
    pub token: GrantTokenHash,
    /// The client's key; `None` until the code is redeemed.
    pub key: Option<KeyId>,
    /// The hash of the last access token.
    pub secret: Option<KeyHash>,
    /// When the code or the refresh token expires.
    pub expires_at: Timestamp,
}

/// Why a code or a refresh token is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GrantRefusal {
    /// No grant has or had this token.
    #[error("the code or refresh token is unknown, was revoked, or has expired")]
    Unknown,
    /// It was used before. The grant ends, because one of its two users stole it.
    #[error("the code or refresh token was used before, so its access was revoked; ask the owner again")]
    Reused,
    /// A code that was not redeemed yet was sent in place of a refresh token, or the other way round.
    #[error("this is not a token of the kind that grant_type names")]
    Kind,
    /// It was issued to another client.
    #[error("the code or refresh token was given to another client_id")]
    Client,
    /// The code was sent elsewhere.
    #[error("redirect_uri is not that of the authorization request")]
    RedirectUri,
    /// The code verifier does not match: another client requested the code.
    #[error("code_verifier does not match the code_challenge of the authorization request")]
    Verifier,
    /// The token is for another resource.
    #[error("resource is not that of the authorization request")]
    Resource,
    /// The key of the grant is gone, switched off, or was rotated by its owner.
    #[error("the owner ended this access, or its key has expired; ask the owner again")]
    Ended,
}

/// The parameters that a client sends with a code or a refresh token.
#[derive(Debug, Clone, Copy)]
pub struct Redemption<'r> {
    /// Its hash.
    pub token: GrantTokenHash,
    /// The client that sends it.
    pub client: &'r str,
    /// The resource, in the service's own spelling; `None` for the agreed one.
    pub resource: Option<&'r str>,
    /// With a code: its redirect URI, if the client sends one, and the code verifier.
    pub code: Option<(Option<&'r str>, &'r str)>,
}

impl GrantRefusal {
    /// The code of RFC 6749, section 5.2, or RFC 8707, section 2.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Resource => "invalid_target",
            _ => "invalid_grant",
        }
    }
}

impl Grant {
    /// How long a code can be redeemed.
    pub const CODE_LIFETIME: Duration = Duration::from_secs(60);
    /// How long an access token works.
    pub const ACCESS_LIFETIME: Duration = Duration::from_secs(60 * 60);
    /// How long a refresh token can be used.
    pub const REFRESH_LIFETIME: Duration = Duration::from_secs(90 * 24 * 60 * 60);
    /// How long the access token before a refresh still works, for requests that are on their way.
    pub const OVERLAP: Duration = Duration::from_secs(60);

    /// Checks the client's parameters.
    ///
    /// # Errors
    /// The first refusal. [`GrantRefusal::Reused`] ends the grant; nothing else changes it.
    pub fn check(&self, redemption: &Redemption<'_>, now: Timestamp) -> Result<(), GrantRefusal> {
        if redemption.token != self.token {
            // Before a code is redeemed, no other secret of its grant was given out.
            return Err(if self.key.is_some() { GrantRefusal::Reused } else { GrantRefusal::Unknown });
        }
        if now >= self.expires_at {
            return Err(GrantRefusal::Unknown);
        }
        if redemption.code.is_some() != self.key.is_none() {
            return Err(GrantRefusal::Kind);
        }
        if redemption.client != self.client {
            return Err(GrantRefusal::Client);
        }
        if let Some((redirect_uri, verifier)) = redemption.code {
            if redirect_uri.is_some_and(|uri| uri != self.redirect_uri.as_str()) {
                return Err(GrantRefusal::RedirectUri);
            }
            if !self.challenge.is_met_by(verifier) {
                return Err(GrantRefusal::Verifier);
            }
        }
        if redemption.resource.is_some_and(|resource| resource != self.resource) {
            return Err(GrantRefusal::Resource);
        }
        Ok(())
    }

    /// The grant after its code or refresh token was used: its next refresh token, its key, and the access token.
    #[must_use]
    pub fn continued(self, token: GrantTokenHash, key: KeyId, secret: KeyHash, now: Timestamp) -> Self {
        let expires_at = now.saturating_add(Self::REFRESH_LIFETIME);
        Self { token, key: Some(key), secret: Some(secret), expires_at, ..self }
    }

    /// When the owner consented; or once the code was redeemed, when an access token was last given.
    #[must_use]
    pub fn given_at(&self) -> Timestamp {
        let lifetime = if self.key.is_some() { Self::REFRESH_LIFETIME } else { Self::CODE_LIFETIME };
        self.expires_at.saturating_sub(lifetime)
    }

    /// When an access token that is given now stops working, for a key that expires then.
    #[must_use]
    pub fn access_until(key_expires_at: Option<Timestamp>, now: Timestamp) -> Timestamp {
        let until = now.saturating_add(Self::ACCESS_LIFETIME);
        key_expires_at.map_or(until, |at| until.min(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::key::ApiKey;
    use crate::oauth::token::GrantToken;
    use crate::random::SystemRandomness;

    const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
    const NOW: Timestamp = Timestamp::from_unix_millis(0);
    const URI: &str = "https://a.example/cb";
    const RESOURCE: &str = "https://api.example/mcp";

    fn begun(code: &GrantToken) -> Grant {
        Grant {
            id: code.grant(),
            account: AccountId::generate(&SystemRandomness),
            parent: KeyId::of_first(&ApiKey::generate(&SystemRandomness).hash()),
            client: "cli_1".to_owned(),
            redirect_uri: URI.parse().unwrap(),
            resource: RESOURCE.to_owned(),
            challenge: "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM".parse().unwrap(),
            terms: "{}".to_owned(),
            token: code.hash(),
            key: None,
            secret: None,
            expires_at: NOW.saturating_add(Grant::CODE_LIFETIME),
        }
    }

    fn redemption(code: &GrantToken) -> Redemption<'static> {
        Redemption { token: code.hash(), client: "cli_1", resource: Some(RESOURCE), code: Some((Some(URI), VERIFIER)) }
    }

    #[test]
    fn a_code_is_redeemed_by_its_client_with_its_verifier() {
        let code = GrantToken::generate(&SystemRandomness);
        let (grant, good) = (begun(&code), redemption(&code));
        let check = |redemption: Redemption<'_>| grant.check(&redemption, NOW);
        assert_eq!(check(good), Ok(()));
        assert_eq!(check(Redemption { resource: None, code: Some((None, VERIFIER)), ..good }), Ok(()));
        assert_eq!(check(Redemption { client: "cli_2", ..good }), Err(GrantRefusal::Client));
        assert_eq!(check(Redemption { code: Some((Some(URI), "x")), ..good }), Err(GrantRefusal::Verifier));
        let elsewhere = Some((Some("https://a.example/cb/"), VERIFIER));
        assert_eq!(check(Redemption { code: elsewhere, ..good }), Err(GrantRefusal::RedirectUri));
        assert_eq!(check(Redemption { resource: Some("https://x.example"), ..good }), Err(GrantRefusal::Resource));
        assert_eq!(check(Redemption { code: None, ..good }), Err(GrantRefusal::Kind));
        let guessed = code.next(&SystemRandomness).hash();
        assert_eq!(check(Redemption { token: guessed, ..good }), Err(GrantRefusal::Unknown));
        assert_eq!(grant.check(&good, grant.expires_at), Err(GrantRefusal::Unknown), "after 60 seconds");
    }

    #[test]
    fn a_used_token_ends_the_grant_and_the_next_one_refreshes() {
        let code = GrantToken::generate(&SystemRandomness);
        let next = code.next(&SystemRandomness);
        let secret = ApiKey::generate(&SystemRandomness).hash();
        let grant = begun(&code).continued(next.hash(), KeyId::of_first(&secret), secret, NOW);
        let refresh = Redemption { token: next.hash(), code: None, ..redemption(&code) };
        assert_eq!(grant.check(&refresh, NOW), Ok(()));
        assert_eq!(grant.check(&redemption(&code), NOW), Err(GrantRefusal::Reused));
        assert_eq!(grant.check(&Redemption { client: "cli_2", ..refresh }, NOW), Err(GrantRefusal::Client));
        let as_code = Redemption { token: next.hash(), ..redemption(&code) };
        assert_eq!(grant.check(&as_code, NOW), Err(GrantRefusal::Kind));
        let hour = NOW.saturating_add(Grant::ACCESS_LIFETIME);
        assert_eq!((begun(&code).given_at(), grant.given_at()), (NOW, NOW));
        let later = grant.clone().continued(next.hash(), KeyId::of_first(&secret), secret, hour);
        assert_eq!(later.given_at(), hour);
        let rotated = next.next(&SystemRandomness);
        let after = grant.continued(rotated.hash(), KeyId::of_first(&secret), secret, NOW);
        assert_eq!(after.check(&refresh, NOW), Err(GrantRefusal::Reused));
    }

    #[test]
    fn an_access_token_does_not_outlive_its_key() {
        let hour = NOW.saturating_add(Grant::ACCESS_LIFETIME);
        let soon = NOW.saturating_add(Duration::from_secs(9));
        assert_eq!(Grant::access_until(None, NOW), hour);
        assert_eq!(Grant::access_until(Some(soon), NOW), soon);
    }
}
