//! Keys of an account: lists, shows and changes them.

use http::StatusCode;
use metering_core::AccountId;
use metering_core::access::KeyId;
use metering_core::store::Cursor;
use metering_core::wire::admin::{KeyChangeRequest, KeyRotationRequest, NewKeyRequest, ReasonRequest};
use metering_core::wire::{
    DeletedKeyResponse, ErrorBody, IssuedKeyResponse, KeyResponse, KeysDocument, RotateKeyRequest,
};

use super::app::AdminApp;
use super::reports::limit;
use crate::endpoints::Request;
use crate::endpoints::query::optional;
use crate::http::{Problem, Reply, json};

/// The keys of an account, oldest first
///
/// Deleted keys are left out. If `next` is not null, more keys follow: send it as `after`.
#[utoipa::path(get, path = "/admin/accounts/{id}/keys", tag = "accounts",
    security(("operator" = [])), params(
    ("id" = String, Path, description = "The account's id"),
    ("after" = Option<String>, Query, description = "Where to continue"),
    ("limit" = Option<u32>, Query, description = "Maximum number of keys, 100 by default", minimum = 1, maximum = 1000),
), responses(
    (status = 200, description = "Keys", body = KeysDocument),
    (status = 404, description = "`not_found`", body = ErrorBody),
))]
pub(super) async fn keys(app: &AdminApp, request: Request) -> Result<Reply, Problem> {
    app.viewer(&request).await?;
    let after: Option<String> = optional(&request.query, "after")?;
    let limit = limit(&request.query, 100, 1_000)?;
    let keys = app.administration.keys(&account(&request)?, after.map(Cursor::new).as_ref(), limit).await?;
    Ok(json(StatusCode::OK, &keys))
}

/// Create a key
///
/// It is below the account's first key. The response has its secret, which is in no other response.
#[utoipa::path(post, path = "/admin/accounts/{id}/keys", tag = "accounts",
    security(("operator" = [])), request_body = NewKeyRequest,
    params(("id" = String, Path, description = "The account's id")), responses(
    (status = 201, description = "The key and its secret", body = IssuedKeyResponse),
    (status = 400, description = "`validation_failed`", body = ErrorBody),
    (status = 404, description = "`not_found`", body = ErrorBody),
    (status = 409, description = "`conflict`: the account is revoked", body = ErrorBody),
))]
pub(super) async fn create_key(app: &AdminApp, request: Request) -> Result<Reply, Problem> {
    let wanted: NewKeyRequest = app.read(&request).await?;
    let action = app.action(&request, &wanted.reason).await?;
    let (data, secret) = app.administration.create_key(&action, &account(&request)?, &wanted.key).await?;
    Ok(json(StatusCode::CREATED, &IssuedKeyResponse { key: secret.into(), data }))
}

/// A key
#[utoipa::path(get, path = "/admin/accounts/{id}/keys/{key}", tag = "accounts",
    security(("operator" = [])), params(
    ("id" = String, Path, description = "The account's id"),
    ("key" = String, Path, description = "The key's public id"),
), responses(
    (status = 200, description = "The key", body = KeyResponse),
    (status = 404, description = "`not_found`, also when it was deleted", body = ErrorBody),
))]
pub(super) async fn key(app: &AdminApp, request: Request) -> Result<Reply, Problem> {
    app.viewer(&request).await?;
    let data = app.administration.key(&account(&request)?, &id(&request)?).await?;
    Ok(json(StatusCode::OK, &KeyResponse { data }))
}

/// Change a key
///
/// Omitted fields are unchanged; null removes a restriction. Takes effect immediately.
#[utoipa::path(post, path = "/admin/accounts/{id}/keys/{key}/change",
    tag = "accounts", security(("operator" = [])), request_body = KeyChangeRequest, params(
    ("id" = String, Path, description = "The account's id"),
    ("key" = String, Path, description = "The key's public id"),
), responses(
    (status = 200, description = "The key afterwards", body = KeyResponse),
    (status = 400, description = "`validation_failed`", body = ErrorBody),
    (status = 404, description = "`not_found`", body = ErrorBody),
    (status = 409, description = "`conflict`: the account is revoked, it is the first key, or it leaked", body = ErrorBody),
))]
pub(super) async fn change_key(app: &AdminApp, request: Request) -> Result<Reply, Problem> {
    let wanted: KeyChangeRequest = app.read(&request).await?;
    let action = app.action(&request, &wanted.reason).await?;
    let (account, key) = (account(&request)?, id(&request)?);
    let data = app.administration.change_key(&action, &account, &key, &wanted.change).await?;
    Ok(json(StatusCode::OK, &KeyResponse { data }))
}

/// Replace the secret of a key
///
/// The old secret stops working, immediately or after `grace_seconds`. The response has the new one, which is in no
/// other response. A key that leaked works again with it.
#[utoipa::path(post, path = "/admin/accounts/{id}/keys/{key}/rotate",
    tag = "accounts", security(("operator" = [])), request_body = KeyRotationRequest, params(
    ("id" = String, Path, description = "The account's id"),
    ("key" = String, Path, description = "The key's public id"),
), responses(
    (status = 200, description = "The key and its new secret", body = IssuedKeyResponse),
    (status = 400, description = "`validation_failed`", body = ErrorBody),
    (status = 404, description = "`not_found`", body = ErrorBody),
    (status = 409, description = "`conflict`: the account is revoked", body = ErrorBody),
))]
pub(super) async fn rotate_key_by_id(app: &AdminApp, request: Request) -> Result<Reply, Problem> {
    let KeyRotationRequest { grace_seconds, reason } = app.read(&request).await?;
    let action = app.action(&request, &reason).await?;
    let (account, key, rotation) = (account(&request)?, id(&request)?, RotateKeyRequest { grace_seconds });
    let (data, secret) = app.administration.rotate_key_by_id(&action, &account, &key, &rotation).await?;
    Ok(json(StatusCode::OK, &IssuedKeyResponse { key: secret.into(), data }))
}

/// Delete a key for good
///
/// The keys below it stop too. Its usage stays in the reports.
#[utoipa::path(post, path = "/admin/accounts/{id}/keys/{key}/delete",
    tag = "accounts", security(("operator" = [])), request_body = ReasonRequest, params(
    ("id" = String, Path, description = "The account's id"),
    ("key" = String, Path, description = "The key's public id"),
), responses(
    (status = 200, description = "The key is deleted", body = DeletedKeyResponse),
    (status = 404, description = "`not_found`, also when it was deleted before", body = ErrorBody),
    (status = 409, description = "`conflict`: the account is revoked, or it is the first key", body = ErrorBody),
))]
pub(super) async fn delete_key(app: &AdminApp, request: Request) -> Result<Reply, Problem> {
    let action = app.bare_action(&request).await?;
    app.administration.delete_key(&action, &account(&request)?, &id(&request)?).await?;
    Ok(json(StatusCode::OK, &DeletedKeyResponse { deleted: true }))
}

fn account(request: &Request) -> Result<AccountId, Problem> {
    request.parameter(0, "id")
}

fn id(request: &Request) -> Result<KeyId, Problem> {
    request.parameter(1, "key")
}
