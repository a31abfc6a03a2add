//! Parses the database URL, and creates the connection pool from it.

use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use deadpool_postgres::{Manager, ManagerConfig, RecyclingMethod, Runtime};
use metering_core::StoreError;
use tokio_postgres::Config;
use tokio_postgres::config::{SslMode, TargetSessionAttrs};
use url::Url;

use crate::connection::hosts::{HOST_TIMEOUT, Hosts};
use crate::connection::session::{Pool, Statements};
use crate::connection::wait::CONNECTION_TIMEOUT;
use crate::connection::{start, tls};

/// Connections per node, unless the URL sets `pool_size`: enough for a few commits in flight, and for readers.
const POOL_SIZE: usize = 16;

/// A database URL as in libpq: `postgres://USER:PASSWORD@HOST:PORT/DATABASE?OPTIONS`. Displayed without the password.
///
/// Several hosts, each with its port, are separated by commas: a primary and its standbys. The store connects to the
/// one that accepts writes, even after a failover.
///
/// Besides libpq's options: `sslrootcert` names a file of certificates to trust instead of the system's, `pool_size`
/// sets the number of connections, and `statement_cache=off` is for a pooler in transaction mode, such as PgBouncer,
/// between the service and the server: no state is kept on a connection between two transactions.
///
/// ```
/// use metering_postgres::PostgresConfig;
///
/// let config: PostgresConfig = "postgres://metering:secret@a.example.com,b.example.com:5433/metering?sslmode=require".parse()?;
/// assert_eq!(config.to_string(), "postgres://metering:********@a.example.com,b.example.com:5433/metering?sslmode=require");
/// # Ok::<(), metering_postgres::PostgresUrlError>(())
/// ```
#[derive(Clone)]
pub struct PostgresConfig {
    shown: String,
    /// One per host.
    hosts: Vec<Config>,
    root_certificates: Option<PathBuf>,
    pool_size: usize,
    statements: Statements,
}

/// The text is not a database URL. Describes what is wrong, without the password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}; expected a URL like postgres://USER:PASSWORD@HOST:5432/DATABASE?sslmode=require")]
pub struct PostgresUrlError(String);

fn wrong(what: impl Into<String>) -> PostgresUrlError {
    PostgresUrlError(what.into())
}

impl FromStr for PostgresConfig {
    type Err = PostgresUrlError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = with_host(text)?;
        let parts = Parts::of(&text)?;
        let mut hosts = Vec::new();
        let (mut root_certificates, mut pool_size, mut statements) = (None, POOL_SIZE, Statements::Cached);
        for host in parts.hosts.split(',') {
            if host.is_empty() && parts.hosts.contains(',') {
                return Err(wrong("a host in the comma-separated list is empty"));
            }
            let mut url = parts.url(host)?;
            let options = Options::of(&url)?;
            url.set_query(None);
            if !options.rest.is_empty() {
                url.query_pairs_mut().extend_pairs(&options.rest);
            }
            (root_certificates, pool_size) = (options.root_certificates, options.pool_size);
            statements = options.statements;
            hosts.push(config(&url)?);
        }
        let shown = parts.shown(&parts.url(parts.hosts.split(',').next().unwrap_or_default())?);
        Ok(Self { shown, hosts, root_certificates, pool_size, statements })
    }
}

/// A URL split around its list of hosts, since the URL parser accepts only one.
struct Parts<'t> {
    /// `postgres://`, user and password.
    before: &'t str,
    hosts: &'t str,
    /// Database and options.
    after: &'t str,
}

impl<'t> Parts<'t> {
    fn of(text: &'t str) -> Result<Self, PostgresUrlError> {
        let (scheme, rest) = text.split_once("://").ok_or_else(|| wrong("not a URL"))?;
        if !matches!(scheme, "postgres" | "postgresql") {
            return Err(wrong("the URL does not start with postgres://"));
        }
        let start = scheme.len() + "://".len();
        let end = start + rest.find(['/', '?', '#']).unwrap_or(rest.len());
        if text[end..].contains('@') {
            // Then the part before it is not the host, but part of the password, and would be displayed as the host.
            let problem =
                "there is an @ after the host; write / ? # @ in user, password and options as %2F %3F %23 %40";
            return Err(wrong(problem));
        }
        let hosts = text[start..end].rfind('@').map_or(start, |at| start + at + 1);
        Ok(Self { before: &text[..hosts], hosts: &text[hosts..end], after: &text[end..] })
    }

