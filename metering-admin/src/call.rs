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
pub use parameters::{Bounded, Given, Parameter, Parameters, Written};
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
    /// What it does, in a line. May have white space around it.
    const SUMMARY: &'static str;
    /// What else callers must know, with white space around it.
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
    ///
    /// # Errors
    /// Those of the use case.
    fn run(
        administration: &Administration,
        by: &Self::By,
        parameters: Self::Parameters,
        body: Self::Body,
    ) -> impl Future<Output = Outcome<Self>> + Send;
}

/// What comes of a call.
pub type Outcome<C> = Result<<C as Call>::Reply, AdminError>;

impl<'r> Given<'r> {
    /// Those of a request for a call: the values of the path's parameters, in order and decoded, and the query.
    #[must_use]
    pub fn to<C: Call>(path: &'r [String], query: &'r str) -> Self {
        Self::at(C::PATH, path, query)
    }
}

/// The path and query of a request for a call.
#[must_use]
pub fn target<C: Call>(parameters: &C::Parameters) -> String {
    let mut written = Written::new(C::PATH);
    parameters.write(&mut written);
    written.into_target()
}

/// Declares a [`Call`]. Its doc comment is what the OpenAPI document says: a line, and what else callers must know.
///
/// ```text
/// call! {
///     /// Summary
///     Name("operation_id") = POST "/admin/path/{parameter}" in "tag";
///     audit("subject.action", "What was done");
///     returns(200, "What comes back") or(NotFound, Conflict: "why");
///     async fn run(admin, by: Action, parameters: OfSubject, body: BodyRequest) -> ReplyDocument {
///         admin.use_case(by, &parameters.id, &body).await
///     }
/// }
/// ```
macro_rules! call {
    (
        #[doc = $summary:literal] $(#[doc = $description:literal])*
        $name:ident($id:literal) = $method:ident $path:literal in $tag:literal;
        $(audit($action:literal, $label:literal);)?
        returns($status:literal, $success:literal) $(or($($code:ident $(: $why:literal)?),+))?;
        async fn run($admin:ident, $by:ident: $authority:ty, $parameters:ident: $given:ty, $body:ident: $sent:ty) -> $reply:ty
            $run:block
    ) => {
        #[doc = $summary]
        $(#[doc = $description])*
        #[derive(Debug)]
        pub struct $name;

        impl $crate::call::Call for $name {
            const ID: &str = $id;
            const METHOD: http::Method = http::Method::$method;
            const PATH: &str = $path;
            const TAG: &str = $tag;
            const SUMMARY: &str = $summary;
            const DESCRIPTION: &str = concat!($($description),*);
            $(const AUDIT: Option<$crate::call::Audit> = Some($crate::call::Audit { name: $action, label: $label });)?
            const SUCCESS: (u16, &str) = ($status, $success);
            $(const REFUSALS: &[(metering_core::wire::ErrorCode, &str)] =
                &[$((metering_core::wire::ErrorCode::$code, concat!($($why)?))),+];)?
            type By = $authority;
            type Parameters = $given;
            type Body = $sent;
            type Reply = $reply;

            async fn run(
                $admin: &$crate::administration::Administration,
                $by: &$authority,
                $parameters: $given,
                $body: $sent,
            ) -> $crate::call::Outcome<Self> $run
        }
    };
}

pub(crate) use call;

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
