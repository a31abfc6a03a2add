//! Which of the database's hosts is connected to: the one that can be written to, found in bounded time.
//!
//! The driver goes through hosts as well, but waits for ever for one that accepts a connection and says nothing, as a
//! machine does that is about to fail.

use std::future::pending;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use deadpool_postgres::Connect;
use futures_util::future::{BoxFuture, Either, select};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::config::Host;
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::{Client, Config, Error, NoTls, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::error::{is_lasting, told};
use crate::wait::{ANSWER_WAIT, STATEMENT_TIMEOUT};

/// How long one host may take until a connection to it can be used.
pub(crate) const HOST_WAIT: Duration = Duration::from_secs(5);

/// How long one of a host's addresses may take to accept.
const ACCEPT_WAIT: Duration = Duration::from_secs(2);

/// What each connection is set to. A node that is cut off in the middle of a transaction must not hold its locks for
/// long, and none may wait for ever. The plan of a statement over arrays does not depend on what is in them, and planning
/// one anew for each batch costs more than running it. `synchronous_commit` is checked below, where it is off.
fn settings() -> String {
    format!(
        "SET idle_in_transaction_session_timeout = '10s'; SET lock_timeout = '10s'; SET statement_timeout = '{}s'; \
         SET plan_cache_mode = force_generic_plan; SET application_name = 'metering'",
        STATEMENT_TIMEOUT.as_secs()
    )
}

/// Has connections whose other side is gone end by themselves.
pub(crate) fn bound(config: &mut Config) {
    config.connect_timeout(ACCEPT_WAIT).tcp_user_timeout(ANSWER_WAIT);
    config.keepalives_idle(Duration::from_secs(10)).keepalives_interval(Duration::from_secs(3)).keepalives_retries(3);
}

/// The hosts, and the way to them.
pub(crate) struct Hosts {
    hosts: Vec<Config>,
    tls: Option<MakeRustlsConnect>,
    /// Where the last connection was made. Asked first: a host that is gone costs its time once.
    last: AtomicUsize,
}

impl Hosts {
    /// Hosts that are reached with TLS, or without.
    pub(crate) fn new(hosts: Vec<Config>, tls: Option<MakeRustlsConnect>) -> Self {
        Self { hosts, tls, last: AtomicUsize::new(0) }
    }

    async fn connect_to_any(&self) -> Result<(Client, JoinHandle<()>), Error> {
        let (first, count) = (self.last.load(Ordering::Relaxed), self.hosts.len());
        let mut failure: Option<Error> = None;
        for at in (0..count).map(|step| (first + step) % count) {
            // Nobody listens at a socket, and it has no name for a certificate to be of.
            let tls = self.tls.as_ref().filter(|_| !is_socket(&self.hosts[at]));
            let connected = match tls {
                Some(tls) => timeout(HOST_WAIT, open(&self.hosts[at], tls.clone())).await,
                None => timeout(HOST_WAIT, open(&self.hosts[at], NoTls)).await,
            };
            match connected {
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
        Box::pin(self.connect_to_any())
    }
}

/// A connection that can be used, and the task that works it.
async fn open<T>(config: &Config, tls: T) -> Result<(Client, JoinHandle<()>), Error>
where
    T: MakeTlsConnect<Socket>,
    T::Stream: Send + 'static,
    T::TlsConnect: Send,
    <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
{
    let (client, mut connection) = config.connect(tls).await?;
    // Without a task yet, which would go on if nobody waited any more.
    match select(pin!(prepare(&client)), &mut connection).await {
        Either::Left((prepared, _)) => prepared?,
        Either::Right((Err(error), _)) => return Err(error),
        Either::Right((Ok(()), preparing)) => preparing.await?,
    }
    let task = tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(error = told(&error), "a connection to the database ended");
        }
    });
    Ok((client, task))
}

async fn prepare(client: &Client) -> Result<(), Error> {
    client.batch_execute(&settings()).await?;
    let row = client.query_one("SHOW synchronous_commit", &[]).await?;
    if row.try_get::<_, &str>(0)? == "off" {
        // What is answered is on disk, whatever the database's default.
        client.batch_execute("SET synchronous_commit = 'on'").await?;
    }
    Ok(())
}
