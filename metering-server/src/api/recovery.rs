//! Replaces a lost key, with proof of the wallet that paid.

use metering_core::wire::{ChallengeRequest, ChallengeResponse, VerifyRequest, VerifyResponse};

use crate::api::app::App;
use crate::endpoints::Request;
use crate::endpoints::body::read;
use crate::http::Problem;
use crate::operations::metrics::counted;

pub(crate) async fn challenge(app: &App, request: Request) -> Result<ChallengeResponse, Problem> {
    app.limits.recovery(&request.client()?)?;
    let wanted: ChallengeRequest = read(&request.body)?;
    app.limit_wallet(wanted.address.as_deref())?;
    Ok(counted("challenge", app.service.recovery().challenge(&wanted).await)?)
}

pub(crate) async fn verify(app: &App, request: Request) -> Result<VerifyResponse, Problem> {
    app.limits.recovery(&request.client()?)?;
    // Not counted per wallet: a challenge allows five wrong signatures, and its owner's correct one must get through.
    let proof: VerifyRequest = read(&request.body)?;
    Ok(counted("rotation", app.service.recovery().verify(&proof).await)?)
}
