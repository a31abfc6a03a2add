//! A way to the database that fails at the worst moments: it cuts commits, loses answers, delivers late, or says nothing.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// What of a connection's first words says that it asks for the outcome of a commit.
const QUESTION: &[u8] = b"INSERT INTO outcome (id, at) VALUES ($1, $2) ON CONFLICT";

/// How much later a delayed commit arrives: after whoever sent it has asked, and tried again.
const DELAY: Duration = Duration::from_millis(300);

/// The length of a message that says `COMMIT` and nothing else.
const ALONE: usize = 12;

const CLEAR: u8 = 0;
const CUTTING: u8 = 1;
const SILENT: u8 = 2;

/// When a connection is cut that asks for a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut {
    /// Before the request has gone through: it never arrives.
    Before,
    /// After it has gone through, before any answer: it is done, and nobody is told.
    After,
    /// Before the request has gone through, which arrives all the same, some time later.
    Late,
}

/// A proxy before a database.
#[derive(Debug)]
pub struct Link {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    target: SocketAddr,
    mode: AtomicU8,
    /// Of batches, which come with what they write, and of others, which come alone.
    commits: [AtomicU32; 2],
    questions: AtomicU32,
    cuts: AtomicU32,
    open: Mutex<Vec<TcpStream>>,
}

impl Link {
    /// To `target`; without faults at first.
    ///
    /// # Panics
    /// When the machine has no port left.
    #[must_use]
    pub fn to(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("the machine has a free port");
        let address = listener.local_addr().expect("a listener has an address");
        let zero = || AtomicU32::new(0);
        let (mode, open) = (AtomicU8::new(CLEAR), Mutex::default());
        let shared = Shared { target, mode, commits: [zero(), zero()], questions: zero(), cuts: zero(), open };
        let shared = Arc::new(shared);
        let passing = Arc::clone(&shared);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let shared = Arc::clone(&passing);
                thread::spawn(move || pass(client, &shared));
            }
        });
        Self { address, shared }
    }

    /// From now on, every second commit is cut: by turns before it arrives, after it, and before it arrives late. Of
    /// those who then ask what became of it, every other one loses the answer.
    pub fn cut_commits(&self) {
        self.shared.mode.store(CUTTING, Ordering::SeqCst);
    }

    /// From now on, connections are accepted, and nothing is passed on; those that lost something this way stay silent.
    pub fn fall_silent(&self) {
        self.shared.mode.store(SILENT, Ordering::SeqCst);
    }

    /// Ends all faults to come.
    pub fn clear(&self) {
        self.shared.mode.store(CLEAR, Ordering::SeqCst);
    }

    /// Cuts all connections that are open, wherever they are.
    pub fn cut_all(&self) {
        for connection in self.shared.open().drain(..) {
            let _ = connection.shutdown(Shutdown::Both);
        }
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A URL of its target, by way of this link.
    #[must_use]
    pub fn through(&self, url: &str) -> String {
        url.replace(&self.shared.target.to_string(), &self.address.to_string())
    }

    /// How many commits were cut.
    #[must_use]
    pub fn cuts(&self) -> u32 {
        self.shared.cuts.load(Ordering::SeqCst)
    }
}

impl Shared {
    fn open(&self) -> std::sync::MutexGuard<'_, Vec<TcpStream>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is(&self, mode: u8) -> bool {
        self.mode.load(Ordering::SeqCst) == mode
    }

    /// Whether these bytes ask for a commit that is to be cut.
    fn cut(&self, bytes: &[u8]) -> Option<Cut> {
        if !self.is(CUTTING) || !bytes.windows(7).any(|window| window == b"COMMIT\0") {
            return None;
        }
        // Each kind has its turns, so that none always meets the same.
        match self.commits[usize::from(bytes.len() == ALONE)].fetch_add(1, Ordering::SeqCst) % 6 {
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
    let clones = (server.try_clone(), client.try_clone(), client.try_clone());
    let (Ok(from_server), Ok(to_client), Ok(open)) = clones else { return };
    shared.open().push(open);
    thread::scope(|scope| {
        scope.spawn(|| answers(from_server, to_client, shared));
        requests(&mut client, &mut server, shared);
        let _ = (client.shutdown(Shutdown::Both), server.shutdown(Shutdown::Write));
    });
}

fn answers(mut from_server: TcpStream, mut to_client: TcpStream, shared: &Shared) {
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

fn requests(client: &mut TcpStream, server: &mut TcpStream, shared: &Shared) {
    let mut buffer = vec![0; 1 << 20];
    let (mut asks, mut silent) = (false, false);
    while let Ok(length @ 1..) = client.read(&mut buffer) {
        let bytes = &buffer[..length];
        silent |= shared.is(SILENT);
        if silent {
            continue;
        }
        // The question itself follows its text in a message of its own.
        let lost = asks && shared.is(CUTTING) && shared.questions.fetch_add(1, Ordering::SeqCst).is_multiple_of(2);
        asks = bytes.windows(QUESTION.len()).any(|window| window == QUESTION);
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
            // What it says is read by nobody; it is done when it says goodbye.
            let _ = server.write_all(bytes);
        }
        break;
    }
}
