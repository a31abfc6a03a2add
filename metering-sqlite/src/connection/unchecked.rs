//! A database that was not closed cleanly, is not checked for damage yet, and is in use.
//!
//! A file next to it marks it until a check has passed, so that the next start checks it again if this one does not get
//! to the end. When damage is found, the store is closed for good, and the mark says so: the next start then checks
//! before it opens the database, and refuses it.

use std::fmt;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use metering_core::StoreError;
use rusqlite::{Connection, InterruptHandle};

use crate::connection::files::sidecar;
use crate::connection::health::Health;
use crate::connection::integrity::{Depth, check_pages};
use crate::connection::open_reader;
use crate::error::Result;

/// What the mark of a damaged database contains. That of one which is only not checked yet is empty.
const DAMAGED: &[u8] = b"damaged\n";
/// How often to interrupt a check that should end: an interrupt before its statement has begun has no effect.
const BETWEEN_INTERRUPTS: Duration = Duration::from_millis(1);

/// The file that marks a database.
#[derive(Debug, Clone)]
pub(crate) struct Mark(PathBuf);

impl Mark {
    pub(crate) fn of(database: &Path) -> Self {
        Self(sidecar(database, "-unchecked"))
    }

    pub(crate) fn exists(&self) -> bool {
        self.0.exists()
    }

    pub(crate) fn says_damaged(&self) -> bool {
        std::fs::read(&self.0).is_ok_and(|content| content == DAMAGED)
    }

    /// Marks the database as not checked.
    pub(crate) fn set(&self) -> Result<()> {
        self.write(&[])
    }

    fn set_damaged(&self) -> Result<()> {
        self.write(DAMAGED)
    }

    fn write(&self, content: &[u8]) -> Result<()> {
        let written = File::create(&self.0).and_then(|mut file| {
            file.write_all(content)?;
            file.sync_all()
        });
        written.map_err(|error| self.unavailable("write", &error))
    }

    pub(crate) fn remove(&self) -> Result<()> {
        match std::fs::remove_file(&self.0) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(self.unavailable("remove", &error)),
            _ => Ok(()),
        }
    }

    fn unavailable(&self, verb: &str, error: &std::io::Error) -> StoreError {
        StoreError::Unavailable(format!("cannot {verb} {}: {error}", self.0.display()).into())
    }
}

/// A check that runs while the database is in use. Dropping it ends it.
pub(crate) struct RunningCheck {
    interrupt: InterruptHandle,
    thread: Option<JoinHandle<()>>,
}

impl RunningCheck {
    /// Begins to check the database.
    pub(crate) fn start(path: &Path, mark: Mark, health: Arc<Health>) -> Result<Self> {
        let connection = open_reader(path)?;
        let interrupt = connection.get_interrupt_handle();
        let thread = std::thread::Builder::new()
            .name("metering-sqlite-check".to_owned())
            .spawn(move || check(&connection, &mark, &health))
            .map_err(|error| StoreError::Unavailable(Box::new(error)))?;
        Ok(Self { interrupt, thread: Some(thread) })
    }
}

fn check(connection: &Connection, mark: &Mark, health: &Health) {
    let marked = match check_pages(connection, Depth::Quick) {
        Ok(()) => {
            tracing::info!("the database is not damaged");
            mark.remove()
        }
        Err(StoreError::Corrupt(problem)) => {
            let marked = mark.set_damaged();
            health.close_damaged(problem);
            marked
        }
        Err(error) => {
            tracing::warn!(%error, "the check of the database did not end; the next start checks it again");
            Ok(())
        }
    };
    if let Err(error) = marked {
        tracing::error!(%error, "the result of the check of the database is not noted; the next start checks it again");
    }
}

impl Drop for RunningCheck {
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        while !thread.is_finished() {
            self.interrupt.interrupt();
            std::thread::sleep(BETWEEN_INTERRUPTS);
        }
        let _ = thread.join();
    }
}

impl fmt::Debug for RunningCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunningCheck").finish_non_exhaustive()
    }
}
