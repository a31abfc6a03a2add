//! Keys of the caller's account: the caller's own, and its child keys.

use http::{HeaderValue, StatusCode};
use metering_core::Error;
use metering_core::access::Scope;
use metering_core::wire::{
    ChangeKeyRequest, CreateKeyRequest, DeletedKeyResponse, ErrorBody, IssuedKeyResponse, KeyResponse, KeysDocument,
    LeakedKeyRequest, LeakedKeyResponse, RotateKeyRequest, VerifyResponse,
};

use crate::access::credentials::Sender;
use crate::api::account::after_authorization;
use crate::api::app::App;
use crate::endpoints::Request;
use crate::endpoints::body::read;
use crate::endpoints::query::{number, optional};
use crate::http::{Problem, Reply, json};
use crate::operations::metrics::counted;

/// Create a child of the caller's key
///
/// It may do at most what the caller's key may do, and stops working when that one does. The secret is shown only once.
/// To get it again after a lost response, send an `Idempotency-Key` of at least 32 random characters, and repeat the
/// request with it.
///
/// Without a key, a wallet that paid for requests signs in, and gets a child of the first key of its account. The
/// message to sign is in the extension `sign-in-with-x` of any 402 for a request without a key.
#[utoipa::path(post, path = "/keys", tag = "keys", security(("bearer" = []), ("api_key" = []), ("sign_in_with_x" = [])), params(
    ("Idempotency-Key" = Option<String>, Header, min_length = 32, max_length = 258, description = "Makes a lost response available again. At least 32 random characters, such as a UUID; keep it secret. Only with a key"),
), request_body = CreateKeyRequest, responses(
    (status = 201, description = "The key and its secret", body = IssuedKeyResponse),
    (status = 400, description = "`invalid_json`, `validation_failed`: also if it would allow more than the caller's key does", body = ErrorBody),
    (status = 401, description = "`unauthorized`: also if the wallet was not signed in, as `message` explains; `key_expired`", body = ErrorBody),
    (status = 403, description = "`key_scope`, `key_network`", body = ErrorBody),
    (status = 404, description = "`no_linked_wallet`: the wallet that signed in has no account", body = ErrorBody),
    (status = 409, description = "`conflict`: the account has as many keys as it may have, or the chain of keys is too long; `idempotency_key_used`: the key that this `Idempotency-Key` made was rotated or deleted", body = ErrorBody),
    (status = 429, description = "`rate_limited`", body = ErrorBody),
    (status = 502, description = "`rpc_error`: the chain of a wallet that is a contract cannot be read", body = ErrorBody),
    (status = 503, description = "`storage_unavailable`, `outcome_unknown`", body = ErrorBody),
))]
pub(crate) async fn create_key(app: &App, request: Request) -> Result<Reply, Problem> {
    let is_keyless = request.sender()?.key.is_none();
    let values = |name: &'static str| request.headers.get_all(name).iter().map(HeaderValue::as_bytes);
    if let Some(sign_in) = app.service.sign_in(values).filter(|_| is_keyless) {
        return create_key_of_wallet(app, &request, sign_in).await;
    }
    let sender = manager(app, &request).await?;
    let idempotency_key = request.idempotency_key()?;
    let wanted: CreateKeyRequest = read(&request.body)?;
    let made = app.service.create_key(&sender, &wanted, idempotency_key.as_ref()).await;
    Ok(json::<IssuedKeyResponse>(StatusCode::CREATED, &counted("key_creation", made)?))
}

/// Makes a key for the account of a wallet that signed in.
async fn create_key_of_wallet(app: &App, request: &Request, sign_in: &str) -> Result<Reply, Problem> {
    app.limits.recovery(&request.client()?)?;
    let parent = app.payments.signed_in_key(sign_in, request.sender()?.address).await?;
    app.limits.key_changes(&parent)?;
    if request.idempotency_key()?.is_some() {
        // The new secret would be derived from this header alone.
        return Err(Error::field("Idempotency-Key", "works only with an API key; sign in again without it").into());
    }
    let wanted: CreateKeyRequest = read(&request.body)?;
    let made = app.service.create_key_below(&parent, &wanted).await;
    Ok(json::<IssuedKeyResponse>(StatusCode::CREATED, &counted("key_creation", made)?))
}

/// The caller's key and its child keys, oldest first
///
/// If `next` is not null, more keys follow: send it as `after`.
#[utoipa::path(get, path = "/keys", tag = "keys", security(("bearer" = []), ("api_key" = [])), params(
    ("after" = Option<String>, Query, description = "The value of `next` in the previous response"),
    ("limit" = Option<u32>, Query, description = "Maximum number of keys, 100 by default", minimum = 1, maximum = 100, example = 100),
), responses(
    (status = 200, description = "Keys", body = KeysDocument),
    (status = 400, description = "`validation_failed`", body = ErrorBody),
    (status = 401, description = "`unauthorized`, `key_expired`", body = ErrorBody),
    (status = 403, description = "`key_scope`, `key_network`", body = ErrorBody),
    (status = 503, description = "`storage_unavailable`", body = ErrorBody),
))]
pub(crate) async fn keys(app: &App, request: Request) -> Result<Reply, Problem> {
    let sender = request.sender()?;
    let document = match (optional::<String>(&request.query, "after"), number(&request.query, "limit", 100)) {
        (Ok(after), Ok(limit)) => app.service.keys(&sender, after.as_deref(), limit).await?,
        (Err(error), _) | (_, Err(error)) => {
            return Err(after_authorization(app, &request, Scope::Manage, error).await);
        }
    };
    Ok(json(StatusCode::OK, &document))
}

