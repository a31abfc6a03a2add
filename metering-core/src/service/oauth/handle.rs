use std::sync::Arc;

use super::setup::OAuthSetup;
use crate::error::Error;
use crate::oauth::{ClientDocuments, OAuthClient};
use crate::service::metering::Service;
use crate::service::{Access, Keys};
use crate::store::FullStore;

/// OAuth for the holders of keys, from [`Service::oauth`].
///
/// `issuer` is the URL of the service as the client uses it, without a slash at the end: it must be the same for all
/// parts of an authorization.
#[derive(Debug, Clone, Copy)]
pub struct OAuth<'s> {
    pub(super) access: &'s Access,
    pub(super) keys: Keys<'s>,
    setup: &'s OAuthSetup,
}

impl Service {
    /// Offers OAuth.
    ///
    /// `store` must be the service's own store. `documents` fetches the metadata that clients publish; `()` fetches
    /// nothing, so clients must register. `origins` are the origins of other processes that use this service's keys,
    /// each without a slash at the end: tokens may be for them, too.
    #[must_use]
    pub fn with_oauth(
        mut self,
        store: Arc<dyn FullStore>,
        documents: Arc<dyn ClientDocuments>,
        origins: Vec<String>,
    ) -> Self {
        self.oauth = Some(OAuthSetup { store, documents, origins });
        self
    }

    /// OAuth, if the service offers it.
    #[must_use]
    pub fn oauth(&self) -> Option<OAuth<'_>> {
        let setup = self.oauth.as_ref()?;
        Some(OAuth { access: self.access(), keys: self.keys(), setup })
    }
}

impl<'s> OAuth<'s> {
    pub(super) fn store(self) -> &'s dyn FullStore {
        &*self.setup.store
    }

    /// The URLs that a token may be for. Each is valid for all of them.
    pub(super) fn resources(self, issuer: &str) -> Vec<String> {
        let origins = std::iter::once(issuer).chain(self.setup.origins.iter().map(String::as_str));
        origins.flat_map(|origin| [format!("{origin}/mcp"), origin.to_owned(), format!("{origin}/sse")]).collect()
    }

    /// The client with this id.
    pub(super) async fn client(self, id: &str) -> Result<OAuthClient, Error> {
        let (wrong, now) = (|problem: &dyn std::fmt::Display| Error::field("client_id", problem), self.access.now());
        if OAuthClient::is_document_url(id) {
            let json = self.setup.documents.fetch(id).await.map_err(|problem| wrong(&problem))?;
            return OAuthClient::of_document(id, &json, now).map_err(|problem| wrong(&problem));
        }
        let found = self.store().oauth_client(id).await?.filter(|client| now < client.expires_at);
        found.ok_or_else(|| wrong(&"is unknown or has expired; register the program again"))
    }
}
