//! One connection: sends a request, reads its response, and does not pipeline.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;

use super::body::Body;
use super::head::{self, Head, MAX_HEAD_BYTES};
use super::malformed::Malformed;

/// Room for a head and a piece of the body after it.
const BUFFER_BYTES: usize = 2 * MAX_HEAD_BYTES;

/// An open connection with its buffer.
#[derive(Debug)]
pub(super) struct Connection {
    stream: TcpStream,
    buffer: Box<[u8]>,
    filled: usize,
    timer: RequestTimer,
}

/// A response whose body was skipped.
#[derive(Debug)]
pub(super) struct Response<'c> {
    pub(super) status: u16,
    pub(super) head: &'c [u8],
    pub(super) keep_alive: bool,
}

impl Connection {
    pub(super) async fn open(address: SocketAddr, limit: Duration) -> io::Result<Self> {
        let stream = tokio::time::timeout(limit, TcpStream::connect(address)).await??;
        stream.set_nodelay(true)?;
        let buffer = vec![0; BUFFER_BYTES].into_boxed_slice();
        Ok(Self { stream, buffer, filled: 0, timer: RequestTimer::new(limit) })
    }

    /// Sends `request` at `started`, and returns when its response has ended.
    pub(super) async fn exchange(&mut self, request: &[u8], started: Instant) -> io::Result<Response<'_>> {
        self.timer.set(started);
        self.write(request).await?;
        self.filled = 0;
        let head = self.read_head(request.starts_with(b"HEAD ")).await?;
        let keep_alive = self.skip_body(&head).await?;
        Ok(Response { status: head.status, head: &self.buffer[..head.bytes], keep_alive })
    }

    async fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let (stream, timer) = (&mut self.stream, &mut self.timer);
            let written =
                poll_fn(|cx| timer.poll_until_deadline(cx, |cx| Pin::new(&mut *stream).poll_write(cx, bytes))).await?;
            bytes = &bytes[written..];
        }
        Ok(())
    }

    /// Reads the head of the final response, in any number of parts, and drops interim ones (RFC 9110, section 15.2).
    async fn read_head(&mut self, bodiless: bool) -> io::Result<Head> {
        loop {
            match head::parse(&self.buffer[..self.filled], bodiless)? {
                Some(interim) if interim.status < 200 => {
                    self.buffer.copy_within(interim.bytes..self.filled, 0);
                    self.filled -= interim.bytes;
                }
                Some(head) => return Ok(head),
                None => match self.read_at(self.filled).await? {
                    0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                    read => self.filled += read,
                },
            }
        }
    }

    /// Skips the body that follows `head`, and returns whether the connection can take another request.
    async fn skip_body(&mut self, head: &Head) -> io::Result<bool> {
        let mut body = Body::new(head.framing);
        loop {
            let skipped = head.bytes + body.skip(&self.buffer[head.bytes..self.filled])?;
            if body.is_over() && skipped < self.filled {
                return Err(Malformed::Framing("bytes after the end of a response").into());
            }
            if body.is_over() {
                return Ok(head.keep_alive);
            }
            // Keep the head for observers that read headers, and after it what was not skipped.
            self.buffer.copy_within(skipped..self.filled, head.bytes);
            self.filled = head.bytes + (self.filled - skipped);
            match (self.read_at(self.filled).await?, &body) {
                (0, _) if self.filled == self.buffer.len() => return Err(Malformed::Framing("an endless line").into()),
                (0, Body::UntilClose) => return Ok(false),
                (0, _) => return Err(io::ErrorKind::UnexpectedEof.into()),
                (read, _) => self.filled += read,
            }
        }
    }

    async fn read_at(&mut self, start: usize) -> io::Result<usize> {
        let (stream, timer) = (&mut self.stream, &mut self.timer);
        let mut room = ReadBuf::new(&mut self.buffer[start..]);
        // Not `try_read`: only `poll_read` lets tokio conclude from a partly filled buffer that nothing more is there,
        // which saves the read that would return `WouldBlock`.
        poll_fn(|cx| timer.poll_until_deadline(cx, |cx| Pin::new(&mut *stream).poll_read(cx, &mut room))).await?;
        Ok(room.filled().len())
    }
}

/// The timeout of the request in flight.
///
/// Resetting a timer for each request would cost more than parsing the response. This timer may fire for a request that
/// completed long ago; only then is it set to the deadline of the current one.
#[derive(Debug)]
struct RequestTimer {
    limit: Duration,
    deadline: Instant,
    sleep: Pin<Box<Sleep>>,
}

impl RequestTimer {
    fn new(limit: Duration) -> Self {
        let deadline = Instant::now() + limit;
        Self { limit, deadline, sleep: Box::pin(tokio::time::sleep_until(deadline.into())) }
    }

    fn set(&mut self, started: Instant) {
        self.deadline = started + self.limit;
    }

    /// The result of `poll`, or an error after the deadline.
    fn poll_until_deadline<T>(
        &mut self,
        cx: &mut Context<'_>,
        poll: impl FnOnce(&mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if let Poll::Ready(result) = poll(cx) {
            return Poll::Ready(result);
        }
        loop {
            ready!(self.sleep.as_mut().poll(cx));
            if self.sleep.deadline() >= self.deadline.into() {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
            self.sleep.as_mut().reset(self.deadline.into());
        }
    }
}
