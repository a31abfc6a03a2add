//! One client that reads a recording: its first one, or a retry.

use std::sync::Arc;

use futures_util::stream;
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use metering_core::Error;
use tokio::sync::watch;

use super::recording::{End, Recording, State};
use crate::gateway::delivery::BodyError;
use crate::http::{Connection, Problem, Response, into_response};

pub(super) struct Reader {
    recording: Arc<Recording>,
    number: u64,
    state: watch::Receiver<State>,
    /// Of the client. Without one, the request came from within the process.
    connection: Option<Connection>,
    /// How many pieces it has read.
    read: usize,
    has_ended: bool,
}

/// What comes next.
enum Next {
    Frame(Frame<bytes::Bytes>),
    End,
    Broken(BodyError),
    Wait,
}

impl Reader {
    /// One more reader of a recording, from its start. `None` if it can have no further one.
    pub(super) fn of(recording: &Arc<Recording>, connection: Option<Connection>, replays: bool) -> Option<Self> {
        let (number, state) = recording.admit(replays)?;
        Some(Self { recording: Arc::clone(recording), number, state, connection, read: 0, has_ended: false })
    }

    /// The response, once its head was received.
    pub(super) async fn response(mut self) -> Response {
        let head = match self.state.wait_for(|state| state.head.is_some() || state.end.is_some()).await {
            Ok(state) => state.head.clone(),
            Err(_) => None,
        };
        let Some(head) = head else { return into_response(Problem::from(Error::ShuttingDown).into_reply()) };
        let frames = stream::unfold(self, |mut reader| async move {
            let next = reader.next().await?;
            Some((next, reader))
        });
        let mut response = http::Response::new(StreamBody::new(frames).boxed_unsync());
        *response.status_mut() = head.status;
        *response.headers_mut() = head.headers;
        *response.extensions_mut() = head.extensions;
        response
    }

    async fn next(&mut self) -> Option<Result<Frame<bytes::Bytes>, BodyError>> {
        if self.has_ended {
            return None;
        }
        loop {
            let next = self.look();
            match next {
                Next::Frame(frame) => {
                    self.recording.was_read(self.number, self.read);
                    return Some(Ok(frame));
                }
                Next::End => {
                    self.has_ended = true;
                    return None;
                }
                Next::Broken(error) => {
                    self.has_ended = true;
                    return Some(Err(error));
                }
                Next::Wait => {
                    // The recording has the sender.
                    let _ = self.state.changed().await;
                }
            }
        }
    }

    fn look(&mut self) -> Next {
        let state = self.state.borrow_and_update();
        if let Some(data) = state.piece(self.read) {
            self.read += 1;
            return Next::Frame(Frame::data(data));
        }
        match &state.end {
            None => Next::Wait,
            Some(End::Complete) => match state.trailers.clone().filter(|_| !self.has_ended) {
                Some(trailers) => {
                    self.has_ended = true;
                    Next::Frame(Frame::trailers(trailers))
                }
                None => Next::End,
            },
            Some(End::Broken(error)) => match error.downcast_ref::<Error>() {
                Some(own) => Next::Broken(own.clone().into()),
                None => Next::Broken(error.to_string().into()),
            },
            Some(End::GivenUp) => Next::Broken(Error::ShuttingDown.into()),
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        // A client that has closed its side may be gone, and may not have received what was sent.
        let is_there = self.connection.as_ref().is_none_or(|connection| !connection.is_half_closed());
        self.recording.was_left(self.number, self.read, is_there);
    }
}
