//! Clients that register themselves (RFC 7591), and tokens that they revoke (RFC 7009).

use super::error::OAuthError;
use super::form::TokenForm;
use super::handle::OAuth;
use crate::access::key::ApiKey;
use crate::clock::Timestamp;
use crate::oauth::{Grant, GrantToken, OAuthClient, new_client_id};
use crate::random::SystemRandomness;
use crate::store::{FullStore, KeyChange, Pending, StoreError, in_transaction};
use crate::wire::RegisteredClientDocument;

impl OAuth<'_> {
    /// Registers a client. Without a token within a day, it is forgotten.
    ///
    /// # Errors
    /// [`OAuthError::Refused`] when this is not the metadata of a client that this service can serve, or too many have
    /// registered; or when the store fails.
    pub async fn register(self, json: &[u8]) -> Result<RegisteredClientDocument, OAuthError> {
        let now = self.access.now();
        let until = now.saturating_add(OAuthClient::UNUSED_RETENTION);
        let client = OAuthClient::registered(new_client_id(&SystemRandomness), json, until)?;
        let uris = client.redirect_uris.iter().map(|uri| uri.as_str().to_owned()).collect();
        let document = RegisteredClientDocument::new(&client.id, client.name.as_str(), uris, now);
        if self.store().register_oauth_client(client, OAuthClient::MAX_REGISTERED).await? {
            return Ok(document);
        }
        tracing::warn!("the limit of OAuth clients is reached, and owners have consented to all of them");
        let advice = "too many programs have registered here; use a client id metadata document, or try again tomorrow";
        Err(OAuthError::refused("invalid_client_metadata", advice))
    }

    /// Ends the grant of an access or refresh token, with its key. Other tokens are ignored, keys of owners among them.
    ///
    /// # Errors
    /// [`OAuthError::Refused`] without a token, or when it belongs to another client; or when the store fails.
    pub async fn revoke(self, form: &TokenForm) -> Result<(), OAuthError> {
        let token = form.required("token")?;
        let grant = match (GrantToken::parse(token), ApiKey::parse(token)) {
            (Ok(token), _) => self.store().oauth_grant(&token.grant()).await?,
            (_, Ok(key)) => self.store().oauth_grant_of(&key.hash()).await?,
            _ => None,
        };
        let Some(grant) = grant else { return Ok(()) };
        if form.get("client_id").is_some_and(|client| client != grant.client) {
            return Err(OAuthError::refused("invalid_client", "the token was given to another client_id"));
        }
        let ended = (grant.id, self.access.now());
        let steps = in_transaction(self.store(), ended, |store, (id, now)| {
            Box::pin(async move {
                // Again: its code may have been redeemed since.
                let Some(grant) = store.oauth_grant(id).await? else { return Ok(()) };
                end(store, &grant, *now).await
            })
        });
        steps.await?;
        Ok(())
    }
}

/// Ends a grant: revokes its key, and forgets it. Part of a transaction.
pub(super) fn end<'a>(
    store: &'a dyn FullStore,
    grant: &'a Grant,
    now: Timestamp,
) -> Pending<'a, Result<(), StoreError>> {
    Box::pin(async move {
        if let Some(key) = &grant.key {
            store.change_key(&grant.account, key, None, KeyChange::Revoke, now).await?;
        }
        store.delete_oauth_grant(&grant.id).await.map(drop)
    })
}
