//! A client socket with the checks that hyper lacks: a timeout for stalled writes, and detection of clients that
//! half-close while their request is served.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};

use crate::http::connection::Connection;
use crate::operations::metrics;

/// How often, and at which intervals, to look for the rest of a partial read.
const PEEKS: u32 = 100;
const PEEK_PAUSE: Duration = Duration::from_millis(5);

/// A socket that records its state in its [`Connection`].
#[derive(Debug)]
pub(super) struct ClientStream {
    socket: TcpStream,
    connection: Connection,
    write_timeout: Duration,
    /// The timeout of a blocked write; dropped when the write makes progress.
    stall: Option<Pin<Box<Sleep>>>,
    half_closed: bool,
}

impl ClientStream {
    pub(super) fn new(socket: TcpStream, connection: Connection, write_timeout: Duration) -> Self {
        Self { socket, connection, write_timeout, stall: None, half_closed: false }
    }

    /// The first byte that the client sent, without consuming it; `None` if it closed the connection instead.
    ///
    /// # Errors
    /// When the connection is broken.
    pub(super) async fn peek_byte(&self) -> io::Result<Option<u8>> {
        let mut byte = [0];
        Ok((self.socket.peek(&mut byte).await? > 0).then_some(byte[0]))
    }

    /// Whether the client begins with these bytes, without consuming them. It may send them in parts, within half a
    /// second.
    ///
    /// # Errors
    /// When the connection is broken.
    pub(super) async fn begins_with<const N: usize>(&self, bytes: [u8; N]) -> io::Result<bool> {
        let mut seen = [0; N];
        for _ in 0..PEEKS {
            let count = self.socket.peek(&mut seen).await?;
            if count == 0 || count == N || seen[..count] != bytes[..count] {
                return Ok(seen == bytes);
            }
            // Received data keeps the socket readable, so there is no event to wait for.
            sleep(PEEK_PAUSE).await;
        }
        Ok(false)
    }

    /// Passes on a write's outcome, and fails it when the client has read nothing for the write timeout.
    fn written(&mut self, outcome: Poll<io::Result<usize>>, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if outcome.is_ready() {
            if self.stall.take().is_some() {
                self.connection.resumes();
            }
            return outcome;
        }
        if self.stall.is_none() {
            self.connection.stalls();
        }
        let timer = self.stall.get_or_insert_with(|| Box::pin(sleep(self.write_timeout)));
        ready!(timer.as_mut().poll(context));
        metrics::connection_closed("write_timeout");
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client stopped reading its response")))
    }

    /// Checks whether the client half-closed or reset the connection, without consuming its data.
    fn check_half_close(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        let mut byte = [0];
        match self.socket.poll_peek(context, &mut ReadBuf::new(&mut byte)) {
            Poll::Ready(Ok(0)) => {
                self.half_closed = true;
                self.connection.half_close();
                Ok(())
            }
            Poll::Ready(Err(error)) => Err(error),
            // A pipelined request, or nothing.
            Poll::Ready(Ok(_)) | Poll::Pending => Ok(()),
        }
    }
}

impl AsyncRead for ClientStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let outcome = Pin::new(&mut self.socket).poll_read(context, buffer);
        match &outcome {
            Poll::Pending => self.connection.waits(),
            Poll::Ready(Ok(())) if buffer.filled().len() > before && !self.connection.received() => {
                return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
            }
            Poll::Ready(_) => {}
        }
        outcome
    }
}

impl AsyncWrite for ClientStream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.socket).poll_write(context, bytes);
        self.written(outcome, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.socket).poll_write_vectored(context, slices);
        self.written(outcome, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    /// hyper flushes after every step, so this is where to detect a client that leaves while its request is served.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.socket).poll_flush(context))?;
        if !self.half_closed && self.connection.is_serving() {
            self.check_half_close(context)?;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(context)
    }
}

