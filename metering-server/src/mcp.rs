//! The hosted MCP server: metered routes as tools, over both HTTP transports of MCP.
//!
//! `/mcp` is Streamable HTTP: each request is independent, so any node can serve it, and session ids only serve to
//! [cancel](cancelling) calls. The stream of a subscription to changes of the tools is a session. `GET /sse` and
//! `POST /messages/` are the older HTTP+SSE transport, deprecated in MCP, whose sessions live on one node. Every
//! request carries an API key, unless calls can be paid for without one. A tool call becomes a request with that key to
//! the [service](service), which charges it.
//!
//! A session belongs to the key that opened it and ends with it. A call's key is checked before any JSON-RPC is read,
//! and takes one of the key's slots. Nothing here charges: the request goes to the `Front` like one from outside, so
//! there is one charge path. A refusal becomes a result with `isError` and the gateway's JSON, because agents read
//! results, not status codes; only clients of MPP get errors of JSON-RPC, for offers, and clients of OAuth get a 403 if
//! their token lacks a scope.

mod backlog;
mod caller;
mod cancelling;
mod channel;
mod fair_slots;
mod guard;
mod message;
mod service;
mod sessions;
mod sse;
mod standalone;
mod token_scopes;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, header};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Full, StreamBody};
use metering_client::tools::{Callers, McpServer, ToolSettings, Toolbox};
use metering_client::{Client, HttpTransport, ServiceUrl};
use metering_core::wire::ErrorCode;
use metering_core::{Catalogue, ClientSource};
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use url::Url;

use crate::config::Config;
use crate::front::Front;
use crate::http::{Bodies, Connection, CrossOrigin, Problem, Response, Shutdown, accepts_json, bytes, into_response};
use crate::oauth::{Asking, Issuer};
use crate::pages::ErrorLinks;
use crate::run::{Current, RunError};

use caller::{Accounts, Caller};
use cancelling::{CallSession, Cancellable, Cancelling};
use guard::Guard;
use message::Subject;
use service::{OtherProcesses, ThisProcess};
use sessions::{CallPermit, SessionPermit, Sessions};
use sse::Sse;
pub(crate) use standalone::run_alone;
use token_scopes::TokenScopes;

/// Read timeout of responses from another process. Streams send something more often.
const READ_TIMEOUT: Duration = Duration::from_secs(60);

/// How long a call continues after its client has half-closed the connection. A client that goes away also looks
/// half-closed, and its stream is free for others within two seconds. A call may collect events for a long time, and
/// nothing can be sent before its response to find out whether the client is still there.
const HALF_CLOSED_WAIT: Duration = Duration::from_secs(1);

/// The media types that rmcp wants clients to accept. The service sends the second to subscriptions only.
const ACCEPTED: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");

/// The MCP surface.
pub(crate) struct Mcp {
    guard: Guard,
    cross_origin: CrossOrigin,
    error_links: ErrorLinks,
    accounts: Accounts,
    token_scopes: TokenScopes,
    sessions: Arc<Sessions>,
    sse: Sse,
    cancelling: Cancelling,
    server: McpServer,
    streamable: StreamableHttpService<McpServer, LocalSessionManager>,
    bodies: Bodies,
    max_body_bytes: usize,
    /// Who gives tokens, if this process does.
    issuer: Option<Issuer>,
}

impl std::fmt::Debug for Mcp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mcp").field("accounts", &self.accounts).finish_non_exhaustive()
    }
}

impl Mcp {
    /// The tools of a catalogue. They call this process or another, depending on the configuration.
    ///
    /// # Errors
    /// When two routes have the same tool name, or the other process's URL cannot be used.
    pub(crate) fn new(
        config: &Config,
        catalogue: &Catalogue,
        front: Option<&Arc<Current<Front>>>,
        listen: SocketAddr,
        shutdown: &Shutdown,
    ) -> Result<Self, RunError> {
        // One process has one budget for bodies.
        let bodies = front.map_or_else(|| Bodies::new(&config.http), |front| front.load().app().bodies.clone());
        let (client, accounts) = connect(config, front)?;
        let toolbox = Toolbox::with_prefix(catalogue, config.mcp.tool_prefix.clone());
        let toolbox = toolbox.map_err(|error| RunError::Setup(Box::new(error)))?;
        let settings = ToolSettings { stream_wait: config.mcp.stream_wait.duration() };
        let server = McpServer::new(Arc::new(toolbox), Callers::PerRequest(client), settings);
        let sessions = Arc::new(Sessions::new(&config.mcp, shutdown));
        let sse = Sse::new(Arc::clone(&sessions), server.clone(), prefix(config));
        // Host and Origin are checked here, for both transports.
        let streamable_config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .with_legacy_session_mode(false)
            .with_json_response(true)
            .with_max_request_body_bytes(config.http.max_body_bytes)
            .with_cancellation_token(shutdown.child_token());
        let serving = server.clone();
        let streamable = StreamableHttpService::new(
            move || Ok(serving.clone()),
            Arc::new(LocalSessionManager::default()),
            streamable_config,
        );
        let guard = Guard::new(config, listen);
        let cross_origin = CrossOrigin::new(config.mcp_origins());
        let (cancelling, max_body_bytes) = (Cancelling::default(), config.http.max_body_bytes);
        Ok(Self {
            guard,
            cross_origin,
            error_links: ErrorLinks::new(config),
            accounts,
            token_scopes: TokenScopes::default(),
            sessions,
            sse,
            cancelling,
            server,
            streamable,
            bodies,
            max_body_bytes,
            issuer: Issuer::new(config, listen),
        })
    }

