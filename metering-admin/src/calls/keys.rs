//! Keys of an account: lists, shows and changes them.

use metering_core::AccountId;
use metering_core::access::KeyId;
use metering_core::parameters;
use metering_core::store::Cursor;
use metering_core::wire::call::Bounded;
use metering_core::wire::{DeletedKeyResponse, IssuedKeyResponse, KeyResponse, KeysDocument, RotateKeyRequest};

use super::accounts::OfAccount;
use super::register::register;
use crate::action::Action;
use crate::call::{Viewer, call};
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

call! {
    /// The keys of an account, oldest first
    ///
    /// Deleted keys are left out. If `next` is not null, more keys follow: send it as `after`.
    ListKeys("keys") = GET "/admin/accounts/{id}/keys" in "accounts";
    returns(200, "Keys") or(NotFound);
    async fn run(admin, _by: Viewer, page: KeysPage, _body: ()) -> KeysDocument {
        admin.keys(&page.id, page.after.as_ref(), page.limit.0).await
    }
}

call! {
    /// Create a key
    ///
    /// It is a child of the account's first key. The response has its secret, which is in no other response.
    CreateKey("create_key") = POST "/admin/accounts/{id}/keys" in "accounts";
    audit("key.create", "Created a key");
    returns(201, "The key and its secret") or(NotFound, Conflict: "the account is revoked");
    async fn run(admin, by: Action, of: OfAccount, wanted: NewKeyRequest) -> IssuedKeyResponse {
        let (data, secret) = admin.create_key(by, &of.id, &wanted.key).await?;
        Ok(IssuedKeyResponse { key: secret.into(), data })
    }
}

call! {
    /// A key
    ShowKey("key") = GET "/admin/accounts/{id}/keys/{key}" in "accounts";
    returns(200, "The key") or(NotFound: "also when it was deleted");
    async fn run(admin, _by: Viewer, of: OfKey, _body: ()) -> KeyResponse {
        Ok(KeyResponse { data: admin.key(&of.id, &of.key).await? })
    }
}

call! {
    /// Change a key
    ///
    /// Omitted fields are unchanged; null removes a restriction. Takes effect immediately.
    ChangeKey("change_key") = POST "/admin/accounts/{id}/keys/{key}/change" in "accounts";
    audit("key.change", "Changed a key");
    returns(200, "The key afterwards")
        or(NotFound, Conflict: "the account is revoked, it is the first key, or it leaked");
    async fn run(admin, by: Action, of: OfKey, wanted: KeyChangeRequest) -> KeyResponse {
        Ok(KeyResponse { data: admin.change_key(by, &of.id, &of.key, &wanted.change).await? })
    }
}

call! {
    /// Replace the secret of a key
    ///
    /// The old secret stops working, immediately or after `grace_seconds`. The response has the new one, which is in no
    /// other response. A key that leaked works again with it.
    RotateKey("rotate_key_by_id") = POST "/admin/accounts/{id}/keys/{key}/rotate" in "accounts";
    audit("key.rotate", "Rotated a key");
    returns(200, "The key and its new secret") or(NotFound, Conflict: "the account is revoked");
    async fn run(admin, by: Action, of: OfKey, wanted: KeyRotationRequest) -> IssuedKeyResponse {
        let rotation = RotateKeyRequest { grace_seconds: wanted.grace_seconds };
        let (data, secret) = admin.rotate_key_by_id(by, &of.id, &of.key, &rotation).await?;
        Ok(IssuedKeyResponse { key: secret.into(), data })
    }
}

call! {
    /// Delete a key permanently
    ///
    /// Its child keys stop too. Its usage stays in the reports.
    DeleteKey("delete_key") = POST "/admin/accounts/{id}/keys/{key}/delete" in "accounts";
    audit("key.delete", "Deleted a key");
    returns(200, "The key is deleted")
        or(NotFound: "also when it was deleted before", Conflict: "the account is revoked, or it is the first key");
    async fn run(admin, by: Action, of: OfKey, _body: ReasonRequest) -> DeletedKeyResponse {
        admin.delete_key(by, &of.id, &of.key).await?;
        Ok(DeletedKeyResponse { deleted: true })
    }
}