/// One key
///
/// `current` stands for the key that the request is sent with, which needs no scope for this.
#[utoipa::path(get, path = "/keys/{id}", tag = "keys", security(("bearer" = []), ("api_key" = [])), params(
    ("id" = String, Path, description = "The key's id, or `current`", example = "current"),
), responses(
    (status = 200, description = "The key", body = KeyResponse),
    (status = 401, description = "`unauthorized`, `key_expired`", body = ErrorBody),
    (status = 403, description = "`key_scope`, except for `current`; `key_network`", body = ErrorBody),
    (status = 404, description = "`not_found`: the caller's key has no such child key", body = ErrorBody),
    (status = 503, description = "`storage_unavailable`", body = ErrorBody),
))]
pub(crate) async fn key(app: &App, request: Request) -> Result<Reply, Problem> {
    let document = app.service.key(&request.sender()?, id(&request)).await?;
    Ok(json(StatusCode::OK, &document))
}

/// Change a key
///
/// Omitted fields are unchanged; null removes a restriction. Takes effect immediately.
#[utoipa::path(patch, path = "/keys/{id}", tag = "keys", security(("bearer" = []), ("api_key" = [])), params(
    ("id" = String, Path, description = "The key's id, or `current`", example = "current"),
), request_body = ChangeKeyRequest, responses(
    (status = 200, description = "The key as it is now", body = KeyResponse),
    (status = 400, description = "`invalid_json`, `validation_failed`: also if it would allow more than the caller's key does", body = ErrorBody),
    (status = 401, description = "`unauthorized`, `key_expired`", body = ErrorBody),
    (status = 403, description = "`key_scope`, `key_network`", body = ErrorBody),
    (status = 404, description = "`not_found`: the caller's key has no such child key", body = ErrorBody),
    (status = 409, description = "`conflict`: the account's first key cannot be restricted like this, or the key leaked", body = ErrorBody),
    (status = 429, description = "`rate_limited`", body = ErrorBody),
    (status = 503, description = "`storage_unavailable`, `outcome_unknown`", body = ErrorBody),
))]
pub(crate) async fn change_key(app: &App, request: Request) -> Result<Reply, Problem> {
    let sender = manager(app, &request).await?;
    let change: ChangeKeyRequest = read(&request.body)?;
    let changed = app.service.change_key(&sender, id(&request), &change).await;
    Ok(json::<KeyResponse>(StatusCode::OK, &counted("key_change", changed)?))
}

/// Delete a key
///
/// Permanently. Its child keys stop working too. Their streams end within five seconds.
#[utoipa::path(delete, path = "/keys/{id}", tag = "keys", security(("bearer" = []), ("api_key" = [])), params(
    ("id" = String, Path, description = "The key's id, or `current`", example = "key_0123456789abcdef0123"),
), responses(
    (status = 200, description = "Deleted", body = DeletedKeyResponse),
    (status = 401, description = "`unauthorized`, `key_expired`", body = ErrorBody),
    (status = 403, description = "`key_scope`, `key_network`", body = ErrorBody),
    (status = 404, description = "`not_found`: the caller's key has no such child key", body = ErrorBody),
    (status = 409, description = "`conflict`: the account's first key cannot be deleted", body = ErrorBody),
    (status = 429, description = "`rate_limited`", body = ErrorBody),
    (status = 503, description = "`storage_unavailable`, `outcome_unknown`", body = ErrorBody),
))]
pub(crate) async fn delete_key(app: &App, request: Request) -> Result<Reply, Problem> {
    let sender = manager(app, &request).await?;
    let deleted = app.service.delete_key(&sender, id(&request)).await;
    Ok(json::<DeletedKeyResponse>(StatusCode::OK, &counted("key_deletion", deleted)?))
}