impl Drop for ClientStream {
    fn drop(&mut self) {
        if self.stall.is_some() {
            // Otherwise the operating system would keep and retransmit the unread data.
            let _ = self.socket.set_zero_linger();
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    const TIMEOUT: Duration = Duration::from_millis(300);

    async fn pair() -> (ClientStream, TcpStream, Connection) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (socket, _) = listener.accept().await.unwrap();
        let connection = Connection::new();
        (ClientStream::new(socket, connection.clone(), TIMEOUT), client, connection)
    }

    /// One attempt to write, without waiting.
    async fn attempt(stream: &mut ClientStream) -> Poll<io::Result<usize>> {
        std::future::poll_fn(|context| Poll::Ready(Pin::new(&mut *stream).poll_write(context, &[0; 65_536]))).await
    }

    /// Writes until the client would have to read.
    async fn fill(stream: &mut ClientStream) {
        while let Poll::Ready(written) = attempt(stream).await {
            written.unwrap();
        }
    }

    /// Reads what the client received until the server can write again. The task is never idle, so paused time stands.
    async fn read_until_written(client: &TcpStream, stream: &mut ClientStream) {
        let mut buffer = vec![0; 1 << 20];
        loop {
            while client.try_read(&mut buffer).is_ok_and(|count| count > 0) {}
            if let Poll::Ready(written) = attempt(stream).await {
                written.unwrap();
                return;
            }
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn stalled_write_fails_and_slow_write_continues() {
        let (mut stream, client, _) = pair().await;
        for _ in 0..5 {
            fill(&mut stream).await;
            tokio::time::advance(TIMEOUT - Duration::from_millis(2)).await;
            read_until_written(&client, &mut stream).await;
        }
        fill(&mut stream).await;
        tokio::time::advance(TIMEOUT + Duration::from_millis(2)).await;
        let Poll::Ready(Err(error)) = attempt(&mut stream).await else { panic!("a stalled write went on") };
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn the_beginning_is_awaited_and_not_consumed() {
        // The packets that a client sends, and whether it begins with the bytes.
        let table: [(&[&[u8]], bool); 5] = [
            (&[b"PRI * "], true),
            (&[b"P", b"RI"], true),
            (&[b"PR", b"OPFIND"], false),
            (&[b"G"], false),
            (&[b""], false),
        ];
        for (packets, expected) in table {
            let (mut stream, mut client, _) = pair().await;
            let sending = async {
                for packet in packets {
                    client.write_all(packet).await.unwrap();
                    tokio::time::sleep(Duration::from_millis(30)).await;
                }
                client.shutdown().await.unwrap();
            };
            let (begins, ()) = tokio::join!(stream.begins_with(*b"PRI"), sending);
            assert_eq!(begins.unwrap(), expected, "{packets:?}");
            let mut sent = Vec::new();
            stream.read_to_end(&mut sent).await.unwrap();
            assert_eq!(sent, packets.concat());
        }
        // One that sends a part, and no more.
        let (stream, mut client, _) = pair().await;
        client.write_all(b"P").await.unwrap();
        assert!(!stream.begins_with(*b"PRI").await.unwrap());
    }

    #[tokio::test]
    async fn half_close_is_noticed_while_a_request_is_served() {
        let (mut stream, mut client, connection) = pair().await;
        client.write_all(b"x").await.unwrap();
        assert_eq!(stream.read_u8().await.unwrap(), b'x');
        stream.flush().await.unwrap();
        let half_closed = connection.half_closed();
        client.shutdown().await.unwrap();
        let flushing = async {
            loop {
                stream.flush().await.unwrap();
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::select! {
            () = half_closed => {}
            () = flushing => {}
            () = tokio::time::sleep(Duration::from_secs(60)) => panic!("the half-close went unnoticed"),
        }
    }

    #[tokio::test]
    async fn connection_being_closed_takes_no_request() {
        let (mut stream, mut client, connection) = pair().await;
        assert!(connection.cut_if_unproductive());
        client.write_all(b"x").await.unwrap();
        assert_eq!(stream.read_u8().await.unwrap_err().kind(), io::ErrorKind::ConnectionAborted);
    }
}