    /// Serves other tools from now on, in open sessions too.
    pub(crate) fn replace_tools(&self, tools: Arc<Toolbox>) {
        self.server.replace_tools(tools);
    }

    /// Ends idle sessions and those of keys that may no longer be used, until shutdown.
    pub(crate) async fn watch(&self, interval: Duration) {
        self.sessions.watch(&self.accounts, interval).await;
    }

    /// Responds to a request.
    pub(crate) async fn respond<B>(&self, request: Request<B>) -> Response
    where
        B: Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let asking = self.issuer.as_ref().map(|_| Asking::new(request.headers(), request.uri().path()));
        let serve = |request: Request<B>| async {
            let is_streamable = request.uri().path() == "/mcp";
            let refusal = |problem: Problem| {
                let links = &self.error_links;
                into_response(match is_streamable {
                    true => message::refusal(problem, links),
                    false => links.link(problem.into_reply()),
                })
            };
            self.serve(request).await.unwrap_or_else(refusal)
        };
        let mut response = self.cross_origin.respond(request, serve).await;
        if response.status() == StatusCode::UNAUTHORIZED
            && let Some((issuer, asking)) = self.issuer.as_ref().zip(asking)
            && let Some(challenge) = issuer.challenge(&asking)
        {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        }
        response
    }

    async fn serve<B>(&self, request: Request<B>) -> Result<Response, Problem>
    where
        B: Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        self.guard.admit(request.headers())?;
        let (head, body) = request.into_parts();
        let caller = caller::authenticate(&self.accounts, &head).await?;
        match (head.uri.path(), &head.method) {
            ("/sse", &Method::GET) => self.sse.open(caller, head.extensions.get::<Connection>()),
            // Opens no session: it would end with the body, and HEAD sends none.
            ("/sse", &Method::HEAD) => Ok(Sse::head()),
            ("/sse", _) => Err(Problem::method_not_allowed(&["GET", "HEAD"])),
            ("/mcp", &Method::POST) => {
                if !accepts_json(&head.headers) {
                    let message = "Responses are JSON; accept application/json.";
                    return Err(Problem::new(ErrorCode::NotAcceptable, message));
                }
                let permit = self.sessions.reserve(&caller)?;
                let body = self.bodies.read(body, self.max_body_bytes, &head.extensions).await?;
                let body = message::with_nested_credential(body);
                match self.insufficient_scope(&caller, &head.headers, &body).await {
                    Some(refusal) => Ok(refusal),
                    None => self.call(&caller, head, body, permit).await,
                }
            }
            // 405 tells clients that there is no standalone stream, and that sessions need not be ended.
            ("/mcp", _) => Err(Problem::method_not_allowed(&["POST"])),
            (_, &Method::POST) => {
                let body = self.bodies.read(body, self.max_body_bytes, &head.extensions).await?;
                let body = message::with_nested_credential(body);
                self.sse.take(caller.key.as_ref(), head, &body).map(into_response)
            }
            _ => Err(Problem::method_not_allowed(&["POST"])),
        }
    }

    /// The refusal of a tool for which an access token lacks the scope: its client requests consent from the owner
    /// again. Keys get a result instead, because their owner cannot be asked for consent.
    async fn insufficient_scope(&self, caller: &Caller, headers: &HeaderMap, body: &[u8]) -> Option<Response> {
        let issuer = self.issuer.as_ref()?;
        let needed = self.server.scope_of(&message::called_tool(body)?)?;
        let has = self.token_scopes.without(&self.accounts, caller, needed).await?;
        let message = format!(
            "This access token lacks the scope '{needed}', which the tool needs. Nothing was charged. Ask the account's \
             owner for more access."
        );
        let refusal = message::refusal(Problem::new(ErrorCode::KeyScope, message), &self.error_links);
        let mut response = into_response(refusal);
        if let Some(challenge) = issuer.insufficient_scope(&Asking::new(headers, "/mcp"), &has, needed) {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        }
        Some(response)
    }

    /// Serves a message over Streamable HTTP. Its slot is held until the response has been read; that of a subscription,
    /// which lasts, is one of the sessions'.
    async fn call(
        &self,
        caller: &Caller,
        mut head: Parts,
        body: Bytes,
        permit: CallPermit,
    ) -> Result<Response, Problem> {
        let disconnected = client_disconnected(head.extensions.get::<Connection>());
        let versions = self.server.supported_protocol_versions();
        if let Some(refusal) = message::unsupported_version(&head.headers, &body, &versions) {
            return Ok(into_response(refusal));
        }
        let (subject, session) = (Subject::of(&body), CallSession::read(caller, &head.headers));
        let slots = match subject {
            Subject::Subscription => (None, Some(self.sessions.open(caller.clone(), None)?.1)),
            _ => (Some(permit), None),
        };
        let opens_session = matches!(subject, Subject::Initialize(_));
        let call = match (subject, session) {
            (Subject::Call(id), Some(session)) => Some(self.cancelling.begin(session, id)),
            (Subject::Cancelled(id), Some(session)) => {
                self.cancelling.cancel(session, id);
                None
            }
            _ => None,
        };
        head.headers.insert(header::ACCEPT, ACCEPTED);
        let request = Request::from_parts(head, Full::new(body.clone()));
        let response = tokio::select! {
            response = self.streamable.handle(request) => response,
            () = cancelled(call.as_ref()) => return Ok(no_response()),
            () = disconnected => return Err(Problem::new(ErrorCode::RequestTimeout, "The client closed the connection.")),
        };
        let response = message::refused(response, &body).await?;
        let ended = session_ended(slots.1.as_ref());
        let mut response = response.map(|body| {
            let mut frames = Box::pin(body.into_data_stream().take_until(ended));
            let stream = futures_util::stream::poll_fn(move |context| {
                let _slots = &slots;
                frames.as_mut().poll_next(context)
            });
            let frames = stream.map(|data| match data {
                Ok(data) => Ok(Frame::data(data)),
                Err(never) => match never {},
            });
            StreamBody::new(frames).boxed_unsync()
        });
        // Responses contain data that an account paid for.
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if opens_session {
            CallSession::offer(response.headers_mut());
        }
        Ok(response)
    }
}

