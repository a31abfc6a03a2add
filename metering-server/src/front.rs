//! Dispatches each request to the authorizer, the gateway, a page, or the metering API.
//!
//! Requests come over the network or from within the process: MCP tools call here what other clients call over HTTP.

mod destination;

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, header};
use http_body::Body;
use metering_client::calls::members::{ChangeMember, InviteMember, RemoveMember};
use metering_core::access::{Member, SessionCredentials};
use metering_core::wire::call::Call;
use metering_core::{Privacy, Service};
use tracing::Instrument;

use crate::access::session;
use crate::api::app::App;
use crate::authorize::Authorizer;
use crate::config::{Config, Surface};
use crate::endpoints::{self, Found};
use crate::http::{
    CrossOrigin, Problem, Reply, Response, compressed, into_response, no_oauth, prefers_html, without_body,
};
use crate::operations::spans;
use crate::pages::{self, ErrorLinks, PagesOrigin};

use destination::Destinations;
pub(crate) use destination::{Destination, MCP_PATHS};

/// The gateway, the pages and the metering API, as far as this process serves them.
pub(crate) struct Front {
    app: Arc<App>,
    destinations: Destinations,
    cross_origin: CrossOrigin,
    error_links: ErrorLinks,
    max_body_bytes: usize,
    gateway: bool,
    metering: bool,
    /// Responds to proxies, if this process serves them.
    authorizer: Option<Authorizer>,
    /// Set when the pages have a separate origin. Nothing from the upstream is served on it.
    pages_origin: Option<PagesOrigin>,
}

impl fmt::Debug for Front {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Front").field("app", &self.app).finish_non_exhaustive()
    }
}

impl Front {
    pub(crate) fn new(app: Arc<App>, config: &Config) -> Self {
        let cross_origin = CrossOrigin::new(&config.web_origins().collect::<Vec<_>>());
        let authorizer = || Authorizer::new(Arc::clone(&app.service), cross_origin.clone(), config, app.bodies.clone());
        let authorizer = config.serves(Surface::Authorize).then(authorizer);
        Self {
            destinations: Destinations::new(config, app.service.catalogue()),
            app,
            authorizer,
            cross_origin,
            error_links: ErrorLinks::new(config),
            max_body_bytes: config.http.max_body_bytes,
            gateway: config.serves(Surface::Gateway),
            metering: config.serves(Surface::Metering),
            pages_origin: PagesOrigin::new(config),
        }
    }

    /// The parts that it serves.
    pub(crate) fn app(&self) -> &Arc<App> {
        &self.app
    }

    /// The metering service.
    pub(crate) fn service(&self) -> &Arc<Service> {
        &self.app.service
    }

    /// Where a request with this method and path goes.
    pub(crate) fn destination(&self, method: &Method, path: &str) -> Destination {
        self.destinations.of(method, path)
    }

