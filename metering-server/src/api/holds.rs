//! Requests whose credits are held: placed and settled by services that serve requests themselves, and looked up by the
//! accounts that pay.

use http::{HeaderMap, StatusCode};
use metering_core::wire::{
    CaptureRequest, HoldFieldNames, HoldRequest, HoldResponse, ReleaseRequest, RequestDocument, RequestsDocument,
};

use super::billing::{caller, check_secret, prefers};
use crate::api::app::App;
use crate::api::payable::Payable;
use crate::endpoints::Request;
use crate::endpoints::body::read;
use crate::http::{Problem, Reply, json};

pub(crate) async fn held_requests(app: &App, request: Request) -> Result<RequestsDocument, Problem> {
    Ok(app.service.holds().list(&request.sender()?).await?)
}

pub(crate) async fn request(app: &App, request: Request) -> Result<RequestDocument, Problem> {
    let id = request.segment(0);
    let holds = app.service.holds().with_receipt(prefers(&request.headers));
    let mut document = holds.get(&request.sender()?, id).await?;
    if document.upstream.is_none() {
        let upstream = id.parse().ok().and_then(|id| app.gateway.named_upstreams().served(id));
        document.upstream = upstream.map(str::to_owned);
    }
    Ok(document)
}

pub(crate) async fn hold(app: &App, request: Request) -> Result<Reply, Problem> {
    let key = caller(app, &request.headers)?;
    // Each part from the same object, so that errors name the field.
    let parts = || {
        let _: HoldFieldNames = read(&request.body)?;
        Ok(HoldRequest { of: read(&request.body)?, terms: read(&request.body)? })
    };
    let parts = parts();
    let hold = match parts {
        Ok(hold) => hold,
        Err(problem) => {
            // Not `authenticate`: the client's address is in the body.
            app.service.lookup(key.as_ref()).await?;
            return Err(problem);
        }
    };
    let payable = Payable::read(&app.service, app.service.resource_of(&hold.of), key.as_ref(), &request.headers)?;
    match app.service.hold_for(key.as_ref(), &hold, payable.payment()).await {
        Ok(held) => Ok(payable.charged(json(StatusCode::OK, &held), held.credit_balance)),
        Err(error) => Err(payable.refused(error)),
    }
}

pub(crate) async fn capture(app: &App, request: Request) -> Result<HoldResponse, Problem> {
    let report: CaptureRequest = settling(app, &request.headers, &request.body)?;
    Ok(app.service.holds().capture(&report).await?)
}

pub(crate) async fn release(app: &App, request: Request) -> Result<HoldResponse, Problem> {
    let release: ReleaseRequest = settling(app, &request.headers, &request.body)?;
    Ok(app.service.holds().release(&release.id).await?)
}

/// The body of a request that settles a hold, from a service that sent the billing secret.
fn settling<T: serde::de::DeserializeOwned>(app: &App, headers: &HeaderMap, body: &[u8]) -> Result<T, Problem> {
    check_secret(app, headers)?;
    read(body)
}
