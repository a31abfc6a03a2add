use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::{Instant, Sleep, sleep_until};

use super::connection::UpstreamConnection;
use super::http2::OpenStream;
use super::pool::Pool;
use super::upstream_error::UpstreamError;
use crate::gateway::delivery::NextFrame;

/// The connection that a response arrives on.
pub(super) enum Link {
    Http1(UpstreamConnection),
    Http2(#[expect(dead_code, reason = "it counts until it is dropped")] OpenStream),
}

/// The body of the upstream's response. Once it has been read, its connection returns to the pool; if it is dropped
/// before, the connection is closed, or over HTTP/2 its stream.
pub(super) struct UpstreamBody {
    incoming: Incoming,
    link: Option<Link>,
    pool: Arc<Pool>,
    silence: Option<Silence>,
}

/// How long the upstream may send nothing.
struct Silence {
    allowed: Duration,
    /// Fires `allowed` after the last frame. It is reset only when it fires, since resetting it costs more than a
    /// frame.
    timer: Option<Pin<Box<Sleep>>>,
    last_frame: Instant,
}

impl UpstreamBody {
    /// `silence` is how long the upstream may send nothing between two parts; `None` for no limit.
    pub(super) fn new(incoming: Incoming, link: Link, pool: Arc<Pool>, silence: Option<Duration>) -> Self {
        let silence = silence.map(|allowed| Silence { allowed, timer: None, last_frame: Instant::now() });
        let mut body = Self { incoming, link: Some(link), pool, silence };
        if body.incoming.is_end_stream() {
            body.release();
        }
        body
    }

    /// Reads what has already arrived, so that the connection can be used again if that is all.
    pub(super) fn discard(mut self) {
        let mut context = Context::from_waker(Waker::noop());
        for _ in 0..4 {
            match self.poll_incoming(&mut context) {
                Poll::Ready(Some(Ok(_))) if !self.incoming.is_end_stream() => {}
                Poll::Ready(Some(Ok(_)) | None) => return self.release(),
                Poll::Ready(Some(Err(_))) | Poll::Pending => return,
            }
        }
    }

    /// Returns the connection to the pool, if it can be used again.
    fn release(&mut self) {
        if let Some(Link::Http1(mut connection)) = self.link.take()
            && connection.is_idle()
        {
            self.pool.put(connection);
        }
    }

    fn poll_incoming(&mut self, context: &mut Context<'_>) -> Poll<Option<hyper::Result<Frame<Bytes>>>> {
        match &mut self.link {
            Some(Link::Http1(connection)) => connection.poll_body(&mut self.incoming, context),
            Some(Link::Http2(_)) | None => Pin::new(&mut self.incoming).poll_frame(context),
        }
    }
}

impl Silence {
    /// Ready once the upstream has been silent for too long.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        loop {
            let deadline = self.last_frame + self.allowed;
            let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
            std::task::ready!(timer.as_mut().poll(context));
            if timer.deadline() >= deadline {
                return Poll::Ready(());
            }
            timer.as_mut().reset(deadline);
        }
    }
}

impl Body for UpstreamBody {
    type Data = Bytes;
    type Error = UpstreamError;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<NextFrame<UpstreamError>> {
        match self.poll_incoming(context) {
            Poll::Ready(frame) => {
                match &frame {
                    // Nothing follows trailers.
                    Some(Ok(frame)) if !frame.is_trailers() && !self.incoming.is_end_stream() => {}
                    Some(Ok(_)) | None => self.release(),
                    Some(Err(_)) => self.link = None,
                }
                if let Some(silence) = &mut self.silence {
                    silence.last_frame = Instant::now();
                }
                Poll::Ready(frame.map(|frame| frame.map_err(UpstreamError::Http)))
            }
            Poll::Pending => match &mut self.silence {
                Some(silence) => silence.poll(context).map(|()| Some(Err(UpstreamError::TimedOut))),
                None => Poll::Pending,
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        match self.link {
            // Over HTTP/2, trailers can follow a body of known length.
            Some(Link::Http2(_)) => SizeHint::default(),
            Some(Link::Http1(_)) | None => self.incoming.size_hint(),
        }
    }
}
