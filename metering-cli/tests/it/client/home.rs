//! A temporary home for the client, and ways to run the program with it.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use metering_core::{ApiKey, SystemRandomness};
use serde_json::Value;
use tempfile::TempDir;

use crate::stand_in::StandIn;

/// The directory of the profiles, without settings from the test's own environment.
pub(crate) struct Home {
    directory: TempDir,
}

/// The result of a run.
#[derive(Debug)]
pub(crate) struct RunOutput {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Home {
    /// A home without profiles.
    pub(crate) fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    /// A home with a profile `default` for the service.
    pub(crate) fn of(service: &StandIn) -> (Self, ApiKey) {
        let home = Self::new();
        let key = home.add_profile("default", service);
        (home, key)
    }

    /// Adds a profile for the service, through the program.
    pub(crate) fn add_profile(&self, name: &str, service: &StandIn) -> ApiKey {
        let key = ApiKey::generate(&SystemRandomness);
        let args = ["config", "set", "api-key", "--profile", name, "--url", &service.url()];
        let ran = self.reading(&args, &format!("{}\n", key.expose()));
        assert_eq!(ran.code, 0, "{ran:?}");
        key
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A profile's file.
    pub(crate) fn profile(&self, name: &str, file: &str) -> PathBuf {
        self.path("profiles").join(name).join(file)
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_metering"));
        command.current_dir(self.directory.path()).args(args).stdin(Stdio::null());
        for name in ["PROFILE", "URL", "API_KEY", "ALLOW_HTTP"] {
            command.env_remove(format!("METERING_CLIENT_{name}"));
        }
        for name in ["COLUMNS", "NO_COLOR", "LC_ALL", "LC_CTYPE", "TERM"] {
            command.env_remove(name);
        }
        command.env("LANG", "C.UTF-8").env("METERING_CLIENT_HOME", self.directory.path());
        command
    }

    /// Runs `metering ARGS`.
    pub(crate) fn metering(&self, args: &[&str]) -> RunOutput {
        self.command(args).output().unwrap().into()
    }

    /// Runs it with `input` on standard input.
    pub(crate) fn reading(&self, args: &[&str], input: &str) -> RunOutput {
        let mut child = self.start(args);
        // A program that does not read it may have ended.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        child.wait_with_output().unwrap().into()
    }

    /// Starts it with pipes for input, output and errors.
    pub(crate) fn start(&self, args: &[&str]) -> Child {
        let mut command = self.command(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Runs it without reading its output, as with `| true`.
    pub(crate) fn unread(&self, args: &[&str]) -> RunOutput {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        // `output` would replace a pipe that is already set.
        self.command(args).stdout(writer).stderr(Stdio::piped()).output().unwrap().into()
    }
}

/// Sends a signal to a run of the program.
pub(crate) fn signal(child: &Child, name: &str) {
    let kill = format!("kill -{name} {}", child.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
}

impl From<Output> for RunOutput {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().expect("the program ends by itself"),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl RunOutput {
    /// Asserts that the run succeeded silently, and returns what it printed.
    #[track_caller]
    pub(crate) fn success(self) -> String {
        assert_eq!((self.code, self.stderr.as_str()), (0, ""), "{self:?}");
        self.stdout
    }

    /// Asserts that the run failed with one line at the end of stderr, and returns it.
    #[track_caller]
    pub(crate) fn failure(self, code: i32) -> String {
        assert_eq!(self.code, code, "{self:?}");
        let line = self.stderr.strip_suffix('\n').expect("stderr ends with a line break").lines().last().unwrap();
        line.strip_prefix("error: ").expect("errors start with `error: `").to_owned()
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.code, 0, "{self:?}");
        assert_eq!(self.stdout.matches('\n').count(), 1, "one line: {self:?}");
        serde_json::from_str(&self.stdout).unwrap()
    }
}

/// The mode bits of a file.
#[cfg(unix)]
pub(crate) fn mode(path: &std::path::Path) -> u32 {
    std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(path).unwrap().permissions()) & 0o777
}
