//! Charging over HTTP, for services (resolvers) that serve the requests themselves.

use http::{HeaderMap, StatusCode};
use metering_core::ApiKey;
use metering_core::wire::{
    BILLING_SECRET_HEADER, DeductRequest, DeductResponse, ErrorCode, HoldResponse, LookupResponse, MeteredHeaders,
    PREFER_HEADER, SettleRequest, prefers_receipt,
};

use crate::access::credentials;
use crate::api::app::{App, BillingSecret};
use crate::api::payable::Payable;
use crate::endpoints::Request;
use crate::endpoints::body::read;
use crate::http::{Problem, Reply, json, with_headers};

pub(crate) async fn deduct(app: &App, request: Request) -> Result<Reply, Problem> {
    let key = caller(app, &request.headers)?;
    // A resolver may send nothing at all: that is a request of the default weight.
    let body: &[u8] = if request.body.trim_ascii().is_empty() { b"{}" } else { &request.body };
    let charge: DeductRequest = match read(body) {
        Ok(charge) => charge,
        Err(problem) => {
            // Not `authenticate`: the client's address is in the body.
            app.service.lookup(key.as_ref()).await?;
            return Err(problem);
        }
    };
    let payable = Payable::read(&app.service, app.service.resource_of(&charge), key.as_ref(), &request.headers)?;
    let receipt = match app.service.deduct(key.as_ref(), &charge, payable.payment()).await {
        Ok(receipt) => receipt,
        Err(error) => return Err(payable.refused(error)),
    };
    let response = DeductResponse {
        ok: true,
        credit_balance: receipt.balance,
        amount_charged: receipt.charged,
        org_id: receipt.account.to_string(),
    };
    let mut headers = MeteredHeaders::of(&receipt).lines();
    if let Some(key) = &key {
        headers.extend(app.service.receipt_headers(&receipt, key, prefers(&request.headers)).await);
    }
    let reply = with_headers(json(StatusCode::OK, &response), headers);
    Ok(payable.charged(reply, receipt.balance))
}

pub(crate) async fn lookup(app: &App, request: Request) -> Result<LookupResponse, Problem> {
    let key = caller(app, &request.headers)?;
    Ok(app.service.lookup(key.as_ref()).await?)
}

pub(crate) async fn settle(app: &App, request: Request) -> Result<HoldResponse, Problem> {
    check_secret(app, &request.headers)?;
    let ended: SettleRequest = read(&request.body)?;
    Ok(app.service.holds().settle(&ended).await?)
}

/// The client's key, passed on by a service that sent the billing secret.
pub(super) fn caller(app: &App, headers: &HeaderMap) -> Result<Option<ApiKey>, Problem> {
    check_secret(app, headers)?;
    Ok(credentials::key(headers)?)
}

/// Whether the client prefers a signed receipt.
pub(super) fn prefers(headers: &HeaderMap) -> bool {
    prefers_receipt(headers.get_all(PREFER_HEADER).iter().map(http::HeaderValue::as_bytes))
}

/// Rejects callers without a secret of this name.
pub(super) fn admit(secret: Option<&BillingSecret>, name: &str, headers: &HeaderMap) -> Result<(), Problem> {
    let secret = secret.ok_or_else(Problem::not_found)?;
    let sent = headers.get(BILLING_SECRET_HEADER).map(http::HeaderValue::as_bytes).unwrap_or_default();
    if secret.admits(sent) {
        return Ok(());
    }
    let message = format!("Send the internal {name} secret in the X-BDS-Internal-Billing-Secret header.");
    Err(Problem::new(ErrorCode::Forbidden, message))
}

/// Rejects callers without the billing secret.
pub(super) fn check_secret(app: &App, headers: &HeaderMap) -> Result<(), Problem> {
    admit(app.billing_secret.as_ref(), "billing", headers)
}
