//! The results of a search.

use metering_core::access::Key;
use metering_core::money::{Credits, printed_if_any};
use serde::{Deserialize, Serialize};

use crate::wire::document::document;
use crate::wire::{AccountDocument, AccountRequestDocument, PaymentRecordDocument};

/// The results of a search: at most 20 of each kind.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SearchDocument {
    /// The kind of the text, by its form: `account`, `email`, `wallet`, `name`, `key`, `transaction`, `receipt`,
    /// `payment` or `request`.
    pub kind: String,
    /// The accounts, also those of the other parts.
    pub accounts: Vec<AccountDocument>,
    /// The keys.
    pub keys: Vec<FoundKeyDocument>,
    /// The payments.
    pub payments: Vec<PaymentRecordDocument>,
    /// The requests.
    pub requests: Vec<ChargedRequestDocument>,
    /// Why a request is not among them, in words; null if it is, or if something else was searched.
    #[serde(default)]
    pub note: Option<String>,
    /// For a name: the value of `after` to search on among older accounts; null when there are none. May be present
    /// although nothing was found, because a search reads a limited number of accounts.
    pub next: Option<String>,
}

document! {
    /// A key that was found by its id.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    pub struct FoundKeyDocument from key: &Key;

    /// Its account.
    org_id: String = key.account.to_string(),
    /// The key's public id.
    key_id: String = key.id.to_string(),
    /// Its name.
    name: String = key.terms.name.to_string(),
    /// When it was created, as RFC 3339.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    created_at: String = key.created_at.to_string(),
    /// When it was deleted, as RFC 3339; null if it was not.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    deleted_at: Option<String> = key.revoked_at.map(|at| at.to_string()),
}

/// A request, with what explains its charge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ChargedRequestDocument {
    /// The request, with its account and key.
    pub request: AccountRequestDocument,
    /// The number of the price version that was in force when it was accepted; null if none was recorded.
    pub price_version: Option<u32>,
    /// The balance just after it was settled, and the credits held then. Null while it is held, when that is too long
    /// ago, and while the account is charged too often to tell.
    #[serde(deserialize_with = "printed_if_any")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<f64>))]
    pub balance_after: Option<Credits>,
}
