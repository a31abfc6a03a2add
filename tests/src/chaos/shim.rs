//! The preloaded library of `tests/chaos/shim.c`: built with `cc`, and controlled through a shared file.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

use crate::server::ServerSetup;
use crate::site::Site;

const SOURCE: &str = include_str!("../../chaos/shim.c");

/// Faults, as bits; same values as in `shim.c`.
pub(super) const WRITE_ENOSPC: u32 = 1;
pub(super) const WRITE_EIO: u32 = 2;
pub(super) const READ_EIO: u32 = 4;
pub(super) const SYNC_EIO: u32 = 8;
pub(super) const SYNC_LIES: u32 = 16;
pub(super) const WRITE_LIES: u32 = 32;

/// Files, as bits.
pub(super) const DATABASE: u32 = 1;
pub(super) const WAL: u32 = 2;

/// Offsets of the control words in the file.
const FAULTS: u64 = 0;
const SKIP: u64 = 4;
const LIMIT: u64 = 8;
const INJECTED: u64 = 12;
const FILES: u64 = 16;

/// A built library and its control file, for the servers of one site.
pub(super) struct Shim {
    folder: TempDir,
    control: File,
}

/// The fault to inject.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fault {
    pub(super) kinds: u32,
    pub(super) files: u32,
    /// How many calls still succeed.
    pub(super) skip: u32,
    /// How many calls fail; 0 for all.
    pub(super) limit: u32,
}

impl Shim {
    /// Builds the library.
    pub(super) fn build() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be created");
        let source = folder.path().join("shim.c");
        fs::write(&source, SOURCE).expect("the source can be written");
        let mut cc = Command::new("cc");
        cc.args(["-O2", "-shared", "-fPIC", "-o"]).arg(folder.path().join("shim.so")).arg(&source);
        let built = cc.args(["-ldl", "-lpthread"]).output().expect("a C compiler (cc) is installed");
        assert!(built.status.success(), "the shim does not build: {}", String::from_utf8_lossy(&built.stderr));
        let path = folder.path().join("control");
        fs::write(&path, [0; 4096]).expect("the control file can be written");
        let control = File::options().read(true).write(true).open(path).expect("the file was just written");
        Self { folder, control }
    }

    /// The server setup with the library preloaded, for the files of this site.
    pub(super) fn under(&self, setup: ServerSetup, site: &Site) -> ServerSetup {
        let text = |path: PathBuf| path.display().to_string();
        setup
            .set("LD_PRELOAD", &text(self.folder.path().join("shim.so")))
            .set("CHAOS_SHIM_CONTROL", &text(self.folder.path().join("control")))
            .set("CHAOS_SHIM_FOLDER", &text(site.data()))
    }

    /// Like [`Shim::under`], and logs every change.
    pub(super) fn recording(&self, setup: ServerSetup, site: &Site) -> ServerSetup {
        self.under(setup, site).set("CHAOS_SHIM_LOG", &self.log().display().to_string())
    }

    /// The path of the log of changes.
    pub(super) fn log(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    /// Starts a fault, after clearing the previous one.
    pub(super) fn inject(&self, fault: Fault) {
        self.clear();
        for (word, value) in [(INJECTED, 0), (SKIP, fault.skip), (LIMIT, fault.limit), (FILES, fault.files)] {
            self.set(word, value);
        }
        self.set(FAULTS, fault.kinds);
    }

    /// Ends all faults.
    pub(super) fn clear(&self) {
        self.set(FAULTS, 0);
    }

    /// How many calls have failed since the last [`Shim::inject`].
    pub(super) fn injected(&self) -> u64 {
        let mut word = [0; 4];
        self.control.read_exact_at(&mut word, INJECTED).expect("the control file can be read");
        u64::from(u32::from_ne_bytes(word))
    }

    fn set(&self, word: u64, value: u32) {
        self.control.write_all_at(&value.to_ne_bytes(), word).expect("the control file can be written");
    }
}
