//! A service that sends the test's responses and records its requests.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use metering_client::{BodyStream, Client, Transport, Unreachable};
use metering_core::ClientSource;

/// The service. Clones share one state.
#[derive(Debug, Clone, Default)]
pub(crate) struct Script {
    replies: Arc<Mutex<VecDeque<Reply>>>,
    requests: Arc<Mutex<Vec<http::Request<Bytes>>>>,
    open_bodies: Arc<AtomicUsize>,
}

/// The service's response to a request.
#[derive(Debug)]
pub(crate) enum Reply {
    /// It responds.
    Response(http::Response<Vec<Chunk>>),
    /// It cannot be reached.
    Unreachable(&'static str),
}

/// A piece of a body.
#[derive(Debug, Clone)]
pub(crate) enum Chunk {
    Data(Bytes),
    /// The rest is sent after a while.
    Pause(Duration),
    /// The rest is not sent.
    Break(&'static str),
    /// The rest is never sent, but the body stays open.
    Hang,
}

impl Script {
    pub(crate) fn then(self, reply: Reply) -> Self {
        self.replies.lock().unwrap().push_back(reply);
        self
    }

    /// The requests since the last call.
    pub(crate) fn requests(&self) -> Vec<http::Request<Bytes>> {
        std::mem::take(&mut *self.requests.lock().unwrap())
    }

    /// Method, target and body of each request since the last call.
    pub(crate) fn sent(&self) -> Vec<String> {
        let line = |request: http::Request<Bytes>| {
            format!("{} {} {}", request.method(), request.uri(), String::from_utf8_lossy(request.body()))
        };
        self.requests().into_iter().map(line).collect()
    }

    /// A client of the service, like the command line.
    pub(crate) fn client(&self) -> Client {
        Client::new(Arc::new(self.clone()), ClientSource::Cli)
    }

    /// Waits until every body that it sends has ended or was dropped.
    pub(crate) async fn all_closed(&self) {
        let closed = async {
            while self.open_bodies.load(Ordering::SeqCst) > 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), closed).await.expect("all bodies are closed");
    }

    /// Waits for the next request.
    pub(crate) async fn wait_for_request(&self) {
        let request = async {
            while self.requests.lock().unwrap().is_empty() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), request).await.expect("a request arrives");
    }

    pub(crate) fn open_bodies(&self) -> usize {
        self.open_bodies.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl Transport for Script {
    async fn send(&self, request: http::Request<Bytes>) -> Result<http::Response<BodyStream>, Unreachable> {
        self.requests.lock().unwrap().push(request);
        let reply = self.replies.lock().unwrap().pop_front();
        match reply.expect("the test has a reply to every request") {
            Reply::Unreachable(why) => Err(Unreachable(why.to_owned())),
            Reply::Response(response) => {
                let open = Open::new(&self.open_bodies);
                Ok(response.map(|chunks| {
                    let chunks = stream::iter(chunks).filter_map(arrive);
                    // The guard lives as long as the stream.
                    chunks.map(move |chunk| (&open, chunk).1).boxed()
                }))
            }
        }
    }
}

async fn arrive(chunk: Chunk) -> Option<Result<Bytes, Unreachable>> {
    match chunk {
        Chunk::Data(bytes) => Some(Ok(bytes)),
        Chunk::Break(why) => Some(Err(Unreachable(why.to_owned()))),
        Chunk::Hang => std::future::pending().await,
        Chunk::Pause(wait) => {
            tokio::time::sleep(wait).await;
            None
        }
    }
}

/// Counts an open body.
#[derive(Debug)]
struct Open(Arc<AtomicUsize>);

impl Open {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(count))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A client of a service that responds to this many requests.
pub(crate) fn client(responses: usize) -> (Client, Script) {
    let script = (0..responses).fold(Script::default(), |script, _| script.then(response(200, &[], "{}")));
    (script.client(), script)
}

/// The response to a charged request; the balance is 1.9998611111 credits afterwards.
pub(crate) fn charged(body: impl Into<Bytes>) -> Reply {
    response(200, &[("x-bds-credit-balance", "1.9998611111"), ("x-bds-credit-charged", "0.0001388889")], body)
}

/// Any response.
pub(crate) fn response(status: u16, headers: &[(&str, &str)], body: impl Into<Bytes>) -> Reply {
    chunks(status, headers, vec![Chunk::Data(body.into())])
}

/// Any response, in chunks.
pub(crate) fn chunks(status: u16, headers: &[(&str, &str)], chunks: Vec<Chunk>) -> Reply {
    let head = http::Response::builder().status(status);
    let head = headers.iter().fold(head, |head, (name, value)| head.header(*name, *value));
    Reply::Response(head.body(chunks).unwrap())
}

/// A stream of events, charged half a credit.
pub(crate) fn events(pieces: Vec<Chunk>) -> Reply {
    let headers = [
        ("content-type", "text/event-stream; charset=utf-8"),
        ("x-bds-credit-balance", "1.5"),
        ("x-bds-credit-charged", "0.5"),
    ];
    chunks(200, &headers, pieces)
}
