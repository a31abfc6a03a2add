//! An endpoint: its handler, and the method and path from the declaration of its call or the handler's `utoipa::path`.

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::request::Parts;
use http::{HeaderMap, Method};
use metering_core::Error;
use metering_core::access::{ClientAddress as Address, SessionCredentials};
use metering_core::charging::IdempotencyKey;
use metering_core::wire::call::{Call, Parameters, RequestParameters};
use utoipa::openapi::OpenApi;

use crate::access::credentials::{self, Sender};
use crate::http::{ClientAddress, Problem, Reply};

/// A request, as handlers see it.
pub(crate) struct Request {
    /// `None` if the request comes from within the process.
    pub(crate) client: Option<ClientAddress>,
    /// The address of the client that the request is made for, also if it comes from within the process.
    pub(crate) address: Option<Address>,
    /// The session of the browser, for a call with one. It then replaces the key, and no other key is read.
    pub(crate) session: Option<SessionCredentials>,
    pub(crate) headers: HeaderMap,
    /// The values of the path's parameters, in order, decoded.
    pub(crate) path: Vec<String>,
    /// Not decoded; empty if there is none.
    pub(crate) query: String,
    pub(crate) body: Bytes,
}

impl Request {
    /// The request with this head and body. The endpoint's table adds the values of the path's parameters.
    pub(crate) fn new(head: Parts, body: Bytes) -> Self {
        Self {
            client: head.extensions.get().copied(),
            address: head.extensions.get().copied(),
            session: None,
            headers: head.headers,
            path: Vec::new(),
            query: head.uri.query().unwrap_or_default().to_owned(),
            body,
        }
    }

    /// The client's address, for rate limits.
    ///
    /// # Errors
    /// 500 for a request from within the process. Only MCP tools send those, and to no endpoint that needs the address.
    pub(crate) fn client(&self) -> Result<ClientAddress, Problem> {
        self.client.ok_or_else(Problem::internal)
    }

    /// The caller's key or session, and its address.
    ///
    /// # Errors
    /// 401 when the credentials are not a well-formed key.
    pub(crate) fn sender(&self) -> Result<Sender, Error> {
        let key = if self.session.is_some() { None } else { credentials::key(&self.headers)? };
        Ok(Sender { key, session: self.session.clone(), address: self.address.map(|client| client.0) })
    }

    /// The value of the path's parameter with this index; empty if there is none.
    pub(crate) fn segment(&self, index: usize) -> &str {
        self.path.get(index).map(String::as_str).unwrap_or_default()
    }

    /// The parameters of a call.
    ///
    /// # Errors
    /// 400 for the first that is not valid.
    pub(crate) fn parameters<C: Call>(&self) -> Result<C::Parameters, Error> {
        C::Parameters::read(&RequestParameters::to::<C>(&self.path, &self.query))
    }

    /// The idempotency key, if there is one.
    ///
    /// # Errors
    /// 400 when it is malformed or sent twice.
    pub(crate) fn idempotency_key(&self) -> Result<Option<IdempotencyKey>, Error> {
        let key = credentials::of(&self.headers).idempotency_key.transpose();
        key.map_err(|problem| Error::field("Idempotency-Key", problem))
    }
}

type Handler<A> = for<'a> fn(&'a A, Request) -> BoxFuture<'a, Result<Reply, Problem>>;

/// An endpoint of an API whose handlers share an `A`.
pub(crate) struct Endpoint<A> {
    pub(crate) method: Method,
    /// Parameters are in braces, as in `/admin/accounts/{id}`.
    pub(crate) path: String,
    /// The name of its call; empty if it is described by other means.
    pub(super) id: &'static str,
    pub(super) handler: Handler<A>,
    describe: fn() -> OpenApi,
    pub(crate) is_compressed: bool,
    pub(crate) is_everywhere: bool,
    /// Whether the last parameter of the path may have slashes.
    pub(super) has_slashes: bool,
    pub(crate) takes_head: bool,
    /// Whether the session of a signed-in browser may replace the key.
    pub(crate) takes_session: bool,
}

impl<A> Endpoint<A> {
    /// An endpoint that takes `HEAD` if it takes `GET`, and whose responses are not compressed.
    pub(crate) fn new(handler: Handler<A>, describe: fn() -> OpenApi) -> Self {
        let (path, item) = describe().paths.paths.pop_first().expect("the document has the path of its handler");
        let operations = [
            (Method::GET, item.get),
            (Method::POST, item.post),
            (Method::PUT, item.put),
            (Method::PATCH, item.patch),
            (Method::DELETE, item.delete),
        ];
        let described = operations.into_iter().find(|(_, operation)| operation.is_some());
        let (method, _) = described.expect("the document has the method of its handler");
        Self::declared(method, &path, handler, describe)
    }

    /// An endpoint that is described by other means than a handler's `utoipa::path`.
    pub(crate) fn declared(method: Method, path: &str, handler: Handler<A>, describe: fn() -> OpenApi) -> Self {
        let takes_head = method == Method::GET;
        Self {
            method,
            path: path.to_owned(),
            id: "",
            handler,
            describe,
            takes_head,
            is_compressed: false,
            is_everywhere: false,
            has_slashes: false,
            takes_session: false,
        }
    }

    /// For responses that are worth compressing and contain no secret.
    pub(crate) fn compressed(self) -> Self {
        Self { is_compressed: true, ..self }
    }

    /// Names its call.
    pub(crate) fn named(self, id: &'static str) -> Self {
        Self { id, ..self }
    }

    /// Whether the session of a signed-in browser may replace the key.
    pub(crate) fn in_sessions(self, takes_session: bool) -> Self {
        Self { takes_session, ..self }
    }

    /// Every process serves this endpoint, whichever surfaces it is configured for.
    pub(crate) fn everywhere(self) -> Self {
        Self { is_everywhere: true, ..self }
    }

    /// The parameter at the end of the path takes all that follows, with its slashes.
    pub(crate) fn with_slashes(self) -> Self {
        Self { has_slashes: true, ..self }
    }

    /// For a result that is returned only once: a `HEAD` request, whose body is discarded, would lose it.
    pub(crate) fn without_head(self) -> Self {
        Self { takes_head: false, ..self }
    }

    /// The OpenAPI document of this endpoint alone, with the schemas that it needs.
    pub(crate) fn document(&self) -> OpenApi {
        (self.describe)()
    }
}
