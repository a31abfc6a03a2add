//! Which store to open. This is the only file that names a backend.
//!
//! All other code works on a [`FullStore`]. A new backend needs a variant of [`Location`] and of [`Backend`] here and
//! nothing elsewhere; `migration` defines which stores can be moved to which.

mod migration;

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use metering_config::server::Arguments;
use metering_config::{DEFAULT_DATA, FILE_IN_DATA, Sources, StorePlace};
use metering_core::store::{Progress, Verification};
use metering_core::{FullStore, StoreError};
use metering_postgres::{PostgresConfig, PostgresStore, PostgresUrlError};
use metering_sql::transfer::{Export, Section};
use metering_sqlite::{SqliteStore, path_of_url};

use crate::failure::Failure;

pub(crate) use migration::{Destination, Origin, Target};

const SUPPORTED: &str = "supported: sqlite:PATH, postgres://USER@HOST/DATABASE";

/// Where the store is. Does not use clap's `env`: it would print the URL with its password in the help text, and would
/// make a variable and the other option exclude each other.
#[derive(Debug, Args)]
pub(crate) struct DatabaseArgs {
    /// The store's URL: sqlite:PATH or postgres://USER:PASSWORD@HOST/DATABASE [env: METERING_DATABASE].
    #[arg(long, value_name = "URL", global = true, help_heading = "Store", conflicts_with = "data")]
    database: Option<OsString>,
    /// The data directory; the store is the file metering.db in it [env: METERING_DATA] [default: ./metering-data].
    #[arg(long, value_name = "DIR", global = true, help_heading = "Store")]
    data: Option<PathBuf>,
    /// The server's configuration file (TOML), for the location of the store and for the chains; variables such as
    /// METERING_DATABASE override it, as in the server.
    #[arg(long, value_name = "FILE", global = true, help_heading = "Store")]
    config: Option<PathBuf>,
}

/// The location of a store that is not open yet.
#[derive(Debug, Clone)]
pub(crate) enum Location {
    Sqlite(PathBuf),
    Postgres(Box<PostgresConfig>),
}

/// What to do if there is no store at a location.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IfMissing {
    /// Create one.
    Create,
    /// Fail, so that a mistyped directory does not look like an empty store.
    Fail,
}

/// An open store.
#[derive(Debug)]
pub(crate) struct Database {
    location: Location,
    backend: Backend,
}

#[derive(Debug)]
enum Backend {
    Sqlite(Arc<SqliteStore>),
    Postgres(Arc<PostgresStore>),
}

/// A temporary empty store.
pub(crate) fn in_memory() -> Result<Arc<dyn FullStore>, StoreError> {
    Ok(Arc::new(SqliteStore::in_memory()?))
}

impl DatabaseArgs {
    /// Whether any option names a location.
    pub(crate) fn is_given(&self) -> bool {
        self.database.is_some() || self.data.is_some() || self.config.is_some()
    }

    /// The configuration file, if one is named.
    pub(crate) fn config_file(&self) -> Option<&Path> {
        self.config.as_deref()
    }

    /// The arguments with which a server would use the same configuration.
    ///
    /// # Errors
    /// When the URL is not UTF-8.
    pub(crate) fn server_arguments(&self) -> Result<Arguments, Failure> {
        let text = |url: &OsString| url.to_str().map(str::to_owned);
        let database = self.database.as_ref().map(|url| text(url).ok_or_else(|| refused("it is not UTF-8")));
        let (config, data, database) = (self.config.clone(), self.data.clone(), database.transpose()?);
        Ok(Arguments { config, data, database, ..Arguments::default() })
    }

    /// The configuration: the file, if one is named, overridden by the variables.
    pub(crate) fn sources(
        &self,
        environment: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Result<Sources, Failure> {
        Ok(Sources::new(self.config.clone(), environment)?)
    }

    /// The location that options and configuration name. Options override variables, variables override the file, and a
    /// URL overrides a directory.
    pub(crate) fn location(&self, sources: &Sources) -> Result<Location, Failure> {
        if let Some(url) = &self.database {
            return Location::from_url(url);
        }
        if let Some(directory) = &self.data {
            return Ok(Location::in_directory(directory));
        }
        let place: StorePlace = sources.read()?;
        let data = place.data.clone();
        if let Some(url) = place.url()? {
            return Location::from_url(&url.expose().into());
        }
        Ok(Location::in_directory(&data.unwrap_or_else(|| PathBuf::from(DEFAULT_DATA))))
    }
}

impl Location {
    fn in_directory(directory: &Path) -> Self {
        Self::Sqlite(directory.join(FILE_IN_DATA))
    }

