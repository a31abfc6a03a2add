//! Which of the database's hosts is connected to: the one that can be written to, found in bounded time.
//!
//! The driver goes through hosts as well, but waits for ever for one that accepts a connection and says nothing, as a
//! machine does that is about to fail.

use std::future::pending;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use deadpool_postgres::Connect;
use futures_util::StreamExt;
use futures_util::future::{BoxFuture, Either, select};
use futures_util::stream::FuturesUnordered;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::config::Host;
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::{Client, Config, Error, NoTls, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::error::{is_lasting, told};
use crate::session::Statements;
use crate::wait::{ANSWER_WAIT, STATEMENT_TIMEOUT};

/// How long one host may take until a connection to it can be used.
pub(crate) const HOST_WAIT: Duration = Duration::from_secs(5);

/// How long one of a host's addresses may take to accept.
const ACCEPT_WAIT: Duration = Duration::from_secs(2);

/// The settings of all statements. A node that is cut off in the middle of a transaction must not hold its locks for
/// long, and none may wait for ever. The plan of a statement over arrays does not depend on what is in them, and planning
/// one anew for each batch costs more than running it. `synchronous_commit` is only ever switched on: a charge that was
/// acknowledged is on disk, whatever the database's default.
fn settings(is_local: bool) -> String {
    let set = if is_local { "SET LOCAL" } else { "SET" };
    format!(
        "{set} idle_in_transaction_session_timeout = '10s'; {set} lock_timeout = '10s'; \
         {set} statement_timeout = '{}s'; {set} plan_cache_mode = force_generic_plan; \
         SELECT set_config('synchronous_commit', 'on', {is_local}) WHERE current_setting('synchronous_commit') = 'off'",
        STATEMENT_TIMEOUT.as_secs()
    )
}

/// The settings of one transaction, for connections that keep none.
pub(crate) fn transaction_settings() -> String {
    settings(true)
}

/// Has connections whose other side is gone end by themselves.
pub(crate) fn bound(config: &mut Config) {
    config.connect_timeout(ACCEPT_WAIT).tcp_user_timeout(ANSWER_WAIT);
    config.keepalives_idle(Duration::from_secs(10)).keepalives_interval(Duration::from_secs(3)).keepalives_retries(3);
}

/// The hosts, and the way to them. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Hosts(Arc<Inner>);

struct Inner {
    hosts: Vec<Config>,
    tls: Option<MakeRustlsConnect>,
    statements: Statements,
    /// Where the last connection was made. Asked first: a host that is gone costs its time once.
    last: AtomicUsize,
}

impl Hosts {
    /// Hosts that are reached with TLS, or without.
    pub(crate) fn new(hosts: Vec<Config>, tls: Option<MakeRustlsConnect>, statements: Statements) -> Self {
        Self(Arc::new(Inner { hosts, tls, statements, last: AtomicUsize::new(0) }))
    }

    /// Connects to the first host that takes writes, asking all of them at once, and remembers it. The connection is
    /// as the server made it, without settings.
    ///
    /// # Errors
    /// When there is none within `wait`: what each of them said.
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

    /// Another connection to the host that was found last, without settings.
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
        // Nobody listens at a socket, and it has no name for a certificate to be of.
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
            match timeout(HOST_WAIT, self.connect(at, settings.as_deref())).await {
                Ok(Ok(connection)) => {
                    self.last.store(at, Ordering::Relaxed);
                    return Ok(connection);
                }
                Ok(Err(error)) => {
                    tracing::debug!(host = at + 1, error = told(&error), "a database host cannot be used");
                    // The one that helps most, whichever host said it: that a standby cannot be reached says nothing
                    // of a wrong password.
                    if failure.as_ref().is_none_or(|kept| weight(&error) > weight(kept)) {
                        failure = Some(error);
                    }
                }
                Err(_) => tracing::warn!(host = at + 1, "a database host does not answer"),
            }
        }
        match failure {
            Some(error) => Err(error),
            // The pool's own patience ends here, and it says so.
            None => pending().await,
        }
    }
}

/// A host that could not be used, and why; no error means that it did not respond.
#[derive(Debug)]
pub(crate) struct Unusable {
    host: usize,
    pub(crate) name: String,
    pub(crate) error: Option<Error>,
}

/// A host as its operator would name it: `HOST:PORT`, or the folder of its socket.
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

/// How much an error says: what lasts before what may pass, and a server's own answer before what the way to it does.
fn weight(error: &Error) -> (bool, bool) {
    (is_lasting(error), error.code().is_some())
}

impl Connect for Hosts {
    /// The pool knows the first host only, which is among these.
    fn connect(&self, _: &Config) -> BoxFuture<'_, Result<(Client, JoinHandle<()>), Error>> {
        Box::pin(self.0.connect_to_any())
    }
}

/// A connection with these settings, and the task that works it.
async fn open<T>(config: &Config, tls: T, settings: Option<&str>) -> Result<(Client, JoinHandle<()>), Error>
where
    T: MakeTlsConnect<Socket>,
    T::Stream: Send + 'static,
    T::TlsConnect: Send,
    <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
{
    let (client, mut connection) = config.connect(tls).await?;
    if let Some(settings) = settings {
        // Without a task yet, which would go on if nobody waited any more.
        match select(pin!(client.batch_execute(settings)), &mut connection).await {
            Either::Left((prepared, _)) => prepared?,
            Either::Right((Err(error), _)) => return Err(error),
            Either::Right((Ok(()), preparing)) => preparing.await?,
        }
    }
    let task = tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(error = told(&error), "a connection to the database ended");
        }
    });
    Ok((client, task))
}
