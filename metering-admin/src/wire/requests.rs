//! Requests that were charged, or whose credits are or were held, as operators see them.

use metering_core::charging::Hold;
use metering_core::service::ChargedRequest;
use metering_core::usage::KeyLabels;
use metering_core::wire::RequestDocument;
use serde::{Deserialize, Serialize};

/// A request that was charged, or whose credits are or were held, with its account and key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AccountRequestDocument {
    /// The account that pays.
    pub org_id: String,
    /// The id of the key that the request came with.
    pub key_id: String,
    /// The name of that key.
    pub key_name: String,
    /// The request.
    pub request: RequestDocument,
}

impl AccountRequestDocument {
    /// The document of a hold. `keys` are all keys that its account has or had.
    #[must_use]
    pub fn new(hold: &Hold, keys: &KeyLabels) -> Self {
        let (key_id, key_name) = keys.id_and_name(hold.key);
        Self { org_id: hold.account.to_string(), key_id, key_name, request: hold.into() }
    }

    /// The document of a request that was charged immediately. `keys` as in [`AccountRequestDocument::new`].
    #[must_use]
    pub fn charged(of: &ChargedRequest, keys: &KeyLabels, request: RequestDocument) -> Self {
        let (key_id, key_name) = keys.id_and_name(of.key);
        Self { org_id: of.account.to_string(), key_id, key_name, request }
    }
}

/// The requests of an account whose credits are held now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AccountRequestsDocument {
    /// The requests, newest first.
    pub requests: Vec<AccountRequestDocument>,
}
