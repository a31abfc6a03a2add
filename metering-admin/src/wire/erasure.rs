//! The erasure of the personal data of the owner of an account.

use metering_core::operators::Erasure;
use serde::{Deserialize, Serialize};

use super::AccountDocument;

/// What to erase.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EraseRequest {
    /// Whether to erase the buyer's details from receipts too. By default, receipts for purchases keep them.
    #[serde(default)]
    pub receipts: bool,
    /// Why, for the audit log.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// The changes that an erasure made, or would make.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ErasureDocument {
    /// The account: after the erasure, or in its current state.
    pub account: AccountDocument,
    /// The data of its owner, by kind. Empty if there is nothing to erase.
    pub erased: Vec<ErasedRow>,
}

/// Records of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ErasedRow {
    /// The kind: `profile`, `keys`, `webhooks`, `events`, `deliveries`, `browser_sessions`, `oauth_grants`, `saved_cards`,
    /// `card_charges`, `email_links`, `wallets`, `challenges`, `signups`, `quotes`, `buyers`, `requests`, `members`,
    /// `invitations`, `account_log`, `sign_ins`, `activity` or `audit_entries`.
    pub kind: String,
    /// How many.
    pub records: u64,
}

impl From<&Erasure> for ErasureDocument {
    fn from(erasure: &Erasure) -> Self {
        let erased = erasure.parts.iter().map(|part| ErasedRow { kind: part.kind.to_owned(), records: part.records });
        Self { account: AccountDocument::from(&erasure.account), erased: erased.collect() }
    }
}
