//! An axum service whose routes are paid for: `MeteringLayer` around a router, with a SQLite file beneath.
//!
//! ```text
//! cargo run -p metering-sqlite --example axum_layer [ADDRESS [FOLDER]]
//! ```
//!
//! Serves on 127.0.0.1:8080 unless told otherwise, until Ctrl-C or SIGTERM. Without a folder, the store is a temporary
//! one. Prints a key with two credits and how to use it.

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use axum::routing::get;
use axum::{Extension, Json, Router, ServiceExt};
use metering_core::wire::{BalanceDocument, PlansDocument};
use metering_core::{
    AccountId, ApiKey, Catalogue, Charged, Clock, Created, Credentials, LedgerKind, MeteringLayer, NewAccount,
    NewLedgerEntry, Service, ServiceConfig, Store, SystemClock, SystemRandomness,
};
use metering_sqlite::SqliteStore;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tower_layer::Layer;

/// What costs how much: a weight of 1 is 1/7200 credit.
const CATALOGUE: &str = r#"{
  "market": "SQUARES", "version": 1, "endpoints": [
    {"path": "/squares/{number}", "method": "GET", "metered": true, "credit_weight": 10,
     "description": "The square of a number",
     "params": [{"name": "number", "in": "path", "type": "integer", "required": true}]},
    {"path": "/squares/limits", "method": "GET", "metered": false, "description": "Which numbers have squares here"}
  ]
}"#;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut arguments = std::env::args_os().skip(1);
    let address = arguments.next().map_or_else(|| "127.0.0.1:8080".into(), |text| text.to_string_lossy().into_owned());
    let temporary = tempfile::tempdir()?;
    let folder = arguments.next().map_or_else(|| temporary.path().to_owned(), PathBuf::from);

    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(&folder.join("metering.db"))?);
    let key = open_account(&*store).await?;
    let listener = TcpListener::bind(&address).await?;
    let public_url = format!("http://{}", listener.local_addr()?);
    let config = ServiceConfig { public_url: public_url.clone(), ..ServiceConfig::default() };
    let service = Arc::new(Service::start(store, Catalogue::from_json(CATALOGUE)?, config));

    let router = Router::new()
        .route("/squares/limits", get(limits))
        .route("/squares/{number}", get(square))
        .route("/credits/balance", get(balance))
        .route("/credits/plans", get(plans))
        .with_state(Arc::clone(&service));
    // Around the whole router, so that axum routes the very path that was priced. The routes below /credits are in no
    // catalogue: they are for whoever asks, and look for a key themselves.
    let metered = MeteringLayer::new(Arc::clone(&service)).pass_others().layer(router);

    let stop = told_to_stop()?;
    println!("listening on {public_url}");
    println!("curl -i -H 'Authorization: Bearer {}' {public_url}/squares/12", key.expose());
    axum::serve(listener, ServiceExt::<Request>::into_make_service(metered)).with_graceful_shutdown(stop).await?;
    // Every request is answered by now; what they charged is on disk when this returns.
    service.meter().drain().await;
    println!("stopped");
    Ok(())
}

/// The square of a number, for whoever pays.
async fn square(
    Path(number): Path<i64>,
    Extension(payer): Extension<Charged>,
) -> Result<Json<Value>, (StatusCode, &'static str)> {
    // 503 says that nothing was served: what was charged for it is paid back.
    let square = number.checked_mul(number).ok_or((StatusCode::SERVICE_UNAVAILABLE, "too large to be squared here"))?;
    Ok(Json(json!({"number": number, "square": square, "paid_by": payer.account})))
}

/// The numbers that can be squared; free, as the catalogue says.
async fn limits() -> Json<Value> {
    Json(json!({"largest": i64::MAX.isqrt()}))
}

/// What the key's account has left.
async fn balance(State(service): State<Arc<Service>>, headers: HeaderMap) -> Result<Json<BalanceDocument>, Response> {
    let credentials = Credentials::read(|name| headers.get_all(name).iter().map(HeaderValue::as_bytes));
    let document = service.balance(credentials.key.as_ref()).await;
    document.map(Json).map_err(|error| error.to_response())
}

/// What is for sale: where an answer 402 sends its client.
async fn plans(State(service): State<Arc<Service>>) -> Result<Json<Arc<PlansDocument>>, Response> {
    service.plans().await.map(Json).map_err(|error| error.to_response())
}

/// A key with two credits.
async fn open_account(store: &dyn Store) -> Result<ApiKey, Box<dyn Error + Send + Sync>> {
    let key = ApiKey::generate(&SystemRandomness);
    let id = AccountId::generate(&SystemRandomness);
    let mut account = NewAccount::new(id, "example".parse()?, key.hash(), SystemClock.now());
    account.entries = vec![NewLedgerEntry::new(LedgerKind::SignupBonus, "2".parse()?, "Free credits of a new account")];
    match store.create_account(account).await? {
        Created::Account(_) => Ok(key),
        refusal => Err(format!("the account could not be made: {refusal:?}").into()),
    }
}

/// Resolves at Ctrl-C and at SIGTERM. Both are listened for from the moment that this returns.
#[cfg(unix)]
fn told_to_stop() -> std::io::Result<impl Future<Output = ()> + Send> {
    use tokio::signal::unix::{SignalKind, signal};

    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

/// Resolves at Ctrl-C.
#[cfg(not(unix))]
fn told_to_stop() -> std::io::Result<impl Future<Output = ()> + Send> {
    Ok(async { drop(tokio::signal::ctrl_c().await) })
}
