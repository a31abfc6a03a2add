//! Codes and refresh tokens, each exchanged once for an access token and the next refresh token.

use super::error::OAuthError;
use super::form::TokenForm;
use super::handle::OAuth;
use super::registration::end;
use crate::access::issued_key::Key;
use crate::access::key::{ApiKey, KeyHash};
use crate::access::key_id::KeyId;
use crate::clock::Timestamp;
use crate::error::Error;
use crate::oauth::{
    Grant, GrantId, GrantRefusal, GrantToken, GrantTokenHash, OAuthClient, Redemption, RequestedAuthorization,
};
use crate::random::SystemRandomness;
use crate::service::keys::created;
use crate::store::{FullStore, KeyChange, KeyChanged, KeyCreated, NewKey, StoreError, in_transaction};
use crate::wire::{CreateKeyRequest, TokenResponse};

/// A use of a code or a refresh token, as a transaction needs it.
struct Turn {
    grant: GrantId,
    token: GrantTokenHash,
    client: String,
    resource: Option<String>,
    /// With a code: `redirect_uri`, and `code_verifier`.
    code: Option<(Option<String>, String)>,
    /// The key to create, if there is none yet.
    new_key: Option<NewKey>,
    /// The next refresh token.
    next: GrantTokenHash,
    /// The next access token.
    secret: KeyHash,
    now: Timestamp,
}

/// The outcome.
enum Turned {
    /// The key, and until when its new secret works.
    Key(Key, Timestamp),
    Refused(GrantRefusal),
    /// No key was created.
    NotCreated(KeyCreated),
}

impl OAuth<'_> {
    /// The key whose secret this form would replace, to count its refreshes; `None` if it refreshes none.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn refreshed_key(self, form: &TokenForm) -> Result<Option<KeyId>, Error> {
        let Some(Ok(token)) = form.get("refresh_token").map(GrantToken::parse) else { return Ok(None) };
        Ok(self.store().oauth_grant(&token.grant()).await?.and_then(|grant| grant.key))
    }

    /// Exchanges a code or a refresh token for an access token, as in RFC 6749.
    ///
    /// # Errors
    /// [`OAuthError::Refused`]; or when the store fails.
    pub async fn token(self, form: &TokenForm, issuer: &str) -> Result<TokenResponse, OAuthError> {
        let (token, code) = match form.required("grant_type")? {
            "authorization_code" => {
                let verifier = form.required("code_verifier")?.to_owned();
                (form.required("code")?, Some((form.get("redirect_uri").map(str::to_owned), verifier)))
            }
            "refresh_token" => (form.required("refresh_token")?, None),
            _ => {
                let offered = "grant_type must be authorization_code, refresh_token or that of a token exchange";
                return Err(OAuthError::refused("unsupported_grant_type", offered));
            }
        };
        let client = form.required("client_id")?.to_owned();
        let token = GrantToken::parse(token).map_err(|problem| OAuthError::refused("invalid_grant", problem))?;
        let resource = match form.get("resource") {
            Some(named) => {
                let known = RequestedAuthorization::resource(named, &self.resources(issuer));
                Some(known.ok_or(GrantRefusal::Resource)?)
            }
            None => None,
        };
        let grant = self.store().oauth_grant(&token.grant()).await?.ok_or(GrantRefusal::Unknown)?;
        let secret = ApiKey::generate(&SystemRandomness);
        let next = token.next(&SystemRandomness);
        let new_key = match &grant.key {
            Some(_) => None,
            None => Some(self.key_of(&grant, secret.hash()).await?),
        };
        let turn = Turn {
            grant: grant.id,
            token: token.hash(),
            client,
            resource,
            code,
            new_key,
            next: next.hash(),
            secret: secret.hash(),
            now: self.access.now(),
        };
        let now = turn.now;
        match in_transaction(self.store(), turn, |store, turn| Box::pin(turned(store, turn))).await? {
            Turned::Key(key, until) => Ok(TokenResponse {
                access_token: secret.into(),
                token_type: "Bearer",
                expires_in: u64::try_from(until.unix_seconds() - now.unix_seconds()).unwrap_or(0),
                refresh_token: Some(next.expose().to_owned()),
                scope: key.terms.scopes.to_string(),
                issued_token_type: None,
            }),
            Turned::Refused(refusal) => {
                if refusal == GrantRefusal::Reused {
                    let (client, account) = (&grant.client, &grant.account);
                    tracing::warn!(%client, %account, "a token of OAuth was used twice; its grant is ended");
                }
                Err(refusal.into())
            }
            Turned::NotCreated(refusal) => {
                let refused = created(refusal).err().unwrap_or(Error::Internal);
                Err(OAuthError::of(refused, "invalid_grant"))
            }
        }
    }

    /// The key that an owner consented to.
    async fn key_of(self, grant: &Grant, secret: KeyHash) -> Result<NewKey, OAuthError> {
        let found = self.store().key(&grant.account, &grant.parent, self.access.now().day()).await?;
        let parent = found.ok_or(GrantRefusal::Ended)?.key;
        let wanted: CreateKeyRequest = serde_json::from_str(&grant.terms).map_err(|_| {
            tracing::error!(account = %grant.account, "the terms of a grant cannot be read");
            OAuthError::Service(Error::Internal)
        })?;
        let terms = self.keys.terms_below(&parent, &wanted).map_err(|error| OAuthError::of(error, "invalid_grant"))?;
        Ok(self.keys.new_key(&parent, terms, secret))
    }
}

