//! Connects to the database host that accepts writes, and finds it in bounded time.
//!
//! The driver can try several hosts too, but it waits forever for a host that accepts a connection and then does not
//! respond, as failing machines do.

use std::future::pending;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use deadpool_postgres::Connect;
use futures_util::StreamExt;
use futures_util::future::{BoxFuture, Either, select};
use futures_util::stream::FuturesUnordered;
use tokio::runtime::Handle;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;
use tokio_postgres::config::Host;
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::{Client, Config, Error, NoTls, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::connection::session::Statements;
use crate::connection::settings::settings;
use crate::connection::wait::RESPONSE_TIMEOUT;
use crate::error::{describe, is_lasting};

/// Timeout for a usable connection to one host.
pub(crate) const HOST_TIMEOUT: Duration = Duration::from_secs(5);

/// Timeout for the TCP connection to one address of a host.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// Sets timeouts, so that a connection ends by itself when its peer is gone.
pub(crate) fn bound(config: &mut Config) {
    config.connect_timeout(CONNECT_TIMEOUT).tcp_user_timeout(RESPONSE_TIMEOUT);
    config.keepalives_idle(Duration::from_secs(10)).keepalives_interval(Duration::from_secs(3)).keepalives_retries(3);
}

/// The database hosts and how to connect to them. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Hosts(Arc<Inner>);

struct Inner {
    hosts: Vec<Config>,
    tls: Option<MakeRustlsConnect>,
    statements: Statements,
    /// The host of the last connection. It is tried first, so that a host that is down costs its timeout only once.
    last: AtomicUsize,
    /// Drives the pool's connections for all threads: on a runtime that serves requests, a long request would delay
    /// what others send over them.
    runtime: Option<Handle>,
}

impl Hosts {
    /// Hosts to connect to with TLS, or without if `tls` is `None`.
    pub(crate) fn new(hosts: Vec<Config>, tls: Option<MakeRustlsConnect>, statements: Statements) -> Self {
        let runtime = Handle::try_current().ok();
        Self(Arc::new(Inner { hosts, tls, statements, last: AtomicUsize::new(0), runtime }))
    }

    /// Tries all hosts concurrently, connects to the first that accepts writes, and caches it. The connection has the
    /// server's default settings.
    ///
    /// # Errors
    /// If there is none within `wait`: the error of each host.
    pub(crate) async fn find(&self, wait: Duration) -> Result<Client, Vec<Unusable>> {
        let inner = &*self.0;
        let mut attempts: FuturesUnordered<_> = (0..inner.hosts.len())
            .map(|at| async move { (at, timeout(wait, inner.connect(at, None)).await) })
            .collect();
        let mut failed = Vec::new();
        while let Some((at, connected)) = attempts.next().await {
            let error = match connected {
                Ok(Ok((client, _))) => {
                    inner.last.store(at, Ordering::Relaxed);
                    return Ok(client);
                }
                Ok(Err(error)) => Some(error),
                Err(_) => None,
            };
            failed.push(Unusable { host: at, name: name(&inner.hosts[at]), error });
        }
        failed.sort_unstable_by_key(|unusable| unusable.host);
        Err(failed)
    }

    /// Another connection to the host that was found last, with the server's default settings.
    pub(crate) async fn another(&self) -> Result<Client, Error> {
        let connected = self.0.connect(self.0.last.load(Ordering::Relaxed), None).await;
        connected.map(|(client, _)| client)
    }

    pub(crate) fn statements(&self) -> Statements {
        self.0.statements
    }
}

impl Inner {
    async fn connect(&self, at: usize, settings: Option<&str>) -> Result<(Client, JoinHandle<()>), Error> {
        // A local socket needs no TLS: it cannot be intercepted, and has no host name to verify.
        match self.tls.as_ref().filter(|_| !is_socket(&self.hosts[at])) {
            Some(tls) => open(&self.hosts[at], tls.clone(), settings).await,
            None => open(&self.hosts[at], NoTls, settings).await,
        }
    }

    async fn connect_to_any(&self) -> Result<(Client, JoinHandle<()>), Error> {
        let settings = (self.statements == Statements::Cached).then(|| settings(false));
        let (first, count) = (self.last.load(Ordering::Relaxed), self.hosts.len());
        let mut failure: Option<Error> = None;
        for at in (0..count).map(|step| (first + step) % count) {
            match timeout(HOST_TIMEOUT, self.connect(at, settings.as_deref())).await {
                Ok(Ok(connection)) => {
                    self.last.store(at, Ordering::Relaxed);
                    return Ok(connection);
                }
                Ok(Err(error)) => {
                    tracing::debug!(host = at + 1, error = describe(&error), "cannot use a database host");
                    // Keep the most helpful error of all hosts: an unreachable standby must not hide a wrong password.
                    if failure.as_ref().is_none_or(|kept| weight(&error) > weight(kept)) {
                        failure = Some(error);
                    }
                }
                Err(_) => tracing::warn!(host = at + 1, "a database host does not respond"),
            }
        }
        match failure {
            Some(error) => Err(error),
            // Wait until the pool's own timeout ends this and reports it.
            None => pending().await,
        }
    }
}

/// A host that could not be used, and why. Without an error, it did not respond.
#[derive(Debug)]
pub(crate) struct Unusable {
    host: usize,
    pub(crate) name: String,
    pub(crate) error: Option<Error>,
}

/// The host's name for error messages: `HOST:PORT`, or the path of its socket.
fn name(config: &Config) -> String {
    let port = config.get_ports().first().copied().unwrap_or(5432);
    match config.get_hosts().first() {
        Some(Host::Tcp(host)) if host.contains(':') => format!("[{host}]:{port}"),
        Some(Host::Tcp(host)) => format!("{host}:{port}"),
        Some(Host::Unix(folder)) => format!("{}/.s.PGSQL.{port}", folder.display()),
        None => format!("port {port}"),
    }
}

fn is_socket(config: &Config) -> bool {
    matches!(config.get_hosts(), [Host::Unix(_)])
}

/// Ranks errors by how helpful they are: permanent ones above transient ones, then a server's own errors above those of
/// the connection.
fn weight(error: &Error) -> (bool, bool) {
    (is_lasting(error), error.code().is_some())
}

impl Connect for Hosts {
    /// The pool knows only the first host, which is also among these.
    fn connect(&self, _: &Config) -> BoxFuture<'_, Result<(Client, JoinHandle<()>), Error>> {
        Box::pin(async {
            // A set, because it stops connecting when the caller stops waiting.
            let mut connecting = JoinSet::new();
            if let Some(runtime) = &self.0.runtime {
                let hosts = self.clone();
                connecting.spawn_on(async move { hosts.0.connect_to_any().await }, runtime);
            }
            match connecting.join_next().await {
                Some(Ok(connected)) => connected,
                // That runtime has ended.
                _ => self.0.connect_to_any().await,
            }
        })
    }
}

/// Opens a connection with these settings. Also returns the task that drives it.
async fn open<T>(config: &Config, tls: T, settings: Option<&str>) -> Result<(Client, JoinHandle<()>), Error>
where
    T: MakeTlsConnect<Socket>,
    T::Stream: Send + 'static,
    T::TlsConnect: Send,
    <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
{
    let (client, mut connection) = config.connect(tls).await?;
    if let Some(settings) = settings {
        // Not in a task yet: a task would continue even if the caller stopped waiting.
        match select(pin!(client.batch_execute(settings)), &mut connection).await {
            Either::Left((prepared, _)) => prepared?,
            Either::Right((Err(error), _)) => return Err(error),
            Either::Right((Ok(()), preparing)) => preparing.await?,
        }
    }
    let task = tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(error = describe(&error), "a connection to the database ended");
        }
    });
    Ok((client, task))
}
