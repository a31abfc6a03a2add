use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::{TrySendError, http1};
use hyper::rt::{Read, Write};
use hyper::upgrade::Upgraded;
use hyper_rustls::MaybeHttpsStream;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// How a connection is made: over TCP, with TLS for `https`.
pub(super) type Connector = hyper_rustls::HttpsConnector<HttpConnector>;

/// The maximum number of headers in a response; hyper's own limit is 100. hyper fills 64 bytes for each allowed header
/// with every response, in two blocks of memory that it frees at once.
///
/// Such a block has 7 KiB. Above that, mimalloc takes it from where it takes the buffers of connections, 8 KiB each.
/// These are hardly used in an open stream, but if they were filled before, all of their memory is resident.
pub(super) const MAX_HEADERS: usize = 224;

/// A connection before any request.
pub(super) type Stream = MaybeHttpsStream<TokioIo<TcpStream>>;
type Outgoing = Full<Bytes>;

/// The maximum size of a response's head, and of what is read ahead of a client that does not read, in bytes.
const BUFFER_BYTES: usize = 128 << 10;

/// A connection to the upstream.
///
/// The task that waits for the response also drives the connection. So a response wakes one task, not two, and an idle
/// connection needs none. `is_idle` notices that the upstream closed it.
pub(super) struct UpstreamConnection {
    sender: http1::SendRequest<Outgoing>,
    /// Reads and writes the socket; `None` once the connection has ended.
    driver: Option<Driver>,
    /// Where it was opened, as the pool counts.
    pub(super) place: usize,
}

/// Boxed, because hyper's type for a connection that can switch to another protocol has no name.
type Driver = Pin<Box<dyn Future<Output = hyper::Result<()>> + Send>>;

impl UpstreamConnection {
    pub(super) async fn handshake(stream: Stream, place: usize) -> hyper::Result<Self> {
        // Open each kind separately, so the driver without TLS is smaller than the one with TLS.
        let (sender, driver) = match stream {
            Stream::Http(stream) => open(stream).await?,
            Stream::Https(stream) => open(stream).await?,
        };
        Ok(Self { sender, driver: Some(driver), place })
    }

    /// Sends a request and waits for the head of the response.
    pub(super) async fn send(
        &mut self,
        request: Request<Outgoing>,
    ) -> Result<Response<Incoming>, TrySendError<Request<Outgoing>>> {
        let mut response = pin!(self.sender.try_send_request(request));
        std::future::poll_fn(|context| {
            drive(&mut self.driver, context);
            response.as_mut().poll(context)
        })
        .await
    }

    /// The connection after it has switched to another protocol, as its last response says.
    pub(super) async fn switched(mut self, response: &mut Response<Incoming>) -> hyper::Result<Upgraded> {
        let mut upgraded = pin!(hyper::upgrade::on(response));
        std::future::poll_fn(|context| {
            drive(&mut self.driver, context);
            upgraded.as_mut().poll(context)
        })
        .await
    }

    /// Reads the body of the last response.
    pub(super) fn poll_body(
        &mut self,
        body: &mut Incoming,
        context: &mut Context<'_>,
    ) -> Poll<Option<hyper::Result<Frame<Bytes>>>> {
        if let Poll::Ready(frame) = Pin::new(&mut *body).poll_frame(context) {
            return Poll::Ready(frame);
        }
        // Polling the body has requested more data from the connection.
        drive(&mut self.driver, context);
        Pin::new(body).poll_frame(context)
    }

    /// Whether the connection can take another request: it is open, and its last response has been read.
    pub(super) fn is_idle(&mut self) -> bool {
        drive(&mut self.driver, &mut Context::from_waker(Waker::noop()));
        self.driver.is_some() && self.sender.is_ready()
    }
}

async fn open<S>(stream: S) -> hyper::Result<(http1::SendRequest<Outgoing>, Driver)>
where
    S: Read + Write + Unpin + Send + 'static,
{
    let mut builder = http1::Builder::new();
    let builder = builder.max_buf_size(BUFFER_BYTES).max_headers(MAX_HEADERS);
    let (sender, driver) = builder.handshake::<_, Outgoing>(stream).await?;
    let driver: Driver = Box::pin(driver.with_upgrades());
    Ok((sender, driver))
}

fn drive(driver: &mut Option<Driver>, context: &mut Context<'_>) {
    // Its error, if it has one, is also that of the response.
    if driver.as_mut().is_some_and(|driver| driver.as_mut().poll(context).is_ready()) {
        *driver = None;
    }
}
