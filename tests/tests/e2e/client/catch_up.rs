//! `metering catch-up` and the real server. Across runs and kills, a file contains every block once, and every block is
//! paid for.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use metering_tests::program::program;
use metering_tests::server::Server;
use metering_tests::site::{IssuedAccount, Site};
use serde_json::Value;

use crate::support::wire::{BASE, BASE_CALL, CREDIT, amount, usage_events};

const INTERRUPTED: i32 = 130;

/// Far enough back that no run reaches the latest block, so that each block of a run is one request.
const BLOCKS_BACK: u64 = 1_000;

/// A user who catches up.
struct Reader<'s> {
    site: &'s Site,
    account: IssuedAccount,
    /// The service's URL. It stays the same across restarts.
    url: String,
}

/// The result of a run.
#[derive(Debug)]
struct ProgramOutput {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl<'s> Reader<'s> {
    fn new(site: &'s Site, server: &Server, account: IssuedAccount) -> Self {
        Self { site, account, url: format!("http://{}", server.address()) }
    }

    fn file(&self) -> PathBuf {
        self.site.path("blocks.jsonl")
    }

    fn spawn(&self, args: &[&str]) -> Child {
        let mut command = Command::new(program("metering"));
        let settings = std::env::vars_os().map(|(name, _)| name);
        for setting in settings.filter(|name| name.to_string_lossy().starts_with("METERING_")) {
            command.env_remove(setting);
        }
        command
            .env("METERING_CLIENT_HOME", self.site.path("client"))
            .env("METERING_CLIENT_URL", &self.url)
            .env("METERING_CLIENT_API_KEY", &self.account.api_key)
            .arg("catch-up")
            .args(args);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Runs it with the output file.
    fn run(&self, args: &[&str]) -> ProgramOutput {
        let file = self.file();
        ProgramOutput::of(self.spawn(&[&["--output", file.to_str().unwrap()], args].concat()))
    }

    /// The same, and asserts the exit code.
    #[track_caller]
    fn expect(&self, code: i32, args: &[&str]) -> ProgramOutput {
        let output = self.run(args);
        assert_eq!(output.code, Some(code), "{args:?}: {output:?}");
        output
    }
}

impl ProgramOutput {
    fn of(child: Child) -> Self {
        let output = child.wait_with_output().unwrap();
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// The numbers of the blocks in a file. They must be consecutive, and each line must equal the service's response.
#[track_caller]
fn blocks(file: &Path, server: &Server, account: &IssuedAccount) -> Vec<u64> {
    let text = fs::read_to_string(file).unwrap();
    assert!(text.is_empty() || text.ends_with('\n'));
    let number = |line: &str| serde_json::from_str::<Value>(line).unwrap()["block_number"].as_u64().unwrap();
    let numbers: Vec<u64> = text.lines().map(number).collect();
    assert!(numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{numbers:?}");
    let client = server.client_with(&account.api_key);
    let lines: Vec<&str> = text.lines().collect();
    for index in [0, lines.len() / 2, lines.len() - 1] {
        let served = client.get(&format!("{BASE}/{}", numbers[index])).expect(200);
        assert_eq!(lines[index].as_bytes(), &served.body[..]);
    }
    numbers
}

fn latest(server: &Server, account: &IssuedAccount) -> u64 {
    let response = server.client_with(&account.api_key).get(BASE).expect(200).json();
    response["block_number"].as_u64().unwrap()
}

#[test]
fn several_runs_write_and_charge_each_block_once() {
    let site = Site::verified();
    let server = site.server().set("METERING_SAMPLE__BLOCK_TIME", "100ms").start();
    let (account, other) = (site.account("1"), site.account("1"));
    let client = server.client_with(&account.api_key);
    let reader = Reader::new(&site, &server, account);
    let output = reader.expect(0, &[]);
    assert!(output.stderr.starts_with("Wrote block "), "{output:?}");
    assert_eq!((usage_events(&client), output.stdout.as_str()), (1, ""));
    let mut written = 1;
    let mut requests = 1;
    while written < 30 {
        std::thread::sleep(Duration::from_millis(350));
        let output = reader.expect(0, &["--json"]);
        let summary: Value = serde_json::from_str(&output.stdout).unwrap();
        written += summary["written"].as_u64().unwrap();
        assert_eq!(summary["remaining"], 0, "{output:?}");
        // The latest block is requested first, and not again in its turn.
        requests += summary["written"].as_u64().unwrap().max(1);
        assert_eq!(usage_events(&client), requests, "{output:?}");
        let left = amount(CREDIT - i64::try_from(requests).unwrap() * BASE_CALL);
        assert!(output.stdout.contains(&format!("\"credit_balance\":{left}}}")), "{left}: {output:?}");
    }
    let numbers = blocks(&reader.file(), &server, &other);
    assert_eq!(u64::try_from(numbers.len()).unwrap(), written);
    let usage = client.get("/credits/usage?limit=100").expect(200).json();
    let mut calls = usage["transactions"].as_array().unwrap().iter().filter(|entry| entry["type"] == "usage");
    assert!(calls.all(|entry| entry["client_source"] == "cli"), "{usage}");
}

#[test]
fn killed_or_interrupted_client_resumes() {
    let site = Site::verified();
    let (account, other) = (site.account("1"), site.account("1"));
    let server = site.server().start();
    let client = server.client_with(&account.api_key);
    let from = (latest(&server, &other) - BLOCKS_BACK).to_string();
    let reader = Reader::new(&site, &server, account);
    let file = reader.file();
    let mut lines = 0;
    for signal in ["KILL", "TERM", "KILL", "INT"] {
        let child = reader.spawn(&["--output", file.to_str().unwrap(), "--from", &from]);
        wait_for_lines(&file, lines + 5);
        let kill = format!("kill -{signal} {}", child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
        let output = ProgramOutput::of(child);
        let expected = if signal == "KILL" { None } else { Some(INTERRUPTED) };
        assert_eq!(output.code, expected, "{signal}: {output:?}");
        lines = fs::read_to_string(&file).unwrap().lines().count();
    }
    reader.expect(0, &["--max-blocks", "3"]);
    let numbers = blocks(&file, &server, &other);
    assert_eq!(numbers[0].to_string(), from);
    let (written, paid_for) = (u64::try_from(numbers.len()).unwrap(), usage_events(&client));
    // Each of the five runs requested the latest block. A killed run may have paid for one more block.
    assert!((written + 5..=written + 5 + 2).contains(&paid_for), "{paid_for} requests for {written} blocks");
}

fn wait_for_lines(file: &Path, count: usize) {
    let started = Instant::now();
    while fs::read_to_string(file).unwrap_or_default().lines().count() < count {
        assert!(started.elapsed() < Duration::from_secs(60), "no blocks were written");
        std::thread::sleep(Duration::from_millis(1));
    }
}
