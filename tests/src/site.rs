//! A deployment in its own folder: the real programs, isolated from any other data.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde_json::Value;
use tempfile::TempDir;

use crate::command::{ProgramOutput, command};
use crate::server::{Server, ServerSetup};

/// A folder with a database, for servers and for the command-line program.
#[derive(Debug)]
pub struct Site {
    folder: TempDir,
    /// A database other than the file in its folder.
    url: Option<String>,
    /// Whether the books are verified when a test ends.
    verifies: bool,
}

/// An account as `metering admin account create` printed it.
#[derive(Debug, Clone)]
pub struct IssuedAccount {
    /// Its id.
    pub org_id: String,
    /// Its key.
    pub api_key: String,
}

impl Site {
    /// An empty site.
    #[must_use]
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be created");
        Self { folder, url: None, verifies: false }
    }

    /// An empty site whose books must add up when it is dropped, as at the end of a test.
    #[must_use]
    pub fn verified() -> Self {
        let mut site = Self::new();
        site.verifies = true;
        site
    }

    /// A new site with an account that has these credits, and its running server. The books are verified as in
    /// [`Site::verified`].
    #[track_caller]
    #[must_use]
    pub fn serving(credits: &str) -> (Self, IssuedAccount, Server) {
        Self::serving_with(credits, |server| server)
    }

    /// The same with other settings of the server.
    #[track_caller]
    #[must_use]
    pub fn serving_with(credits: &str, set: impl FnOnce(ServerSetup) -> ServerSetup) -> (Self, IssuedAccount, Server) {
        let site = Self::verified();
        let account = site.account(credits);
        let server = set(site.server()).start();
        (site, account, server)
    }

    /// A site whose database is elsewhere, for example in PostgreSQL.
    #[must_use]
    pub fn on_database(url: impl Into<String>) -> Self {
        let mut site = Self::new();
        site.url = Some(url.into());
        site
    }

    /// The path of a file of the site.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The data folder for its servers and commands.
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
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).expect("the file can be written");
        path
    }

    /// A server setup on this site.
    #[must_use]
    pub fn server(&self) -> ServerSetup {
        self.server_at("127.0.0.1:0")
    }

    /// A server setup with an address to listen on.
    #[must_use]
    pub fn server_at(&self, address: &str) -> ServerSetup {
        let setup = ServerSetup::new(&self.data(), address);
        match &self.url {
            Some(url) => setup.set("METERING_DATABASE", url),
            None => setup,
        }
    }

    /// Runs `metering admin --data DATA ARGS`.
    #[must_use]
    pub fn admin(&self, args: &[&str]) -> ProgramOutput {
        let mut command = command("metering");
        command.arg("admin");
        match &self.url {
            // Not as an argument, because everyone on the machine can see those.
            Some(url) => command.env("METERING_DATABASE", url),
            None => command.arg("--data").arg(self.data()),
        };
        command.args(args);
        ProgramOutput::of(command.output().expect("the program can be run"))
    }

    /// Runs `metering admin --server URL ARGS` with an operator's token.
    #[must_use]
    pub fn admin_of_server(address: SocketAddr, token: &str, args: &[&str]) -> ProgramOutput {
        let mut command = command("metering");
        command.args(["admin", "--server", &format!("http://{address}")]).args(args);
        command.env("METERING_CLIENT_OPERATOR_TOKEN", token);
        ProgramOutput::of(command.output().expect("the program can be run"))
    }

    /// Like [`Site::admin`] with `--json`: the document that a successful command prints.
    #[track_caller]
    #[must_use]
    pub fn admin_json(&self, args: &[&str]) -> Value {
        let output = self.admin(&[args, &["--json"]].concat());
        assert_eq!(output.code, Some(0), "{args:?}: {output:?}");
        serde_json::from_str(&output.stdout).expect("--json prints JSON")
    }

    /// Creates an account with these credits and without caps.
    #[track_caller]
    #[must_use]
    pub fn account(&self, credits: &str) -> IssuedAccount {
        self.account_with_caps(credits, 0, 0)
    }

    /// Creates an account with these credits and caps per minute and per day; 0 means no cap.
    #[track_caller]
    #[must_use]
    pub fn account_with_caps(&self, credits: &str, rpm: u32, rpd: u32) -> IssuedAccount {
        let (rpm, rpd) = (rpm.to_string(), rpd.to_string());
        let create = ["account", "create", "--agent-name", "e2e", "--credits", credits, "--rpm", &rpm, "--rpd", &rpd];
        let account = self.admin_json(&create);
        let text = |name: &str| account[name].as_str().expect("an account is printed with id and key").to_owned();
        IssuedAccount { org_id: text("org_id"), api_key: text("api_key") }
    }

    /// Asserts that the books add up exactly.
    #[track_caller]
    pub fn verify(&self) {
        let verified = self.admin_json(&["verify"]);
        assert_eq!(verified["discrepancies"], Value::Array(Vec::new()), "{verified}");
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        if self.verifies && !std::thread::panicking() {
            self.verify();
        }
    }
}

impl Default for Site {
    fn default() -> Self {
        Self::new()
    }
}
