//! A proxy in front of the database that causes a fault at a commit.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use metering_tests::postgres::Cluster;

/// The fault at a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// The request is not passed on, and nothing is after it.
    Stall,
    /// The request is passed on, but its response is not, and nothing is after it.
    StallAfter,
    /// From the next message on, every connection is cut and no new one can be opened.
    Down,
    /// The connection is cut, alternately before and after the request is passed on.
    Cut,
}

/// A proxy in front of the shared database.
pub(crate) struct Link {
    port: u16,
    state: Arc<State>,
}

struct State {
    event: Event,
    /// At which commit; for cuts, at every multiple of it.
    at: u32,
    commits: AtomicU32,
    happened: AtomicU32,
    down: AtomicBool,
}

impl Link {
    pub(crate) fn with(event: Event, at: u32) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (commits, happened, down) = (AtomicU32::new(0), AtomicU32::new(0), AtomicBool::new(false));
        let state = Arc::new(State { event, at, commits, happened, down });
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let state = Arc::clone(&shared);
                thread::spawn(move || pass(client, &state));
            }
        });
        Self { port, state }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// How many times the fault happened.
    pub(crate) fn happened(&self) -> u32 {
        self.state.happened.load(Ordering::SeqCst)
    }

    /// Waits for the fault; `false` if `ended` returns true first.
    pub(crate) fn wait(&self, mut ended: impl FnMut() -> bool) -> bool {
        let start = Instant::now();
        while self.happened() == 0 {
            if ended() {
                return false;
            }
            assert!(start.elapsed() < Duration::from_secs(60), "nothing happens");
            thread::sleep(Duration::from_millis(5));
        }
        true
    }
}

fn pass(mut client: TcpStream, state: &State) {
    if state.down.load(Ordering::SeqCst) {
        return;
    }
    let mut server = TcpStream::connect(Cluster::shared().address()).unwrap();
    let (mut from_server, mut to_client) = (server.try_clone().unwrap(), client.try_clone().unwrap());
    let stalled = Arc::new(AtomicBool::new(false));
    let is_stalled = Arc::clone(&stalled);
    thread::spawn(move || {
        let mut buffer = vec![0; 1 << 16];
        while let Ok(length @ 1..) = from_server.read(&mut buffer) {
            if !is_stalled.load(Ordering::SeqCst) && to_client.write_all(&buffer[..length]).is_err() {
                break;
            }
        }
        let _ = to_client.shutdown(Shutdown::Both);
    });
    let mut buffer = vec![0; 1 << 20];
    while let Ok(length @ 1..) = client.read(&mut buffer) {
        let bytes = &buffer[..length];
        match state.event_of(bytes) {
            None => {
                if server.write_all(bytes).is_err() {
                    break;
                }
            }
            Some(Event::Stall | Event::StallAfter) => {
                stalled.store(true, Ordering::SeqCst);
                if state.event == Event::StallAfter {
                    let _ = server.write_all(bytes);
                }
                state.happened.fetch_add(1, Ordering::SeqCst);
                // Until the client is gone.
                while let Ok(1..) = client.read(&mut buffer) {}
                break;
            }
            Some(Event::Down) => {
                state.down.store(true, Ordering::SeqCst);
                state.happened.fetch_add(1, Ordering::SeqCst);
                break;
            }
            Some(Event::Cut) => {
                let _ = client.shutdown(Shutdown::Both);
                if state.happened.fetch_add(1, Ordering::SeqCst) % 2 == 1 {
                    let _ = server.write_all(bytes);
                    let _ = server.shutdown(Shutdown::Write);
                }
                break;
            }
        }
    }
    let _ = client.shutdown(Shutdown::Both);
    let _ = server.shutdown(Shutdown::Write);
}

impl State {
    fn event_of(&self, bytes: &[u8]) -> Option<Event> {
        if self.down.load(Ordering::SeqCst) {
            return Some(Event::Down);
        }
        if !bytes.windows(7).any(|window| window == b"COMMIT\0") {
            let is_over = self.event == Event::Down && self.commits.load(Ordering::SeqCst) >= self.at;
            return is_over.then_some(Event::Down);
        }
        let commit = self.commits.fetch_add(1, Ordering::SeqCst) + 1;
        let now = match self.event {
            Event::Cut => commit.is_multiple_of(self.at),
            Event::Down => false,
            Event::Stall | Event::StallAfter => commit == self.at,
        };
        now.then_some(self.event)
    }
}
