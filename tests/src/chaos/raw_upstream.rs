//! An upstream that writes arbitrary bytes, and keeps the requests it received.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::listener;
use crate::site::Site;

/// A request as it arrived.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub(super) target: String,
    /// Names in lower case.
    pub(super) headers: Vec<(String, String)>,
}

impl Seen {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }
}

/// The response to a request: pieces, with a pause before each but the first. Then the connection is closed.
pub(super) type Script = dyn Fn(&Seen) -> Vec<Vec<u8>> + Send + Sync;

/// A running upstream; it runs until the process ends.
pub(super) struct RawUpstream {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl RawUpstream {
    pub(super) fn start(script: impl Fn(&Seen) -> Vec<Vec<u8>> + Send + Sync + 'static) -> Self {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&seen);
        Self { address: listener::serve(move |client| respond(client, &script, &log)), seen }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The requests since the last call.
    pub(super) fn take_seen(&self) -> Vec<Seen> {
        std::mem::take(&mut *self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Writes a catalogue of these routes (`path`, `weight`, and a string parameter per `{name}`), and returns the flags
/// for it.
pub(super) fn catalogue(site: &Site, routes: &[(&str, u32)]) -> [String; 2] {
    let route = |(path, weight): &(&str, u32)| {
        let names = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
        let params = names.map(|name| format!(r#"{{"name":"{name}","in":"path","type":"string","required":true}}"#));
        let params: Vec<String> = params.collect();
        format!(
            r#"{{"path":"{path}","method":"GET","metered":true,"description":"","params":[{}],"credit_weight":{weight}}}"#,
            params.join(",")
        )
    };
    let routes: Vec<String> = routes.iter().map(route).collect();
    let text = format!(r#"{{"market":"CHAOS","version":1,"endpoints":[{}]}}"#, routes.join(","));
    ["--catalogue".to_owned(), site.write("catalogue.json", &text).display().to_string()]
}

fn respond(mut stream: TcpStream, script: &Script, log: &Mutex<Vec<Seen>>) {
    let _ = stream.set_read_timeout(Some(Duration::from_secs(10)));
    let Some(seen) = read_head(&mut stream) else { return };
    log.lock().unwrap_or_else(PoisonError::into_inner).push(seen.clone());
    for (number, piece) in script(&seen).iter().enumerate() {
        if number > 0 {
            thread::sleep(Duration::from_millis(30));
        }
        if stream.write_all(piece).is_err() {
            return;
        }
    }
    let _ = stream.shutdown(Shutdown::Write);
}

fn read_head(stream: &mut TcpStream) -> Option<Seen> {
    let (mut head, mut buffer) = (Vec::new(), [0; 4096]);
    while !head.windows(4).any(|window| window == b"\r\n\r\n") {
        let length = stream.read(&mut buffer).ok().filter(|length| *length > 0)?;
        head.extend_from_slice(&buffer[..length]);
    }
    let text = String::from_utf8_lossy(&head).into_owned();
    let mut lines = text.split("\r\n");
    let target = lines.next()?.split(' ').nth(1)?.to_owned();
    let header =
        |line: &str| line.split_once(':').map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()));
    Some(Seen { target, headers: lines.take_while(|line| !line.is_empty()).filter_map(header).collect() })
}
