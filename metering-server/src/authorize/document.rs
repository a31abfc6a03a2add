//! The endpoint in the OpenAPI document.

use metering_core::wire::ErrorBody;
use utoipa::OpenApi;

/// Ask whether to forward a request, and charge it
///
/// For reverse proxies, with any method; those that append the original path may use paths below `/authorize/`.
/// Describe the original request in `X-Forwarded-Method` and `X-Forwarded-Uri`, or in `X-Original-Method` and
/// `X-Original-URI`, and pass on the client's headers. Only trusted proxies get a decision. A refusal is what the
/// gateway would respond with.
#[utoipa::path(get, path = "/authorize", tag = "internal", operation_id = "authorize",
    security(("bearer" = []), ("api_key" = [])), params(
    ("X-Forwarded-Method" = Option<String>, Header, description = "The method of the original request"),
    ("X-Forwarded-Uri" = Option<String>, Header, description = "The path and query of the original request"),
    ("X-Request-Id" = Option<String>, Header, description = "The proxy's id of the request. A retry with the same id is charged once"),
), responses(
    (status = 200, description = "Forward it; the body is empty. The route is not metered, or the request was charged", headers(
        ("X-Metering-Org-Id" = String, description = "The account"),
        ("X-BDS-Credit-Balance" = String, description = "The balance after the charge"),
        ("X-BDS-Credit-Charged" = String, description = "What was charged"),
        ("X-BDS-Credit-Held" = String, description = "The amount held until the request is settled"),
        ("X-BDS-Request-Id" = String, description = "The id to settle it with"),
        ("Metering-Receipt" = String, description = "A signed statement of the charge, if the client or the route requires one"),
    )),
    (status = 400, description = "`validation_failed`: the proxy's headers are missing or contradict each other; `invalid_path`, `invalid_parameter`", body = ErrorBody),
    (status = 401, description = "`unauthorized`, `key_expired`", body = ErrorBody),
    (status = 402, description = "`insufficient_credits`, `key_budget_exhausted`, `payment_refused`, `payment_required`", body = ErrorBody),
    (status = 403, description = "`forbidden`: the caller is not a trusted proxy; `key_scope`, `key_network`", body = ErrorBody),
    (status = 404, description = "`unknown_route`", body = ErrorBody),
    (status = 405, description = "`method_not_allowed`", body = ErrorBody),
    (status = 409, description = "`idempotency_in_progress`, `idempotency_key_used`", body = ErrorBody),
    (status = 429, description = "`rate_limited`", body = ErrorBody),
    (status = 503, description = "`overloaded`, `storage_unavailable`, `outcome_unknown`", body = ErrorBody),
))]
#[expect(dead_code, reason = "describes `Authorizer`, which takes any method")]
fn authorize() {}

#[derive(OpenApi)]
#[openapi(paths(authorize))]
struct Described;

/// The OpenAPI document of this endpoint alone.
pub(crate) fn describe() -> utoipa::openapi::OpenApi {
    Described::openapi()
}
