//! Where the database is, and how it is reached.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::{Hook, HookError, Manager, ManagerConfig, Pool, RecyclingMethod, Runtime};
use metering_core::StoreError;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tokio_postgres::config::{SslMode, TargetSessionAttrs};
use tokio_postgres_rustls::MakeRustlsConnect;
use url::Url;

/// Connections of one node, unless the URL says otherwise: a few commits in flight, and readers.
const POOL_SIZE: usize = 16;

/// How long to wait for a free connection, and for a new one.
const WAIT: Duration = Duration::from_secs(5);

/// What each connection is set to. A node that is cut off in the middle of a transaction must not hold its locks for
/// long, and none may wait for ever. `synchronous_commit` is checked below, where it is off.
const SETTINGS: &str = "SET idle_in_transaction_session_timeout = '10s'; SET lock_timeout = '10s'; \
     SET statement_timeout = '60s'; SET plan_cache_mode = force_generic_plan; SET application_name = 'metering'";

/// A database's URL, `postgres://USER:PASSWORD@HOST:PORT/DATABASE?OPTIONS`, as libpq has it. Shown without password.
///
/// Beside libpq's options: `sslrootcert` names a file with the certificates to trust in the place of the system's,
/// and `pool_size` the number of connections.
///
/// ```
/// use metering_postgres::PostgresConfig;
///
/// let config: PostgresConfig = "postgres://metering:secret@db.example.com/metering?sslmode=require".parse()?;
/// assert_eq!(config.to_string(), "postgres://metering:********@db.example.com/metering?sslmode=require");
/// # Ok::<(), metering_postgres::PostgresUrlError>(())
/// ```
#[derive(Clone)]
pub struct PostgresConfig {
    shown: String,
    database: tokio_postgres::Config,
    root_certificates: Option<PathBuf>,
    pool_size: usize,
}

/// The text is not a database's URL. What is wrong, without the password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}; a database is named like postgres://USER:PASSWORD@HOST:5432/DATABASE?sslmode=require")]
pub struct PostgresUrlError(String);

impl FromStr for PostgresConfig {
    type Err = PostgresUrlError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = |what: &str| PostgresUrlError(what.to_owned());
        let mut url = Url::parse(text).map_err(|_| wrong("this is no URL"))?;
        if !matches!(url.scheme(), "postgres" | "postgresql") {
            return Err(wrong("the URL does not begin with postgres://"));
        }
        let (mut root_certificates, mut pool_size, mut rest) = (None, POOL_SIZE, Vec::new());
        for (name, value) in url.query_pairs() {
            match &*name {
                "sslrootcert" => root_certificates = Some(PathBuf::from(&*value)),
                "pool_size" => {
                    let size = value.parse().ok().filter(|size| (2..=1_000).contains(size));
                    pool_size = size.ok_or_else(|| wrong("pool_size is not a number from 2 to 1000"))?;
                }
                // Whoever asks for TLS gets all of it: certificate and name are always verified.
                "sslmode" if matches!(&*value, "verify-ca" | "verify-full") => {
                    rest.push(("sslmode".to_owned(), "require".to_owned()));
                }
                _ => rest.push((name.into_owned(), value.into_owned())),
            }
        }
        let shown = shown(&url);
        url.set_query(None);
        if !rest.is_empty() {
            url.query_pairs_mut().extend_pairs(&rest);
        }
        // Form encoding writes a space as a plus sign, which libpq's URLs do not know.
        let plain = url.as_str().replace('+', "%20");
        let mut database: tokio_postgres::Config =
            plain.parse().map_err(|error: tokio_postgres::Error| wrong(&cause(&error)))?;
        database.connect_timeout(WAIT).keepalives_idle(Duration::from_secs(10));
        if database.get_target_session_attrs() == TargetSessionAttrs::Any {
            // Of several hosts, the one that can be written to, wherever a failover has put it.
            database.target_session_attrs(TargetSessionAttrs::ReadWrite);
        }
        Ok(Self { shown, database, root_certificates, pool_size })
    }
}

fn shown(url: &Url) -> String {
    let mut url = url.clone();
    if url.password().is_some() {
        // Cannot fail for a URL that has one.
        let _ = url.set_password(Some("********"));
    }
    let pairs: Vec<_> = url.query_pairs().into_owned().collect();
    if pairs.iter().any(|(name, _)| name == "password") {
        let hide = |(name, value): (String, String)| {
            let value = if name == "password" { "********".to_owned() } else { value };
            (name, value)
        };
        url.query_pairs_mut().clear().extend_pairs(pairs.into_iter().map(hide));
    }
    url.to_string()
}

impl fmt::Display for PostgresConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Debug for PostgresConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl PostgresConfig {
    /// A pool of connections, none of them made yet.
    pub(crate) fn pool(&self) -> Result<Pool, StoreError> {
        let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = match self.database.get_ssl_mode() {
            SslMode::Disable => Manager::from_config(self.database.clone(), tokio_postgres::NoTls, recycling),
            _ => Manager::from_config(self.database.clone(), self.tls()?, recycling),
        };
        let prepared = Hook::async_fn(|client: &mut deadpool_postgres::ClientWrapper, _| {
            Box::pin(async move { prepare(client).await.map_err(HookError::Backend) })
        });
        let pool = Pool::builder(manager)
            .max_size(self.pool_size)
            .wait_timeout(Some(WAIT))
            .create_timeout(Some(WAIT))
            .runtime(Runtime::Tokio1)
            .post_create(prepared)
            .build();
        pool.map_err(|error| StoreError::Unavailable(Box::new(error)))
    }

    fn tls(&self) -> Result<MakeRustlsConnect, StoreError> {
        let mut roots = rustls::RootCertStore::empty();
        match &self.root_certificates {
            Some(file) => roots.add_parsable_certificates(certificates(file)?),
            None => roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs),
        };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config.map_err(|error| StoreError::Unavailable(Box::new(error)))?;
        Ok(MakeRustlsConnect::new(config.with_root_certificates(roots).with_no_client_auth()))
    }
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, StoreError> {
    let failed = |error: rustls::pki_types::pem::Error| {
        StoreError::Unavailable(format!("sslrootcert {}: {error}", file.display()).into())
    };
    CertificateDer::pem_file_iter(file).map_err(failed)?.collect::<Result<_, _>>().map_err(failed)
}

async fn prepare(client: &deadpool_postgres::ClientWrapper) -> Result<(), tokio_postgres::Error> {
    client.batch_execute(SETTINGS).await?;
    let row = client.query_one("SHOW synchronous_commit", &[]).await?;
    if row.try_get::<_, &str>(0)? == "off" {
        // What is answered is on disk, whatever the database's default.
        client.batch_execute("SET synchronous_commit = 'on'").await?;
    }
    Ok(())
}

/// The innermost reason, which says most.
fn cause(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(|| error.to_string(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_never_shown() {
        // url, shown
        let table = [
            ("postgres://u:secret@h/d", "postgres://u:********@h/d"),
            ("postgres://u@h/d?password=secret", "postgres://u@h/d?password=********"),
            ("postgres://h/d", "postgres://h/d"),
        ];
        for (url, shown) in table {
            let config: PostgresConfig = url.parse().unwrap();
            assert_eq!((config.to_string().as_str(), format!("{config:?}").as_str()), (shown, shown));
        }
    }

    #[test]
    fn what_is_no_database_is_refused_without_repeating_it() {
        for url in
            ["", "secret", "mysql://u:secret@h/d", "postgres://u:secret@h/d?pool_size=0", "postgres://h:x/secret"]
        {
            let error = url.parse::<PostgresConfig>().unwrap_err();
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }
}