/// The transaction.
async fn turned(store: &dyn FullStore, turn: &Turn) -> Result<Turned, StoreError> {
    let Some(grant) = store.oauth_grant(&turn.grant).await? else {
        return Ok(Turned::Refused(GrantRefusal::Unknown));
    };
    let code = turn.code.as_ref().map(|(redirect_uri, verifier)| (redirect_uri.as_deref(), verifier.as_str()));
    let redemption = Redemption { token: turn.token, client: &turn.client, resource: turn.resource.as_deref(), code };
    if let Err(refusal) = grant.check(&redemption, turn.now) {
        if refusal == GrantRefusal::Reused {
            end(store, &grant, turn.now).await?;
        }
        return Ok(Turned::Refused(refusal));
    }
    let key = match (&turn.new_key, &grant.key) {
        (Some(new), None) => match store.create_key(new.clone()).await? {
            KeyCreated::Key(key) => key,
            refusal => return Ok(Turned::NotCreated(refusal)),
        },
        _ => match refreshed(store, &grant, turn).await? {
            Some(key) => key,
            None => return Ok(Turned::Refused(GrantRefusal::Ended)),
        },
    };
    let until = Grant::access_until(key.terms.expires_at, turn.now);
    store.expire_secret(&turn.secret, until).await?;
    store.keep_oauth_client(&grant.client, turn.now.saturating_add(OAuthClient::RETENTION)).await?;
    store.put_oauth_grant(grant.continued(turn.next, key.id.clone(), turn.secret, turn.now)).await?;
    Ok(Turned::Key(key, until))
}

/// Gives the key of a grant its next secret; `None` when the key was ended or switched off, or its owner rotated it. A grace
/// period of that rotation is for the access token: a refresh would replace the owner's new secret.
async fn refreshed(store: &dyn FullStore, grant: &Grant, turn: &Turn) -> Result<Option<Key>, StoreError> {
    let Some((key, secret)) = grant.key.as_ref().zip(grant.secret.as_ref()) else { return Ok(None) };
    // `None` for a secret that was revoked. It may have expired.
    let Some(holder) = store.key_holder(secret).await? else { return Ok(None) };
    let works = |key: &Key| key.is_live() && key.terms.expires_at.is_none_or(|at| turn.now < at);
    let Some(own) = holder.key().filter(|_| holder.chain.iter().all(works)) else { return Ok(None) };
    if store.lasting_secret(&grant.account, own.number).await?.is_some() {
        return Ok(None);
    }
    let change = KeyChange::Rotate { secret: turn.secret, old_until: Some(turn.now.saturating_add(Grant::OVERLAP)) };
    match store.change_key(&grant.account, key, None, change, turn.now).await? {
        KeyChanged::Key(key) => Ok(Some(key)),
        _ => Ok(None),
    }
}