    fn url(&self, host: &str) -> Result<Url, PostgresUrlError> {
        let url = format!("{}{host}{}", self.before, self.after);
        Url::parse(&url).map_err(|_| wrong("not a URL"))
    }

    /// The whole URL without the password, made from the URL of one host.
    fn shown(&self, one: &Url) -> String {
        let one = masked(one);
        let parts = Parts::of(&one).map(|parts| format!("{}{}{}", parts.before, self.hosts, parts.after));
        parts.unwrap_or(one)
    }
}

/// Moves a host that is given as an option to its normal place in the URL. libpq uses the option for sockets:
/// `postgres://USER@/DATABASE?host=/var/run/postgresql`.
fn with_host(text: &str) -> Result<Cow<'_, str>, PostgresUrlError> {
    let parts = Parts::of(text)?;
    let (true, Some((path, options))) = (parts.hosts.is_empty(), parts.after.split_once('?')) else {
        return Ok(text.into());
    };
    let (mut hosts, mut ports, mut rest) = (Vec::new(), Vec::new(), Vec::new());
    for option in options.split('&') {
        match option.split_once('=') {
            Some(("host", named)) => hosts = named.split(',').collect(),
            Some(("port", named)) => ports = named.split(',').collect(),
            _ => rest.push(option),
        }
    }
    let located = hosts.iter().enumerate().map(|(at, host)| {
        let port = ports.get(at).or(ports.last()).map_or_else(String::new, |port| format!(":{port}"));
        host.replace('/', "%2F") + &port
    });
    let located = located.collect::<Vec<_>>().join(",");
    let options = if rest.is_empty() { String::new() } else { format!("?{}", rest.join("&")) };
    Ok(format!("{}{located}{path}{options}", parts.before).into())
}

/// The options of a URL: those that the driver does not know, and in `rest` those that it does.
struct Options {
    root_certificates: Option<PathBuf>,
    pool_size: usize,
    statements: Statements,
    rest: Vec<(String, String)>,
}

impl Options {
    fn of(url: &Url) -> Result<Self, PostgresUrlError> {
        let statements = Statements::Cached;
        let mut options = Self { root_certificates: None, pool_size: POOL_SIZE, statements, rest: Vec::new() };
        for (name, value) in url.query_pairs() {
            let known = match (&*name, &*value) {
                ("sslrootcert", file) => {
                    options.root_certificates = Some(PathBuf::from(file));
                    continue;
                }
                ("pool_size", size) => {
                    let size = size.parse().ok().filter(|size| (2..=1_000).contains(size));
                    options.pool_size = size.ok_or_else(|| wrong("pool_size must be a number from 2 to 1000"))?;
                    continue;
                }
                ("statement_cache", value) => {
                    options.statements = match value {
                        "on" => Statements::Cached,
                        "off" => Statements::Unnamed,
                        _ => return Err(wrong("statement_cache must be on or off")),
                    };
                    continue;
                }
                // With TLS, certificate and name are always verified, so these modes mean the same as `require`.
                ("sslmode", "verify-ca" | "verify-full") => ("sslmode", "require"),
                // libpq's newer name. The host must accept writes.
                ("target_session_attrs", "primary") => ("target_session_attrs", "read-write"),
                known => known,
            };
            options.rest.push((known.0.to_owned(), known.1.to_owned()));
        }
        Ok(options)
    }
}

/// Parses the URL of one host with the driver.
fn config(url: &Url) -> Result<Config, PostgresUrlError> {
    // Form encoding writes a space as a plus sign, which libpq does not decode.
    let plain = url.as_str().replace('+', "%20");
    let mut config: Config = plain.parse().map_err(|error: tokio_postgres::Error| wrong(cause(&error)))?;
    crate::connection::hosts::bound(&mut config);
    if config.get_application_name().is_none() {
        config.application_name("metering");
    }
    if config.get_target_session_attrs() == TargetSessionAttrs::Any {
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
    }
    Ok(config)
}

