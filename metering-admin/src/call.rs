//! A call of the operators' API, declared once: where it is, who may make it, how it is logged, what it takes and returns.
//!
//! The server's router and OpenAPI document, the command line on a store and on a server, and the console's labels follow
//! from the declarations in [`calls`](crate::calls).

mod audit;
mod authority;
mod parameters;
mod text;

use http::Method;
use metering_core::wire::ErrorCode;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub use audit::Audit;
pub(crate) use audit::{ACCOUNTS_IMPORT, CONFIGURATION_RELOAD, OTHERS, PAYMENT_ASSIGN, PLAN_IMPORT};
pub use authority::{Authority, Viewer};
#[cfg(feature = "openapi")]
pub use parameters::Described;
pub(crate) use parameters::parameters;
pub use parameters::{Bounded, Given, Parameter, Parameters, Written, target};
pub use text::{EntryNumber, Text};

use crate::administration::Administration;
use crate::error::AdminError;

/// A call.
pub trait Call: Send + Sync + 'static {
    /// Its name in the OpenAPI document.
    const ID: &'static str;
    /// The HTTP method.
    const METHOD: Method;
    /// The path, with parameters in braces: `/admin/accounts/{id}`.
    const PATH: &'static str;
    /// The group that it belongs to.
    const TAG: &'static str;
    /// What it does, in a line.
    const SUMMARY: &'static str;
    /// What else callers must know.
    const DESCRIPTION: &'static str = "";
    /// What it is called in the audit log; `None` for what only reads.
    const AUDIT: Option<Audit> = None;
    /// The status of success, and what comes with it. 204 has no body.
    const SUCCESS: (u16, &'static str);
    /// The refusals that callers should expect: their codes, and a line about each, which may be empty.
    const REFUSALS: &'static [(ErrorCode, &'static str)] = &[];
    /// What the caller must be: a [`Viewer`], or a manager who takes an [`Action`](crate::Action).
    type By: Authority;
    /// What the path and the query say.
    type Parameters: Parameters;
    /// The body; [`Nothing`] for none.
    type Body: Body;
    /// The response's body; [`Nothing`] for none.
    type Reply: Document;

    /// Does it.
    fn run(
        administration: &Administration,
        by: &Self::By,
        parameters: Self::Parameters,
        body: Self::Body,
    ) -> impl Future<Output = Result<Self::Reply, AdminError>> + Send;
}

/// A body of a response.
pub trait Document: Serialize + Schema + Send + Sync + 'static {}

impl<T: Serialize + Schema + Send + Sync + 'static> Document for T {}

/// A body of a request.
pub trait Body: Document + DeserializeOwned {
    /// The body of a call that has none; `None` if this is one.
    #[must_use]
    fn none() -> Option<Self> {
        None
    }

    /// Why the caller does it, for the audit log.
    #[must_use]
    fn reason(&self) -> &str {
        ""
    }

    /// The same with a reason.
    #[must_use]
    fn with_reason(self, _reason: &str) -> Self {
        self
    }
}

/// No body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Nothing;

impl Body for Nothing {
    fn none() -> Option<Self> {
        Some(Self)
    }
}

/// Implements [`Body`] for documents with a field `reason`.
macro_rules! reasoned {
    ($($document:ty),* $(,)?) => {$(
        impl $crate::call::Body for $document {
            fn reason(&self) -> &str {
                &self.reason
            }

            fn with_reason(mut self, reason: &str) -> Self {
                reason.clone_into(&mut self.reason);
                self
            }
        }
    )*};
}

pub(crate) use reasoned;

/// A document that the OpenAPI document describes, if the feature `openapi` is on.
#[cfg(feature = "openapi")]
pub trait Schema: utoipa::ToSchema {}

#[cfg(feature = "openapi")]
impl<T: utoipa::ToSchema> Schema for T {}

/// A document that the OpenAPI document describes, if the feature `openapi` is on.
#[cfg(not(feature = "openapi"))]
pub trait Schema {}

#[cfg(not(feature = "openapi"))]
impl<T> Schema for T {}

/// Is shown every call: [`each`](crate::calls::each).
pub trait Visitor {
    /// One call.
    fn call<C: Call>(&mut self);
}
