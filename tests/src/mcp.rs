//! Independent clients of the Model Context Protocol: the official SDKs, each as a process that holds as many sessions
//! as a test needs. Tests are synchronous, as everywhere here.
//!
//! A process ends with its [`Agent`]; killing it simulates a client that vanishes.

mod packages;
mod process;
mod session;

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use self::process::Process;
pub use self::process::{Failure, Pending};
pub use self::session::{PendingCall, Session, ToolResult};
use crate::program::program;
use crate::server::Server;

/// The SDK of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sdk {
    /// The official Python SDK.
    Python,
    /// The official TypeScript SDK.
    TypeScript,
}

/// The transport to a hosted server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// HTTP+SSE: `GET /sse` and `POST /messages/`.
    Sse,
    /// Streamable HTTP: `/mcp`.
    Streamable,
}

/// A process with a client. Dropping it kills it.
#[derive(Debug)]
pub struct Agent {
    sdk: Sdk,
    process: Arc<Process>,
    sessions: AtomicU64,
}

impl Sdk {
    /// Both SDKs.
    pub const ALL: [Self; 2] = [Self::Python, Self::TypeScript];

    #[track_caller]
    fn script(self, name: &str) -> Command {
        match self {
            Self::Python => packages::python(name),
            Self::TypeScript => packages::node(name),
        }
    }
}

/// Runs a script of `tests/mcp` with an SDK, and returns the JSON that it prints; `None` if these tests are disabled.
#[track_caller]
#[must_use]
pub fn run_script(sdk: Sdk, name: &str, arguments: &[&str]) -> Option<Value> {
    if packages::are_skipped() {
        return None;
    }
    let run = sdk.script(name).args(arguments).output().unwrap_or_else(|error| panic!("{name} cannot be run: {error}"));
    let (printed, errors) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert!(run.status.success(), "{sdk:?} {name}: {printed}{errors}");
    Some(serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{error} in {printed}")))
}

impl Transport {
    /// Both transports.
    pub const ALL: [Self; 2] = [Self::Sse, Self::Streamable];

    /// The path that a client connects to first.
    #[must_use]
    pub fn path(self) -> &'static str {
        match self {
            Self::Sse => "/sse",
            Self::Streamable => "/mcp",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Sse => "sse",
            Self::Streamable => "streamable",
        }
    }
}

impl Agent {
    /// Starts one, and does not wait until it is ready; `None` if these tests are disabled.
    #[track_caller]
    #[must_use]
    pub fn start(sdk: Sdk) -> Option<Self> {
        if packages::are_skipped() {
            return None;
        }
        let command = sdk.script("client");
        Some(Self { sdk, process: Arc::new(Process::start(command)), sessions: AtomicU64::new(0) })
    }

    /// The client's SDK.
    #[must_use]
    pub fn sdk(&self) -> Sdk {
        self.sdk
    }

    /// Opens a session with a server, as an agent configured with URL and key does.
    #[track_caller]
    #[must_use]
    pub fn connect(&self, server: &Server, transport: Transport, api_key: &str) -> Session {
        let opened = self.try_connect(server, transport, api_key);
        opened.unwrap_or_else(|failure| panic!("{:?} {transport:?} cannot connect: {failure:?}", self.sdk))
    }

    /// Like [`Agent::connect`].
    ///
    /// # Errors
    /// If the client reports that it cannot connect.
    #[track_caller]
    pub fn try_connect(&self, server: &Server, transport: Transport, api_key: &str) -> Result<Session, Failure> {
        let (session, opened) = self.begin_connect(server, transport, api_key);
        let _ = opened.wait()?;
        Ok(session)
    }

    /// Like [`Agent::connect`], but does not wait for it.
    #[track_caller]
    pub fn begin_connect(&self, server: &Server, transport: Transport, api_key: &str) -> (Session, Pending) {
        self.open("auto", server, transport, api_key)
    }

    /// Like [`Agent::connect`], with the handshake that opens a session, even if the client would skip it. Clients of
    /// protocol versions up to 2025-11-25 use this handshake.
    #[track_caller]
    #[must_use]
    pub fn connect_with_handshake(&self, server: &Server, transport: Transport, api_key: &str) -> Session {
        let (session, opened) = self.open("legacy", server, transport, api_key);
        let _ =
            opened.wait().unwrap_or_else(|failure| panic!("{:?} {transport:?} cannot connect: {failure:?}", self.sdk));
        session
    }

    #[track_caller]
    fn open(&self, mode: &str, server: &Server, transport: Transport, api_key: &str) -> (Session, Pending) {
        let params = json!({
            "transport": transport.name(),
            "mode": mode,
            "url": format!("http://{}{}", server.address(), transport.path()),
            "headers": { "Authorization": format!("Bearer {api_key}") },
        });
        self.begin(params)
    }

    /// Starts `metering ARGS` with these environment variables as a local server, and opens a session over its stdin
    /// and stdout.
    ///
    /// # Errors
    /// If the client reports that it cannot connect.
    #[track_caller]
    pub fn connect_to_program(&self, args: &[&str], environment: &[(&str, &str)]) -> Result<Session, Failure> {
        let path = program("metering").display().to_string();
        let program: Vec<&str> = [path.as_str()].into_iter().chain(args.iter().copied()).collect();
        let environment: Value =
            environment.iter().map(|(name, value)| ((*name).to_owned(), Value::from(*value))).collect();
        let params = json!({ "transport": "stdio", "mode": "auto", "program": program, "environment": environment });
        let (session, opened) = self.begin(params);
        let _ = opened.wait()?;
        Ok(session)
    }

    /// Kills the process, as when its machine is lost; no server is notified.
    pub fn kill(self) {
        self.process.kill();
    }

    #[track_caller]
    fn begin(&self, mut params: Value) -> (Session, Pending) {
        let name = self.sessions.fetch_add(1, Ordering::Relaxed);
        params["session"] = name.into();
        let opened = self.process.begin("connect", &params);
        (Session::new(Arc::clone(&self.process), name), opened)
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.process.kill();
    }
}
