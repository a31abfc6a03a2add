//! The upstream's streams: an event immediately, and then one at each interval.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::Response;
use hyper::body::{Body, Bytes, Frame};
use hyper::header::CONTENT_TYPE;
use tokio::time::{Interval, MissedTickBehavior, interval};

/// About as long as a trade of the sample feed.
const EVENT: Bytes = Bytes::from_static(
    b"event: trade\nid: 24036000\ndata: {\"block\":24036000,\"price\":\"1234.567890\",\"amount\":\"0.125\",\"side\":\"buy\"}\n\n",
);

/// The end of an event.
pub(super) const END: &[u8; 2] = b"\n\n";

/// A body that never ends.
#[derive(Debug)]
pub(super) struct Events {
    ticks: Interval,
}

/// A stream with an event every `period`, counted from the request, so that streams do not send in step.
pub(super) fn response(period: Duration) -> Response<Events> {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let response = Response::builder().header(CONTENT_TYPE, "text/event-stream").body(Events { ticks });
    response.expect("the header is valid")
}

impl Body for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        ready!(self.ticks.poll_tick(cx));
        Poll::Ready(Some(Ok(Frame::data(EVENT))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::bare::Listener;
    use crate::client::Client;

    #[test]
    fn events_arrive_one_by_one() {
        let listener = Listener::serve(|_| response(Duration::from_millis(20))).unwrap();
        let mut stream = Client::new(listener.address()).open("/");
        assert_eq!(stream.header("content-type"), Some("text/event-stream"));
        for _ in 0..3 {
            assert_eq!(stream.piece().unwrap(), EVENT);
        }
        assert!(EVENT.ends_with(END) && EVENT.windows(2).filter(|pair| pair == END).count() == 1);
    }
}
