//! Dispatches each request to the gateway, a page, or the metering API.
//!
//! Requests come over the network or from within the process: MCP tools call here what other clients call over HTTP.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{HeaderValue, Method, Request, header};
use http_body::Body;
use http_body_util::{BodyExt, Full};
use metering_core::{Privacy, Service};
use tower_service::Service as _;
use tracing::Instrument;

use crate::api;
use crate::api::app::App;
use crate::authorize::Authorizer;
use crate::config::{Config, Surface};
use crate::http::{
    CrossOrigin, Problem, Reply, Response, compressed, into_response, no_oauth, prefers_html, without_body,
};
use crate::operations::spans;
use crate::pages::{self, PagesOrigin};

type Api = dyn Fn(Request<Full<Bytes>>) -> BoxFuture<'static, Response> + Send + Sync;

/// The gateway, the pages and the metering API, as far as this process serves them.
pub(crate) struct Front {
    app: Arc<App>,
    api: Box<Api>,
    cross_origin: CrossOrigin,
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
        let routes = warp::service(api::routes(Arc::clone(&app)));
        let api = move |request| -> BoxFuture<'static, Response> {
            let mut routes = routes.clone();
            Box::pin(async move {
                match routes.call(request).await {
                    Ok(response) => response.map(|body| body.map_err(Into::into).boxed_unsync()),
                    Err(never) => match never {},
                }
            })
        };
        let cross_origin = CrossOrigin::new(&config.web_origins().collect::<Vec<_>>());
        let authorizer = || Authorizer::new(Arc::clone(&app.service), cross_origin.clone(), config, app.bodies.clone());
        let authorizer = config.serves(Surface::Authorize).then(authorizer);
        Self {
            app,
            authorizer,
            api: Box::new(api),
            cross_origin,
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

    /// The surface that a path belongs to: authorize, gateway or metering.
    pub(crate) fn surface(&self, path: &str) -> Surface {
        if self.authorizer.is_some() && Authorizer::handles(path) {
            return Surface::Authorize;
        }
        if self.app.gateway.handles(path) { Surface::Gateway } else { Surface::Metering }
    }

    /// Responds to a request for a path of `surface`.
    pub(crate) async fn respond<B>(&self, surface: Surface, request: Request<B>) -> Response
    where
        B: Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let span = spans::of_request(surface, &request);
        let response = self.answer(surface, request).instrument(span.clone()).await;
        spans::responded(&span, Authorizer::status_of(&response));
        response
    }

    async fn answer<B>(&self, surface: Surface, request: Request<B>) -> Response
    where
        B: Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        if let (Surface::Authorize, Some(authorizer)) = (surface, &self.authorizer) {
            return authorizer.respond(request).await;
        }
        let privacy = Privacy::of(request.headers());
        let mut response = self.cross_origin.respond(request, |request| self.serve(surface, request)).await;
        privacy.protect(response.headers_mut());
        response
    }

    async fn serve<B>(&self, surface: Surface, request: Request<B>) -> Response
    where
        B: Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let at_pages_origin = self.pages_origin.as_ref().map(|origin| origin.is_named_by(&request));
        if surface == Surface::Gateway {
            // The catalogue decides which methods a route has, HEAD included: each has its own price.
            if !self.gateway || at_pages_origin == Some(true) {
                return into_response(Problem::not_found().into_reply());
            }
            return self.app.gateway.respond(request).await;
        }
        let path = request.uri().path();
        // `CONNECT host:port` and `OPTIONS *` have no path, and warp's filters panic on the former.
        let served = path.starts_with('/') && (self.metering || api::is_everywhere(path));
        if self.metering
            && let Some(reply) = self.app.pages.respond(request.method(), path, request.headers())
        {
            return into_response(match &self.pages_origin {
                Some(origin) if at_pages_origin == Some(false) => redirect_to_pages(origin, &request),
                _ => reply,
            });
        }
        if !served || !api::is_path(path) {
            let with_page = self.metering && at_pages_origin != Some(false);
            return self.not_found(&request, with_page);
        }
        let (mut head, body) = request.into_parts();
        let body = match self.app.bodies.read(body, self.max_body_bytes, &head.extensions).await {
            Ok(body) => body,
            Err(problem) => return into_response(problem.into_reply()),
        };
        let path = head.uri.path();
        let is_head = head.method == Method::HEAD && api::takes_head(path);
        let accepting = api::is_compressed(path).then(|| head.headers.clone());
        if is_head {
            head.method = Method::GET;
        }
        let response = (self.api)(Request::from_parts(head, Full::new(body))).await;
        let response = match accepting {
            Some(headers) => compressed(response, &headers).await,
            None => response,
        };
        if is_head { without_body(response) } else { response }
    }

    /// 404, as a page for browsers and as JSON for programs, also for those that look for OAuth.
    fn not_found<B>(&self, request: &Request<B>, with_page: bool) -> Response {
        let is_head = request.method() == Method::HEAD;
        if let Some(reply) = no_oauth(request.uri().path()) {
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
