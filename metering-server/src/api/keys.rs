//! Keys of the caller's account: the caller's own, and its child keys.

use http::HeaderValue;
use metering_client::calls::keys::ListKeys;
use metering_core::Error;
use metering_core::access::{Key, Scope};
use metering_core::store::Cursor;
use metering_core::wire::{
    ChangeKeyRequest, CreateKeyRequest, DeletedKeyResponse, IssuedKeyResponse, KeyResponse, KeysDocument,
    LeakedKeyRequest, LeakedKeyResponse, RotateKeyRequest, VerifyResponse,
};

use crate::access::credentials::Sender;
use crate::api::account::{after_authorization, parameters};
use crate::api::app::App;
use crate::endpoints::Request;
use crate::endpoints::body::read;
use crate::http::Problem;
use crate::operations::metrics::counted;

pub(crate) async fn create_key(app: &App, request: Request) -> Result<IssuedKeyResponse, Problem> {
    if request.session.is_none() && request.sender()?.key.is_none() && sign_in(app, &request).is_some() {
        return create_key_of_wallet(app, &request).await;
    }
    let sender = manager(app, &request).await?;
    let idempotency_key = request.idempotency_key()?;
    let wanted: CreateKeyRequest = read(&request.body)?;
    let made = app.service.keys().create(&sender, &wanted, idempotency_key.as_ref()).await;
    Ok(counted("key_creation", made)?)
}

/// The key below which a request makes another: the caller's, or that of a wallet that signed in. Counts a change of the
/// account's keys.
pub(super) async fn parent_key(app: &App, request: &Request) -> Result<Key, Problem> {
    let sender = request.sender()?;
    let is_keyless = request.session.is_none() && sender.key.is_none();
    let parent = match sign_in(app, request).filter(|_| is_keyless) {
        Some(sign_in) => {
            app.limits.recovery(&request.client()?)?;
            app.payments.signed_in_key(sign_in, sender.address).await?
        }
        None => app.service.access().current_key(&sender, Scope::Manage).await?,
    };
    app.limits.key_changes(&parent)?;
    Ok(parent)
}

/// The signature of a wallet that signs in with the request.
fn sign_in<'r>(app: &App, request: &'r Request) -> Option<&'r str> {
    let values = |name: &'static str| request.headers.get_all(name).iter().map(HeaderValue::as_bytes);
    app.service.offers().sign_in(values)
}

/// Makes a key for the account of a wallet that signed in.
async fn create_key_of_wallet(app: &App, request: &Request) -> Result<IssuedKeyResponse, Problem> {
    let parent = parent_key(app, request).await?;
    if request.idempotency_key()?.is_some() {
        // The new secret would be derived from this header alone.
        return Err(Error::field("Idempotency-Key", "works only with an API key; sign in again without it").into());
    }
    let wanted: CreateKeyRequest = read(&request.body)?;
    let made = app.service.keys().create_below(&parent, &wanted).await;
    Ok(counted("key_creation", made)?)
}

pub(crate) async fn keys(app: &App, request: Request) -> Result<KeysDocument, Problem> {
    let page = parameters::<ListKeys>(app, &request, Scope::Manage).await?;
    let after = page.after.as_ref().map(Cursor::as_str);
    Ok(app.service.keys().list(&request.sender()?, after, page.limit.0).await?)
}

pub(crate) async fn key(app: &App, request: Request) -> Result<KeyResponse, Problem> {
    Ok(app.service.keys().get(&request.sender()?, request.segment(0)).await?)
}

pub(crate) async fn change_key(app: &App, request: Request) -> Result<KeyResponse, Problem> {
    let sender = manager(app, &request).await?;
    let change: ChangeKeyRequest = read(&request.body)?;
    let changed = app.service.keys().change(&sender, request.segment(0), &change).await;
    Ok(counted("key_change", changed)?)
}

pub(crate) async fn delete_key(app: &App, request: Request) -> Result<DeletedKeyResponse, Problem> {
    let sender = manager(app, &request).await?;
    let deleted = app.service.keys().delete(&sender, request.segment(0)).await;
    Ok(counted("key_deletion", deleted)?)
}

pub(crate) async fn rotate_current_key(app: &App, request: Request) -> Result<VerifyResponse, Problem> {
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
    let rotated = app.service.keys().rotate_current(&request.sender()?, &wanted, rotation.as_ref()).await;
    Ok(counted("rotation", rotated)?)
}

pub(crate) async fn rotate_key(app: &App, request: Request) -> Result<IssuedKeyResponse, Problem> {
    let wanted = if request.body.is_empty() { Ok(RotateKeyRequest::default()) } else { read(&request.body) };
    let (wanted, idempotency_key) = match (wanted, request.idempotency_key().map_err(Problem::from)) {
        (Ok(wanted), Ok(idempotency_key)) => (wanted, idempotency_key),
        (Err(problem), _) | (_, Err(problem)) => {
            return Err(after_authorization(app, &request, Scope::Manage, problem).await);
        }
    };
    let sender = request.sender()?;
    match app.service.access().current_key(&sender, Scope::Manage).await {
        Ok(actor) => app.limits.key_changes(&actor)?,
        // An earlier attempt may have replaced the key that this is sent with. The service checks that.
        Err(_) if idempotency_key.is_some() => {}
        Err(refused) => return Err(refused.into()),
    }
    let rotated = app.service.keys().rotate(&sender, request.segment(0), &wanted, idempotency_key.as_ref()).await;
    Ok(counted("rotation", rotated)?)
}

pub(crate) async fn report_leaked(app: &App, request: Request) -> Result<LeakedKeyResponse, Problem> {
    app.limits.leak_report(&request.client()?)?;
    let found: LeakedKeyRequest = read(&request.body)?;
    let reported = app.service.keys().report_leaked(&found).await;
    Ok(counted("leak_report", reported)?)
}

/// The id in the path.
/// The sender, whose key may manage keys. Counts a change of the account's keys.
async fn manager(app: &App, request: &Request) -> Result<Sender, Problem> {
    let sender = request.sender()?;
    let actor = app.service.access().current_key(&sender, Scope::Manage).await?;
    app.limits.key_changes(&actor)?;
    Ok(sender)
}
