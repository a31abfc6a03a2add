//! A client of a server with a certificate, over HTTP/1.1 or HTTP/2.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::{http1, http2};
use hyper::{Method, Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio_rustls::TlsConnector;

/// The version of HTTP that a client offers, and the server must accept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    One,
    Two,
}

/// An open connection.
pub(crate) struct Https {
    runtime: Runtime,
    sender: Sender,
    address: SocketAddr,
    /// The certificate that the server showed.
    pub(crate) certificate: Vec<u8>,
}

enum Sender {
    One(http1::SendRequest<Full<Bytes>>),
    Two(http2::SendRequest<Full<Bytes>>),
}

/// A response that was read to its end.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) status: u16,
    pub(crate) headers: hyper::HeaderMap,
    pub(crate) text: String,
}

impl Read {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map(|value| value.to_str().unwrap()).unwrap_or_default()
    }
}

impl Https {
    /// Connects, and trusts only this authority.
    pub(crate) fn connect(address: SocketAddr, authority: &Path, version: Version) -> std::io::Result<Self> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(authority).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let mut config = config.with_root_certificates(roots).with_no_client_auth();
        let alpn: &[u8] = if version == Version::Two { b"h2" } else { b"http/1.1" };
        config.alpn_protocols = vec![alpn.to_vec()];
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let (sender, certificate) = runtime.block_on(async {
            let socket = TcpStream::connect(address).await?;
            let name = ServerName::try_from("localhost").unwrap();
            let stream = TlsConnector::from(Arc::new(config)).connect(name, socket).await?;
            let session = stream.get_ref().1;
            assert_eq!(session.alpn_protocol(), Some(alpn));
            let certificate = session.peer_certificates().unwrap()[0].to_vec();
            let io = TokioIo::new(stream);
            Ok::<_, std::io::Error>(match version {
                Version::One => {
                    let (sender, connection) = http1::handshake(io).await.map_err(std::io::Error::other)?;
                    tokio::spawn(connection);
                    (Sender::One(sender), certificate)
                }
                Version::Two => {
                    let handshake = http2::handshake(TokioExecutor::new(), io).await;
                    let (sender, connection) = handshake.map_err(std::io::Error::other)?;
                    tokio::spawn(connection);
                    (Sender::Two(sender), certificate)
                }
            })
        })?;
        Ok(Self { runtime, sender, address, certificate })
    }

    fn request(&self, method: Method, path: &str, key: Option<&str>, body: &str) -> Request<Full<Bytes>> {
        let request = Request::builder().method(method).header("accept", "application/json, text/event-stream");
        let request = match key {
            Some(key) => request.header("authorization", format!("Bearer {key}")),
            None => request,
        };
        let request = match body {
            "" => request,
            _ => request.header("content-type", "application/json"),
        };
        let request = match &self.sender {
            Sender::One(_) => request.uri(path).header("host", format!("localhost:{}", self.address.port())),
            Sender::Two(_) => request.uri(format!("https://localhost:{}{path}", self.address.port())),
        };
        request.body(Full::new(Bytes::from(body.to_owned()))).unwrap()
    }

    /// Sends a request, and returns once the response's head has arrived.
    pub(crate) fn open(&mut self, path: &str, key: &str) -> Response<Incoming> {
        let request = self.request(Method::GET, path, Some(key), "");
        let Self { runtime, sender, .. } = self;
        runtime.block_on(async {
            match sender {
                Sender::One(sender) => sender.send_request(request).await,
                Sender::Two(sender) => sender.send_request(request).await,
            }
            .unwrap()
        })
    }

    /// Reads the next piece of a response.
    pub(crate) fn piece(&self, response: &mut Response<Incoming>) -> String {
        let frame = self.runtime.block_on(response.body_mut().frame()).unwrap().unwrap();
        String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap()
    }

    /// Sends a request, and reads its response.
    pub(crate) fn send(&mut self, method: Method, path: &str, key: Option<&str>, body: &str) -> hyper::Result<Read> {
        let request = self.request(method, path, key, body);
        let Self { runtime, sender, .. } = self;
        runtime.block_on(async {
            match sender {
                Sender::One(sender) => {
                    sender.ready().await?;
                    read(sender.send_request(request).await?).await
                }
                Sender::Two(sender) => read(sender.send_request(request).await?).await,
            }
        })
    }

    /// `GET path`.
    pub(crate) fn get(&mut self, path: &str, key: Option<&str>) -> Read {
        self.send(Method::GET, path, key, "").unwrap()
    }

    /// Sends many requests at a time over one connection of HTTP/2.
    pub(crate) fn get_at_once(&self, path: &str, key: &str, count: usize) -> Vec<Read> {
        let Sender::Two(sender) = &self.sender else { panic!("only HTTP/2 sends many requests at a time") };
        let sending = (0..count).map(|_| {
            let (mut sender, request) = (sender.clone(), self.request(Method::GET, path, Some(key), ""));
            self.runtime.spawn(async move { read(sender.send_request(request).await.unwrap()).await.unwrap() })
        });
        let sending: Vec<_> = sending.collect();
        sending.into_iter().map(|sent| self.runtime.block_on(sent).unwrap()).collect()
    }
}

async fn read(response: Response<Incoming>) -> hyper::Result<Read> {
    let (head, body) = response.into_parts();
    let text = String::from_utf8(body.collect().await?.to_bytes().to_vec()).unwrap();
    Ok(Read { status: head.status.as_u16(), headers: head.headers, text })
}
