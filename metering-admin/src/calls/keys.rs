//! Keys of an account: lists, shows and changes them.

use http::Method;
use metering_core::AccountId;
use metering_core::access::KeyId;
use metering_core::store::Cursor;
use metering_core::wire::{
    DeletedKeyResponse, ErrorCode, IssuedKeyResponse, KeyResponse, KeysDocument, RotateKeyRequest,
};

use super::accounts::OfAccount;
use super::{NOT_FOUND, register};
use crate::action::Action;
use crate::administration::Administration;
use crate::call::{Audit, Bounded, Call, Nothing, Viewer, parameters};
use crate::error::AdminError;
use crate::wire::{KeyChangeRequest, KeyRotationRequest, NewKeyRequest, ReasonRequest};

register!(ListKeys, CreateKey, ShowKey, ChangeKey, RotateKey, DeleteKey);

parameters! {
    /// A key of an account.
    OfKey {
        /// The account's id
        id: AccountId,
        /// The key's public id
        key: KeyId,
    }
}

parameters! {
    /// Which keys.
    KeysPage {
        /// The account's id
        id: AccountId,
        /// Where to continue
        after: Option<Cursor>,
        /// Maximum number of keys, 100 by default
        limit: Bounded<100, 1000>,
    }
}

/// The keys of an account, oldest first.
#[derive(Debug)]
pub struct ListKeys;

impl Call for ListKeys {
    const ID: &str = "keys";
    const METHOD: Method = Method::GET;
    const PATH: &str = "/admin/accounts/{id}/keys";
    const TAG: &str = "accounts";
    const SUMMARY: &str = "The keys of an account, oldest first";
    const DESCRIPTION: &str = "Deleted keys are left out. If `next` is not null, more keys follow: send it as `after`.";
    const SUCCESS: (u16, &str) = (200, "Keys");
    const REFUSALS: &[(ErrorCode, &str)] = &[NOT_FOUND];
    type By = Viewer;
    type Parameters = KeysPage;
    type Body = Nothing;
    type Reply = KeysDocument;

    async fn run(
        admin: &Administration,
        _by: &Viewer,
        page: KeysPage,
        _body: Nothing,
    ) -> Result<KeysDocument, AdminError> {
        admin.keys(&page.id, page.after.as_ref(), page.limit.0).await
    }
}

/// Create a key.
#[derive(Debug)]
pub struct CreateKey;

impl Call for CreateKey {
    const ID: &str = "create_key";
    const METHOD: Method = Method::POST;
    const PATH: &str = "/admin/accounts/{id}/keys";
    const TAG: &str = "accounts";
    const SUMMARY: &str = "Create a key";
    const DESCRIPTION: &str = "It is a child of the account's first key. The response has its secret, which is in no other \
        response.";
    const AUDIT: Option<Audit> = Some(Audit { name: "key.create", label: "Created a key" });
    const SUCCESS: (u16, &str) = (201, "The key and its secret");
    const REFUSALS: &[(ErrorCode, &str)] = &[NOT_FOUND, (ErrorCode::Conflict, "the account is revoked")];
    type By = Action;
    type Parameters = OfAccount;
    type Body = NewKeyRequest;
    type Reply = IssuedKeyResponse;

    async fn run(
        admin: &Administration,
        by: &Action,
        of: OfAccount,
        wanted: NewKeyRequest,
    ) -> Result<IssuedKeyResponse, AdminError> {
        let (data, secret) = admin.create_key(by, &of.id, &wanted.key).await?;
        Ok(IssuedKeyResponse { key: secret.into(), data })
    }
}

/// A key.
#[derive(Debug)]
pub struct ShowKey;

impl Call for ShowKey {
    const ID: &str = "key";
    const METHOD: Method = Method::GET;
    const PATH: &str = "/admin/accounts/{id}/keys/{key}";
    const TAG: &str = "accounts";
    const SUMMARY: &str = "A key";
    const SUCCESS: (u16, &str) = (200, "The key");
    const REFUSALS: &[(ErrorCode, &str)] = &[(ErrorCode::NotFound, "also when it was deleted")];
    type By = Viewer;
    type Parameters = OfKey;
    type Body = Nothing;
    type Reply = KeyResponse;

