//! Plans on sale.

use metering_client::calls::payments::ListPlans;

use crate::api::app::App;
use crate::endpoints::{Request, reply};
use crate::http::{Problem, Reply};

pub(crate) async fn plans(app: &App, _: Request) -> Result<Reply, Problem> {
    reply::<ListPlans>(&*app.service.payments().plans().await?)
}
