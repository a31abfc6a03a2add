//! What an open store knows of its own condition: whether damage was found, and whether there is room on the disk.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use metering_core::StoreError;
use rusqlite::Connection;

use crate::error::Result;
use crate::files::{Files, sidecar};
use crate::integrity::{self, Depth};

/// How long the result of a check for damage holds: it reads the whole file.
const CHECK_HOLDS: Duration = Duration::from_secs(30);

/// How much room there must be on the disk. SQLite reuses the space of its write-ahead log, so that a small write can
/// succeed on a full disk where a batch of charges fails.
const ROOM_BYTES: usize = 1024 * 1024;

/// The condition of one open database.
#[derive(Debug)]
pub(crate) struct Health {
    files: Files,
    /// What is written to find out whether there is room.
    room_probe: PathBuf,
    damage: Mutex<Damage>,
}

#[derive(Debug, Default)]
enum Damage {
    /// None that anybody has come across.
    #[default]
    None,
    /// A read or a write found corrupt data.
    Suspected(String),
    /// Somebody is checking the file.
    Checking(String),
    /// A check found damage, then.
    Found(String, Instant),
}

impl Health {
    /// Of a database that was just read.
    pub(crate) fn of(path: &Path) -> Result<Self> {
        Ok(Self { files: Files::of(path)?, room_probe: sidecar(path, "-probe"), damage: Mutex::default() })
    }

    /// What happened to the files, if they are no longer those that were opened.
    pub(crate) fn loss(&self) -> Option<&str> {
        self.files.loss()
    }

    /// Refuses a database whose files are gone.
    pub(crate) fn check_identity(&self) -> Result<()> {
        self.loss().map_or(Ok(()), |loss| Err(StoreError::Closed(loss.to_owned())))
    }

    /// Notes what a read or a write came to: corrupt data makes the store suspect until a check has passed.
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

    /// Checks the file for damage, after [`Health::begin_check`]. `connection` has read nothing yet, since what it
    /// remembers is not what is on the disk.
    pub(crate) fn check_damage(&self, connection: &Connection) -> Result<()> {
        let checked = integrity::check(connection, Depth::Quick);
        *self.damage() = match &checked {
            Ok(()) => Damage::None,
            Err(error) => Damage::Found(error.to_string(), Instant::now()),
        };
        checked
    }

    /// Whether there is room on the disk for more than a few charges.
    pub(crate) fn check_room(&self) -> Result<()> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        // Not flushed: file systems reserve the room when it is written.
        let written = options.open(&self.room_probe).and_then(|mut file| file.write_all(&vec![0; ROOM_BYTES]));
        let removed = std::fs::remove_file(&self.room_probe);
        let missing_is_fine = |error: std::io::Error| {
            // Another process may have asked the same at the same time.
            if error.kind() == std::io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
        };
        written.and_then(|()| removed.or_else(missing_is_fine)).map_err(|error| {
            let problem = format!("there is no room for {ROOM_BYTES} bytes beside the database: {error}");
            StoreError::Unavailable(problem.into())
        })
    }

    fn damage(&self) -> MutexGuard<'_, Damage> {
        self.damage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