/// Resolves when a call is cancelled; never, if it cannot be.
async fn cancelled(call: Option<&Cancellable>) {
    match call {
        Some(call) => call.cancelled().await,
        None => std::future::pending().await,
    }
}

/// Resolves when the session of a subscription ends; never, for a call. The client reads the end of the stream as a lost
/// connection, and subscribes again, at another node if this one shuts down.
fn session_ended(session: Option<&SessionPermit>) -> impl Future<Output = ()> + Send + use<> {
    let end = session.map(|session| session.end().clone());
    async move {
        match end {
            Some(end) => end.cancelled().await,
            None => std::future::pending().await,
        }
    }
}

/// The response to a cancelled call, whose client expects none.
fn no_response() -> Response {
    let text = HeaderValue::from_static("text/plain; charset=utf-8");
    into_response(bytes(StatusCode::ACCEPTED, text, Bytes::new()))
}

/// Resolves when the client has most likely gone away.
fn client_disconnected(connection: Option<&Connection>) -> impl Future<Output = ()> + use<> {
    let half_closed = connection.map(Connection::half_closed);
    async move {
        match half_closed {
            Some(half_closed) => half_closed.await,
            None => std::future::pending().await,
        }
        tokio::time::sleep(HALF_CLOSED_WAIT).await;
    }
}

/// How tools reach the service, and where accounts are looked up.
fn connect(config: &Config, front: Option<&Arc<Current<Front>>>) -> Result<(Client, Accounts), RunError> {
    let Some(gateway) = &config.mcp.gateway else {
        let front = front.ok_or_else(|| RunError::Config(crate::config::needs_gateway()))?;
        let client = Client::new(Arc::new(ThisProcess(Arc::clone(front))), ClientSource::Mcp);
        return Ok((client, Accounts::Here(Arc::clone(front.load().service()))));
    };
    let metering = config.mcp.metering.as_ref().unwrap_or(gateway);
    let others = OtherProcesses { gateway: remote(gateway)?, metering: remote(metering)? };
    let client = Client::new(Arc::new(others), ClientSource::Mcp);
    Ok((client.clone(), Accounts::Elsewhere(client)))
}

/// The transport to another process.
fn remote(url: &str) -> Result<HttpTransport, RunError> {
    let url: ServiceUrl =
        url.parse().map_err(|error| RunError::Setup(Box::<metering_client::ServiceUrlError>::new(error)))?;
    HttpTransport::new(url, READ_TIMEOUT).map_err(|error| RunError::Setup(Box::new(error)))
}

/// The path of the service's public URL, which clients need in front of `/messages/`.
fn prefix(config: &Config) -> String {
    let url = config.public_url.as_deref().and_then(|url| Url::parse(url).ok());
    url.map(|url| url.path().trim_end_matches('/').to_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use tokio::time::{Instant, timeout};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_client_that_has_gone_is_noticed_within_two_seconds() {
        let connection = Connection::new();
        let gone = client_disconnected(Some(&connection));
        tokio::pin!(gone);
        assert!(timeout(Duration::from_secs(60), gone.as_mut()).await.is_err(), "it is still there");
        connection.half_close();
        let started = Instant::now();
        gone.await;
        assert!(started.elapsed() < Duration::from_secs(2));
    }
}
