//! A user's terminal: the program with its own home folder, and none of the settings of the user who runs the tests.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use metering_tests::program::program;
use serde_json::Value;

/// How long the program may take to print something.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A terminal for running commands.
#[derive(Debug, Clone)]
pub(crate) struct Terminal {
    home: PathBuf,
    variables: Vec<(&'static str, String)>,
}

/// The result of a command.
#[derive(Debug)]
pub(crate) struct CommandOutput {
    /// Its exit code; `None` if a signal ended it.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// A command that keeps running during the test. Dropping it kills it.
#[derive(Debug)]
pub(crate) struct Running {
    child: Option<Child>,
    stdin: Option<ChildStdin>,
    stdout: Receiver<String>,
    stderr: Receiver<String>,
}

impl Terminal {
    pub(crate) fn new(home: PathBuf) -> Self {
        Self { home, variables: Vec::new() }
    }

    /// Adds an environment variable.
    pub(crate) fn set(mut self, variable: &'static str, value: &str) -> Self {
        self.variables.push((variable, value.to_owned()));
        self
    }

    /// Runs a command to its end.
    #[track_caller]
    pub(crate) fn run(&self, args: &[&str]) -> CommandOutput {
        CommandOutput::of(self.command(args).stdin(Stdio::null()).output().unwrap())
    }

    /// Like [`Terminal::run`], for a command that must succeed.
    #[track_caller]
    pub(crate) fn run_successfully(&self, args: &[&str]) -> CommandOutput {
        let output = self.run(args);
        assert_eq!(output.code, Some(0), "{args:?}: {output:?}");
        output
    }

    /// The document that a command prints with `--json`.
    #[track_caller]
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let output = self.run_successfully(&[args, &["--json"]].concat());
        assert_eq!(output.stdout.lines().count(), 1, "expected one line: {output:?}");
        serde_json::from_str(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
    }

    /// Starts a command that keeps running.
    #[track_caller]
    pub(crate) fn spawn(&self, args: &[&str]) -> Running {
        let mut child = self.command(args).stdin(Stdio::piped()).spawn().unwrap();
        let stderr = lines(BufReader::new(child.stderr.take().unwrap()));
        let stdout: BufReader<ChildStdout> = BufReader::new(child.stdout.take().unwrap());
        Running { stdin: child.stdin.take(), child: Some(child), stdout: lines(stdout), stderr }
    }

    /// The path of a profile's file.
    pub(crate) fn profile(&self, name: &str) -> PathBuf {
        self.home.join("profiles").join(name).join("profile.toml")
    }

    /// The API key in a profile.
    #[track_caller]
    pub(crate) fn key(&self, profile: &str) -> String {
        let text = std::fs::read_to_string(self.profile(profile)).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("api_key = ")).expect("the profile has a key");
        line.trim_matches('"').to_owned()
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(program("metering"));
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("METERING_")) {
            command.env_remove(name);
        }
        command.env("METERING_CLIENT_HOME", &self.home).envs(self.variables.iter().cloned());
        command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

impl CommandOutput {
    fn of(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Running {
    /// The next line on standard output.
    #[track_caller]
    pub(crate) fn line(&self) -> String {
        self.stdout.recv_timeout(TIMEOUT).expect("the program is still running")
    }

    /// Reads stderr up to a line that contains `text`, and returns that line.
    #[track_caller]
    pub(crate) fn wait_for_stderr(&self, text: &str) -> String {
        let mut seen = Vec::new();
        loop {
            match self.stderr.recv_timeout(TIMEOUT) {
                Ok(line) if line.contains(text) => return line,
                Ok(line) => seen.push(line),
                Err(_) => panic!("it did not print {text:?}, but {seen:?}"),
            }
        }
    }

    /// Types a line.
    #[track_caller]
    pub(crate) fn type_line(&mut self, line: &str) {
        writeln!(self.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    /// Presses Ctrl-C.
    #[track_caller]
    pub(crate) fn interrupt(&self) {
        // Uses the shell's built-in `kill`, because the standard library can only send SIGKILL.
        let process = self.child.as_ref().unwrap().id();
        let sent = Command::new("sh").args(["-c", &format!("kill -INT {process}")]).status().unwrap();
        assert!(sent.success());
    }

    /// Closes its input, waits for its end, and returns the output that was not read before.
    #[track_caller]
    pub(crate) fn finish(mut self) -> CommandOutput {
        drop(self.stdin.take());
        let rest = |lines: &Receiver<String>| lines.iter().map(|line| line + "\n").collect();
        let (stdout, stderr) = (rest(&self.stdout), rest(&self.stderr));
        let status = self.child.as_mut().unwrap().wait().unwrap();
        self.child = None;
        CommandOutput { code: status.code(), stdout, stderr }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn lines(from: impl BufRead + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || from.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
    receiver
}
