//! Copies bytes between a client and the upstream of a WebSocket connection until one of them, or the server, ends it.

use std::io;
use std::pin::pin;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::gateway::streams::sockets::SocketEnd;
use crate::gateway::websocket::frames::{Frames, close_frame};

/// How much of one direction the gateway buffers. A reader that is slower than its writer slows it down.
const BUFFER_BYTES: usize = 16 * 1024;
/// How long one direction may continue when the other has ended. Each side ends a WebSocket connection with a Close
/// frame, so little is left to send.
const HALF_OPEN: Duration = Duration::from_secs(10);
/// How long it may take to end the frame that has begun, and after that to close.
const CLOSE_GRACE: Duration = Duration::from_secs(1);

/// Copies until both sides have ended, one has broken off, or `ended` resolves: then the client gets a Close frame,
/// unless it does not read.
pub(super) async fn run<C, U>(client: C, upstream: U, ended: impl Future<Output = SocketEnd>)
where
    C: AsyncRead + AsyncWrite,
    U: AsyncRead + AsyncWrite,
{
    let ((mut from_client, mut to_client), (mut from_upstream, mut to_upstream)) = (split(client), split(upstream));
    let (mut frames, stop) = (Frames::default(), CancellationToken::new());
    let end = {
        let upwards = pin!(copy(&mut from_client, &mut to_upstream));
        let mut downwards = pin!(copy_frames(&mut from_upstream, &mut to_client, &mut frames, &stop).fuse());
        let end = tokio::select! {
            () = both(upwards, downwards.as_mut()) => return,
            end = ended => end,
        };
        tracing::info!(reason = ?end, "ending a WebSocket connection");
        stop.cancel();
        match timeout(CLOSE_GRACE, downwards).await {
            Ok(Ok(())) => end,
            Ok(Err(_)) | Err(_) => return,
        }
    };
    if !frames.is_closed() {
        // A client that does not read or respond is cut off.
        let _ = timeout(CLOSE_GRACE, close(&mut from_client, &mut to_client, end)).await;
    }
}

/// Resolves when both directions have ended, or a side has broken off. When one direction has ended, the other must end
/// soon.
async fn both(
    upwards: impl Future<Output = io::Result<()>> + Unpin,
    downwards: impl Future<Output = io::Result<()>> + Unpin,
) {
    let (mut upwards, mut downwards) = (upwards, downwards);
    let (first, other) = tokio::select! {
        first = &mut upwards => (first, timeout(HALF_OPEN, &mut downwards).left_future()),
        first = &mut downwards => (first, timeout(HALF_OPEN, &mut upwards).right_future()),
    };
    if first.is_ok() {
        let _ = other.await;
    }
}

/// Copies one direction until its end, which it passes on.
async fn copy(from: &mut (impl AsyncRead + Unpin), to: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let count = from.read(&mut buffer).await?;
        if count == 0 {
            return to.shutdown().await;
        }
        to.write_all(&buffer[..count]).await?;
        to.flush().await?;
    }
}

/// Copies the direction to the client until its end, which it forwards, or until the end of the frame during which
/// `stop` arrives.
async fn copy_frames(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    frames: &mut Frames,
    stop: &CancellationToken,
) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let count = tokio::select! {
            biased;
            () = stop.cancelled(), if frames.is_between_frames() => return Ok(()),
            count = from.read(&mut buffer) => count?,
        };
        if count == 0 {
            return to.shutdown().await;
        }
        let mut rest = &buffer[..count];
        while !rest.is_empty() {
            if stop.is_cancelled() {
                rest = &rest[..frames.rest_of_frame(rest)];
                if rest.is_empty() {
                    break;
                }
            }
            let written = to.write(rest).await?;
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            frames.sent(&rest[..written]);
            rest = &rest[written..];
        }
        to.flush().await?;
    }
}

