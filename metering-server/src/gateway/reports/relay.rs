//! Responses that are forwarded as they arrive, such as event streams: their cost is known only at the end.
//!
//! The end is passed on once the hold is settled, so a client that has read the whole response finds its charge.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Poll, ready};

use bytes::Bytes;
use futures_util::stream;
use http::{HeaderMap, header};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, StreamBody};
use metering_core::Error;
use metering_core::catalogue::{BodyEnd, ReportReader};
use tokio::sync::mpsc;

use super::hidden::EventFilter;
use super::request::{HeldRequest, Reply};
use super::rest::Rest;
use super::trailers;
use crate::gateway::delivery::{BodyError, ResponseBody, has_plain_events};
use crate::http::Response;

type Piece = Result<Frame<Bytes>, BodyError>;

/// A response on its way to its client.
struct Relay {
    request: HeldRequest,
    body: ResponseBody,
    /// `None` when the report is expected in the trailers.
    reader: Option<ReportReader>,
    /// Removes events that the client does not get.
    filter: Option<EventFilter>,
    client: mpsc::Sender<Piece>,
    /// Set when the client was sent everything.
    is_complete: Arc<AtomicBool>,
    rest: Rest,
    /// How many bytes of the body have arrived.
    bytes: u64,
}

/// How a response ended.
enum End {
    /// With this last piece, which is not sent yet, and these trailers.
    Complete(Option<Bytes>, Option<HeaderMap>),
    /// The client had disconnected, and the rest is not read: it takes too long, is too large, or is one of too many.
    Abandoned,
    Broken(BodyError),
    ShuttingDown,
}

/// Passes a response on, and settles its hold at its end. `begun` is what the reader has already read of it.
pub(super) async fn pass_on(
    mut request: HeldRequest,
    response: Response,
    reader: Option<ReportReader>,
    begun: Vec<Bytes>,
    reply: Reply,
) {
    let (mut head, body) = response.into_parts();
    let filter = request.hides.take().filter(|_| has_plain_events(&head.headers)).map(EventFilter::new);
    if filter.is_some() {
        head.headers.remove(header::CONTENT_LENGTH);
    }
    if request.wants_trailers {
        trailers::declare(&mut head, request.settling.charged.owes_receipt().await);
    }
    let (client, mut pieces) = mpsc::channel(1);
    let is_complete = Arc::new(AtomicBool::new(false));
    let mut ends_whole = Some(Arc::clone(&is_complete));
    let pieces = stream::poll_fn(move |context| match ready!(pieces.poll_recv(context)) {
        None if ends_whole.take().is_some_and(|complete| !complete.load(Ordering::Acquire)) => {
            // The task gave up. Without an error, a truncated body would end like a whole one.
            Poll::Ready(Some(Err(Error::ShuttingDown.into())))
        }
        piece => Poll::Ready(piece),
    });
    let passed = StreamBody::new(pieces).boxed_unsync();
    // If the client is gone, so is the receiving end of the channel.
    let _ = reply.send(Ok(http::Response::from_parts(head, passed)));
    let rest = Rest::new(request.bounds);
    let mut relay = Relay { request, body, reader, filter, client, is_complete, rest, bytes: 0 };
    let mut end = None;
    for data in begun {
        if !relay.pass_data(data).await {
            end = Some(End::ShuttingDown);
        }
    }
    let end = match end {
        Some(end) => end,
        None => relay.run().await,
    };
    relay.finish(end).await;
}

impl Relay {
    /// Passes the body on.
    async fn run(&mut self) -> End {
        let stop = self.request.stop.clone();
        loop {
            let frame = tokio::select! {
                biased;
                () = stop.cancelled() => return End::ShuttingDown,
                () = self.rest.over() => return End::Abandoned,
                () = self.client.closed(), if !self.rest.has_begun() => {
                    // Bytes that the client does not get are not charged.
                    if self.counts_bytes() || !self.request.client_has_gone().await {
                        return End::Abandoned;
                    }
                    self.rest.begin();
                    continue;
                }
                frame = self.body.frame() => frame,
            };
            let data = match frame {
                None => return End::Complete(None, None),
                Some(Err(error)) => return End::Broken(error),
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => data,
                    Err(frame) => return End::Complete(None, frame.into_trailers().ok()),
                },
            };
            if let Some(reader) = &mut self.reader {
                reader.push(&data);
            }
            if self.body.is_end_stream() {
                return End::Complete(Some(data), None);
            }
            if !self.rest.read(data.len()) {
                return End::Abandoned;
            }
            if !self.pass_data(data).await {
                return End::ShuttingDown;
            }
        }
    }

    /// Passes data on, without the events that are hidden.
    async fn pass_data(&mut self, data: Bytes) -> bool {
        self.bytes = self.bytes.saturating_add(u64::try_from(data.len()).unwrap_or(u64::MAX));
        match &mut self.filter {
            None => self.pass(Ok(Frame::data(data))).await,
            Some(filter) => {
                let passed = filter.push(&data);
                passed.is_empty() || self.pass(Ok(Frame::data(passed))).await
            }
        }
    }

    /// Passes a piece on. Does nothing if the client has gone. Returns `false` if it was not passed on because of a
    /// shutdown.
    async fn pass(&mut self, piece: Piece) -> bool {
        tokio::select! {
            biased;
            _ = self.client.send(piece) => true,
            () = self.request.stop.cancelled() => false,
        }
    }

    fn counts_bytes(&self) -> bool {
        self.reader.as_ref().is_some_and(ReportReader::counts_bytes)
    }

    async fn finish(mut self, end: End) {
        match end {
            End::Complete(last, trailers) => self.complete(last, trailers).await,
            End::Abandoned => self.settle_part(BodyEnd::Abandoned).await,
            End::ShuttingDown => self.settle_part(BodyEnd::ShuttingDown).await,
            End::Broken(error) => {
                if self.bytes > 0 {
                    self.settle_part(BodyEnd::Broken).await;
                } else {
                    drop(self.request.settling.charged.refund().await);
                }
                self.pass(Err(error)).await;
            }
        }
    }

    /// Settles the hold of a body that ended early.
    async fn settle_part(&mut self, end: BodyEnd) {
        let settling = &self.request.settling;
        drop(match self.reader.take() {
            Some(reader) => settling.settle_read(reader, end).await,
            // Its trailers would have had the report.
            None => {
                let settlement = settling.price.settlement_of_cut(self.bytes, &settling.ended(end));
                settling.settle_as(settlement, end).await
            }
        });
    }

    async fn complete(&mut self, last: Option<Bytes>, trailers: Option<HeaderMap>) {
        let settling = &self.request.settling;
        let settled = match (&trailers, self.reader.take()) {
            (Some(trailers), None) => settling.settle_from(trailers).await,
            (None, None) => settling.settle(Ok(None)).await,
            (_, Some(reader)) => settling.settle_read(reader, BodyEnd::Complete).await,
        };
        let mut is_passed = true;
        if let Some(last) = last {
            is_passed &= self.pass_data(last).await;
        }
        if let Some(rest) = self.filter.take().map(EventFilter::finish).filter(|rest| !rest.is_empty()) {
            is_passed &= self.pass(Ok(Frame::data(rest))).await;
        }
        if self.request.wants_trailers {
            let receipt = Box::pin(self.request.settling.charged.receipt()).await;
            let trailers = trailers::of(trailers, settled.as_ref(), receipt);
            is_passed &= self.pass(Ok(Frame::trailers(trailers))).await;
        }
        self.is_complete.store(is_passed, Ordering::Release);
    }
}