    /// Parses a URL. Errors never repeat what follows the scheme: it may contain a password.
    pub(crate) fn from_url(url: &OsString) -> Result<Self, Failure> {
        let url = url.to_str().ok_or_else(|| refused("it is not UTF-8"))?;
        if ["postgres:", "postgresql:"].iter().any(|scheme| url.starts_with(scheme)) {
            let config = url.parse().map_err(|error: PostgresUrlError| refused(&error.to_string()))?;
            return Ok(Self::Postgres(Box::new(config)));
        }
        path_of_url(url).map(Self::Sqlite).map_err(|error| refused(&error.to_string()))
    }

    /// Whether there is a store, as far as this machine can determine.
    pub(crate) fn exists(&self) -> bool {
        match self {
            Self::Sqlite(path) => path.is_file(),
            Self::Postgres(_) => true,
        }
    }

    /// Opens the store and brings its schema up to date.
    pub(crate) async fn open(&self, if_missing: IfMissing) -> Result<Database, Failure> {
        let backend = match self {
            Self::Sqlite(path) => Backend::Sqlite(Arc::new(self.open_file(path, if_missing)?)),
            Self::Postgres(config) => {
                let store = match if_missing {
                    IfMissing::Create => PostgresStore::connect(config).await,
                    IfMissing::Fail => PostgresStore::connect_existing(config).await,
                };
                Backend::Postgres(Arc::new(store.map_err(|error| self.cannot_open(&error))?))
            }
        };
        Ok(Database { location: self.clone(), backend })
    }

    fn open_file(&self, path: &Path, if_missing: IfMissing) -> Result<SqliteStore, Failure> {
        match if_missing {
            IfMissing::Create => {}
            IfMissing::Fail if self.exists() => {}
            IfMissing::Fail => {
                return Err(Failure::Failed(format!(
                    "no store at {self}; set its location with --data DIR or --database URL, or create one \
                     with `metering admin account create` or `metering admin plan import`"
                )));
            }
        }
        SqliteStore::create(path).map_err(|error| self.cannot_open(&error))
    }

    fn cannot_open(&self, error: &StoreError) -> Failure {
        Failure::Failed(format!("cannot open {self}: {}", causes(error)))
    }
}

fn refused(problem: &str) -> Failure {
    Failure::Usage(format!("invalid database URL: {problem}; {SUPPORTED}"))
}

/// An error with its causes: for a failed connection, the innermost one is the most specific.
pub(crate) fn causes(error: &StoreError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        let more = inner.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = inner.source();
    }
    text
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Self::Postgres(config) => config.fmt(f),
        }
    }
}

impl Database {
    /// The store as all commands except backup use it.
    pub(crate) fn store(&self) -> Arc<dyn FullStore> {
        match &self.backend {
            Backend::Sqlite(store) => store.clone(),
            Backend::Postgres(store) => store.clone(),
        }
    }

    /// How many records a section has, to show progress; `None` if that is not known.
    pub(crate) async fn count(&self, section: Section) -> Result<Option<u64>, StoreError> {
        let store: &dyn Export = match &self.backend {
            Backend::Sqlite(store) => &**store,
            Backend::Postgres(store) => &**store,
        };
        store.count(section).await
    }

    /// Rejects a backup target that would overwrite this store, or damage another one that is in use.
    pub(crate) fn check_backup_target(&self, target: &Path) -> Result<(), Failure> {
        let Location::Sqlite(path) = &self.location else { return Err(own_backup()) };
        // A target that does not exist yet cannot be the store.
        let is_source = matches!((path.canonicalize(), target.canonicalize()), (Ok(a), Ok(b)) if a == b);
        if is_source {
            return Err(Failure::Conflict(format!("{} is the store itself; name another file", target.display())));
        }
        // SQLite would replay a write-ahead log that it finds next to the copy, even one that belongs to another
        // database.
        match sidecars(target).into_iter().find(|sidecar| sidecar.exists()) {
            Some(sidecar) => Err(Failure::Conflict(format!(
                "{} exists, so a database named {} is or was in use; choose another name",
                sidecar.display(),
                target.display()
            ))),
            None => Ok(()),
        }
    }

    /// Copies the store to a file while it is in use: a snapshot of one moment. Returns the result of verifying the
    /// copy.
    pub(crate) async fn backup_to(&self, file: &Path, progress: Arc<dyn Progress>) -> Result<Verification, Failure> {
        match &self.backend {
            Backend::Sqlite(store) => Ok(store.backup_with_progress(file, progress).await?),
            Backend::Postgres(_) => Err(own_backup()),
        }
    }
}

/// Opens a finished backup as a store, as a restore would.
pub(crate) async fn open_backup(file: &Path) -> Result<Database, Failure> {
    Location::Sqlite(file.to_owned()).open(IfMissing::Fail).await
}

