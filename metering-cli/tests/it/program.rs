//! The program in a directory of its own: how it is run, and what a run prints.
//!
//! Commands are written as in a shell: words are separated by spaces, single quotes keep spaces, and `$name` stands for
//! what the test called so with [`Program::call`].

use std::cell::RefCell;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde::de::DeserializeOwned;
use serde_json::Value;
use tempfile::TempDir;

/// Publicly known keys of development chains, and their addresses.
pub(crate) const WALLET_KEY: &str = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80";
pub(crate) const WALLET: &str = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";
pub(crate) const OTHER_KEY: &str = "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d";
pub(crate) const OTHER: &str = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";

/// The program with a temporary directory, which is its working directory and the client's home.
pub(crate) struct Program {
    directory: TempDir,
    /// What every command starts with.
    prefix: &'static str,
    environment: Vec<(&'static str, String)>,
    names: RefCell<Vec<(&'static str, String)>>,
}

/// The result of a run.
#[derive(Debug)]
pub(crate) struct RunOutput {
    /// -1 if a signal ended it.
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Program {
    /// `metering`.
    pub(crate) fn new() -> Self {
        Self::within(tempfile::tempdir().unwrap(), "")
    }

    /// `metering admin`.
    pub(crate) fn admin() -> Self {
        Self::within(tempfile::tempdir().unwrap(), "admin ")
    }

    /// `metering admin`, in memory if there is such a folder: thousands of commits would wait for a disk.
    pub(crate) fn admin_in_memory() -> Self {
        let memory = Path::new("/dev/shm");
        let directory = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        Self::within(directory.unwrap(), "admin ")
    }

    fn within(directory: TempDir, prefix: &'static str) -> Self {
        Self { directory, prefix, environment: Vec::new(), names: RefCell::default() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// How many files there are, whatever their names.
    pub(crate) fn files(&self) -> usize {
        std::fs::read_dir(self.directory.path()).unwrap().count()
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    #[track_caller]
    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// Sets a variable for all runs.
    pub(crate) fn set(&mut self, variable: &'static str, value: impl Into<String>) {
        self.environment.push((variable, value.into()));
    }

    /// Lets `$name` stand for a value in commands.
    pub(crate) fn call(&self, name: &'static str, value: impl Into<String>) {
        let mut names = self.names.borrow_mut();
        names.retain(|(other, _)| *other != name);
        names.push((name, value.into()));
        // A name may begin with another one.
        names.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
    }

    /// A text with the values of the names in it.
    pub(crate) fn text(&self, text: &str) -> String {
        let names = self.names.borrow();
        names.iter().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("${name}"), value))
    }

    /// The program, without settings from the test's own environment.
    pub(crate) fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_metering"));
        self.prepare(&mut command);
        command.args(words(&format!("{}{line}", self.prefix)).iter().map(|word| self.text(word)));
        command
    }

    /// Gives a command the directory and the environment of the program.
    pub(crate) fn prepare(&self, command: &mut Command) {
        command.current_dir(self.directory.path()).stdin(Stdio::null());
        let own = std::env::vars_os().map(|(name, _)| name);
        for name in own.filter(|name| name.to_string_lossy().starts_with("METERING_")) {
            command.env_remove(name);
        }
        for name in ["COLUMNS", "NO_COLOR", "LC_ALL", "LC_CTYPE", "TERM"] {
            command.env_remove(name);
        }
        command.env("LANG", "C.UTF-8").env("METERING_CLIENT_HOME", self.directory.path());
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
    }

    pub(crate) fn run(&self, line: &str) -> RunOutput {
        RunOutput::of(&mut self.command(line))
    }

    /// Runs it with variables of this run only.
    pub(crate) fn run_with(&self, variables: &[(&str, &str)], line: &str) -> RunOutput {
        RunOutput::of(self.command(line).envs(variables.iter().copied()))
    }

    /// Runs it without a variable.
    pub(crate) fn run_without(&self, variable: &str, line: &str) -> RunOutput {
        RunOutput::of(self.command(line).env_remove(variable))
    }

    /// Runs it with `input` on standard input.
    pub(crate) fn reading(&self, line: &str, input: &str) -> RunOutput {
        let mut child = self.start(line);
        // A program that does not read it may have ended.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        ended(child)
    }

    /// Starts it with pipes for input, output and errors.
    pub(crate) fn start(&self, line: &str) -> Child {
        let mut command = self.command(line);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Runs it without reading its output, as with `| true`.
    pub(crate) fn unread(&self, line: &str) -> RunOutput {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        RunOutput::of(self.command(line).stdout(writer))
    }

    /// Runs it with an output that cannot be written.
    pub(crate) fn on_full_disk(&self, line: &str) -> RunOutput {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        RunOutput::of(self.command(line).stdout(full))
    }

    /// What a run prints with `--json`, if it succeeds silently.
    #[track_caller]
    pub(crate) fn json<T: DeserializeOwned>(&self, line: &str) -> T {
        let ran = self.run(&format!("{line} --json"));
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{line}: {ran:?}");
        ran.json()
    }

    /// Each command fails with this code, and its message contains this text.
    #[track_caller]
    pub(crate) fn refuses(&self, cases: &[(&str, i32, &str)]) {
        for (line, code, expected) in cases {
            let (ran, expected) = (self.run(line), self.text(expected));
            assert_eq!(ran.code, *code, "{line}: {ran:?}");
            assert!(ran.stderr.contains("error: ") && ran.stderr.contains(&expected), "{line}, {expected}: {ran:?}");
            // Wrong arguments (2) are reported before any output; any other failure is one line.
            assert!(*code != 2 || ran.stdout.is_empty(), "{line}: {ran:?}");
            let lines = ran.stderr.lines().count();
            assert!(*code == 2 || self.prefix.is_empty() || lines == 1, "{line}: {ran:?}");
        }
    }

    /// Each command succeeds silently, and its output contains these texts.
    #[track_caller]
    pub(crate) fn prints(&self, cases: &[(&str, &[&str])]) {
        for (line, expected) in cases {
            let ran = self.run(line);
            assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{line}: {ran:?}");
            for expected in expected.iter().map(|expected| self.text(expected)) {
                assert!(ran.stdout.contains(&expected), "{line}, {expected}: {ran:?}");
            }
        }
    }

    /// Each command succeeds silently, and prints a table with these rows, among others; spaces are one.
    #[track_caller]
    pub(crate) fn tabulates(&self, cases: &[(&str, &[&str])]) {
        for (line, expected) in cases {
            let shown = self.run(line).success();
            let rows: Vec<String> = shown.lines().map(one_space).collect();
            for expected in expected.iter().map(|expected| self.text(expected)) {
                assert!(rows.contains(&expected), "{line}, {expected}:\n{shown}");
            }
        }
    }

    /// The JSON that a command prints has these values (JSON text) at these places (RFC 6901).
    #[track_caller]
    pub(crate) fn documents(&self, cases: &[(&str, &[(&str, &str)])]) {
        for (line, expected) in cases {
            let document: Value = self.json(line);
            for (place, expected) in *expected {
                let found = document.pointer(place).map_or(String::new(), Value::to_string);
                assert_eq!(found, self.text(expected), "{line}, {place}: {document}");
            }
        }
    }
}

impl From<Output> for RunOutput {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        let code = output.status.code().unwrap_or(-1);
        let ran = Self { code, stdout: text(output.stdout), stderr: text(output.stderr) };
        for secret in [&WALLET_KEY[2..], &OTHER_KEY[2..], "sqn_"] {
            assert!(!ran.stdout.contains(secret) && !ran.stderr.contains(secret), "{ran:?}");
        }
        ran
    }
}

impl RunOutput {
    /// Runs a command, whose standard output may be set.
    pub(crate) fn of(command: &mut Command) -> Self {
        // `output` would replace a pipe that is already set.
        command.stderr(Stdio::piped()).output().unwrap().into()
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

    /// Asserts that the run succeeded silently, and returns what it printed. On a busy machine a run may take so long
    /// that it prints its progress.
    #[track_caller]
    pub(crate) fn success(self) -> String {
        let is_progress = |line: &&str| line.ends_with(" so far") || line.contains("%)");
        let messages: Vec<_> = self.stderr.lines().filter(|line| !is_progress(line)).collect();
        assert_eq!((self.code, messages), (0, Vec::new()), "{self:?}");
        self.stdout
    }

    /// Asserts that the run failed with one line at the end of stderr, and returns it.
    #[track_caller]
    pub(crate) fn failure(self, code: i32) -> String {
        assert_eq!(self.code, code, "{self:?}");
        let line = self.stderr.strip_suffix('\n').expect("stderr ends with a line break").lines().last().unwrap();
        line.strip_prefix("error: ").expect("errors start with `error: `").to_owned()
    }

    /// Its output, which is one line of JSON.
    #[track_caller]
    pub(crate) fn json<T: DeserializeOwned>(&self) -> T {
        assert_eq!(self.stdout.matches('\n').count(), 1, "one line: {self:?}");
        serde_json::from_str(&self.stdout).unwrap()
    }

    /// Whether this is printed anywhere.
    pub(crate) fn shows(&self, text: &str) -> bool {
        self.stdout.contains(text) || self.stderr.contains(text)
    }
}

/// A row of a table with one space between its cells.
pub(crate) fn one_space(row: &str) -> String {
    row.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Sends a signal to a run of the program.
pub(crate) fn signal(child: &Child, name: &str) {
    let kill = format!("kill -{name} {}", child.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
}

/// Waits until a run ends by itself or by a signal.
pub(crate) fn ended(child: Child) -> RunOutput {
    child.wait_with_output().unwrap().into()
}

/// Kills a run immediately, and waits until it is gone.
pub(crate) fn kill(mut child: Child) -> RunOutput {
    child.kill().unwrap();
    ended(child)
}

/// The mode bits of a file.
pub(crate) fn mode(path: &Path) -> u32 {
    std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(path).unwrap().permissions()) & 0o777
}

/// The words of a command.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted) = (Vec::new(), None::<String>, false);
    for character in line.chars() {
        match character {
            '\'' => {
                quoted = !quoted;
                let _ = word.get_or_insert_default();
            }
            ' ' if !quoted => words.extend(word.take()),
            _ => word.get_or_insert_default().push(character),
        }
    }
    words.extend(word);
    words
}
