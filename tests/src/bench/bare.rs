//! A listener on hyper alone: the fastest that a server on hyper can be, and an upstream where nginx is missing.
//!
//! It runs inside the benchmark, with as many threads as the real server has.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Bytes, Incoming};
use hyper::header::CONTENT_TYPE;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpSocket};

use super::Failure;
use super::background::Background;

/// The same as the real server's.
const BACKLOG: u32 = 4_096;

/// A running listener, which ends on drop.
#[derive(Debug)]
pub(super) struct Listener {
    address: SocketAddr,
    _runtime: Background,
}

impl Listener {
    /// Serves what `respond` returns.
    pub(super) fn serve<B>(
        respond: impl Fn(&Request<Incoming>) -> Response<B> + Clone + Send + 'static,
    ) -> Result<Self, Failure>
    where
        B: Body<Data = Bytes, Error = Infallible> + Send + 'static,
    {
        Self::serve_after(Duration::ZERO, respond)
    }

    /// Serves what `respond` returns, after a delay. The timer is coarse: a delay takes up to 1 ms longer.
    pub(super) fn serve_after<B>(
        delay: Duration,
        respond: impl Fn(&Request<Incoming>) -> Response<B> + Clone + Send + 'static,
    ) -> Result<Self, Failure>
    where
        B: Body<Data = Bytes, Error = Infallible> + Send + 'static,
    {
        let runtime = Background::start()?;
        let (sender, receiver) = std::sync::mpsc::channel();
        runtime.spawn(async move {
            let bound = listen();
            let address = bound
                .as_ref()
                .map_err(ToString::to_string)
                .and_then(|listener| listener.local_addr().map_err(|error| error.to_string()));
            let _ = sender.send(address);
            if let Ok(listener) = bound {
                accept(&listener, delay, respond).await;
            }
        });
        Ok(Self { address: receiver.recv()??, _runtime: runtime })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }
}

fn listen() -> std::io::Result<TcpListener> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddr::from(([127, 0, 0, 1], 0)))?;
    socket.listen(BACKLOG)
}

async fn accept<B>(
    listener: &TcpListener,
    delay: Duration,
    respond: impl Fn(&Request<Incoming>) -> Response<B> + Clone + Send + 'static,
) where
    B: Body<Data = Bytes, Error = Infallible> + Send + 'static,
{
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::task::yield_now().await;
            continue;
        };
        let _ = stream.set_nodelay(true);
        let respond = respond.clone();
        tokio::spawn(async move {
            let service = service_fn(move |request: Request<Incoming>| {
                let (response, body) = (respond(&request), request.into_body());
                async move {
                    // A body that is not read may end the connection.
                    if !body.is_end_stream() {
                        let _ = body.collect().await;
                    }
                    if !delay.is_zero() {
                        tokio::time::sleep(delay).await;
                    }
                    Ok::<_, Infallible>(response)
                }
            });
            // It ends with an error when a client closes in mid-response, as load generators do.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

/// A response with a body in one piece.
pub(super) fn whole(content_type: &str, body: Bytes) -> Response<Full<Bytes>> {
    let response = Response::builder().header(CONTENT_TYPE, content_type).body(Full::new(body));
    response.expect("a content type that was received is a valid header")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Client;
    use std::time::Instant;

    #[test]
    fn a_delayed_response_does_not_come_early() {
        const DELAY: Duration = Duration::from_millis(20);
        let listener = Listener::serve_after(DELAY, |_| whole("text/plain", Bytes::new())).unwrap();
        let client = Client::new(listener.address());
        let started = Instant::now();
        assert_eq!(client.get("/").status, 200);
        assert!(started.elapsed() >= DELAY);
    }

    #[test]
    fn it_serves_what_it_was_given() {
        let listener = Listener::serve(|request| whole("text/plain", request.uri().path().to_owned().into())).unwrap();
        let response = Client::new(listener.address()).get("/x");
        assert_eq!((response.status, response.header("content-type")), (200, Some("text/plain")));
        assert_eq!((response.header("content-length"), response.text().as_str()), (Some("2"), "/x"));
    }
}
