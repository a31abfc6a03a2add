//! A deployment on a folder of its own: the real programs, and nobody else's data.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::program::program;
use crate::server::ServerSetup;

/// A folder with a database, for servers and for the command-line program.
#[derive(Debug)]
pub struct Site {
    folder: TempDir,
    /// Another database than the file in its folder.
    url: Option<String>,
}

/// An account as `metering admin account create` printed it.
#[derive(Debug, Clone)]
pub struct IssuedAccount {
    /// Its id.
    pub org_id: String,
    /// Its key.
    pub api_key: String,
}

/// What a program that ended left.
#[derive(Debug)]
pub struct Ran {
    /// Its exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    /// What it printed.
    pub stdout: String,
    /// What it complained of.
    pub stderr: String,
}

impl Site {
    /// A site with nothing on it.
    ///
    /// # Panics
    /// When the machine has no room for a temporary folder.
    #[must_use]
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("the machine has room for a folder"), url: None }
    }

    /// A site whose database is elsewhere: a PostgreSQL, for example.
    ///
    /// # Panics
    /// As [`Site::new`].
    #[must_use]
    pub fn on_database(url: impl Into<String>) -> Self {
        Self { url: Some(url.into()), ..Self::new() }
    }

    /// A file of the site.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The data folder that its servers and commands are told.
    #[must_use]
    pub fn data(&self) -> PathBuf {
        self.path("data")
    }

    /// The database file.
    #[must_use]
    pub fn database(&self) -> PathBuf {
        self.data().join("metering.db")
    }

    /// Writes a file and returns its path.
    ///
    /// # Panics
    /// When it cannot be written.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).expect("the folder can be written to");
        path
    }

    /// A server to be started on this site.
    #[must_use]
    pub fn server(&self) -> ServerSetup {
        self.server_at("127.0.0.1:0")
    }

    /// A server to be started at an address.
    #[must_use]
    pub fn server_at(&self, address: &str) -> ServerSetup {
        let setup = ServerSetup::new(&self.data(), address);
        match &self.url {
            Some(url) => setup.set("METERING_DATABASE", url),
            None => setup,
        }
    }

    /// Runs `metering admin --data DATA ARGS`.
    ///
    /// # Panics
    /// When the program cannot be run.
    #[must_use]
    pub fn admin(&self, args: &[&str]) -> Ran {
        let mut command = command("metering");
        command.arg("admin");
        match &self.url {
            // Not as an argument, which everybody on the machine can see.
            Some(url) => command.env("METERING_DATABASE", url),
            None => command.arg("--data").arg(self.data()),
        };
        command.args(args);
        Ran::of(command.output().expect("the program can be run"))
    }

    /// As [`Site::admin`] with `--json`: the document that a command that succeeds prints.
    ///
    /// # Panics
    /// When it fails.
    #[track_caller]
    #[must_use]
    pub fn admin_json(&self, args: &[&str]) -> Value {
        let ran = self.admin(&[args, &["--json"]].concat());
        assert_eq!(ran.code, Some(0), "{args:?}: {ran:?}");
        serde_json::from_str(&ran.stdout).expect("--json prints JSON")
    }

    /// Makes an account with these credits and without caps.
    ///
    /// # Panics
    /// When that fails.
    #[track_caller]
    #[must_use]
    pub fn account(&self, credits: &str) -> IssuedAccount {
        self.account_with_caps(credits, 0, 0)
    }

    /// Makes an account with these credits and caps per minute and per day; 0 is no cap.
    ///
    /// # Panics
    /// When that fails.
    #[track_caller]
    #[must_use]
    pub fn account_with_caps(&self, credits: &str, rpm: u32, rpd: u32) -> IssuedAccount {
        let (rpm, rpd) = (rpm.to_string(), rpd.to_string());
        let create = ["account", "create", "--agent-name", "e2e", "--credits", credits, "--rpm", &rpm, "--rpd", &rpd];
        let account = self.admin_json(&create);
        let text = |name: &str| account[name].as_str().expect("an account is printed with id and key").to_owned();
        IssuedAccount { org_id: text("org_id"), api_key: text("api_key") }
    }

    /// Holds the books to add up exactly.
    ///
    /// # Panics
    /// When they do not.
    #[track_caller]
    pub fn verify(&self) {
        let verified = self.admin_json(&["verify"]);
        assert_eq!(verified["discrepancies"], Value::Array(Vec::new()), "{verified}");
    }
}

impl Default for Site {
    fn default() -> Self {
        Self::new()
    }
}

impl Ran {
    pub(crate) fn of(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// A program of the workspace, with no setting of the caller's own environment.
pub(crate) fn command(name: &str) -> Command {
    let mut command = Command::new(program(name));
    let settings = std::env::vars_os().map(|(name, _)| name);
    for setting in settings.filter(|name| Path::new(name).to_string_lossy().starts_with("METERING_")) {
        command.env_remove(setting);
    }
    command.stdin(Stdio::null());
    command
}
