//! A receiver of webhooks that does as a test says, on all loopback addresses.

use std::io::{self, Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// A certificate authority, and the file that names it.
pub(super) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    pub(super) file: tempfile::NamedTempFile,
}

impl Authority {
    pub(super) fn new() -> Self {
        let mut about = CertificateParams::new(vec!["authority.example".to_owned()]).unwrap();
        about.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        about.distinguished_name.push(DnType::CommonName, "authority.example");
        let issuer = CertifiedIssuer::self_signed(about, KeyPair::generate().unwrap()).unwrap();
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(issuer.pem().as_bytes()).unwrap();
        Self { issuer, file }
    }

    /// The settings of a server with a certificate for these names.
    fn server(&self, names: &[&str]) -> Arc<ServerConfig> {
        let key = KeyPair::generate().unwrap();
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let certificate = CertificateParams::new(names).unwrap().signed_by(&key, &self.issuer).unwrap();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let config = config.with_no_client_auth().with_single_cert(vec![certificate.der().clone()], key);
        Arc::new(config.unwrap())
    }
}

/// A received request, byte for byte.
#[derive(Debug, Clone)]
pub(super) struct Received {
    /// The address that it was sent to.
    pub(super) to: IpAddr,
    /// The request line and the headers, in lower case.
    pub(super) head: String,
    pub(super) body: String,
}

impl Received {
    /// The values of a header.
    pub(super) fn header(&self, name: &str) -> Vec<&str> {
        let values = self.head.lines().filter_map(|line| line.split_once(": ").filter(|(key, _)| *key == name));
        values.map(|(_, value)| value).collect()
    }
}

trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

/// A connection on which a request was received.
pub(super) struct Connection {
    stream: Box<dyn Stream>,
    tcp: TcpStream,
}

impl Connection {
    /// Sends text; fails when the client is gone.
    pub(super) fn send(&mut self, text: &str) -> io::Result<()> {
        self.stream.write_all(text.as_bytes())?;
        self.stream.flush()
    }

    /// Closes the connection with a TCP reset.
    pub(super) fn reset(self) {
        socket2::SockRef::from(&self.tcp).set_linger(Some(std::time::Duration::ZERO)).unwrap();
    }

    fn read_request(&mut self) -> io::Result<Received> {
        let (mut head, mut byte) = (Vec::new(), [0]);
        while !head.ends_with(b"\r\n\r\n") {
            self.stream.read_exact(&mut byte)?;
            head.push(byte[0]);
        }
        let head = String::from_utf8(head).unwrap();
        // Values keep their case.
        let lower = |line: &str| match line.split_once(':') {
            Some((name, value)) => format!("{}:{value}", name.to_ascii_lowercase()),
            None => line.to_owned(),
        };
        let head = head.lines().map(lower).collect::<Vec<_>>().join("\n");
        let mut received = Received { to: self.tcp.local_addr()?.ip(), head, body: String::new() };
        let length = received.header("content-length").first().map_or(0, |length| length.parse().unwrap());
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        received.body = String::from_utf8(body).unwrap();
        Ok(received)
    }
}

/// A running receiver.
pub(super) struct Receiver {
    pub(super) port: u16,
    connections: Arc<AtomicUsize>,
    received: Arc<Mutex<Vec<Received>>>,
}

impl Receiver {
    /// A receiver that speaks HTTP, and responds as `respond` does.
    pub(super) fn http(respond: impl Fn(Connection) + Send + Sync + 'static) -> Self {
        Self::start(None, respond)
    }

    /// A receiver that speaks HTTPS, with a certificate for these names.
    pub(super) fn https(
        authority: &Authority,
        names: &[&str],
        respond: impl Fn(Connection) + Send + Sync + 'static,
    ) -> Self {
        Self::start(Some(authority.server(names)), respond)
    }

    fn start(tls: Option<Arc<ServerConfig>>, respond: impl Fn(Connection) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("0.0.0.0:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let receiver = Self { port, connections: Arc::default(), received: Arc::default() };
        let (connections, received) = (Arc::clone(&receiver.connections), Arc::clone(&receiver.received));
        let respond = Arc::new(respond);
        thread::spawn(move || {
            for tcp in listener.incoming() {
                connections.fetch_add(1, Ordering::SeqCst);
                let (tcp, tls, respond) = (tcp.unwrap(), tls.clone(), Arc::clone(&respond));
                let received = Arc::clone(&received);
                thread::spawn(move || {
                    let stream: Box<dyn Stream> = match tls {
                        Some(tls) => {
                            let tls = ServerConnection::new(tls).unwrap();
                            Box::new(StreamOwned::new(tls, tcp.try_clone().unwrap()))
                        }
                        None => Box::new(tcp.try_clone().unwrap()),
                    };
                    let mut connection = Connection { stream, tcp };
                    if let Ok(request) = connection.read_request() {
                        received.lock().unwrap().push(request);
                        respond(connection);
                    }
                });
            }
        });
        receiver
    }

    /// How many connections there were.
    pub(super) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// The requests that were received.
    pub(super) fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }
}
