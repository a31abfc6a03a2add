//! A call of the operators' API, declared once: where it is, who may make it, how it is logged, what it takes and returns.
//!
//! The server's router and OpenAPI document, the command line on a store and on a server, and the console's labels follow
//! from the declarations in [`calls`](crate::calls).

mod audit;
mod authority;

use std::pin::Pin;

use metering_core::wire::call::{Access, Call};
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use audit::Audit;
pub(crate) use audit::{
    ACCOUNTS_IMPORT, CONFIGURATION_RELOAD, LOG_BEGIN, LOG_PRUNE, OTHERS, PAYMENT_ASSIGN, PLAN_IMPORT,
};
pub use authority::{Authority, Viewer};

use crate::administration::Administration;
use crate::error::AdminError;

/// A call of the operators' API.
pub trait AdminCall: Call<Body: Body, Reply: Document> {
    /// Its name in the audit log; `None` for what only reads.
    const AUDIT: Option<Audit> = None;
    /// The required caller: a [`Viewer`], or a manager who takes an [`Action`](crate::Action).
    type By: Authority;

    /// Does it.
    ///
    /// # Errors
    /// Those of the use case.
    fn run<'a>(
        administration: &'a Administration,
        by: &'a Self::By,
        parameters: Self::Parameters,
        body: Self::Body,
    ) -> Running<'a, Self>;
}

/// A call being done. Boxed, so that calls are compiled here, and not in every program that makes them.
pub type Running<'a, C> = Pin<Box<dyn Future<Output = Outcome<C>> + Send + 'a>>;

/// The result of a call.
pub type Outcome<C> = Result<<C as Call>::Reply, AdminError>;

/// Operators may make the calls.
pub(crate) const OPERATORS: Access = Access { schemes: &[&["operator"]], refusals: &[], takes_session: false };

/// Declares an [`AdminCall`]. Its doc comment is what the OpenAPI document says: a line, and what else callers must know.
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
        metering_core::call! {
            #[doc = $summary] $(#[doc = $description])*
            $name($id) = $method $path in $tag for $crate::call::OPERATORS;
            takes($given, $sent);
            returns($status, $success: $reply) $(or($($code $(: $why)?),+))?;
        }

        impl $crate::call::AdminCall for $name {
            $(const AUDIT: Option<$crate::call::Audit> = Some($crate::call::Audit { name: $action, label: $label });)?
            type By = $authority;

            fn run<'a>(
                $admin: &'a $crate::administration::Administration,
                $by: &'a $authority,
                $parameters: $given,
                $body: $sent,
            ) -> $crate::call::Running<'a, Self> {
                Box::pin(async move $run)
            }
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

impl Body for () {
    fn none() -> Option<Self> {
        Some(())
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
    fn call<C: AdminCall>(&mut self);
}
