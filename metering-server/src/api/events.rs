//! Events of the caller's account, and the balance below which it gets one.

use metering_client::calls::webhooks::ListEvents;
use metering_core::access::{Right, Scope};
use metering_core::store::Cursor;
use metering_core::wire::{BalanceAlertDocument, BalanceAlertRequest, EventsDocument};

use crate::api::account::{first_key, parameters};
use crate::api::app::App;
use crate::endpoints::Request;
use crate::endpoints::body::read;
use crate::http::Problem;
use crate::operations::metrics::counted;

pub(crate) async fn events(app: &App, request: Request) -> Result<EventsDocument, Problem> {
    let page = parameters::<ListEvents>(app, &request, Scope::Read).await?;
    let after = page.after.as_ref().map(Cursor::as_str);
    Ok(app.service.webhooks().events(&request.sender()?, after, page.limit.0).await?)
}

pub(crate) async fn balance_alert(app: &App, request: Request) -> Result<BalanceAlertDocument, Problem> {
    Ok(app.service.webhooks().balance_alert(&request.sender()?).await?)
}

pub(crate) async fn set_balance_alert(app: &App, request: Request) -> Result<BalanceAlertDocument, Problem> {
    let (sender, _) = first_key(app, &request, Right::Pay).await?;
    let wanted: BalanceAlertRequest = read(&request.body)?;
    let set = app.service.webhooks().set_balance_alert(&sender, &wanted).await;
    Ok(counted("balance_alert", set)?)
}
