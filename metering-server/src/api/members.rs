//! Members of an account, and its own log.

use metering_client::calls::members::GetAccountLog;
use metering_core::access::{Email, Right, Scope};
use metering_core::store::Cursor;
use metering_core::wire::{
    AccountLogDocument, ChangeMemberRequest, InvitationResponse, InviteMemberRequest, MemberResponse, MembersDocument,
    RemovedMemberResponse,
};

use crate::api::account::{first_key, parameters};
use crate::api::app::App;
use crate::endpoints::Request;
use crate::endpoints::body::read;
use crate::http::Problem;
use crate::operations::metrics::counted;

pub(crate) async fn members(app: &App, request: Request) -> Result<MembersDocument, Problem> {
    Ok(app.service.members().list(&request.sender()?).await?)
}

pub(crate) async fn invite_member(app: &App, request: Request) -> Result<InvitationResponse, Problem> {
    let (sender, _) = first_key(app, &request, Right::Own).await?;
    let wanted: InviteMemberRequest = read(&request.body)?;
    if let Some(Ok(email)) = wanted.email.as_deref().map(str::parse::<Email>) {
        // Each invitation is mail to an address that the account chose, so it has the same limits as mail of signups,
        // for any address.
        let client = request.client()?;
        app.limits.signup(&client)?;
        app.limits.mail(&client, &email)?;
    }
    Ok(counted("invitation", app.service.members().invite(&sender, &wanted).await)?)
}

pub(crate) async fn change_member(app: &App, request: Request) -> Result<MemberResponse, Problem> {
    let (sender, _) = first_key(app, &request, Right::Own).await?;
    let wanted: ChangeMemberRequest = read(&request.body)?;
    Ok(counted("member_change", app.service.members().change(&sender, request.segment(0), &wanted).await)?)
}

pub(crate) async fn remove_member(app: &App, request: Request) -> Result<RemovedMemberResponse, Problem> {
    // Every member may leave.
    let (sender, _) = first_key(app, &request, Right::Read).await?;
    Ok(counted("member_removal", app.service.members().remove(&sender, request.segment(0)).await)?)
}

pub(crate) async fn account_log(app: &App, request: Request) -> Result<AccountLogDocument, Problem> {
    let page = parameters::<GetAccountLog>(app, &request, Scope::Read).await?;
    let after = page.after.as_ref().map(Cursor::as_str);
    Ok(app.service.members().log(&request.sender()?, after, page.limit.0).await?)
}