    async fn run(admin: &Administration, _by: &Viewer, of: OfKey, _body: Nothing) -> Result<KeyResponse, AdminError> {
        Ok(KeyResponse { data: admin.key(&of.id, &of.key).await? })
    }
}

/// Change a key.
#[derive(Debug)]
pub struct ChangeKey;

impl Call for ChangeKey {
    const ID: &str = "change_key";
    const METHOD: Method = Method::POST;
    const PATH: &str = "/admin/accounts/{id}/keys/{key}/change";
    const TAG: &str = "accounts";
    const SUMMARY: &str = "Change a key";
    const DESCRIPTION: &str = "Omitted fields are unchanged; null removes a restriction. Takes effect immediately.";
    const AUDIT: Option<Audit> = Some(Audit { name: "key.change", label: "Changed a key" });
    const SUCCESS: (u16, &str) = (200, "The key afterwards");
    const REFUSALS: &[(ErrorCode, &str)] =
        &[NOT_FOUND, (ErrorCode::Conflict, "the account is revoked, it is the first key, or it leaked")];
    type By = Action;
    type Parameters = OfKey;
    type Body = KeyChangeRequest;
    type Reply = KeyResponse;

    async fn run(
        admin: &Administration,
        by: &Action,
        of: OfKey,
        wanted: KeyChangeRequest,
    ) -> Result<KeyResponse, AdminError> {
        Ok(KeyResponse { data: admin.change_key(by, &of.id, &of.key, &wanted.change).await? })
    }
}

/// Replace the secret of a key.
#[derive(Debug)]
pub struct RotateKey;

impl Call for RotateKey {
    const ID: &str = "rotate_key_by_id";
    const METHOD: Method = Method::POST;
    const PATH: &str = "/admin/accounts/{id}/keys/{key}/rotate";
    const TAG: &str = "accounts";
    const SUMMARY: &str = "Replace the secret of a key";
    const DESCRIPTION: &str = "The old secret stops working, immediately or after `grace_seconds`. The response has the new one, \
        which is in no other response. A key that leaked works again with it.";
    const AUDIT: Option<Audit> = Some(Audit { name: "key.rotate", label: "Rotated a key" });
    const SUCCESS: (u16, &str) = (200, "The key and its new secret");
    const REFUSALS: &[(ErrorCode, &str)] = &[NOT_FOUND, (ErrorCode::Conflict, "the account is revoked")];
    type By = Action;
    type Parameters = OfKey;
    type Body = KeyRotationRequest;
    type Reply = IssuedKeyResponse;

    async fn run(
        admin: &Administration,
        by: &Action,
        of: OfKey,
        wanted: KeyRotationRequest,
    ) -> Result<IssuedKeyResponse, AdminError> {
        let rotation = RotateKeyRequest { grace_seconds: wanted.grace_seconds };
        let (data, secret) = admin.rotate_key_by_id(by, &of.id, &of.key, &rotation).await?;
        Ok(IssuedKeyResponse { key: secret.into(), data })
    }
}

/// Delete a key for good.
#[derive(Debug)]
pub struct DeleteKey;

impl Call for DeleteKey {
    const ID: &str = "delete_key";
    const METHOD: Method = Method::POST;
    const PATH: &str = "/admin/accounts/{id}/keys/{key}/delete";
    const TAG: &str = "accounts";
    const SUMMARY: &str = "Delete a key for good";
    const DESCRIPTION: &str = "Its child keys stop too. Its usage stays in the reports.";
    const AUDIT: Option<Audit> = Some(Audit { name: "key.delete", label: "Deleted a key" });
    const SUCCESS: (u16, &str) = (200, "The key is deleted");
    const REFUSALS: &[(ErrorCode, &str)] = &[
        (ErrorCode::NotFound, "also when it was deleted before"),
        (ErrorCode::Conflict, "the account is revoked, or it is the first key"),
    ];
    type By = Action;
    type Parameters = OfKey;
    type Body = ReasonRequest;
    type Reply = DeletedKeyResponse;

    async fn run(
        admin: &Administration,
        by: &Action,
        of: OfKey,
        _body: ReasonRequest,
    ) -> Result<DeletedKeyResponse, AdminError> {
        admin.delete_key(by, &of.id, &of.key).await?;
        Ok(DeletedKeyResponse { deleted: true })
    }
}