fn masked(url: &Url) -> String {
    let mut url = url.clone();
    if url.password().is_some() {
        // Cannot fail for a URL that has a password.
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
    /// Creates a connection pool, after checking that the database can be reached.
    ///
    /// # Errors
    /// Within three seconds, if the database cannot be reached or used.
    pub(crate) async fn pool(&self) -> Result<Pool, StoreError> {
        let first = self.hosts.first().cloned().unwrap_or_default();
        let tls = match first.get_ssl_mode() {
            SslMode::Disable => None,
            _ => Some(tls::connector(self.root_certificates.as_deref())?),
        };
        let reached = Hosts::new(self.hosts.clone(), tls, self.statements);
        start::reach(&reached).await?;
        let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = Manager::from_connect(first, reached, recycling);
        let hosts = u32::try_from(self.hosts.len()).unwrap_or(u32::MAX);
        let pool = deadpool_postgres::Pool::builder(manager)
            .max_size(self.pool_size)
            .wait_timeout(Some(CONNECTION_TIMEOUT))
            .create_timeout(Some(HOST_TIMEOUT.saturating_mul(hosts)))
            .runtime(Runtime::Tokio1)
            .build();
        let pool = pool.map_err(|error| StoreError::Unavailable(Box::new(error)))?;
        Ok(Pool::new(pool, self.statements))
    }
}

/// The cause of the error, if it has one: it says more than the error itself.
fn cause(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(|| error.to_string(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use tokio_postgres::config::Host;

    use super::*;

    #[test]
    fn a_password_is_never_shown() {
        // URL, URL as displayed
        let table = [
            ("postgres://u:secret@h/d", "postgres://u:********@h/d"),
            ("postgres://u@h/d?password=secret", "postgres://u@h/d?password=********"),
            ("postgres://h/d", "postgres://h/d"),
            ("postgres://u:secret@a:1,b:2/d?sslmode=require", "postgres://u:********@a:1,b:2/d?sslmode=require"),
            ("postgres://u@a,b/d?password=secret", "postgres://u@a,b/d?password=********"),
            ("postgres://u:secret@/d?host=/run/pg&port=1", "postgres://u:********@%2Frun%2Fpg:1/d"),
        ];
        for (url, shown) in table {
            let config: PostgresConfig = url.parse().unwrap();
            assert_eq!((config.to_string().as_str(), format!("{config:?}").as_str()), (shown, shown));
        }
    }

    #[test]
    fn invalid_database_url_is_refused_without_repeating_it() {
        let table = [
            "",
            "secret",
            "mysql://u:secret@h/d",
            "postgres://u:secret@h/d?pool_size=0",
            "postgres://u:secret@h/d?statement_cache=secret",
            "postgres://h:x/secret",
            "postgres://u:secret@a,,b/d",
            "postgres://u:secret@a:1,b:x/d",
            "postgres://u:secret@a,b/d?target_session_attrs=secret",
            // Passwords that should have been encoded.
            "postgres://u:1234/secret@h:1/d",
            "postgres://u:1234#secret@h/d",
            "postgres://u:1234?secret@h/d",
            "postgres://u:secret/secret@h/d",
            "postgres://u:12@34/secret@h/d",
        ];
        for url in table {
            let error = url.parse::<PostgresConfig>().unwrap_err();
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }

    #[test]
    fn several_hosts_keep_their_ports_and_require_a_primary() {
        let table = [
            ("postgres://u@a:1,b/d", &[("a", 1), ("b", 5432)][..]),
            (
                "postgres://u:p%40ss@a,127.0.0.1:2,c:3/d?target_session_attrs=read-write",
                &[("a", 5432), ("127.0.0.1", 2), ("c", 3)],
            ),
            ("postgresql://u@a/d?target_session_attrs=primary", &[("a", 5432)]),
            ("postgres://u@%2Frun%2Fpg/d", &[("/run/pg", 5432)]),
            ("postgres://u@/d?host=/run/pg", &[("/run/pg", 5432)]),
            ("postgres:///d?user=u&host=/run/pg,b&port=1,2&sslmode=disable", &[("/run/pg", 1), ("b", 2)]),
        ];
        for (url, expected) in table {
            let config: PostgresConfig = url.parse().unwrap();
            let found = config.hosts.iter().map(|host| {
                assert_eq!(host.get_target_session_attrs(), TargetSessionAttrs::ReadWrite);
                let name = match &host.get_hosts()[0] {
                    Host::Tcp(name) => name.clone(),
                    Host::Unix(path) => path.display().to_string(),
                };
                (name, host.get_ports().first().copied().unwrap_or(5432))
            });
            let expected: Vec<_> = expected.iter().map(|(name, port)| ((*name).to_owned(), *port)).collect();
            assert_eq!(found.collect::<Vec<_>>(), expected, "{url}");
        }
    }
}
