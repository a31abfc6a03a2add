//! The upstream: a language model that streams its response, and a long document. And the routes to both.

use std::convert::Infallible;
use std::fs;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper::header::CONTENT_TYPE;
use hyper::{Request, Response};
use serde_json::{Value, json};

use crate::bench::Failure;

/// The events of the streamed response.
pub(super) const EVENTS: usize = 40;

/// The path of the streamed response, and those of the document by where its cost is.
pub(super) const CHAT: &str = "/v1/chat/completions";
pub(super) const FIXED: &str = "/document/fixed";
pub(super) const IN_HEADER: &str = "/document/header";
pub(super) const IN_BODY: &str = "/document/body";

const DOCUMENT_BYTES: usize = 64_000;
const REQUEST_BYTES: usize = 2_000;
const COST_HEADER: &str = "x-cost";

/// A line with a quotation, as texts of language models have it, and its length in JSON.
const LINE: &str = "The next words of a long text, some of them \"quoted\", and then a new line.\n";
const LINE_BYTES: usize = LINE.len() + 3;

/// A body of pieces; each is sent before the next one exists.
#[derive(Debug)]
pub(super) struct Pieces {
    pieces: Arc<[Bytes]>,
    next: usize,
    has_paused: bool,
}

/// The responses of the upstream.
pub(super) fn respond() -> impl Fn(&Request<Incoming>) -> Response<Pieces> + Clone + Send + 'static {
    let (events, document): (Arc<[Bytes]>, Arc<[Bytes]>) = (events().into(), [document()].into());
    move |request: &Request<Incoming>| {
        let (content_type, pieces) = match request.uri().path() {
            CHAT => ("text/event-stream", &events),
            _ => ("application/json", &document),
        };
        let body = Pieces { pieces: Arc::clone(pieces), next: 0, has_paused: false };
        let head = Response::builder().header(CONTENT_TYPE, content_type).header(COST_HEADER, "0.001");
        head.body(body).expect("the headers are valid")
    }
}

/// The shipped route for chat completions, and those to the document.
pub(super) fn catalogue() -> Result<String, Failure> {
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/llm/routes.json");
    let mut catalogue: Value = serde_json::from_str(&fs::read_to_string(shipped)?)?;
    let endpoints = catalogue["endpoints"].as_array_mut().ok_or("the catalogue has no endpoints")?;
    endpoints.retain(|route| route["path"] == CHAT);
    let in_header = json!({"max": "0.01", "report": {"header": COST_HEADER}});
    let in_body = json!({
        "max": "0.01", "units": {"tokens": "0.000001"}, "report": {"json": {"tokens": "/usage/total_tokens"}},
    });
    endpoints.extend([
        json!({"path": FIXED, "method": "GET", "metered": true}),
        json!({"path": IN_HEADER, "method": "GET", "metered": true, "price": in_header}),
        json!({"path": IN_BODY, "method": "GET", "metered": true, "price": in_body}),
    ]);
    Ok(catalogue.to_string())
}

/// A request for the streamed response, of about 2 kB.
pub(super) fn chat_request() -> Value {
    let prompt = LINE.repeat(REQUEST_BYTES / LINE_BYTES);
    json!({
        "model": "small", "stream": true, "max_tokens": 256,
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": prompt}],
    })
}

/// As OpenAI streams them: texts, the usage, the end.
fn events() -> Vec<Bytes> {
    let event = |data: &str| Bytes::from(format!("data: {data}\n\n"));
    let chunk = |choices: Value, usage: Value| {
        let chunk = json!({
            "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "small", "choices": choices,
            "usage": usage,
        });
        event(&chunk.to_string())
    };
    let text = || json!([{"index": 0, "delta": {"content": " the next words"}, "finish_reason": null}]);
    let mut events: Vec<_> = (0..EVENTS - 2).map(|_| chunk(text(), Value::Null)).collect();
    events.extend([chunk(json!([]), usage()), event("[DONE]")]);
    events
}

/// A chat completion of about 64 kB, whose cost is at its end.
fn document() -> Bytes {
    let text = LINE.repeat(DOCUMENT_BYTES / LINE_BYTES);
    let message = json!({"role": "assistant", "content": text});
    let document = json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "small",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage(),
    });
    document.to_string().into()
}

fn usage() -> Value {
    json!({"prompt_tokens": 500, "completion_tokens": 114, "total_tokens": 614})
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.next > 0 && !std::mem::replace(&mut self.has_paused, true) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.has_paused = false;
        let piece = self.pieces.get(self.next).cloned();
        self.next += 1;
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.next >= self.pieces.len()
    }

    fn size_hint(&self) -> SizeHint {
        match &*self.pieces {
            [whole] if self.next == 0 => SizeHint::with_exact(u64::try_from(whole.len()).unwrap_or(u64::MAX)),
            _ => SizeHint::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use metering_core::{Catalogue, Credits};

    use super::*;
    use crate::bench::bare::Listener;
    use crate::client::Client;

    /// The parts of a body that a route's price reads.
    fn cost(path: &str, content_type: &str, body: &[Bytes]) -> Option<Credits> {
        let catalogue = Catalogue::from_json(&catalogue().unwrap()).unwrap();
        let route = catalogue.routes().iter().find(|route| &*route.template == path).unwrap();
        let mut reader = route.usage_price().unwrap().body_reader(Some(content_type)).unwrap();
        body.iter().for_each(|piece| reader.push(piece));
        reader.finish().unwrap()
    }

    #[test]
    fn responses_report_what_they_cost() {
        assert_eq!(cost(CHAT, "text/event-stream", &events()), Some("0.00164".parse().unwrap()));
        assert_eq!(cost(IN_BODY, "application/json", &[document()]), Some("0.000614".parse().unwrap()));
    }

    #[test]
    fn sizes_are_those_that_the_table_names() {
        assert_eq!(events().len(), EVENTS);
        assert!((62_000..66_000).contains(&document().len()));
        assert!((1_900..2_100).contains(&chat_request().to_string().len()));
    }

    #[test]
    fn events_arrive_one_by_one_and_the_document_has_a_length() {
        let listener = Listener::serve(respond()).unwrap();
        let client = Client::new(listener.address());
        let mut stream = client.open(CHAT);
        assert_eq!(stream.header("content-type"), Some("text/event-stream"));
        for event in events() {
            assert_eq!(stream.piece().unwrap(), event);
        }
        let response = client.get(IN_HEADER);
        assert_eq!(response.header("content-length"), Some(&*document().len().to_string()));
        assert_eq!((response.header(COST_HEADER), response.body.len()), (Some("0.001"), document().len()));
    }
}