    /// Responds to a request for any destination but the MCP server, which calls this itself.
    pub(crate) async fn respond<B>(&self, destination: Destination, request: Request<B>) -> Response
    where
        B: Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let span = spans::of_request(destination.surface(), &request);
        let response = self.answer(destination, request).instrument(span.clone()).await;
        spans::responded(&span, Authorizer::status_of(&response));
        response
    }

    async fn answer<B>(&self, mut destination: Destination, request: Request<B>) -> Response
    where
        B: Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        if let (Destination::Authorize, Some(authorizer)) = (&destination, &self.authorizer) {
            return Box::pin(authorizer.respond(request)).await;
        }
        // The gateway's layer protects its responses itself.
        let privacy = (!matches!(destination, Destination::Gateway)).then(|| Privacy::of(request.headers()));
        let mut response = if self.cross_origin.allows(request.headers()) {
            let answered = self.cross_origin.respond(request, |request| {
                // Called at most once, so the `Nothing` that this leaves behind is never used.
                self.serve(std::mem::take(&mut destination), request)
            });
            // Boxed, as the other rare ways, to keep the future of a request small.
            Box::pin(answered).await
        } else {
            self.serve(destination, request).await
        };
        if let Some(privacy) = privacy {
            privacy.protect(response.headers_mut());
        }
        match self.error_links.linked(&mut response) {
            // A response to HEAD has no body.
            Some(body) if !response.body().is_end_stream() => into_response(response.map(|_| body)),
            _ => response,
        }
    }

    async fn serve<B>(&self, destination: Destination, request: Request<B>) -> Response
    where
        B: Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let destination = match destination {
            Destination::Api(found) => return self.call(found, request, None).await,
            // Boxed, because it is rare and would make every future larger.
            Destination::InSession(found) => return Box::pin(self.call_in_session(found, request)).await,
            other => other,
        };
        let at_pages_origin = self.pages_origin.as_ref().map(|origin| origin.is_named_by(&request));
        match destination {
            // The catalogue decides which methods a route has, HEAD included: each has its own price.
            Destination::Gateway if self.gateway && at_pages_origin != Some(true) => {
                self.app.gateway.respond(request).await
            }
            Destination::Gateway => into_response(Problem::not_found().into_reply()),
            Destination::Page => into_response(match &self.pages_origin {
                Some(origin) if at_pages_origin == Some(false) => redirect_to_pages(origin, &request),
                _ => self.app.pages.respond(request.method(), request.uri().path(), request.headers()),
            }),
            _ => self.not_found(&request, self.metering && at_pages_origin != Some(false)),
        }
    }

    /// Like [`Front::call`], for a browser that is signed in.
    async fn call_in_session<B>(&self, found: Found<'static, App>, request: Request<B>) -> Response
    where
        B: Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let is_head = request.method() == Method::HEAD && found.takes_head();
        let method = if is_head { Method::GET } else { request.method().clone() };
        if !found.takes_session(&method) {
            return into_response(Problem::not_found().into_reply());
        }
        let session = match session::token(&request) {
            Ok(token) => session::find(&self.app.service, &token).await,
            Err(problem) => Err(problem),
        };
        match session {
            Ok(session) => match session.member.clone().filter(|_| !method.is_safe()) {
                Some(member) => self.call_as_member(found, request, session, member).await,
                None => self.call(found, request, Some(session)).await,
            },
            Err(problem) => into_response(session::refused(problem, request.headers())),
        }
    }

    /// Calls an endpoint that may change something for a member, and logs the call in the account's log. Changes of members
    /// are logged in the transaction that makes them.
    async fn call_as_member<B>(
        &self,
        found: Found<'static, App>,
        request: Request<B>,
        session: SessionCredentials,
        member: Arc<Member>,
    ) -> Response
    where
        B: Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (call, subject) = found.named(request.method());
        let members = self.app.service.members();
        let begun = match [InviteMember::ID, ChangeMember::ID, RemoveMember::ID].contains(&call) {
            true => Ok(None),
            false => members.begin_action(&member, call, &subject).await,
        };
        let begun = match begun {
            Ok(begun) => begun,
            Err(error) => return into_response(Problem::from(error).into_reply()),
        };
        let response = self.call(found, request, Some(session)).await;
        if let Some(begun) = begun {
            members.end_action(begun, response.status().as_u16()).await;
        }
        response
    }

    /// Calls the endpoint of the metering API that has the method of the request.
    async fn call<B>(
        &self,
        found: Found<'static, App>,
        request: Request<B>,
        session: Option<SessionCredentials>,
    ) -> Response
    where
        B: Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (head, body) = request.into_parts();
        let body = match self.app.bodies.read(body, self.max_body_bytes, &head.extensions).await {
            Ok(body) => body,
            Err(problem) => return into_response(problem.into_reply()),
        };
        let is_head = head.method == Method::HEAD && found.takes_head();
        let method = if is_head { Method::GET } else { head.method.clone() };
        let accepting = found.is_compressed().then(|| head.headers.clone());
        let request = endpoints::Request { session, ..endpoints::Request::new(head, body) };
        let called = found.call(&self.app, &method, request).await;
        let response = into_response(called.unwrap_or_else(Problem::into_reply));
        let response = match accepting {
            Some(headers) => compressed(response, &headers).await,
            None => response,
        };
        if is_head { without_body(response) } else { response }
    }

    /// 404, as a page for browsers and as JSON for programs, also for those that look for OAuth.
    fn not_found<B>(&self, request: &Request<B>, with_page: bool) -> Response {
        let is_head = request.method() == Method::HEAD;
        if let Some(reply) = no_oauth(request.uri().path()).filter(|_| self.app.issuer.is_none()) {
            return if is_head { without_body(into_response(reply)) } else { into_response(reply) };
        }
        let page = with_page && (request.method() == Method::GET || is_head) && prefers_html(request.headers());
        let mut reply =
            if page { self.app.pages.not_found(request.headers()) } else { Problem::not_found().into_reply() };
        reply.headers_mut().append(header::VARY, HeaderValue::from_static("accept"));
        if is_head { without_body(into_response(reply)) } else { into_response(reply) }
    }
}

/// Redirects requests for a page on another host name to the origin of the pages.
fn redirect_to_pages<B>(origin: &PagesOrigin, request: &Request<B>) -> Reply {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return Problem::not_found().into_reply();
    }
    let target = request.uri().path_and_query().map_or("/", |target| target.as_str());
    pages::redirect(&origin.url_of(target))
}

#[cfg(test)]
mod future_sizes;
