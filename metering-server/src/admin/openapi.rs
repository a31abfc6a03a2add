//! The OpenAPI document of the operators' API.

use metering_core::wire::ErrorBody;
use utoipa::openapi::PathItem;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::{Modify, OpenApi, openapi};

use super::routes::ENDPOINTS;
use crate::endpoints::errors::{error, share};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Administration",
        description = "What operators do over HTTP. Send the token that `metering admin operator create` printed as \
            `Authorization: Bearer opr_...`. Viewers may read; managers may take actions. Every action needs a reason \
            and is in the audit log.",
        license(name = "MIT OR Apache-2.0"),
    ),
    components(schemas(ErrorBody)),
    modifiers(&Security),
    tags(
        (name = "accounts", description = "Accounts, their records, and actions on them"),
        (name = "plans", description = "Plans"),
        (name = "catalogue", description = "The catalogue of metered routes"),
        (name = "configuration", description = "The server's configuration"),
        (name = "payments", description = "Payments on chains"),
        (name = "webhooks", description = "Webhooks and their deliveries"),
        (name = "reports", description = "The business, and the server's health"),
        (name = "search", description = "One search for accounts, keys, payments and requests"),
        (name = "audit", description = "The audit log: actor, action, time and reason"),
        (name = "operators", description = "Who may administer the service"),
        (name = "session", description = "Signing in from a browser"),
        (name = "descriptions", description = "This document"),
    ),
)]
struct Described;

struct Security;

impl Modify for Security {
    fn modify(&self, document: &mut openapi::OpenApi) {
        let bearer = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
        document.components.get_or_insert_default().add_security_scheme("operator", bearer);
    }
}

/// The document of a service with this name.
pub(super) fn document(brand: &str) -> openapi::OpenApi {
    let mut document = Described::openapi();
    document.info.title = format!("{brand} administration");
    document.servers = Some(vec![openapi::Server::new("/")]);
    for endpoint in ENDPOINTS.iter() {
        document.merge(endpoint.document());
    }
    document.paths.paths.values_mut().for_each(add_common_responses);
    share(&mut document);
    document
}

/// Adds what every endpoint for operators may respond with.
fn add_common_responses(item: &mut openapi::PathItem) {
    let PathItem { get, put, post, delete, .. } = item;
    let reads = [get].into_iter().flatten().map(|operation| (operation, false));
    let writes = [put, post, delete].into_iter().flatten().map(|operation| (operation, true));
    for (operation, is_action) in reads.chain(writes).filter(|(operation, _)| operation.security.is_some()) {
        let common = [
            ("400", "`validation_failed`, `invalid_json`"),
            ("401", "`unauthorized`"),
            ("403", "`forbidden`: only managers may do this, or the CSRF token is missing"),
            ("503", "`storage_unavailable`, `outcome_unknown`"),
        ];
        for (status, description) in common.into_iter().filter(|(status, _)| is_action || *status != "403") {
            operation.responses.responses.entry(status.to_owned()).or_insert(error(description).into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_endpoint_is_described_and_needs_an_operator() {
        let document = serde_json::to_value(document("Acme")).unwrap();
        assert_eq!(document["info"]["title"], "Acme administration");
        for endpoint in ENDPOINTS.iter() {
            let method = endpoint.method.as_str().to_lowercase();
            let operation = &document["paths"][&endpoint.path][&method];
            let is_open = matches!(
                (method.as_str(), endpoint.path.as_str()),
                ("post" | "delete", "/admin/session")
                    | ("get", "/admin/openapi.json" | "/admin/oidc" | "/admin/oidc/start" | "/admin/oidc/callback")
            );
            assert_eq!(operation["security"].is_null(), is_open, "{method} {}", endpoint.path);
        }
    }
}
