//! Clients of the Model Context Protocol that are not our code: the official SDKs, each as a process that holds as many
//! sessions as a test asks for. Tests are synchronous, as everywhere here.
//!
//! A process ends with its [`Agent`]; killing it is how a client vanishes.

mod packages;
mod process;
mod session;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use self::process::Process;
pub use self::process::{Failure, Pending};
pub use self::session::{Called, Session, ToolResult};
use crate::program::program;
use crate::server::Server;

/// Whose client it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sdk {
    /// The official Python SDK.
    Python,
    /// The official TypeScript SDK.
    TypeScript,
}

/// How it speaks to a hosted server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
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
    /// Both.
    pub const ALL: [Self; 2] = [Self::Python, Self::TypeScript];
}

impl Wire {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Sse, Self::Streamable];

    /// Where a client of it begins.
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
    /// Starts one; `None` where the tests were told to do without. It comes up while the test goes on.
    ///
    /// # Panics
    /// When its language is not installed.
    #[track_caller]
    #[must_use]
    pub fn start(sdk: Sdk) -> Option<Self> {
        if packages::are_skipped() {
            return None;
        }
        let command = match sdk {
            Sdk::Python => packages::python(),
            Sdk::TypeScript => packages::node(),
        };
        Some(Self { sdk, process: Arc::new(Process::start(command)), sessions: AtomicU64::new(0) })
    }

    /// Whose client it is.
    #[must_use]
    pub fn sdk(&self) -> Sdk {
        self.sdk
    }

    /// Opens a session at a server, as an agent that was told URL and key.
    ///
    /// # Panics
    /// When that fails.
    #[track_caller]
    #[must_use]
    pub fn connect(&self, server: &Server, wire: Wire, api_key: &str) -> Session {
        let opened = self.try_connect(server, wire, api_key);
        opened.unwrap_or_else(|failure| panic!("{:?} {wire:?} cannot connect: {failure:?}", self.sdk))
    }

    /// As [`Agent::connect`].
    ///
    /// # Errors
    /// When the client says that it cannot.
    #[track_caller]
    pub fn try_connect(&self, server: &Server, wire: Wire, api_key: &str) -> Result<Session, Failure> {
        let (session, opened) = self.begin_connect(server, wire, api_key);
        let _ = opened.wait()?;
        Ok(session)
    }

    /// As [`Agent::connect`], and does not wait for it.
    #[track_caller]
    pub fn begin_connect(&self, server: &Server, wire: Wire, api_key: &str) -> (Session, Pending) {
        self.open("auto", server, wire, api_key)
    }

    /// As [`Agent::connect`] with the handshake that opens a session, where the client would rather do without: it is
    /// what clients of the protocol's versions up to 2025-11-25 do.
    ///
    /// # Panics
    /// When that fails.
    #[track_caller]
    #[must_use]
    pub fn connect_with_handshake(&self, server: &Server, wire: Wire, api_key: &str) -> Session {
        let (session, opened) = self.open("legacy", server, wire, api_key);
        let _ = opened.wait().unwrap_or_else(|failure| panic!("{:?} {wire:?} cannot connect: {failure:?}", self.sdk));
        session
    }

    #[track_caller]
    fn open(&self, mode: &str, server: &Server, wire: Wire, api_key: &str) -> (Session, Pending) {
        let given = json!({
            "transport": wire.name(),
            "mode": mode,
            "url": format!("http://{}{}", server.address(), wire.path()),
            "headers": { "Authorization": format!("Bearer {api_key}") },
        });
        self.begin(given)
    }

    /// Starts `metering ARGS` with these variables as a local server, and opens a session over its input and output.
    ///
    /// # Errors
    /// When the client says that it cannot.
    #[track_caller]
    pub fn connect_to_program(&self, args: &[&str], environment: &[(&str, &str)]) -> Result<Session, Failure> {
        let path = program("metering").display().to_string();
        let program: Vec<&str> = [path.as_str()].into_iter().chain(args.iter().copied()).collect();
        let environment: Value =
            environment.iter().map(|(name, value)| ((*name).to_owned(), Value::from(*value))).collect();
        let given = json!({ "transport": "stdio", "mode": "auto", "program": program, "environment": environment });
        let (session, opened) = self.begin(given);
        let _ = opened.wait()?;
        Ok(session)
    }

    /// Kills the process, as when its machine is gone; nothing is said to any server.
    pub fn kill(self) {
        self.process.kill();
    }

    #[track_caller]
    fn begin(&self, mut given: Value) -> (Session, Pending) {
        let name = self.sessions.fetch_add(1, Ordering::Relaxed);
        given["session"] = name.into();
        let opened = self.process.begin("connect", &given);
        (Session::new(Arc::clone(&self.process), name), opened)
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.process.kill();
    }
}
