//! A directory with its own profile, and ways to run the program there.

use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use metering_core::{ApiKey, SystemRandomness};
use tempfile::TempDir;

use crate::service::Service;

/// A directory used by this test only.
pub(crate) struct Fixture {
    directory: TempDir,
    key: ApiKey,
}

/// The result of a run.
#[derive(Debug)]
pub(crate) struct RunOutput {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap(), key: ApiKey::generate(&SystemRandomness) }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn content(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// The file with the default profile's cursor.
    pub(crate) fn cursor(&self) -> PathBuf {
        self.path("home/profiles/default/cursor.json")
    }

    /// The program, with the client's settings and none from the test's own environment.
    pub(crate) fn command(&self, service: &Service, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_metering"));
        self.prepare(&mut command, service);
        command.args(args);
        command
    }

    /// Gives a command the client's settings.
    pub(crate) fn prepare(&self, command: &mut Command, service: &Service) {
        command.current_dir(self.directory.path()).stdin(Stdio::null());
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("METERING_") {
                command.env_remove(name);
            }
        }
        command.env("METERING_CLIENT_HOME", self.path("home"));
        command.env("METERING_CLIENT_URL", service.url());
        command.env("METERING_CLIENT_API_KEY", self.key.expose());
    }

    pub(crate) fn run(&self, service: &Service, args: &[&str]) -> RunOutput {
        RunOutput::of(self.command(service, args).output().unwrap())
    }

    /// `metering catch-up ARGS`.
    pub(crate) fn catch_up(&self, service: &Service, args: &[&str]) -> RunOutput {
        self.run(service, &[&["catch-up"], args].concat())
    }

    /// Starts the program.
    pub(crate) fn start(&self, service: &Service, args: &[&str]) -> Started {
        let mut command = self.command(service, args);
        Started(Some(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()))
    }
}

impl RunOutput {
    pub(crate) fn of(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        // A process ended by a signal has no exit code.
        let code = output.status.code().unwrap_or(-1);
        Self { code, stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    /// Asserts the exit code.
    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:?}");
        self
    }

    /// Asserts that stderr contains this text.
    #[track_caller]
    pub(crate) fn says(self, expected: &str) -> Self {
        assert!(self.stderr.contains(expected), "{expected}: {self:?}");
        self
    }
}

/// The running program. Dropping it kills it.
pub(crate) struct Started(Option<Child>);

impl Started {
    fn child(&mut self) -> &mut Child {
        self.0.as_mut().unwrap()
    }

    /// Sends a signal, by name.
    pub(crate) fn signal(&mut self, name: &str) {
        let kill = format!("kill -{name} {}", self.child().id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    }

    /// Kills it immediately (SIGKILL), and waits until it is gone.
    pub(crate) fn kill(mut self) -> RunOutput {
        self.child().kill().unwrap();
        self.wait()
    }

    /// Waits until it ends.
    pub(crate) fn wait(mut self) -> RunOutput {
        let start = Instant::now();
        while self.child().try_wait().unwrap().is_none() {
            assert!(start.elapsed() < Duration::from_secs(60), "the program does not end");
            std::thread::sleep(Duration::from_millis(2));
        }
        RunOutput::of(self.0.take().unwrap().wait_with_output().unwrap())
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
