//! Child accounts of the caller's account.

use metering_client::calls::child_accounts::{GetChildrenUsage, ListChildAccounts};
use metering_core::access::{Right, Scope};
use metering_core::store::Cursor;
use metering_core::wire::{
    ChangeChildRequest, ChildAccountResponse, ChildAccountsDocument, ChildrenUsageDocument, ClosedChildResponse,
    CreateChildRequest, IssuedChildResponse, MoveCreditsRequest, MovedCreditsResponse,
};

use crate::api::account::{first_key, parameters};
use crate::api::app::App;
use crate::endpoints::Request;
use crate::endpoints::body::read;
use crate::http::Problem;
use crate::operations::metrics::counted;

pub(crate) async fn create_child_account(app: &App, request: Request) -> Result<IssuedChildResponse, Problem> {
    let (sender, _) = first_key(app, &request, Right::Own).await?;
    let once = request.idempotency_key()?;
    let wanted: CreateChildRequest = read(&request.body)?;
    Ok(counted("child_account", app.service.child_accounts().create(&sender, &wanted, once.as_ref()).await)?)
}

pub(crate) async fn child_accounts(app: &App, request: Request) -> Result<ChildAccountsDocument, Problem> {
    let page = parameters::<ListChildAccounts>(app, &request, Scope::Read).await?;
    let after = page.after.as_ref().map(Cursor::as_str);
    Ok(app.service.child_accounts().list(&request.sender()?, after, page.limit.0).await?)
}

pub(crate) async fn child_accounts_usage(app: &App, request: Request) -> Result<ChildrenUsageDocument, Problem> {
    let of = parameters::<GetChildrenUsage>(app, &request, Scope::Read).await?;
    Ok(app.service.child_accounts().usage(&request.sender()?, of.days.0).await?)
}

pub(crate) async fn child_account(app: &App, request: Request) -> Result<ChildAccountResponse, Problem> {
    Ok(app.service.child_accounts().get(&request.sender()?, request.segment(0)).await?)
}

pub(crate) async fn change_child_account(app: &App, request: Request) -> Result<ChildAccountResponse, Problem> {
    let (sender, _) = first_key(app, &request, Right::Own).await?;
    let wanted: ChangeChildRequest = read(&request.body)?;
    Ok(counted("child_change", app.service.child_accounts().change(&sender, request.segment(0), &wanted).await)?)
}

pub(crate) async fn move_credits(app: &App, request: Request) -> Result<MovedCreditsResponse, Problem> {
    let (sender, _) = first_key(app, &request, Right::Own).await?;
    let once = request.idempotency_key()?;
    let wanted: MoveCreditsRequest = read(&request.body)?;
    let moved = app.service.child_accounts().move_credits(&sender, request.segment(0), &wanted, once.as_ref()).await;
    Ok(counted("credit_move", moved)?)
}

pub(crate) async fn rotate_child_account(app: &App, request: Request) -> Result<IssuedChildResponse, Problem> {
    let (sender, _) = first_key(app, &request, Right::Own).await?;
    Ok(counted("child_key", app.service.child_accounts().rotate(&sender, request.segment(0)).await)?)
}

pub(crate) async fn close_child_account(app: &App, request: Request) -> Result<ClosedChildResponse, Problem> {
    let (sender, _) = first_key(app, &request, Right::Own).await?;
    Ok(counted("child_closing", app.service.child_accounts().close(&sender, request.segment(0)).await)?)
}
