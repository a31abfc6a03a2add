//! Plans and the catalogue.

use http::StatusCode;
use metering_core::administration::check_catalogue;
use metering_core::payments::{Plan, PlanKey};
use metering_core::wire::admin::{CatalogueCheckDocument, PlanRequest, PlanRow, PlansDocument, ReasonRequest};
use metering_core::wire::{ErrorBody, ErrorCode};

use super::app::AdminApp;
use super::session::no_content;
use crate::endpoints::Request;
use crate::http::{Problem, Reply, json};
use crate::run::conflict;

/// The path of [`check`].
pub(super) const CHECK: &str = "/admin/catalogue/check";

/// All plans, on sale or not
#[utoipa::path(get, path = "/admin/plans", tag = "plans", security(("operator" = [])), responses(
    (status = 200, description = "Plans, in the order of display", body = PlansDocument),
    (status = 401, description = "`unauthorized`", body = ErrorBody),
))]
pub(super) async fn plans(app: &AdminApp, request: Request) -> Result<Reply, Problem> {
    app.viewer(&request).await?;
    let plans = app.administration.plans().await?;
    Ok(json(StatusCode::OK, &PlansDocument { plans }))
}

/// Save a plan, in place of the one with the same id and chain
#[utoipa::path(put, path = "/admin/plans", tag = "plans", security(("operator" = [])), request_body = PlanRequest, responses(
    (status = 200, description = "The plan", body = PlanRow),
    (status = 400, description = "`validation_failed`", body = ErrorBody),
))]
pub(super) async fn put_plan(app: &AdminApp, request: Request) -> Result<Reply, Problem> {
    let wanted: PlanRequest = app.read(&request).await?;
    let action = app.action(&request, &wanted.reason).await?;
    app.check_recipient(&wanted.plan).await?;
    Ok(json(StatusCode::OK, &app.administration.put_plan(&action, wanted.plan).await?))
}

/// Put a plan on sale
#[utoipa::path(post, path = "/admin/plans/{chain_id}/{id}/activate", tag = "plans", security(("operator" = [])),
    request_body = ReasonRequest, params(
    ("chain_id" = u64, Path, description = "The chain's id"), ("id" = String, Path, description = "The plan's id"),
), responses(
    (status = 204, description = "It is on sale"),
    (status = 404, description = "`not_found`", body = ErrorBody),
))]
pub(super) async fn activate_plan(app: &AdminApp, request: Request) -> Result<Reply, Problem> {
    let action = app.bare_action(&request).await?;
    app.administration.set_plan_active(&action, &key(&request)?, true).await?;
    Ok(no_content())
}

/// Take a plan off sale
#[utoipa::path(post, path = "/admin/plans/{chain_id}/{id}/deactivate", tag = "plans", security(("operator" = [])),
    request_body = ReasonRequest, params(
    ("chain_id" = u64, Path, description = "The chain's id"), ("id" = String, Path, description = "The plan's id"),
), responses(
    (status = 204, description = "It is off sale"),
    (status = 404, description = "`not_found`", body = ErrorBody),
))]
pub(super) async fn deactivate_plan(app: &AdminApp, request: Request) -> Result<Reply, Problem> {
    let action = app.bare_action(&request).await?;
    app.administration.set_plan_active(&action, &key(&request)?, false).await?;
    Ok(no_content())
}

/// Remove a plan
#[utoipa::path(post, path = "/admin/plans/{chain_id}/{id}/remove", tag = "plans", security(("operator" = [])),
    request_body = ReasonRequest, params(
    ("chain_id" = u64, Path, description = "The chain's id"), ("id" = String, Path, description = "The plan's id"),
), responses(
    (status = 204, description = "It is gone"),
    (status = 404, description = "`not_found`", body = ErrorBody),
))]
pub(super) async fn remove_plan(app: &AdminApp, request: Request) -> Result<Reply, Problem> {
    let action = app.bare_action(&request).await?;
    app.administration.remove_plan(&action, &key(&request)?).await?;
    Ok(no_content())
}

impl AdminApp {
    /// Over HTTP, customers' payments can go only where they go already: to the chain's recipient, or to the plan's own.
    /// Whoever gets hold of a token must not be able to redirect them.
    async fn check_recipient(&self, plan: &Plan) -> Result<(), Problem> {
        let Some(recipient) = plan.recipient else { return Ok(()) };
        let of_chain =
            self.chains.iter().any(|(_, chain)| chain.chain_id == plan.chain_id && chain.recipient == recipient);
        let plans = self.administration.plans().await?;
        let unchanged = plans.iter().any(|known| known.key() == plan.key() && known.recipient == Some(recipient));
        if of_chain || unchanged {
            return Ok(());
        }
        let message = "Another recipient can be set only on the store itself, with `metering admin plan set`.";
        Err(Problem::new(ErrorCode::Forbidden, message))
    }
}

fn key(request: &Request) -> Result<PlanKey, Problem> {
    Ok(PlanKey { chain_id: request.parameter(0, "chain_id")?, id: request.parameter(1, "id")? })
}

/// The catalogue that is served
#[utoipa::path(get, path = "/admin/catalogue", tag = "catalogue", security(("operator" = [])), responses(
    (status = 200, description = "The catalogue file", content_type = "application/json"),
    (status = 401, description = "`unauthorized`", body = ErrorBody),
))]
pub(super) async fn catalogue(app: &AdminApp, request: Request) -> Result<Reply, Problem> {
    app.viewer(&request).await?;
    Ok(app.app.documents.catalogue(&request.headers))
}

/// Check a catalogue, and compare its prices with those that are served
///
/// Changes nothing: a catalogue takes effect when it is applied, or when its file is in place and the server reloads its
/// configuration.
#[utoipa::path(post, path = "/admin/catalogue/check", tag = "catalogue", security(("operator" = [])),
    request_body(content = String, description = "The text of a catalogue file", content_type = "application/json"), responses(
    (status = 200, description = "Whether it is valid, and what would change", body = CatalogueCheckDocument),
    (status = 401, description = "`unauthorized`", body = ErrorBody),
))]
pub(super) async fn check(app: &AdminApp, request: Request) -> Result<Reply, Problem> {
    app.viewer(&request).await?;
    let text = std::str::from_utf8(&request.body);
    let text = text.map_err(|_| Problem::new(ErrorCode::InvalidJson, "The catalogue is not UTF-8 text."))?;
    Ok(json(StatusCode::OK, &check_catalogue(app.app.service.catalogue(), text, conflict)))
}
