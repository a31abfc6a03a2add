//! The node: anvil, as a process on a port that the operating system chose.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::packages;
use crate::process::descendants;

/// How long a node may take to report its address; it should never need that long.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Ends the node when the test's process ends, however it ends.
const WATCHER: &str = r#""$@" & node=$!; read -r end; kill -KILL "$node"; wait "$node""#;

/// A running node. Dropping it kills it.
#[derive(Debug)]
pub(crate) struct Node {
    watcher: Child,
    address: SocketAddr,
    /// Where it writes old states; by default it would leave them in the home directory.
    _states: TempDir,
    readers: Vec<JoinHandle<()>>,
}

impl Node {
    /// Starts it, and returns once it listens.
    #[track_caller]
    pub(crate) fn start(chain_id: u64, args: &[String]) -> Self {
        let states = tempfile::tempdir().expect("a temporary directory can be created");
        let mut command = Command::new("sh");
        command.args(["-c", WATCHER, "sh"]).arg(packages::anvil());
        command.args(["--host", "127.0.0.1", "--port", "0", "--chain-id", &chain_id.to_string()]).args(args);
        command.arg("--cache-path").arg(states.path());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut watcher = command.spawn().expect("sh can be run");
        let (sender, receiver) = channel();
        let readers = vec![
            collect(watcher.stdout.take().expect("its output is piped"), sender.clone()),
            collect(watcher.stderr.take().expect("its errors are piped"), sender),
        ];
        let mut log = String::new();
        if let Some(address) = listening(&receiver, &mut log) {
            return Self { watcher, address, _states: states, readers };
        }
        end(&mut watcher);
        panic!("anvil {args:?} did not report its address: {log}");
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The ids of the watcher and of the node.
    pub(crate) fn process_ids(&self) -> Vec<u32> {
        [vec![self.watcher.id()], descendants(self.watcher.id())].concat()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        end(&mut self.watcher);
        for reader in self.readers.drain(..) {
            let _ = reader.join();
        }
    }
}

/// Ends the node by its watcher.
fn end(watcher: &mut Child) {
    drop(watcher.stdin.take());
    let _ = watcher.wait();
}

/// Reads to the end: a node blocks when its output is not drained.
fn collect(from: impl Read + Send + 'static, sender: Sender<String>) -> JoinHandle<()> {
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            let _ = sender.send(line);
        }
    })
}

/// The address that the node reports; its other output so far goes to `log`.
fn listening(lines: &Receiver<String>, log: &mut String) -> Option<SocketAddr> {
    let started = Instant::now();
    loop {
        let line = lines.recv_timeout(TIMEOUT.checked_sub(started.elapsed())?).ok()?;
        if let Some(address) = line.strip_prefix("Listening on ") {
            return address.trim().parse().ok();
        }
        log.push_str(&line);
        log.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use super::*;

    #[test]
    fn node_ends_when_the_test_process_does() {
        if packages::are_skipped() {
            return;
        }
        let mut node = Node::start(31_337, &[]);
        // As the operating system does when a process is killed.
        drop(node.watcher.stdin.take());
        let started = Instant::now();
        while TcpStream::connect(node.address()).is_ok() {
            assert!(started.elapsed() < TIMEOUT, "the node still runs");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
