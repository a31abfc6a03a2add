//! Token exchange (RFC 8693): a key makes a narrower one, for programs that speak OAuth only.

use std::net::IpAddr;
use std::time::Duration;

use super::error::OAuthError;
use super::form::TokenForm;
use super::handle::OAuth;
use crate::access::credentials::Caller;
use crate::access::issued_key::Key;
use crate::access::key::ApiKey;
use crate::access::scope::Scope;
use crate::error::Error;
use crate::money::credits::Credits;
use crate::oauth::RequestedAuthorization;
use crate::wire::{CreateKeyRequest, TokenResponse};

/// The only type of token.
const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";

/// The default lifetime of the new key.
const LIFETIME_SECONDS: u32 = 60 * 60;

impl OAuth<'_> {
    /// The key to exchange: a live one with the scope `manage`. An access token may be exchanged, although it may not
    /// change keys otherwise.
    ///
    /// # Errors
    /// [`OAuthError::Refused`]; or when the store fails.
    pub async fn subject(self, form: &TokenForm, address: Option<IpAddr>) -> Result<Key, OAuthError> {
        let invalid = |problem: &str| OAuthError::refused("invalid_request", problem);
        if form.required("subject_token_type")? != ACCESS_TOKEN {
            return Err(invalid("subject_token_type must be that of an access token"));
        }
        if form.get("requested_token_type").is_some_and(|kind| kind != ACCESS_TOKEN) {
            return Err(invalid("requested_token_type must be that of an access token"));
        }
        if form.get("actor_token").is_some() {
            return Err(invalid("actor_token is not supported"));
        }
        let secret = ApiKey::parse(form.required("subject_token")?);
        let secret = secret.map_err(|problem| invalid(&format!("subject_token: {problem}")))?;
        let caller = Caller { key: Some(&secret), session: None, address };
        let holder = self.access.holder(caller, None).await;
        let holder = holder.map_err(|error| OAuthError::of(error, "invalid_request"))?;
        let key = holder.key().filter(|key| key.terms.scopes.has(Scope::Manage)).cloned();
        let mut key = key.ok_or_else(|| invalid("subject_token lacks the scope manage, so it makes no other keys"))?;
        // The rights of an access token end with it.
        key.terms.expires_at = [key.terms.expires_at, holder.secret_expires_at].into_iter().flatten().min();
        Ok(key)
    }

    /// Makes a child of the subject's key. `scope`, and this service's own parameters `name`, `limit`, `limit_reset`,
    /// `routes` (separated by spaces) and `expires_in` set its terms, as in `POST /keys`.
    ///
    /// # Errors
    /// [`OAuthError::Refused`]; or when the store fails.
    pub async fn exchange(self, form: &TokenForm, subject: &Key, issuer: &str) -> Result<TokenResponse, OAuthError> {
        let resources = self.resources(issuer);
        let is_ours = |named: &str| RequestedAuthorization::resource(named, &resources).is_some();
        if !["resource", "audience"].into_iter().filter_map(|name| form.get(name)).all(is_ours) {
            return Err(OAuthError::refused("invalid_target", "the token would be for another service"));
        }
        let seconds = form.get("expires_in").map_or(Ok(LIFETIME_SECONDS), str::parse);
        let seconds = seconds.ok().filter(|seconds| *seconds > 0);
        let seconds =
            seconds.ok_or_else(|| OAuthError::refused("invalid_request", "expires_in must be a number of seconds"))?;
        let limit = form.get("limit").map(str::parse::<Credits>).transpose();
        let limit = limit.map_err(|problem| OAuthError::refused("invalid_request", format_args!("limit {problem}")))?;
        let now = self.access.now();
        let wanted_until = now.saturating_add(Duration::from_secs(seconds.into()));
        let expires_at = subject.terms.expires_at.map_or(wanted_until, |at| at.min(wanted_until));
        let listed = |name: &str| form.get(name).map(|text| text.split(' ').map(str::to_owned).collect::<Vec<_>>());
        let wanted = CreateKeyRequest {
            name: Some(form.get("name").unwrap_or("Exchanged token").to_owned()),
            limit,
            limit_reset: form.get("limit_reset").map(str::to_owned),
            expires_at: Some(expires_at.to_string()),
            scopes: listed("scope"),
            routes: listed("routes"),
            ..CreateKeyRequest::default()
        };
        let made = self.keys.create_below(subject, &wanted).await.map_err(|error| {
            let is_scope = matches!(&error, Error::ValidationFailed(fields) if fields.contains_key("scopes"));
            OAuthError::of(error, if is_scope { "invalid_scope" } else { "invalid_request" })
        })?;
        Ok(TokenResponse {
            access_token: made.key,
            token_type: "Bearer",
            expires_in: u64::try_from(expires_at.unix_seconds() - now.unix_seconds()).unwrap_or(0),
            refresh_token: None,
            scope: made.data.scopes.to_string(),
            issued_token_type: Some(ACCESS_TOKEN),
        })
    }
}
