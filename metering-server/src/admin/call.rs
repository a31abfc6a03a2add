//! Serves calls: each is declared once, in `metering-admin`.

use http::Method;
use metering_admin::{AdminCall, Authority, Body, Visitor, calls};
use metering_core::operators::Role;

use super::app::AdminApp;
use super::session::no_content;
use crate::endpoints::{self, Endpoint, Request, body, describe};
use crate::http::{Problem, Reply};

/// The endpoints of all calls.
pub(super) fn endpoints() -> Vec<Endpoint<AdminApp>> {
    let mut endpoints = Endpoints(Vec::new());
    calls::each(&mut endpoints);
    endpoints.0
}

struct Endpoints(Vec<Endpoint<AdminApp>>);

impl Visitor for Endpoints {
    fn call<C: AdminCall>(&mut self) {
        let endpoint =
            Endpoint::declared(C::METHOD, C::PATH, |app, request| Box::pin(serve::<C>(app, request)), describe::<C>);
        // The response contains no secrets.
        self.0.push(if C::METHOD == Method::GET { endpoint.compressed() } else { endpoint });
    }
}

async fn serve<C: AdminCall>(app: &AdminApp, request: Request) -> Result<Reply, Problem> {
    // Authenticate the caller first: only operators may see what is wrong with a request.
    let caller = app.viewer(&request).await?;
    let body = match C::Body::none() {
        Some(none) => none,
        None => body::read(&request.body)?,
    };
    if C::By::ROLE == Role::Manager {
        caller.check_manager(&request.headers)?;
    }
    let by = C::By::of(caller.actor, body.reason())?;
    let parameters = request.parameters::<C>()?;
    let reply = C::run(&app.administration, &by, parameters, body).await?;
    if C::By::ROLE == Role::Manager {
        // Some actions have something delivered.
        app.app.wake_courier.wake();
    }
    if C::SUCCESS.0 == 204 { Ok(no_content()) } else { endpoints::reply::<C>(&reply) }
}
