//! A way to the database that is cut at the worst moment.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

/// When a connection is cut that asks for a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// Before the request has gone through: the transaction is never committed.
    Before,
    /// After it has gone through, before any answer: the transaction is committed, and nobody is told.
    After,
}

/// A proxy before a database.
#[derive(Debug)]
pub(crate) struct Link {
    address: SocketAddr,
    cuts: Arc<AtomicU32>,
}

impl Link {
    /// To `target`; every third commit is cut, by turns before and after.
    pub(crate) fn to(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (commits, cuts) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        let counted = Arc::clone(&cuts);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let (commits, cuts) = (Arc::clone(&commits), Arc::clone(&counted));
                thread::spawn(move || pass(client, TcpStream::connect(target).unwrap(), &commits, &cuts));
            }
        });
        Self { address, cuts }
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// How many connections were cut.
    pub(crate) fn cuts(&self) -> u32 {
        self.cuts.load(Ordering::SeqCst)
    }
}

fn pass(mut client: TcpStream, mut server: TcpStream, commits: &AtomicU32, cuts: &AtomicU32) {
    let (mut from_server, mut to_client) = (server.try_clone().unwrap(), client.try_clone().unwrap());
    thread::spawn(move || {
        let _ = std::io::copy(&mut from_server, &mut to_client);
        let _ = to_client.shutdown(Shutdown::Both);
    });
    let mut buffer = vec![0; 1 << 20];
    while let Ok(length @ 1..) = client.read(&mut buffer) {
        let bytes = &buffer[..length];
        match cut(bytes, commits) {
            None => {
                if server.write_all(bytes).is_err() {
                    break;
                }
            }
            Some(when) => {
                cuts.fetch_add(1, Ordering::SeqCst);
                let _ = client.shutdown(Shutdown::Both);
                if when == Cut::After {
                    let _ = server.write_all(bytes);
                    // What it says is read by nobody; the commit is done when it says goodbye.
                    let _ = server.shutdown(Shutdown::Write);
                }
                break;
            }
        }
    }
    let _ = client.shutdown(Shutdown::Both);
    let _ = server.shutdown(Shutdown::Write);
}

/// Whether these bytes ask for a commit, and are to be cut.
fn cut(bytes: &[u8], commits: &AtomicU32) -> Option<Cut> {
    if !bytes.windows(7).any(|window| window == b"COMMIT\0") {
        return None;
    }
    match commits.fetch_add(1, Ordering::SeqCst) % 6 {
        2 => Some(Cut::Before),
        5 => Some(Cut::After),
        _ => None,
    }
}
