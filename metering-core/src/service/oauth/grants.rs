//! The grants that the owner of an account has consented to.

use super::handle::OAuth;
use crate::access::account::AccountId;
use crate::access::key_id::KeyId;
use crate::error::Error;
use crate::wire::OAuthGrantDocument;

impl OAuth<'_> {
    /// The programs with access to an account, as shown to its owner.
    pub(in crate::service) async fn grants(self, account: &AccountId) -> Result<Vec<OAuthGrantDocument>, Error> {
        let grants = self.store().oauth_grants(account).await?;
        let mut documents = Vec::with_capacity(grants.len());
        for grant in grants {
            let client = self.store().oauth_client(&grant.client).await?;
            documents.push(OAuthGrantDocument {
                client_name: client.map(|client| client.name.to_string()),
                redirect_uri: grant.redirect_uri.as_str().to_owned(),
                terms: serde_json::from_str(&grant.terms).map_err(|_| Error::Internal)?,
                key: grant.key.as_ref().map(KeyId::to_string),
                given_at: grant.given_at().to_string(),
                expires_at: grant.expires_at.to_string(),
                parent: grant.parent.to_string(),
                client_id: grant.client,
                resource: grant.resource,
            });
        }
        Ok(documents)
    }
}
