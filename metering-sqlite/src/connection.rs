//! Opens the database file: file mode, pragmas, and how long to wait for another process.

mod access;
pub(crate) mod files;
pub(crate) mod health;
pub(crate) mod integrity;
pub(crate) mod location;
pub(crate) mod readers;
pub(crate) mod recovery;
pub(crate) mod writer;

use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use metering_core::StoreError;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::connection::access::{explained, owners};
use crate::connection::location::missing_folder_of;
use crate::error::{Result, store_error};
use crate::migrations::refuse_foreign;

/// How long a write waits for another process to finish its write.
const BUSY_TIMEOUT: Duration = Duration::from_secs(30);
/// How long to sleep between two attempts. It is short because a busy server holds the lock most of the time: another
/// process gets it only by trying in the gap between two commits.
const BUSY_SLEEP: Duration = Duration::from_micros(500);

/// How long to wait for other processes to close a file that we need exclusively.
const EXCLUSIVE_TIMEOUT: Duration = Duration::from_secs(2);

/// Size of the write-ahead log, in pages, that triggers a checkpoint: 64 MiB. The cost of a checkpoint depends on the
/// number of distinct pages, so with rarer checkpoints more writes to the same page share the cost.
const CHECKPOINT_PAGES: u32 = 16_384;

/// The first version without the WAL-reset bug that can corrupt a database with several writers.
const OLDEST_SAFE_SQLITE: i32 = 3_051_003;

/// Creates the file with mode 0600 if it does not exist.
pub(crate) fn prepare_file(path: &Path) -> Result<()> {
    let unavailable = |error: std::io::Error| {
        let problem = match missing_folder_of(path) {
            Some(folder) => format!(
                "the folder {} does not exist; create it, or open the store with `SqliteStore::create`, which does so",
                folder.display()
            ),
            None => format!("{error}{}", owners(path)),
        };
        StoreError::Unavailable(format!("cannot open database {}: {problem}", path.display()).into())
    };
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(unavailable(error)),
    }
}

/// Sets the mode of our database to 0600 if others have access: it holds email addresses and key hashes.
#[cfg(unix)]
fn restrict_mode(path: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let restrict_mode = || {
        let mut permissions = std::fs::metadata(path)?.permissions();
        if permissions.mode() & 0o077 != 0 {
            tracing::warn!(path = %path.display(), "other users had access to the database; its mode is now 0600");
            permissions.set_mode(0o600);
            std::fs::set_permissions(path, permissions)?;
        }
        Ok(())
    };
    restrict_mode().map_err(|error: std::io::Error| {
        let problem = format!("cannot set the mode of database {}: {error}{}", path.display(), owners(path));
        StoreError::Unavailable(problem.into())
    })
}

#[cfg(not(unix))]
fn restrict_mode(_path: &Path) -> Result<()> {
    Ok(())
}

/// Opens the connection that writes. Every commit is on disk before it returns. If the database belongs to another
/// program, this fails before it changes anything.
pub(crate) fn open_writer(path: &Path) -> Result<Connection> {
    explained(path, || {
        let connection = open(path)?;
        refuse_foreign(&connection)?;
        restrict_mode(path)?;
        configure_writer(&connection).map_err(store_error)?;
        Ok(connection)
    })
}

fn configure_writer(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
    connection.pragma_update(None, "cache_size", -65_536)?;
    connection.pragma_update(None, "foreign_keys", true)
}

/// Opens a connection that locks all others out of the file until it is closed. `None` if another process has the file
/// open for longer than `patience`.
pub(crate) fn open_alone(path: &Path, patience: Duration) -> Result<Option<Connection>> {
    explained(path, || try_open_alone(path, patience))
}

fn try_open_alone(path: &Path, patience: Duration) -> Result<Option<Connection>> {
    let connection = open(path)?;
    connection.busy_timeout(patience).map_err(store_error)?;
    // This must come before the first access: a connection that enters WAL mode in exclusive locking mode uses no
    // shared memory and keeps the file locked for as long as it is open.
    let locked = connection
        .execute_batch("PRAGMA locking_mode = EXCLUSIVE")
        .and_then(|()| connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(())));
    match locked {
        Ok(()) => {
            refuse_foreign(&connection)?;
            Ok(Some(connection))
        }
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => Ok(None),
        Err(error) => Err(store_error(error)),
    }
}

/// Opens the connection that writes, and locks all others out of the file until it is closed.
pub(crate) fn open_writer_alone(path: &Path) -> Result<Connection> {
    // Admin commands finish soon; waiting for a server would be pointless.
    let Some(connection) = open_alone(path, EXCLUSIVE_TIMEOUT)? else { return Err(in_use(path)) };
    restrict_mode(path)?;
    let lock = || {
        configure_writer(&connection)?;
        connection.execute_batch("BEGIN IMMEDIATE; COMMIT")
    };
    match lock() {
        Ok(()) => Ok(connection),
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => Err(in_use(path)),
        Err(error) => Err(store_error(error)),
    }
}

fn in_use(path: &Path) -> StoreError {
    let problem = format!("{} is open in another process; stop every server and command that uses it", path.display());
    StoreError::Unavailable(problem.into())
}

/// Opens a read-only connection. It never waits for the writer, and the writer never waits for it.
pub(crate) fn open_reader(path: &Path) -> Result<Connection> {
    explained(path, || {
        let connection = open(path)?;
        let configure = || {
            connection.pragma_update(None, "query_only", true)?;
            connection.pragma_update(None, "cache_size", -8_192)
        };
        configure().map_err(store_error)?;
        Ok(connection)
    })
}

/// Opens a separate database in memory.
pub(crate) fn open_in_memory() -> Result<Connection> {
    let open = || {
        let connection = Connection::open_in_memory()?;
        connection.set_prepared_statement_cache_capacity(64);
        connection.pragma_update(None, "foreign_keys", true)?;
        Ok(connection)
    };
    open().map_err(store_error)
}

fn open(path: &Path) -> Result<Connection> {
    if rusqlite::version_number() < OLDEST_SAFE_SQLITE {
        let version = rusqlite::version();
        return Err(StoreError::Unavailable(
            format!("SQLite {version} is too old; 3.51.3 or newer is required").into(),
        ));
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags).map_err(store_error)?;
    connection.busy_handler(Some(wait_for_lock)).map_err(store_error)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

fn wait_for_lock(tries: i32) -> bool {
    let waited = BUSY_SLEEP * u32::try_from(tries).unwrap_or(u32::MAX);
    std::thread::sleep(BUSY_SLEEP);
    waited < BUSY_TIMEOUT
}
