//! JSON responses: a small body is read before the head is sent, so the head has the charge. A large one, an array,
//! which may be a stream, and one for which there is no memory, is passed on as it arrives. The report is read either
//! way.

use bytes::Bytes;
use http::{HeaderValue, header};
use http_body::Body;
use http_body_util::{BodyExt, Full};
use metering_core::Error;
use metering_core::catalogue::{BodyEnd, ReportReader};
use tokio::time::timeout;

use super::relay;
use super::request::{HeldRequest, Reply};
use super::rest::Rest;
use crate::gateway::delivery::ResponseBody;
use crate::gateway::forward;
use crate::http::{BodyBuffer, Kept, Problem, Response};

/// The maximum size of a body that is kept, in bytes. The longest texts of language models are about half of that;
/// images and embeddings are larger, and would take memory for nothing but a header.
const KEPT_BYTES_MAX: usize = 1 << 20;

/// How reading ended.
enum End {
    /// All of it was kept, or it is this piece.
    Complete(Option<Bytes>),
    /// Not yet: the body is passed on as it arrives, from this piece on.
    PassOn(Option<Bytes>),
    /// The client had disconnected, and the rest is not read.
    Abandoned,
    Broken(Problem),
    ShuttingDown,
}

/// Reads the body, settles the hold, and passes the response on.
pub(super) async fn pass_on(mut request: HeldRequest, response: Response, mut reader: ReportReader, mut reply: Reply) {
    let (mut head, mut body) = response.into_parts();
    let mut kept = request.share.buffer(Kept::Response);
    let end = read(&mut request, &mut body, &mut reader, &mut kept, &mut reply).await;
    match end {
        End::Complete(piece) => {
            drop(request.settling.settle_read(reader, BodyEnd::Complete).await);
            let body = piece.unwrap_or_else(|| kept.into_bytes());
            head.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(body.len()));
            let body = Full::new(body).map_err(|never| match never {}).boxed_unsync();
            let _ = reply.send(Ok(http::Response::from_parts(head, body)));
        }
        End::PassOn(last) => {
            let response = http::Response::from_parts(head, body);
            let begun = [Some(kept.into_bytes()), last].into_iter().flatten().filter(|piece| !piece.is_empty());
            relay::pass_on(request, response, Some(reader), begun.collect(), reply).await;
        }
        End::Abandoned => settle_part(&request, reader, BodyEnd::Abandoned).await,
        End::ShuttingDown if reply.is_closed() => settle_part(&request, reader, BodyEnd::ShuttingDown).await,
        End::ShuttingDown => request.refuse(Error::ShuttingDown.into(), reply).await,
        // The client got nothing, so it is not charged.
        End::Broken(problem) => request.refuse(problem, reply).await,
    }
}

async fn settle_part(request: &HeldRequest, reader: ReportReader, end: BodyEnd) {
    drop(request.settling.settle_read(reader, end).await);
}

async fn read(
    request: &mut HeldRequest,
    body: &mut ResponseBody,
    reader: &mut ReportReader,
    kept: &mut BodyBuffer,
    reply: &mut Reply,
) -> End {
    let mut rest = Rest::new(request.bounds);
    let stop = request.stop.clone();
    let length = body.size_hint().exact().and_then(|length| usize::try_from(length).ok());
    let mut room = length.filter(|length| *length <= KEPT_BYTES_MAX);
    loop {
        let frame = tokio::select! {
            biased;
            () = stop.cancelled() => return End::ShuttingDown,
            () = rest.over() => return End::Abandoned,
            () = reply.closed(), if !rest.has_begun() => {
                if !request.client_has_gone().await {
                    return End::Abandoned;
                }
                rest.begin();
                continue;
            }
            frame = timeout(request.silence, body.frame()) => frame,
        };
        let data = match frame {
            Err(_) => return End::Broken(forward::too_late()),
            Ok(None) => return End::Complete(None),
            Ok(Some(Err(error))) => return End::Broken(forward::broken_body(&error)),
            Ok(Some(Ok(frame))) => frame.into_data().unwrap_or_default(),
        };
        reader.push(&data);
        if !rest.read(data.len()) {
            return End::Abandoned;
        }
        if rest.has_begun() {
            // It will not be read.
            kept.clear();
            continue;
        }
        if kept.len() == 0 && body.is_end_stream() && !reader.reads_array() {
            return End::Complete(Some(data));
        }
        if let Some(room) = room.take() {
            // If there is no memory for all of it, it grows as it arrives.
            let _ = kept.reserve(room);
        }
        // A piece may be a small part of a large allocation, so it is copied.
        if kept.push(&data, KEPT_BYTES_MAX).is_err() {
            return End::PassOn(Some(data));
        }
        if reader.reads_array() || kept.len() > KEPT_BYTES_MAX {
            return End::PassOn(None);
        }
    }
}