/// Sends a Close frame and waits until the client has closed: unread input would reset the connection, and the frame
/// could get lost.
async fn close(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    end: SocketEnd,
) -> io::Result<()> {
    // RFC 6455, section 7.4.1.
    let (code, reason) = match end {
        SocketEnd::ShuttingDown => (1001, "the server is shutting down"),
        SocketEnd::KeyEnded => (1008, "the API key no longer works"),
        SocketEnd::BalanceUsedUp => (1008, "the balance is used up"),
    };
    to.write_all(&close_frame(code, reason)).await?;
    to.flush().await?;
    to.shutdown().await?;
    let mut ignored = [0; 1_024];
    while from.read(&mut ignored).await? > 0 {}
    Ok(())
}

#[cfg(test)]
mod tests {
    use tokio::io::{DuplexStream, duplex};
    use tokio::sync::oneshot;
    use tokio::task::JoinHandle;

    use super::*;

    /// A tunnel: the client's end, the upstream's end, and what ends it.
    fn open() -> (DuplexStream, DuplexStream, oneshot::Sender<SocketEnd>, JoinHandle<()>) {
        let ((client, near_client), (upstream, near_upstream)) = (duplex(64), duplex(64));
        let (end, ended) = oneshot::channel();
        let ended = async {
            match ended.await {
                Ok(end) => end,
                Err(_) => std::future::pending().await,
            }
        };
        (client, upstream, end, tokio::spawn(run(near_client, near_upstream, ended)))
    }

    async fn read(stream: &mut DuplexStream, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        let _ = stream.read_exact(&mut bytes).await.unwrap();
        bytes
    }

    async fn read_to_end(stream: &mut DuplexStream) -> Vec<u8> {
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes).await.unwrap();
        bytes
    }

    #[tokio::test(start_paused = true)]
    async fn end_of_one_direction_is_passed_on_and_the_other_may_go_on_for_a_while() {
        let (mut client, mut upstream, _end, tunnel) = open();
        client.write_all(b"last words").await.unwrap();
        client.shutdown().await.unwrap();
        assert_eq!(read_to_end(&mut upstream).await, b"last words");
        upstream.write_all(b"answer").await.unwrap();
        assert_eq!(read(&mut client, 6).await, b"answer");
        assert!(!tunnel.is_finished());
        tokio::time::advance(HALF_OPEN).await;
        tunnel.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn close_frame_is_sent_once_the_frame_that_has_begun_is_complete() {
        let (mut client, mut upstream, end, tunnel) = open();
        // The first half of a frame of four bytes.
        upstream.write_all(&[0x82, 4, 1, 2]).await.unwrap();
        assert_eq!(read(&mut client, 4).await, [0x82, 4, 1, 2]);
        end.send(SocketEnd::ShuttingDown).unwrap();
        tokio::task::yield_now().await;
        // The second half, and a frame that comes too late.
        upstream.write_all(&[3, 4, 0x82, 1, 9]).await.unwrap();
        let reading = async {
            let rest = read_to_end(&mut client).await;
            drop(client);
            rest
        };
        let rest = reading.await;
        assert_eq!(rest, [vec![3, 4], close_frame(1001, "the server is shutting down")].concat());
        tunnel.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn no_close_frame_is_put_into_another_or_after_one() {
        for before in [&[0x82, 4, 1, 2][..], &close_frame(1000, "bye")] {
            let (mut client, mut upstream, end, tunnel) = open();
            upstream.write_all(before).await.unwrap();
            assert_eq!(read(&mut client, before.len()).await, before);
            end.send(SocketEnd::KeyEnded).unwrap();
            assert_eq!(read_to_end(&mut client).await, b"");
            tunnel.await.unwrap();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn client_that_does_not_read_is_cut_off() {
        let (_client, mut upstream, end, tunnel) = open();
        let _ = timeout(CLOSE_GRACE, upstream.write_all(&[0x82; 1_000])).await.unwrap_err();
        end.send(SocketEnd::KeyEnded).unwrap();
        timeout(CLOSE_GRACE * 3, tunnel).await.unwrap().unwrap();
    }
}
