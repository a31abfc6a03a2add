//! Another project's server, as its own process with its own folder.

use std::error::Error;
use std::ffi::OsStr;
use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::process::descendants;

/// How long it may take to listen; it should never need that long.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// After this time the shell has started it, unless it has already ended.
const SHELL_TIMEOUT: Duration = Duration::from_secs(1);

/// Ends the server when the process that started it ends, however it ends, and removes its folder. Ctrl-C reaches the
/// watcher too, and must not end it before it has done that.
const WATCHER: &str = r#"trap '' INT; folder=$1; shift; "$@" >"$folder/log" 2>&1 & server=$!
read -r end; kill -TERM "$server"; wait "$server"; rm -rf "$folder""#;

/// A running server. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Daemon {
    watcher: Child,
    folder: TempDir,
}

/// A new folder for a server. Its files are deleted with it.
pub(crate) fn folder(name: &str, parent: &Path) -> std::io::Result<TempDir> {
    tempfile::Builder::new().prefix(&format!("metering-{name}-")).tempdir_in(parent)
}

impl Daemon {
    /// Starts a program that stays in the foreground, and returns once it listens at each of `addresses`.
    ///
    /// # Errors
    /// If it does not; the message has its output.
    pub(crate) fn start<S: AsRef<OsStr>>(
        program: &Path,
        args: impl IntoIterator<Item = S>,
        folder: TempDir,
        addresses: &[SocketAddr],
    ) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let mut command = Command::new("sh");
        command.args(["-c", WATCHER, "sh"]).arg(folder.path()).arg(program).args(args).current_dir(folder.path());
        // Caddy and others keep files in their user's folder.
        command.env("HOME", folder.path()).env_remove("XDG_CONFIG_HOME").env_remove("XDG_DATA_HOME");
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let daemon = Self { watcher: command.spawn()?, folder };
        for address in addresses {
            daemon.wait_for(*address, program)?;
        }
        Ok(daemon)
    }

    fn wait_for(&self, address: SocketAddr, program: &Path) -> Result<(), Box<dyn Error + Send + Sync>> {
        let started = Instant::now();
        while TcpStream::connect(address).is_err() {
            // The shell takes a moment to start it.
            let ended = started.elapsed() > SHELL_TIMEOUT && self.processes().is_empty();
            if ended || started.elapsed() > START_TIMEOUT {
                return Err(format!("{} does not listen at {address}: {}", program.display(), self.log()).into());
            }
            thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    /// Its output.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// The ids of its processes.
    pub(crate) fn processes(&self) -> Vec<u32> {
        descendants(self.watcher.id())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        drop(self.watcher.stdin.take());
        let _ = self.watcher.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::free_address;

    #[test]
    fn a_program_that_fails_is_reported_with_its_output() {
        let folder = folder("test", &std::env::temp_dir()).unwrap();
        let path = folder.path().to_owned();
        let failed = Daemon::start(Path::new("sh"), ["-c", "echo no such luck"], folder, &[free_address()]);
        let error = failed.unwrap_err().to_string();
        assert!(error.contains("does not listen") && error.contains("no such luck"), "{error}");
        assert!(!path.exists());
    }

    #[test]
    fn dropping_it_ends_the_program_and_removes_its_folder() {
        let folder = folder("test", &std::env::temp_dir()).unwrap();
        let path = folder.path().to_owned();
        let daemon = Daemon::start(Path::new("sleep"), ["60"], folder, &[]).unwrap();
        while daemon.processes().is_empty() {
            thread::sleep(Duration::from_millis(5));
        }
        let ids = daemon.processes();
        drop(daemon);
        assert!(ids.iter().all(|id| !Path::new(&format!("/proc/{id}")).exists()) && !path.exists());
    }
}
