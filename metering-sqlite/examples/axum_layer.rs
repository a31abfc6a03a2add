//! An axum service with metered routes: `MeteringLayer` around a router, with a SQLite store.
//!
//! ```text
//! cargo run -p metering-sqlite --example axum_layer [ADDRESS [FOLDER]]
//! ```
//!
//! Listens on 127.0.0.1:8080 by default and runs until Ctrl-C or SIGTERM. Without a folder, the store is temporary.
//! Prints a key with two credits and an example request.

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use axum::routing::get;
use axum::{Extension, Json, Router, ServiceExt};
use metering_core::access::Credentials;
use metering_core::service::Links;
use metering_core::wire::{BalanceDocument, PlansDocument};
use metering_core::{Catalogue, Charged, MeteringLayer, Service, ServiceConfig};
use metering_sqlite::SqliteStore;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tower_layer::Layer;

/// The routes and their prices. A weight of 1 costs 1/7200 credit.
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

    let store = Arc::new(SqliteStore::open(&folder.join("metering.db"))?);
    let listener = TcpListener::bind(&address).await?;
    let public_url = format!("http://{}", listener.local_addr()?);
    let links = Links { plans: Some(format!("{public_url}/credits/plans")), ..Links::default() };
    let config = ServiceConfig { links, ..ServiceConfig::default() };
    let service = Arc::new(Service::start(store, Catalogue::from_json(CATALOGUE)?, config));
    let (_, key) = service.open_account("example", "2".parse()?).await?;

    let router = Router::new()
        .route("/squares/limits", get(limits))
        .route("/squares/{number}", get(square))
        .route("/credits/balance", get(balance))
        .route("/credits/plans", get(plans))
        .with_state(Arc::clone(&service));
    // The layer wraps the whole router, so that axum routes exactly the path that was priced. The routes below /credits
    // are not in the catalogue: the layer passes them on unmetered, and `balance` checks the key itself.
    let metered = MeteringLayer::new(Arc::clone(&service)).pass_others().layer(router);

    let stop = told_to_stop()?;
    println!("listening on {public_url}");
    println!("curl -i -H 'Authorization: Bearer {}' {public_url}/squares/12", key.expose());
    axum::serve(listener, ServiceExt::<Request>::into_make_service(metered)).with_graceful_shutdown(stop).await?;
    // All responses have been sent by now. When `drain` returns, their charges are on disk.
    service.meter().drain().await;
    println!("stopped");
    Ok(())
}

/// The square of a number: a metered route.
async fn square(
    Path(number): Path<i64>,
    Extension(payer): Extension<Charged>,
) -> Result<Json<Value>, (StatusCode, &'static str)> {
    // 503 means that the request was not served, so its charge is refunded.
    let square = number.checked_mul(number).ok_or((StatusCode::SERVICE_UNAVAILABLE, "too large to be squared here"))?;
    Ok(Json(json!({"number": number, "square": square, "paid_by": payer.account})))
}

/// The largest number that can be squared: a free route.
async fn limits() -> Json<Value> {
    Json(json!({"largest": i64::MAX.isqrt()}))
}

/// The balance of the key's account.
async fn balance(State(service): State<Arc<Service>>, headers: HeaderMap) -> Result<Json<BalanceDocument>, Response> {
    let credentials = Credentials::read(|name| headers.get_all(name).iter().map(HeaderValue::as_bytes));
    let document = service.usage().balance(credentials.key.as_ref()).await;
    document.map(Json).map_err(|error| error.to_response())
}

/// The plans on sale. A 402 response points clients here.
async fn plans(State(service): State<Arc<Service>>) -> Result<Json<Arc<PlansDocument>>, Response> {
    service.payments().plans().await.map(Json).map_err(|error| error.to_response())
}

/// Resolves at Ctrl-C or SIGTERM. Both handlers are installed before this function returns.
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
