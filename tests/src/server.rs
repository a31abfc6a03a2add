//! The real server, as a process on a port that the operating system chose.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::client::Client;
use crate::command::{ProgramOutput, command_at};
use crate::program::program;

/// How long a server may take to report its address, or to end; it should never need that long.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A server that has not been started yet.
#[derive(Debug)]
pub struct ServerSetup {
    command: Command,
}

/// A running server. Dropping it kills it, and fails the test if the server ever panicked.
#[derive(Debug)]
pub struct Server {
    child: Child,
    address: SocketAddr,
    log: Log,
    readers: Vec<JoinHandle<()>>,
}

/// The server's output so far.
#[derive(Debug, Clone, Default)]
struct Log(Arc<Mutex<String>>);

impl ServerSetup {
    pub(crate) fn new(data: &Path, address: &str) -> Self {
        Self::of_program(&program("metering-server"), data, address)
    }

    /// Like [`ServerSetup::new`], with a server that may come from another build.
    pub(crate) fn of_program(program: &Path, data: &Path, address: &str) -> Self {
        let mut command = command_at(program);
        command.arg("--data").arg(data).args(["--listen", address]);
        Self { command }
    }

    /// A server that is started by other means, such as in another root.
    #[must_use]
    pub fn of_command(command: Command) -> Self {
        Self { command }
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn set(mut self, variable: &str, value: &str) -> Self {
        self.command.env(variable, value);
        self
    }

    /// Adds flags.
    #[must_use]
    pub fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.command.args(args);
        self
    }

    /// Starts it, and returns once it has reported its address.
    #[track_caller]
    #[must_use]
    pub fn start(self) -> Server {
        self.try_start().unwrap_or_else(|log| panic!("the server did not report its address: {log}"))
    }

    /// Like [`ServerSetup::start`], for a server that may refuse to start.
    #[must_use]
    pub fn start_if_possible(self) -> Option<Server> {
        self.try_start().ok()
    }

    /// The server, or its output if it did not report an address.
    pub(crate) fn try_start(mut self) -> Result<Server, String> {
        let mut child =
            self.command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the server can be run");
        let log = Log::default();
        let (sender, receiver) = channel();
        let readers = vec![
            log.collect(child.stdout.take().expect("its output is piped"), sender.clone()),
            log.collect(child.stderr.take().expect("its errors are piped"), sender),
        ];
        match listening(&receiver) {
            Some(address) => Ok(Server { child, address, log, readers }),
            None => {
                let _ = child.kill();
                let _ = child.wait();
                Err(log.text())
            }
        }
    }

    /// Runs it until it exits by itself.
    #[track_caller]
    #[must_use]
    pub fn run(mut self) -> ProgramOutput {
        let child = self.command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the server can be run");
        let id = child.id();
        let (sender, receiver) = channel();
        std::thread::spawn(move || sender.send(child.wait_with_output()));
        let Ok(output) = receiver.recv_timeout(TIMEOUT) else {
            signal(id, "KILL");
            panic!("the server runs, but should have exited");
        };
        ProgramOutput::of(output.expect("the server's output can be read"))
    }
}

impl Server {
    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A client without a key.
    #[must_use]
    pub fn client(&self) -> Client {
        Client::new(self.address)
    }

    /// A client with a key.
    #[must_use]
    pub fn client_with(&self, api_key: &str) -> Client {
        self.client().with_key(api_key)
    }

    /// Its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Everything it has printed so far.
    #[must_use]
    pub fn log(&self) -> String {
        self.log.text()
    }

    /// Stops its process from running (SIGSTOP), as if it were stuck, or lets it continue (SIGCONT).
    pub fn freeze(&self, frozen: bool) {
        signal(self.id(), if frozen { "STOP" } else { "CONT" });
    }

    /// Waits until it has printed `text`: a line may reach the log after the response it belongs to.
    pub fn expect_log(&self, text: &str) {
        let deadline = Instant::now() + TIMEOUT;
        while !self.log().contains(text) {
            assert!(Instant::now() < deadline, "the log lacks `{text}`: {}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Kills it immediately, as a power loss would.
    ///
    /// # Panics
    /// If it had already exited by itself.
    pub fn kill(mut self) {
        assert_eq!(
            self.child.try_wait().expect("a child's status can be read"),
            None,
            "it has already exited: {}",
            self.log()
        );
        self.child.kill().expect("a child can be killed");
        let _ = self.child.wait();
    }

    /// Whether it has exited by itself.
    pub fn has_exited(&mut self) -> bool {
        self.child.try_wait().expect("a child's status can be read").is_some()
    }

    /// Requests a graceful stop (SIGTERM), without waiting for it.
    pub fn terminate(&self) {
        signal(self.child.id(), "TERM");
    }

    /// Has it read its configuration again (SIGHUP), without waiting for it.
    pub fn hang_up(&self) {
        signal(self.child.id(), "HUP");
    }

    /// Waits until it exits.
    #[track_caller]
    pub fn wait(&mut self) -> ExitStatus {
        let started = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("a child's status can be read") {
                return status;
            }
            assert!(started.elapsed() < TIMEOUT, "the server did not exit: {}", self.log());
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        for reader in self.readers.drain(..) {
            let _ = reader.join();
        }
        let log = self.log();
        if std::thread::panicking() {
            eprintln!("--- the server's log ---\n{log}---");
        } else {
            assert!(!log.contains("panicked"), "the server panicked:\n{log}");
        }
    }
}

impl Log {
    fn text(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn collect(&self, from: impl Read + Send + 'static, sender: Sender<String>) -> JoinHandle<()> {
        let log = self.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(from).lines().map_while(Result::ok) {
                let mut text = log.0.lock().unwrap_or_else(PoisonError::into_inner);
                text.push_str(&line);
                text.push('\n');
                drop(text);
                let _ = sender.send(line);
            }
        })
    }
}

fn listening(lines: &Receiver<String>) -> Option<SocketAddr> {
    let started = Instant::now();
    loop {
        let line = lines.recv_timeout(TIMEOUT.checked_sub(started.elapsed())?).ok()?;
        if let Some(address) = line.trim().strip_prefix("listening") {
            return address.trim().split_once("://")?.1.parse().ok();
        }
    }
}

/// Uses the shell's built-in `kill`, because the standard library can only send SIGKILL.
pub(crate) fn signal(process: u32, name: &str) {
    let status = Command::new("sh").args(["-c", &format!("kill -{name} {process}")]).status();
    assert!(status.is_ok_and(|status| status.success()), "SIG{name} could not be sent");
}
