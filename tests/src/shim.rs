//! The preloaded library of `tests/chaos/shim.c`: built with `cc`, and controlled through a shared file.
//!
//! The chaos campaigns make a disk fail with it, and the benchmark makes one slow.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use crate::latency::Latencies;
use crate::server::ServerSetup;

const SOURCE: &str = include_str!("../chaos/shim.c");

/// Faults, as bits; same values as in `shim.c`.
pub(crate) const WRITE_ENOSPC: u32 = 1;
pub(crate) const WRITE_EIO: u32 = 2;
pub(crate) const READ_EIO: u32 = 4;
pub(crate) const SYNC_EIO: u32 = 8;
pub(crate) const SYNC_LIES: u32 = 16;
pub(crate) const WRITE_LIES: u32 = 32;

/// Files, as bits.
pub(crate) const DATABASE: u32 = 1;
pub(crate) const WAL: u32 = 2;

/// Offsets of the control words in the file.
const FAULTS: u64 = 0;
const SKIP: u64 = 4;
const LIMIT: u64 = 8;
const INJECTED: u64 = 12;
const FILES: u64 = 16;
const DELAY: u64 = 20;
const FLUSHES: u64 = 24;
const TIMES: u64 = 2_048;

/// Of how many flushes the times are kept.
const KEPT: u32 = 512;

/// A built library and its control file, for the servers of one data folder.
#[derive(Debug)]
pub(crate) struct Shim {
    folder: TempDir,
    control: File,
}

/// The fault to inject.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fault {
    pub(crate) kinds: u32,
    pub(crate) files: u32,
    /// How many calls still succeed.
    pub(crate) skip: u32,
    /// How many calls fail; 0 for all.
    pub(crate) limit: u32,
}

/// What flushes took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Flushes {
    pub(crate) count: u32,
    /// The time of half of the last 512, at most, including the delay.
    pub(crate) p50: Option<Duration>,
}

impl Shim {
    /// Builds the library with the C compiler in the `PATH`.
    pub(crate) fn build() -> Self {
        Self::build_with(Path::new("cc")).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Builds the library.
    ///
    /// # Errors
    /// If it does not build.
    pub(crate) fn build_with(cc: &Path) -> io::Result<Self> {
        let folder = tempfile::tempdir()?;
        let source = folder.path().join("shim.c");
        fs::write(&source, SOURCE)?;
        let mut command = Command::new(cc);
        command.args(["-O2", "-shared", "-fPIC", "-o"]).arg(folder.path().join("shim.so")).arg(&source);
        let built = command.args(["-ldl", "-lpthread"]).output();
        let built = built.map_err(|error| io::Error::other(format!("a C compiler is needed: {error}")))?;
        if !built.status.success() {
            let errors = String::from_utf8_lossy(&built.stderr);
            return Err(io::Error::other(format!("the shim does not build: {errors}")));
        }
        let path = folder.path().join("control");
        fs::write(&path, [0; 4_096])?;
        let control = File::options().read(true).write(true).open(path)?;
        Ok(Self { folder, control })
    }

    /// The server setup with the library preloaded, for the files of this folder. It must be as the server names it.
    pub(crate) fn under(&self, setup: ServerSetup, data: &Path) -> ServerSetup {
        let text = |path: PathBuf| path.display().to_string();
        setup
            .set("LD_PRELOAD", &text(self.folder.path().join("shim.so")))
            .set("CHAOS_SHIM_CONTROL", &text(self.folder.path().join("control")))
            .set("CHAOS_SHIM_FOLDER", &data.display().to_string())
    }

    /// Like [`Shim::under`], and logs every change.
    pub(crate) fn recording(&self, setup: ServerSetup, data: &Path) -> ServerSetup {
        self.under(setup, data).set("CHAOS_SHIM_LOG", &self.log().display().to_string())
    }

    /// The path of the log of changes.
    pub(crate) fn log(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    /// Starts a fault, after clearing the previous one.
    pub(crate) fn inject(&self, fault: Fault) {
        self.clear();
        for (word, value) in [(INJECTED, 0), (SKIP, fault.skip), (LIMIT, fault.limit), (FILES, fault.files)] {
            self.set(word, value);
        }
        self.set(FAULTS, fault.kinds);
    }

    /// Ends all faults.
    pub(crate) fn clear(&self) {
        self.set(FAULTS, 0);
    }

    /// How many calls have failed since the last [`Shim::inject`].
    pub(crate) fn injected(&self) -> u64 {
        u64::from(self.get(INJECTED))
    }

    /// From now on, each flush takes this much longer.
    pub(crate) fn delay_flushes(&self, delay: Duration) {
        self.set(DELAY, u32::try_from(delay.as_micros()).expect("a delay is less than an hour"));
    }

    /// Forgets the flushes so far.
    pub(crate) fn forget_flushes(&self) {
        self.set(FLUSHES, 0);
    }

    /// The flushes since the last [`Shim::forget_flushes`].
    pub(crate) fn flushes(&self) -> Flushes {
        let count = self.get(FLUSHES);
        let mut times = Latencies::default();
        for index in 0..count.min(KEPT) {
            let micros = self.get(TIMES + 4 * u64::from(index));
            times.record(Duration::from_micros(micros.into()));
        }
        Flushes { count, p50: times.p50() }
    }

    fn get(&self, word: u64) -> u32 {
        let mut bytes = [0; 4];
        self.control.read_exact_at(&mut bytes, word).expect("the control file can be read");
        u32::from_ne_bytes(bytes)
    }

    fn set(&self, word: u64, value: u32) {
        self.control.write_all_at(&value.to_ne_bytes(), word).expect("the control file can be written");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Has a program flush a file of the folder.
    fn flush(shim: &Shim, data: &Path) {
        let mut sync = Command::new("sync");
        sync.arg(data.join("metering.db-wal"));
        let output = shim.under(ServerSetup::of_command(sync), data).run();
        assert_eq!(output.code, Some(0), "{output:?}");
    }

    #[test]
    fn flushes_are_delayed_and_timed() {
        const DELAY: Duration = Duration::from_millis(30);
        let (shim, data) = (Shim::build(), tempfile::tempdir().unwrap());
        fs::write(data.path().join("metering.db-wal"), "x").unwrap();
        flush(&shim, data.path());
        assert_eq!(shim.flushes().count, 1);
        shim.delay_flushes(DELAY);
        shim.forget_flushes();
        assert_eq!(shim.flushes(), Flushes { count: 0, p50: None });
        flush(&shim, data.path());
        flush(&shim, data.path());
        let flushes = shim.flushes();
        assert!(flushes.count == 2 && flushes.p50 >= Some(DELAY), "{flushes:?}");
    }
}
