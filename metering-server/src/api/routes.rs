//! The routes of the API and their handlers.
//!
//! Handlers always reply. A rejection only means that another route may match, and the last route matches everything.

use std::sync::Arc;

use bytes::Bytes;
use http::HeaderMap;
use warp::Filter;
use warp::filters::BoxedFilter;
use warp::path::FullPath;

use crate::api;
use crate::api::app::App;
use crate::http::{ClientAddress, Problem, Reply};

/// The paths of the API and their methods, for 405 responses and for the test that compares them with the OpenAPI
/// document.
pub(crate) const PATHS: [(&str, &str); 23] = [
    ("/credits/plans", "GET"),
    ("/credits/balance", "GET"),
    ("/credits/usage", "GET"),
    ("/credits/usage/summary", "GET"),
    ("/credits/usage/by-endpoint", "GET"),
    ("/credits/topup", "POST"),
    ("/signup/initiate", "POST"),
    ("/signup/challenge", "GET"),
    ("/signup/pending", "GET"),
    ("/signup/status", "GET"),
    // `pages` serves the page at this path.
    ("/verify", "GET"),
    ("/verify", "POST"),
    ("/signup/pay/quote", "POST"),
    ("/signup/pay/claim", "POST"),
    ("/api-key/recover/challenge", "POST"),
    ("/api-key/recover/verify", "POST"),
    ("/internal/billing/deduct", "POST"),
    ("/internal/billing/lookup", "POST"),
    ("/health", "GET"),
    ("/ready", "GET"),
    ("/metrics", "GET"),
    ("/openapi.json", "GET"),
    ("/endpoints.json", "GET"),
];

/// Paths whose responses are worth compressing and contain no secret.
const COMPRESSED: [&str; 5] =
    ["/credits/plans", "/credits/usage", "/credits/usage/summary", "/credits/usage/by-endpoint", "/metrics"];

/// This path returns its result only once. A `HEAD` request, whose body is discarded, would lose it.
const RETURNS_ONCE: &str = "/signup/status";

/// Whether the API has this path, with any method. A trailing slash makes no difference.
pub(crate) fn is_path(path: &str) -> bool {
    methods(path).next().is_some()
}

/// Whether a path supports `HEAD`: all paths with `GET` do, except the one that returns its result only once.
pub(crate) fn takes_head(path: &str) -> bool {
    methods(path).any(|method| method == "GET") && without_slash(path) != RETURNS_ONCE
}

/// Whether responses of a path may be compressed.
pub(crate) fn is_compressed(path: &str) -> bool {
    COMPRESSED.contains(&without_slash(path))
}

fn methods(path: &str) -> impl Iterator<Item = &'static str> {
    PATHS.iter().filter(move |(known, _)| *known == without_slash(path)).map(|(_, method)| *method)
}

fn without_slash(path: &str) -> &str {
    path.strip_suffix('/').unwrap_or(path)
}

/// Serves every path of the API, and responds to unmatched requests.
pub(crate) fn routes(app: Arc<App>) -> BoxedFilter<(Result<Reply, Problem>,)> {
    let payments = payments(Arc::clone(&app));
    let signup = signup(Arc::clone(&app));
    let app = warp::any().map(move || Arc::clone(&app));
    let headers = warp::header::headers_cloned();
    let query = warp::query::raw().or(warp::any().map(String::new)).unify();

    let plans = warp::path!("credits" / "plans")
        .and(warp::get())
        .and(app.clone())
        .then(|app: Arc<App>| async move { api::plans(&app).await });
    let balance = warp::path!("credits" / "balance")
        .and(warp::get())
        .and(app.clone())
        .and(headers)
        .then(|app: Arc<App>, headers| async move { api::balance(&app, headers).await });
    let usage = warp::path!("credits" / "usage")
        .and(warp::get())
        .and(app.clone())
        .and(headers)
        .and(query)
        .then(|app: Arc<App>, headers, query| async move { api::usage(&app, headers, query).await });
    let usage_summary = warp::path!("credits" / "usage" / "summary")
        .and(warp::get())
        .and(app.clone())
        .and(headers)
        .and(query)
        .then(|app: Arc<App>, headers, query| async move { api::usage_summary(&app, headers, query).await });
    let usage_by_endpoint = warp::path!("credits" / "usage" / "by-endpoint")
        .and(warp::get())
        .and(app.clone())
        .and(headers)
        .and(query)
        .then(|app: Arc<App>, headers, query| async move { api::usage_by_endpoint(&app, headers, query).await });
    let deduct = warp::path!("internal" / "billing" / "deduct")
        .and(warp::post())
        .and(app.clone())
        .and(headers)
        .and(warp::body::bytes())
        .then(|app: Arc<App>, headers: HeaderMap, body: Bytes| async move { api::deduct(&app, headers, body).await });
    let lookup = warp::path!("internal" / "billing" / "lookup")
        .and(warp::post())
        .and(app.clone())
        .and(headers)
        .then(|app: Arc<App>, headers| async move { api::lookup(&app, headers).await });
    let health = warp::path!("health")
        .and(warp::get())
        .and(app.clone())
        .then(|app: Arc<App>| async move { api::health(&app).await });
    let ready = warp::path!("ready")
        .and(warp::get())
        .and(app.clone())
        .then(|app: Arc<App>| async move { api::ready(&app).await });
    let metrics = warp::path!("metrics")
        .and(warp::get())
        .and(app.clone())
        .then(|app: Arc<App>| async move { api::metrics(&app).await });
    let catalogue = warp::path!("endpoints.json")
        .and(warp::get())
        .and(app.clone())
        .and(headers)
        .then(|app: Arc<App>, headers| async move { api::catalogue(&app, headers).await });
    let openapi = warp::path!("openapi.json")
        .and(warp::get())
        .and(app)
        .and(headers)
        .then(|app: Arc<App>, headers| async move { api::openapi_json(&app, headers).await });

    let account = balance.or(usage).unify().or(usage_summary).unify().or(usage_by_endpoint).unify();
    let internal = deduct.or(lookup).unify();
    let operations = health.or(ready).unify().or(metrics).unify().or(openapi).unify().or(catalogue).unify();
    let all =
        plans.or(account).unify().or(payments).unify().or(signup).unify().or(internal).unify().or(operations).unify();
    let unmatched = warp::path::full().map(|path: FullPath| Err(unmatched(path.as_str())));
    all.or(unmatched).unify().boxed()
}

