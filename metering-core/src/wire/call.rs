//! A call of an API, declared once: its method and path, its scope, its request and response, and its errors.
//!
//! A server routes, reads and describes requests by the declaration; a client writes them by it.

mod parameters;
mod text;

use std::any::TypeId;

use http::Method;
use serde::Serialize;

pub use parameters::{Bounded, Clamped, Parameter, ParameterVisitor, Parameters, RequestParameters, RequestTarget};
pub use text::{EntryNumber, Text};

use crate::wire::ErrorCode;

/// A call.
pub trait Call: Send + Sync + 'static {
    /// Its name in the OpenAPI document.
    const ID: &'static str;
    /// The HTTP method.
    const METHOD: Method;
    /// The path, with parameters in braces: `/keys/{id}`.
    const PATH: &'static str;
    /// Its group.
    const TAG: &'static str;
    /// Its summary, in a line. May have white space around it.
    const SUMMARY: &'static str;
    /// Further text for callers, with white space around it.
    const DESCRIPTION: &'static str = "";
    /// The callers that may make it.
    const ACCESS: Access;
    /// Whether the body is optional.
    const IS_BODY_OPTIONAL: bool = false;
    /// Whether an `Idempotency-Key` makes a lost response available again.
    const IS_REPEATABLE: bool = false;
    /// The status of success, and the type of its body. 204 has no body.
    const SUCCESS: (u16, &'static str);
    /// The media type of that.
    const MEDIA: &'static str = "application/json";
    /// The refusals that callers should expect in addition to those of [`ACCESS`](Self::ACCESS) and of malformed bodies.
    const REFUSALS: &'static [Refusal] = &[];
    /// The parameters in its path and query.
    type Parameters: Parameters;
    /// The body; `()` for none.
    type Body: Serialize + Send + 'static;
    /// The response's body; `()` for none.
    type Reply: Send;
}

/// An error code, and when a call is refused with it; the text may be empty.
pub type Refusal = (ErrorCode, &'static str);

/// The callers that may make a call.
#[derive(Debug, Clone, Copy)]
pub struct Access {
    /// The alternatives; each names the security schemes of the OpenAPI document that it needs. Empty if anyone may.
    pub schemes: &'static [&'static [&'static str]],
    /// How others are refused.
    pub refusals: &'static [Refusal],
    /// Whether the session of a signed-in browser may replace the key.
    pub takes_session: bool,
}

impl Access {
    /// Anyone may.
    pub const ANYONE: Self = Self { schemes: &[], refusals: &[], takes_session: false };
}

impl<'r> RequestParameters<'r> {
    /// The parameters of a request for a call: the decoded values in its path, in order, and its query.
    #[must_use]
    pub fn to<C: Call>(path: &'r [String], query: &'r str) -> Self {
        Self::at(C::PATH, path, query)
    }
}

/// The path and query of a request for a call.
#[must_use]
pub fn target<C: Call>(parameters: &C::Parameters) -> String {
    let mut target = RequestTarget::new(C::PATH);
    parameters.write(&mut target);
    target.into_text()
}

/// Whether requests have a body.
#[must_use]
pub fn has_body<C: Call>() -> bool {
    TypeId::of::<C::Body>() != TypeId::of::<()>()
}

/// Declares [`Call`](crate::wire::call::Call)s. Their doc comments become the text of the OpenAPI document: a summary
/// line, and further text for callers.
///
/// ```text
/// call! {
///     /// Summary
///     Name("operation_id") = POST "/path/{parameter}" in "tag" for ACCESS;
///     takes(OfSubject, BodyRequest);
///     returns(200, "What comes back": ReplyDocument) or(NotFound, Conflict: "why");
/// }
/// ```
///
/// `takes` may be missing; it may end with `optional`, for an optional body, and `repeatable`. `as "text/csv"` after
/// the reply is its media type.
#[doc(hidden)]
#[macro_export]
macro_rules! call {
    (@flag repeatable) => {
        const IS_REPEATABLE: bool = true;
    };
    (@flag optional) => {
        const IS_BODY_OPTIONAL: bool = true;
    };
    (@first [$first:ty] $($others:tt)*) => {
        $first
    };
    ($(
        #[doc = $summary:literal] $(#[doc = $description:literal])*
        $name:ident($id:literal) = $method:ident $path:literal in $tag:literal for $access:expr;
        $(takes($given:ty, $sent:ty $(, $flag:ident)*);)?
        returns($status:literal, $success:literal: $reply:ty $(as $media:literal)?)
            $(or($($code:ident $(: $why:literal)?),+ $(,)?))?;
    )*) => {$(
        #[doc = $summary]
        $(#[doc = $description])*
        #[derive(Debug)]
        pub struct $name;

        impl $crate::wire::call::Call for $name {
            const ID: &str = $id;
            const METHOD: ::http::Method = ::http::Method::$method;
            const PATH: &str = $path;
            const TAG: &str = $tag;
            const SUMMARY: &str = $summary;
            const DESCRIPTION: &str = concat!($($description, "\n"),*);
            const ACCESS: $crate::wire::call::Access = $access;
            $($($crate::call!(@flag $flag);)*)?
            const SUCCESS: (u16, &str) = ($status, $success);
            $(const MEDIA: &str = $media;)?
            $(const REFUSALS: &[$crate::wire::call::Refusal] =
                &[$(($crate::wire::ErrorCode::$code, concat!($($why)?))),+];)?
            type Parameters = $crate::call!(@first $([$given])? [()]);
            type Body = $crate::call!(@first $([$sent])? [()]);
            type Reply = $reply;
        }
    )*};
}
