//! A proxy to the database that fails at the worst moments: it cuts commits, loses or delays responses, or goes silent.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::listener;

/// The start of the statement that looks up the outcome of a commit.
const OUTCOME_LOOKUP: &[u8] = b"INSERT INTO outcome (id, noted_at) VALUES ($1, $2) ON CONFLICT";

/// The delay of a delayed commit: it arrives after its sender has looked up the outcome and retried.
const DELAY: Duration = Duration::from_millis(300);

/// The length of a message that contains only `COMMIT`.
const BARE_COMMIT_LENGTH: usize = 12;

const CLEAR: u8 = 0;
const CUTTING: u8 = 1;
const SILENT: u8 = 2;

/// When the connection of a commit is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut {
    /// Before the commit is forwarded: it never arrives.
    Before,
    /// After the commit is forwarded, before any response: it takes effect, but its sender gets no response.
    After,
    /// Before the commit is forwarded, but it still arrives some time later.
    Late,
}

/// A proxy in front of a database.
#[derive(Debug)]
pub struct DatabaseProxy {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    target: SocketAddr,
    mode: AtomicU8,
    /// Counts of commits: those in one message with their batch's writes, and those in their own message.
    commits: [AtomicU32; 2],
    lookups: AtomicU32,
    cuts: AtomicU32,
    messages: AtomicU32,
    open: Mutex<HashMap<u32, Pair>>,
    accepted: AtomicU32,
}

/// Both sides of an open connection.
#[derive(Debug)]
struct Pair {
    client: TcpStream,
    server: TcpStream,
}

impl Pair {
    fn of(client: &TcpStream, server: &TcpStream) -> io::Result<Self> {
        Ok(Self { client: client.try_clone()?, server: server.try_clone()? })
    }

    fn cut(&self) {
        let _ = (self.client.shutdown(Shutdown::Both), self.server.shutdown(Shutdown::Both));
    }
}

impl DatabaseProxy {
    /// Starts a proxy to `target`, without faults.
    #[must_use]
    pub fn to(target: SocketAddr) -> Self {
        let zero = || AtomicU32::new(0);
        let (mode, open) = (AtomicU8::new(CLEAR), Mutex::default());
        let commits = [zero(), zero()];
        let (lookups, cuts, messages, accepted) = (zero(), zero(), zero(), zero());
        let shared = Arc::new(Shared { target, mode, commits, lookups, cuts, messages, open, accepted });
        let passing = Arc::clone(&shared);
        Self { address: listener::serve(move |client| pass(client, &passing)), shared }
    }

    /// From now on cuts every second commit, in turn: before it arrives, after it, and before it arrives late. Every
    /// second lookup of an outcome loses its response too.
    pub fn cut_commits(&self) {
        self.shared.mode.store(CUTTING, Ordering::SeqCst);
    }

    /// From now on accepts connections but forwards nothing; connections that lost data this way stay silent.
    pub fn fall_silent(&self) {
        self.shared.mode.store(SILENT, Ordering::SeqCst);
    }

    /// Injects no further faults.
    pub fn clear(&self) {
        self.shared.mode.store(CLEAR, Ordering::SeqCst);
    }

    /// Cuts all open connections, even busy ones.
    pub fn cut_all(&self) {
        for (_, connection) in self.shared.open().drain() {
            connection.cut();
        }
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The target's URL with this proxy's address.
    #[must_use]
    pub fn through(&self, url: &str) -> String {
        url.replace(&self.shared.target.to_string(), &self.address.to_string())
    }

    /// How many messages came from clients so far. Pipelined statements are usually one message.
    #[must_use]
    pub fn messages(&self) -> u32 {
        self.shared.messages.load(Ordering::SeqCst)
    }

    /// How many commits were cut.
    #[must_use]
    pub fn cuts(&self) -> u32 {
        self.shared.cuts.load(Ordering::SeqCst)
    }
}

impl Shared {
    fn open(&self) -> std::sync::MutexGuard<'_, HashMap<u32, Pair>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is(&self, mode: u8) -> bool {
        self.mode.load(Ordering::SeqCst) == mode
    }

    /// Whether and how to cut a commit in these bytes.
    fn cut(&self, bytes: &[u8]) -> Option<Cut> {
        if !self.is(CUTTING) || !bytes.windows(7).any(|window| window == b"COMMIT\0") {
            return None;
        }
        // Each kind has its own counter, so that neither always meets the same cut.
        match self.commits[usize::from(bytes.len() == BARE_COMMIT_LENGTH)].fetch_add(1, Ordering::SeqCst) % 6 {
            1 => Some(Cut::Before),
            3 => Some(Cut::After),
            5 => Some(Cut::Late),
            _ => None,
        }
    }
}

fn pass(mut client: TcpStream, shared: &Shared) {
    let Ok(mut server) = TcpStream::connect(shared.target) else { return };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let clones = (Pair::of(&client, &server), server.try_clone(), client.try_clone());
    let (Ok(pair), Ok(from_server), Ok(to_client)) = clones else { return };
    let number = shared.accepted.fetch_add(1, Ordering::SeqCst);
    shared.open().insert(number, pair);
    thread::scope(|scope| {
        scope.spawn(|| forward_responses(from_server, to_client, shared));
        forward_requests(&mut client, &mut server, shared);
        let _ = (client.shutdown(Shutdown::Both), server.shutdown(Shutdown::Write));
    });
    shared.open().remove(&number);
}

fn forward_responses(mut from_server: TcpStream, mut to_client: TcpStream, shared: &Shared) {
    let mut buffer = vec![0; 1 << 16];
    let mut silent = false;
    while let Ok(length @ 1..) = from_server.read(&mut buffer) {
        silent |= shared.is(SILENT);
        if !silent && to_client.write_all(&buffer[..length]).is_err() {
            break;
        }
    }
    if !silent {
        let _ = to_client.shutdown(Shutdown::Both);
    }
}

fn forward_requests(client: &mut TcpStream, server: &mut TcpStream, shared: &Shared) {
    let mut buffer = vec![0; 1 << 20];
    let (mut lookup_next, mut silent) = (false, false);
    while let Ok(length @ 1..) = client.read(&mut buffer) {
        let bytes = &buffer[..length];
        shared.messages.fetch_add(1, Ordering::SeqCst);
        silent |= shared.is(SILENT);
        if silent {
            continue;
        }
        // The lookup runs in a separate message after its statement text.
        let lost = lookup_next && shared.is(CUTTING) && shared.lookups.fetch_add(1, Ordering::SeqCst).is_multiple_of(2);
        lookup_next = bytes.windows(OUTCOME_LOOKUP.len()).any(|window| window == OUTCOME_LOOKUP);
        let cut = if lost { Some(Cut::After) } else { shared.cut(bytes) };
        let Some(cut) = cut else {
            if server.write_all(bytes).is_err() {
                break;
            }
            continue;
        };
        if !lost {
            shared.cuts.fetch_add(1, Ordering::SeqCst);
        }
        let _ = client.shutdown(Shutdown::Both);
        if cut == Cut::Late {
            thread::sleep(DELAY);
        }
        if cut != Cut::Before {
            // The write may fail. No one reads the response.
            let _ = server.write_all(bytes);
        }
        break;
    }
}
