//! What the metering API and the operators' API are made of: endpoints, tables of endpoints, and the parsing of queries
//! and bodies.

pub(crate) mod body;
pub(crate) mod query;
mod row;
mod table;

pub(crate) use row::{Endpoint, Request};
pub(crate) use table::Table;

/// The row of a handler: `endpoint!(MODULE::HANDLER)`. The document that its `utoipa::path` generates has the method
/// and the path.
macro_rules! endpoint {
    ($handler:path) => {{
        #[derive(utoipa::OpenApi)]
        #[openapi(paths($handler))]
        struct Described;
        $crate::endpoints::Endpoint::new(
            |app, request| Box::pin($handler(app, request)),
            <Described as utoipa::OpenApi>::openapi,
        )
    }};
}

pub(crate) use endpoint;
