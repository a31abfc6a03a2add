//! A real SMTP server for tests: `tests/mail/server.py`, with aiosmtpd.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use serde_json::{Value, json};

/// Set by `./test.sh` on a machine without Python.
const SKIP: &str = "TESTS_SKIP_MAIL";

/// How long a message may take; longer than the first pauses between two attempts.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Whether tests with mail are disabled.
#[must_use]
#[track_caller]
pub fn are_skipped() -> bool {
    crate::skipped::by(SKIP)
}

/// A running server. Dropping it kills it.
#[derive(Debug)]
pub struct MailServer {
    child: Child,
    port: u16,
    lines: Receiver<Value>,
}

/// A message that the server accepted.
#[derive(Debug, Clone)]
pub struct Received(pub Value);

impl MailServer {
    /// A server without encryption on any port.
    #[must_use]
    #[track_caller]
    pub fn start() -> Self {
        Self::with(&json!({"tls": "none"}))
    }

    /// A server with the options that `server.py` describes.
    #[must_use]
    #[track_caller]
    pub fn with(options: &Value) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("mail/server.py");
        let mut child = Command::new(crate::venv::program("mail-venv", "python"))
            .arg(script)
            .arg(options.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("Python can be run");
        let output = BufReader::new(child.stdout.take().expect("its output is piped"));
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let line = serde_json::from_str(&line).expect("the server prints JSON");
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let first: Value = lines.recv_timeout(TIMEOUT).expect("the mail server reports its port");
        let port = first["port"].as_u64().and_then(|port| port.try_into().ok()).expect("it is a port");
        Self { child, port, lines }
    }

    /// Its port on 127.0.0.1.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// The next message.
    #[must_use]
    #[track_caller]
    pub fn next(&self) -> Received {
        Received(self.next_line())
    }

    /// The next message, or the next recipient that was refused.
    #[must_use]
    #[track_caller]
    pub fn next_line(&self) -> Value {
        self.lines.recv_timeout(TIMEOUT).expect("the server gets a message")
    }

    /// Asserts that no message comes for a while.
    #[track_caller]
    pub fn gets_nothing(&self, wait: Duration) {
        let got = self.lines.recv_timeout(wait);
        assert_eq!(got, Err(RecvTimeoutError::Timeout), "no message was expected");
    }
}

impl Drop for MailServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Received {
    /// A header, by its name in lower case.
    #[must_use]
    pub fn header(&self, name: &str) -> &str {
        self.0["headers"][name].as_str().unwrap_or_default()
    }

    /// The plain text.
    #[must_use]
    pub fn text(&self) -> &str {
        self.0["text"].as_str().unwrap_or_default()
    }

    /// The recipient.
    #[must_use]
    pub fn to(&self) -> &str {
        self.0["recipients"][0].as_str().unwrap_or_default()
    }

    /// The link in the text.
    #[must_use]
    #[track_caller]
    pub fn link(&self) -> &str {
        let link = self.text().split_whitespace().find(|word| word.contains("#eml_") || word.contains("#sign-in=eml_"));
        link.unwrap_or_else(|| panic!("there is a link in {}", self.text()))
    }

    /// The token of that link.
    #[must_use]
    #[track_caller]
    pub fn token(&self) -> &str {
        self.link().rsplit_once(['#', '=']).map(|(_, token)| token).expect("the token is the fragment")
    }
}
