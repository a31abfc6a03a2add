//! Balance and usage of the caller's account.

use metering_client::calls::account::{ActivityPage, GetUsageByEndpoint, GetUsageSummary, ListActivity};
use metering_core::AccountId;
use metering_core::access::{Right, Scope};
use metering_core::service::ActivityQuery;
use metering_core::wire::call::Call;
use metering_core::wire::{
    AccountExportDocument, ActivityDocument, BalanceDocument, ByEndpointDocument, UsageSummary, VolumesDocument,
};

use crate::access::credentials::Sender;
use crate::api::app::App;
use crate::endpoints::Request;
use crate::http::Problem;

pub(crate) async fn balance(app: &App, request: Request) -> Result<BalanceDocument, Problem> {
    Ok(app.service.usage().balance(&request.sender()?).await?)
}

pub(crate) async fn export(app: &App, request: Request) -> Result<AccountExportDocument, Problem> {
    Ok(app.service.export(&request.sender()?).await?)
}

pub(crate) async fn usage(app: &App, request: Request) -> Result<ActivityDocument, Problem> {
    let page = parameters::<ListActivity>(app, &request, Scope::Read).await?;
    let ActivityPage { limit, before, key, route, model, from, to } = page;
    let query = ActivityQuery { limit: limit.0, before, key, routes: route.unwrap_or_default(), model, from, to };
    Ok(app.service.usage().activity(&request.sender()?, query).await?)
}

pub(crate) async fn usage_summary(app: &App, request: Request) -> Result<UsageSummary, Problem> {
    let of = parameters::<GetUsageSummary>(app, &request, Scope::Read).await?;
    Ok(app.service.usage().summary(&request.sender()?, of.days.0).await?)
}

pub(crate) async fn usage_by_endpoint(app: &App, request: Request) -> Result<ByEndpointDocument, Problem> {
    let of = parameters::<GetUsageByEndpoint>(app, &request, Scope::Read).await?;
    Ok(app.service.usage().by_endpoint(&request.sender()?, of.days.0, of.limit.0).await?)
}

pub(crate) async fn usage_volumes(app: &App, request: Request) -> Result<VolumesDocument, Problem> {
    Ok(app.service.usage().volumes(&request.sender()?).await?)
}

/// The sender, if it is the account's first key or a member with this right, and the account. Counts a change.
pub(super) async fn first_key(app: &App, request: &Request, right: Right) -> Result<(Sender, AccountId), Problem> {
    let sender = request.sender()?;
    let actor = app.service.access().first_key(&sender, right).await?;
    app.limits.key_changes(&actor)?;
    Ok((sender, actor.account))
}

/// The parameters of a call. Only callers with a live key that has the scope see what is wrong with them.
pub(super) async fn parameters<C: Call>(app: &App, request: &Request, scope: Scope) -> Result<C::Parameters, Problem> {
    match request.parameters::<C>() {
        Ok(parameters) => Ok(parameters),
        Err(error) => Err(after_authorization(app, request, scope, error).await),
    }
}

/// Checks the key first: a caller without a live key that has the scope gets no other information.
pub(super) async fn after_authorization(
    app: &App,
    request: &Request,
    scope: Scope,
    error: impl Into<Problem>,
) -> Problem {
    let sender = match request.sender() {
        Ok(sender) => sender,
        Err(refused) => return refused.into(),
    };
    match app.service.access().authorize(&sender, scope).await {
        Ok(_) => error.into(),
        Err(refused) => refused.into(),
    }
}