/// Replace the key that this request is sent with
///
/// The old secret stops working with this response, or `grace_seconds` later, and its streams end within five seconds.
/// Until then it can call and read only. The new one is shown only once, so send an `Idempotency-Key` of at least 32
/// random characters, and keep it until you have stored the new key: if the response is lost, the same request, with
/// the old key and the same `Idempotency-Key`, returns the same new key.
#[utoipa::path(post, path = "/keys/current/rotate", tag = "keys", security(("bearer" = []), ("api_key" = [])), params(
    ("Idempotency-Key" = Option<String>, Header, min_length = 32, max_length = 258, description = "Makes a lost response available again. At least 32 random characters, such as a UUID; keep it secret"),
), request_body = Option<RotateKeyRequest>, responses(
    (status = 200, description = "The new key", body = VerifyResponse),
    (status = 400, description = "`invalid_json`, `validation_failed`", body = ErrorBody),
    (status = 401, description = "`unauthorized`, `key_expired`", body = ErrorBody),
    (status = 403, description = "`key_scope`, `key_network`", body = ErrorBody),
    (status = 429, description = "`rate_limited`", body = ErrorBody),
    (status = 503, description = "`storage_unavailable`, `outcome_unknown`", body = ErrorBody),
))]
pub(crate) async fn rotate_current_key(app: &App, request: Request) -> Result<Reply, Problem> {
    app.limits.recovery(&request.client()?)?;
    let rotation = match request.idempotency_key() {
        Ok(rotation) => rotation,
        Err(error) => return Err(after_authorization(app, &request, Scope::Manage, error).await),
    };
    let wanted = if request.body.is_empty() { Ok(RotateKeyRequest::default()) } else { read(&request.body) };
    let wanted = match wanted {
        Ok(wanted) => wanted,
        Err(problem) => return Err(after_authorization(app, &request, Scope::Manage, problem).await),
    };
    let rotated = app.service.rotate_key(&request.sender()?, &wanted, rotation.as_ref()).await;
    Ok(json::<VerifyResponse>(StatusCode::OK, &counted("rotation", rotated)?))
}

/// Replace the secret of a key
///
/// The key keeps its id, its terms and its usage. With `grace_seconds`, the old secret works for that much longer. The
/// new secret is shown only once: see `Idempotency-Key`.
#[utoipa::path(post, path = "/keys/{id}/rotate", tag = "keys", security(("bearer" = []), ("api_key" = [])), params(
    ("id" = String, Path, description = "The key's id", example = "key_0123456789abcdef0123"),
    ("Idempotency-Key" = Option<String>, Header, min_length = 32, max_length = 258, description = "Makes a lost response available again. At least 32 random characters, such as a UUID; keep it secret"),
), request_body = Option<RotateKeyRequest>, responses(
    (status = 200, description = "The key and its new secret", body = IssuedKeyResponse),
    (status = 400, description = "`invalid_json`, `validation_failed`", body = ErrorBody),
    (status = 401, description = "`unauthorized`, `key_expired`", body = ErrorBody),
    (status = 403, description = "`key_scope`, `key_network`", body = ErrorBody),
    (status = 404, description = "`not_found`: the caller's key has no such child key", body = ErrorBody),
    (status = 429, description = "`rate_limited`", body = ErrorBody),
    (status = 503, description = "`storage_unavailable`, `outcome_unknown`", body = ErrorBody),
))]
pub(crate) async fn rotate_key(app: &App, request: Request) -> Result<Reply, Problem> {
    let wanted = if request.body.is_empty() { Ok(RotateKeyRequest::default()) } else { read(&request.body) };
    let (wanted, idempotency_key) = match (wanted, request.idempotency_key().map_err(Problem::from)) {
        (Ok(wanted), Ok(idempotency_key)) => (wanted, idempotency_key),
        (Err(problem), _) | (_, Err(problem)) => {
            return Err(after_authorization(app, &request, Scope::Manage, problem).await);
        }
    };
    let sender = request.sender()?;
    match app.service.current_key(&sender, Scope::Manage).await {
        Ok(actor) => app.limits.key_changes(&actor)?,
        // An earlier attempt may have replaced the key that this is sent with. The service checks that.
        Err(_) if idempotency_key.is_some() => {}
        Err(refused) => return Err(refused.into()),
    }
    let rotated = app.service.rotate_key_by_id(&sender, id(&request), &wanted, idempotency_key.as_ref()).await;
    Ok(json::<IssuedKeyResponse>(StatusCode::OK, &counted("rotation", rotated)?))
}

/// Report a leaked key
///
/// For anyone who finds a leaked key; no other credentials are needed. The key and all its child keys stop working
/// immediately, until the owner rotates it.
#[utoipa::path(post, path = "/keys/leaked", tag = "keys", request_body = LeakedKeyRequest, responses(
    (status = 200, description = "Whether the key was live, and no longer is", body = LeakedKeyResponse),
    (status = 400, description = "`invalid_json`, `validation_failed`", body = ErrorBody),
    (status = 429, description = "`rate_limited`", body = ErrorBody),
    (status = 503, description = "`storage_unavailable`, `outcome_unknown`", body = ErrorBody),
))]
pub(crate) async fn report_leaked(app: &App, request: Request) -> Result<Reply, Problem> {
    app.limits.leak_report(&request.client()?)?;
    let found: LeakedKeyRequest = read(&request.body)?;
    let reported = app.service.report_leaked(&found).await;
    Ok(json::<LeakedKeyResponse>(StatusCode::OK, &counted("leak_report", reported)?))
}

/// The id in the path.
fn id(request: &Request) -> &str {
    request.path.first().map(String::as_str).unwrap_or_default()
}

/// The sender, whose key may manage keys. Counts a change of the account's keys.
async fn manager(app: &App, request: &Request) -> Result<Sender, Problem> {
    let sender = request.sender()?;
    let actor = app.service.current_key(&sender, Scope::Manage).await?;
    app.limits.key_changes(&actor)?;
    Ok(sender)
}
