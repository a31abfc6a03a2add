//! The context of every admin command: a store or a server, and the configuration.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use metering_admin::{Action, Administration};
use metering_client::{Client, HttpTransport, ServiceUrl};
use metering_config::Sources;
use metering_core::operators::{Actor, OperatorToken};
use metering_core::{ClientSource, FullStore};
use zeroize::Zeroizing;

use super::administrator::{Administrator, Local, Remote};
use crate::database::{Database, IfMissing, Location};
use crate::failure::Failure;

const TOKEN_VARIABLE: &str = "METERING_CLIENT_OPERATOR_TOKEN";
const ALLOW_HTTP_VARIABLE: &str = "METERING_CLIENT_ALLOW_HTTP";
/// How long to wait while the server makes no progress. Reading a chain may take a while.
const READ_TIMEOUT: Duration = Duration::from_secs(90);
/// The same for a verification, which reads the whole database before it responds.
const VERIFY_TIMEOUT: Duration = Duration::from_secs(2 * 3_600);

/// One run of the program.
#[derive(Debug)]
pub(crate) struct Session {
    service: Service,
    sources: Sources,
    action: Action,
}

/// What is administered.
#[derive(Debug)]
pub(crate) enum Service {
    /// A store.
    Store(Location),
    /// A server, through its admin address: a client, and one for requests that respond only after a long time.
    Server(Box<Client>, Box<Client>),
}

/// A server to use instead of a store.
#[derive(Debug, Args)]
pub(crate) struct ServerArgs {
    /// Use a running server, at its admin address, instead of opening the store. Needs an operator's token, in
    /// METERING_CLIENT_OPERATOR_TOKEN or --token-file, and --reason for changes.
    #[arg(long, value_name = "URL", global = true, help_heading = "Server", conflicts_with_all = ["database", "data"])]
    server: Option<ServiceUrl>,
    /// A file with the operator's token.
    #[arg(long, value_name = "FILE", global = true, help_heading = "Server", requires = "server")]
    token_file: Option<PathBuf>,
    /// The reason, for the audit log: one line of 1 to 500 characters.
    #[arg(long = "reason", id = "audit_reason", value_name = "TEXT", global = true, help_heading = "Audit")]
    reason: Option<String>,
}

impl ServerArgs {
    /// Whether a server is named.
    pub(crate) fn is_given(&self) -> bool {
        self.server.is_some()
    }

    /// The session of a command, on the server that these arguments name, or else on the store.
    pub(crate) fn session(
        &self,
        location: impl FnOnce() -> Result<Location, Failure>,
        sources: Sources,
    ) -> Result<Session, Failure> {
        let action = Action::new(Actor::CommandLine(user()), self.reason.as_deref().unwrap_or_default())?;
        let service = match &self.server {
            Some(url) => {
                let [client, patient] = [READ_TIMEOUT, VERIFY_TIMEOUT].map(|timeout| self.client(url, timeout));
                Service::Server(Box::new(client?), Box::new(patient?))
            }
            None => Service::Store(location()?),
        };
        Ok(Session { service, sources, action })
    }

    fn client(&self, url: &ServiceUrl, read_timeout: Duration) -> Result<Client, Failure> {
        let allowed = std::env::var_os(ALLOW_HTTP_VARIABLE).is_some_and(|value| value == "1");
        if url.is_exposed() && !allowed {
            return Err(Failure::Usage(format!(
                "{url} is plain HTTP to another machine, where the token can be read in transit; use https:// or a \
                 tunnel, or set {ALLOW_HTTP_VARIABLE}=1 on a network that you trust"
            )));
        }
        let transport = HttpTransport::new(url.clone(), read_timeout);
        let transport = transport.map_err(|error| Failure::Failed(error.to_string()))?;
        Ok(Client::new(Arc::new(transport), ClientSource::Cli).with_operator(self.token()?))
    }

