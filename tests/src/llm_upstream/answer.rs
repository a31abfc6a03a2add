//! A response in pieces, which can wait for the test or break off between them.

use std::io;

use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::cost::Api;
use super::wish::Wish;

/// A response before it is sent.
pub(super) struct Answer {
    status: u16,
    kind: &'static str,
    pieces: Vec<Piece>,
}

#[derive(Clone)]
enum Piece {
    Text(String),
    /// Waits until the test opens the gate.
    Gate,
    /// Ends the connection.
    Cut,
}

impl Answer {
    pub(super) fn json(body: Value) -> Self {
        Self::whole(200, "application/json", body.to_string())
    }

    pub(super) fn error(status: u16, message: &str) -> Self {
        let error = json!({"error": {"message": message, "type": "invalid_request_error", "code": null}});
        Self::whole(status, "application/json", error.to_string())
    }

    /// A stream of events, each with its lines and the empty line after them.
    pub(super) fn events(events: Vec<String>, wish: &Wish) -> Self {
        Self::in_pieces("text/event-stream", events, wish)
    }

    /// A body that is sent in pieces. `wait=N` in the prompt waits after the first N of them, `cut=N` breaks off there.
    pub(super) fn in_pieces(kind: &'static str, texts: Vec<String>, wish: &Wish) -> Self {
        let mut pieces: Vec<Piece> = texts.into_iter().map(Piece::Text).collect();
        for (name, piece) in [("wait", Piece::Gate), ("cut", Piece::Cut)] {
            if let Some(position) = wish.number(name).and_then(|number| usize::try_from(number).ok()) {
                pieces.insert(position.min(pieces.len()), piece);
            }
        }
        Self { status: 200, kind, pieces }
    }

    fn whole(status: u16, kind: &'static str, text: String) -> Self {
        Self { status, kind, pieces: vec![Piece::Text(text)] }
    }

    pub(super) fn into_response(self, gate: watch::Receiver<bool>) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = [
            ("content-type", self.kind),
            ("x-litellm-response-cost", "0.0123"),
            ("x-litellm-model-api-base", "https://provider.example"),
            ("llm_provider-openai-organization", "the-seller"),
            ("x-ratelimit-remaining-requests", "9999"),
            ("x-request-id", "req_of_the_upstream"),
        ];
        if status == StatusCode::NO_CONTENT {
            return status.into_response();
        }
        let pieces = stream::iter(self.pieces).then(move |piece| send(piece, gate.clone()));
        (status, headers, Body::from_stream(pieces)).into_response()
    }
}

async fn send(piece: Piece, mut gate: watch::Receiver<bool>) -> io::Result<Bytes> {
    match piece {
        Piece::Text(text) => Ok(Bytes::from(text)),
        Piece::Gate => {
            // An error means that the test is over.
            let _ = gate.wait_for(|open| *open).await;
            Ok(Bytes::new())
        }
        Piece::Cut => {
            // Pending output is written while this waits. Otherwise the connection would end before the head.
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
            Err(io::ErrorKind::ConnectionReset.into())
        }
    }
}

/// The failure that the prompt requests with `script=...`.
pub(super) fn failure(api: Api, wish: &Wish) -> Option<Answer> {
    let error = match api {
        Api::Messages | Api::CountTokens => {
            json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})
        }
        Api::Gemini | Api::GeminiCount => {
            json!({"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}})
        }
        _ => json!({"error": {"message": "The server is overloaded.", "type": "server_error", "code": null}}),
    };
    match wish.script() {
        "error" if !wish.stream => Some(Answer::json(error)),
        "error" if api == Api::Responses => {
            Some(Answer::events(vec![event("error", &json!({"type": "error", "message": "overloaded"}))], wish))
        }
        "error" if api == Api::Messages => Some(Answer::events(vec![event("error", &error)], wish)),
        "error" => Some(Answer::events(vec![data(&error)], wish)),
        "failed" => {
            let failed = json!({"type": "response.failed", "sequence_number": 1, "response": {
                "id": "resp_1", "object": "response", "status": "failed", "output": [],
                "error": {"code": "server_error", "message": "The model failed."}, "usage": null}});
            Some(Answer::events(vec![event("response.failed", &failed)], wish))
        }
        "empty" => Some(Answer { status: 204, kind: "", pieces: Vec::new() }),
        "status" => Some(Answer::whole(500, "application/json", error.to_string())),
        _ => None,
    }
}

/// An event without a name.
pub(super) fn data(data: &Value) -> String {
    format!("data: {data}\n\n")
}

/// An event with a name.
pub(super) fn event(name: &str, data: &Value) -> String {
    format!("event: {name}\ndata: {data}\n\n")
}

/// The words of an output, one for each token.
pub(super) fn words(count: u64) -> impl Iterator<Item = String> {
    (0..count).map(|number| if number == 0 { "0".to_owned() } else { format!(" {number}") })
}
