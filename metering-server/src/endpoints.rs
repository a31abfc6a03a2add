//! The building blocks of the metering API and the operators' API: endpoints, tables of endpoints, and the parsing of
//! queries and bodies.

pub(crate) mod body;
mod declared;
pub(crate) mod errors;
pub(crate) mod query;
mod row;
mod table;

pub(crate) use declared::{describe, reply};
pub(crate) use row::{Endpoint, Request};
pub(crate) use table::{Found, Table};

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

/// The row of a call: `call!(CALL => MODULE::HANDLER)`, where the handler returns the call's reply, or
/// `call!(CALL as MODULE::HANDLER)`, where it returns the whole response.
macro_rules! call {
    ($call:ty => $handler:path) => {
        $crate::endpoints::call!(@row $call, |app, request| Box::pin(async move {
            $crate::endpoints::reply::<$call>(&$handler(app, request).await?)
        }))
    };
    ($call:ty as $handler:path) => {
        $crate::endpoints::call!(@row $call, |app, request| Box::pin($handler(app, request)))
    };
    (@row $call:ty, $handler:expr) => {
        $crate::endpoints::Endpoint::declared(
            <$call as metering_core::wire::call::Call>::METHOD,
            <$call as metering_core::wire::call::Call>::PATH,
            $handler,
            $crate::endpoints::describe::<$call>,
        )
        .named(<$call as metering_core::wire::call::Call>::ID)
        .in_sessions(<$call as metering_core::wire::call::Call>::ACCESS.takes_session)
    };
}

pub(crate) use call;
