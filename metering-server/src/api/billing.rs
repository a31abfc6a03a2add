//! Charging over HTTP, for resolvers that serve the requests themselves.

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use metering_core::wire::{DeductAnswer, DeductRequest, ErrorBody, ErrorCode, LookupAnswer, metered_headers};
use metering_core::{ApiKey, Error};

use crate::app::App;
use crate::credentials;
use crate::http::{Problem, Reply, json, with_headers};

const SECRET_HEADER: &str = "x-bds-internal-billing-secret";

/// Charge a request that another service serves
///
/// Exists only where the operator has configured an internal billing secret.
#[utoipa::path(post, path = "/internal/billing/deduct", tag = "internal",
    security(("billing_secret" = [], "bearer" = [])), request_body = DeductRequest, responses(
    (status = 200, description = "Charged", body = DeductAnswer),
    (status = 400, description = "`invalid_json`, `validation_failed`", body = ErrorBody),
    (status = 401, description = "`unauthorized`", body = ErrorBody),
    (status = 402, description = "`insufficient_credits`", body = ErrorBody),
    (status = 403, description = "`forbidden`", body = ErrorBody),
    (status = 404, description = "`not_found`: no secret is configured", body = ErrorBody),
    (status = 429, description = "`rate_limited`", body = ErrorBody),
    (status = 503, description = "`overloaded`, `storage_unavailable`", body = ErrorBody),
))]
pub(crate) async fn deduct(app: &App, headers: HeaderMap, body: Bytes) -> Result<Reply, Problem> {
    let key = caller(app, &headers)?;
    let request = match read(&body) {
        Ok(request) => request,
        Err(problem) => {
            app.service.authenticate(key.as_ref()).await?;
            return Err(problem);
        }
    };
    let receipt = app.service.deduct(key.as_ref(), &request).await?;
    let answer = DeductAnswer {
        ok: true,
        credit_balance: receipt.balance,
        amount_charged: receipt.charged,
        org_id: receipt.account.to_string(),
    };
    Ok(with_headers(json(StatusCode::OK, &answer), metered_headers(&receipt)))
}

/// Whose key it is, without charging
///
/// Exists only where the operator has configured an internal billing secret.
#[utoipa::path(post, path = "/internal/billing/lookup", tag = "internal",
    security(("billing_secret" = [], "bearer" = [])), responses(
    (status = 200, description = "The account", body = LookupAnswer),
    (status = 401, description = "`unauthorized`", body = ErrorBody),
    (status = 403, description = "`forbidden`", body = ErrorBody),
    (status = 404, description = "`not_found`: no secret is configured", body = ErrorBody),
    (status = 503, description = "`storage_unavailable`", body = ErrorBody),
))]
pub(crate) async fn lookup(app: &App, headers: HeaderMap) -> Result<Reply, Problem> {
    let key = caller(app, &headers)?;
    Ok(json(StatusCode::OK, &app.service.lookup(key.as_ref()).await?))
}

/// The client's key, handed on by a service that has proven itself.
fn caller(app: &App, headers: &HeaderMap) -> Result<Option<ApiKey>, Problem> {
    let secret = app.billing_secret.as_ref().ok_or_else(Problem::not_found)?;
    let sent = headers.get(SECRET_HEADER).map(http::HeaderValue::as_bytes).unwrap_or_default();
    if !secret.admits(sent) {
        let message = "Send the internal billing secret as X-BDS-Internal-Billing-Secret.";
        return Err(Problem::new(ErrorCode::Forbidden, message));
    }
    Ok(credentials::key(headers))
}

fn read(body: &[u8]) -> Result<DeductRequest, Problem> {
    let mut json = serde_json::Deserializer::from_slice(body);
    let request = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let (path, cause) = (error.path().to_string(), error.into_inner());
        if cause.is_data() {
            let body_itself = path == "." || path.starts_with('[');
            return Error::field(if body_itself { "body" } else { &path }, cause).into();
        }
        not_json(&cause)
    })?;
    json.end().map_err(|error| not_json(&error))?;
    // serde reads a struct from an array of its values too, which no client means.
    if body.trim_ascii_start().starts_with(b"[") {
        return Err(Error::field("body", "must be a JSON object").into());
    }
    Ok(request)
}

fn not_json(error: &serde_json::Error) -> Problem {
    Problem::new(ErrorCode::InvalidJson, format!("The body is not JSON: {error}."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_a_body_is_told_apart() {
        use ErrorCode::{InvalidJson, ValidationFailed};
        // body, code
        let table: [(&[u8], ErrorCode); 10] = [
            (b"", InvalidJson),
            (b"{", InvalidJson),
            (b"{\"path\": \"/x\", \"method\": \"GET\"} trailing", InvalidJson),
            (b"{\"path\": \"\xff\", \"method\": \"GET\"}", InvalidJson),
            (b"[]", ValidationFailed),
            (b"[\"/x\", \"GET\", null, 1, null, null, null, null]", ValidationFailed),
            (b"{}", ValidationFailed),
            (b"{\"path\": 5, \"method\": \"GET\"}", ValidationFailed),
            (b"{\"path\": \"/x\", \"method\": \"GET\", \"credit_weight\": -1}", ValidationFailed),
            (b"{\"path\": \"/x\", \"method\": \"GET\", \"credit_weight\": 1e999}", ValidationFailed),
        ];
        for (body, code) in table {
            let problem = read(body).unwrap_err();
            assert_eq!(problem.code(), code, "{}", String::from_utf8_lossy(body));
        }
        let request = read(b"{\"path\": \"/x\", \"method\": \"GET\", \"credit_weight\": 2.5, \"unknown\": 1}").unwrap();
        assert_eq!(request.credit_weight, "2.5".parse().ok());
    }
}
