//! Buying credits alone with signed authorizations (x402).

use http::StatusCode;
use metering_core::Error;
use metering_core::access::Scope;
use metering_core::wire::ErrorBody;
use metering_pay::Bought;
use metering_pay::wire::{BoughtResponse, OffersDocument};

use super::payable::Payable;
use crate::api::app::App;
use crate::endpoints::Request;
use crate::http::{Problem, Reply, json, with_headers};
use crate::operations::metrics::counted;

/// Where people and clients pay.
const PAY: &str = "/credits/pay";
/// The same for the operator's own machines.
const PAY_INTERNAL: &str = "/internal/billing/pay";

/// What can be paid with a signature, without gas
///
/// The amounts that a payment may have, cheapest first, and what each buys. The list is empty if the service accepts no
/// such payments. Programs read offers from the 402 of the request that they want to make.
#[utoipa::path(get, path = "/credits/offers", tag = "payments", responses(
    (status = 200, description = "The offers", body = OffersDocument),
    (status = 503, description = "`storage_unavailable`", body = ErrorBody),
))]
pub(crate) async fn offers(app: &App, _: Request) -> Result<Reply, Problem> {
    Ok(json(StatusCode::OK, &app.payments.offers_document(&app.service).await?))
}

/// Buy credits with a signed payment
///
/// Without a payment, the response is a 402 with all offers, for clients of x402: version 2 in the header
/// `PAYMENT-REQUIRED`, version 1 in the body. Send the request again with a payment of one of them in
/// `PAYMENT-SIGNATURE` (version 2) or `X-PAYMENT` (version 1): it is credited to the account of the key, and the header
/// `PAYMENT-RESPONSE` or `X-PAYMENT-RESPONSE` has the receipt. The same payment sent again is credited once, and gets
/// the same response. After `settlement_pending`, send the same payment again; never sign another one.
#[utoipa::path(post, path = "/credits/pay", tag = "payments", security(("bearer" = []), ("api_key" = [])), responses(
    (status = 200, description = "Credited, now or earlier", body = BoughtResponse),
    (status = 400, description = "`validation_failed`: the payment cannot be read; nothing was taken", body = ErrorBody),
    (status = 401, description = "`unauthorized`, `key_expired`", body = ErrorBody),
    (status = 402, description = "`payment_required`: the offers; `payment_refused`: nothing was taken", body = ErrorBody),
    (status = 403, description = "`key_scope`, `key_network`", body = ErrorBody),
    (status = 404, description = "`not_found`: the service accepts no such payments", body = ErrorBody),
    (status = 409, description = "`payment_credited`: to another account", body = ErrorBody),
    (status = 429, description = "`rate_limited`", body = ErrorBody),
    (status = 503, description = "`settlement_pending`, `settlement_unavailable`, `storage_unavailable`, `outcome_unknown`", body = ErrorBody),
))]
pub(crate) async fn pay(app: &App, request: Request) -> Result<Reply, Problem> {
    bought(app, &request, PAY).await
}

/// Buy credits with a signed payment, from the operator's own machines
///
/// The same as `POST /credits/pay`. Paths below `/internal/` are not public.
#[utoipa::path(post, path = "/internal/billing/pay", tag = "internal", security(("bearer" = []), ("api_key" = [])), responses(
    (status = 200, description = "Credited, now or earlier", body = BoughtResponse),
    (status = 400, description = "`validation_failed`: the payment cannot be read; nothing was taken", body = ErrorBody),
    (status = 401, description = "`unauthorized`, `key_expired`", body = ErrorBody),
    (status = 402, description = "`payment_required`: the offers; `payment_refused`: nothing was taken", body = ErrorBody),
    (status = 403, description = "`key_scope`, `key_network`", body = ErrorBody),
    (status = 404, description = "`not_found`: the service accepts no such payments", body = ErrorBody),
    (status = 409, description = "`payment_credited`: to another account", body = ErrorBody),
    (status = 429, description = "`rate_limited`", body = ErrorBody),
    (status = 503, description = "`settlement_pending`, `settlement_unavailable`, `storage_unavailable`, `outcome_unknown`", body = ErrorBody),
))]
pub(crate) async fn pay_internal(app: &App, request: Request) -> Result<Reply, Problem> {
    bought(app, &request, PAY_INTERNAL).await
}

async fn bought(app: &App, request: &Request, path: &str) -> Result<Reply, Problem> {
    let sender = request.sender()?;
    // A caller that may not top up learns nothing more, and pays nothing.
    app.service.authorize(&sender, Scope::TopUp).await?;
    let payable = Payable::read(&app.service, app.service.asked(path, None, None), &request.headers)?;
    let bought = app.payments.buy(&app.service, (&sender).into(), payable.payment()).await;
    // Asking for the offers is not a step of a purchase.
    let bought = if matches!(bought, Err(Error::CreditsForSale)) { bought } else { counted("pay", bought) };
    match bought {
        Ok(Bought { document, receipt }) => {
            Ok(with_headers(json(StatusCode::OK, &document), receipt.into_iter().collect()))
        }
        Err(error) => Err(payable.refused(error)),
    }
}
