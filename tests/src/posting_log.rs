//! The log of every posting: begun in a store, signed and served by servers, and audited with the command line.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::command::{ProgramOutput, command};
use crate::server::ServerSetup;
use crate::site::Site;

/// The URL that the log's origin follows from. Servers listen elsewhere.
const PUBLIC_URL: &str = "http://metering.test";

/// A log and its files: the keys of log and receipts, and what auditors keep.
#[derive(Debug, Clone)]
pub struct PostingLog {
    folder: PathBuf,
    verifier_key: String,
}

impl PostingLog {
    /// Begins the log of a site.
    #[track_caller]
    #[must_use]
    pub fn begin(site: &Site) -> Self {
        Self::begin_by(&site.path("log"), |args| site.admin(args))
    }

    /// Begins a log with `metering admin ARGS`, and keeps its files in this folder, which it makes.
    #[track_caller]
    pub(crate) fn begin_by(folder: &Path, admin: impl Fn(&[&str]) -> ProgramOutput) -> Self {
        std::fs::create_dir(folder).expect("the folder can be made");
        let file = |name: &str| folder.join(name).display().to_string();
        let made = admin(&["receipt-key", "create", &file("receipts.pem")]);
        assert_eq!(made.code, Some(0), "{made:?}");
        let begun = admin(&["log", "init", &file("log.pem"), "--public-url", PUBLIC_URL, "--json"]);
        assert_eq!(begun.code, Some(0), "{begun:?}");
        let begun: Value = serde_json::from_str(&begun.stdout).expect("--json prints JSON");
        let verifier_key = begun["verifier_key"].as_str().expect("the key is printed").to_owned();
        Self { folder: folder.to_owned(), verifier_key }
    }

    /// A server that signs receipts, but not the log.
    #[must_use]
    pub fn only_receipts(&self, setup: ServerSetup) -> ServerSetup {
        let file = self.folder.join("receipts.pem").display().to_string();
        setup.set("METERING_PUBLIC_URL", PUBLIC_URL).set("METERING_RECEIPTS__KEY_FILE", &file)
    }

    /// A server that signs and serves the log, and signs receipts.
    #[must_use]
    pub fn serve(&self, setup: ServerSetup) -> ServerSetup {
        let file = self.folder.join("log.pem").display().to_string();
        self.only_receipts(setup).set("METERING_LOG__KEY_FILE", &file)
    }

    /// The key that auditors pin.
    #[must_use]
    pub fn verifier_key(&self) -> &str {
        &self.verifier_key
    }

    /// Whether an audit has succeeded before.
    #[must_use]
    pub fn was_audited(&self) -> bool {
        self.kept().exists()
    }

    /// Runs `metering log audit --json` against a server; each audit continues from the last one that succeeded.
    #[must_use]
    pub fn audit(&self, server: SocketAddr) -> ProgramOutput {
        let mut audit = self.client();
        audit.args(["log", "audit", &format!("http://{server}/log/1"), "--log-key", &self.verifier_key, "--json"]);
        ProgramOutput::of(audit.arg("--keep").arg(self.kept()).output().expect("the program can be run"))
    }

    /// The command-line program, without settings and files of its user.
    #[must_use]
    pub fn client(&self) -> Command {
        let mut command = command("metering");
        command.env("METERING_CLIENT_HOME", &self.folder);
        command
    }

    fn kept(&self) -> PathBuf {
        self.folder.join("checkpoint")
    }
}
