//! An endpoint: its handler, and the method and path from the handler's `utoipa::path`.

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{HeaderMap, Method};
use utoipa::openapi::OpenApi;

use crate::api::app::App;
use crate::http::{ClientAddress, Problem, Reply};

/// A request, as handlers see it.
pub(crate) struct Request {
    /// `None` if the request comes from within the process.
    pub(crate) client: Option<ClientAddress>,
    pub(crate) headers: HeaderMap,
    /// Not decoded; empty if there is none.
    pub(crate) query: String,
    pub(crate) body: Bytes,
}

impl Request {
    /// The client's address, for rate limits.
    ///
    /// # Errors
    /// 500 for a request from within the process. Only MCP tools send those, and to no endpoint that needs the address.
    pub(crate) fn client(&self) -> Result<ClientAddress, Problem> {
        self.client.ok_or_else(Problem::internal)
    }
}

type Handler = for<'a> fn(&'a App, Request) -> BoxFuture<'a, Result<Reply, Problem>>;

/// An endpoint of the API.
pub(super) struct Endpoint {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) handler: Handler,
    describe: fn() -> OpenApi,
    pub(super) is_compressed: bool,
    pub(super) is_everywhere: bool,
    pub(super) takes_head: bool,
}

impl Endpoint {
    /// An endpoint that takes `HEAD` if it takes `GET`, and whose responses are not compressed.
    pub(super) fn new(handler: Handler, describe: fn() -> OpenApi) -> Self {
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
        let takes_head = method == Method::GET;
        Self { method, path, handler, describe, takes_head, is_compressed: false, is_everywhere: false }
    }

    /// For responses that are worth compressing and contain no secret.
    pub(super) fn compressed(self) -> Self {
        Self { is_compressed: true, ..self }
    }

    /// Every process serves this endpoint, whichever surfaces it is configured for.
    pub(super) fn everywhere(self) -> Self {
        Self { is_everywhere: true, ..self }
    }

    /// For a result that is returned only once: a `HEAD` request, whose body is discarded, would lose it.
    pub(super) fn without_head(self) -> Self {
        Self { takes_head: false, ..self }
    }

    /// The OpenAPI document of this endpoint alone, with the schemas that it needs.
    pub(super) fn document(&self) -> OpenApi {
        (self.describe)()
    }
}
