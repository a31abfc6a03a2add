//! A fresh Debian system in a folder, for tests of the packages. Needs root, but no more rights than a container's root
//! has.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

use crate::venv::tool;

/// A root folder.
#[derive(Debug)]
pub struct DebianRoot {
    path: PathBuf,
    /// Deletes it when dropped.
    _folder: Option<TempDir>,
}

impl DebianRoot {
    /// A new one, unpacked from the archive that `./test.sh` makes. Dropping it deletes it.
    #[must_use]
    pub fn new() -> Self {
        Self::unpack(&Self::archive())
    }

    /// Like [`Self::new`], from another archive.
    #[must_use]
    pub fn unpack(archive: &Path) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be created");
        let mut tar = Command::new("tar");
        tar.arg("--numeric-owner").arg("-xpf").arg(archive).arg("-C").arg(folder.path());
        assert!(tar.status().expect("tar can be run").success(), "the Debian root could not be unpacked");
        Self { path: folder.path().to_owned(), _folder: Some(folder) }
    }

    /// One that the caller has made, and deletes.
    #[must_use]
    pub fn at(path: PathBuf) -> Self {
        Self { path, _folder: None }
    }

    /// The archive of a fresh system.
    #[must_use]
    pub fn archive() -> PathBuf {
        tool("debian-root.tar")
    }

    /// Where a path of that system is on this one.
    #[must_use]
    pub fn path(&self, inside: &str) -> PathBuf {
        self.path.join(inside.trim_start_matches('/'))
    }

    /// The text of a file.
    #[must_use]
    #[track_caller]
    pub fn read(&self, inside: &str) -> String {
        std::fs::read_to_string(self.path(inside)).unwrap_or_else(|error| panic!("{inside}: {error}"))
    }

    /// A program in that system, as `user`, with an empty environment.
    #[must_use]
    pub fn command(&self, user: &str, program: &str) -> Command {
        let mut command = Command::new("chroot");
        if user != "root" {
            command.arg(format!("--userspec={user}:{user}")).arg("--groups=");
        }
        command.arg(&self.path).arg(program).stdin(Stdio::null()).env_clear();
        command.env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
        command
    }

    /// Runs a shell command in that system, and returns what it printed.
    #[track_caller]
    pub fn run(&self, user: &str, line: &str) -> String {
        let output = self.command(user, "sh").args(["-ec", line]).output().expect("chroot can be run");
        printed(line, &output)
    }

    /// Copies a file into that system's `/tmp`, and returns its path there.
    pub fn take(&self, file: &Path) -> String {
        let name = file.file_name().expect("a file has a name").to_string_lossy().into_owned();
        std::fs::copy(file, self.path("tmp").join(&name)).expect("the file can be copied");
        format!("/tmp/{name}")
    }
}

impl Default for DebianRoot {
    fn default() -> Self {
        Self::new()
    }
}

/// A program's output, including errors.
#[track_caller]
pub fn printed(line: &str, output: &Output) -> String {
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{line}: {}\n{text}", output.status);
    text
}
