//! Reads request bodies. All bodies are read here, so that every read has a limit on its size, its time and its memory.

use std::pin::pin;

use bytes::Bytes;
use http::Extensions;
use http_body::Body;
use http_body_util::BodyExt;
use metering_core::wire::ErrorCode;
use tokio::time::{Instant, timeout_at};

use super::body_budget::{BodyBudget, Exhausted, Kept};
use super::body_pace::Pace;
use super::problem::Problem;
use crate::config::HttpConfig;
use crate::operations::metric::counter;

/// `Retry-After` when there is no memory for a body, in seconds.
const RETRY_SECONDS: u64 = 1;

/// How request bodies are read, and how much memory they may use.
#[derive(Debug, Clone)]
pub(crate) struct Bodies {
    pace: Pace,
    budget: BodyBudget,
}

impl Bodies {
    /// For a process with this configuration. Clones share its budget, which has room for the largest body.
    #[must_use]
    pub(crate) fn new(config: &HttpConfig) -> Self {
        let pace = Pace { pause: config.body_timeout.duration(), min_rate: config.body_min_rate };
        let at_least = |bytes: usize| bytes.max(config.max_body_bytes);
        let budget =
            BodyBudget::new(at_least(config.body_budget_bytes), at_least(config.body_budget_per_address_bytes));
        Self { pace, budget }
    }

    /// The limits on buffered bodies.
    #[must_use]
    pub(crate) fn budget(&self) -> &BodyBudget {
        &self.budget
    }

    /// Reads the whole body of a request with these extensions, at most `limit` bytes. It counts against the budget
    /// until the bytes are dropped.
    ///
    /// # Errors
    /// 413 when it is too large, 408 when it is too slow, 400 when the client breaks off, 503 when there is no memory
    /// for it.
    pub(crate) async fn read<B>(&self, body: B, limit: usize, request: &Extensions) -> Result<Bytes, Problem>
    where
        B: Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        if body.is_end_stream() {
            return Ok(Bytes::new());
        }
        // Boxed, so that requests without a body have a small future.
        Box::pin(self.read_all(body, limit, request)).await
    }

    async fn read_all<B>(&self, body: B, limit: usize, request: &Extensions) -> Result<Bytes, Problem>
    where
        B: Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let announced = body.size_hint();
        // If the announced length is too large, refuse before the client sends the body.
        if usize::try_from(announced.lower()).map_or(true, |announced| announced > limit) {
            return Err(too_large(limit));
        }
        let most =
            announced.upper().and_then(|upper| usize::try_from(upper).ok()).map_or(limit, |upper| upper.min(limit));
        let mut buffer = self.budget.share(request).buffer(Kept::Request);
        let mut body = pin!(body);
        let started = Instant::now();
        let mut last = started;
        loop {
            let deadline = self.pace.deadline(started, last, buffer.len());
            let frame = match timeout_at(deadline, body.frame()).await {
                Ok(None) => return Ok(buffer.into_bytes()),
                Ok(Some(Ok(frame))) => frame,
                Ok(Some(Err(_))) => {
                    return Err(Problem::new(ErrorCode::InvalidJson, "The body is incomplete or not valid HTTP."));
                }
                Err(_) => return Err(too_slow()),
            };
            let Ok(data) = frame.into_data() else { continue };
            last = Instant::now();
            if data.len() > limit - buffer.len() {
                return Err(too_large(limit));
            }
            buffer.push(&data, most).map_err(no_memory)?;
        }
    }
}

fn too_large(limit: usize) -> Problem {
    Problem::new(ErrorCode::PayloadTooLarge, format!("The body is too large: at most {limit} bytes are accepted."))
}

fn too_slow() -> Problem {
    Problem::new(ErrorCode::RequestTimeout, "The body took too long to arrive; send it again.")
}

fn no_memory(exhausted: Exhausted) -> Problem {
    let (reason, message) = match exhausted {
        Exhausted::Server => {
            ("server", "The service is handling too many large requests. Nothing was charged; send the request again.")
        }
        Exhausted::Client => (
            "address",
            "Too many large requests from your network address are being handled. Nothing was charged; send the request \
             again when one has ended.",
        ),
    };
    counter!(
        "metering_bodies_refused_total",
        "Requests refused for want of memory for their body, by reason",
        "reason" => reason
    )
    .increment(1);
    Problem::new(ErrorCode::Overloaded, message).retry_after(RETRY_SECONDS)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::time::Duration;

    use futures_util::{StreamExt, stream};
    use http_body::Frame;
    use http_body_util::StreamBody;

    use super::*;

    /// A body of so many pieces of this size, each after a pause.
    fn paced(pieces: usize, size: usize, pause: Duration) -> impl Body<Data = Bytes, Error = Infallible> + Send {
        StreamBody::new(stream::iter(0..pieces).then(move |_| async move {
            tokio::time::sleep(pause).await;
            Ok(Frame::data(Bytes::from(vec![b'x'; size])))
        }))
    }

    #[tokio::test(start_paused = true)]
    async fn body_is_refused_by_its_pace_its_size_and_the_memory_that_is_left() {
        let config = HttpConfig {
            body_min_rate: 500,
            body_budget_bytes: 150_000,
            body_budget_per_address_bytes: 150_000,
            max_body_bytes: 100_000,
            ..HttpConfig::default()
        };
        let bodies = Bodies::new(&config);
        let none = Extensions::new();
        let second = Duration::from_secs(1);
        // pieces, their size, the pause before each, the refusal
        let table = [
            (1, 0, Duration::ZERO, None),
            (100, 1_000, second, None),
            (2, 10, 14 * second, Some(ErrorCode::RequestTimeout)),
            (1, 10, 16 * second, Some(ErrorCode::RequestTimeout)),
            (60, 1_000, 14 * second, Some(ErrorCode::RequestTimeout)),
            (101, 1_000, Duration::ZERO, Some(ErrorCode::PayloadTooLarge)),
        ];
        for (pieces, size, pause, refusal) in table {
            let read = bodies.read(paced(pieces, size, pause), 100_000, &none).await;
            match (read, refusal) {
                (Ok(body), None) => assert_eq!(body.len(), pieces * size),
                (Err(problem), Some(code)) => assert_eq!(problem.code(), code, "{pieces} {size} {pause:?}"),
                (read, _) => panic!("{pieces} {size} {pause:?}: {:?}", read.map(|body| body.len())),
            }
            assert_eq!(bodies.budget().taken(), 0);
        }
        let kept = bodies.read(paced(100, 1_000, Duration::ZERO), 100_000, &none).await.unwrap();
        let refused = bodies.read(paced(60, 1_000, Duration::ZERO), 100_000, &none).await.unwrap_err();
        assert_eq!(refused.code(), ErrorCode::Overloaded);
        drop(kept);
        assert!(bodies.read(paced(60, 1_000, Duration::ZERO), 100_000, &none).await.is_ok());
    }
}
