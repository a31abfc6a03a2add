//! The faults that a node can simulate.

use std::future;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use futures_util::stream::{self, StreamExt};
use serde_json::{Value, json};

#[derive(Debug, Clone)]
pub(crate) enum Fault {
    /// Responds with a status, and optionally with `Retry-After`.
    Status(u16, Option<&'static str>),
    /// Responds with a status and a body.
    StatusWith(u16, Value),
    /// Responds to the whole batch with one error.
    Refuses(i64, &'static str),
    /// Responds to each call with this error.
    Errs(i64, &'static str),
    /// Sends this body instead.
    Body(&'static str),
    /// Responds correctly, but after this delay.
    Late(Duration),
    /// Never responds.
    Hangs,
    /// Begins a response and never finishes it.
    Stalls,
    /// Responds correctly, last call first.
    Backwards,
    /// Responds with other ids.
    OtherIds,
    /// Leaves out the last response.
    Short,
    /// Sends the first response twice.
    Twice,
    /// Responds as if the calls had not been batched.
    Unbatched,
    /// Sends a huge body, with or without `Content-Length`.
    Huge { announced: bool },
}

impl Fault {
    pub(crate) async fn response(self, mut replies: Vec<Value>, is_batch: bool) -> Response {
        let error = |code: i64, message: &str| json!({ "code": code, "message": message });
        match self {
            Self::Status(status, retry_after) => {
                let response = Response::builder().status(status);
                let response =
                    retry_after.iter().fold(response, |response, value| response.header("retry-after", *value));
                return response.body(Body::empty()).unwrap();
            }
            Self::StatusWith(status, body) => {
                return Response::builder().status(status).body(Body::from(body.to_string())).unwrap();
            }
            Self::Refuses(code, message) => {
                return plain(json!({ "jsonrpc": "2.0", "id": null, "error": error(code, message) }).to_string());
            }
            Self::Errs(code, message) => {
                for reply in &mut replies {
                    *reply = json!({ "jsonrpc": "2.0", "id": reply["id"], "error": error(code, message) });
                }
            }
            Self::Body(text) => return plain(text.to_owned()),
            Self::Late(delay) => tokio::time::sleep(delay).await,
            Self::Hangs => future::pending().await,
            Self::Stalls => {
                let started_at = stream::once(future::ready(Ok::<_, std::io::Error>("[")));
                return Response::new(Body::from_stream(started_at.chain(stream::pending())));
            }
            Self::Backwards => replies.reverse(),
            Self::OtherIds => {
                for reply in &mut replies {
                    reply["id"] = json!(reply["id"].as_u64().unwrap() + 1000);
                }
            }
            Self::Short => _ = replies.pop(),
            Self::Twice if !is_batch => replies.push(replies[0].clone()),
            Self::Twice => {
                let last = replies.len() - 1;
                replies[last] = replies[0].clone();
            }
            Self::Unbatched => return plain(replies[0].to_string()),
            Self::Huge { announced } => {
                const CHUNK: usize = 1024 * 1024;
                if announced {
                    return Response::new(Body::from(vec![b' '; 17 * CHUNK]));
                }
                let chunks = stream::iter((0..17).map(|_| Ok::<_, std::io::Error>(vec![b' '; CHUNK])));
                return Response::new(Body::from_stream(chunks));
            }
        }
        replied(replies, is_batch)
    }
}

/// The replies to a batch, or the one to a single call.
pub(crate) fn replied(mut replies: Vec<Value>, is_batch: bool) -> Response {
    let body = if is_batch || replies.len() != 1 { Value::from(replies) } else { replies.remove(0) };
    plain(body.to_string())
}

pub(crate) fn plain(body: String) -> Response {
    Response::builder().header("content-type", "application/json").body(Body::from(body)).unwrap()
}