fn own_backup() -> Failure {
    Failure::Usage("PostgreSQL has its own backup tools: use pg_dump, or pg_basebackup with log archiving".to_owned())
}

/// Whether a backup that was opened and closed is a single file, so that it can be moved around safely.
pub(crate) fn is_one_file(file: &Path) -> bool {
    sidecars(file).iter().all(|sidecar| !sidecar.exists())
}

/// The files that SQLite keeps next to an open database.
pub(crate) fn sidecars(file: &Path) -> [PathBuf; 3] {
    ["-wal", "-shm", "-journal"].map(|suffix| {
        let mut name = file.as_os_str().to_owned();
        name.push(suffix);
        name.into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn located(database: Option<&str>, data: Option<&str>, variables: &[(&str, &str)]) -> Result<Location, Failure> {
        located_with(None, database, data, variables)
    }

    fn located_with(
        config: Option<&Path>,
        database: Option<&str>,
        data: Option<&str>,
        variables: &[(&str, &str)],
    ) -> Result<Location, Failure> {
        let (database, data) = (database.map(Into::into), data.map(Into::into));
        let args = DatabaseArgs { database, data, config: config.map(Into::into) };
        let variables = variables.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        args.location(&args.sources(variables)?)
    }

    #[test]
    fn the_configuration_file_names_the_store_as_it_does_for_the_server() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("metering.toml");
        let location = |toml: &str, data: Option<&str>, variables: &[(&str, &str)]| {
            std::fs::write(&file, format!("{toml}\n[http]\nmax_body_bytes = 9\n")).unwrap();
            located_with(Some(&file), None, data, variables).unwrap().to_string()
        };
        assert_eq!(location("data = '/srv/a'", None, &[]), "sqlite:/srv/a/metering.db");
        let both = "data = '/srv/a'\ndatabase = 'postgres://u:secret@h/d'";
        assert_eq!(location(both, None, &[]), "postgres://u:********@h/d");
        assert_eq!(location(both, None, &[DATA]), "postgres://u:********@h/d");
        assert_eq!(location(both, None, &[DATABASE]), "sqlite:env.db");
        assert_eq!(location(both, Some("dir"), &[DATABASE]), "sqlite:dir/metering.db");
        assert_eq!(location("data = '/srv/a'", None, &[DATA]), "sqlite:env/metering.db");
        std::fs::write(folder.path().join("url"), "postgres://u:secret@h/e\n").unwrap();
        let in_a_file = format!("data = '/srv/a'\ndatabase_file = '{}'", folder.path().join("url").display());
        assert_eq!(location(&in_a_file, None, &[]), "postgres://u:********@h/e");
        assert_eq!(location(&in_a_file, None, &[DATABASE]), "sqlite:env.db");
        let missing = folder.path().join("none.toml");
        let message = located_with(Some(&missing), None, None, &[]).unwrap_err().to_string();
        assert!(message.contains("none.toml"), "{message}");
    }

    const DATABASE: (&str, &str) = ("METERING_DATABASE", "sqlite:env.db");
    const DATA: (&str, &str) = ("METERING_DATA", "env");

    #[test]
    fn options_win_over_variables_and_urls_over_directories() {
        let (url, data) = (DATABASE, DATA);
        // --database, --data, variables, path
        let table: &[(_, _, &[(&str, &str)], _)] = &[
            (None, None, &[], "./metering-data/metering.db"),
            (None, None, &[data], "env/metering.db"),
            (None, None, &[url, data], "env.db"),
            (None, Some("dir"), &[url, data], "dir/metering.db"),
            (Some("sqlite:a.db"), None, &[url, data], "a.db"),
            (Some("sqlite:/a/b.db"), None, &[], "/a/b.db"),
            (Some("sqlite:///a/b.db"), None, &[], "/a/b.db"),
            (Some("sqlite:a:b.db"), None, &[], "a:b.db"),
            (None, None, &[("METERING_DATABASE", ""), ("METERING_DATA", "")], "./metering-data/metering.db"),
        ];
        for (database, data, variables, path) in table {
            let location = located(*database, *data, variables).unwrap();
            assert!(matches!(&location, Location::Sqlite(found) if *found == PathBuf::from(path)), "{location}");
        }
    }

    #[test]
    fn unknown_backend_urls_are_rejected_without_their_password() {
        let table = ["mysql://root:hunter2@db/x", "metering.db", "sqlite:", "sqlite://", "sqlite::memory:", ""];
        for url in table {
            let message = located(Some(url), None, &[]).unwrap_err().to_string();
            assert!(message.contains(SUPPORTED), "{url}: {message}");
            assert!(!message.contains("hunter2"), "{message}");
        }
    }
}
