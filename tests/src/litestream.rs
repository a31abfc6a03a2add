//! Litestream (from its Python package), with the configuration of `deploy/litestream` at the paths of a test's site.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::command::ProgramOutput;
use crate::site::Site;
use crate::venv;

/// Set by `./test.sh` on a machine without Python.
const SKIP: &str = "TESTS_SKIP_LITESTREAM";

/// How long it may take to start, to copy the rest, and to stop.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Whether tests with Litestream are disabled.
#[must_use]
#[track_caller]
pub fn is_skipped() -> bool {
    crate::skipped::by(SKIP)
}

/// The paths of one database and its copy.
#[derive(Debug)]
pub struct Litestream {
    database: PathBuf,
    configuration: PathBuf,
    socket: PathBuf,
    log: PathBuf,
}

/// A running Litestream. Dropping it kills it.
#[derive(Debug)]
pub struct Replication<'l> {
    litestream: &'l Litestream,
    child: Child,
}

impl Litestream {
    /// For the database of `site`, with the configuration that we ship. Each change must apply: Litestream ignores keys
    /// that it does not know.
    #[must_use]
    #[track_caller]
    pub fn of(site: &Site, changes: &[(&str, &str)]) -> Self {
        let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/litestream/litestream.yml");
        let mut text = std::fs::read_to_string(shipped).expect("the configuration can be read");
        let (copy, socket) = (site.path("copy"), site.path("litestream.sock"));
        let database = site.database().display().to_string();
        let paths = [
            ("- path: /var/lib/metering/metering.db\n", format!("- path: {database}\n")),
            ("path: /var/backups/metering\n", format!("path: {}\n", copy.display())),
            ("path: /run/metering-litestream/litestream.sock\n", format!("path: {}\n", socket.display())),
        ];
        for (old, new) in paths.iter().map(|(old, new)| (*old, new.as_str())).chain(changes.iter().copied()) {
            assert_eq!(text.matches(old).count(), 1, "{old}");
            text = text.replace(old, new);
        }
        let (configuration, log) = (site.write("litestream.yml", &text), site.path("litestream.log"));
        Self { database: site.database(), configuration, socket, log }
    }

    /// Starts it. It appends to its log.
    #[must_use]
    #[track_caller]
    pub fn start(&self) -> Replication<'_> {
        // One that was killed leaves it.
        let _ = std::fs::remove_file(&self.socket);
        let log = File::options().create(true).append(true).open(&self.log).expect("the log can be opened");
        let mut command = Self::command();
        command.args(["replicate", "-log-level", "debug", "-config"]).arg(&self.configuration);
        command.stdin(Stdio::null()).stderr(log.try_clone().expect("a handle can be copied")).stdout(log);
        let replication = Replication { litestream: self, child: command.spawn().expect("Litestream can be run") };
        // It opens its socket early, and the database at its first look for changes.
        let until = Instant::now() + TIMEOUT;
        while !self.socket.exists() || !replication.has_copied() {
            assert!(Instant::now() < until, "Litestream does not begin: {}", self.log());
            std::thread::sleep(Duration::from_millis(50));
        }
        replication
    }

    /// Restores the database where it was, from the copy, with these further arguments.
    #[must_use]
    pub fn restore(&self, args: &[&str]) -> ProgramOutput {
        let mut command = Self::command();
        command.args(["restore", "-config"]).arg(&self.configuration).args(args).arg(&self.database);
        ProgramOutput::of(command.output().expect("Litestream can be run"))
    }

    /// Its log so far.
    #[must_use]
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    fn command() -> Command {
        Command::new(venv::program("litestream-venv", "litestream"))
    }
}

impl Replication<'_> {
    /// Returns once everything that is committed now is copied.
    #[track_caller]
    pub fn sync(&self) {
        let synced = self.try_sync(&["-wait", "-timeout", "60"]);
        assert_eq!(synced.code, Some(0), "{synced:?}: {}", self.litestream.log());
    }

    /// Ends it immediately, as a power loss would.
    ///
    /// # Panics
    /// If it had already ended.
    pub fn kill(mut self) {
        assert_eq!(self.child.try_wait().expect("a child's status can be read"), None, "{}", self.litestream.log());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Stops it. It copies the rest first.
    #[track_caller]
    pub fn stop(mut self) {
        crate::server::signal(self.child.id(), "TERM");
        let until = Instant::now() + TIMEOUT;
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("a child's status can be read") {
                break status;
            }
            assert!(Instant::now() < until, "Litestream does not end: {}", self.litestream.log());
            std::thread::sleep(Duration::from_millis(20));
        };
        assert!(status.success(), "{status}: {}", self.litestream.log());
    }

    fn has_copied(&self) -> bool {
        self.try_sync(&["-wait", "-timeout", "5"]).code == Some(0)
    }

    fn try_sync(&self, args: &[&str]) -> ProgramOutput {
        let mut command = Litestream::command();
        command.arg("sync").args(args).arg("-socket").arg(&self.litestream.socket).arg(&self.litestream.database);
        ProgramOutput::of(command.output().expect("Litestream can be run"))
    }
}

impl Drop for Replication<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
