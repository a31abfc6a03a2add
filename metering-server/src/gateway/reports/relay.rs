//! Responses that are passed on as they arrive, such as event streams: their cost is known at their end.
//!
//! The end is passed on once the hold is settled, so a client that has read the whole response finds its charge.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Poll, ready};

use bytes::Bytes;
use futures_util::stream;
use http::HeaderMap;
use http_body::{Body, Frame};
use http_body_util::{BodyExt, StreamBody};
use metering_core::Error;
use metering_core::catalogue::ReportReader;
use tokio::sync::mpsc;

use super::request::{HeldRequest, HeldSlot, Reply};
use super::rest::Rest;
use super::settling::Reported;
use super::trailers;
use crate::gateway::delivery::{BodyError, ResponseBody};
use crate::http::Response;

type Piece = Result<Frame<Bytes>, BodyError>;

/// A response under way to its client.
struct Relay<'t> {
    request: &'t HeldRequest,
    body: ResponseBody,
    /// `None` when the report is expected in the trailers.
    reader: Option<ReportReader>,
    client: mpsc::Sender<Piece>,
    /// Set when the client was sent everything.
    is_complete: Arc<AtomicBool>,
    rest: Rest,
    /// Whether any of the body has arrived.
    has_begun: bool,
}

/// How a response ended.
enum End {
    /// With this last piece, which is not sent yet, and these trailers.
    Complete(Option<Bytes>, Option<HeaderMap>),
    /// The client had disconnected, and there is no need to read the rest, or no more time.
    Abandoned,
    Broken(BodyError),
    ShuttingDown,
}

/// Passes a response on, and settles its hold at its end.
pub(super) async fn pass_on(request: HeldRequest, response: Response, reader: Option<ReportReader>, reply: Reply) {
    let (mut head, body) = response.into_parts();
    if request.wants_trailers {
        trailers::declare(&mut head);
    }
    let slot = HeldSlot::default();
    head.extensions.insert(slot.clone());
    let (client, mut pieces) = mpsc::channel(1);
    let is_complete = Arc::new(AtomicBool::new(false));
    let mut ends_whole = Some(Arc::clone(&is_complete));
    let pieces = stream::poll_fn(move |context| match ready!(pieces.poll_recv(context)) {
        None if ends_whole.take().is_some_and(|complete| !complete.load(Ordering::Acquire)) => {
            // The task gave up. Without an error, what was cut off would end like a whole body.
            Poll::Ready(Some(Err(Error::ShuttingDown.into())))
        }
        piece => Poll::Ready(piece),
    });
    let passed = StreamBody::new(pieces).boxed_unsync();
    // If the client is gone, so is the receiving end of the channel.
    let _ = reply.send(Ok(http::Response::from_parts(head, passed)));
    let rest = Rest::new(request.bounds);
    let mut relay = Relay { request: &request, body, reader, client, is_complete, rest, has_begun: false };
    let end = relay.run().await;
    relay.finish(end).await;
    drop(slot);
}

impl Relay<'_> {
    /// Passes the body on.
    async fn run(&mut self) -> End {
        loop {
            let frame = tokio::select! {
                biased;
                () = self.request.stop.cancelled() => return End::ShuttingDown,
                () = self.rest.over() => return End::Abandoned,
                () = self.client.closed(), if !self.rest.has_begun() => {
                    if self.counts_bytes() {
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
            self.has_begun |= !data.is_empty();
            if !self.pass(Ok(Frame::data(data))).await {
                return End::ShuttingDown;
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

    /// What the response reported, as far as it was read.
    fn reported(reader: Option<ReportReader>) -> Reported {
        reader.map_or(Ok(None), ReportReader::finish)
    }

    async fn finish(mut self, end: End) {
        let (request, counts_bytes) = (self.request, self.counts_bytes());
        let reader = self.reader.take();
        let settling = &request.settling;
        match end {
            End::Complete(last, trailers) => {
                let reported = match (&trailers, reader) {
                    (Some(trailers), None) => settling.cost_from(trailers),
                    (_, reader) => Self::reported(reader),
                };
                let settled = settling.settle(reported).await;
                let mut is_passed = true;
                if let Some(last) = last {
                    is_passed &= self.pass(Ok(Frame::data(last))).await;
                }
                if request.wants_trailers {
                    let trailers = trailers::of(trailers.as_ref(), settled.as_ref());
                    is_passed &= self.pass(Ok(Frame::trailers(trailers))).await;
                }
                self.is_complete.store(is_passed, Ordering::Release);
            }
            // The part that was read may report less than the whole. Bytes that nobody reads are not charged.
            End::Abandoned => match Self::reported(reader) {
                Ok(Some(cost)) if counts_bytes || cost > settling.without_report() => {
                    drop(settling.settle(Ok(Some(cost))).await);
                }
                _ => {
                    let why = "its client disconnected too early";
                    drop(settling.settle_unreadable("disconnected", why).await);
                }
            },
            End::Broken(error) => {
                if self.has_begun {
                    drop(settling.settle(Self::reported(reader)).await);
                } else {
                    drop(settling.charged.refund().await);
                }
                self.pass(Err(error)).await;
            }
            End::ShuttingDown => {
                drop(settling.settle(Self::reported(reader)).await);
            }
        }
    }
}
