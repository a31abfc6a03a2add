//! Health of an open store: whether damage was found, and whether the disk has free space.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use metering_core::StoreError;
use rusqlite::Connection;

use crate::connection::files::{Files, sidecar};
use crate::connection::integrity::{self, Depth};
use crate::error::Result;

/// How long a check that found damage is reused, since each check reads the whole file.
const CHECK_HOLDS: Duration = Duration::from_secs(30);

/// How much free space the disk must have. SQLite reuses the space of its write-ahead log, so on a full disk a small
/// write can succeed although a batch of charges would fail.
const ROOM_BYTES: usize = 1024 * 1024;

/// The health of one open database.
#[derive(Debug)]
pub(crate) struct Health {
    files: Files,
    /// The file that is written to check for free space; `None` for a database in memory.
    room_probe: Option<PathBuf>,
    damage: Mutex<Damage>,
}

#[derive(Debug, Default)]
enum Damage {
    /// No problem found yet.
    #[default]
    None,
    /// A read or a write found corrupt data.
    Suspected(String),
    /// A check is running.
    Checking(String),
    /// A check found damage at this time.
    Found(String, Instant),
}

impl Health {
    /// The database must just have been read, so that all its files exist.
    pub(crate) fn of(path: &Path) -> Result<Self> {
        Ok(Self { files: Files::of(path)?, room_probe: Some(sidecar(path, "-probe")), damage: Mutex::default() })
    }

    /// The health of a database without files.
    pub(crate) fn in_memory() -> Self {
        Self { files: Files::none(), room_probe: None, damage: Mutex::default() }
    }

    /// The problem with the files, if they are no longer those that were opened.
    pub(crate) fn loss(&self) -> Option<&str> {
        self.files.loss()
    }

    /// Fails if the database files were deleted or replaced.
    pub(crate) fn check_identity(&self) -> Result<()> {
        self.loss().map_or(Ok(()), |loss| Err(StoreError::Closed(loss.to_owned())))
    }

    /// Records the result of a read or write. After corrupt data, damage is suspected until a check passes.
    pub(crate) fn note<T>(&self, result: &Result<T>) {
        if let Err(StoreError::Corrupt(problem)) = result {
            let mut damage = self.damage();
            if matches!(*damage, Damage::None) {
                *damage = Damage::Suspected(problem.clone());
            }
        }
    }

    /// Whether the file should be checked for damage now.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] while another check runs, and after one that found damage.
    pub(crate) fn begin_check(&self) -> Result<bool> {
        let mut damage = self.damage();
        let problem = match &*damage {
            Damage::None => return Ok(false),
            Damage::Checking(problem) => return Err(StoreError::Corrupt(problem.clone())),
            Damage::Found(problem, at) if at.elapsed() < CHECK_HOLDS => {
                return Err(StoreError::Corrupt(problem.clone()));
            }
            Damage::Found(problem, _) | Damage::Suspected(problem) => problem.clone(),
        };
        *damage = Damage::Checking(problem);
        Ok(true)
    }

    /// Checks the file for damage, after [`Health::begin_check`]. `connection` must not have read anything yet: its
    /// cached pages may differ from those on disk.
    pub(crate) fn check_damage(&self, connection: &Connection) -> Result<()> {
        let checked = integrity::check(connection, Depth::Quick);
        *self.damage() = match &checked {
            Ok(()) => Damage::None,
            Err(error) => Damage::Found(error.to_string(), Instant::now()),
        };
        checked
    }

    /// Fails unless the disk has room for more than a few charges.
    pub(crate) fn check_room(&self) -> Result<()> {
        let Some(probe) = &self.room_probe else { return Ok(()) };
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        // No flush: file systems reserve the space on the write.
        let written = options.open(probe).and_then(|mut file| file.write_all(&vec![0; ROOM_BYTES]));
        let removed = std::fs::remove_file(probe);
        let missing_is_fine = |error: std::io::Error| {
            // Another process may be running the same check.
            if error.kind() == std::io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
        };
        written.and_then(|()| removed.or_else(missing_is_fine)).map_err(|error| {
            let problem = format!("cannot write {ROOM_BYTES} bytes next to the database: {error}");
            StoreError::Unavailable(problem.into())
        })
    }

    fn damage(&self) -> MutexGuard<'_, Damage> {
        self.damage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