/// Signup without payment.
fn signup(app: Arc<App>) -> BoxedFilter<(Result<Reply, Problem>,)> {
    let app = warp::any().map(move || Arc::clone(&app));
    let client = warp::ext::get::<ClientAddress>();
    let query = warp::query::raw().or(warp::any().map(String::new)).unify();
    let body = warp::body::bytes();

    let initiate = warp::path!("signup" / "initiate")
        .and(warp::post())
        .and(app.clone())
        .and(client)
        .and(body)
        .then(|app: Arc<App>, client, body: Bytes| async move { api::initiate(&app, client, body).await });
    let challenge = warp::path!("signup" / "challenge")
        .and(warp::get())
        .and(app.clone())
        .and(client)
        .then(|app: Arc<App>, client| async move { api::bot_challenge(&app, client).await });
    let pending = warp::path!("signup" / "pending")
        .and(warp::get())
        .and(app.clone())
        .and(client)
        .and(query)
        .then(|app: Arc<App>, client, query| async move { api::pending(&app, client, query).await });
    let status = warp::path!("signup" / "status")
        .and(warp::get())
        .and(app.clone())
        .and(client)
        .and(query)
        .then(|app: Arc<App>, client, query| async move { api::status(&app, client, query).await });
    let approve = warp::path!("verify")
        .and(warp::post())
        .and(app)
        .and(client)
        .and(warp::header::headers_cloned())
        .and(body)
        .then(|app: Arc<App>, client, headers: HeaderMap, body: Bytes| async move {
            api::approve(&app, client, headers, body).await
        });
    initiate.or(challenge).unify().or(pending).unify().or(status).unify().or(approve).unify().boxed()
}

/// Purchases, and key recovery by wallet.
fn payments(app: Arc<App>) -> BoxedFilter<(Result<Reply, Problem>,)> {
    let app = warp::any().map(move || Arc::clone(&app));
    let client = warp::ext::get::<ClientAddress>();
    let body = warp::body::bytes();

    let quote = warp::path!("signup" / "pay" / "quote")
        .and(warp::post())
        .and(app.clone())
        .and(client)
        .and(body)
        .then(|app: Arc<App>, client, body: Bytes| async move { api::quote(&app, client, body).await });
    let claim = warp::path!("signup" / "pay" / "claim")
        .and(warp::post())
        .and(app.clone())
        .and(client)
        .and(body)
        .then(|app: Arc<App>, client, body: Bytes| async move { api::claim(&app, client, body).await });
    let top_up = warp::path!("credits" / "topup")
        .and(warp::post())
        .and(app.clone())
        .and(client)
        .and(warp::header::headers_cloned())
        .and(body)
        .then(|app: Arc<App>, client, headers: HeaderMap, body: Bytes| async move {
            api::top_up(&app, client, headers, body).await
        });
    let challenge = warp::path!("api-key" / "recover" / "challenge")
        .and(warp::post())
        .and(app.clone())
        .and(client)
        .and(body)
        .then(|app: Arc<App>, client, body: Bytes| async move { api::challenge(&app, client, body).await });
    let verify = warp::path!("api-key" / "recover" / "verify")
        .and(warp::post())
        .and(app)
        .and(client)
        .and(body)
        .then(|app: Arc<App>, client, body: Bytes| async move { api::verify(&app, client, body).await });
    quote.or(claim).unify().or(top_up).unify().or(challenge).unify().or(verify).unify().boxed()
}

/// The error for an unmatched request: 405 for a known path, 404 for an unknown one.
fn unmatched(path: &str) -> Problem {
    let mut methods: Vec<_> = methods(path).collect();
    if takes_head(path) {
        methods.insert(1, "HEAD");
    }
    if methods.is_empty() { Problem::not_found() } else { Problem::method_not_allowed(&methods) }
}