    fn token(&self) -> Result<OperatorToken, Failure> {
        let text = match &self.token_file {
            Some(file) => std::fs::read_to_string(file)
                .map(Zeroizing::new)
                .map_err(|error| Failure::Failed(format!("cannot read {}: {error}", file.display())))?,
            None => Zeroizing::new(std::env::var(TOKEN_VARIABLE).map_err(|_| {
                Failure::Usage(format!("no operator's token: set {TOKEN_VARIABLE}, or name a file with --token-file"))
            })?),
        };
        OperatorToken::parse(text.trim()).map_err(|error| Failure::Usage(error.to_string()))
    }
}

/// The user of the operating system who runs the command: with sudo, the one who called it.
fn user() -> String {
    let named = ["SUDO_USER", "USER", "LOGNAME"].into_iter().find_map(|name| std::env::var(name).ok());
    let named = named.filter(|name| !name.is_empty() && !name.chars().any(char::is_control));
    named.or_else(user_id).unwrap_or_else(|| "unknown".to_owned())
}

/// The number of the user, where a container has no name for it.
fn user_id() -> Option<String> {
    #[cfg(unix)]
    let id = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata("/proc/self").ok()?);
    #[cfg(unix)]
    return Some(format!("uid {id}"));
    #[cfg(not(unix))]
    None
}

impl Session {
    /// The store or server that runs the command. A store must exist.
    pub(crate) async fn administrator(&self) -> Result<Administrator, Failure> {
        self.administrator_of(IfMissing::Fail).await
    }

    /// The store or server that runs the command. A store is created if it does not exist.
    pub(crate) async fn administrator_or_new(&self) -> Result<Administrator, Failure> {
        self.administrator_of(IfMissing::Create).await
    }

    /// The store or server that runs the command, unless it is a store that does not exist.
    pub(crate) async fn administrator_if_any(&self) -> Result<Option<Administrator>, Failure> {
        match &self.service {
            Service::Store(location) if !location.exists() => Ok(None),
            _ => self.administrator().await.map(Some),
        }
    }

    async fn administrator_of(&self, if_missing: IfMissing) -> Result<Administrator, Failure> {
        Ok(match &self.service {
            Service::Server(client, patient) => Administrator::Remote(Remote::new(
                Client::clone(client),
                Client::clone(patient),
                self.action.reason().to_owned(),
            )),
            Service::Store(location) => {
                let administration = Administration::new(location.open(if_missing).await?.store());
                Administrator::Local(Local::new(administration, self.action.clone(), self.sources.clone()))
            }
        })
    }

    /// A client of the server, if one is named.
    pub(crate) fn server(&self) -> Option<&Client> {
        match &self.service {
            Service::Server(client, _) => Some(client),
            Service::Store(_) => None,
        }
    }

    /// The configuration.
    pub(crate) fn sources(&self) -> &Sources {
        &self.sources
    }

    /// The actor and the reason, for the audit log.
    pub(crate) fn action(&self) -> &Action {
        &self.action
    }

    /// The location of the store.
    ///
    /// # Errors
    /// When a server is named: the command works on a store only.
    fn location(&self) -> Result<&Location, Failure> {
        match &self.service {
            Service::Store(location) => Ok(location),
            Service::Server(..) => Err(Failure::Usage(
                "this command works on the store itself: run it where the database can be reached, without --server"
                    .to_owned(),
            )),
        }
    }

    /// Whether the store exists.
    pub(crate) fn store_exists(&self) -> Result<bool, Failure> {
        Ok(self.location()?.exists())
    }

    /// The store, which is created if it does not exist.
    pub(crate) async fn store_or_new(&self) -> Result<Arc<dyn FullStore>, Failure> {
        Ok(self.location()?.open(IfMissing::Create).await?.store())
    }

    /// The database, which must exist.
    pub(crate) async fn database(&self) -> Result<Database, Failure> {
        self.location()?.open(IfMissing::Fail).await
    }
}
