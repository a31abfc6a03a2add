//! A user with the program, a wallet and a directory.

use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use metering_core::chains::Address;
use serde_json::Value;
use tempfile::TempDir;

use crate::stand_in::StandIn;

/// Publicly known keys of a development chain.
pub(crate) const WALLET_KEY: &str = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80";
pub(crate) const WALLET: &str = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";
pub(crate) const OTHER_KEY: &str = "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d";
pub(crate) const OTHER: &str = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";

/// Buys the plan with tokens.
pub(crate) const SIGNUP: [&str; 6] = ["signup-pay", "--plan", "starter", "--agent-name", "agent", "--yes"];

pub(crate) struct Fixture {
    folder: TempDir,
    pub(crate) stand_in: StandIn,
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
        let fixture = Self { folder: tempfile::tempdir().unwrap(), stand_in: StandIn::start() };
        fixture.stand_in.state().service.sender = wallet();
        fixture
    }

    /// A fixture whose profile has the key of an account that the wallet did not pay for.
    pub(crate) fn with_account() -> Self {
        let fixture = Self::new();
        let key = fixture.stand_in.state().service.open_account(None);
        fixture.write_profile(&key);
        fixture
    }

    pub(crate) fn write_profile(&self, key: &str) {
        std::fs::create_dir_all(self.profile("")).unwrap();
        let text = format!("url = \"{}\"\napi_key = \"{key}\"\n", self.stand_in.url());
        std::fs::write(self.profile("profile.toml"), text).unwrap();
    }

    /// A file of the profile.
    pub(crate) fn profile(&self, name: &str) -> PathBuf {
        self.folder.path().join("profiles/default").join(name)
    }

    pub(crate) fn journal(&self) -> PathBuf {
        self.profile("payment.json")
    }

    /// The program with the wallet and the chain set, and no settings from the test's own environment.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.command_without_wallet(args);
        command.env("METERING_CLIENT_WALLET_KEY", WALLET_KEY);
        command
    }

    pub(crate) fn command_without_wallet(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_metering"));
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("METERING_")) {
            command.env_remove(name);
        }
        command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.env("METERING_CLIENT_HOME", self.folder.path()).env("METERING_CLIENT_URL", self.stand_in.url());
        command.env("METERING_CLIENT_RPC_URL", self.stand_in.rpc_url());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> RunOutput {
        RunOutput::of(self.command(args).output().unwrap())
    }

    pub(crate) fn run_without_wallet(&self, args: &[&str]) -> RunOutput {
        RunOutput::of(self.command_without_wallet(args).output().unwrap())
    }

    /// Starts the program, waits until one of its requests hangs, and kills it.
    #[track_caller]
    pub(crate) fn run_and_kill(&self, args: &[&str]) {
        let mut child = self.command(args).spawn().unwrap();
        self.stand_in.wait_until_it_hangs();
        kill(&mut child);
    }

    /// The profile's key.
    pub(crate) fn key(&self) -> Option<String> {
        let text = std::fs::read_to_string(self.profile("profile.toml")).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("api_key = "))?;
        Some(line.trim_matches('"').to_owned())
    }

    /// The reasons of the payments that were set aside.
    pub(crate) fn set_aside(&self) -> Vec<String> {
        let Ok(text) = std::fs::read_to_string(self.profile("payments-refused.json")) else { return Vec::new() };
        let list: Value = serde_json::from_str(&text).unwrap();
        list.as_array().unwrap().iter().map(|record| record["why"].as_str().unwrap().to_owned()).collect()
    }

    /// How many transactions were sent.
    pub(crate) fn sent(&self) -> usize {
        self.stand_in.state().node.sent.len()
    }

    /// Asserts that the profile has a working key of the only account, that the account was credited once for the only
    /// payment, and that nothing is pending.
    #[track_caller]
    pub(crate) fn is_settled(&self) {
        let state = self.stand_in.state();
        let [account] = state.service.accounts.as_slice() else { panic!("{:?}", state.service.accounts) };
        assert_eq!(self.key().as_ref(), Some(&account.key));
        assert_eq!(account.credits, 12, "a new account's and the plan's");
        assert_eq!((state.node.sent.len(), state.service.used.len()), (1, 1));
        assert!(!self.journal().exists());
    }
}

impl RunOutput {
    pub(crate) fn of(output: Output) -> Self {
        let ran = Self {
            code: output.status.code().expect("the program ends by itself"),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        };
        for secret in [&WALLET_KEY[2..], &OTHER_KEY[2..], "sqn_"] {
            assert!(!format!("{}{}", ran.stdout, ran.stderr).contains(secret), "{ran:?}");
        }
        ran
    }

    #[track_caller]
    pub(crate) fn success(self) -> Self {
        assert_eq!(self.code, 0, "{self:?}");
        assert!(!self.stdout.contains("sk_live_"), "{self:?}");
        self
    }

    /// Asserts that the run failed with this code, and returns the last line on stderr.
    #[track_caller]
    pub(crate) fn failure(self, code: i32) -> String {
        assert_eq!(self.code, code, "{self:?}");
        let line = self.stderr.lines().last().unwrap_or_default();
        line.strip_prefix("error: ").unwrap_or_else(|| panic!("{line}")).to_owned()
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.stdout.matches('\n').count(), 1, "one line: {self:?}");
        serde_json::from_str(&self.stdout).unwrap()
    }
}

pub(crate) fn wallet() -> Address {
    WALLET.parse().unwrap()
}

pub(crate) fn kill(child: &mut Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}
