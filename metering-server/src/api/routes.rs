//! The table of endpoints, and the warp filter that dispatches to them.
//!
//! Each endpoint is declared once: method and path in its handler's `utoipa::path`, everything else in its row here.

use std::sync::{Arc, LazyLock};

use http::Method;
use warp::Filter;
use warp::filters::BoxedFilter;
use warp::path::FullPath;

use crate::api;
use crate::api::app::App;
use crate::endpoints::{Request, Table, endpoint};
use crate::http::{Problem, Reply};

/// All endpoints of the API. `pages` serves `GET /verify`.
pub(super) static ENDPOINTS: LazyLock<Table<App>> = LazyLock::new(|| {
    Table::new(vec![
        endpoint!(api::plans).compressed(),
        endpoint!(api::balance),
        endpoint!(api::usage).compressed(),
        endpoint!(api::usage_summary).compressed(),
        endpoint!(api::usage_by_endpoint).compressed(),
        endpoint!(api::usage_volumes),
        endpoint!(api::usage_daily).compressed(),
        endpoint!(api::usage_csv).compressed(),
        endpoint!(api::ledger).compressed(),
        endpoint!(api::ledger_csv).compressed(),
        endpoint!(api::receipts).compressed(),
        endpoint!(api::receipt),
        endpoint!(api::held_requests),
        endpoint!(api::request),
        endpoint!(api::create_key),
        endpoint!(api::keys),
        endpoint!(api::key),
        endpoint!(api::change_key),
        endpoint!(api::delete_key),
        endpoint!(api::rotate_current_key),
        endpoint!(api::rotate_key),
        endpoint!(api::report_leaked),
        endpoint!(api::balance_alert),
        endpoint!(api::set_balance_alert),
        endpoint!(api::events).compressed(),
        endpoint!(api::create_webhook),
        endpoint!(api::webhooks),
        endpoint!(api::webhook),
        endpoint!(api::change_webhook),
        endpoint!(api::delete_webhook),
        endpoint!(api::rotate_webhook),
        endpoint!(api::test_webhook),
        endpoint!(api::deliveries).compressed(),
        endpoint!(api::resend_delivery),
        endpoint!(api::top_up),
        endpoint!(api::complete_top_up),
        endpoint!(api::top_up_quote),
        endpoint!(api::top_up_quote_status),
        endpoint!(api::offers).compressed(),
        endpoint!(api::pay),
        endpoint!(api::initiate),
        endpoint!(api::bot_challenge),
        endpoint!(api::pending),
        endpoint!(api::status).without_head(),
        endpoint!(api::approve),
        endpoint!(api::send_link),
        endpoint!(api::verify_email),
        endpoint!(api::quote),
        endpoint!(api::claim),
        endpoint!(api::challenge),
        endpoint!(api::verify),
        endpoint!(api::recovery_link),
        endpoint!(api::recover_by_link),
        endpoint!(api::deduct),
        endpoint!(api::lookup),
        endpoint!(api::hold),
        endpoint!(api::capture),
        endpoint!(api::release),
        endpoint!(api::settle),
        endpoint!(api::pay_internal),
        endpoint!(api::health).everywhere(),
        endpoint!(api::ready).everywhere(),
        endpoint!(api::metrics).everywhere().compressed(),
        endpoint!(api::openapi_json).everywhere(),
        endpoint!(api::catalogue).everywhere(),
        endpoint!(api::x402).everywhere(),
        endpoint!(api::x402_json).everywhere(),
    ])
});

/// Whether the API has this path, with any method. A trailing slash makes no difference.
pub(crate) fn is_path(path: &str) -> bool {
    ENDPOINTS.at(path).next().is_some()
}

/// Whether the path of an endpoint begins with this segment.
pub(crate) fn has_first_segment(segment: &str) -> bool {
    ENDPOINTS.iter().any(|endpoint| endpoint.path.split('/').nth(1) == Some(segment))
}

/// Whether every process serves the path, whichever surfaces it is configured for. A trailing slash makes a difference.
pub(crate) fn is_everywhere(path: &str) -> bool {
    ENDPOINTS.iter().any(|endpoint| endpoint.is_everywhere && endpoint.path == path)
}

/// Whether a path supports `HEAD`.
pub(crate) fn takes_head(path: &str) -> bool {
    ENDPOINTS.at(path).any(|(endpoint, _)| endpoint.takes_head)
}

/// Whether responses of a path may be compressed.
pub(crate) fn is_compressed(path: &str) -> bool {
    ENDPOINTS.at(path).any(|(endpoint, _)| endpoint.is_compressed)
}

/// Serves every endpoint, and responds to unmatched requests. Never rejects.
pub(crate) fn routes(app: Arc<App>) -> BoxedFilter<(Result<Reply, Problem>,)> {
    let request = warp::ext::optional()
        .and(warp::ext::optional())
        .and(warp::header::headers_cloned())
        .and(warp::query::raw().or(warp::any().map(String::new)).unify())
        .and(warp::body::bytes())
        .map(|client, address, headers, query, body| Request {
            client,
            address,
            headers,
            path: Vec::new(),
            query,
            body,
        });
    warp::method()
        .and(warp::path::full())
        .and(request)
        .then(move |method: Method, path: FullPath, request| {
            let app = Arc::clone(&app);
            async move { ENDPOINTS.call(&app, &method, path.as_str(), request).await }
        })
        .boxed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_found_by_path() {
        // A request's path, the path of its endpoints, the values of the parameters.
        let table: &[(&str, Option<&str>, &[&str])] = &[
            ("/health", Some("/health"), &[]),
            ("/health/", Some("/health"), &[]),
            ("/health//", None, &[]),
            ("/keys/key_1", Some("/keys/{id}"), &["key_1"]),
            ("/keys/a%2Fb%20c/", Some("/keys/{id}"), &["a/b c"]),
            ("/keys/%ff", None, &[]),
            ("/keys/", Some("/keys"), &[]),
            ("/keys/leaked", Some("/keys/leaked"), &[]),
            ("/keys/leaked/rotate", Some("/keys/{id}/rotate"), &["leaked"]),
            ("/", None, &[]),
            ("", None, &[]),
        ];
        for (path, expected, values) in table {
            let found: Vec<_> = ENDPOINTS.at(path).collect();
            assert_eq!(found.first().map(|(endpoint, _)| &*endpoint.path), *expected, "{path}");
            assert!(found.iter().all(|(endpoint, of)| Some(&*endpoint.path) == *expected && of == values), "{path}");
        }
    }
}
