//! A real LLM proxy for tests: LiteLLM, with the models of `tests/llm/litellm.yaml`, which need no network.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

/// Set by `./test.sh` on a machine without Node.js or Python.
const SKIP: &str = "TESTS_SKIP_LLM";

/// How long it may take to start: it imports for five seconds, and much longer while other tests use all cores.
const TIMEOUT: Duration = Duration::from_secs(180);

/// Ends the proxy when the test's process ends, however it ends.
const WATCHER: &str = r#""$@" & server=$!; read -r end; kill -KILL "$server""#;

/// The key that the proxy requires.
pub const MASTER_KEY: &str = "sk-of-the-proxy";

/// Variables that keep the proxy off the network, and give it its key.
const ENVIRONMENT: [(&str, &str); 8] = [
    ("LITELLM_LOCAL_MODEL_COST_MAP", "True"),
    ("LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS", "True"),
    ("LITELLM_LOCAL_AUTOROUTER_PRESETS", "True"),
    ("LITELLM_LOCAL_BLOG_POSTS", "True"),
    ("LITELLM_LOCAL_POLICY_TEMPLATES", "True"),
    ("LITELLM_MASTER_KEY", MASTER_KEY),
    ("DISABLE_ADMIN_UI", "True"),
    // Otherwise Python writes next to our scripts.
    ("PYTHONDONTWRITEBYTECODE", "1"),
];

/// A running proxy. Dropping it ends it.
#[derive(Debug)]
pub struct LiteLlm {
    watcher: Child,
    address: SocketAddr,
}

/// Whether tests of LLM routes are disabled.
#[must_use]
#[track_caller]
pub fn is_skipped() -> bool {
    crate::skipped::by(SKIP)
}

/// The folder with the proxy's configuration and the clients' scripts.
#[must_use]
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("llm")
}

impl LiteLlm {
    /// One for all tests of this process: it takes seconds to start, and has no state.
    #[must_use]
    #[track_caller]
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<LiteLlm> = OnceLock::new();
        SHARED.get_or_init(Self::start)
    }

    /// Starts one, and returns once it listens.
    #[must_use]
    #[track_caller]
    pub fn start() -> Self {
        let mut command = Command::new("sh");
        command.args(["-c", WATCHER, "sh"]).arg(crate::venv::program("llm-venv", "litellm"));
        command.arg("--config").arg(folder().join("litellm.yaml"));
        command.args(["--host", "127.0.0.1", "--port", "0", "--telemetry", "False"]);
        // Other settings in the environment would make it use a database or a proxy.
        command.env_clear().envs(ENVIRONMENT).envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut watcher = command.spawn().expect("sh can be run");
        let (sender, lines) = channel();
        forward(watcher.stdout.take().expect("its output is piped"), sender.clone());
        forward(watcher.stderr.take().expect("its errors are piped"), sender);
        match address(&lines) {
            Ok(address) => Self { watcher, address },
            Err(log) => {
                drop(watcher.stdin.take());
                let _ = watcher.wait();
                panic!("LiteLLM did not start: {log}");
            }
        }
    }

    /// Its URL.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for LiteLlm {
    fn drop(&mut self) {
        // The watcher ends the proxy at the end of its input.
        drop(self.watcher.stdin.take());
        let _ = self.watcher.wait();
    }
}

/// Reads a stream to its end, so that the proxy can always write.
fn forward(from: impl Read + Send + 'static, sender: Sender<String>) {
    thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            let _ = sender.send(line);
        }
    });
}

/// Waits for the address that the proxy listens on. The error is its output without one.
fn address(lines: &Receiver<String>) -> Result<SocketAddr, String> {
    let mut log = String::new();
    while let Ok(line) = lines.recv_timeout(TIMEOUT) {
        if let Some(address) = listening(&line) {
            return Ok(address);
        }
        log = log + &line + "\n";
    }
    Err(log)
}

/// The address in uvicorn's report that it is ready.
fn listening(line: &str) -> Option<SocketAddr> {
    let (_, rest) = line.split_once("Uvicorn running on http://")?;
    rest.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_is_read_from_the_log() {
        let line = "INFO:     Uvicorn running on http://127.0.0.1:4123 (Press CTRL+C to quit)";
        assert_eq!(listening(line), Some(SocketAddr::from(([127, 0, 0, 1], 4123))));
        assert_eq!(listening("INFO:     Application startup complete."), None);
    }
}
