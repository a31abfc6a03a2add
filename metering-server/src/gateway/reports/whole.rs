//! Responses whose report needs the whole body, such as JSON: the body is read before the head is sent, so the head says
//! what was charged.

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::{HeaderValue, header};
use http_body::Frame;
use http_body_util::{BodyExt, BodyStream, StreamBody};
use metering_core::Error;
use metering_core::catalogue::ReportReader;
use tokio::time::timeout;

use super::request::{HeldRequest, Reply};
use super::rest::Rest;
use crate::gateway::delivery::{BodyError, ResponseBody};
use crate::gateway::forward;
use crate::http::{Problem, Response};

/// The most that is kept of a body, in bytes: twice what a reader reads, which skips white space at the start.
const LENGTH_MAX: usize = 16 << 20;

/// How reading ended.
enum End {
    Complete,
    /// The rest of the body makes no difference.
    Unreadable,
    /// The client had disconnected, and the rest of the body took too long or was too large.
    Abandoned,
    Broken(Problem),
    ShuttingDown,
}

/// Reads the body, settles the hold, and passes the response on.
pub(super) async fn pass_on(request: HeldRequest, response: Response, mut reader: ReportReader, mut reply: Reply) {
    let (mut head, mut body) = response.into_parts();
    let mut pieces = Vec::new();
    let end = read(&request, &mut body, &mut reader, &mut pieces, &mut reply).await;
    match end {
        End::Complete => {
            drop(request.settling.settle(reader.finish()).await);
            let length: usize = pieces.iter().map(Bytes::len).sum();
            head.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
            let body = StreamBody::new(stream::iter(frames(pieces))).boxed_unsync();
            let _ = reply.send(Ok(http::Response::from_parts(head, body)));
        }
        End::Unreadable => {
            drop(request.settling.settle(reader.finish()).await);
            let rest = BodyStream::new(body);
            let body = StreamBody::new(stream::iter(frames(pieces)).chain(rest)).boxed_unsync();
            let _ = reply.send(Ok(http::Response::from_parts(head, body)));
        }
        End::Abandoned => {
            drop(request.settling.settle_unreadable("disconnected", "its client disconnected too early").await);
        }
        End::ShuttingDown if reply.is_closed() => drop(request.settling.settle(Ok(None)).await),
        End::ShuttingDown => request.refuse(Error::ShuttingDown.into(), reply).await,
        // The client got nothing, so it is not charged.
        End::Broken(problem) => request.refuse(problem, reply).await,
    }
}

fn frames(pieces: Vec<Bytes>) -> impl Iterator<Item = Result<Frame<Bytes>, BodyError>> {
    pieces.into_iter().map(|piece| Ok(Frame::data(piece)))
}

async fn read(
    request: &HeldRequest,
    body: &mut ResponseBody,
    reader: &mut ReportReader,
    pieces: &mut Vec<Bytes>,
    reply: &mut Reply,
) -> End {
    let (mut rest, mut length) = (Rest::new(request.bounds), 0);
    loop {
        let frame = tokio::select! {
            biased;
            () = request.stop.cancelled() => return End::ShuttingDown,
            () = rest.over() => return End::Abandoned,
            () = reply.closed(), if !rest.has_begun() => {
                rest.begin();
                continue;
            }
            frame = timeout(request.silence, body.frame()) => frame,
        };
        let data = match frame {
            Err(_) => return End::Broken(forward::too_late()),
            Ok(None) => return End::Complete,
            Ok(Some(Err(error))) => return End::Broken(forward::broken_body(&error)),
            Ok(Some(Ok(frame))) => frame.into_data().unwrap_or_default(),
        };
        reader.push(&data);
        if !rest.read(data.len()) {
            return End::Abandoned;
        }
        length += data.len();
        if rest.has_begun() {
            // Nobody will read them.
            pieces.clear();
        } else {
            pieces.push(data);
        }
        if reader.has_given_up() || length > LENGTH_MAX {
            return End::Unreadable;
        }
    }
}
