//! Replies with a JSON body.

use http::StatusCode;
use serde::Serialize;

use crate::http::Problem;
use crate::http::reply::{Reply, try_json};

/// A reply with a JSON body, which must not be cached.
pub(crate) fn json<T: Serialize>(status: StatusCode, value: &T) -> Reply {
    try_json(status, value).unwrap_or_else(|error| {
        tracing::error!(%error, "could not serialize a response as JSON");
        Problem::internal().into_reply()
    })
}
